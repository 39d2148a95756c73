"""The first line of a session log (DSH specification, section 2; version 4: section 3 of its own).

Generation 0 says how many events were inherited (``seedLength``), generations from 2 on only that some were
(``isSeeded``); where they end, the events say then.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from msgspec import Struct, structs, to_builtins

from schemas._dsh_json import UndecodableJSON, is_safe, read_value, write_value
from schemas.errors import LogRejected, LogUnsupported

__all__ = ["GENERATIONS", "LogHeader", "checked_header", "header_of", "listed_header", "read_header", "write_header"]

GENERATIONS: Final = range(5)
"""The generations of the format that can be read; each log says its own, and so does the name of its file."""

_is_absolute = re.compile(r"/|\\\\|[A-Za-z]:[\\/]").match
_RETIRED = ("sandboxMode", "approvalPolicy")
_OPTIONAL_TEXTS = ("cwd", "parentSession", "agentPreset")
_KEYS = {"type", "version", "id", "createdAt", "cwd", "parentSession", "origin", "delegationDepth", "agentPreset"}


class LogHeader(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a log says of its session. ``created_at`` is milliseconds since 1970; ``parent_session`` without ``origin``
    is a fork's, with it a sub-agent's.
    """

    version: int
    id: str
    created_at: int
    cwd: str | None = None
    parent_session: str | None = None
    seed_length: int | None = None
    is_seeded: bool | None = None
    origin: Literal["subagent"] | None = None
    delegation_depth: int | None = None
    agent_preset: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The header's line as a JSON object, keys in writing order."""
        fields: dict[str, Any] = to_builtins(self)
        return {"type": "session", **fields}


def read_header(line: bytes, generation: int, name: str) -> LogHeader:
    """The header in ``line``, which must be of the ``generation`` that its file's name says.

    Raises LogUnsupported (``version``) before anything else is looked at, and LogRejected (``header``).
    """
    try:
        value, finite = read_value(line)
    except UndecodableJSON as error:
        raise LogRejected(name, 1, "header", f"not JSON: {error}") from None
    if not isinstance(value, dict) or value.get("type") != "session":
        raise LogRejected(name, 1, "header", "the first line is no session header")
    version = value.get("version")
    if not isinstance(version, (int, float)) or isinstance(version, bool):
        raise LogRejected(name, 1, "header", "version is no number")
    if version != generation:
        which = "newer; upgrade this program" if version > generation else "older, and there is no upgrade path for it"
        detail = f"version {version} in a file that is named as generation {generation}: it is {which}"
        raise LogUnsupported(name, 1, "version", detail)
    if not finite:
        raise LogRejected(name, 1, "header", "a number is -0 or infinite")
    return header_of(value, generation, name)


def checked_header(header: LogHeader, name: str) -> LogHeader:
    """The header as it is read again once it is written; without a depth it is that of a session nobody delegated.

    Raises LogUnsupported (``version``) and LogRejected (``header``).
    """
    try:
        value = {"delegationDepth": 0, **header.as_json()}
    except (TypeError, ValueError):
        raise LogRejected(name, 1, "header", "a field is of no type that JSON has") from None
    version = value["version"]
    if type(version) is not int or version not in GENERATIONS:
        raise LogUnsupported(name, 1, "version", f"version {version!r:.20}, this program knows 0 to {GENERATIONS[-1]}")
    if any(isinstance(each, float) for each in value.values()) or any(
        isinstance(value.get(key), bool) for key in ("createdAt", "seedLength", "delegationDepth")
    ):
        raise LogRejected(name, 1, "header", "createdAt, seedLength or delegationDepth is no non-negative safe integer")
    return header_of(value, version, name)


def listed_header(line: bytes, name: str) -> LogHeader | None:
    """What a listing shows of a log with this first line: its header, of whatever version, when it has the shape of one
    that this reader knows; else nothing.
    """
    try:
        value, finite = read_value(line)
        if not finite or not isinstance(value, dict) or value.get("type") != "session":
            return None
        version = value.get("version")
        if isinstance(version, bool) or not isinstance(version, (int, float)) or not is_safe(version):
            return None
        header = header_of(value, min(int(version), GENERATIONS[-1]), name)
    except (UndecodableJSON, LogRejected):
        return None
    return structs.replace(header, version=int(version))


def header_of(value: dict[str, Any], generation: int, name: str) -> LogHeader:
    """The header that ``value`` says. Raises LogRejected (``header``)."""
    if fault := _fault(value, generation):
        raise LogRejected(name, 1, "header", fault)
    created_at, depth, seed_length = value["createdAt"], value.get("delegationDepth"), value.get("seedLength")
    return LogHeader(
        version=generation,
        id=value["id"],
        created_at=int(created_at),
        cwd=value.get("cwd"),
        parent_session=value.get("parentSession"),
        seed_length=None if seed_length is None else int(seed_length),
        is_seeded=value["isSeeded"] if generation >= 2 else None,
        origin=value.get("origin"),
        delegation_depth=None if depth is None else int(depth),
        agent_preset=value.get("agentPreset"),
    )


def write_header(header: LogHeader) -> bytes:
    """The header's line, line feed included."""
    return write_value(header.as_json()) + b"\n"


def _fault(value: dict[str, Any], generation: int) -> str | None:
    """How a header breaks its generation's rules."""
    if not isinstance(value.get("id"), str) or not value["id"]:
        return "id is no text, or empty"
    if not is_safe(value.get("createdAt")):
        return "createdAt is no whole number of milliseconds"
    if not is_safe(value.get("delegationDepth")):
        return "delegationDepth is missing, or no whole number"
    for key in _OPTIONAL_TEXTS:
        if key in value and not isinstance(value[key], str):
            return f"{key} is no text"
    if "cwd" in value and not _is_absolute(value["cwd"]):
        return "cwd is no absolute path"
    if "origin" in value and value["origin"] != "subagent":
        return "origin is not 'subagent'"
    for key in _RETIRED:
        if key in value:
            return f"{key} is a setting that headers no longer have"
    if generation < 2:
        if "seedLength" in value and not is_safe(value["seedLength"]):
            return "seedLength is no whole number"
    elif not isinstance(value.get("isSeeded"), bool):
        return "isSeeded is missing, or neither true nor false"
    if generation:
        unknown = value.keys() - _KEYS - {"seedLength" if generation == 1 else "isSeeded"}
        if unknown:
            return f"unknown key {min(unknown)!r}"
    return None
