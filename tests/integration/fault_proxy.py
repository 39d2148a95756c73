"""A TCP proxy before the S3 server that loses replies, refuses for a while, or cuts bodies: what networks do."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.s3_server import HOST

__all__ = ["FaultProxy", "Request", "cut", "forward", "lose_reply", "proxy_to", "refuse", "reset"]


@dataclass(frozen=True)
class Request:
    """One HTTP request as it came over the wire."""

    method: str
    target: str
    raw: bytes


Fault = Callable[[Request, Callable[[], bytes]], bytes]
"""From a request, and a call that passes it on and gives the server's reply, the reply to send; empty: hang up."""


def forward(request: Request, ask: Callable[[], bytes]) -> bytes:
    return ask()


def lose_reply(request: Request, ask: Callable[[], bytes]) -> bytes:
    ask()
    return b""


def reset(request: Request, ask: Callable[[], bytes]) -> bytes:
    return b""


def cut(request: Request, ask: Callable[[], bytes]) -> bytes:
    reply = ask()
    return reply[: len(reply) - 5]


def refuse(status: str, code: str) -> Fault:
    """Answer with an S3 error, without asking the server."""
    body = f"<Error><Code>{code}</Code><Message>for a test</Message></Error>".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return lambda request, ask: head + body


@dataclass
class FaultProxy:
    """Faults are used up one a request, of the methods that are hit; after them everything passes."""

    port: int
    server_port: int
    methods: tuple[str, ...] = ("PUT",)
    faults: list[Fault] = field(default_factory=list)
    seen: list[Request] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    def answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(ConnectionError):
            while (request := _read_request(connection)) is not None:
                self.seen.append(request)
                fault = self.faults.pop(0) if self.faults and request.method in self.methods else forward
                reply = fault(request, functools.partial(self._ask, request))
                if not reply:
                    return
                connection.sendall(reply)
                if fault is cut:
                    return

    def _ask(self, request: Request) -> bytes:
        with socket.create_connection((HOST, self.server_port)) as server:
            server.sendall(request.raw)
            return _read_reply(server, request.method)


@contextlib.contextmanager
def proxy_to(server_port: int) -> Iterator[FaultProxy]:
    """A proxy for the length of a `with` block."""
    with socket.create_server((HOST, 0)) as listener:
        proxy = FaultProxy(listener.getsockname()[1], server_port)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=proxy.answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield proxy
        listener.shutdown(socket.SHUT_RDWR)


def _read_request(connection: socket.socket) -> Request | None:
    raw = _read_head(connection)
    if not raw:
        return None
    if b"expect: 100-continue" in raw.lower():
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    raw = _read_body(connection, raw)
    method, target, _ = raw.split(b"\r\n", 1)[0].decode().split(" ")
    return Request(method, target, _without_expect(raw))


def _without_expect(raw: bytes) -> bytes:
    head, blank, body = raw.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:")]
    return b"\r\n".join(lines) + blank + body


def _read_reply(server: socket.socket, method: str) -> bytes:
    head = _read_head(server)
    if method == "HEAD" or head.split(b" ", 2)[1] in (b"204", b"304"):
        return head
    return _read_body(server, head)


def _read_head(connection: socket.socket) -> bytes:
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = connection.recv(65536)
        if not piece:
            return b""
        raw += piece
    return raw


def _read_body(connection: socket.socket, raw: bytes) -> bytes:
    head, _, body = raw.partition(b"\r\n\r\n")
    headers = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    if headers.get(b"transfer-encoding", b"").strip() == b"chunked":
        while not raw.endswith(b"0\r\n\r\n"):
            raw += connection.recv(65536)
        return raw
    missing = int(headers.get(b"content-length", b"0")) - len(body)
    while missing > 0:
        piece = connection.recv(missing)
        if not piece:
            raise ConnectionError("the connection ended inside a body")
        raw += piece
        missing -= len(piece)
    return raw
