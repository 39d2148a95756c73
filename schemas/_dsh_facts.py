"""One pass over a session's events, in which its facts come together. See `schemas.dsh_facts` for what is counted."""

from __future__ import annotations

from typing import Any

from schemas._dsh_facts_model import Compaction, Injected, Outcome, Prompt, SessionFacts, Step, ToolCall, Turn, Usage
from schemas._dsh_header import LogHeader
from schemas._dsh_json import is_safe
from schemas._dsh_messages import blocks_of, field, message_of, text_of
from schemas._dsh_surface import Surface

__all__ = ["Gathering"]

Event = dict[str, Any]

_CODE_OUTCOMES: dict[str | None, Outcome] = {
    "TOOL_OUTCOME_UNKNOWN": "unknown",
    "TOOL_NOT_STARTED": "not-started",
    "ABORTED": "aborted",
    "ABORTED_BEFORE_DISPATCH": "aborted",
}


class Gathering:
    """Facts under way: one pass over the events, each list's entries still open to what comes later."""

    def __init__(self, header: LogHeader, cut: int) -> None:
        self.header = header
        self.cut = cut
        self.own = cut == 0
        self.surface = Surface(header.version)
        self.titles: list[tuple[str, str | None]] = []
        self.prompts: list[Prompt] = []
        self.delegated: list[Prompt] = []
        self.injected: list[Injected] = []
        self.turns: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.unanswered: dict[str, dict[str, Any]] = {}
        self.compactions: list[dict[str, Any]] = []
        self.models: dict[str, None] = {}
        self.resumes: list[int] = []
        self.queues: dict[str, list[Any]] = {}
        self.claimed: list[str] = []
        self.turn: dict[str, Any] | None = None
        self.step: dict[str, Any] | None = None

    def take(self, event: Event) -> None:
        self.own = event["seq"] >= self.cut
        kind, data = event["type"], event["data"]
        if "surfaceOp" in event:
            self.surface.place(event["seq"], self.surface.span(event["surfaceOp"]) or [])
        take = _TAKERS.get(kind)
        if take is not None and isinstance(data, dict):
            take(self, event, data)

    def facts(self, events: int) -> SessionFacts:
        if self.turn is not None:
            self.turn["entered_by"] = self.turn["entered_by"] or self.claimed
        title, title_source = self.titles[-1] if self.titles else (None, None)
        return SessionFacts(
            events=events,
            inherited_events=self.cut,
            title=title,
            title_source=title_source,
            title_history=tuple(each for each, _ in self.titles),
            human_prompts=tuple(self.prompts),
            delegated_prompts=tuple(self.delegated),
            injected=tuple(self.injected),
            turns=tuple(Turn(**{**turn, "entered_by": tuple(turn["entered_by"])}) for turn in self.turns),
            tool_calls=tuple(ToolCall(**call) for call in self.calls),
            steps=tuple(Step(**step) for step in self.steps),
            compactions=tuple(Compaction(**compaction) for compaction in self.compactions),
            models=tuple(self.models),
            surface=tuple(self.surface),
            resumes=tuple(self.resumes),
        )

    def turn_start(self, event: Event, data: Event) -> None:
        self.turn = {"turn": _number(data.get("turn")), "inherited": not self.own, "entered_by": [], "end": None}
        self.turn |= {"end_detail": None, "final_text": None}
        self.claimed = []
        self.turns.append(self.turn)
        self.step = None

    def turn_end(self, event: Event, data: Event) -> None:
        if self.turn is not None:
            reason = data.get("reason")
            detail = field(field(reason, "error"), "code") or field(field(reason, "reason"), "kind")
            self.turn |= {"end": _text(field(reason, "kind")) or "unknown", "end_detail": _text(detail)}
            self.turn["entered_by"] = self.turn["entered_by"] or self.claimed
        self.turn = self.step = None

    def step_start(self, event: Event, data: Event) -> None:
        self.step = {"turn": _number(data.get("turn")), "step": _number(data.get("step"))}
        self.step |= {"attempts_failed": 0, "retries": 0}
        self.step |= {"usage": None, "model": None, "finish": None, "interrupted": False}
        if self.own:
            self.steps.append(self.step)

    def step_end(self, event: Event, data: Event) -> None:
        self.step = None

    def inbox(self, event: Event, data: Event) -> None:
        """A turn that fails before its first step has its message in the queue only: it begins with what it takes."""
        queue = self.queues.setdefault(str(data.get("target")), [])
        start, removed, inserted = data.get("start"), data.get("removedCount", 0), data.get("inserted")
        if not (is_safe(start) and is_safe(removed)):
            return
        messages = inserted if isinstance(inserted, list) else []
        taken = queue[int(start) : int(start + removed)]
        queue[int(start) : int(start + removed)] = [field(field(each, "source"), "kind") for each in messages]
        if self.turn is not None and self.step is None and "outcome" not in data:
            self.claimed += [kind for kind in taken if isinstance(kind, str)]

    def user_message(self, event: Event, data: Event) -> None:
        source = data["source"]
        kind = source["kind"]
        in_first_step = self.step is None or self.step["step"] == 1
        if self.turn is not None and self.turn["final_text"] is None and in_first_step and not _is_context(source):
            self.turn["entered_by"].append(kind)
        if not self.own:
            return
        if kind != "user":
            self.injected.append(Injected(event["seq"], kind))
            if self.compactions and event["seq"] == self.compactions[-1]["summary_seq"] + 1:
                self.compactions[-1]["checkpoint_seq"] = event["seq"]
            return
        prompt = Prompt(event["seq"], self.turn["turn"] if self.turn else None, text_of(data["content"]))
        is_delegated = self.header.origin == "subagent" and not self.delegated
        (self.delegated if is_delegated else self.prompts).append(prompt)

    def answer(self, event: Event, data: Event) -> None:
        message = message_of(event)
        text = text_of(message["content"])
        if self.turn is not None and text:
            self.turn["final_text"] = text
        if not self.own:
            return
        model = message["source"]["model"]
        self.models[model] = None
        if self.step is not None:
            finish = _finish(data.get("stream")) or self.step["finish"]
            self.step |= {"usage": _usage(data.get("usage")), "model": model, "finish": finish}
            self.step["interrupted"] = data.get("interrupted") is True
        for block in blocks_of(message):
            if block["type"] == "tool-call" and isinstance(block.get("id"), str):
                call = {"call_id": block["id"], "name": _text(block.get("name")) or "", "started": False}
                call |= {"turn": _number(data.get("turn")), "step": _number(data.get("step"))}
                call |= {"outcome": "none", "error_code": None}
                self.calls.append(call)
                self.unanswered[block["id"]] = call

    def attempt(self, event: Event, data: Event) -> None:
        if self.step is not None:
            self.step["attempts_failed"] += 1
            self.step["finish"] = _finish(data.get("stream"))

    def chunk(self, event: Event, data: Event) -> None:
        """Generation 0: an attempt's end is a chunk, whether it came to an answer or not."""
        chunk = data.get("chunk")
        if self.step is not None and field(chunk, "type") == "finish":
            self.step["finish"] = _text(field(field(chunk, "reason"), "kind"))
            self.step["attempts_failed"] += self.step["finish"] in ("error", "aborted")

    def retry(self, event: Event, data: Event) -> None:
        if self.step is not None:
            self.step["retries"] += 1

    def tool_call(self, event: Event, data: Event) -> None:
        call = self.unanswered.get(str(data.get("callId")))
        if call is not None:
            call["started"] = True

    def tool_result(self, event: Event, data: Event) -> None:
        message = message_of(event)
        call = self.unanswered.pop(message["source"]["callId"], None)
        if call is None:
            return
        failed = message.get("isError") if message["role"] == "tool" else message["content"][0].get("isError")
        call["error_code"] = _text(field(data.get("error"), "code"))
        call["outcome"] = _CODE_OUTCOMES.get(call["error_code"], "error" if failed is True else "ok")

    def summary(self, event: Event, data: Event) -> None:
        if self.own:
            shadowed = data.get("shadowedSeqs")
            self.compactions.append(
                {
                    "compaction_id": str(data.get("compactionId")),
                    "summary_seq": event["seq"],
                    "checkpoint_seq": None,
                    "turn": self.turn["turn"] if self.turn else None,
                    "manual": "sourceCommandId" in data,
                    "summary": text_of(data.get("summary")),
                    "shadowed_seqs": tuple(filter(is_safe, shadowed)) if isinstance(shadowed, list) else (),
                    "model": _text(data.get("model")),
                    "usage": _usage(data.get("usage")),
                }
            )

    def title(self, event: Event, data: Event) -> None:
        if isinstance(data.get("title"), str):
            self.titles.append((data["title"], _text(field(data.get("source"), "kind"))))

    def end_seed(self, event: Event, data: Event) -> None:
        is_seeds = data.get("inherited") is True or (self.header.version < 2 and event["seq"] == self.cut > 0)
        if self.own and not is_seeds:
            self.resumes.append(event["seq"])


_TAKERS = {
    "turn/start": Gathering.turn_start,
    "turn/end": Gathering.turn_end,
    "step/start": Gathering.step_start,
    "step/end": Gathering.step_end,
    "agent/inbox/spliced": Gathering.inbox,
    "user/message": Gathering.user_message,
    "assistant/message": Gathering.answer,
    "assistant/attempt": Gathering.attempt,
    "assistant/chunk": Gathering.chunk,
    "llm/retry": Gathering.retry,
    "tool/call": Gathering.tool_call,
    "tool/result": Gathering.tool_result,
    "compaction/summary": Gathering.summary,
    "session/title": Gathering.title,
    "session/end-seed": Gathering.end_seed,
}


def _finish(stream: Any) -> str | None:
    """How the model stopped: the last such record of a stream."""
    for record in reversed(stream if isinstance(stream, list) else []):
        chunk = field(record, "chunk")
        if field(chunk, "type") == "finish":
            return _text(field(field(chunk, "reason"), "kind"))
    return None


def _usage(value: Any) -> Usage | None:
    """The counts of a usage object; None without one."""
    if not isinstance(value, dict):
        return None
    return {name: int(tokens) for name, tokens in value.items() if is_safe(tokens)}


def _is_context(source: Event) -> bool:
    """Whether a message only tells the model how things stand, and begins nothing."""
    if source["kind"] in ("runtime-context", "compact-checkpoint"):
        return True
    return source["kind"] == "plugin" and (source.get("plugin") == "compact" or source.get("form") == "snapshot")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    return int(value) if is_safe(value) else None
