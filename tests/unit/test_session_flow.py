"""Rounds: what the reader takes, what it refuses and by which rule, and the bytes the writer writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from schemas._sf_frame_by_frame import FrameByFrame
from schemas._sf_reader import _read_canonical
from schemas.errors import RoundRejected, WrongUse
from schemas.session_flow import (
    Entity,
    NodeFacts,
    Ref,
    RelationFacts,
    Round,
    RoundHeader,
    UnresolvedFacts,
    build_round,
    check_round,
    encode_attrs,
    encode_facts,
    read_round,
    round_file_name,
)
from schemas.verdict import check_bytes
from tests.lines import FRAME_KEYS, ROUND_HEADER, objects_with, round_file, spoiled

NODE = (
    b'{"t":"node","id":"msg/5/1:0","revision":2,"kind":"message.assistant","parent":"call/m",'
    b'"ref":{"seq":5,"row":1,"block":0}}'
)
CALL = b'{"t":"node","id":"call/m","revision":2,"kind":"llm.call","refs":[{"seq":5,"row":1}],"attrs":{"a":"x y","n":1}}'
GONE = b'{"t":"node","id":"epoch/main/0","revision":2,"tombstone":true,"kind":""}'
EDGE = (
    b'{"t":"relation","id":"rel/starts/a/b","revision":2,"type":"starts","from":"a","to":"b","quality":"exact_unique",'
    b'"via":"child sidecar","evidence":[{"seq":4,"row":2}]}'
)
OPEN = b'{"t":"unresolved","id":"unres/tool_result/t","revision":2,"kind":"tool_result","ref":"t","state":"open"}'


def rejected(data: bytes) -> RoundRejected:
    with pytest.raises(RoundRejected) as caught:
        read_round(data, name="r.sf")
    return caught.value


def frame_by_frame(data: bytes) -> Round:
    return FrameByFrame("r.sf").read([line for line in data.split(b"\n") if line])


def outcome(read: Callable[[], Round]) -> Round | str:
    """The round read, or the sentence it is refused with."""
    try:
        return read()
    except RoundRejected as error:
        return str(error)


def test_a_round_gives_its_entities_with_canonical_facts() -> None:
    round = read_round(round_file(NODE, CALL, GONE, EDGE, OPEN), name="r.sf")
    assert (round.header.round, round.header.through_seq, round.header.changes) == (2, 5, None)
    assert [entity.id for entity in round.nodes] == ["msg/5/1:0", "call/m", "epoch/main/0"]
    assert round.nodes[1].facts == b'{"kind":"llm.call","refs":[{"seq":5,"row":1}],"attrs":{"a":"x y","n":1}}'
    assert round.nodes[2] == Entity(id="epoch/main/0", revision=2, tombstone=True, facts=b'{"kind":""}')
    assert round.relations[0].facts == b"{" + EDGE[EDGE.index(b'"type"') :]
    assert round.unresolved[0].facts == b'{"kind":"tool_result","ref":"t","state":"open"}'


def test_the_usual_round_is_read_the_fast_way() -> None:
    data = round_file(NODE, CALL, GONE, EDGE, OPEN)
    slowly = FrameByFrame("r.sf").read(data.splitlines())
    assert _read_canonical(data.splitlines()) is not None
    assert read_round(data, name="r.sf") == slowly
    assert check_round(data, name="r.sf") == (slowly.header, slowly.digest)


@pytest.mark.parametrize(
    ("attrs", "canonical"),
    [
        (b'{"b" : 1,"a":[ ]}', b'{"b":1,"a":[]}'),
        (b'{"a":"<&>\xe2\x80\xa8"}', b'{"a":"\\u003c\\u0026\\u003e\\u2028"}'),
        (b'{"a":"\\/\\u0041\\u003C"}', b'{"a":"\\/\\u0041\\u003C"}'),
        (b"null", b"null"),
        (b"{}", b"{}"),
        (b"[1]", b"[1]"),
    ],
)
def test_attrs_are_compacted_and_escaped_and_otherwise_left_alone(attrs: bytes, canonical: bytes) -> None:
    line = CALL.replace(b'{"a":"x y","n":1}', attrs)
    (node,) = read_round(round_file(line), name="r.sf").nodes
    assert node.facts == b'{"kind":"llm.call","refs":[{"seq":5,"row":1}],"attrs":' + canonical + b"}"


def test_facts_do_not_depend_on_how_the_line_was_written() -> None:
    odd = (
        b' {"KIND":"llm.call", "revision":2,"id":"x","id":"call\\/m","refs":[{"seq":4},null],'
        b'"refs":[{"row":1,"seq":5}],"attrs":{"a": "x y","n":1},"novel":[],"parent":null,"t":"node"}\r'
    )
    assert (
        read_round(round_file(odd, counts=(1, 0, 0)), name="r.sf").nodes
        == read_round(round_file(CALL), name="r.sf").nodes
    )


def test_a_repeated_ref_keeps_what_the_second_leaves_out() -> None:
    line = NODE.replace(b'"ref":{', b'"ref":{"seq":4,"row":9},"ref":{').replace(b'"seq":5,"row":1,', b'"row":2,')
    (node,) = read_round(round_file(line), name="r.sf").nodes
    assert b'"ref":{"seq":4,"row":2,"block":0}' in node.facts


def test_empty_lines_count_for_nothing() -> None:
    data = round_file(NODE)
    assert read_round(b"\n\n" + data.replace(b"\n", b"\n\n"), name="r.sf") == read_round(data, name="r.sf")
    error = rejected(b"\n" + round_file(NODE, b"", NODE))
    assert (error.rule, error.row) == ("duplicate_id", 3)


@pytest.mark.parametrize(
    ("frames", "rule", "row"),
    [
        ((b"{",), "undecodable", 2),
        ((b" ",), "undecodable", 2),
        ((b'{"t":1}',), "undecodable", 2),
        ((NODE.replace(b'"revision":2', b'"revision":2.0'),), "undecodable", 2),
        ((NODE.replace(b'"block":0', b'"block":"0"'),), "undecodable", 2),
        ((b"null",), "frame_type", 2),
        ((b"{}",), "frame_type", 2),
        ((NODE.replace(b'"node"', b'"edge"'),), "frame_type", 2),
        ((NODE, ROUND_HEADER), "second_header", 3),
        ((NODE.replace(b"msg/5/1:0", b""),), "no_id", 2),
        ((NODE, OPEN.replace(b"unres/tool_result/t", b"msg/5/1:0")), "duplicate_id", 3),
        ((NODE.replace(b'"revision":2', b'"revision":1'),), "revision", 2),
        ((NODE.replace(b'"revision":2,', b""),), "revision", 2),
        ((NODE.replace(b'"seq":5,"row":1', b'"seq":0,"row":0'),), "reference", 2),
        ((NODE.replace(b'"seq":5', b'"seq":6'),), "reference", 2),
        ((CALL.replace(b'{"seq":5,"row":1}', b"null"),), "reference", 2),
        ((EDGE.replace(b'"seq":4', b'"seq":6'),), "reference", 2),
        ((EDGE.replace(b'"to":"b"', b'"to":""'),), "relation", 2),
        ((EDGE.replace(b'"type":"starts",', b""),), "relation", 2),
        ((OPEN.replace(b'"open"', b'"closed"'),), "unresolved_state", 2),
        ((OPEN.replace(b',"state":"open"', b""),), "unresolved_state", 2),
    ],
)
def test_frames_are_refused_by_the_first_rule_they_break(frames: tuple[bytes, ...], rule: str, row: int) -> None:
    error = rejected(round_file(*frames))
    assert (error.file, error.rule, error.row) == ("r.sf", rule, row)


@pytest.mark.parametrize(
    "frame",
    [
        NODE.replace(b'"seq":5,"row":1', b'"seq":0,"row":1'),
        NODE.replace(b'"seq":5,"row":1', b'"seq":5,"row":0'),
        NODE.replace(b'"seq":5', b'"seq":1'),
        NODE.replace(b'"kind":"message.assistant",', b""),
        NODE.replace(b'"block":0', b'"block":-1'),
        EDGE.replace(b'"quality":"exact_unique",', b""),
        b'{"t":"relation","id":"r","revision":2,"tombstone":true}',
        OPEN.replace(b'"state":"open"', b'"tombstone":true'),
        OPEN.replace(b'"open"', b'"terminal"'),
    ],
)
def test_frames_that_only_look_wrong_are_taken(frame: bytes) -> None:
    round = read_round(round_file(frame), name="r.sf")
    assert len([*round.nodes, *round.relations, *round.unresolved]) == 1


@pytest.mark.parametrize(
    ("bodies", "rule"),
    [
        (b"3", "undecodable"),
        (b'{"role":"request"}', "undecodable"),
        (b'[{"role":1}]', "undecodable"),
        (b'[{"role":"x","ref":{"seq":0,"row":0}}]', "provider_bodies"),
        (b'[{"role":"request"}]', "provider_bodies"),
        (b'[{"role":"response","ref":{"seq":1,"row":0}}]', "provider_bodies"),
        (b'[{"role":"response","ref":{"seq":6,"row":1}}]', "reference"),
        (b'[{"role":"request","ref":{"seq":5,"row":1}},{"role":"response","ref":{"seq":4,"row":1}}]', None),
        (b"[]", None),
        (b"null", None),
    ],
)
@pytest.mark.parametrize("key", ["provider_bodies", "Provider_Bodie\u017f", "\\u0070rovider_bodies"])
def test_references_inside_provider_bodies_are_references(bodies: bytes, rule: str | None, key: str) -> None:
    data = round_file(CALL.replace(b'"n":1', f'"{key}":'.encode() + bodies))
    if rule is None:
        assert len(read_round(data, name="r.sf").nodes) == 1
    else:
        assert rejected(data).rule == rule


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (b'"t":"header"', b'"t":"node"', "first_not_header"),
        (b'"t":"header",', b"", "first_not_header"),
        (b'"unresolved":0', b'"unresolved":0,"t":"node"', "first_not_header"),
        (b'"talks":1', b'"talks":"1"', "undecodable"),
        (b'"round":2', b'"round":-2', "undecodable"),
        (b"sf/1", b"sf/2", "schema"),
        (b'"conversation":"c1"', b'"conversation":""', "header_field"),
        (b'"session":"s1"', b'"session":null', "header_field"),
        (b'"round":2', b'"round":0', "round_zero"),
        (b'"previous":"ab",', b"", "previous"),
        (b'"round":2', b'"round":1', "previous"),
        (b'"parser":"v1"', b'"parser":""', "header_field"),
        (b'"policy":"v1+idle=10m0s"', b'"policy":""', "header_field"),
        (b'"input_digest":"cd",', b"", "header_field"),
        (b'"from_seq":3', b'"from_seq":0', "from_seq"),
        (b'"through_seq":5', b'"through_seq":1', "range"),
    ],
)
def test_headers_are_refused_by_the_first_rule_they_break(old: bytes, new: bytes, rule: str) -> None:
    header = ROUND_HEADER.replace(old, new)
    assert header != ROUND_HEADER
    error = rejected(round_file(NODE, header=header))
    assert (error.rule, error.row) == (rule, 1)


def test_a_round_may_consume_nothing_new() -> None:
    header = ROUND_HEADER.replace(b'"through_seq":5', b'"through_seq":2')
    assert read_round(round_file(header=header), name="r.sf").header.through_seq == 2


def test_an_undecodable_frame_is_refused_before_its_place() -> None:
    data = round_file(NODE)
    assert rejected(data + b"{").rule == "undecodable"
    assert rejected(data + NODE.replace(b'"id":', b'"id":1,"x":')).rule == "after_commit"
    assert rejected(b"{").rule == "undecodable"


def test_files_without_header_or_commit_are_refused() -> None:
    assert rejected(b"\n\n").rule == "no_header"
    assert rejected(round_file(NODE).split(b'{"t":"commit"')[0]).rule == "truncated"


def test_a_wrong_digest_is_found_before_wrong_counts() -> None:
    assert rejected(round_file(NODE, counts=(2, 0, 0))).rule == "counts"
    assert rejected(round_file(NODE, counts=(2, 0, 0)).replace(b"message", b"massage")).rule == "digest"


def test_attrs_too_deep_for_the_stack_are_read() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    (node,) = read_round(round_file(CALL.replace(b'{"a":"x y","n":1}', deep)), name="r.sf").nodes
    assert deep in node.facts
    assert rejected(round_file(CALL.replace(b'{"a":"x y","n":1}', b"[" * 10_000 + b"]" * 10_000))).rule == "undecodable"


FRAMES = st.sampled_from([NODE, CALL, GONE, EDGE, OPEN, b"{}", b'{"t":"node","id":"\\u003c","revision":2,"kind":"a"}'])
TYPES = st.sampled_from([b"node", b"relation", b"unresolved", b"commit"])
RANDOM = st.builds(lambda type, line: b'{"t":"%b",%b' % (type, line[1:]), TYPES, objects_with(FRAME_KEYS))
REVISED = RANDOM.map(lambda line: line[:-1] + (b"" if line.endswith(b",}") else b',"revision":2}'))


@given(st.lists(spoiled(FRAMES) | RANDOM | REVISED, max_size=5), spoiled(st.just(ROUND_HEADER)) | st.just(ROUND_HEADER))
def test_the_fast_way_and_the_way_frame_by_frame_read_the_same(frames: list[bytes], header: bytes) -> None:
    data = round_file(*frames, header=header)
    assert outcome(lambda: read_round(data, name="r.sf")) == outcome(lambda: frame_by_frame(data))


@given(st.binary(max_size=100) | spoiled(st.just(round_file(NODE, CALL, EDGE, OPEN))))
def test_nothing_but_rejections_is_ever_raised(data: bytes) -> None:
    assert outcome(lambda: read_round(data, name="r.sf")) == outcome(lambda: frame_by_frame(data))


# --- writing ---------------------------------------------------------------------------------------------------------

HEADER = RoundHeader(
    schema="sf/1", conversation="c1", session="s1", round=1, from_seq=1, through_seq=9, input_digest="cd", parser="v1",
    policy="p", title="a<b", talks=0, steps=0, streams=0, segments=0, unresolved=0, changes=0, bash_runs=3,
)  # fmt: skip


def test_a_round_is_written_in_the_order_and_form_of_the_format() -> None:
    node = NodeFacts(kind="k", ref=Ref(1, 2, 0), refs=(Ref(1, 2),), attrs=Raw(encode_attrs({"b": 1, "a": "é"})))
    edge = RelationFacts(type="t", from_="a", to="b", quality="")
    open_entry = UnresolvedFacts(kind="k", reason="r", state="open")
    data, digest = build_round(
        HEADER,
        [("a&b", encode_facts(node)), ("gone", None)],
        [("r1", encode_facts(edge)), ("r2", None)],
        [("u", encode_facts(open_entry))],
    )
    assert data.decode().splitlines() == [
        '{"t":"header","schema":"sf/1","conversation":"c1","session":"s1","round":1,"from_seq":1,"through_seq":9,'
        '"input_digest":"cd","parser":"v1","policy":"p","title":"a\\u003cb","talks":0,"steps":0,"streams":0,"segments":0,'
        '"unresolved":0,"changes":0,"bash_runs":3}',
        '{"t":"node","id":"a\\u0026b","revision":1,"kind":"k","ref":{"seq":1,"row":2,"block":0},'
        '"refs":[{"seq":1,"row":2}],"attrs":{"a":"é","b":1}}',
        '{"t":"node","id":"gone","revision":1,"tombstone":true,"kind":""}',
        '{"t":"relation","id":"r1","revision":1,"type":"t","from":"a","to":"b","quality":""}',
        '{"t":"relation","id":"r2","revision":1,"tombstone":true,"type":"","from":"","to":"","quality":""}',
        '{"t":"unresolved","id":"u","revision":1,"kind":"k","reason":"r","state":"open"}',
        f'{{"t":"commit","digest":"{digest}","counts":{{"nodes":2,"relations":2,"unresolved":1}}}}',
    ]
    assert data.endswith(b"\n")
    assert round_file_name(1, digest) == f"r000001-{digest[:12]}.sf"


def test_an_unresolved_entry_is_never_tombstoned() -> None:
    with pytest.raises(ValueError, match="never tombstoned"):
        build_round(HEADER, [], [], [("unres/a", None)])


def test_attrs_sort_keys_by_code_point_at_every_depth() -> None:
    assert encode_attrs({"\U00010000": 1, "\uffff": 2, "b": {"z": [], "Z": None}}) == (
        '{"b":{"Z":null,"z":[]},"\uffff":2,"\U00010000":1}'.encode()
    )


def test_facts_escape_what_rounds_never_hold_raw() -> None:
    facts = UnresolvedFacts(kind="<>&/\x7f\x00\x1f", reason='\b\f\n\r\t"\\', ref="\u2028\u2029é", state="open")
    assert encode_facts(facts) == (
        rb'{"kind":"\u003c\u003e\u0026/%b\u0000\u001f","ref":"\u2028\u2029%b","reason":"\b\f\n\r\t\"\\","state":"open"}'
        % (b"\x7f", "é".encode())
    )


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
REFS = st.builds(Ref, st.integers(1, 9), st.integers(1, 2**64 - 1), st.none() | st.integers(-1, 3))
ATTRS = st.dictionaries(TEXT, TEXT | st.integers() | st.lists(TEXT), max_size=3)
NODES = st.builds(
    NodeFacts,
    kind=TEXT,
    parent=TEXT,
    ref=st.none() | REFS,
    refs=st.lists(REFS, max_size=2).map(tuple),
    attrs=ATTRS.map(lambda attrs: Raw(encode_attrs({**attrs}))),
)
IDS = TEXT.filter(bool)


@given(st.dictionaries(IDS, st.none() | NODES.map(encode_facts), max_size=6), TEXT)
def test_what_is_written_reads_back(nodes: dict[str, bytes | None], title: str) -> None:
    header = RoundHeader(**{**{name: getattr(HEADER, name) for name in HEADER.__struct_fields__}, "title": title})
    data, digest = build_round(header, sorted(nodes.items()), [], [])
    round = read_round(data, name="r.sf")
    assert (round.header, round.digest) == (header, digest)
    assert [(entity.id, None if entity.tombstone else entity.facts) for entity in round.nodes] == sorted(nodes.items())
    assert round == frame_by_frame(data)


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_an_accepted_round_is_known_by_its_digest() -> None:
    data = round_file(NODE)
    verdict = check_bytes("some/r000002-x.sf", data)
    assert (verdict.accepted, verdict.rule, verdict.detail) == (True, None, read_round(data, name="").digest)


def test_a_rejected_file_has_rule_and_row() -> None:
    verdict = check_bytes("r.sf", round_file(NODE, NODE))
    assert (verdict.file, verdict.accepted, verdict.rule, verdict.row) == ("r.sf", False, "duplicate_id", 3)


def test_a_file_of_another_format_is_wrong_use() -> None:
    with pytest.raises(WrongUse, match=r"notes\.txt"):
        check_bytes("notes.txt", b"")
