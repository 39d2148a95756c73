"""Land one session: what its sources hold beyond their cursors becomes landed files, in one sequence.

A file is claimed, then written, then its cursor, so that a collector that stops anywhere leaves either nothing or a
claim that the next one completes. A collector that finds the next sequence taken completes that claim, goes on from
the cursor it holds, and so neither repeats nor skips what the other one landed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

from schemas.call_facts import write_call_facts
from schemas.errors import KeyRefused, ObjectMissing, ObjectTooLarge, SessionDataRejected
from schemas.session_data import SCHEMA, Part, Record, SessionDataHeader, encode_text, write_session_data
from schemas.times import file_stamp, format_time
from storage.landings import Claim, LandingLog
from storage.objects import ObjectStore
from storage.zone import LandedRef, Zone
from tasks.land.cursors import ACTIVE, CONFLICT, GONE, SourceCursor, cursor_key
from tasks.land.outcome import NOT_UNDERSTOOD, PROBLEMS_KEPT, LandOptions, LandProblem, SessionLanding
from tasks.land.source import Converted, Dialect, Line, Sighting, SourceFile
from tasks.land.windows import GrowingFile, Limits, Rewritten, Window

__all__ = ["land_session", "root_name"]

WINDOWS_A_PASS = 65

_BAD_FILE = (KeyRefused, ObjectTooLarge)


def root_name(source: ObjectStore) -> str:
    """What cursors call this source, so that another one's files are never taken for gone."""
    return sha256(source.url.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def land_session(
    zone: Zone,
    source: ObjectStore,
    dialect: Dialect,
    session: str,
    sightings: Iterable[Sighting],
    options: LandOptions,
) -> SessionLanding:
    """Land what is new of `session`. What is wrong with its files is an outcome; failures of the system are raised."""
    landing = _Landing(zone, source, dialect, session, options)
    landing.recover()
    taken: dict[str, str] = {}
    for sighting in sightings:
        file = sighting.file
        if (first := taken.setdefault(file.target, file.key)) != file.key:
            detail = f"{first} and {file.key} both map to {cursor_key(file.target)}; refusing to interleave them"
            landing.report(file.key, None, "two_sources", detail)
            continue
        try:
            landing.take(sighting)
        except _BAD_FILE as error:
            landing.report(file.key, None, "unreadable", str(error))
        except ObjectMissing:
            landing.mark_gone(file.target)
    landing.mark_pruned(taken)
    return landing.outcome()


class _Landing:
    """A session's sequence and cursors while its sources are landed."""

    def __init__(self, zone: Zone, source: ObjectStore, dialect: Dialect, session: str, options: LandOptions) -> None:
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
        self._files = self._records = self._source_bytes = self._problem_count = 0
        self._problems: list[LandProblem] = []
        self._more = False

    def outcome(self) -> SessionLanding:
        return SessionLanding(
            session=self._session,
            files=self._files,
            records=self._records,
            source_bytes=self._source_bytes,
            problem_count=self._problem_count,
            problems=self._problems,
            more=self._more,
        )

    def report(self, file: str, row: int | None, rule: str, detail: str, record: Record | None = None) -> None:
        self._problem_count += 1
        if len(self._problems) < PROBLEMS_KEPT:
            off, sha = (record.off, record.sha) if record else (None, "")
            self._problems.append(LandProblem(file=file, row=row, rule=rule, detail=detail, off=off, sha=sha))

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
        if sighting.file.grows:
            growing = GrowingFile(
                self._source,
                sighting.stat,
                Limits(self._options.max_delta_bytes, self._options.max_line_bytes),
            )
            for _ in range(WINDOWS_A_PASS):
                if not self._take_window(sighting, growing):
                    return
            self._more = True
        else:
            while self._take_whole(sighting):
                pass

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
        if cursor.state == CONFLICT:
            self.report(file.key, None, "conflict", cursor.reason)
            return False
        if cursor.offset == stat.size and self._is_unchanged(cursor, sighting):
            return False
        if cursor.offset > stat.size and self._has_grown_to(cursor.offset, file.key):
            return False
        if isinstance(found := growing.check(cursor), Rewritten):
            # Another source's copy, older or of its own, must not stop the source that the cursor belongs to.
            if cursor.root in ("", self._root):
                self._save(file.target, cursor.with_state(CONFLICT, self._at, found.reason))
            self.report(file.key, None, "conflict", found.reason)
            return False
        if cursor.offset == stat.size:
            if cursor.last_seq:
                self._save(file.target, self._seen(cursor, sighting))
            return False
        window = growing.window(cursor.offset)
        if window is None:
            return False
        converted = self._converted(window, file, cursor.ord)
        after = replace(
            self._seen(cursor, sighting),
            offset=window.end,
            ord=cursor.ord + len(converted),
            tail_sha256=window.tail_sha256,
        )
        self._publish(file, converted, after, window.end - window.start)
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
        if cursor.content_sha256 and self._is_unchanged(cursor, sighting):
            return False
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

    def _converted(self, window: Window, file: SourceFile, after_ord: int) -> list[Converted]:
        if window.oversized is None:
            return [self._dialect.convert(line, file) for line in window.lines(after_ord)]
        size, digest = window.oversized.bytes, window.oversized.sha256
        reason = (
            f"the line is longer than {self._options.max_line_bytes} bytes and stays in its source; SHA-256 {digest}"
        )
        part = Part(k="unknown", text=encode_text(reason), state="unavailable", bytes=size)
        record = Record(
            ord=after_ord + 1, off=window.start, sha=digest[:12], bytes=size, from_="runtime", parts=(part,)
        )
        return [Converted(record, reason)]

    def _publish(self, file: SourceFile, converted: list[Converted], after: SourceCursor, size: int) -> bool:
        """Land the records under the next sequence; False when somebody else has it, whose file then is landed."""
        seq = self._next_seq
        header = SessionDataHeader(
            h=1,
            schema=SCHEMA,
            seq=seq,
            at=self._at,
            kind=file.kind,
            adapter=self._dialect.adapter,
            dialect=self._dialect.name,
            src=file.key,
            session=self._session,
            stream=file.stream,
            batch=file.batch,
        )
        claim = Claim.of(
            session=self._session,
            seq=seq,
            key=f"{file.target}-{file_stamp(self._options.now)}-{seq:06d}.sd",
            data=write_session_data(header, (each.record for each in converted)),
            calls=write_call_facts(each.call for each in converted if each.call is not None),
            target=file.target,
            cursor=replace(after, last_seq=seq).values(),
        )
        standing = self._log.claim(claim)
        self._next_seq = seq + 1
        self._complete(standing)
        if standing is not claim:
            return False
        self._files += 1
        self._records += len(converted)
        self._source_bytes += size
        for each in converted:
            if each.problem:
                self.report(file.key, each.record.ord, NOT_UNDERSTOOD, each.problem, each.record)
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
            etag=stat.etag,
            updated_at=self._at,
            state=ACTIVE,
        )

    def _is_unchanged(self, cursor: SourceCursor, sighting: Sighting) -> bool:
        return (cursor.source, cursor.root, cursor.etag) == (sighting.stat.key, self._root, sighting.stat.etag)

    def _last_seq(self, target: str) -> int:
        cursor = self._cursors.get(target)
        return 0 if cursor is None else cursor.last_seq


def _target(session: str, ref: LandedRef) -> str:
    return f"{session}/{ref.folder}/{ref.place}/{ref.prefix}"
