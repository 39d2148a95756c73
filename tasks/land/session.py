"""Land one session: what its sources hold beyond their cursors becomes landed files, in one sequence.

A file is claimed, then written, then its cursor, so that a collector that stops anywhere leaves either nothing or a
claim that the next one completes. A collector that finds the next sequence taken completes that claim, goes on from
the cursor it holds, and so neither repeats nor skips what the other one landed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from hashlib import sha256
from typing import TypeAlias

from schemas.errors import FieldRejected, KeyRefused, LogRejected, ObjectMissing, ObjectTooLarge, SessionDataRejected
from schemas.times import format_time
from storage.landings import Claim, LandingLog
from storage.objects import ObjectStore
from storage.replacements import newest, stand_in
from storage.zone import LandedRef, Zone
from tasks.land.converting import converted_window, not_understood
from tasks.land.cursors import ACTIVE, CONFLICT, GONE, SourceCursor, cursor_key, root_name
from tasks.land.documents import LOOKED_AT, may_be_one_document, why_no_lines
from tasks.land.outcome import LandOptions, LandProblem, Mark, SessionLanding, Waiting
from tasks.land.promising import claim_of
from tasks.land.source import Converted, Dialect, Line, Pass, Sighting, SourceFile
from tasks.land.tally import Tally
from tasks.land.windows import GrowingFile, Limits, Rewritten

__all__ = ["land_session"]

WINDOWS_A_PASS = 65

_BAD_FILE = (KeyRefused, ObjectTooLarge)

Note: TypeAlias = Callable[[list[LandProblem]], None]


def land_session(
    zone: Zone,
    source: ObjectStore,
    dialect: Dialect,
    session: str,
    sightings: Iterable[Sighting],
    options: LandOptions,
    note: Note = lambda problems: None,
) -> SessionLanding:
    """Land what is new of `session`. What is wrong with its files is an outcome; failures of the system are raised.

    `note` is given the lines that could not be understood before they land.
    """
    landing = _Landing(zone, source, dialect, session, options, note)
    landing.recover()
    taken: dict[str, str] = {}
    for sighting in sightings:
        file = sighting.file
        if (first := taken.setdefault(file.target, file.key)) != file.key:
            where = cursor_key(file.target)
            detail = f"{first} and {file.key} both map to {where}; refusing to interleave them, only the first is read"
            landing.report(file.key, None, "two_sources", detail)
            continue
        try:
            landing.take(sighting)
        except _BAD_FILE as error:
            landing.report(file.key, None, "unreadable", str(error))
        except (LogRejected, FieldRejected) as error:
            landing.report(file.key, error.row, error.rule, error.detail)
        except ObjectMissing:
            landing.mark_gone(file.target)
    landing.mark_pruned(taken)
    return landing.outcome()


class _Landing:
    """A session's sequence and cursors while its sources are landed."""

    def __init__(
        self, zone: Zone, source: ObjectStore, dialect: Dialect, session: str, options: LandOptions, note: Note
    ) -> None:
        self._note = note
        self._zone = zone
        self._source = source
        self._dialect = dialect
        self._session = session
        self._options = options
        self._at = format_time(options.now)
        self._root = root_name(source)
        self._log = LandingLog(zone, session)
        self._cursors: dict[str, SourceCursor] = {}
        self._next_seq = 1
        self._tally = Tally()

    def outcome(self) -> SessionLanding:
        return self._tally.of(self._session)

    def report(self, file: str, row: int | None, rule: str, detail: str) -> None:
        self._tally.report(LandProblem(file=file, row=row, rule=rule, detail=detail))

    def recover(self) -> None:
        """Complete what was claimed, and take each cursor from the claim of its source's last landed file if it is
        behind that. The claims are listed last: they then hold all that the first listing shows, and more."""
        refs, files = self._zone.landed_files_and_cursors(self._session)
        claimed = self._log.sequences()
        for file in files:
            if (cursor := SourceCursor.read(file.values)) is not None:
                self._cursors[file.key.removesuffix(".cursor")] = cursor
        landed = {ref.seq for ref in refs}
        last = {_target(self._session, ref): ref.seq for ref in refs}
        known = set(claimed)
        behind = [seq for target, seq in last.items() if seq in known and seq > self._last_seq(target)]
        for seq in sorted({*behind, *(known - landed)}):
            try:
                self._complete(self._log.read(seq))
            except SessionDataRejected as error:
                self.report(error.file, error.row, error.rule, error.detail)
        self._next_seq = max(landed | known, default=0) + 1

    def take(self, sighting: Sighting) -> None:
        """Land what is new of one source file."""
        target = sighting.file.target
        cursor = self._cursors.get(target)
        if cursor is not None and cursor.state == GONE:
            self._save(target, cursor.with_state(ACTIVE, self._at))
        cursor = newest(target, self._cursors)[1]
        if cursor is not None and not cursor.memo and self._has_landed_whole(cursor, sighting):
            return
        options = self._options
        at = Pass(options.now, options.parent_wait, options.max_line_bytes, self._cursors)
        sighting = self._dialect.opened(sighting, at)
        if sighting.waiting:
            self._tally.waiting.append(Waiting(file=sighting.file.key, detail=sighting.waiting, held=sighting.held))
        if sighting.damaged:
            self.report(sighting.file.key, None, "damaged", sighting.damaged)
        if sighting.held:
            return
        before = self._cursors.get(sighting.file.target)
        memos = {sighting.memo, before.memo if before is not None else ""}
        if before is None or before.memo != sighting.memo or not self._has_landed_whole(before, sighting):
            self._take_new(sighting, memos)
        if sighting.memo:
            self._keep_memo(sighting, memos)

    def _take_new(self, sighting: Sighting, memos: Collection[str]) -> None:
        if sighting.file.grows:
            growing = GrowingFile(
                self._source,
                sighting.stat,
                Limits(self._options.max_delta_bytes, self._options.max_line_bytes),
            )
            for _ in range(WINDOWS_A_PASS):
                cursor = self._cursors.get(sighting.file.target)
                if cursor is not None and cursor.memo not in memos:
                    self._tally.more = True  # somebody else is landing it, and reads it otherwise
                    return
                if not self._take_window(sighting, growing):
                    return
            self._tally.more = True
        else:
            while self._take_whole(sighting):
                pass

    def _keep_memo(self, sighting: Sighting, memos: Collection[str]) -> None:
        """Remember how the file is read, also where nothing of it was new; and let what has landed anew count instead
        of what was landed before, once all of that has."""
        file = sighting.file
        cursor = self._cursors.get(file.target)
        if cursor is None or cursor.memo not in memos:
            return
        self._save(file.target, replace(cursor, memo=sighting.memo, mark=sighting.mark))
        if sighting.mark:
            self._tally.marked.append(Mark(file=file.key, mark=sighting.mark))
        before = self._cursors.get(sighting.replaces)
        if before is not None and cursor.offset >= before.offset:
            stand_in(self._zone.store, self._session, file.place, file.prefix)
            self._save(sighting.replaces, replace(before, mark=""))

    def mark_gone(self, target: str) -> None:
        """The source file of a cursor is not there any more; what it landed stays."""
        if (cursor := self._cursors.get(target)) is not None and cursor.state == ACTIVE:
            self._save(target, cursor.with_state(GONE, self._at))

    def mark_pruned(self, seen: Iterable[str]) -> None:
        """Mark the cursors of this source whose files were not seen and are not there."""
        for target in sorted(self._cursors.keys() - set(seen)):
            cursor = self._cursors[target]
            file = self._dialect.locate(cursor.source)
            ours = cursor.root in ("", self._root) and file is not None and file.target == target
            if ours and self._source.stat(cursor.source) is None:
                self.mark_gone(target)

    def _take_window(self, sighting: Sighting, growing: GrowingFile) -> bool:
        """Land the next window; False when there is none."""
        file, stat = sighting.file, sighting.stat
        cursor = self._cursors.get(file.target) or SourceCursor(kind="append", source=file.key, root=self._root)
        # What landed by a wrong reading has to be there still when the file lands anew.
        before = self._cursors.get(sighting.replaces) if not cursor.last_seq else None
        if before is not None and not self._still_has(sighting.replaces, before, growing, sighting):
            return False
        if not self._still_has(file.target, cursor, growing, sighting):
            return False
        if cursor.offset == stat.size:
            if cursor.last_seq:
                self._save(file.target, self._seen(cursor, sighting))
            return False
        window = growing.window(cursor.offset)
        if window is None:
            return False
        if window.start == 0 and may_be_one_document(window.data):
            why = why_no_lines(self._source.read_range(file.key, 0, LOOKED_AT))
            if why is not None:
                self.report(file.key, None, "one_document", why)
                return False
        converted = converted_window(self._dialect, window, file, cursor.ord, self._options.max_line_bytes)
        after = replace(
            self._seen(cursor, sighting),
            offset=window.end,
            ord=cursor.ord + len(converted),
            tail_sha256=window.tail_sha256,
        )
        self._publish(file, converted, after, window.end - window.start)
        return True

    def _still_has(self, target: str, cursor: SourceCursor, growing: GrowingFile, sighting: Sighting) -> bool:
        """Whether the file is what the cursor has read of it, and more; where it was rewritten, that is told."""
        key = sighting.file.key
        if cursor.state == CONFLICT:
            self.report(key, None, "conflict", cursor.reason)
            return False
        if cursor.offset > sighting.stat.size and self._has_grown_to(cursor.offset, key):
            return False
        if isinstance(found := growing.check(cursor), Rewritten):
            # Another source's copy, older or of its own, must not stop the source that the cursor belongs to.
            if cursor.root in ("", self._root):
                self._save(target, cursor.with_state(CONFLICT, self._at, found.reason))
            self.report(key, None, "conflict", found.reason)
            return False
        return True

    def _has_grown_to(self, offset: int, key: str) -> bool:
        """Whether a file is that long by now: somebody else listed it later than we did, and landed more of it."""
        now = self._source.stat(key)
        if now is None:
            raise ObjectMissing(key)
        return now.size >= offset

    def _take_whole(self, sighting: Sighting) -> bool:
        """Land the file if it holds something else than before; whether it has to be looked at again."""
        file = sighting.file
        cursor = self._cursors.get(file.target) or SourceCursor(kind="snapshot", source=file.key, root=self._root)
        if sighting.stat.size > self._options.max_line_bytes:
            raise ObjectTooLarge(file.key, sighting.stat.size, self._options.max_line_bytes)
        body = self._source.read(file.key).rstrip(b"\r\n")
        digest = sha256(body).hexdigest()
        if not body or digest == cursor.content_sha256:
            if cursor.last_seq:
                self._save(file.target, self._seen(cursor, sighting))
            return False
        after = replace(self._seen(cursor, sighting), content_sha256=digest)
        return not self._publish(file, [self._dialect.convert(Line(1, 0, body), file)], after, len(body))

    def _publish(self, file: SourceFile, converted: list[Converted], after: SourceCursor, size: int) -> bool:
        """Land the records under the next sequence; False when somebody else has it, whose file then is landed."""
        seq = self._next_seq
        options = self._options
        claim = claim_of(self._dialect, file, converted, after, seq=seq, now=options.now, workplaces=options.workplaces)
        # Noted before it lands: what has landed is not looked at again, even when this collector ends here.
        problems = not_understood(file, converted)
        self._note(problems)
        standing = self._log.claim(claim)
        self._next_seq = seq + 1
        self._complete(standing)
        if standing is not claim:
            return False
        self._tally.landed(len(converted), size)
        for problem in problems:
            self._tally.report(problem)
        return True

    def _complete(self, claim: Claim) -> None:
        self._log.land(claim)
        promise = claim.promise
        cursor = SourceCursor.read(promise.cursor)
        if cursor is not None and promise.seq > self._last_seq(promise.target):
            self._save(promise.target, cursor)
        if claim.data is not None:
            self._log.settle(claim)

    def _save(self, target: str, cursor: SourceCursor) -> None:
        if self._cursors.get(target) != cursor:
            self._zone.store.replace(cursor_key(target), cursor.to_bytes())
            self._cursors[target] = cursor

    def _seen(self, cursor: SourceCursor, sighting: Sighting) -> SourceCursor:
        """The cursor with what the source file looks like now."""
        stat = sighting.stat
        return replace(
            cursor,
            source=stat.key,
            root=self._root,
            size=stat.size,
            mtime=int(stat.modified),
            etag="" if sighting.damaged else stat.etag,  # so that it is looked at, and named, until it is whole
            updated_at=self._at,
            state=ACTIVE,
            memo=sighting.memo,
            mark=sighting.mark,
        )

    def _has_landed_whole(self, cursor: SourceCursor, sighting: Sighting) -> bool:
        """Whether all of the file had landed when it was as it is now."""
        if cursor.state == CONFLICT or (cursor.offset != cursor.size and not cursor.content_sha256):
            return False
        return (cursor.source, cursor.root, cursor.etag) == (sighting.stat.key, self._root, sighting.stat.etag)

    def _last_seq(self, target: str) -> int:
        cursor = self._cursors.get(target)
        return 0 if cursor is None else cursor.last_seq


def _target(session: str, ref: LandedRef) -> str:
    return f"{session}/{ref.folder}/{ref.place}/{ref.prefix}"
