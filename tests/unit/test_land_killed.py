"""Collectors that are killed at random calls of the store, alone and by twos: what lands, and what assembles of it, is
what it had been undisturbed.

``LANDING_SCHEDULES`` says how many schedules there are of Claude Code; of other kinds a quarter as many.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Mapping
from typing import Any

import pytest
import zstandard

from schemas.dsh import write_batch, write_first_batch
from schemas.session_data import read_session_data
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.land.archive import land_archive
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions
from tasks.land.quarantine import read_notes
from tasks.verify import verify_session
from tests.dsh_logs import answer, header, mark, numbered, result, user
from tests.dsh_logs import turn as harness_turn
from tests.memory_store import Killed, MemoryStore, killing

SCHEDULES = int(os.environ.get("LANDING_SCHEDULES", "300"))
NOW = 1_772_359_200_000_000_000
ID = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
AGENT = "ad44dfacb6876bcad"
Content = Mapping[str, bytes]


def rows(*found: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in found)


def asked(name: str) -> dict[str, Any]:
    message = {"role": "user", "content": name}
    return {"type": "user", "uuid": name, "promptId": name, "origin": {"kind": "human"}, "message": message}


def answered(name: str) -> dict[str, Any]:
    message = {
        "id": f"m{name}",
        "model": "x",
        "stop_reason": "end_turn",
        "content": "yes",
        "usage": {"output_tokens": 7},
    }
    return {"type": "assistant", "uuid": f"{name}-", "parentUuid": name, "requestId": f"r{name}", "message": message}


def claude() -> list[Content]:
    main, child = f"p/{ID}.jsonl", f"p/{ID}/subagents/agent-{AGENT}.jsonl"
    meta = f"p/{ID}/subagents/agent-{AGENT}.meta.json"
    first, more = rows(asked("a"), answered("a")), rows(asked("b"), answered("b"), asked("c"))
    return [
        {main: first, meta: b"{}"},
        {main: first + more, child: rows(asked("x"), answered("x")), meta: b'{"description":"1"}'},
        {
            main: first + more + b"no json\n" + rows(answered("c"), asked("d")) + b'{"torn',
            child: rows(asked("x"), answered("x"), asked("y")) + b"torn",
            meta: b'{"description":"2"}',
        },
    ]


def turn(name: str) -> bytes:
    identity = f"01a19b8a-7240-7003-8a03-{name:0>12}"
    kinds: list[dict[str, Any]] = [
        {"type": "task_started", "turn_id": identity},
        {"type": "user_message", "message": name},
        {"type": "agent_message", "message": f"{name}!"},
        {"type": "token_count", "info": {"total_token_usage": {"output_tokens": ord(name) - 90}}},
        {"type": "task_complete", "turn_id": identity},
    ]
    return rows(*({"type": "event_msg", "payload": payload} for payload in kinds))


def codex() -> list[Content]:
    def at(name: str, folder: str = "sessions/2026/11/02") -> str:
        return f"{folder}/rollout-2026-11-02T09-15-04-{name}.jsonl"

    child = "01a19b8b-0000-7001-8a01-51d0c0de0000"
    head = rows({"type": "session_meta", "payload": {"id": ID}})
    of_child = rows({"type": "session_meta", "payload": {"id": child, "parent_thread_id": ID}})
    title = rows({"id": ID, "thread_name": "One"})
    return [
        {at(ID): head + turn("a"), at(child): of_child, "session_index.jsonl": title},
        {at(ID): head + turn("a") + turn("b"), at(child): of_child + turn("x"), "session_index.jsonl": title},
        {
            at(ID, "archived_sessions") + ".zst": zstandard.compress(head + turn("a") + turn("b") + turn("c")),
            at(child): of_child + turn("x") + b"torn",
            at(f"{ID}_s"): rows({"type": "session_meta", "payload": {"id": ID}}) + turn("d"),
            "session_index.jsonl": title + rows({"id": ID, "thread_name": "Two"}),
        },
    ]


def harness() -> list[Content]:
    """A log that grows by turns, a sub-agent that one of them starts, and an end that is torn."""

    def at(session: str) -> str:
        return f"sessions/--srv-proj--/{session}/session.v4.jsonl.zstd"

    root, child = header(4, id=ID), header(4, id="c", parent_session=ID, origin="subagent", delegation_depth=1)
    ask = answer("go", "t", turn=2)
    ask["data"]["message"]["content"][1]["name"] = "subagent"
    started = result("t", "started subagent c", generation=4, turn=2)
    call = mark("tool/call", turn=2, step=1, callId="t", name="subagent", arguments="{}")
    events = numbered(
        *harness_turn(1, user("a"), answer("yes", usage={"outputTokens": 7})),
        *harness_turn(2, user("b"), ask, call, started),
        *harness_turn(3, user("c"), answer("no", turn=3, usage={"outputTokens": 9})),
    )
    work = numbered(*harness_turn(1, user("do"), answer("done", usage={"outputTokens": 5})))
    first, second = write_first_batch(root, events[:5]), write_batch(events[5:11])
    of_child, third = write_first_batch(child, work[:3]), write_batch(events[11:])
    return [
        {at(ID): first},
        {at(ID): first + second[:-8], at("c"): of_child},
        {at(ID): first + second + third, at("c"): of_child + write_batch(work[3:])},
    ]


GROWTH = {"claude-code": claude(), "codex": codex(), "dsh": harness()}


def land(zone: MemoryStore, content: Content, kind: str, now: int) -> None:
    archive = MemoryStore()
    archive.objects = dict(content)
    dialect, source, found = recognise(archive, kind)
    options = LandOptions(now=now, max_delta_bytes=300, max_line_bytes=1 << 20)
    for _ in land_archive(Zone(zone), source, dialect, found, options):
        pass


def landed(zone: MemoryStore) -> dict[str, bytes]:
    return {key: data for key, data in zone.objects.items() if key.endswith((".sd", ".zst"))}


def noted(zone: MemoryStore) -> list[tuple[str, int | None]]:
    """What is known to be wrong, wherever a collector was killed."""
    keys = [stat.key for stat in zone.children("_quarantine/landing/")[1]]
    return [(note.problem.rule, note.problem.row) for key in keys for note in read_notes(zone, key)]


def assembled(store: MemoryStore) -> dict[str, bytes]:
    """The rounds, which are verified, and what they fold to."""
    zone = Zone(store)
    assemble_session(zone, ID, AssembleOptions(now=NOW))
    assert verify_session(zone, ID).problems == []
    view = zone.chain(ID).fold()
    assert view.nodes
    return {key: data for key, data in store.objects.items() if key.endswith(".sf")}


def schedules(share: int) -> list[tuple[str, int]]:
    """Kinds with seeds."""
    return [
        (kind, seed) for kind in GROWTH for seed in range(SCHEDULES // share // (1 if kind == "claude-code" else 4))
    ]


@pytest.mark.parametrize(("kind", "seed"), schedules(1))
def test_killed_anywhere_and_by_twos_the_same_files_land(kind: str, seed: int) -> None:
    """In every second schedule another collector works while the first one stands still at a random call; each dies at
    a random call, before or after it took effect."""
    chance = random.Random(seed)
    zone, undisturbed = MemoryStore(), MemoryStore()
    for step, content in enumerate(GROWTH[kind]):
        now = NOW + step
        land(undisturbed, content, kind, now)

        def attempt(depth: int, content: Content = content, now: int = now) -> None:
            between = (lambda: attempt(depth - 1)) if depth else None
            moment = killing(chance.randrange(1, 90), between, chance.randrange(1, 60))
            with contextlib.suppress(Killed):
                land(zone.beside(moment), content, kind, now)

        for _ in range(chance.randrange(1, 4)):
            attempt(depth=chance.randrange(1, 3) if seed % 2 else 0)
        land(zone, content, kind, now)
        assert landed(zone) == landed(undisturbed)
        assert noted(zone) == noted(undisturbed)
    assert assembled(zone) == assembled(undisturbed)


@pytest.mark.parametrize(("kind", "seed"), schedules(10))
def test_collectors_with_clocks_of_their_own_leave_no_hole_and_lose_nothing(kind: str, seed: int) -> None:
    """The names of files then differ from those of an undisturbed collector; what they hold does not."""
    chance = random.Random(seed)
    zone, undisturbed = MemoryStore(), MemoryStore()
    for step, content in enumerate(GROWTH[kind]):
        land(undisturbed, content, kind, NOW + step)

        def other(content: Content = content) -> None:
            with contextlib.suppress(Killed):
                land(zone.beside(killing(chance.randrange(1, 90))), content, kind, NOW + chance.randrange(10**12))

        with contextlib.suppress(Killed):
            moment = killing(chance.randrange(1, 90), other, chance.randrange(1, 60))
            land(zone.beside(moment), content, kind, NOW + chance.randrange(10**12))
        land(zone, content, kind, NOW + chance.randrange(10**12))
    assert records(zone) == records(undisturbed)


def records(store: MemoryStore) -> list[tuple[int, str, Any]]:
    zone = Zone(store)
    refs = zone.landed_files(ID)
    assert [ref.seq for ref in refs] == list(range(1, len(refs) + 1))
    files = [(ref, read_session_data(zone.read(ref), name=ref.key)) for ref in refs]
    return [(ref.seq, ref.place, record) for ref, file in files for record in file.records]
