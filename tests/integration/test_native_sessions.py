"""The rules of native sessions, met by real requests through pydantic-ai (agent-session specification)."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from schemas.dsh import Event
from schemas.errors import WrongUse
from schemas.relavium_verdict import read_workflow
from storage.session_logs import JsonlSessions
from tasks.agents.native.budget import Caps
from tasks.agents.native.conversation import Answer as Answered
from tasks.agents.native.conversation import Failure, Message, Request, Route
from tasks.agents.native.machine import SessionMisuse
from tasks.agents.native.prices import list_price
from tasks.agents.native.protocol import CompactionResult, TurnResult
from tasks.agents.native.provider import Models, ProviderAccess
from tasks.agents.native.restore import restored
from tasks.agents.native.sessions import export_session
from tests.native_live import KEY, MODELS, Place, an_agent, live_agent
from tests.stub_llm import CUT, HANG, Answer, StubLlm, Tokens, ToolCall

LONG = "word " * 4000
"""5000 tokens by our estimate."""


@pytest.fixture
def place(stub_llm: StubLlm, tmp_path: Path) -> Place:
    return Place(stub_llm, tmp_path)


async def _turns(place: Place, *texts: str, **how: Any) -> list[TurnResult]:
    async with live_agent(place, **how) as live:
        return [await live.send(text) for text in texts]


def _stub_tokens(events: Sequence[Event]) -> Tokens:
    """What the log says was used, as the stub counts."""
    total = Tokens()
    for event in events:
        used = event["data"].get("usage") if event["type"] in ("assistant/message", "compaction/summary") else None
        if used is not None:
            cached = used.get("cacheReadTokens", 0), used.get("cacheWriteTokens", 0)
            total += Tokens(used["inputTokens"], *cached, used["outputTokens"], used.get("reasoningTokens", 0))
    return total


@pytest.mark.parametrize("provider", MODELS)
def test_a_turn_with_tools_is_what_each_provider_was_told_and_told_us(place: Place, provider: str) -> None:
    write = ToolCall("write_file", {"path": "note.txt", "content": "seven"})
    place.stub.script(
        Answer("I write it.", (write,), Tokens(30, 1000, 5, 17, 4), reasoning="hm"),
        Answer("", (ToolCall("read_file", {"path": "note.txt"}), ToolCall("unheard_of"))),
        Answer("It says seven."),
    )
    [result] = asyncio.run(_turns(place, "Note seven.", agent=an_agent(provider)))
    assert (result.stop, result.text, result.rounds) == ("completed", "It says seven.", 2)
    assert (place.workspace / "note.txt").read_text() == "seven"
    last = place.stub.requests()[-1].request
    assert b"seven" in last.raw
    assert b"there is no tool unheard_of" in last.raw
    assert last.tools == ["read_file", "list_files", "write_file", "run_command"]
    assert _stub_tokens(place.events()) == place.stub.total()
    assert place.stub.unexpected == []


def test_past_the_turn_cap_nothing_is_sent(place: Place) -> None:
    results = asyncio.run(_turns(place, "1", "2", "3", max_turns=2))
    assert [result.stop for result in results] == ["completed", "completed", "turn_limit"]
    assert len(place.stub.requests()) == 2


def test_the_turn_cap_holds_over_instances(place: Place) -> None:
    asyncio.run(_turns(place, "1", "2", max_turns=2))
    [result] = asyncio.run(_turns(place, "3", max_turns=2, resume=True))
    assert result.stop == "turn_limit"
    assert len(place.stub.requests()) == 2


@pytest.mark.parametrize(
    ("caps", "cap"),
    [
        (Caps(tokens=300), "tokens"),
        (Caps(cost_microusd=200), "cost_microusd"),
        (Caps(answers=1), "answers"),
        (Caps(wall_ms=1), "wall_time"),
    ],
)
def test_a_budget_that_is_used_up_sends_nothing_and_names_its_cap(place: Place, caps: Caps, cap: str) -> None:
    place.stub.script(Answer("Yes.", usage=Tokens(input=100, output=50)))
    results = asyncio.run(_turns(place, "1", "2", "3", agent=an_agent(max_tokens=64), caps=caps))
    served = len(place.stub.requests())
    assert results[-1].stop == "budget_exceeded"
    assert results[-1].cap == cap
    assert cap in results[-1].message
    assert served == sum(result.stop == "completed" for result in results) < 3


def test_rounds_past_their_cap_run_no_tool(place: Place) -> None:
    place.stub.script(
        Answer("", (ToolCall("write_file", {"path": "a", "content": "1"}),)),
        Answer("", (ToolCall("write_file", {"path": "b", "content": "2"}),)),
    )
    [result] = asyncio.run(_turns(place, "Go", caps=Caps(tool_rounds=1)))
    assert (result.stop, result.cap) == ("budget_exceeded", "tool_rounds")
    assert sorted(path.name for path in place.workspace.iterdir()) == ["a"]


def test_the_wall_time_ends_a_request_that_hangs(place: Place) -> None:
    place.stub.script(HANG)
    [result] = asyncio.run(_turns(place, "Go", caps=Caps(wall_ms=1500)))
    assert (result.stop, result.cap) == ("budget_exceeded", "wall_time")


SECOND = {"provider": "anthropic", "model": MODELS["anthropic"], "max_attempts": 1}


@pytest.mark.parametrize(
    "failing",
    [Answer(status=500), Answer(status=429), Answer(status=529), CUT, HANG],
    ids=lambda each: f"{each.status}-{each.ending}",
)
def test_what_may_pass_falls_back_to_the_next_model(place: Place, failing: Answer) -> None:
    place.stub.script(failing, Answer("From the second."))
    [result] = asyncio.run(_turns(place, "Hi", agent=an_agent(fallback_chain=[SECOND]), silence=1.0))
    assert (result.stop, result.text) == ("completed", "From the second.")
    assert [each.request.dialect for each in place.stub.requests()] == ["chat", "messages"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_is_refused_does_not_fall_back(place: Place, status: int) -> None:
    place.stub.script(Answer("no", status=status), Answer("From the second."))
    [result] = asyncio.run(_turns(place, "Hi", agent=an_agent(fallback_chain=[SECOND])))
    assert result.stop == "provider_error"
    assert len(place.stub.requests()) == 1


def test_no_client_library_retries_behind_our_back(place: Place) -> None:
    place.stub.script(Answer(status=500))
    retry = {"max": 3, "backoff": "linear", "backoff_ms": 1}
    [result] = asyncio.run(_turns(place, "Hi", agent=an_agent(retry=retry)))
    assert result.stop == "provider_error"
    assert len(place.stub.requests()) == 3


def test_abort_in_the_middle_of_a_stream_keeps_the_session(place: Place) -> None:
    place.stub.script(Answer("Once upon a time there was a very long answer", ending="hang", after=5), Answer("Short."))

    async def play() -> None:
        async with live_agent(place) as live:
            turn = asyncio.create_task(live.send("Tell me"))
            while not place.stub.requests():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            live.abort()
            assert (await turn).stop == "aborted"
            assert live.session.status == "idle"
            assert live.session.run.unknown == 1
            assert (await live.send("In short?")).text == "Short."

    asyncio.run(play())
    sent = place.stub.requests()[1].request.body["messages"]
    assert [message["content"] for message in sent] == ["Help.", "In short?"]
    ends = [event["data"]["reason"]["kind"] for event in place.events() if event["type"] == "turn/end"]
    assert ends == ["aborted", "completed"]


def test_an_abort_at_any_moment_leaves_what_its_log_says(place: Place) -> None:
    """Whatever the turn came to, the session read back from its log is the one that goes on."""
    look = Answer("I look at it.", (ToolCall("list_files"),), pause=0.003)
    dice = random.Random(5)

    async def play() -> None:
        stops: list[str] = []
        async with live_agent(place, max_turns=100) as live:
            for number in range(24):
                place.stub.script(look, Answer("Nothing there at all.", pause=0.003))
                turn = asyncio.create_task(live.send(f"Turn {number}"))
                await asyncio.sleep(dice.uniform(0, 0.16))
                live.abort()
                result = await turn
                assert result.stop in ("completed", "aborted"), result
                stops.append(result.stop)
                again = restored("session-1", place.events(), price=list_price, now_ms=0)
                assert again.exchanges == live.session.exchanges
                assert again.surface == live.session.surface
                assert (again.before.calls, again.before.tokens) == (live.session.run.calls, live.session.run.tokens)
        assert "aborted" in stops

    asyncio.run(play())


def test_abort_stops_a_command_that_runs(place: Place) -> None:
    place.stub.script(Answer("", (ToolCall("run_command", {"command": "sleep", "args": ["60"]}),)))

    async def play() -> None:
        async with live_agent(place) as live:
            turn = asyncio.create_task(live.send("Wait"))
            while not any(event.get("type") == "tool/call" for event in _stored(place)):
                await asyncio.sleep(0.02)
            live.abort()
            assert (await turn).stop == "aborted"

    asyncio.run(play())
    assert [event["data"]["error"]["code"] for event in place.events() if event["type"] == "tool/result"] == ["ABORTED"]


def _stored(place: Place) -> list[Event]:
    try:
        return place.events()
    except Exception:  # not there yet
        return []


def test_cancel_ends_the_session_and_another_instance_takes_it_up(place: Place) -> None:
    place.stub.script(Answer("Hi."), HANG, Answer("We spoke of this."))

    async def play() -> None:
        async with live_agent(place) as live:
            await live.send("Hello")
            turn = asyncio.create_task(live.send("More"))
            while len(place.stub.requests()) < 2:
                await asyncio.sleep(0.01)
            await live.cancel()
            assert (await turn).stop == "cancelled"
            with pytest.raises(SessionMisuse):
                await live.send("?")

    asyncio.run(play())
    [result] = asyncio.run(_turns(place, "Where were we?", resume=True))
    assert result.text == "We spoke of this."
    sent = place.stub.requests()[-1].request.body["messages"]
    assert [message["content"] for message in sent] == ["Help.", "Hello", "Hi.", "Where were we?"]


def test_a_session_never_changes_its_agent(place: Place) -> None:
    asyncio.run(_turns(place, "Hello"))
    with pytest.raises(WrongUse, match="belongs to agent helper"):
        asyncio.run(_turns(place, "x", agent=an_agent(id="other"), resume=True))


def test_usage_that_is_not_told_stays_unknown_over_instances(place: Place) -> None:
    place.stub.script(Answer("Hi.", usage=None), Answer("Again.", usage=Tokens(50, output=5)))
    asyncio.run(_turns(place, "Hello"))

    async def play() -> tuple[int, int, bool]:
        async with live_agent(place, resume=True) as live:
            await live.send("Again")
            before = live.session.before
            return before.unknown, live.session.run.tokens, before.complete

    assert asyncio.run(play()) == (1, 55, False)


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize(
    "told",
    [None, Tokens(2**63, 0, 0, 5), Tokens(-5, 0, 0, 5), Tokens(1.5, 0, 0, 5), Tokens(10, -3, 0, 5)],  # type: ignore[arg-type]
    ids=str,
)
def test_usage_that_is_not_told_or_cannot_be_is_unknown_and_the_run_goes_on(
    place: Place, provider: str, told: Tokens | None
) -> None:
    read = ToolCall("list_files", {"path": "."})
    place.stub.script(Answer("", (read,), told), Answer("It is empty.", usage=Tokens(50, output=5)))
    [result] = asyncio.run(_turns(place, "Look", agent=an_agent(provider)))
    assert (result.stop, result.text) == ("completed", "It is empty.")
    answers = [event["data"] for event in place.events() if event["type"] == "assistant/message"]
    assert [each.get("usage", {}).get("inputTokens") for each in answers] == [None, 50]


def test_compaction_in_several_passes_leaves_one_boundary_and_all_its_usage(place: Place) -> None:
    place.stub.script(*[Answer("Noted.")] * 4, Answer("First half."), Answer("All of it."), Answer("Yes."))

    async def play() -> None:
        async with live_agent(
            place, windows=lambda route: 14_000, after_turn_compaction=False, compact_threshold=9.0
        ) as live:
            live.rules = _with_window(live.rules, 1_000_000)
            for number in range(4):
                await live.send(f"{LONG} {number}")
            live.rules = _with_window(live.rules, 14_000)
            result = await live.compact()
            assert isinstance(result, CompactionResult)
            assert (result.kind, result.passes) == ("compacted", 2)
            await live.send("And?")

    asyncio.run(play())
    summariser = place.stub.requests()[5].request.body["messages"]
    assert "First half." in summariser[1]["content"]
    assert place.kinds().count("compaction/end") == 1
    last = place.stub.requests()[-1].request.body["messages"]
    assert "All of it." in last[1]["content"]
    assert " 0" not in last[1]["content"][-2:]
    assert _stub_tokens(place.events()) == place.stub.total()


def test_a_pass_that_fails_leaves_the_history_as_it_was(place: Place) -> None:
    place.stub.script(*[Answer("Noted.")] * 4, Answer("First half."), Answer(status=400), Answer("Yes."))

    async def play() -> None:
        async with live_agent(place, after_turn_compaction=False) as live:
            for number in range(4):
                await live.send(f"{LONG} {number}")
            live.rules = _with_window(live.rules, 14_000)
            assert (await live.compact()).kind == "failed"
            live.rules = _with_window(live.rules, 1_000_000)
            await live.send("And?")

    asyncio.run(play())
    assert len(place.stub.requests()[-1].request.body["messages"]) == 10
    assert _stub_tokens(place.events()) == place.stub.total()


def test_a_request_that_is_too_large_is_folded_once_and_sent_again(place: Place) -> None:
    too_long = Answer("prompt is too long: 210000 tokens > 200000 maximum", status=400)
    place.stub.script(
        Answer("A."),
        Answer("B."),
        too_long,
        Answer("Folded."),
        Answer("C."),
        too_long,
        Answer("Folded again."),
        too_long,
    )
    results = asyncio.run(_turns(place, "a", "b", "c", "d", agent=an_agent("anthropic")))
    assert [result.stop for result in results] == ["completed", "completed", "completed", "context_overflow"]
    assert MODELS["anthropic"] in results[-1].message
    assert "maximum" not in results[-1].message
    assert len(place.stub.requests()) == 8


def test_an_overflow_after_a_tool_ran_is_not_tried_again(place: Place) -> None:
    call = Answer("", (ToolCall("list_files"),))
    place.stub.script(Answer("A."), Answer("B."), call, Answer("prompt is too long", status=400))
    results = asyncio.run(_turns(place, "a", "b", "c", agent=an_agent("anthropic")))
    assert results[-1].stop == "context_overflow"
    assert len(place.stub.requests()) == 4


def test_trim_leaves_older_turns_out_of_requests_and_in_the_log(place: Place) -> None:
    async def play() -> None:
        async with live_agent(place) as live:
            for text in ("1", "2", "3"):
                await live.send(text)
            assert (await live.trim(2)).kind == "trimmed"
            await live.send("4")

    asyncio.run(play())
    sent = place.stub.requests()[-1].request.body["messages"]
    assert [message["content"] for message in sent] == ["Help.", "3", "Hello.", "4"]


@pytest.mark.parametrize("provider", MODELS)
def test_arguments_that_are_no_json_are_told_to_the_model(place: Place, provider: str) -> None:
    place.stub.script(Answer("", (ToolCall("read_file", '{"path": '),)), Answer("I see."))
    [result] = asyncio.run(_turns(place, "Go", agent=an_agent(provider)))
    assert (result.stop, result.text) == ("completed", "I see.")
    [told] = [event["data"] for event in place.events() if event["type"] == "tool/result"]
    assert told["error"]["code"] == "INVALID_ARGUMENTS"
    assert b"no JSON" in place.stub.requests()[-1].request.raw


@pytest.mark.parametrize("provider", MODELS)
def test_half_a_character_harms_nothing(place: Place, provider: str) -> None:
    place.stub.script(Answer("cut \ud83d off", (ToolCall("list_files", {"path": "."}),)), Answer("whole \ud83d\ude00"))
    [result] = asyncio.run(_turns(place, "Go", agent=an_agent(provider)))
    assert (result.stop, result.text) == ("completed", "whole 😀")
    assert "\ufffd" in str([event["data"] for event in place.events() if event["type"] == "assistant/message"])


def test_a_session_exports_what_its_turns_were(place: Place) -> None:
    place.stub.script(Answer("", (ToolCall("list_files"),)), Answer("Nothing there."), Answer("Really."))
    asyncio.run(_turns(place, "What is there?", "Sure?"))
    with JsonlSessions(place.sessions) as kept:
        scaffold = export_session(kept, "session-1", an_agent(), price=list_price)
        with pytest.raises(WrongUse, match="belongs to agent helper"):
            export_session(kept, "session-1", an_agent(id="other"), price=list_price)
    assert (scaffold.turns, scaffold.workflow_id) == (2, "what-is-there")
    nodes = read_workflow(scaffold.data, name="scaffold").workflow.nodes
    assert [node.id for node in nodes] == ["input", "turn-1", "turn-2", "output"]


def test_one_operation_at_a_time(place: Place) -> None:
    place.stub.script(HANG)

    async def play() -> None:
        async with live_agent(place) as live:
            turn = asyncio.create_task(live.send("One"))
            await asyncio.sleep(0)
            with pytest.raises(SessionMisuse, match="streaming"):
                await live.send("Two")
            with pytest.raises(SessionMisuse):
                await live.compact()
            live.abort()
            assert (await turn).stop == "aborted"

    asyncio.run(play())


def test_a_provider_without_an_address_of_its_own_is_sent_no_key(place: Place) -> None:
    async def ask() -> Answered | Failure:
        async with Models({"gemini": ProviderAccess(KEY)}) as models:
            return await models.ask(Route("gemini", "gemini-3-pro"), Request("s", (Message("user", "x"),)))

    answer = asyncio.run(ask())
    assert isinstance(answer, Failure)
    assert (answer.code, answer.sent) == ("UNSUPPORTED_MODEL", False)
    assert "endpoints.gemini.base_url" in answer.message


@pytest.mark.parametrize("before", [0, 280, 290])
def test_what_a_provider_says_of_an_error_is_masked_before_it_is_cut(place: Place, before: int) -> None:
    """Also as JSON writes the secret, and where the sentence is cut."""
    secret = 'pa"ss-0123456789'
    place.stub.script(Answer("x" * before + json.dumps({"k": secret}), status=400))

    async def ask() -> Answered | Failure:
        async with Models(place.access(), secrets=[secret]) as models:
            return await models.ask(Route("anthropic", MODELS["anthropic"]), Request("s", (Message("user", "x"),)))

    answer = asyncio.run(ask())
    assert isinstance(answer, Failure)
    assert "pa" not in answer.message, answer.message


class _Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_store_is_survived_with_what_was_stored(place: Place, when: str) -> None:
    """The session is killed at its first, second … batch in turn; what is taken up again is a session whose last
    completed turn is whole and whose figures are what was told up to there, or one call unknown."""
    script = (Answer("", (ToolCall("list_files"),), Tokens(10, output=1)), Answer("Yes.", usage=Tokens(20, output=2)))
    for crash_at in range(1, 8):
        here = Place(place.stub, place.root / f"{when}-{crash_at}")
        place.stub.script(*script, *script, Answer("After all."))
        earlier = len(place.stub.requests())
        count = 0

        def crash(events: Sequence[Event], at: int = crash_at) -> None:
            nonlocal count
            count += 1
            if count == at:
                raise _Crash

        hook = {f"{when}_store": crash}
        with pytest.raises(_Crash):
            asyncio.run(_turns(here, "One", "Two", **hook))
        if crash_at == 1 and when == "before":
            continue
        served = len(place.stub.requests()) - earlier

        async def again(place: Place = here) -> tuple[Any, str]:
            async with live_agent(place, resume=True) as live:
                before = live.session.before
                return before, (await live.send("Still there?")).stop

        before, stop = asyncio.run(again())
        assert stop == "completed"
        ends = [event["data"]["reason"]["kind"] for event in here.events() if event["type"] == "turn/end"]
        assert here.kinds().count("turn/start") == len(ends)
        assert set(ends) <= {"completed", "interrupted"}
        # A crash loses at most the answer that was being stored, or meets a request that was about to be sent: that
        # call is unknown, never nought.
        assert before.unknown <= 1
        assert served <= before.calls <= served + 1


def test_no_file_of_a_session_holds_a_key(place: Place) -> None:
    place.stub.script(Answer(f"Incorrect key: {KEY}", status=401))
    [result] = asyncio.run(_turns(place, "Hi"))
    assert KEY not in result.message
    for path in place.root.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes()
    assert KEY not in str(place.events())


def _with_window(rules: Any, window: int) -> Any:
    from dataclasses import replace

    return replace(rules, windows=lambda route: window)
