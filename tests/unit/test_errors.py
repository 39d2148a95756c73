"""The error tree: one root, two answers to "try again?", facts that survive pickling."""

from __future__ import annotations

import inspect
import pickle

import pytest

from schemas import errors
from schemas.errors import (
    AgentSessionRejected,
    AgentSpecRejected,
    ChainRejected,
    ClaimUnbuildable,
    ConfigurationRejected,
    FieldRejected,
    KeyRefused,
    LogEventRejected,
    LogRejected,
    LogUnsupported,
    ObjectExists,
    ObjectMissing,
    ObjectTooLarge,
    RejectedData,
    RoundRejected,
    RunnerMissing,
    RunRecordRejected,
    ServerUnavailable,
    SessionDataRejected,
    SessionmillError,
    SessionRejected,
    StoreUnavailable,
    TerminalError,
    TransientError,
    UsageRejected,
    WorkflowRejected,
    WrongUse,
)

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SessionmillError)]

RAISED: list[SessionmillError] = [
    StoreUnavailable("a/b", "read", "connection reset"),
    ServerUnavailable("the Prefect server at http://127.0.0.1:1/api", "it does not answer"),
    WrongUse("--shard-bytes must be positive"),
    ConfigurationRejected("zone_urll: unknown key"),
    ObjectMissing("a/b"),
    ObjectExists("a/b"),
    KeyRefused("../b", "leaves the root"),
    ObjectTooLarge("a/b", 9, 8),
    SessionDataRejected("x.sd", 3, "undecodable", "no JSON token at byte 0"),
    RoundRejected("r000002-ab.sf", 7, "duplicate_id", "call/msg_02"),
    ChainRejected("r000002-ab.sf", None, "order", "round 2 cannot follow round 0"),
    SessionRejected("s1", None, "no_records", "no landed records"),
    LogRejected("session.jsonl", None, "empty", "no header"),
    LogUnsupported("session.v5.jsonl", 1, "version", "generation 5"),
    LogEventRejected("session.jsonl", 4, "envelope", "an unknown key"),
    AgentSessionRejected("messages.json", 2, "invalid_type", "content.1.argsBytes", "expected an integer"),
    WorkflowRejected("x.relavium.yaml", 3, "yaml", "", "not YAML"),
    AgentSpecRejected("agents/a.yaml", "value_error", "limits.turns", "less than 1"),
    RunnerMissing("codex", "the program codex is not there", "install it"),
    RunRecordRejected("runs/a/r1/ended.json", None, "record", "status: missing"),
    ClaimUnbuildable("c1", 4, "sequence 12 is gone"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_pickling_keeps_type_sentence_and_fields(error: SessionmillError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_every_error_is_one_printable_line(error: SessionmillError) -> None:
    assert str(error)
    assert str(error).isprintable()


def test_only_an_unavailable_store_or_server_is_worth_another_try() -> None:
    worth = [type(error) for error in RAISED if isinstance(error, TransientError)]
    assert worth == [StoreUnavailable, ServerUnavailable]
    assert all(isinstance(error, TransientError) is not isinstance(error, TerminalError) for error in RAISED)


def test_rejected_data_names_file_row_and_rule() -> None:
    sentence = str(RoundRejected("r000002-ab.sf", 7, "duplicate_id", "call/msg_02"))
    assert sentence.startswith("r000002-ab.sf row 7: duplicate_id: call/msg_02 — ")


def test_rule_about_the_whole_file_has_no_row() -> None:
    assert str(SessionDataRejected("x.sd", None, "no_end", "cut short")).startswith("x.sd: no_end: cut short — ")


def test_a_rejected_field_is_named_after_its_rule() -> None:
    error = AgentSessionRejected("messages.json", 2, "invalid_type", "content.1.argsBytes", "expected an integer")
    assert str(error).startswith("messages.json row 2: invalid_type: content.1.argsBytes: expected an integer — ")
    assert error.field == "content.1.argsBytes"


def test_the_tree_drawn_in_the_docstring_holds_every_kind() -> None:
    drawn = [line.strip(" │├└─").split()[0] for line in (errors.__doc__ or "").splitlines() if "─ " in line]
    assert sorted(drawn) == sorted(kind.__name__ for kind in KINDS if kind is not SessionmillError)


def test_kinds_of_rejected_data_are_told_apart_by_type() -> None:
    kinds = {SessionDataRejected, RoundRejected, ChainRejected, SessionRejected, LogRejected, UsageRejected}
    assert set(RejectedData.__subclasses__()) == kinds | {FieldRejected, RunRecordRejected}
    assert set(LogRejected.__subclasses__()) == {LogUnsupported, LogEventRejected}
    assert set(FieldRejected.__subclasses__()) == {AgentSessionRejected, WorkflowRejected}
