"""What evidence reports, read many files at a time and made candidates of."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import polars as pl
import zstandard

from schemas.errors import SessionDataRejected
from storage.ahead import reads_in_order
from storage.zone import Zone
from tasks.usage.candidates import candidates
from tasks.usage.evidence import BAD_DATA, Wanted
from tasks.usage.reported import Reports, UsageLines, companion_lines, record_lines, reports_in

__all__ = ["candidates_in"]

BATCH_BYTES = 32 * 1024 * 1024
MOST_UNPACKED = 1024 * 1024 * 1024
_STEP = 4096
"""Packed bytes that are unpacked at once where nothing says what they come to: 128 MiB at most, by Zstandard's format.
"""

T = TypeVar("T")

Report: TypeAlias = Callable[[Wanted, Exception, bool], None]
"""Takes what could not be read, why, and whether that is all of it."""


def candidates_in(zone: Zone, wanted: Iterable[Wanted], report: Report) -> Iterator[pl.DataFrame]:
    """Tables of candidates, one a record. What cannot be read is told to `report`: a whole file, or one line of it."""
    # Unpacking, making columns and counting are work for three that do not wait for one another: zstandard, Python and
    # polars.
    for batch, reports in _one_ahead(map(_read, _one_ahead(_batches(zone, wanted)))):
        for each, error, is_whole in batch.failed:
            report(each, error, is_whole)
        yield candidates(reports, [each.place for each in batch.files])


@dataclass(frozen=True, slots=True)
class _Batch:
    """Files with their lines, and what does not read, why, and whether that is all of the file."""

    files: list[Wanted] = field(default_factory=list)
    lines: list[UsageLines] = field(default_factory=list)
    failed: list[tuple[Wanted, Exception, bool]] = field(default_factory=list)


def _batches(zone: Zone, wanted: Iterable[Wanted]) -> Iterator[_Batch]:
    batch, held = _Batch(), 0
    for each, read in reads_in_order(zone.store, wanted):
        try:
            data = read()
            by_records = each.place.by_records
            lines = record_lines(each.key, data) if by_records else companion_lines(_unpacked(each.key, data))
        except BAD_DATA as error:
            batch.failed.append((each, error, True))
            continue
        batch.files.append(each)
        batch.lines.append(lines)
        held += len(lines.data)
        if held >= BATCH_BYTES:
            yield batch
            batch, held = _Batch(), 0
    yield batch


def _read(batch: _Batch) -> tuple[_Batch, Reports]:
    reports = reports_in(batch.lines)
    impossible = [(number, row, f"{names}: no number is that large") for number, row, names in reports.beyond]
    for rule, told in (("undecodable", reports.unread), ("number", impossible)):
        for number, row, reason in told:
            file = batch.files[number]
            batch.failed.append((file, SessionDataRejected(file.key, row, rule, reason), False))
    return batch, reports


def _one_ahead(items: Iterator[T]) -> Iterator[T]:
    """`items`, each made, in a thread of its own, while the one before is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="one-ahead") as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def _unpacked(key: str, data: bytes) -> bytes:
    """All frames of a companion together; raises `SessionDataRejected` (rule ``calls``)."""
    too_large = SessionDataRejected(key, None, "calls", f"it unpacks to more than {MOST_UNPACKED} bytes")
    try:
        size = zstandard.frame_content_size(data)
        if size > MOST_UNPACKED:
            raise too_large
        if size > 0:
            with contextlib.suppress(zstandard.ZstdError):  # it is damaged, or goes on behind its first frame
                return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
        pieces, room = [], MOST_UNPACKED
        for piece in _frames(data):
            pieces.append(piece)
            room -= len(piece)
            if room < 0:
                raise too_large
    except zstandard.ZstdError as error:
        raise SessionDataRejected(key, None, "calls", f"it does not unpack: {error}") from None
    if not any(pieces):
        raise SessionDataRejected(key, None, "calls", "it is empty, and stands only where something has usage")
    return b"".join(pieces)


def _frames(data: bytes) -> Iterator[bytes]:
    """What is in the frames of `data`, piece by piece; raises `zstandard.ZstdError`."""
    at = 0
    while at < len(data):
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if at == len(data):
                raise zstandard.ZstdError("its last frame is cut")
            given = data[at : at + _STEP]
            yield frame.decompress(given)
            at += len(given) - len(frame.unused_data)
