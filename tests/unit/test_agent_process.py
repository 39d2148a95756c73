"""A child process of ours: what it is given, how it ends, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schemas.agent_spec import Limits
from tasks.agents.process import Ended, Launch, run_program
from tasks.agents.watch import Watch

STUBBORN = """
trap '' TERM
(trap '' TERM; sleep 300) &
setsid sh -c 'trap "" TERM; sleep 300' &
echo started; wait; sleep 300
"""
"""A shell that ignores SIGTERM, with a child in its group and another in a session of its own."""


def run(folder: Path, script: str, *, watch: Watch | None = None, given: bytes = b"") -> tuple[Ended, list[bytes]]:
    lines: list[bytes] = []
    ended = asyncio.run(
        run_program(
            Launch(
                ("/bin/sh", "-c", script),
                folder,
                {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MARK": str(folder)},
                given,
            ),
            watch or Watch(Limits(grace_seconds=1)),
            lines.append,
        )
    )
    return ended, lines


def alive(folder: Path) -> list[str]:
    """The processes that were started in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"MARK={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_program_has_the_given_environment_and_input_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
    ended, lines = run(tmp_path, "env | cut -d= -f1 | sort | tr '\\n' ' '; echo; cat; exit 3", given=b"a\nb")
    assert [set(lines[0].split()) - {b"PWD", b"SHLVL", b"_", b"OLDPWD"}, *lines[1:]] == [
        {b"MARK", b"PATH", b"LANG"},
        b"a",
        b"b",
    ]
    assert ended.exit_code == 3


def test_program_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    launch = Launch(("/no/such/program",), tmp_path, {})
    ended = asyncio.run(run_program(launch, Watch(Limits()), lambda line: None))
    assert (ended.exit_code, ended.missing) == (127, "No such file or directory")


def test_long_line_is_left_out_and_counted(tmp_path: Path) -> None:
    ended, lines = run(tmp_path, "echo a; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo b")
    assert (lines, ended.overlong) == ([b"a", b"b"], 1)


def test_only_the_end_of_standard_error_is_kept(tmp_path: Path) -> None:
    ended, _ = run(tmp_path, "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo last >&2")
    assert len(ended.error) == 16 * 1024
    assert ended.error.endswith("xlast\n")


def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    began = time.monotonic()
    ended, lines = run(tmp_path, "sleep 300 & setsid sleep 300 & (setsid setsid sleep 300 &); echo done; exit 0")
    assert (ended.exit_code, lines) == (0, [b"done"])
    assert alive(tmp_path) == []
    assert time.monotonic() - began < 30


def test_program_that_is_asked_to_end_gets_its_grace_then_is_killed_with_all_it_started(tmp_path: Path) -> None:
    watch = Watch(Limits(grace_seconds=1))

    async def stop_when_started() -> Ended:
        started = asyncio.Event()
        launch = Launch(("/bin/sh", "-c", STUBBORN), tmp_path, {"PATH": "/usr/bin:/bin", "MARK": str(tmp_path)})
        work = asyncio.ensure_future(run_program(launch, watch, lambda line: started.set()))
        await started.wait()
        watch.stop("timeout", "it took too long")
        return await work

    ended = asyncio.run(stop_when_started())
    assert ended.exit_code == -signal.SIGKILL
    assert alive(tmp_path) == []


def test_program_that_heeds_sigterm_may_say_its_last_words(tmp_path: Path) -> None:
    watch = Watch(Limits(grace_seconds=20))
    lines: list[bytes] = []

    async def stop_when_started() -> Ended:
        def note(line: bytes) -> None:
            lines.append(line)
            watch.stop("cancelled", "")

        script = "trap 'echo bye; exit 5' TERM; echo hi; while :; do sleep 0.05; done"
        return await run_program(Launch(("/bin/sh", "-c", script), tmp_path, {"PATH": "/usr/bin:/bin"}), watch, note)

    assert asyncio.run(stop_when_started()).exit_code == 5
    assert lines == [b"hi", b"bye"]


def test_cancelled_run_leaves_no_process(tmp_path: Path) -> None:
    async def cancel_when_started() -> None:
        started = asyncio.Event()
        launch = Launch(("/bin/sh", "-c", STUBBORN), tmp_path, {"PATH": "/usr/bin:/bin", "MARK": str(tmp_path)})
        watch = Watch(Limits(grace_seconds=0))
        work = asyncio.ensure_future(run_program(launch, watch, lambda line: started.set()))
        await started.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancel_when_started())
    assert alive(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_us_when_we_are_killed(tmp_path: Path, number: signal.Signals) -> None:
    ours = f"""
import asyncio, sys
from pathlib import Path
from schemas.agent_spec import Limits
from tasks.agents.process import Launch, run_program
from tasks.agents.watch import Watch
environment = {{"PATH": "/usr/bin:/bin", "MARK": {str(tmp_path)!r}}}
launch = Launch(("/bin/sh", "-c", {STUBBORN!r}), Path({str(tmp_path)!r}), environment)
asyncio.run(run_program(launch, Watch(Limits(grace_seconds=0)), lambda line: print(line.decode(), flush=True)))
"""
    process = subprocess.Popen([sys.executable, "-c", ours], stdout=subprocess.PIPE, env={"PYTHONPATH": os.getcwd()})
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"started\n"
        assert len(alive(tmp_path)) >= 3
        process.send_signal(number)
        process.wait()
    deadline = time.monotonic() + 20
    while alive(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(tmp_path) == []
