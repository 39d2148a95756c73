"""`sessionmill run` as a person starts it, with a Prefect server that is not there or is not one."""

import json
import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from flows.demo_archive import KITES
from storage.objects import open_store
from tests.demo_zone import first_files
from tests.landed import land


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "zone").mkdir()
    land(open_store(tmp_path / "zone"), first_files())
    return tmp_path / "zone"


def run_ingest(zone: Path, api_url: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "flows", "run", "ingest", "-p", f"zone={zone}", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PREFECT_API_URL": api_url, "PREFECT_CLIENT_MAX_RETRIES": "0"},
        check=False,
    )


@contextmanager
def answering_with(status: int) -> Iterator[int]:
    """A web server that has the same answer for everything; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_server_that_is_not_there_is_one_sentence_and_its_secrets_stay_unsaid(zone: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = run_ingest(zone, f"http://someone:secret@127.0.0.1:{port}/api?token=secret", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"] == "ServerUnavailable"
    assert done.stderr.count("\n") == 1
    assert f"the Prefect server at http://127.0.0.1:{port}/api: it does not answer" in done.stderr
    assert "secret" not in done.stdout + done.stderr


def test_server_that_refuses_is_one_sentence_with_its_answer(zone: Path) -> None:
    with answering_with(401) as port:
        done = run_ingest(zone, f"http://127.0.0.1:{port}/api")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "it refused with HTTP 401" in done.stderr


def demo(folder: Path, api_url: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "flows", "demo", str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PREFECT_API_URL": api_url},
        check=True,
    )


def test_demo_does_the_whole_job_twice_and_says_when_it_is_a_repeat(prefect_api: str, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    first = demo(folder, prefect_api)
    assert first.stderr == ""
    lines = first.stdout.splitlines()
    assert lines[1] == (
        "first run: 33 records landed from 11615 bytes of 3 sources; 4 sessions, 4 rounds written, no problems; "
        "exports: 4 sessions, 2 written, 0 unchanged, 2 unfinished; "
        "usage: 10 calls of 4 sessions, 1 day written, no problems"
    )
    assert lines[2] == f"A file has grown: {folder}/archives/claude-code/projects/-srv-kites/{KITES}.jsonl"
    assert lines[3] == "second run:"
    assert "2 records landed" in first.stdout
    assert "4 sessions, 1 round written, no problems" in first.stdout
    assert "exports: 4 sessions, 1 written, 2 unchanged, 1 unfinished" in first.stdout
    assert "usage: 11 calls of 4 sessions" in first.stdout
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")
    again = demo(folder, prefect_api).stdout
    assert again.startswith("The demo has run here before: nothing new lands")
    assert "0 records landed" in again
    assert "4 sessions, 0 rounds written, no problems" in again
    verified = subprocess.run([sys.executable, "-m", "flows", "verify", str(folder / "zone")], capture_output=True)
    assert verified.returncode == 0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the temporary API keeps its database, which takes seconds to make."""
    return tmp_path_factory.mktemp("prefect")


def without_server(zone: Path, home: Path, stderr: int) -> "subprocess.CompletedProcess[bytes]":
    """A run on Prefect's temporary API, with a database of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    return subprocess.run(
        [sys.executable, "-m", "flows", "run", "ingest", "-p", f"zone={zone}"],
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env={**environment, "PREFECT_HOME": str(home)},
        check=True,
    )


def test_piped_run_without_a_server_says_nothing_on_standard_error(zone: Path, home: Path) -> None:
    assert without_server(zone, home, subprocess.PIPE).stderr == b""


def test_run_on_a_terminal_says_that_the_temporary_api_starts(zone: Path, home: Path) -> None:
    ours, terminal = pty.openpty()
    said: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # the other end is closed
            while text := os.read(ours, 4096):
                said.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        without_server(zone, home, terminal)
    finally:
        os.close(terminal)
        reader.join()
        os.close(ours)
    assert b"".join(said).count(b"Prefect's temporary API starts; this takes some ten seconds") == 1
