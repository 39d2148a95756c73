"""Assembly as a whole: however the evidence arrives and whatever is kept in between, the same rounds come out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from schemas.session_data import Part, Record, SessionDataHeader, read_session_data, write_session_data
from schemas.session_flow import View, read_round
from tasks.assemble.assembled import NOTHING, Subject, advance
from tasks.assemble.checkpoint import read_checkpoint, write_checkpoint
from tasks.assemble.delta import Published, published
from tasks.assemble.entries import FileEntries, entries_of
from tasks.assemble.floor import first_beyond
from tasks.assemble.index import EMPTY_INDEX, Restructured, extend
from tasks.assemble.policy import PARSER, policy
from tasks.assemble.rounds import PlannedRound, plan_round, round_at

SUBJECT = Subject("s", "s", 600_000_000_000)
POLICY = policy(SUBJECT.gap)

STREAMS = ["main", "a", "ag2", "aux"]
RUNS = ["p1", "p2", "p3", "a/b", "a_b"]
RECORDS = [f"id{n}" for n in range(24)]
CALLS = ["msg_1", "msg_2", "msg_3"]
TOOLS = ["toolu_1", "toolu_2", "toolu_3", "toolu_4"]
FLAGS = [
    "synthetic", "context_reset", "reset_summary", "finished", "external_input", "injected", "child_result", "error",
    "launch_ack", "turn_duration", "command", "notice", "auxiliary", "unheard_of",
]  # fmt: skip
TIMES = [f"2026-08-06T{hour:02d}:{minute:02d}:00Z" for hour in (9, 10, 13) for minute in (0, 4, 40)]
CHANGE_SETS = [
    b'{"schema":"changes/1","id":"c%d","captured_by":"x","changes":[{"additions":%d,"deletions":1}]}' % (n, n)
    for n in range(3)
]

BODIES = [
    b'{"schema":"provider_body/1","role":"%b","request":"q%d","previous_request":"%b"}' % (role, n, previous)
    for role in (b"request", b"response")
    for n, previous in ((1, b""), (2, b"q1"))
]


def maybe(values: Sequence[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just(""), st.sampled_from(values))


def parts(tools: Sequence[str]) -> st.SearchStrategy[tuple[Part, ...]]:
    part = st.one_of(
        st.just(Part(k="text", text=Raw(b'"hello"'))),
        st.just(Part(k="reasoning", text=Raw(b'"hm"'))),
        st.builds(Part, k=st.just("call"), id=maybe(tools), name=st.sampled_from(["Bash", "Read", "A<b>&"])),
        st.builds(Part, k=st.just("result"), of=maybe(tools)),
        st.builds(
            Part, k=st.just("data"), data=st.sampled_from([Raw(text) for text in [*CHANGE_SETS, *BODIES, b'{"z":1}']])
        ),
    )
    return st.lists(part, max_size=3).map(tuple)


def records(calls: Sequence[str], tools: Sequence[str]) -> st.SearchStrategy[Record]:
    return st.builds(
        Record,
        ord=st.integers(1, 40), off=st.just(0), sha=st.just("0"), bytes=st.just(1),
        id=maybe(RECORDS), parent=maybe(RECORDS), call=maybe(calls), run=maybe(RUNS), continues=maybe(RECORDS),
        tool=maybe(tools), child=st.one_of(st.just(""), st.just(""), st.sampled_from([*STREAMS[1:], "never"])),
        batch=maybe(["wf1", "wf2"]), label=maybe(["title", "T<1>"]), started_by=maybe(STREAMS),
        from_=st.sampled_from(["agent", "external", "runtime", "other"]), time=maybe(TIMES),
        trigger=maybe(["external", "notification", "unknown"]),
        flags=st.lists(st.sampled_from(FLAGS), max_size=2).map(tuple), parts=parts(tools),
    )  # fmt: skip


@st.composite
def landed_files(draw: st.DrawFn) -> list[FileEntries]:
    """A session's landed files. Ids with a slash, which can meet after escaping, only now and then."""
    slashes = draw(st.integers(0, 4)) == 0
    calls, tools = ([*CALLS, "msg/1"], [*TOOLS, "toolu/1", "toolu_1"]) if slashes else (CALLS, TOOLS)
    files = []
    for seq in range(1, draw(st.integers(1, 7)) + 1):
        kind = draw(
            st.sampled_from(
                ["transcript"] * 6 + ["agent_meta", "journal", "workflow_manifest", "changes", "provider_body"]
            )
        )
        stream = draw(st.sampled_from(STREAMS)) if kind in ("transcript", "agent_meta", "changes") else ""
        header = SessionDataHeader(
            h=1, schema="sd/1", seq=seq, at="", kind=kind, adapter="test", dialect="test/1", src="x", session="s",
            stream=stream, batch="" if stream else "wf1",
        )  # fmt: skip
        body = draw(st.lists(records(calls, tools), min_size=0 if seq > 1 else 1, max_size=6))
        landed = read_session_data(write_session_data(header, body), name=f"{seq}.sd")
        files.append(entries_of(landed, seq, stream="", batch=""))
    return files


class Chain:
    """A chain kept in memory, as `assemble_session` keeps it in a store; `keep`: the checkpoint, too."""

    def __init__(self, keep: bool) -> None:
        self.rounds: list[bytes] = []
        self.keep = keep
        self.saved: bytes | None = None
        self.resumed = 0

    def view(self) -> View:
        view = View.empty("s")
        for number, data in enumerate(self.rounds, 1):
            view.apply(read_round(data, name=str(number)), file=str(number))
        return view

    def run(self, files: list[FileEntries], budget: int) -> None:
        """Bring the chain up to `files`."""
        try:
            self._run(files, budget, resume=self.keep)
        except Restructured:
            self._run(files, budget, resume=False)

    def _run(self, files: list[FileEntries], budget: int, *, resume: bool) -> None:
        saved = read_checkpoint(self.saved, 1 << 30) if resume and self.saved is not None else None
        if saved is not None:
            before, base = saved.published(), saved.assembled
            index = extend(saved.resumed_index(), files[len(saved.landed) :])
            self.resumed += 1
        else:
            view = self.view()
            header = view.header
            before = published(view, header.through_seq, header.input_digest) if header else published(view, 0, "")
            base, index = NOTHING, extend(EMPTY_INDEX, files)
        while index.watermark:
            found = plan_round(before, base, index, SUBJECT, budget)
            if isinstance(found, PlannedRound):
                self.rounds.append(found.data)
                before, base = found.published, found.assembled
            else:
                base = found
            if before.through >= index.watermark:
                break
        landed = [(str(file.seq), 1) for file in files]
        self.saved = write_checkpoint(PARSER, POLICY, "s", "s", landed, [], index, before, base)


def standing(files: list[FileEntries]) -> Published:
    index = extend(EMPTY_INDEX, files)
    nothing = published(View.empty("s"), 0, "")
    whole = round_at(nothing, NOTHING, index, index.watermark, SUBJECT)
    assert isinstance(whole, PlannedRound)
    return whole.published


EXAMPLES = int(os.environ.get("SESSIONMILL_EXAMPLES", "60"))

relaxed = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@relaxed
@given(files=landed_files(), data=st.data(), budget=st.sampled_from([1, 900, 2500, 6000, 0]))
def test_any_split_folds_to_one_full_assembly_and_the_checkpoint_changes_no_byte(
    files: list[FileEntries], data: st.DataObject, budget: int
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(files)), max_size=3)) | {len(files)})
    kept, forgetful = Chain(keep=True), Chain(keep=False)
    for cut in cuts:
        kept.run(files[:cut], budget)
        forgetful.run(files[:cut], budget)
    assert kept.rounds == forgetful.rounds
    event(f"resumed {min(kept.resumed, 1)}")
    view = kept.view()
    whole = standing(files)
    assert {name: entity.facts for name, entity in view.nodes.items()} == {**(whole.nodes or {}), **whole.outline}
    assert {name: entity.facts for name, entity in view.relations.items()} == dict(whole.relations)
    still_open = {name: e.facts for name, e in view.unresolved.items() if e.facts.endswith(b'"state":"open"}')}
    assert still_open == dict(whole.unresolved)
    assert view.header is not None
    assert view.header.steps == len(view.nodes) - sum(
        name.startswith(("session/", "stream/", "epoch/", "talk/", "run/", "segment/")) for name in view.nodes
    )
    assert view.header.unresolved == len(still_open)


@relaxed
@given(files=landed_files())
def test_what_is_told_too_large_from_the_index_is_too_large(files: list[FileEntries]) -> None:
    """At the tightest budget of every round: its own size."""
    index = extend(EMPTY_INDEX, files)
    before = published(View.empty("s"), 0, "")
    for through in range(1, index.watermark + 1):
        found = round_at(before, NOTHING, index, through, SUBJECT)
        assert isinstance(found, PlannedRound)
        beyond = first_beyond(index, 0, {}, {}, {}, len(found.data))
        assert beyond is None or beyond > through


@relaxed
@given(files=landed_files())
def test_advancing_changes_nothing_that_was_there(files: list[FileEntries]) -> None:
    """A step that made a round too large is dropped, so what it started from must still be whole."""
    index = extend(EMPTY_INDEX, files)
    first = advance(NOTHING, index, 1, SUBJECT)
    with contextlib.suppress(Restructured):
        advance(first, index, index.watermark, SUBJECT)
    assert first == advance(NOTHING, index, 1, SUBJECT)
    assert NOTHING.written == {}
