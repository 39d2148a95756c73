"""Session logs between the original's own loader and ours: each reads what the other wrote, and repairs it alike."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from schemas.dsh import Event
from schemas.errors import LogEventRejected, LogRejected, LogUnsupported
from storage.session_logs import JsonlSessions
from tests.dsh_logs import golden_events, keys_of
from tests.dsh_original import ordered, reading, writing
from tests.native_sessions import played, stored_header
from tests.node_programs import NotInstallable, node, packages
from tests.random_logs import RandomLog, random_log

WAYS = [(True, True), (True, False), (False, True), (False, False)]
LOGS_A_WAY = 50
DAMAGED = 36
KINDS = {
    "SessionFormatUnsupportedError": LogUnsupported,
    "SessionPersistenceCorruptionError": LogEventRejected,
    "Error": LogRejected,
}


@pytest.fixture(scope="module", autouse=True)
def _the_original() -> None:
    try:
        node()
        packages("dsh-session-logs")
    except NotInstallable as why:
        pytest.skip(f"the original's loader cannot be installed here: {why}")


def logs_of(way: int) -> list[RandomLog]:
    return [random_log(1000 * way + number) for number in range(LOGS_A_WAY)]


def with_our_words(answer: dict[str, Any]) -> tuple[dict[str, Any], list[Event]]:
    assert "error" not in answer, answer
    return answer["meta"], golden_events(answer["events"])


@pytest.mark.parametrize(("compressed", "packed"), WAYS)
def test_what_we_write_the_original_reads_and_repairs(compressed: bool, packed: bool, tmp_path: Path) -> None:
    logs = logs_of(WAYS.index((compressed, packed)))
    with JsonlSessions(tmp_path, compressed=compressed, packed=packed) as ours:
        for log in logs:
            ours.create(log.meta)
            for batch in log.batches:
                ours.append(log.meta.id, batch)
        inspected = {log.meta.id: ours.inspect(log.meta.id) for log in logs}
        orders = [reading(tmp_path, how, compressed=compressed) for how in ("stored", "inspect", "load", "stored")]
        stored, seen, loaded, again = ordered(orders)
        assert stored.keys() == inspected.keys()
        for log in logs:
            session = log.meta.id
            meta, events = with_our_words(stored[session])
            assert {"type": "session", **meta} == log.meta.as_json()
            assert events == log.events
            for answer in (seen[session], loaded[session], again[session]):
                assert with_our_words(answer)[1] == list(inspected[session].events)
            assert golden_events(list(ours.load(session).events)) == list(inspected[session].events)


@pytest.mark.parametrize(("compressed", "packed"), WAYS)
def test_what_the_original_writes_we_read_and_repair(compressed: bool, packed: bool, tmp_path: Path) -> None:
    logs = logs_of(10 + WAYS.index((compressed, packed)))
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    sessions = [(log.meta, log.batches) for log in logs]
    order = writing(theirs, sessions, compressed=compressed, packed=packed)
    assert ordered([order]) == [len(logs)]
    with JsonlSessions(ours, compressed=compressed, packed=packed) as written:
        for log in logs:
            written.create(log.meta)
            for batch in log.batches:
                written.append(log.meta.id, batch)
    same = {key: (theirs / key).read_bytes() for key in keys_of(theirs)}
    assert same == {key: (ours / key).read_bytes() for key in keys_of(ours)}
    with JsonlSessions(theirs, compressed=compressed, packed=packed) as read:
        assert {header.id for header in read.list()} == {log.meta.id for log in logs}
        for log in logs:
            found = read.read_from(log.meta.id, 0)
            assert (found.meta, found.events) == (log.meta, log.events)
        loaded = {log.meta.id: read.load(log.meta.id) for log in logs}
        [again] = ordered([reading(theirs, "load", compressed=compressed)])
        for session, ending in loaded.items():
            assert again[session]["events"] == list(ending.events)


@pytest.mark.parametrize("compressed", [True, False])
def test_damage_is_judged_alike(compressed: bool, tmp_path: Path) -> None:
    damaged_logs(tmp_path, compressed, DAMAGED, start=0)


def damaged_logs(folder: Path, compressed: bool, number: int, *, start: int) -> None:
    """Damage this many logs, each in some way, and compare what either loader makes of it."""
    expected = {}
    orders = []
    for case in range(start, start + number):
        root = folder / str(case)
        log = random_log(50_000 + case)
        with JsonlSessions(root, compressed=compressed) as ours:
            ours.create(log.meta)
            for batch in log.batches:
                ours.append(log.meta.id, batch)
        [key] = keys_of(root)
        (root / key).write_bytes(damage((root / key).read_bytes(), case))
        with JsonlSessions(root, compressed=compressed) as ours:
            expected[log.meta.id] = outcome(ours, log.meta.id)
        orders += [reading(root, how, compressed=compressed, ids=[log.meta.id]) for how in ("inspect", "load")]
    answers = ordered(orders)
    for case in range(start, start + number):
        log = random_log(50_000 + case)
        seen, loaded = (answer[log.meta.id] for answer in answers[2 * (case - start) :][:2])
        ours_says = expected[log.meta.id]
        if isinstance(ours_says, type):
            assert KINDS.get(seen.get("error", "")) is ours_says, (case, ours_says, str(seen)[:300])
        else:
            assert with_our_words(seen)[1] == ours_says, case
            assert with_our_words(loaded)[1] == ours_says, case
            with JsonlSessions(folder / str(case), compressed=compressed) as again:
                assert golden_events(list(again.load(log.meta.id).events)) == ours_says, case


def outcome(sessions: JsonlSessions, session: str) -> list[Event] | type[LogRejected]:
    try:
        return list(sessions.inspect(session).events)
    except LogRejected as error:
        return type(error)


def damage(data: bytes, case: int) -> bytes:
    """The log with a piece cut off, changed, doubled or taken out."""
    chance = random.Random(case)
    place, other = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    kind = case % 6
    if kind <= 2:
        return data[: max(place, other)] if kind else data[:other] + bytes([chance.randrange(256)])
    if kind == 3:
        return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
    if b"\n" in data and data.startswith(b"{"):
        lines = data.splitlines(keepends=True)
        line = chance.randrange(len(lines))
        return b"".join(lines[:line] + ([lines[line]] * 2 if kind == 4 else []) + lines[line + 1 :])
    return data[:place] + data[other:]


def test_the_original_reads_what_a_native_agent_wrote(tmp_path: Path) -> None:
    driven = played()
    with JsonlSessions(tmp_path) as ours:
        ours.create(stored_header())
        for batch in driven.batches:
            ours.append("session-1", batch)
    stored, loaded = ordered([reading(tmp_path, how, compressed=True) for how in ("stored", "load")])
    assert stored["session-1"]["events"] == driven.events
    assert loaded["session-1"]["events"] == driven.events
