"""What the records of a session say about each other, whatever the round: duplicates, ancestors, change sets
(session-flow specification, section 4).

The index looks at every landed record, also beyond the watermark that a round stops at: a record's run may come from an
ancestor that lands later. It grows file by file; when a new file would change what was already said of an older record,
it has to be built anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .changes import ChangeSet
from .entries import Entry, FileEntries, Kind, flag
from .manifests import BodyManifest

__all__ = ["EMPTY_INDEX", "FileFacts", "Index", "Restructured", "extend"]

_ANCESTORS = 64
_NO_RUN = ("", 0)
_LEFT_OUT = (Kind.CHANGES, Kind.BODY)
_CONTEXT_RESET = flag("context_reset")
_RESET_SUMMARY = flag("reset_summary")


class Restructured(Exception):
    """New evidence changes what old evidence meant: assemble from the beginning. Never leaves the package."""


class FileFacts(NamedTuple):
    """What a round needs to know of a landed file as a whole; times in nanoseconds, 0 = none."""

    seq: int
    digest: str
    first: int
    last: int


class Index(NamedTuple):
    """lineage: record id to (run, distance to the ancestor that names it); ("", 0) when no ancestor within reach does.
    awaited: record ids that were looked up and have not landed. resets: record id to position of the records
    flagged context_reset. files, canonical, changes, bodies, lines: per landed file not yet covered by the
    checkpoint that the index grew from (lines: (stream, ord) of every transcript line). watermark: the highest
    sequence with a record. reach: the highest sequence. shared: whether two files have one sequence, so that
    records meet at one place. whole: whether `canonical` and the others beside it start with the session's first
    file.
    """

    lineage: dict[str, tuple[str, int]]
    awaited: frozenset[str]
    resets: dict[str, tuple[int, int]]
    files: list[FileFacts]
    canonical: dict[int, list[Entry]]
    changes: dict[int, list[ChangeSet]]
    bodies: dict[int, list[tuple[Entry, BodyManifest]]]
    lines: dict[int, list[tuple[str, int]]]
    watermark: int
    reach: int
    repeated: frozenset[str]
    shared: bool
    whole: bool


EMPTY_INDEX = Index({}, frozenset(), {}, [], {}, {}, {}, {}, 0, 0, frozenset(), False, True)


def extend(index: Index, landed: Iterable[FileEntries]) -> Index:
    """The index with more landed files, given in sequence order.

    Raises `Restructured` when an older record's ancestor arrives only now, or a file lands behind the watermark.
    """
    lineage = dict(index.lineage)
    resets = dict(index.resets)
    files = list(index.files)
    canonical = dict(index.canonical)
    changes = dict(index.changes)
    bodies = dict(index.bodies)
    lines = dict(index.lines)
    watermark, reach = index.watermark, index.reach
    awaited = index.awaited
    undecided: list[Entry] = []
    parents: dict[str, str] = {}
    for file in landed:
        if index is not EMPTY_INDEX and file.seq <= index.reach:
            raise Restructured
        files.append(FileFacts(file.seq, file.digest, file.first, file.last))
        reach = max(reach, file.seq)
        if file.entries:
            watermark = max(watermark, file.seq)
        kept: list[Entry] = []
        for entry in file.entries:
            record = entry.record
            kind = entry.kind
            if record and kind != Kind.BODY:
                if record in lineage:
                    continue
                if record in awaited:
                    raise Restructured
                if entry.own_run:
                    lineage[record] = (entry.own_run, 0)
                else:
                    lineage[record] = _NO_RUN
                    parents[record] = entry.parent
                if entry.flags & _CONTEXT_RESET:
                    resets[record] = (entry.seq, entry.row)
            if kind not in _LEFT_OUT:
                kept.append(entry)
                if not entry.own_run and entry.parent:
                    undecided.append(entry)
        canonical.setdefault(file.seq, []).extend(kept)
        if file.changes:
            changes.setdefault(file.seq, []).extend(file.changes)
        if file.bodies:
            bodies.setdefault(file.seq, []).extend(file.bodies)
        if file.transcript:
            lines.setdefault(file.seq, []).extend((entry.stream, entry.ord) for entry in file.entries)
    missing = _resolve(undecided, parents, lineage)
    for found in canonical.values():
        missing.update(_named_elsewhere(found, lineage))
    repeated = _repeated(canonical)
    shared = len({file.seq for file in files}) < len(files)
    return Index(
        lineage,
        awaited | missing,
        resets,
        files,
        canonical,
        changes,
        bodies,
        lines,
        watermark,
        reach,
        repeated,
        shared,
        index.whole,
    )


def _resolve(undecided: list[Entry], parents: dict[str, str], lineage: dict[str, tuple[str, int]]) -> set[str]:
    """Give each entry the run of its nearest ancestor within reach; returns the record ids that were missing on the
    way.

    A record's distance is kept with its run, so that a child needs one look-up instead of a walk, and the limit of 64
    still holds.
    """
    missing: set[str] = set()
    for record in list(parents):
        path: list[str] = []
        current = record
        while parents.get(current):
            path.append(current)
            parent = parents.pop(current)
            if parent not in lineage:
                missing.add(parent)
                break
            current = parent
        # Whatever stands at the end is decided: it has a run, or the walk ended without one (at a root, at a record
        # that is missing, or in a circle of parents).
        run, distance = lineage[current] if path and current != path[-1] else _NO_RUN
        for child in reversed(path):
            distance += 1
            if not run or distance > _ANCESTORS:
                break
            lineage[child] = (run, distance)
    for entry in undecided:
        if entry.record:
            run, _ = lineage[entry.record]
        else:
            if entry.parent not in lineage:
                missing.add(entry.parent)
            run, distance = lineage.get(entry.parent, _NO_RUN)
            if distance >= _ANCESTORS:
                run = ""
        entry.run = run
    return missing


def _repeated(canonical: dict[int, list[Entry]]) -> frozenset[str]:
    uses: set[str] = set()
    results: set[str] = set()
    repeated: set[str] = set()
    for entries in canonical.values():
        for entry in entries:
            for _, tool, _ in entry.uses:
                (repeated if tool in uses else uses).add(tool)
            for _, tool in entry.results:
                (repeated if tool in results else results).add(tool)
    return frozenset(repeated)


def _named_elsewhere(entries: list[Entry], lineage: dict[str, tuple[str, int]]) -> set[str]:
    """Record ids that an entry names beside its ancestry and that have not landed: what a reset continues, what a
    summary stands under.
    """
    return {
        named
        for entry in entries
        if entry.flags & (_CONTEXT_RESET | _RESET_SUMMARY)
        for named in (entry.continues, entry.parent)
        if named and named not in lineage
    }
