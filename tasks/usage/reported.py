"""What sources report of calls, as one table: companions of landed files first, else the landed records themselves.

Both are JSON lines; a line that is damaged costs nothing but itself (usage specification, "Counting": damaged lines).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec
import polars as pl

from schemas import lenient_json
from schemas.errors import SessionDataRejected
from schemas.session_data import read_session_data
from tasks.usage.lines import BEYOND, LineReader, Told

__all__ = [
    "REPORTED",
    "SYNTHETIC",
    "Reports",
    "UsageLines",
    "companion_lines",
    "header_of",
    "record_lines",
    "reports_in",
    "times_in",
]

_N = pl.Int64
_ANTHROPIC: dict[str, Any] = {
    "input_tokens": _N,
    "output_tokens": _N,
    "cache_read_input_tokens": _N,
    "cache_creation_input_tokens": _N,
    "cache_creation": pl.Struct({"ephemeral_5m_input_tokens": _N, "ephemeral_1h_input_tokens": _N}),
    "output_tokens_details": pl.Struct({"thinking_tokens": _N}),
    "server_tool_use": pl.Struct({"web_search_requests": _N}),
    "service_tier": pl.String,
    "speed": pl.String,
}
_OPENAI: dict[str, Any] = {
    "input_tokens": _N,
    "output_tokens": _N,
    "cached_input_tokens": _N,
    "cache_write_input_tokens": _N,
    "cache_creation_input_tokens": _N,
    "reasoning_output_tokens": _N,
}
_CAMEL: dict[str, Any] = {
    "inputTokens": _N,
    "outputTokens": _N,
    "cacheReadTokens": _N,
    "cacheWriteTokens": _N,
    "reasoningTokens": _N,
    "costMicrocents": _N,
}
_USAGE: dict[str, Any] = {**_ANTHROPIC, **_OPENAI, **_CAMEL}
_OF_PROGRAM = {
    "claude-code": _ANTHROPIC,
    "codex": _OPENAI,
    "deepseek-harness": _CAMEL,
    "native": _CAMEL,
    "relavium": _CAMEL,
}
_PROGRAM = re.compile(rb'^\{"dialect":"([^"/]*)/', re.MULTILINE)
_COMPANION: dict[str, Any] = {
    "row": _N,
    "id": pl.String,
    "call": pl.String,
    "run": pl.String,
    "time": pl.String,
    "model": pl.String,
    "request_id": pl.String,
    "finished": pl.Boolean,
    "side_chain": pl.Boolean,
    "session": pl.String,
    "agent": pl.String,
    "forked_from": pl.String,
    "cwd": pl.String,
}


def _decode(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except RecursionError:  # nothing for a reader of columns, which goes no deeper than its columns
        return lenient_json.decode_value(line)


_READ_UNKNOWN = LineReader({**_COMPANION, "usage": pl.Struct(_USAGE)}, _decode)
_READ_BY_PROGRAM = {
    # Only Codex' calls are told apart by their run.
    name: LineReader(
        {each: kind for each, kind in _COMPANION.items() if each != "run" or name == "codex"}
        | {"usage": pl.Struct(usage)},
        _decode,
    )
    for name, usage in _OF_PROGRAM.items()
}
_RECORD: dict[str, Any] = {
    "id": pl.String,
    "call": pl.String,
    "run": pl.String,
    "time": pl.String,
    "flags": ("synthetic", "finished"),
    "usage": pl.Struct({"in": _N, "out": _N, "cache_read": _N, "cache_write": _N}),
    "model": pl.String,
}
_READ_RECORDS = LineReader(_RECORD, lenient_json.decode_value)
_USED = "usage."

SYNTHETIC = "<synthetic>"
"""The model of what a client wrote itself in the place of an answer."""

REPORTED: dict[str, Any] = {
    "file": pl.UInt32,
    **_COMPANION,
    **{name.removeprefix(_USED): kind for name, kind in _READ_UNKNOWN.columns.items() if name.startswith(_USED)},
    **{f"sd.{part}": _N for part in ("in", "out", "cache_read", "cache_write")},
    BEYOND: pl.Boolean,
}
"""The columns of a table of reports: `file` counts the files that were given, from 0. Numbers have the names that their
source gives them; Session Data's own have ``sd.`` before theirs. `BEYOND` is null where all of them can be."""


@dataclass(frozen=True, slots=True)
class UsageLines:
    """The lines of one file that may report usage, the program whose words they are (empty when that cannot be told),
    and where that is not simply their number from 1, the row of each in the file."""

    data: bytes
    program: str
    reader: LineReader
    rows: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Reports:
    """A table with the columns of `REPORTED`, the program of each file, (file, row, reason) for every line that is
    none, and the same for every line with a number that cannot be."""

    table: pl.DataFrame
    programs: tuple[str, ...]
    unread: Told = ()
    beyond: Told = ()


class _Header(msgspec.Struct):
    dialect: str
    at: str = ""


class _Time(msgspec.Struct):
    time: str = ""


def companion_lines(data: bytes) -> UsageLines:
    """The lines of a companion (`schemas.call_facts`, unpacked). It holds the words of one program, and is read for
    what that program says. What follows its last line feed is a line as well, if one that was cut."""
    if data and not data.endswith(b"\n"):
        data += b"\n"
    match = _PROGRAM.search(data)
    program = match[1].decode(errors="replace") if match else ""
    return UsageLines(data, program, _READ_BY_PROGRAM.get(program, _READ_UNKNOWN))


def record_lines(name: str, data: bytes) -> UsageLines:
    """The lines of a landed file that may have usage, and their rows; raises `SessionDataRejected` as the file's reader
    does."""
    dialect = header_of(name, data).dialect
    if not _is_closed(data):
        read_session_data(data, name=name)
    kept = [
        (row, line)
        for row, line in enumerate(data.split(b"\n")[1:], 1)
        if b'"usage"' in line and not line.startswith(b'{"t":"end')
    ]
    lines = b"".join(line + b"\n" for _, line in kept)
    return UsageLines(lines, dialect.partition("/")[0], _READ_RECORDS, [row for row, _ in kept])


def reports_in(files: Sequence[UsageLines]) -> Reports:
    """What all of `files` report."""
    by_reader: defaultdict[LineReader, list[int]] = defaultdict(list)
    for number, each in enumerate(files):
        by_reader[each.reader].append(number)
    tables = [pl.DataFrame(schema=REPORTED)]
    unread: list[tuple[int, int, str]] = []
    beyond: list[tuple[int, int, str]] = []
    for reader, numbers in by_reader.items():
        table, *told = reader.read([files[number].data for number in numbers])
        if reader is _READ_RECORDS:
            table = table.with_columns(_rows([files[number].rows for number in numbers], told[0]))
        number_of = pl.Series(numbers, dtype=pl.UInt32)
        table = table.with_columns(number_of.gather(table["file"]).alias("file"))
        tables.append(_complete(_named_as_session_data(table) if reader is _READ_RECORDS else _named(table)))
        for kept, lines in zip((unread, beyond), told, strict=True):
            for place, line, reason in lines:
                rows = files[numbers[place]].rows
                kept.append((numbers[place], rows[line - 1] if rows else line, reason))
    return Reports(pl.concat(tables), tuple(each.program for each in files), tuple(unread), tuple(beyond))


def header_of(name: str, data: bytes) -> _Header:
    """The header of a landed file; raises `SessionDataRejected` when there is none."""
    try:
        return msgspec.json.decode(data[: data.find(b"\n") + 1], type=_Header)
    except msgspec.DecodeError:
        read_session_data(data, name=name)
        raise SessionDataRejected(name, None, "header_field", "it has no dialect") from None


def times_in(data: bytes) -> list[str]:
    """The times of a landed file's records, as written."""
    found = []
    for line in data.split(b"\n")[1:]:
        if b'"time":"' in line:
            try:
                found.append(msgspec.json.decode(line, type=_Time).time)
            except msgspec.DecodeError:
                continue
    return found


def _is_closed(data: bytes) -> bool:
    """Whether the last line closes the file with the digest of all before it; then no line needs another look."""
    start = data.rfind(b"\n", 0, max(0, len(data) - 1)) + 1
    end = data[start:]
    return end.startswith(b'{"t":"end') and b'"digest":"%s"' % sha256(data[:start]).hexdigest().encode() in end


def _rows(rows: Sequence[Sequence[int]], unread: Told) -> pl.Series:
    """The row of each line that was read, of the `rows` of all lines, file by file."""
    none = {(file, line) for file, line, _ in unread}
    lines = ((file, line, row) for file, each in enumerate(rows) for line, row in enumerate(each, 1))
    read = [row for file, line, row in lines if (file, line) not in none]
    return pl.Series("row", read, _N)


def _named(table: pl.DataFrame) -> pl.DataFrame:
    return table.rename(lambda name: name.removeprefix(_USED))


def _named_as_session_data(table: pl.DataFrame) -> pl.DataFrame:
    # Everything on these lines is valid Session Data, so a line that does not fit has its numbers out of bounds.
    return table.rename(lambda name: f"sd.{name.removeprefix(_USED)}" if name.startswith(_USED) else name).with_columns(
        pl.when("flags.synthetic").then(pl.lit(SYNTHETIC)).otherwise("model").alias("model"),
        pl.col("flags.finished").alias("finished"),
    )


def _complete(table: pl.DataFrame) -> pl.DataFrame:
    """`table` with every column, of the right type and in order."""
    return table.select(
        (pl.col(name) if name in table.columns else pl.lit(None).alias(name)).cast(kind)
        for name, kind in REPORTED.items()
    )
