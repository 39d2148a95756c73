"""The change record of a row whose tool changed a file (Claude Code specification, section 5)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from schemas.session_data import Part
from tasks.land.claude_code.parts import data_part, html_safe, html_safe_lines
from tasks.land.claude_code.rows import Row, ToolResult
from tasks.land.line_diff import TooDifferent, line_hunks
from tasks.land.source import SourceFile

__all__ = ["change_part"]

MAX_DIFF_LINES = 200_000


class _Endpoint(msgspec.Struct, omit_defaults=True):
    present: bool
    bytes: int | None
    sha256: str = ""
    no_newline_at_end: bool = False


class _Hunk(msgspec.Struct):
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: Raw | None


class _Change(msgspec.Struct, omit_defaults=True):
    path: Raw
    operation: str
    before: _Endpoint
    after: _Endpoint
    diff: str
    additions: int | None
    deletions: int | None
    hunks: list[_Hunk] | UnsetType = UNSET


class _Root(msgspec.Struct):
    path: Raw


class _Document(msgspec.Struct, omit_defaults=True):
    schema: str
    id: Raw
    captured_by: str
    session: str
    stream: str
    tool: Raw
    time: Raw
    basis: str
    root: _Root | UnsetType
    changed_files: int
    changes: list[_Change]


class _Edit(NamedTuple):
    path: str
    before: str | None
    after: str | None


class _Difference(NamedTuple):
    diff: str
    additions: int | None
    deletions: int | None
    hunks: list[_Hunk]


def change_part(row: Row, result: ToolResult, parts: Iterable[Part], file: SourceFile) -> Part | None:
    """The change record as a data part; None when the row names no tool, no time, no path, or nothing that changed."""
    tool = next((part.of for part in parts if part.k == "result" and part.of), "")
    edit = _edit(result)
    if not tool or not row.timestamp or not edit.path:
        return None
    given = result.structured_patch or []
    if not given and edit.after is None:
        return None
    difference = _reported(result) if given else _own(edit.before or "", edit.after or "")
    change = _Change(
        path=html_safe(_relative(edit.path, row.cwd)),
        operation="create" if edit.before is None else "modify",
        before=_Endpoint(present=False, bytes=None) if edit.before is None else _endpoint(edit.before),
        after=_Endpoint(present=True, bytes=None) if edit.after is None else _endpoint(edit.after),
        diff=difference.diff,
        additions=difference.additions,
        deletions=difference.deletions,
        hunks=difference.hunks or UNSET,
    )
    document = _Document(
        schema="changes/1",
        id=html_safe(tool),
        captured_by="claude-code",
        session=file.session,
        stream=file.stream,
        tool=html_safe(tool),
        time=html_safe(row.timestamp),
        basis="runtime_reported",
        root=_Root(html_safe(row.cwd)) if row.cwd else UNSET,
        changed_files=1,
        changes=[change],
    )
    return data_part(msgspec.json.encode(document))


def _edit(result: ToolResult) -> _Edit:
    """Which file it was, what it held, and what it holds now; None where it was not there, or is not known."""
    if not result.file_path and result.notebook_path:
        path, before, after = result.notebook_path, result.original_notebook, result.updated_notebook
    else:
        path, before, after = result.file_path, result.original_file, result.content
    if after is None and before is not None and result.old_string:
        after = before.replace(result.old_string, result.new_string, -1 if result.replace_all else 1)
    return _Edit(path, before, after)


def _endpoint(text: str) -> _Endpoint:
    data = text.encode()
    return _Endpoint(
        present=True,
        bytes=len(data),
        sha256=sha256(data).hexdigest(),
        no_newline_at_end=bool(data) and not data.endswith(b"\n"),
    )


def _reported(result: ToolResult) -> _Difference:
    """The hunks as the runtime reported them."""
    hunks = [
        _Hunk(
            hunk.old_start,
            hunk.old_lines,
            hunk.new_start,
            hunk.new_lines,
            None if hunk.lines is None else html_safe_lines(hunk.lines),
        )
        for hunk in result.structured_patch or []
    ]
    lines = [line for hunk in result.structured_patch or [] for line in hunk.lines or []]
    return _Difference("available", *_counts(lines), hunks)


def _own(before: str, after: str) -> _Difference:
    if "\0" in before or "\0" in after:
        return _Difference("binary", None, None, [])
    old, new = _lines(before), _lines(after)
    if max(len(old), len(new)) > MAX_DIFF_LINES:
        return _Difference("too_large", None, None, [])
    try:
        found = line_hunks(old, new)
    except TooDifferent:  # the original would go on, for minutes or hours
        return _Difference("too_large", None, None, [])
    hunks = [_Hunk(*hunk[:4], html_safe_lines(hunk.lines)) for hunk in found]
    return _Difference("available", *_counts([line for hunk in found for line in hunk.lines]), hunks)


def _counts(lines: list[str]) -> tuple[int, int]:
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _relative(path: str, base: str) -> str:
    """`path` below `base`, or as it is when it does not lie there."""
    if not base or path.startswith("/") != base.startswith("/"):
        return path
    target, base = _clean(path), _clean(base)
    if target == base:
        return "."
    inside = "" if base == "." else base.rstrip("/") + "/"
    if not target.startswith(inside) or target[len(inside) :].startswith(".."):
        return path
    return target[len(inside) :]


def _clean(path: str) -> str:
    cleaned = posixpath.normpath(path)
    return cleaned[1:] if cleaned.startswith("//") else cleaned
