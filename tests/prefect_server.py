"""A Prefect server with a worker, both real processes on loopback, for tests of what only they can show."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

__all__ = ["Prefect", "running"]

START_SECONDS = 120.0
BUSY_SECONDS = 60.0
ROOT = Path(__file__).parents[1]


@dataclass
class Prefect:
    """A running server: its API, and the environment that its clients need."""

    url: str
    environment: dict[str, str]
    folder: Path
    worker: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the API answers, None when that is nothing. Its database is a file that one writes to at a time: while
        it is busy the server says 503, and it is asked again, as Prefect's own client does."""
        deadline = time.monotonic() + BUSY_SECONDS
        while (reply := httpx.request(method, f"{self.url}/{path}", json=body, timeout=60)).status_code == 503:
            if time.monotonic() > deadline:
                break
            time.sleep(0.5)
        reply.raise_for_status()
        return reply.json() if reply.content else None

    def start_worker(self, pool: str, extra: Mapping[str, str]) -> None:
        """Make the pool, of type process, and have a worker poll it."""
        prefect = [sys.executable, "-m", "prefect"]
        environment = self.environment | dict(extra)
        subprocess.run(
            [*prefect, "work-pool", "create", pool, "--type", "process", "--overwrite"],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=START_SECONDS,
        )
        with (self.folder / "worker.log").open("wb") as log:
            self.worker = subprocess.Popen(
                [*prefect, "worker", "start", "--pool", pool, "--type", "process"],
                env=environment,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop_worker(self, number: int = signal.SIGKILL) -> None:
        if self.worker is not None:
            with contextlib.suppress(ProcessLookupError):
                self.worker.send_signal(number)
            self.worker.wait(60)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Prefect]:
    """A server for the length of a `with` block; its data is in `folder`. A worker of it ends with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "PREFECT_HOME": str(folder),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_TO_API_BATCH_INTERVAL": "0.2",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5",
    }
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    prefect = Prefect(environment["PREFECT_API_URL"], environment, folder)
    try:
        _wait_until_ready(prefect, server)
        yield prefect
    finally:
        prefect.stop_worker()
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait_until_ready(prefect: Prefect, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{prefect.url}/health", timeout=2) as reply:
            if reply.status == 200:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the Prefect server did not start:\n{(prefect.folder / 'server.log').read_text()[-3000:]}")
