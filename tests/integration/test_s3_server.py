"""The server program people start with `make s3`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.s3_server import running, sockets

WRITE_AND_READ = """
from storage.objects import open_store
store = open_store("s3://try-it/my-zone")
store.create("x", b"1")
print(store.read("x"))
"""


def test_server_says_how_to_reach_it_and_stops_when_asked() -> None:
    command = [sys.executable, "-m", "tests.s3_server", "--port", "0", "--bucket", "try-it"]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        said = dict(process.stdout.readline().strip().removeprefix("export ").split("=", 1) for _ in range(4))
        assert process.stdout.readline().startswith("# zone: s3://try-it/my-zone")
        done = subprocess.run(
            [sys.executable, "-c", WRITE_AND_READ],
            env={**environment, **said},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "b'1'\n"
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    assert (process.returncode, rest) == (0, "")


@pytest.mark.parametrize("keep_data", [False, True])
def test_server_that_is_stopped_leaves_no_sockets_behind(tmp_path: Path, keep_data: bool) -> None:
    with running(tmp_path, keep_data=keep_data) as server:
        assert sockets(server)
        begun = time.monotonic()
    assert sockets(server) == []
    assert server.process.returncode is not None
    assert keep_data or time.monotonic() - begun < 5
