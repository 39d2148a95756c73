"""The fold: which round may follow which, and what stands after it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from schemas.errors import ChainRejected
from schemas.session_flow import (
    NodeFacts,
    Round,
    RoundHeader,
    UnresolvedFacts,
    View,
    build_round,
    encode_facts,
    read_round,
    view_json,
)

FIRST = RoundHeader(
    schema="sf/1", conversation="c1", session="s1", round=1, from_seq=1, through_seq=4, input_digest="i1", parser="v1",
    policy="p1", from_time="2026-08-06T09:00:00Z", talks=1, steps=0, streams=1, segments=1, unresolved=1,
)  # fmt: skip


def made(header: RoundHeader, nodes: dict[str, str | None], unresolved: dict[str, str] | None = None) -> Round:
    """A round with nodes of these kinds (None: a tombstone) and unresolved entries in these states."""
    data, _ = build_round(
        header,
        sorted((id, kind if kind is None else encode_facts(NodeFacts(kind=kind))) for id, kind in nodes.items()),
        [],
        sorted((id, encode_facts(UnresolvedFacts(kind="k", state=state))) for id, state in (unresolved or {}).items()),
    )
    return read_round(data, name="made.sf")


def after(round: Round, /, **changes: object) -> RoundHeader:
    """A header that continues ``round``, but for these changes."""
    number = round.header.round
    return msgspec.structs.replace(
        round.header, **{"round": number + 1, "previous": round.digest, "from_seq": 5, "through_seq": 6, **changes}
    )


@pytest.fixture
def first() -> Round:
    return made(FIRST, {"a": "talk", "b": "run"}, {"u": "open"})


@pytest.fixture
def view(first: Round) -> View:
    view = View.empty("c1")
    view.apply(first, file="r1.sf")
    return view


def test_an_empty_view_is_at_round_zero() -> None:
    view = View.empty("c1")
    assert (view.conversation, view.round, view.digest, view.header) == ("c1", 0, "", None)
    assert view.nodes == view.relations == view.unresolved == {}


def test_a_later_entity_replaces_the_whole_earlier_one(view: View, first: Round) -> None:
    second = made(after(first), {"a": "segment"})
    view.apply(second, file="r2.sf")
    assert {id: (entity.revision, entity.facts) for id, entity in view.nodes.items()} == {
        "a": (2, b'{"kind":"segment"}'),
        "b": (1, b'{"kind":"run"}'),
    }
    assert (view.round, view.digest, view.header) == (2, second.digest, second.header)


def test_a_tombstone_removes_and_may_name_what_is_not_there(view: View, first: Round) -> None:
    view.apply(made(after(first), {"a": None, "never": None}), file="r2.sf")
    assert list(view.nodes) == ["b"]


@pytest.mark.parametrize("state", ["resolved", "terminal"])
def test_a_settled_unresolved_entry_stays(view: View, first: Round, state: str) -> None:
    view.apply(made(after(first), {}, {"u": state}), file="r2.sf")
    assert view.unresolved["u"].facts == b'{"kind":"k","state":"%b"}' % state.encode()


def test_one_id_may_stand_in_two_types(view: View, first: Round) -> None:
    view.apply(made(after(first), {}, {"a": "open"}), file="r2.sf")
    assert "a" in view.nodes
    assert "a" in view.unresolved


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"round": 3, "previous": "zz"}, "order"),
        ({"previous": "zz", "conversation": "c2"}, "previous"),
        ({"conversation": "c2", "session": "s2"}, "conversation"),
        ({"session": "s2", "parser": "v2"}, "session"),
        ({"parser": "v2", "policy": "p2"}, "parser"),
        ({"policy": "p2"}, "policy"),
    ],
)
def test_a_round_of_another_chain_is_refused_by_the_first_rule_it_breaks(
    view: View, first: Round, changes: dict[str, object], rule: str
) -> None:
    before = replace(view, nodes=dict(view.nodes))
    with pytest.raises(ChainRejected) as caught:
        view.apply(made(after(first, **changes), {"a": None}), file="r2.sf")
    assert (caught.value.file, caught.value.rule) == ("r2.sf", rule)
    assert view == before


def test_the_same_round_is_not_folded_twice(view: View, first: Round) -> None:
    with pytest.raises(ChainRejected, match="order"):
        view.apply(first, file="r1.sf")


def test_the_first_round_must_belong_to_the_chains_conversation(first: Round) -> None:
    with pytest.raises(ChainRejected, match="conversation"):
        View.empty("other").apply(first, file="r1.sf")


def test_sequences_need_not_be_contiguous_to_fold(view: View, first: Round) -> None:
    view.apply(made(after(first, from_seq=90, through_seq=99), {}), file="r2.sf")
    assert view.round == 2


def test_view_json_shows_the_newest_header_and_every_frame_that_stands(view: View, first: Round) -> None:
    assert view_json(view) == {
        "conversation": "c1", "session": "s1", "round": 1, "digest": first.digest, "input_digest": "i1",
        "parser": "v1", "policy": "p1", "through_seq": 4, "from_time": "2026-08-06T09:00:00Z", "through_time": "",
        "session_from_time": "", "session_through_time": "",
        "nodes": {
            "a": {"t": "node", "id": "a", "revision": 1, "kind": "talk"},
            "b": {"t": "node", "id": "b", "revision": 1, "kind": "run"},
        },
        "relations": {},
        "unresolved": {"u": {"t": "unresolved", "id": "u", "revision": 1, "kind": "k", "state": "open"}},
    }  # fmt: skip
