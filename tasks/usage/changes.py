"""Which calls come out differently than before, and on which days.

What a session's new evidence may change are its own calls, and those of sessions that share a call with it. Of all of
these, everything known before and now is resolved, and compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl
from msgspec.structs import replace

from storage.usage_marks import SessionMark
from tasks.usage.candidates import CANDIDATE, KEY, MAIN
from tasks.usage.parts import rows_by_part
from tasks.usage.resolve import SESSION, origins, parents, ranked, resolve

__all__ = ["Changes", "Ledger", "changes", "session_table", "with_parents"]

_DAY = ["date", "source"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """All candidates at one moment: the files that hold them, and their sessions. Of those `anew` the files that were
    there at the moment before hold none."""

    files: Sequence[Path]
    marks: dict[str, SessionMark]
    anew: frozenset[str] = frozenset()

    def scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(list(self.files))


@dataclass(frozen=True, slots=True)
class Changes:
    """What came of a comparison: `days` with a source that change; the keys of the calls that were looked at, None for
    all; the files of those calls as they are now; the parents of the sessions that were looked at."""

    days: frozenset[tuple[date, str]]
    keys: pl.DataFrame | None
    calls: Sequence[Path]
    parents: dict[str, str]
    sessions: frozenset[str]

    def of_day(self, day: date, source: str, marks: dict[str, SessionMark]) -> pl.DataFrame:
        """The calls of one day as they are now, in no order."""
        wanted = (pl.col("date") == day) & (pl.col("source") == source)
        calls = empty_calls() if not self.calls else pl.scan_parquet(list(self.calls)).filter(wanted).collect()
        return _with_parents(calls, marks)

    def every_day(self) -> frozenset[tuple[date, str]]:
        """All days and sources with calls."""
        if not self.calls:
            return frozenset()
        return frozenset(pl.scan_parquet(list(self.calls)).select(_DAY).unique().collect().iter_rows())


def empty_calls() -> pl.DataFrame:
    """No calls."""
    return resolve(ranked(pl.DataFrame(schema=CANDIDATE), pl.DataFrame(schema=SESSION)))


def changes(before: Ledger, now: Ledger, changed: Collection[str] | None, folder: Path, batch_rows: int) -> Changes:
    """Compare, about `batch_rows` candidates at a time; `changed` sessions have new evidence, None means all have.

    The parents in `now`'s marks are not read: they come of this. Keeps the calls in files in `folder`.
    """
    # Where nothing was known every call is new, and there is nothing to look for.
    keys, sessions = (None, frozenset(now.marks)) if changed is None or not before.files else _touched(now, changed)
    if not now.files:
        return Changes(frozenset(), keys, (), {}, sessions)
    old_table, new_table = session_table(before.marks), session_table(now.marks)
    found: list[pl.DataFrame] = []
    pairs: list[tuple[Path | None, Path]] = []
    parts = _parts(now, keys, batch_rows)
    stood = rows_by_part(before.files, keys, parts, folder, "stood")
    came = rows_by_part([path for path in now.files if path not in set(before.files)], keys, parts, folder, "came")
    for part, (standing, fresh) in enumerate(zip(stood, came, strict=True)):
        kept = standing.filter(~pl.col("session").is_in(sorted(now.anew))) if now.anew else standing
        rows = ranked(pl.concat([kept, fresh]), new_table)
        found.append(origins(rows))
        new = folder / f"calls-{part:06d}.parquet"
        resolve(rows).sort(*_DAY).write_parquet(new, row_group_size=64 * 1024, compression="zstd")
        old = None
        if before.files:
            old = folder / f"before-{part:06d}.parquet"
            resolve(ranked(standing, old_table)).write_parquet(old, compression="zstd")
        pairs.append((old, new))
    of = {name: parent for name, parent in parents(pl.concat(found).unique()).items() if name in sessions}
    marks = with_parents(now.marks, sessions, of)
    days: set[tuple[date, str]] = set()
    for old, new in pairs:
        was = None if old is None else _with_parents(pl.read_parquet(old), before.marks)
        days.update(_differing(was, _with_parents(pl.read_parquet(new), marks)))
    return Changes(frozenset(days), keys, [new for _, new in pairs], of, sessions)


def with_parents(
    marks: dict[str, SessionMark], sessions: Collection[str], of: dict[str, str]
) -> dict[str, SessionMark]:
    """`marks` in which each of `sessions` has the parent that `of` names, or none."""
    changed = {name: replace(marks[name], parent=of.get(name, "")) for name in sessions if name in marks}
    return {**marks, **changed}


def session_table(marks: dict[str, SessionMark]) -> pl.DataFrame:
    """The columns `resolve.SESSION` of every session."""
    every = list(marks.values())
    time = pl.Datetime("us", "UTC")
    return pl.DataFrame(
        {
            "session": pl.Series([mark.session for mark in every], dtype=pl.String),
            "first": pl.Series([mark.first for mark in every], dtype=pl.Int64).cast(time),
            "last": pl.Series([mark.last for mark in every], dtype=pl.Int64).cast(time),
            "day": pl.Series([mark.day or None for mark in every], dtype=pl.String).str.to_date("%Y-%m-%d"),
        },
        schema=SESSION,
    )


def _touched(ledger: Ledger, changed: Collection[str]) -> tuple[pl.DataFrame, frozenset[str]]:
    """The keys of all calls of `changed` and of the sessions that share one of them, and those sessions."""
    if not ledger.files:
        return pl.DataFrame(schema=dict.fromkeys(KEY, pl.String)), frozenset(changed)
    own = _keys_of(ledger, changed)
    near = ledger.scan().join(own.lazy(), on=KEY, how="semi").select("session").unique().collect()["session"].to_list()
    sessions = frozenset(near) | frozenset(changed)
    return (own if sessions == frozenset(changed) else _keys_of(ledger, sessions)), sessions


def _keys_of(ledger: Ledger, sessions: Collection[str]) -> pl.DataFrame:
    wanted = pl.Series(sorted(sessions), dtype=pl.String).implode()
    return ledger.scan().filter(pl.col("session").is_in(wanted)).select(KEY).unique().collect()


def _parts(ledger: Ledger, keys: pl.DataFrame | None, batch_rows: int) -> int:
    rows = int(ledger.scan().select(pl.len()).collect().item())
    return (rows if keys is None else min(rows, 4 * keys.height)) // batch_rows + 1


def _with_parents(calls: pl.DataFrame, marks: dict[str, SessionMark]) -> pl.DataFrame:
    known = [(mark.session, mark.parent) for mark in marks.values() if mark.parent]
    table = pl.DataFrame(known, schema={"session_id": pl.String, "parent": pl.String}, orient="row")
    joined = calls.join(table, on="session_id", how="left", maintain_order="left")
    # A sub-agent's log that is a session of its own, for want of its parent's, still names that.
    delegating = pl.when(pl.col("stream_id") == MAIN).then("forked_from")
    own = (
        pl.when("is_subagent")
        .then(pl.coalesce(delegating, "session_id"))
        .otherwise(pl.coalesce("forked_from", "parent"))
    )
    return joined.with_columns(own.alias("parent_session_id")).drop("parent")


def _differing(old: pl.DataFrame | None, new: pl.DataFrame) -> Iterator[tuple[date, str]]:
    """The days on which the calls differ."""
    if old is None:
        yield from new.select(_DAY).unique().iter_rows()
        return
    facts = [name for name in new.columns if name not in KEY]
    both = old.join(new, on=KEY, how="full", suffix="_now", coalesce=True)
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in facts)
    days = both.filter(differs)
    for suffix in ("", "_now"):
        found = days.select(f"date{suffix}", f"source{suffix}").unique().drop_nulls()
        yield from found.iter_rows()
