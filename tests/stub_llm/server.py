"""The server itself: HTTP/1.1 on loopback, in a thread with an event loop of its own.

Written on sockets and not on a framework, because a cut stream has to be a reset connection at an exact event, and a
hang has to last until the server stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Literal

from tests.stub_llm import chat, messages, responses
from tests.stub_llm.events import Event, encoded
from tests.stub_llm.script import Answer, Script, Tokens
from tests.stub_llm.served import Dialect, Request, Served

__all__ = ["StubLlm", "running"]

HOST: Final = "127.0.0.1"
_PATHS: Final[dict[str, Dialect]] = {"messages": "messages", "chat/completions": "chat", "responses": "responses"}
_NAMED = re.compile(rb"script:([a-z0-9-]+)")
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class StubLlm:
    """A running server: its scripts, and what it served. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self.served: list[Served] = []
        self.unexpected: list[str] = []
        """Requests to anything but a model, as ``GET /path``; answered with 404."""
        self.port = 0
        self._mark = secrets.token_hex(4)
        """In every id that is given out: what is counted by id must not meet another server's."""
        self._scripts: dict[str, Script] = {"": Script((Answer("Hello."),))}
        self._steps: Counter[str] = Counter()
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address without ``/v1``."""
        return f"http://{HOST}:{self.port}"

    def script(self, *answers: Answer, name: str = "", by: Literal["request", "round"] = "request") -> None:
        """Answer from now on by these; `name` makes it the script of requests that hold ``script:name``."""
        self._steps[name] = 0
        self._scripts[name] = Script(answers, by)

    def requests(self, script: str | None = None) -> list[Served]:
        """What was served, requests for titles left out; of one script, or of all."""
        return [each for each in list(self.served) if not each.request.is_title and script in (None, each.script)]

    def total(self, script: str | None = None) -> Tokens:
        """The tokens that clients were told they used, requests for titles left out."""
        return sum((each.tokens for each in self.requests(script) if each.tokens is not None), Tokens())

    def title_total(self) -> Tokens:
        """The tokens that clients were told requests for titles used."""
        told = (each.tokens for each in list(self.served) if each.request.is_title and each.tokens is not None)
        return sum(told, Tokens())

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def stop(self) -> None:
        """End every connection, those that hang too."""
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection stays."""
        read = await _read(reader)
        if read is None:
            return False
        method, path, headers, raw = read
        dialect = _PATHS.get(path.partition("?")[0].removeprefix("/v1").removeprefix("/"))
        if method != "POST" or dialect is None:
            self.unexpected.append(f"{method} {path}")
            await _reply(writer, 404, chat.error(404, "no such path"), head_only=method == "HEAD")
            return True
        request = Request(dialect, headers, json.loads(raw), raw)
        served = self._choose(request)
        try:
            return await self._answer(served, writer)
        except (ConnectionError, asyncio.CancelledError):
            served.outcome = "left" if served.outcome == "open" else served.outcome
            raise

    def _choose(self, request: Request) -> Served:
        named = [found.decode() for found in _NAMED.findall(request.raw)]
        name = next((found for found in named if found in self._scripts), "")
        script = self._scripts[name]
        if request.is_title:
            answer = script.title
        elif script.by == "round":
            answer = script.answer(request.rounds)
        else:
            answer = script.answer(self._steps[name])
            self._steps[name] += 1
        served = Served(request, name, answer)
        self.served.append(served)
        return served

    async def _answer(self, served: Served, writer: asyncio.StreamWriter) -> bool:
        answer, request = served.answer, served.request
        while answer.gate is not None and not answer.gate.is_set():
            await asyncio.sleep(0.02)
        number = f"{self._mark}{len(self.served):06d}"
        if answer.status != 200:
            served.outcome = "error"
            body = {"messages": messages.error, "chat": chat.error, "responses": chat.error}[request.dialect]
            extra = {} if answer.retry_after is None else {"retry-after": f"{answer.retry_after:g}"}
            text = answer.text or f"refused with {answer.status}"
            await _reply(writer, answer.status, body(answer.status, text), extra)
            return True
        if answer.ending != "full" and answer.after == 0:
            return await _end_early(served, writer)
        if not request.streamed:
            if answer.ending != "full":
                return await _end_early(served, writer)
            await asyncio.sleep(answer.pause)
            served.tokens, served.outcome = answer.usage, "full"
            await _reply(writer, 200, _document(request, answer, number))
            return True
        writer.write(_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
        for place, event in enumerate(_events(request, answer, number)):
            if answer.ending != "full" and place == answer.after:
                return await _end_early(served, writer)
            if event.counted:
                served.tokens = answer.usage
            data = event.encode()
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
            await asyncio.sleep(answer.pause)
        served.outcome = "full"
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _end_early(served: Served, writer: asyncio.StreamWriter) -> bool:
    """Hang until the client or the server ends it, or reset the connection."""
    if served.answer.ending == "hang":
        await writer.drain()
        transport = writer.transport
        while not transport.is_closing():
            await asyncio.sleep(0.05)
        served.outcome = "left"
        return False
    served.outcome = "cut"
    await writer.drain()
    connection: socket.socket = writer.get_extra_info("socket")
    # Without lingering, closing sends a reset: the client sees a broken stream, not an end.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def _document(request: Request, answer: Answer, number: str) -> dict[str, Any]:
    make = {"messages": messages.document, "chat": chat.document, "responses": responses.document}[request.dialect]
    return make(answer, number, request.model)


def _events(request: Request, answer: Answer, number: str) -> list[Event]:
    if request.dialect == "messages":
        return messages.events(answer, number, request.model)
    if request.dialect == "responses":
        return responses.events(answer, number, request.model)
    options = request.body.get("stream_options") or {}
    return chat.events(answer, number, request.model, with_usage=bool(options.get("include_usage")))


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes] | None:
    """Method, path, headers in lower case and body of the next request; None when the client is done."""
    first = await reader.readline()
    if not first.strip():
        return None
    method, path, _ = first.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length") or 0))
    return method, path, headers, body


async def _reply(
    writer: asyncio.StreamWriter,
    status: int,
    document: dict[str, Any],
    extra: dict[str, str] | None = None,
    *,
    head_only: bool = False,
) -> None:
    body = encoded(document)
    writer.write(
        _head(status, {"content-type": "application/json", "content-length": str(len(body))} | (extra or {}))
        + (b"" if head_only else body)
    )
    await writer.drain()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@contextlib.contextmanager
def running() -> Iterator[StubLlm]:
    """A server for the length of a `with` block."""
    stub = StubLlm()
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    stopping = asyncio.Event()

    async def serve() -> None:
        # Streams hold whole conversations with their tool schemas in one line.
        server = await asyncio.start_server(stub.connected, HOST, 0, limit=1 << 20)
        stub.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stopping.wait()
        server.close()
        await stub.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="stub-llm", daemon=True)
    thread.start()
    if not ready.wait(30):
        raise RuntimeError("the stub model server did not start")
    try:
        yield stub
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(30)
        loop.close()
