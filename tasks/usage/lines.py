"""JSON lines as columns: many lines at once where all of them fit the columns, else each by itself, to the same end.

A member of another type than its column's says nothing, a line that is no object is told of, and so is a number that
cannot be, which says nothing either; of a member that is repeated the last counts (usage specification, "Counting":
damaged lines).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import polars as pl
from msgspec.structs import astuple

__all__ = ["BEYOND", "LineReader", "Lines", "Told"]

Told: TypeAlias = tuple[tuple[int, int, str], ...]
"""The file, the line from 1, and the reason, of each line that something is wrong with."""

BEYOND = "beyond"
"""The column that says of a line that a number in it cannot be; a table without any such line may lack it."""

_N = pl.Int64
_MOST = 2**48
"""What no number here comes near. Below it, any sum of the numbers of a call, and what they cost at the highest rate
that a price table may have, fit into 64 bits."""
_TYPES = {
    _N: Annotated[int, msgspec.Meta(gt=-_MOST, lt=_MOST)],
    pl.String: str,
    pl.Boolean: bool,
}
_PIECE = 8 << 20
"""Bytes of lines that are split at once."""
_ROWS = 1 << 11
"""Rows, or a few more, that are made columns at once: few enough to stay in a processor's cache."""
_AT_ONCE = 256
"""Rows that are tuples at a time: too few to set the garbage collector going."""


class Lines(NamedTuple):
    """What was read: a row a line, but for those that are `unread`; `beyond` names lines with numbers that cannot be,
    and these numbers."""

    table: pl.DataFrame
    unread: Told
    beyond: Told


class LineReader:
    """Reads lines for the members in `schema`: whole numbers, texts, booleans, objects of these (`polars.Struct`), and
    lists of texts, of which it is asked whether they have certain words (a tuple of these).

    A member of an object has a column of its own, with the names of both joined by a point, and so has a word.
    """

    def __init__(self, schema: Mapping[str, Any], decode: Callable[[bytes], Any]) -> None:
        """`decode` reads a line of which this reader cannot tell whether it fits; raises ValueError when it does not
        read."""
        self._line = _Object(schema)
        self._decode = decode
        self.columns = dict(self._line.columns())
        self._decoder = msgspec.json.Decoder(self._line.struct)

    def read(self, files: Sequence[bytes]) -> Lines:
        """The lines of all `files`, and `file`, which counts the files from 0. What follows a file's last line feed is
        no line."""
        tables: list[pl.DataFrame] = []
        unread, beyond = [], []
        marked: list[int] = []
        places: list[tuple[int, int]] = []
        rows: list[Any] = []
        for file, data in enumerate(files):
            before = 0
            for piece in _pieces(data):
                lines = piece.split(b"\n")[:-1]
                read = self._all_of(lines) if _is_text(piece) else None
                if read is None:
                    read, bad, large = self._each_of(lines)
                    unread += [(file, before + line, reason) for line, reason in bad]
                    beyond += [(file, before + line, names) for _, line, names in large]
                    done = len(rows) + sum(table.height for table in tables)
                    marked += [done + row for row, _, _ in large]
                places.append((file, len(read)))
                before += len(lines)
                rows += read
                if len(rows) >= _ROWS:
                    tables.append(self._table(rows))
                    rows = []
        tables.append(self._table(rows))
        counts = pl.DataFrame(places, {"file": pl.UInt32, "rows": pl.UInt32}, orient="row")
        file_of = counts.select(pl.col("file").repeat_by("rows").explode(empty_as_null=False))
        table = pl.concat([file_of, pl.concat(tables)], how="horizontal")
        if marked:
            table = table.with_row_index(BEYOND).with_columns(pl.col(BEYOND).is_in(marked))
        return Lines(table, tuple(unread), tuple(beyond))

    def _table(self, rows: list[Any]) -> pl.DataFrame:
        columns = zip(self.columns.items(), self._line.transposed(rows), strict=True)
        return pl.DataFrame([pl.Series(name, values, kind) for (name, kind), values in columns])

    def _all_of(self, lines: Sequence[bytes]) -> list[Any] | None:
        """Every line, None when any of them is something else than an object whose members fit."""
        try:
            return list(map(self._decoder.decode, lines))
        except (msgspec.DecodeError, RecursionError):
            return None

    def _each_of(self, lines: Sequence[bytes]) -> tuple[list[Any], list[tuple[int, str]], list[tuple[int, int, str]]]:
        """Rows, line and reason of those that are none, and row, line and names of numbers that cannot be."""
        rows: list[Any] = []
        unread, beyond = [], []
        for number, line in enumerate(lines, 1):
            try:
                value = self._decode(line)
                if not isinstance(value, dict):
                    raise ValueError("it is no object")
            except ValueError as error:
                unread.append((number, str(error)))
                continue
            if names := ", ".join(self._line.beyond(value)):
                beyond.append((len(rows), number, names))
            rows.append(self._line.fitting(value))
        return rows, unread, beyond


class _Object:
    """The members of an object that are looked at, and the type that has them, each None where there is none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._words = {name: kind for name, kind in schema.items() if isinstance(kind, tuple)}
        self._within = {
            name: _Object({each.name: each.dtype for each in kind.fields})
            for name, kind in schema.items()
            if isinstance(kind, pl.Struct)
        }
        self._plain = {
            name: kind for name, kind in schema.items() if name not in self._words and name not in self._within
        }
        types: list[Any] = [_TYPES[kind] for kind in self._plain.values()]
        types += [list[str] for _ in self._words]
        types += [within.struct for within in self._within.values()]
        fields = [(f"m{place}", kind | None, None) for place, kind in enumerate(types)]
        names = {f"m{place}": name for place, name in enumerate((*self._plain, *self._words, *self._within))}
        self.struct: type[msgspec.Struct] = msgspec.defstruct("Object", fields, rename=names, gc=False)
        self._nothing = self.struct()

    def columns(self) -> Iterator[tuple[str, Any]]:
        yield from self._plain.items()
        for name, words in self._words.items():
            yield from ((f"{name}.{word}", pl.Boolean) for word in words)
        for name, within in self._within.items():
            yield from ((f"{name}.{part}", kind) for part, kind in within.columns())

    def transposed(self, rows: Sequence[Any]) -> list[list[Any]]:
        """The values of `columns`; a row that is None has none."""
        plain: list[list[Any]] = [[] for _ in self._plain]
        lists: list[list[Any]] = [[] for _ in self._words]
        within: list[list[Any]] = [[] for _ in self._within]
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            if None in some:
                some = [row or self._nothing for row in some]
            members = (*plain, *lists, *within)
            for column, values in zip(members, zip(*map(astuple, some), strict=True), strict=True):
                column += values
        for words, column in zip(self._words.values(), lists, strict=True):
            plain += [[each is not None and word in each for each in column] for word in words]
        for each, column in zip(self._within.values(), within, strict=True):
            plain += each.transposed(column)
        return plain

    def fitting(self, value: Any) -> Any:
        """`value` with what its members can hold: one of another type says nothing. None when it is no object."""
        if not isinstance(value, dict):
            return None
        plain = [_fitting(value.get(name), kind) for name, kind in self._plain.items()]
        lists = [_texts(value.get(name)) for name in self._words]
        return self.struct(*plain, *lists, *(within.fitting(value.get(name)) for name, within in self._within.items()))

    def beyond(self, value: Any, before: str = "") -> Iterator[str]:
        """Where in `value` a number stands that cannot be."""
        if isinstance(value, dict):
            numbers = ((name, value.get(name)) for name, kind in self._plain.items() if kind == _N)
            yield from (before + name for name, number in numbers if type(number) is int and abs(number) >= _MOST)
            for name, within in self._within.items():
                yield from within.beyond(value.get(name), f"{before}{name}.")


def _texts(value: Any) -> list[str] | None:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else None


def _fitting(value: Any, kind: Any) -> Any:
    if kind == _N:
        return value if type(value) is int and -_MOST < value < _MOST else None
    if kind == pl.String:
        return value if isinstance(value, str) else None
    return value if isinstance(value, bool) else None


def _is_text(piece: bytes) -> bool:
    """Whether it is UTF-8, which msgspec does not ask of what it passes over."""
    try:
        return piece.isascii() or bool(piece.decode())
    except UnicodeDecodeError:
        return False


def _pieces(data: bytes) -> Iterator[bytes]:
    """`data` in runs of whole lines."""
    start, end = 0, data.rfind(b"\n") + 1
    while start < end:
        stop = data.rfind(b"\n", start, start + _PIECE) + 1 or data.find(b"\n", start) + 1
        yield data[start:stop]
        start = stop
