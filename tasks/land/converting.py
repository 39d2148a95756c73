"""A window of a source file as records: what the dialect makes of each line, or what stands for one too long."""

from __future__ import annotations

from schemas.session_data import Part, Record, encode_text
from tasks.land.outcome import NOT_UNDERSTOOD, LandProblem
from tasks.land.source import Converted, Dialect, SourceFile
from tasks.land.windows import Window

__all__ = ["converted_window", "not_understood"]


def converted_window(
    dialect: Dialect, window: Window, file: SourceFile, after_ord: int, max_line_bytes: int
) -> list[Converted]:
    """The records of the window's lines, which are numbered on from `after_ord`."""
    if window.oversized is None:
        return [dialect.convert(line, file) for line in window.lines(after_ord)]
    size, digest = window.oversized.bytes, window.oversized.sha256
    reason = f"the line is longer than {max_line_bytes} bytes and stays in its source; SHA-256 {digest}"
    part = Part(k="unknown", text=encode_text(reason), state="unavailable", bytes=size)
    record = Record(ord=after_ord + 1, off=window.start, sha=digest[:12], bytes=size, from_="runtime", parts=(part,))
    return [Converted(record, reason)]


def not_understood(file: SourceFile, converted: list[Converted]) -> list[LandProblem]:
    """The lines that could not be understood, and land as they are."""
    return [
        LandProblem(
            file=file.key,
            row=each.record.ord,
            rule=NOT_UNDERSTOOD,
            detail=each.problem,
            off=each.record.off,
            sha=each.record.sha,
        )
        for each in converted
        if each.problem
    ]
