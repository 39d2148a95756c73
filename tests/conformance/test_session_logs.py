"""The original's session logs, through the backends that read and write them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from schemas.dsh import Event
from schemas.errors import LogEventRejected, LogRejected, LogUnsupported
from storage.session_logs import JsonlSessions
from tests.dsh_logs import golden_events, keys_of, read_json, their_texts
from tests.golden import GOLDEN, golden_cases

CASES = [case for case in golden_cases("dsh") if (case / "root").is_dir()]
LATEST = golden_cases("dsh-v4")
VERDICTS = {
    case: (verdict, error)
    for case, verdict, error in (
        line.split("\t") for line in (GOLDEN / "dsh" / "verdicts.tsv").read_text().splitlines()[1:]
    )
}
KINDS = {
    "SessionFormatUnsupportedError": LogUnsupported,
    "SessionPersistenceCorruptionError": LogEventRejected,
    "Error": LogRejected,
}
SET_TO_COMPRESSED = {"070-encoding-mismatch"}


@contextmanager
def opened(case: Path, folder: Path | None = None) -> Iterator[JsonlSessions]:
    """The root of a case as the original was set to read it; a copy in ``folder``, to be written to."""
    root = case / "root"
    if folder is not None:
        shutil.copytree(root, folder / "root", copy_function=shutil.copyfile)
        root = folder / "root"
    plain = any(key.endswith(".jsonl") for key in keys_of(root)) and case.name not in SET_TO_COMPRESSED
    with JsonlSessions(root, compressed=not plain) as sessions:
        yield sessions


def asked_for(case: Path) -> str:
    """The session that the original was asked for: the one whose log is there, or one that is not."""
    if "missing-session" in case.name:
        return "absent"
    return next(Path(key).parent.name for key in sorted(keys_of(case / "root")))


@pytest.mark.parametrize("case", [case for case in CASES if VERDICTS[case.name][0] == "reject"], ids=lambda c: c.name)
def test_what_the_original_refuses_is_refused_as_the_same_kind_of_wrong(case: Path, tmp_path: Path) -> None:
    with opened(case, tmp_path) as sessions:
        before = {key: (tmp_path / "root" / key).read_bytes() for key in keys_of(tmp_path / "root")}
        session = asked_for(case)
        for attempt in (
            lambda: sessions.inspect(session),
            lambda: sessions.load(session),
            lambda: sessions.read_from(session, 0),
            lambda: sessions.append(session, [{"type": "plan/mode", "seq": 0, "time": 0, "data": {"active": True}}]),
        ):
            with pytest.raises(LogRejected) as refused:
                attempt()
            assert type(refused.value) is KINDS[VERDICTS[case.name][1]]
        assert before == {key: (tmp_path / "root" / key).read_bytes() for key in keys_of(tmp_path / "root")}


@pytest.mark.parametrize("case", [case for case in CASES if VERDICTS[case.name][0] == "accept"], ids=lambda c: c.name)
def test_headers_and_logical_events_are_the_original_ones(case: Path) -> None:
    with opened(case) as sessions:
        listed = {header.id: header for header in sessions.list()}
        assert listed
        for path in case.glob("events*.json"):
            golden = read_json(path)
            session = golden["meta"]["id"]
            seen = sessions.inspect(session)
            assert {"type": "session", **golden["meta"]} == seen.meta.as_json() == listed[session].as_json()
            assert list(seen.events) == golden_events(golden["events"])


@pytest.mark.parametrize("case", [case for case in CASES if VERDICTS[case.name][0] == "accept"], ids=lambda c: c.name)
def test_a_log_after_loading_has_the_original_bytes_but_for_two_texts(case: Path, tmp_path: Path) -> None:
    with opened(case, tmp_path) as sessions:
        before = {key: (tmp_path / "root" / key).read_bytes() for key in keys_of(tmp_path / "root")}
        texts: dict[str, str] = {}
        revisions = {snapshot.header.id: snapshot.revision for snapshot in sessions.list_snapshots()}
        for path in case.glob("events*.json"):
            golden = read_json(path)
            events: list[Event] = golden["events"]
            texts |= their_texts(events)
            loaded = sessions.load(golden["meta"]["id"])
            assert list(loaded.events) == golden_events(events)
            assert list(sessions.read_from(golden["meta"]["id"], 0).events) == list(loaded.events)
        changed = {s.header.id for s in sessions.list_snapshots() if s.revision != revisions[s.header.id]}
    after = {key: (tmp_path / "root" / key).read_bytes() for key in keys_of(tmp_path / "root")}
    repaired = case / "root-after-load"
    assert bool(changed) == repaired.is_dir()
    if not repaired.is_dir():
        assert after == before
    elif not texts:
        assert after == {key: (repaired / key).read_bytes() for key in keys_of(repaired)}
    else:
        assert after.keys() == set(keys_of(repaired))


@pytest.mark.parametrize("case", LATEST, ids=lambda c: c.name)
def test_logs_of_the_current_generation_are_read_and_left_as_they_are(case: Path, tmp_path: Path) -> None:
    with opened(case, tmp_path) as sessions:
        before = {key: (tmp_path / "root" / key).read_bytes() for key in keys_of(tmp_path / "root")}
        expected = read_json(case / "expected.json")
        assert {header.id for header in sessions.list()} == expected["sessions"].keys()
        for session in expected["sessions"]:
            golden = read_json(case / ("events.json" if session == expected["root"] else f"events-{session}.json"))
            for seen in (sessions.inspect(session), sessions.load(session), sessions.read_from(session, 0)):
                assert seen.meta.as_json() == golden["meta"]
                assert list(seen.events) == golden["events"]
        assert before == {key: (tmp_path / "root" / key).read_bytes() for key in keys_of(tmp_path / "root")}
