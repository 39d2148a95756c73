"""What evidence reports, read many files at a time and made candidates of."""

from __future__ import annotations

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
    for number, row, reason in reports.unread:
        file = batch.files[number]
        batch.failed.append((file, SessionDataRejected(file.key, row, "undecodable", reason), False))
    return batch, reports


def _one_ahead(items: Iterator[T]) -> Iterator[T]:
    """`items`, each made, in a thread of its own, while the one before is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="one-ahead") as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def _unpacked(key: str, data: bytes) -> bytes:
    try:
        if zstandard.frame_content_size(data) > MOST_UNPACKED:
            raise SessionDataRejected(key, None, "calls", f"it unpacks to more than {MOST_UNPACKED} bytes")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST_UNPACKED)
    except zstandard.ZstdError as error:
        raise SessionDataRejected(key, None, "calls", f"it does not unpack: {error}") from None
