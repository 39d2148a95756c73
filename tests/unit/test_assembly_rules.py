"""Rules of assembly that golden sessions do not reach, in small sessions written in place (specification, 4 to 6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from schemas.session_data import Part, Record, SessionDataHeader, read_session_data, write_session_data
from schemas.session_flow import View
from tasks.assemble.assembled import NOTHING, Subject, advance
from tasks.assemble.delta import published
from tasks.assemble.entries import FileEntries, entries_of
from tasks.assemble.index import EMPTY_INDEX, Restructured, extend
from tasks.assemble.policy import policy
from tasks.assemble.rounds import PlannedRound, round_at

SUBJECT = Subject("s", "s", 600_000_000_000)


def rec(id: str = "", **fields: Any) -> Record:
    """A record; `uses` and `results` name tools, `texts` counts text parts, `data` is a document in a data part."""
    parts = [Part(k="text", text=Raw(b'"t"')) for _ in range(fields.pop("texts", 0))]
    parts += [Part(k="call", id=tool, name="Bash") for tool in fields.pop("uses", ())]
    parts += [Part(k="result", of=tool) for tool in fields.pop("results", ())]
    if "data" in fields:
        parts.append(Part(k="data", data=Raw(json.dumps(fields.pop("data")).encode())))
    facts: dict[str, Any] = {"ord": 1, "off": 0, "sha": "0", "bytes": 1, "parts": tuple(parts)}
    return Record(id=id, **(facts | fields))


def landed(seq: int, *records: Record, stream: str = "main", kind: str = "transcript") -> FileEntries:
    header = SessionDataHeader(
        h=1, schema="sd/1", seq=seq, at="", kind=kind, adapter="t", dialect="t/1", src="x", session="s", stream=stream
    )
    return entries_of(read_session_data(write_session_data(header, records), name="x"), seq, stream="", batch="")


class Graph:
    """What one full assembly of the files says, as parsed JSON by id."""

    def __init__(self, *files: FileEntries) -> None:
        index = extend(EMPTY_INDEX, files)
        planned = round_at(published(View.empty("s"), 0, ""), NOTHING, index, index.watermark, SUBJECT)
        assert isinstance(planned, PlannedRound)
        self.header = planned.header
        standing = planned.published
        self.nodes = _parsed({**(standing.nodes or {}), **standing.outline})
        self.relations = _parsed(dict(standing.relations))
        self.unresolved = _parsed(dict(standing.unresolved))

    def container(self, node: str) -> str:
        parent: str = self.nodes[node]["parent"]
        return parent


def _parsed(entities: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    return {name: json.loads(facts) for name, facts in entities.items()}


# Runs through ancestors (section 4)


@pytest.mark.parametrize(("ancestors", "container"), [(64, "run/talk_main_p/p"), (65, "talk/main/p")])
def test_a_run_comes_from_at_most_64_ancestors(ancestors: int, container: str) -> None:
    records = [rec("r0", run="p", from_="external", trigger="external")]
    records += [rec(f"r{n}", parent=f"r{n - 1}", from_="runtime") for n in range(1, ancestors + 1)]
    last = rec("last", parent=f"r{ancestors - 1}", from_="runtime", flags=("notice",))
    graph = Graph(landed(1, *records[:-1], last))
    assert graph.container(f"notice/1/{ancestors + 1}") == container


def test_an_ancestor_counts_wherever_it_lands() -> None:
    first = landed(1, rec("a", parent="b", from_="runtime", flags=("notice",)))
    graph = Graph(first, landed(2, rec("b", run="p", from_="external"), stream="other"))
    assert graph.container("notice/1/1") == "run/talk_main_p/p"


@pytest.mark.parametrize("parents", [["a"], ["b", "a"], ["b", "c", "a"]])
def test_a_circle_of_parents_gives_no_run(parents: list[str]) -> None:
    names = "abc"[: len(parents)]
    records = [rec(name, parent=parent, flags=("notice",)) for name, parent in zip(names, parents, strict=True)]
    graph = Graph(landed(1, *records))
    assert {graph.container(f"notice/1/{row + 1}") for row in range(len(parents))} == {"epoch/main/0"}


def test_a_duplicate_counts_nowhere_but_in_the_change_sets() -> None:
    change = {"schema": "changes/1", "id": "c", "captured_by": "x", "changes": [{"additions": 2, "deletions": 1}]}
    graph = Graph(
        landed(1, rec("a", call="m", from_="agent", texts=1)),
        landed(2, rec("a", call="m2", from_="agent", texts=1, data=change, time="2026-08-06T09:00:00Z")),
    )
    assert "call/m2" not in graph.nodes
    assert graph.nodes["stream/main"]["attrs"]["records"] == 1
    assert (graph.header.changes, graph.header.lines_added, graph.header.lines_removed) == (1, 2, 1)
    assert graph.header.from_time == "2026-08-06T09:00:00Z"
    assert graph.header.session_from_time == ""


def test_an_ancestor_or_a_lower_sequence_that_lands_late_asks_for_a_whole_assembly() -> None:
    index = extend(EMPTY_INDEX, [landed(2, rec("a", parent="b"))])
    with pytest.raises(Restructured):
        extend(index, [landed(3, rec("b", run="p"))])
    with pytest.raises(Restructured):
        extend(index, [landed(1, rec("c"))])
    assert extend(index, [landed(3, rec("c", run="p"))]).watermark == 3


# Streams and spawns (stages 2 and 5)


def spawned(**fields: Any) -> tuple[FileEntries, FileEntries]:
    """The main stream uses a tool whose result names the stream `ag`, which has a response of its own."""
    main = landed(
        1,
        rec("u", call="m", run="p", from_="agent", uses=("t",)),
        rec("r", run="p", from_="external", results=("t",), child="ag", **fields),
    )
    return main, landed(2, rec("c", call="mc", run="p", from_="agent", texts=1), stream="ag")


def test_a_child_stream_is_one_talk_and_its_tool_an_agent_call() -> None:
    graph = Graph(*spawned())
    assert graph.nodes["stream/ag"]["attrs"]["role"] == "child"
    assert graph.nodes["talk/ag"]["attrs"] == {"loops": 1, "runs": 1, "trigger": "unknown"}
    assert graph.nodes["tool/t"]["kind"] == "agent.call"
    assert graph.nodes["output/ag"]["attrs"] == {"returned_value": "unavailable"}
    assert graph.relations["rel/starts/tool_t/stream_ag"]["via"] == "parent tool result"
    assert graph.header.subagents == 1


def test_an_auxiliary_stream_has_talks_of_its_own_and_its_tool_starts_no_agent() -> None:
    graph = Graph(*spawned(flags=("auxiliary",)))
    assert graph.nodes["stream/ag"]["attrs"]["role"] == "auxiliary"
    assert graph.nodes["talk/ag/p"]["attrs"]["trigger"] == "external"
    assert "talk/ag" not in graph.nodes
    assert graph.nodes["tool/t"]["kind"] == "tool"
    assert "rel/starts/tool_t/stream_ag" in graph.relations
    assert "output/ag" not in graph.nodes
    assert graph.header.subagents == 0


def test_a_stream_named_both_ways_is_a_child() -> None:
    main, child = spawned(flags=("auxiliary",))
    graph = Graph(main, child, landed(3, rec("again", child="ag", tool="t")))
    assert graph.nodes["stream/ag"]["attrs"]["role"] == "child"


@pytest.mark.parametrize("stream", ["ag", "other"])
def test_a_stream_that_nothing_started_is_open_whatever_its_role(stream: str) -> None:
    graph = Graph(landed(1, rec("x", child="ag", flags=("auxiliary",))), landed(2, rec("y"), stream=stream))
    assert graph.unresolved[f"unres/spawn_of_child/{stream}"]["state"] == "open"


def test_evidence_of_one_relation_is_all_kept() -> None:
    main, child = spawned()
    graph = Graph(main, child, landed(3, rec("again", child="ag", tool="t", batch="wf"), kind="journal", stream=""))
    assert graph.relations["rel/starts/tool_t/stream_ag"]["evidence"] == [{"seq": 1, "row": 2}]


# Epochs (stage 6)


def test_a_stream_that_starts_with_a_reset_follows_itself() -> None:
    graph = Graph(landed(1, rec("b", flags=("context_reset",), continues="gone"), rec("c")))
    assert graph.nodes["epoch/main/b"]["attrs"] == {
        "continues_from": "gone", "records": 2, "reset": "observed_replayable",
    }  # fmt: skip
    assert list(graph.relations) == ["rel/follows/epoch_main_b/epoch_main_b"]
    assert "epoch/main/0" not in graph.nodes
    assert "unres/epoch_continuation/gone" in graph.unresolved


# Talks (stage 7)


def test_only_an_external_trigger_or_none_at_all_starts_a_talk() -> None:
    graph = Graph(
        landed(
            1,
            rec("1", run="p1", from_="external", trigger="external"),
            rec("2", run="p2", from_="external", trigger="notification"),
            rec("3", run="p3", from_="external"),
            rec("4", run="p4", from_="external", trigger="unknown"),
        )
    )
    assert [name for name in graph.nodes if name.startswith("talk/")] == ["talk/main/p1", "talk/main/p3"]
    assert graph.nodes["run/talk_main_p1/p2"]["attrs"] == {"trigger": "notification"}
    assert graph.nodes["talk/main/p3"]["attrs"]["runs"] == 2


# Ids that meet after escaping (section 5)


def test_of_two_calls_with_one_node_id_the_later_stands() -> None:
    graph = Graph(landed(1, rec("1", call="m/1", from_="agent", texts=1), rec("2", call="m_1", from_="agent", texts=1)))
    assert graph.nodes["call/m_1"]["ref"] == {"seq": 1, "row": 2}
    assert {name for name in graph.nodes if name.startswith("msg/")} == {"msg/1/1:0", "msg/1/2:0"}
    assert graph.header.llm_calls == 1


# Provider bodies


def body(id: str, role: str, *, call: str = "", run: str = "", request: str = "", previous: str = "") -> Record:
    document = {"schema": "provider_body/1", "role": role, "request": request, "previous_request": previous}
    return rec(id, call=call, run=run, from_="runtime", data=document)


def bodies_of(call: str, graph: Graph) -> list[tuple[str, int]]:
    """(role, row) of the bodies that a call has."""
    found = graph.nodes[f"call/{call}"]["attrs"].get("provider_bodies", [])
    return [(each["role"], each["ref"]["row"]) for each in found]


def two_calls(*, gap: bool = False) -> FileEntries:
    return landed(
        1,
        rec("p", ord=1, run="p", from_="external", trigger="external"),
        rec("1", ord=2, call="m1", run="p", from_="agent"),
        rec("2", ord=4 if gap else 3, call="m2", run="p", from_="agent"),
    )


def provided(*records: Record) -> FileEntries:
    return landed(2, *records, stream="", kind="provider_body")


def test_bodies_that_name_their_call_join_it_request_first() -> None:
    graph = Graph(two_calls(), provided(body("b1", "response", call="m1"), body("b2", "request", call="m1")))
    assert bodies_of("m1", graph) == [("request", 2), ("response", 1)]
    assert graph.nodes["session/s"]["attrs"]["provider_bodies_landed"] == 2
    assert graph.nodes["stream/main"]["attrs"]["records"] == 3


def test_two_bodies_that_name_one_call_join_nothing() -> None:
    graph = Graph(two_calls(), provided(body("b1", "response", call="m1"), body("b2", "response", call="m1")))
    assert bodies_of("m1", graph) == []


FOLLOWING = (
    body("b1", "request", run="p", request="q1"),
    body("b2", "request", run="p", request="q2", previous="q1"),
    body("b3", "request", run="p", request="q9", previous="q8"),
)


def test_a_request_without_a_call_joins_by_the_response_before_it() -> None:
    graph = Graph(two_calls(), provided(*FOLLOWING, body("b4", "response", call="m1", request="q1")))
    assert bodies_of("m1", graph) == [("request", 1), ("response", 4)]
    assert bodies_of("m2", graph) == [("request", 2)]


def test_without_the_response_before_it_only_the_first_call_joins_by_sequence() -> None:
    graph = Graph(two_calls(), provided(*FOLLOWING))
    assert bodies_of("m1", graph) == [("request", 1)]
    assert bodies_of("m2", graph) == []


def test_the_response_says_which_request_a_call_had() -> None:
    bodies = (body("b1", "request", call="m1", request="other"), body("b2", "response", call="m1", request="q1"))
    graph = Graph(two_calls(), provided(*bodies, body("b3", "request", run="p", previous="q1")))
    assert bodies_of("m2", graph) == [("request", 3)]


def test_a_stream_that_skips_a_line_joins_nothing_by_sequence() -> None:
    graph = Graph(two_calls(gap=True), provided(body("b1", "request", run="p", request="q1")))
    assert bodies_of("m1", graph) == []


def test_a_body_counts_once_however_often_it_lands() -> None:
    graph = Graph(two_calls(), provided(body("b1", "request", call="m1"), body("b1", "request", call="m1")))
    assert bodies_of("m1", graph) == [("request", 1)]
    assert graph.nodes["session/s"]["attrs"]["provider_bodies_landed"] == 1


# Steps: what lands later and changes what was written


def use(**fields: Any) -> Record:
    return rec("u", call="m", run="p", uses=("t",), **fields)


LATER = {
    "the call of a tool's use": (
        landed(1, use(from_="external")),
        landed(2, rec("c", call="m", run="p", from_="agent", texts=1)),
    ),
    "the manifest of a tool's batch": (
        landed(1, use(from_="agent"), rec("r", run="p", results=("t",), batch="wf")),
        landed(2, rec("w", label="nightly", batch="wf"), kind="workflow_manifest", stream=""),
    ),
    "the stream that a tool started": (
        landed(1, use(from_="agent"), rec("r", run="p", results=("t",), child="ag")),
        landed(2, rec("x", call="mx", from_="agent", texts=1), stream="ag"),
    ),
    "the result of a tool": (landed(1, use(from_="agent")), landed(2, rec("r", run="p", results=("t",)))),
    "a second result": (
        landed(1, use(from_="agent"), rec("r", run="p", results=("t",))),
        landed(2, rec("again", run="p", results=("t",))),
    ),
    "a use in a stream that comes first by name": (
        landed(1, use(from_="agent"), stream="zz"),
        landed(2, rec("first", call="m0", from_="agent", uses=("t",)), stream="aa"),
    ),
    "a fragment that makes its call synthetic": (
        landed(1, rec("1", call="m", from_="agent", texts=1)),
        landed(2, rec("2", call="m", from_="agent", texts=1, flags=("synthetic", "finished"))),
    ),
    "a label for a stream": (
        landed(1, rec("1"), stream="ag"),
        landed(2, rec("2", child="ag", label="L"), kind="agent_meta"),
    ),
    "the stream that a notification names": (
        landed(1, rec("n", trigger="notification", child="ag")),
        landed(2, rec("x"), stream="ag"),
    ),
    "a talk that closes a window": (
        landed(1, rec("1", run="p", from_="external", trigger="external", time="2026-08-06T09:00:00Z")),
        landed(2, rec("2", run="q", from_="external", trigger="external", time="2026-08-06T12:00:00Z")),
    ),
}


@pytest.mark.parametrize("files", LATER.values(), ids=LATER)
def test_a_step_writes_all_that_later_evidence_changes(files: tuple[FileEntries, FileEntries]) -> None:
    index = extend(EMPTY_INDEX, files)
    first = advance(NOTHING, index, 1, SUBJECT)
    second = advance(first, index, 2, SUBJECT)
    whole = advance(NOTHING, index, 2, SUBJECT)
    assert {**first.written, **second.written} == whole.written
    assert second.earlier.items() <= first.written.items()
    assert (second.node_count, second.outline, second.open_tools) == (whole.node_count, whole.outline, whole.open_tools)
    assert second.written or second.outline != first.outline


RESTRUCTURING = {
    "a stream turns out to be auxiliary": (
        landed(1, rec("x"), stream="ag"),
        landed(2, rec("y", child="ag", flags=("auxiliary",))),
    ),
    "a run turns out to be a notification's": (
        landed(1, rec("1", run="p", trigger="external"), rec("2", run="q")),
        landed(2, rec("3", run="q", trigger="notification")),
    ),
    "an id has a slash": (landed(1, rec("1")), landed(2, rec("2", call="m/1", from_="agent"))),
    "a body lands": (two_calls(), provided(body("b", "request", call="m1"))),
}


@pytest.mark.parametrize("files", RESTRUCTURING.values(), ids=RESTRUCTURING)
def test_evidence_that_changes_what_stood_asks_for_a_whole_assembly(files: tuple[FileEntries, FileEntries]) -> None:
    index = extend(EMPTY_INDEX, files)
    with pytest.raises(Restructured):
        advance(advance(NOTHING, index, 1, SUBJECT), index, 2, SUBJECT)


# The policy's name


@pytest.mark.parametrize(
    ("gap", "name"),
    [
        (600_000_000_000, "v1+idle=10m0s"),
        (0, "v1+idle=0s"),
        (1_500_000_000, "v1+idle=1.5s"),
        (250_000_000, "v1+idle=250ms"),
        (3_661_000_000_001, "v1+idle=1h1m1.000000001s"),
        (1_001, "v1+idle=1.001µs"),
        (7, "v1+idle=7ns"),
        (-60_000_000_000, "v1+idle=-1m0s"),
    ],
)
def test_policy_names_the_idle_gap_as_the_original_does(gap: int, name: str) -> None:
    assert policy(gap) == name
