"""Session logs whose writer was killed, whose disk lost power or was full, or which two processes write at once."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.dsh import Event, closing_events
from schemas.errors import LogRejected, SessionBusy, SessionWriteRefused, StoreUnavailable
from storage.session_logs import JsonlSessions, SessionPersistence
from tests.dsh_logs import answer, header, keys_of, mark, numbered, text_chunks, turn, user
from tests.session_logs import KEPT, Kept

KILLS = 100
WRITERS = 3
PLAIN = numbered(*turn(1, user("hi"), answer("hello", "c1")))


def test_a_killed_writer_loses_at_most_the_batch_under_way(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.killed_appends", str(tmp_path), str(KILLS)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed, within, _ = map(int, done.stdout.split())
    assert killed == KILLS
    assert within >= KILLS // 10  # the others were killed before the first batch, or after the last


def batches() -> list[list[Event]]:
    """A whole turn; then one that goes on over a batch of chunks and an answer with a call."""
    opened = [mark("turn/start", turn=2), mark("step/start", turn=2, step=1), user("more")]
    second = [{**event, "seq": 6 + place} for place, event in enumerate(numbered(*opened))]
    return [
        PLAIN,
        second,
        [*text_chunks("one ", "two ", "three", first_seq=9), *text_chunks("\u00e9nd \U0001f9ea", first_seq=12)],
        [{**numbered(answer("do", "c2", turn=2))[0], "seq": 13}],
    ]


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("lost", ["cut", "zeros", "noise"])
def test_a_power_cut_never_gives_an_event_that_was_not_written(compressed: bool, lost: str, tmp_path: Path) -> None:
    """The file ends at each byte of its last two batches, or goes on from there with zeros, or with noise."""
    root = tmp_path / "root"
    with JsonlSessions(root, compressed=compressed) as sessions:
        sessions.create(header())
        sizes = []
        for batch in batches():
            sessions.append("s", batch)
            [path] = [root / key for key in keys_of(root)]
            sizes.append(path.stat().st_size)
    whole = path.read_bytes()
    written = [event for batch in batches() for event in batch]
    ends = [len(PLAIN), 9, 13, 14]
    refused = 0
    for cut in range(sizes[1], len(whole), 1 if lost == "cut" else 5):
        rest = {"cut": b"", "zeros": bytes(len(whole) - cut), "noise": b"\x28\xb5{" * (len(whole) - cut)}
        path.write_bytes(whole[:cut] + rest[lost][: len(whole) - cut])
        kept = ends[max(place for place, size in enumerate(sizes) if size <= cut)]
        with JsonlSessions(root, compressed=compressed) as sessions:
            try:
                found = list(sessions.read_from("s", 0).events)
            except LogRejected:
                refused += 1
                assert lost != "cut"  # what was only cut is always read
                continue
            assert found == written[: len(found)]
            assert len(found) >= kept
            seen = list(sessions.inspect("s").events)
            assert seen == found + closing_events(found, 0)
            if cut % 7 == 0:
                assert list(sessions.load("s").events) == seen
                with JsonlSessions(root, compressed=compressed) as again:
                    assert list(again.read_from("s", 0).events) == seen
    assert refused == 0 or compressed


def in_child(work: Callable[[], None]) -> int:
    """Run ``work`` in a forked process; its exit code, 99 for an exception that was not expected."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("kept", KEPT[:2], ids=str)
def test_a_full_disk_leaves_nothing_of_a_batch(kept: Kept, tmp_path: Path) -> None:
    with kept.open(tmp_path) as sessions:
        sessions.create(header())
        sessions.append("s", PLAIN)
    [path] = [tmp_path / "root" / key for key in keys_of(tmp_path / "root")]
    before = path.read_bytes()

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, len(before) + 40))
        batch = [{**mark("todo/write", todos=[os.urandom(500).hex()]), "seq": 6, "time": 1}]
        sessions = kept.open(tmp_path)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                sessions.append("s", batch)
        assert path.read_bytes() == before
        sessions.create(header(id="new"))
        with pytest.raises(StoreUnavailable):
            sessions.append("new", [{**batch[0], "seq": 0}])
        assert sessions.list() == [header()]
        live = sessions.prepare("s").publish(now=1)
        live.record("todo/write", batch[0]["data"], now=2)
        with pytest.raises(StoreUnavailable):
            live.flush()
        assert path.read_bytes() == before
        with pytest.raises(StoreUnavailable):
            sessions.close()

    assert in_child(work) == 0
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with kept.open(tmp_path) as sessions:
        assert list(sessions.load("s").events) == PLAIN


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_processes_that_write_one_log_take_turns_or_are_told(kept: Kept, tmp_path: Path) -> None:
    with kept.open(tmp_path) as sessions:
        sessions.create(header())
        sessions.append("s", PLAIN)
    script = (
        "import sys; from pathlib import Path; from tests.integration.test_session_log_durability import contend; "
        "contend(sys.argv[1], Path(sys.argv[2]), sys.argv[3])"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(kept), str(tmp_path), str(number)], stdout=subprocess.PIPE)
        for number in range(WRITERS)
    ]
    counts = [int(writer.communicate(timeout=120)[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    with kept.open(tmp_path) as sessions:
        events = sessions.read_from("s", 0).events
    assert [event["seq"] for event in events] == list(range(len(PLAIN) + sum(counts)))
    for number in range(WRITERS):
        said = [event["data"]["todos"][1] for event in events if event["data"].get("todos", [""])[0] == str(number)]
        assert said == list(range(counts[number]))


def contend(name: str, folder: Path, number: str) -> None:
    """Append 10 events, each where the log then ends; what is in the way is asked again."""
    [kept] = [each for each in KEPT if str(each) == name]
    done = 0
    with kept.open(folder) as sessions:
        while done < 10:
            done += _appended(sessions, [number, done])
    print(done)


def _appended(sessions: SessionPersistence, said: list[object]) -> bool:
    try:
        end = len(sessions.read_from("s", 0).events)
        sessions.append("s", [{"type": "todo/write", "seq": end, "time": 1, "data": {"todos": said}}])
    except (SessionBusy, SessionWriteRefused):
        return False
    return True


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_one_id_is_begun_by_one_process_alone(kept: Kept, tmp_path: Path) -> None:
    with kept.open(tmp_path) as first, kept.open(tmp_path) as second:
        first.create(header())
        second.create(header())
        first.append("s", PLAIN)
        with pytest.raises(SessionWriteRefused, match="exists"):
            second.append("s", PLAIN[:1])
    with kept.open(tmp_path) as again:
        assert list(again.load("s").events) == PLAIN
