"""What every writing backend does alike: numbers, repair, reservations, live sessions (DSH specification, section 12).

A session is in one of four states here: unknown (only what is stored counts), known (its next number and revision are
remembered), reserved, or live. Whatever is remembered is used only while the stored revision is still the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic

from schemas.dsh import (
    WRITTEN_GENERATION,
    Event,
    EventJudge,
    LogHeader,
    NotLossless,
    checked_header,
    closing_of,
    snapshot,
)
from schemas.errors import LogUnsupported, SessionBusy, SessionmillError, SessionWriteRefused
from storage.session_logs.backend import LogBackend, LogChanged, Source
from storage.session_logs.cancellation import Cancellation, check
from storage.session_logs.known import Known, KnownSessions
from storage.session_logs.live import LiveSession
from storage.session_logs.persistence import (
    Names,
    Preparation,
    SessionInspection,
    SessionLocation,
    SessionPersistence,
    Snapshots,
    check_number,
)
from storage.session_logs.prepared import Reservation
from storage.session_logs.reads import Read, Reads
from storage.session_logs.turns import Turns

__all__ = ["BATCH_SECONDS", "PREPARED_SESSIONS", "CoordinatedSessions"]

BATCH_SECONDS: Final = 0.2
"""How long a live session's first event waits for others, at most, before its batch is written."""

PREPARED_SESSIONS: Final = 5
"""So many sessions that were read are kept in memory, for as long as their logs do not change."""

_TRIES: Final = 8
"""How often a log is read again because somebody else wrote to it."""


class CoordinatedSessions(SessionPersistence, Generic[Source]):
    """`SessionPersistence` over a backend."""

    def __init__(
        self,
        backend: LogBackend[Source],
        *,
        prepared_sessions: int = PREPARED_SESSIONS,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        self._backend = backend
        self._batch_seconds = batch_seconds
        self._turns = Turns()
        self._known = KnownSessions()
        self._reads: Reads[Source] = Reads(backend, prepared_sessions)
        self._reserved: set[str] = set()
        self._live: dict[str, LiveSession] = {}

    def locate(self, meta: LogHeader) -> SessionLocation | None:
        return self._backend.locate(meta)

    def create(self, meta: LogHeader) -> None:
        self._check_new(meta)
        with self._turns.of(meta.id):
            self._create(meta)

    def append(self, session: str, events: Sequence[Event]) -> None:
        batch = self._snapshot(session, events)
        if not batch:
            return
        with self._turns.of(session):
            if session in self._live or session in self._reserved:
                state = "live" if session in self._live else "reserved"
                raise SessionWriteRefused(session, "live", f"the session is {state}, and written to by its owner alone")
            for _ in range(_TRIES):
                known = self._known.get(session) or self._adopted(session, None)[1]
                try:
                    self._store(known, batch)
                    return
                except LogChanged:
                    self._known.forget(session)
            raise SessionBusy(session, "somebody else keeps writing to its log")

    def load(self, session: str) -> SessionInspection:
        live = self._live.get(session)
        if live is not None:
            return self._load_live(live)
        with self._turns.of(session):
            self._check_free(session)
            return self._adopted(session, None)[0].inspection

    def prepare(self, session: str, signal: Cancellation | None = None) -> Preparation:
        with self._turns.of(session, signal):
            self._check_free(session)
            read, known = self._adopted(session, signal)
            with suppress(LogChanged):
                known.hold = self._backend.hold(read.stored.header)
            # Between the reading and the hold somebody else may have been there.
            if self._backend.revision(session, None) != known.revision:
                self._known.forget(session)
                raise SessionBusy(session, "somebody else keeps writing to its log")
            self._reserved.add(session)
            known.owned = True
            return Reservation(read.inspection, partial(self._publish, known), self._dispose)

    def inspect(self, session: str, signal: Cancellation | None = None) -> SessionInspection:
        with self._turns.of(session, signal):
            live = self._live.get(session)
            return live.inspection() if live is not None else self._reads.read(session, signal).inspection

    def read_from(self, session: str, from_seq: int, signal: Cancellation | None = None) -> SessionInspection:
        check_number(from_seq)
        with self._turns.of(session, signal):
            found = self._backend.read_from(session, from_seq, signal)
            check(signal)
            if found is None:
                raise self._reads.missing(session)
            return SessionInspection(*found)

    def list_snapshots(self, signal: Cancellation | None = None) -> Snapshots:
        check(signal)
        found = self._backend.snapshots(signal)
        check(signal)
        return found

    def list_unreadable(self, signal: Cancellation | None = None) -> Names:
        return self._backend.unreadable(signal)

    def begin(self, meta: LogHeader, seed: Sequence[Event] = (), *, now: int) -> LiveSession:
        self._check_new(meta)
        inherited = self._snapshot(meta.id, seed)
        with self._turns.of(meta.id):
            known = self._create(meta)
            try:
                if inherited:
                    if inherited[-1]["type"] != _SEED_END:
                        inherited.append(_seed_end(len(inherited), now))
                    self._store(known, inherited, hold=True)
                return self._go_live(known, inherited)
            except BaseException:
                self._known.forget(meta.id)
                raise

    def close(self) -> None:
        failed: list[Exception] = []
        for live in list(self._live.values()):
            try:
                live.close()
            except (SessionmillError, OSError) as error:
                failed.append(error)
        if failed:
            raise failed[0]
        self._known.clear()
        self._reads.clear()
        self._reserved.clear()
        self._backend.close()

    def _check_new(self, meta: LogHeader) -> None:
        checked_header(meta, self._backend.name)
        if meta.version != WRITTEN_GENERATION:
            detail = f"version {meta.version}, where sessions are begun in version {WRITTEN_GENERATION} alone"
            raise LogUnsupported(self._backend.name, None, "version", detail)
        self._backend.check(meta)

    def _create(self, meta: LogHeader) -> Known:
        if meta.id in self._live or meta.id in self._reserved or self._known.get(meta.id) is not None:
            raise SessionWriteRefused(meta.id, "exists", "the session is known already")
        if self._backend.revision(meta.id, None) is not None:
            raise SessionWriteRefused(meta.id, "exists", "a log of the session is stored; load it instead")
        return self._known.remember(Known(meta, 0, None, EventJudge(meta, (), meta.id)))

    def _snapshot(self, session: str, events: Sequence[Event]) -> list[Event]:
        try:
            batch: list[Any] = snapshot(list(events))
        except NotLossless as error:
            detail = f"the batch is not losslessly JSON-serializable: {error}"
            raise SessionWriteRefused(session, "not_json", detail) from None
        for place, event in enumerate(batch):
            if not isinstance(event, dict) or type(event.get("seq")) is not int:
                raise SessionWriteRefused(session, "seq", f"event {place} of the batch has no number")
        return batch

    def _store(self, known: Known, batch: list[Event], *, hold: bool = False, judged: bool = False) -> None:
        """Store a batch behind what is known. What it was judged by is dropped when that fails, to be made anew."""
        session = known.header.id
        for place, event in enumerate(batch, known.next_seq):
            if event["seq"] != place:
                if known.revision is not None and self._backend.revision(session, None) != known.revision:
                    raise LogChanged
                detail = f"the batch has the number {event['seq']} where {place} was expected"
                raise SessionWriteRefused(session, "seq", detail)
        judge = None
        if not judged:
            judge = known.judge or self._judge_of(known)
            known.judge = None
            for event in batch:
                judge.admit(event)
        if known.revision is None:
            known.revision, known.hold = self._backend.publish(known.header, batch, hold)
        else:
            known.revision = self._backend.append(known.header, batch, known.revision, known.hold)
        known.judge = judge
        known.next_seq += len(batch)
        self._reads.drop(session)

    def _judge_of(self, known: Known) -> EventJudge:
        if known.revision is None:
            return EventJudge(known.header, (), known.header.id)
        stored = self._reads.read(known.header.id).stored
        if stored.revision != known.revision:
            raise LogChanged
        return EventJudge(stored.header, stored.events, known.header.id)

    def _adopted(self, session: str, signal: Cancellation | None) -> tuple[Read[Source], Known]:
        """The session, known from now on, and repaired where it had to be."""
        known = self._known.get(session)
        if known is not None and known.revision is None:
            raise self._reads.missing(session)
        for _ in range(_TRIES):
            read = self._reads.read(session, signal)
            if read.is_sound:
                stored = read.stored
                if known is None or known.revision != stored.revision:
                    known = self._known.remember(Known(stored.header, len(stored.events), stored.revision, None))
                return read, known
            self._reads.drop(session)
            try:
                self._backend.repair(read.stored)
            except LogChanged:
                continue
        raise SessionBusy(session, "somebody else keeps writing to its log")

    def _check_free(self, session: str) -> None:
        if session in self._live or session in self._reserved:
            raise SessionBusy(session, f"it is {'live' if session in self._live else 'reserved'} in this process")

    def _load_live(self, live: LiveSession) -> SessionInspection:
        live.flush()
        found = live.inspection()
        if not found.events:
            raise self._reads.missing(live.meta.id)
        if closing_of(found.events, live.meta.version, live.meta.id):
            raise SessionWriteRefused(live.meta.id, "live", "the session is live and its turn open")
        return found

    def _go_live(self, known: Known, events: Sequence[Event]) -> LiveSession:
        session = known.header.id

        def write(batch: Sequence[Event]) -> None:
            with self._turns.of(session):
                try:
                    self._store(known, list(batch), hold=True, judged=True)
                except LogChanged:
                    raise SessionWriteRefused(session, "live", "somebody else wrote to the log") from None

        def released() -> None:
            with self._turns.of(session):
                del self._live[session]
                self._known.forget(session)

        known.owned = True
        live = LiveSession(known.header, events, write=write, released=released, batch_seconds=self._batch_seconds)
        self._live[session] = live
        return live

    def _publish(self, known: Known, prepared: SessionInspection, now: int) -> LiveSession:
        session = prepared.meta.id
        with self._turns.of(session):
            self._reserved.discard(session)
            live = self._go_live(known, prepared.events)
        if prepared.events[-1]["type"] != _SEED_END:
            live.record(_SEED_END, {}, now=now)
        return live

    def _dispose(self, session: str) -> None:
        with self._turns.of(session):
            self._reserved.discard(session)
            self._known.forget(session)


_SEED_END: Final = "session/end-seed"


def _seed_end(seq: int, now: int) -> Event:
    return {"type": _SEED_END, "seq": seq, "time": now, "data": {}}
