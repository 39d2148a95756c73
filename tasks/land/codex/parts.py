"""What a rollout's line holds as parts of a record."""

from __future__ import annotations

import base64

import msgspec
from msgspec import UNSET, Raw

from schemas.lenient_json import UndecodableJSON, check
from schemas.session_data import Dropped, Part, encode_text, text_size
from tasks.land.codex.outcomes import status_outcome
from tasks.land.codex.rows import Members, Row, objects, text

__all__ = [
    "call_part",
    "data_part",
    "encrypted",
    "media_part",
    "meta_parts",
    "output_text",
    "own_result",
    "reasoning_part",
    "result_part",
    "text_part",
    "unknown_part",
]

AVAILABLE = "available"
_INPUTS = ("arguments", "input", "action")
_INSTRUCTIONS = ("base_instructions", "instructions")


def text_part(words: str) -> Part:
    return Part(k="text", text=encode_text(words), state=AVAILABLE, bytes=text_size(words))


def data_part(value: bytes) -> Part:
    """A JSON value as it stands."""
    return Part(k="data", data=Raw(value), state=AVAILABLE, bytes=len(value))


def unknown_part(body: bytes, reason: str) -> Part:
    """Bytes that the dialect cannot read, kept as text, or in base64 when they are none."""
    try:
        data, encoding = encode_text(body.decode()), ""
    except UnicodeDecodeError:
        data, encoding = encode_text(base64.b64encode(body).decode()), "base64"
    return Part(
        k="unknown",
        text=encode_text(reason),
        data=Raw(bytes(data)),
        encoding=encoding,
        state=AVAILABLE,
        bytes=len(body),
    )


def reasoning_part(words: str) -> Part:
    state = AVAILABLE if words else "redacted"
    return Part(k="reasoning", text=encode_text(words), state=state, bytes=text_size(words))


def encrypted(payload: Members) -> tuple[Dropped, ...]:
    """Reasoning that only the provider can read."""
    size = text_size(text(payload, "encrypted_content"))
    why = "only the provider can read it"
    return (Dropped(what="encrypted reasoning", bytes=size, why=why),) if size else ()


def media_part(image: Members) -> Part:
    """An image by its URL, or what a data URL holds."""
    url = text(image, "image_url") or text(image, "result")
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        media, url = head.removeprefix("data:").removesuffix(";base64"), data
    else:
        media = ""
    return Part(k="media", data=Raw(bytes(encode_text(url))), media=media, state=AVAILABLE, bytes=text_size(url))


def call_part(row: Row) -> Part:
    """A tool's call; what it was called with as JSON when it is, else as text."""
    payload = row.payload
    identity = text(payload, "call_id") or text(payload, "id")
    name = text(payload, "name") or row.name.removesuffix("_call")
    if space := text(payload, "namespace"):
        name = f"{space}.{name}"
    given = next((payload[key] for key in _INPUTS if payload.get(key) is not None), None)
    if given is None:
        return Part(k="call", id=identity, name=name, state=AVAILABLE)
    if not isinstance(given, str):
        data = msgspec.json.encode(given)
    elif _is_json(given):
        data = given.encode()
    else:
        data = bytes(encode_text(given))
    return Part(k="call", id=identity, name=name, data=Raw(data), state=AVAILABLE, bytes=len(data))


def result_part(identity: str, words: str, failed: bool | None) -> Part:
    return Part(
        k="result", of=identity, text=encode_text(words), failed=failed, state=AVAILABLE, bytes=text_size(words)
    )


def own_result(row: Row) -> Part:
    """The result of a call that the provider or the client made itself, and never reports apart."""
    identity = text(row.payload, "call_id") or text(row.payload, "id")
    failed = status_outcome(text(row.payload, "status"))
    return Part(k="result", of=identity, text=UNSET, failed=failed, state="unavailable")


def output_text(output: object) -> str:
    if isinstance(output, dict):
        return text(output, "content") or text(output, "output")
    if isinstance(output, list):
        return "\n".join(words for each in objects(output) if (words := text(each, "text")))
    return output if isinstance(output, str) else ""


def meta_parts(payload: Members) -> tuple[Part, tuple[Dropped, ...]]:
    """A thread's description without the program's own long instructions."""
    dropped = []
    kept = dict(payload)
    for key in _INSTRUCTIONS:
        value = kept.pop(key, None)
        if value:
            size = len(msgspec.json.encode(value))
            dropped.append(Dropped(what=key.replace("_", " "), bytes=size, why="the same in every thread of a client"))
    return data_part(msgspec.json.encode(kept)), tuple(dropped)


def _is_json(given: str) -> bool:
    try:
        check(given.encode())
    except (UndecodableJSON, UnicodeEncodeError):
        return False
    return True
