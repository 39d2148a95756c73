"""Count a zone's provider calls into a usage data set: each once, and only what is new.

The data set after any number of runs is that of one run over the same evidence, but for prices, which a row keeps
(usage specification). A run that finds nothing new writes nothing. Of runs at work at the same time one commits first;
the others begin again from what it left.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path

import polars as pl

from schemas.errors import ObjectMissing, StoreUnavailable
from schemas.usage import SCHEMA_VERSION
from storage.objects import ObjectStore
from storage.usage_dataset import CallFile, Manifest
from storage.usage_marks import SessionMark, write_marks
from storage.usage_writing import (
    clear,
    clear_dropped,
    clear_forgotten,
    clear_written,
    commit,
    named_keys,
    put_calls,
    put_state,
)
from storage.zone import Zone
from tasks.usage.changes import Changes, Ledger, changes, with_parents
from tasks.usage.days import call_files, day_of_calls
from tasks.usage.evidence import SessionEvidence, Wanted, look_at
from tasks.usage.marking import marked, with_span
from tasks.usage.outcome import PROBLEMS_KEPT, UsageOptions, UsageOutcome, UsageProblem
from tasks.usage.rates import RateCard
from tasks.usage.reading import candidates_in
from tasks.usage.repriced import prices_gained_and_lost
from tasks.usage.segments import merged_segments
from tasks.usage.spool import Spool
from tasks.usage.standing import Standing, load_standing, with_candidates

__all__ = ["count_usage"]

ATTEMPTS = 10
_NANO = 1_000_000_000

Marks = dict[str, SessionMark]


def count_usage(
    zone: Zone,
    usage: ObjectStore,
    card: RateCard,
    options: UsageOptions,
    watch: Callable[[int, str | None], None] = lambda sessions, done: None,
) -> UsageOutcome:
    """Bring `usage` up to what has landed in `zone`; `watch` is told of the number of sessions, then of each looked at.

    What is wrong with the evidence is an outcome; failures of the system, and a data set that does not read
    (`UsageRejected`), are raised.
    """
    in_vain: set[str] = set()
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="sessionmill-usage-") as folder:
            attempt = _Count(zone, usage, card, options, watch, Path(folder))
            try:
                outcome = attempt.run()
            except ObjectMissing:  # somebody else's manifest has dropped it since
                outcome = None
        if outcome is not None:
            clear_written(usage, in_vain)
            return outcome
        in_vain |= attempt.written
    raise StoreUnavailable("_manifest/", "commit", "other writers were faster every time")


class _Count:
    """One attempt."""

    def __init__(
        self,
        zone: Zone,
        usage: ObjectStore,
        card: RateCard,
        options: UsageOptions,
        watch: Callable[[int, str | None], None],
        folder: Path,
    ) -> None:
        self._zone = zone
        self._usage = usage
        self._card = card
        self._options = options
        self._watch = watch
        self._folder = folder
        self.written: set[str] = set()
        self._problems: list[UsageProblem] = []
        self._problem_count = 0
        self._gained = self._lost = 0

    def run(self) -> UsageOutcome | None:
        """None when somebody else committed first."""
        standing = load_standing(self._usage)
        if standing.manifest is not None:
            clear_dropped(self._usage, standing.manifest, standing.there)
        found, spool, marks = self._look(standing)
        whole = standing.is_damaged or self._options.reprice
        if not (spool.records or whole) and marks == standing.marks:
            return self._unchanged(standing, found, spool)
        had_marks = bool(standing.marks)
        standing = with_candidates(standing, self._usage, self._folder)
        if had_marks and not standing.marks:
            found, spool, marks = self._look(standing)
        whole = standing.is_damaged or self._options.reprice
        anew = frozenset(each.session for each in found if each.is_anew)
        now = Ledger([*standing.candidates, *spool.files], marks, anew)
        changed = None if whole else _changed(standing.marks, marks, spool) | anew
        came = changes(
            Ledger(standing.candidates, standing.marks), now, changed, self._folder, self._options.batch_rows
        )
        marks = with_parents(marks, came.sessions, came.parents)
        days = came.days
        if whole:
            days |= came.every_day() | {(each.date, each.source) for each in _files(standing.manifest)}
        files = self._write_days(standing, days, came, marks)
        base = standing.manifest
        if base is not None and not standing.is_damaged and files == base.files and marks == standing.marks:
            return self._unchanged(standing, found, spool)
        manifest = self._manifest(standing, files, marks, spool, anew)
        if not commit(self._usage, manifest):
            self.written = named_keys(manifest)
            return None
        clear(self._usage, manifest, standing.there, self._options.now / _NANO)
        return self._outcome(manifest, found, spool, len({day for day, _ in days}), changed=True)

    def _look(self, standing: Standing) -> tuple[list[SessionEvidence], Spool, Marks]:
        """What the wanted sessions have now, the candidates of what is new, and the marks with it."""
        self._problems, self._problem_count = [], 0
        # Without its marks the data set says of no session what is counted, so that all have to be.
        has_all = self._options.sessions is None or (standing.is_damaged and not standing.marks)
        wanted = self._zone.sessions() if has_all else list(self._options.sessions or ())
        self._watch(len(wanted), None)
        found = []
        for each in look_at(self._zone, wanted, standing.marks):
            found.append(each)
            self._watch(len(wanted), each.session)
            for problem in each.problems:
                self._tell(problem)
        unread: defaultdict[str, set[int]] = defaultdict(set)

        def report(file: Wanted, error: Exception, is_whole: bool) -> None:
            self._tell(UsageProblem.of(file.place.session, error))
            if is_whole:
                unread[file.place.session].add(file.place.seq)

        spool = Spool(self._folder, self._options.batch_rows)
        for rows in candidates_in(self._zone, (each for one in found for each in one.wanted), report):
            spool.add(rows)
        spool.close()
        spans = {row[0]: row[1:] for row in spool.spans_in_microseconds().iter_rows()}
        marks = dict(standing.marks)
        for each in found:
            mark = marks.get(each.session) or SessionMark(session=each.session)
            if each.is_anew:
                mark = mark.forgotten()
            after = marked(self._zone, each, mark, unread[each.session], self._tell)
            after = with_span(self._zone, each, after, spans.get(each.session, (None, None, False)))
            if after != marks.get(each.session):
                marks[each.session] = after
        return found, spool, marks

    def _write_days(
        self, standing: Standing, days: Iterable[tuple[date, str]], came: Changes, marks: Marks
    ) -> tuple[CallFile, ...]:
        """Every call file of the new state; those of `days` are written anew."""
        written = sorted(days)
        files = [each for each in standing.calls if (each.date, each.source) not in set(written)]
        for day, source in written:
            stood = standing.rows_of(self._usage, day, source)
            rows = day_of_calls(
                stood,
                came.of_day(day, source, marks),
                came.keys,
                source,
                self._card,
                self._reprices,
            )
            gained, lost = prices_gained_and_lost(stood, rows)
            self._gained, self._lost = self._gained + gained, self._lost + lost
            files += [
                put_calls(self._usage, day, source, data, count)
                for data, count in call_files(rows, self._options.part_rows)
            ]
        return tuple(sorted(files, key=lambda each: (each.date, each.source, each.key)))

    def _reprices(self, rows: pl.DataFrame) -> pl.Series:
        """Whose price is asked for anew."""
        if not self._options.reprice:
            return pl.repeat(False, rows.height, eager=True)
        if self._options.sessions is None:
            return pl.repeat(True, rows.height, eager=True)
        return rows["session_id"].is_in(list(self._options.sessions))

    def _manifest(
        self, standing: Standing, files: tuple[CallFile, ...], marks: Marks, spool: Spool, anew: frozenset[str]
    ) -> Manifest:
        base = standing.manifest
        old = () if base is None or not standing.candidates else base.candidates
        manifest = Manifest(
            schema_version=SCHEMA_VERSION,
            generation=1 if base is None else base.generation + 1,
            rows=sum(each.rows for each in files),
            price_version=self._card.version,
            files=files,
            candidates=merged_segments(self._usage, old, standing.candidates, spool.files, self._folder, anew),
            sessions=put_state(self._usage, "sessions", ".jsonl.zst", write_marks(marks.values()), len(marks)),
        )
        dropped = () if base is None else tuple(sorted(named_keys(base) - named_keys(manifest)))
        return manifest.model_copy(update={"dropped": dropped})

    def _unchanged(self, standing: Standing, found: list[SessionEvidence], spool: Spool) -> UsageOutcome:
        if standing.manifest is not None:
            clear_forgotten(self._usage, standing.manifest, standing.there, self._options.now / _NANO)
        return self._outcome(standing.manifest, found, spool, 0, changed=False)

    def _outcome(
        self, manifest: Manifest | None, found: list[SessionEvidence], spool: Spool, days: int, *, changed: bool
    ) -> UsageOutcome:
        return UsageOutcome(
            zone=self._zone.store.url,
            usage=self._usage.url,
            generation=0 if manifest is None else manifest.generation,
            changed=changed,
            sessions=len(found),
            sessions_counted=sum(bool(each.new) for each in found),
            records=spool.records,
            calls=0 if manifest is None else manifest.rows,
            days_written=days,
            files=len(_files(manifest)),
            prices_gained=self._gained,
            prices_lost=self._lost,
            price_version=self._card.version,
            problem_count=self._problem_count,
            problems=self._problems,
        )

    def _tell(self, problem: UsageProblem) -> None:
        self._problem_count += 1
        if len(self._problems) < PROBLEMS_KEPT:
            self._problems.append(problem)


def _files(manifest: Manifest | None) -> tuple[CallFile, ...]:
    return () if manifest is None else manifest.files


def _changed(before: Marks, after: Marks, spool: Spool) -> set[str]:
    """The sessions whose calls may come out differently."""
    new = set(spool.spans()["session"].to_list())
    for session, mark in after.items():
        was = before.get(session)
        if was is not None and (was.first, was.last, was.day) != (mark.first, mark.last, mark.day):
            new.add(session)
    return new
