"""Invented archives of three agent programs, as each would have kept its own; always the same sessions.

Claude Code sends a sub-agent off in one session and still waits for a tool's result in another; Codex and DeepSeek
Harness are asked once. The result that is waited for comes later, as more lines of the file that waits.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson

from schemas.dsh import Event, LogHeader
from schemas.times import format_time, parse_time
from storage.session_logs import JsonlSessions

__all__ = ["ARCHIVES", "BAKERY", "KITES", "kites_have_grown", "make_archives", "more_of_the_kites"]

ARCHIVES = ("claude-code", "codex", "dsh")
"""The archives' folders, which are the kinds of source as well."""

BAKERY = "5f0c1d2e-0b5a-4c1e-9a57-6d1f6f0a0001"
KITES = "5f0c1d2e-0b5a-4c1e-9a57-6d1f6f0a0002"
_BICYCLES = "01987c4e-5c00-7000-8000-6d1f6f0a0003"
_TIDES = "session-6d1f6f0a000000000000000000000004"
_PLANNER = "a6d1f6f0a00000005"

_KITE_LINES = 2
"""How many lines of the kites' session are there at first."""


def make_archives(folder: Path) -> None:
    """Write the archives into `folder`, the kites' session only as far as it has come; nothing where they are."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    _write_all(unfinished)
    unfinished.rename(folder)


def _write_all(folder: Path) -> None:
    projects = folder / "claude-code" / "projects"
    bakery = projects / "-srv-bakery"
    _write(bakery / f"{BAKERY}.jsonl", _bakery())
    _write(bakery / BAKERY / "subagents" / f"agent-{_PLANNER}.jsonl", _oven_planner())
    _write(
        bakery / BAKERY / "subagents" / f"agent-{_PLANNER}.meta.json",
        [{"agentType": "general-purpose", "description": "Plan the oven", "toolUseId": "toolu_02"}],
    )
    _write(_kites_file(folder), _kites()[:_KITE_LINES])
    rollout = f"rollout-2026-08-03T15-00-00-{_BICYCLES}.jsonl"
    _write(folder / "codex" / "sessions" / "2026" / "08" / "03" / rollout, _bicycles())
    _keep_tides(folder / "dsh" / "sessions")


def kites_have_grown(folder: Path) -> bool:
    """Whether the kites' session has got what it waited for."""
    return _kites_file(folder).read_bytes() == _lines(_kites())


def more_of_the_kites(folder: Path) -> Path:
    """Append what the session of the kites waited for; the file that has grown."""
    path = _kites_file(folder)
    with path.open("ab") as file:
        file.write(_lines(_kites()[_KITE_LINES:]))
    return path


def _kites_file(folder: Path) -> Path:
    return folder / "claude-code" / "projects" / "-srv-kites" / f"{KITES}.jsonl"


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_lines(rows))


class _Transcript:
    """Writes the rows of one Claude Code transcript, each a child of the one before and some seconds later."""

    def __init__(self, session: str, project: str, begins: str, agent: str = "") -> None:
        self._clock = parse_time(begins)
        self._rows: list[dict[str, Any]] = []
        self._agent = agent
        self._common = {"userType": "external", "cwd": f"/srv/{project}", "sessionId": session, "version": "2.1.245"}

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self._rows

    def _add(self, kind: str, message: dict[str, Any], after: int, **more: Any) -> None:
        self._clock += after * 1_000_000_000
        place = f"{self._agent or self._common['sessionId']}-{len(self._rows) + 1}"
        self._rows.append(
            {
                "parentUuid": self._rows[-1]["uuid"] if self._rows else None,
                "isSidechain": bool(self._agent),
                **self._common,
                "type": kind,
                **({"agentId": self._agent} if self._agent else {}),
                **more,
                "message": message,
                "uuid": place,
                "timestamp": format_time(self._clock).removesuffix("Z") + ".000Z",
            }
        )

    def asks(self, prompt: str, text: str, after: int = 5) -> None:
        """A person, or in a sub-agent's transcript the agent that sent it, asks for something."""
        origin = {} if self._agent else {"origin": {"kind": "human"}}
        self._add("user", {"role": "user", "content": text}, after, promptId=prompt, **origin)

    def answers(self, id: str, *content: dict[str, Any], tokens: int = 40, after: int = 6) -> None:
        """One call to the model."""
        usage = {
            "input_tokens": 12,
            "output_tokens": tokens,
            "cache_read_input_tokens": 9_600,
            "cache_creation_input_tokens": 800,
            "cache_creation": {"ephemeral_5m_input_tokens": 800, "ephemeral_1h_input_tokens": 0},
        }
        message = {
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": "tool_use" if content[-1]["type"] == "tool_use" else "end_turn",
            "usage": usage,
        }
        self._add("assistant", message, after, requestId=f"req_{id}")

    def returns(self, prompt: str, tool: str, text: str, after: int = 4, **outcome: Any) -> None:
        """A tool's result comes back."""
        result = {"tool_use_id": tool, "type": "tool_result", "content": [{"type": "text", "text": text}]}
        message = {"role": "user", "content": [result]}
        self._add("user", message, after, promptId=prompt, toolUseResult={"status": "completed", **outcome})


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _use(id: str, name: str, **arguments: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def _bakery() -> list[dict[str, Any]]:
    said = _Transcript(BAKERY, "bakery", "2026-08-03T06:00:00Z")
    said.asks("monday", "How much flour do we need on Monday?")
    said.answers("msg_b1", _text("I look at the orders."), _use("toolu_01", "Read", file="orders.csv"))
    said.returns("monday", "toolu_01", "rye 40, wheat 120")
    said.answers("msg_b2", _text("Forty loaves of rye and 120 of wheat: 96 kg of flour."), tokens=90)
    said.asks("oven", "Have someone plan the oven.", after=1800)
    said.answers("msg_b3", _use("toolu_02", "Task", prompt="Plan the oven for 160 loaves"))
    said.returns("oven", "toolu_02", "Five batches of 32, the first at four.", after=60, agentId=_PLANNER)
    said.answers("msg_b4", _text("The oven is planned: five batches, the first at four."), tokens=70)
    return said.rows


def _oven_planner() -> list[dict[str, Any]]:
    said = _Transcript(BAKERY, "bakery", "2026-08-03T06:30:31Z", _PLANNER)
    said.asks("oven", "Plan the oven for 160 loaves")
    said.answers("msg_o1", _use("toolu_03", "Bash", command="python3 oven.py 160"))
    said.returns("oven", "toolu_03", "5 batches of 32")
    said.answers("msg_o2", _text("Five batches of 32, the first at four."), tokens=60)
    return said.rows


def _kites() -> list[dict[str, Any]]:
    said = _Transcript(KITES, "kites", "2026-08-03T09:00:00Z")
    said.asks("wind", "Is there wind enough on Saturday?")
    said.answers("msg_k1", _use("toolu_04", "Bash", command="forecast saturday"))
    said.returns("wind", "toolu_04", "18 km/h from the west", after=40)
    said.answers("msg_k2", _text("Yes: 18 km/h from the west, all afternoon."), tokens=80)
    return said.rows


def _bicycles() -> list[dict[str, Any]]:
    begins = parse_time("2026-08-03T15:00:00Z")
    question, answer = "The rear wheel rattles. Why?", "A spoke is loose; page 12 says how to true the wheel."
    meta = {
        "id": _BICYCLES,
        "timestamp": "2026-08-03T15:00:00.000Z",
        "cwd": "/srv/bicycles",
        "originator": "codex_cli_rs",
    }
    rows: list[tuple[str, dict[str, Any]]] = [
        ("session_meta", {**meta, "cli_version": "0.46.0", "source": "cli", "model_provider": "openai"}),
        (
            "turn_context",
            {"cwd": "/srv/bicycles", "approval_policy": "never", "model": "gpt-5-codex", "effort": "medium"},
        ),
        ("event_msg", {"type": "user_message", "message": question, "kind": "plain"}),
        ("response_item", _said_by("user", "input_text", question)),
        (
            "response_item",
            {
                "type": "function_call",
                "name": "shell",
                "arguments": '{"command":["grep","-n","spoke","manual.txt"]}',
                "call_id": "call_1",
            },
        ),
        ("event_msg", _token_count(2_000, 1_500, 100, 2_000, 1_500, 100)),
        (
            "response_item",
            {"type": "function_call_output", "call_id": "call_1", "output": "page 12: a loose spoke rattles"},
        ),
        ("event_msg", {"type": "agent_message", "message": answer}),
        ("response_item", _said_by("assistant", "output_text", answer)),
        ("event_msg", _token_count(4_300, 3_400, 190, 2_300, 1_900, 90)),
    ]
    return [
        {
            "timestamp": format_time(begins + at * 3_000_000_000).removesuffix("Z") + ".000Z",
            "type": kind,
            "payload": payload,
        }
        for at, (kind, payload) in enumerate(rows)
    ]


def _said_by(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _token_count(*figures: int) -> dict[str, Any]:
    """The thread's totals, then the last call's own: input with the cache's, of it cached, output."""

    def usage(input: int, cached: int, output: int) -> dict[str, int]:
        return {
            "input_tokens": input,
            "cached_input_tokens": cached,
            "output_tokens": output,
            "reasoning_output_tokens": 0,
            "total_tokens": input + output,
        }

    return {
        "type": "token_count",
        "info": {"total_token_usage": usage(*figures[:3]), "last_token_usage": usage(*figures[3:])},
    }


def _keep_tides(root: Path) -> None:
    """Keep a session as DeepSeek Harness would, through the seam that keeps our own."""
    begins = 1_785_744_000_000
    provider = {"kind": "model", "provider": "deepseek", "model": "deepseek-v4-flash"}
    usage = {"inputTokens": 900, "outputTokens": 60, "cacheReadTokens": 4_000, "cacheWriteTokens": 0}
    events: list[tuple[str, dict[str, Any], str | None]] = [
        ("turn/start", {"turn": 1}, None),
        ("step/start", {"turn": 1, "step": 1}, None),
        (
            "user/message",
            {
                "id": "m1",
                "role": "user",
                "source": {"kind": "user"},
                "content": [_text("When is low water on Tuesday?")],
            },
            "append",
        ),
        (
            "assistant/message",
            {
                "turn": 1,
                "step": 1,
                "message": {
                    "id": "m2",
                    "role": "assistant",
                    "source": provider,
                    "content": [_text("At 11:42, the height is 0.6 m.")],
                },
                "usage": usage,
            },
            "append",
        ),
        ("step/end", {"turn": 1, "step": 1}, None),
        ("turn/end", {"turn": 1, "reason": {"kind": "completed"}}, None),
        ("session/title", {"title": "Low water on Tuesday", "messageSeqs": [2], "source": {"kind": "fallback"}}, None),
    ]
    batch: list[Event] = [
        {"type": kind, "seq": seq, "time": begins + seq * 2_000, "data": data, **({"surfaceOp": on} if on else {})}
        for seq, (kind, data, on) in enumerate(events)
    ]
    with JsonlSessions(root) as sessions:
        sessions.create(LogHeader(version=0, id=_TIDES, created_at=begins, cwd="/srv/tides", delegation_depth=0))
        sessions.append(_TIDES, batch)
