"""Codex threads as conversations: titles, what was taken back, items in bundles, and the parts of one thread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from schemas.session_data import read_session_data, text_of
from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.export.conversation import read_conversation
from tasks.export.exchanges import Exchange, exchanges_of
from tasks.land.archive import land_archive
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions, SessionLanding
from tasks.verify import verify_session
from tests.unit.test_codex_records import event, item, meta, read, says, texts

ROOT = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
DAY = "sessions/2026/11/02"
NOW = 1_800_000_000_000_000_000
Row = dict[str, Any]


class Home:
    """Codex' folder, and the zone that it lands in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"
        self.folder.mkdir()
        (folder / "zone").mkdir()
        self.zone = Zone(open_store(folder / "zone"))

    def put(self, key: str, *rows: Row) -> None:
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        (self.folder / key).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / key).write_bytes(zstandard.compress(data) if key.endswith(".zst") else data)

    def land(self) -> list[SessionLanding]:
        dialect, source, found = recognise(open_store(self.folder), "codex")
        return list(land_archive(self.zone, source, dialect, found, LandOptions(now=NOW)))

    def title(self) -> str | None:
        assemble_session(self.zone, ROOT, AssembleOptions(now=NOW))
        assert verify_session(self.zone, ROOT).problems == []
        node = json.loads(self.zone.chain(ROOT).fold().nodes[f"session/{ROOT}"].facts)
        title: str | None = node["attrs"].get("title")
        return title

    def exchanges(self) -> list[Exchange]:
        self.land()
        assemble_session(self.zone, ROOT, AssembleOptions(now=NOW))
        conversation = read_conversation(self.zone, ROOT)
        assert conversation is not None
        return exchanges_of(conversation)

    def conversation(self) -> list[tuple[list[str], str | None]]:
        """What was said, and the answer."""
        return [([text for said in each.said for text in said.texts], _answer(each)) for each in self.exchanges()]


def _answer(exchange: Exchange) -> str | None:
    answer = exchange.answer(last=False)
    return None if answer is None else answer.texts[-1]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def rollout(segment: str = "", time: str = "2026-11-02T09-15-04") -> str:
    return f"{DAY}/rollout-{time}-{ROOT}{'_' + segment if segment else ''}.jsonl"


def turn(name: str, prompt: str, answer: str | None, *, ends: Row | None = None) -> list[Row]:
    """A turn of a person, with an id of version 7 that the thread has started itself."""
    identity = f"01a19b8a-7240-7003-8a03-{name:0>12}"
    spoken = (
        [] if answer is None else [item("message", role="assistant", content=[{"type": "output_text", "text": answer}])]
    )
    closing = ends if ends is not None else event("task_complete", last_agent_message=answer)
    closing = {**closing, "payload": {**closing["payload"], "turn_id": identity}}
    return [event("task_started", turn_id=identity), says("user", prompt), *spoken, closing]


def numbered(rows: list[Row], start: int = 0) -> list[Row]:
    return [{**row, "ordinal": number} for number, row in enumerate(rows, start)]


def named(name: str, thread: str = ROOT) -> Row:
    return {"id": thread, "thread_name": name, "updated_at": "2026-11-02T10:00:00Z"}


def test_newest_title_of_a_thread_names_its_session_and_a_later_one_takes_its_place(home: Home) -> None:
    home.put(rollout(), meta(), *turn("a", "go", "gone"))
    home.put("session_index.jsonl", named("First"), named("Other", "x" * 36), named("Second"))
    assert not any(each.problems for each in home.land())
    assert home.title() == "Second"
    assert all(each.unchanged for each in home.land())
    home.put("session_index.jsonl", named("First"), named("Second"), named("Third"))
    (outcome,) = home.land()
    assert (outcome.files, outcome.records) == (1, 1)
    assert home.title() == "Third"
    (home.folder / "session_index.jsonl").unlink()
    assert not any(each.problems or each.files for each in home.land())
    assert home.title() == "Third"


def test_index_that_is_damaged_or_leads_elsewhere_costs_no_rollout(home: Home, tmp_path: Path) -> None:
    home.put(rollout(), meta())
    index = home.folder / "session_index.jsonl"
    index.write_bytes(b"\xff\n[]\n" + json.dumps(named("Named")).encode() + b"\n" + b'{"id":"' + ROOT.encode())
    assert not any(each.problems for each in home.land())
    assert home.title() == "Named"
    index.unlink()
    (tmp_path / "secret").write_text(json.dumps(named("Secret")) + "\n")
    index.symlink_to(tmp_path / "secret")
    assert [(each.file, each.rule) for outcome in home.land() for each in outcome.problems] == [
        ("session_index.jsonl", "damaged")
    ]
    assert home.title() == "Named"


def test_title_comes_from_the_machine_whose_copy_is_read(home: Home) -> None:
    home.put(f"one/{rollout()}", meta())
    home.put(f"two/{rollout()}", meta(), *turn("a", "go", "gone"))
    home.put("one/session_index.jsonl", named("One"))
    home.put("two/session_index.jsonl", named("Two"))
    assert not any(each.problems for each in home.land())
    assert home.title() == "Two"


def test_turns_that_were_rolled_back_are_no_part_of_the_conversation(home: Home) -> None:
    rows = [*turn("a", "one", "1"), *turn("b", "two", "2"), *turn("c", "three", "3")]
    home.put(rollout(), meta(), *rows, event("thread_rolled_back", num_turns=2), *turn("d", "four", "4"))
    assert home.conversation() == [(["one"], "1"), (["four"], "4")]


def test_turns_behind_the_cut_of_a_revert_are_no_part_of_the_conversation(home: Home) -> None:
    first = numbered([meta(), *turn("a", "one", "1"), *turn("b", "two", "2"), *turn("c", "three", "3")])
    home.put(rollout(), *first)
    base = {"thread_id": ROOT, "end_ordinal_exclusive": 5}
    # Named so that the letters of the segments do not tell which came first.
    second = numbered([meta(history_base=base), *turn("d", "four", "4")], 5)
    home.put(rollout("zz", "2026-11-02T10-00-00"), *second)
    again = numbered([meta(history_base={**base, "end_ordinal_exclusive": 6}), *turn("e", "five", "5")], 6)
    home.put(f"archived_sessions/{Path(rollout('aa', '2026-11-02T11-00-00')).name}.zst", *again)
    assert home.conversation() == [(["one"], "1"), (["five"], "5")]
    cuts = [each.continues for each in records(home) if each.continues]
    assert cuts == [f"{ROOT}#4", f"{ROOT}#5"]


def records(home: Home) -> list[Any]:
    refs = home.zone.landed_files(ROOT)
    return [each for ref in refs for each in read_session_data(home.zone.read(ref), name=ref.key).records]


@pytest.mark.parametrize(
    "ends",
    [
        event("turn_aborted", reason="interrupted"),
        event("task_complete", last_agent_message=None, error={"message": "the provider is gone"}),
    ],
)
def test_turn_that_was_stopped_or_failed_has_no_answer(home: Home, ends: Row) -> None:
    home.put(rollout(), meta(), *turn("a", "one", "Let me see.", ends=ends), *turn("b", "two", "2"))
    assert home.conversation() == [(["one"], None), (["two"], "2")]
    assert [each.interrupted for each in home.exchanges()] == [True, False]


@pytest.mark.parametrize("where", ["message", "replacement_history"])
def test_summary_of_a_compaction_is_nobodys_answer(home: Home, where: str) -> None:
    summary = item("message", role="assistant", content=[{"type": "output_text", "text": "All was well."}])
    compacted: Row = {"type": "compacted", "payload": {"message": ""}}
    if where == "message":
        compacted["payload"]["message"] = "Another model worked on this before\nAll was well."
    else:
        held = says("user", "Another model worked on this before\nAll was well.")["payload"]
        compacted["payload"]["replacement_history"] = [held]
    work = [
        event("task_started", turn_id="auto-compact"),
        summary,
        compacted,
        event("task_complete", turn_id="auto-compact"),
    ]
    home.put(rollout(), meta(), *turn("a", "one", "1"), *work, *turn("b", "two", "2"))
    assert home.conversation() == [(["one"], "1"), (["two"], "2")]


def test_items_in_a_bundle_are_read_as_if_they_stood_alone(home: Home) -> None:
    bundle: Row = {"type": "history_mutation", "payload": {"operation": "append", "items": []}}

    def of(*rows: Row, operation: str = "append") -> Row:
        return {**bundle, "payload": {"operation": operation, "items": [row["payload"] for row in rows]}}

    answer = item("message", role="assistant", content=[{"type": "output_text", "text": "I look."}])
    call = item("function_call", name="shell", call_id="c1", arguments='{"a":1}')
    output = item("function_call_output", call_id="c1", output="Exit code: 0")
    rows = [meta(), event("task_started", turn_id="t"), of(says("user", "go")), event("user_message", message="go")]
    rows += [of(answer, call), of(output), of(says("user", "no"), operation="replace")]
    found = read(*rows)
    assert texts(found) == ["go"]
    assert [[part.k for part in each.parts] for each in found[4:]] == [
        ["text", "call", "data"],
        ["result", "data"],
        ["data"],
    ]
    assert (found[4].from_, found[4].call, found[4].parts[1].id) == ("agent", found[4].id, "c1")
    assert found[5].parts[0].failed is False
    assert [text_of(part) for part in found[2].parts if part.k == "text"] == ["go"]


CHILD = "01a19b8b-0000-7001-8a01-51d0c0de0000"
FORK = f"{DAY}/rollout-2026-11-02T09-20-00-{CHILD}.jsonl"


def at(second: int, row: Row, **payload: Any) -> Row:
    return {**row, "timestamp": f"2026-11-02T09:20:{second:02}Z", "payload": {**row["payload"], **payload}}


def said(home: Home, session: str) -> list[str]:
    home.land()
    refs = home.zone.landed_files(session)
    found = [each for ref in refs for each in read_session_data(home.zone.read(ref), name=ref.key).records]
    return texts(found)


def test_old_fork_that_was_made_in_one_second_ends_its_copy_where_its_parent_ends(home: Home) -> None:
    old = [meta(), says("user", "one"), says("assistant", "1"), says("user", "two"), says("assistant", "2")]
    own = {**meta(id=CHILD, forked_from_id=ROOT), "timestamp": "2026-11-02T09:20:00Z"}
    # Copies have the time of copying, and ids of their own; what comes next follows within the second.
    copies = [at(1, row) if row is old[0] else at(1, row, id=f"new{n}") for n, row in enumerate(old)]
    home.put(rollout(), *old)
    home.put(FORK, own, *copies, at(1, says("user", "three")), at(1, says("assistant", "3")))
    assert said(home, CHILD) == ["three"]


def test_old_fork_of_a_parent_that_went_on_ends_its_copy_where_they_part(home: Home) -> None:
    old = [meta(), says("user", "one"), says("assistant", "1")]
    own = {**meta(id=CHILD, forked_from_id=ROOT), "timestamp": "2026-11-02T09:20:00Z"}
    home.put(rollout(), *old, says("user", "two"), says("assistant", "2"))
    home.put(FORK, own, *(at(1, row) for row in old), at(1, says("user", "three")))
    assert said(home, CHILD) == ["three"]


def test_line_of_the_parent_that_is_damaged_is_no_part_of_a_copy_and_ends_none(home: Home) -> None:
    old = [meta(), says("user", "one"), says("assistant", "1"), says("user", "two")]
    own = {**meta(id=CHILD, forked_from_id=ROOT), "timestamp": "2026-11-02T09:20:00Z"}
    home.put(FORK, own, *(at(1, row) for row in old), at(1, says("user", "three")))
    home.put(rollout(), *old)
    path = home.folder / rollout()
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b'{"timestamp":"20\n' + b"".join(rest))
    assert said(home, CHILD) == ["three"]


def test_copies_that_take_seconds_stay_copies_when_the_parent_is_at_hand(home: Home) -> None:
    old = [meta(), says("user", "one"), says("assistant", "1"), says("user", "two")]
    own = {**meta(id=CHILD, forked_from_id=ROOT), "timestamp": "2026-11-02T09:20:00Z"}
    fork = [own, *(at(3 * n, row) for n, row in enumerate(old, 1)), at(20, says("user", "three"))]
    home.put(FORK, *fork)
    assert said(home, CHILD) == ["one", "two", "three"]  # only the pauses tell
    other = home.zone.store.url
    home.zone = Zone(open_store(f"{other}-2"))
    home.put(rollout(), *old)
    assert said(home, CHILD) == ["three"]


def test_turn_of_a_parent_is_a_copy_whatever_its_time_says(home: Home) -> None:
    theirs = event("task_started", turn_id="turn-1", started_at=4_000_000_000)
    mine = event("task_started", turn_id="turn-2", started_at=4_000_000_000)
    home.put(rollout(), meta(), theirs, says("user", "one"))
    home.put(FORK, meta(id=CHILD, forked_from_id=ROOT), meta(), theirs, says("user", "one"), mine, says("user", "two"))
    assert said(home, CHILD) == ["two"]
