"""A session under way: what happens is taken at once and stored in the background, a batch every 200 ms at most.

`flush` is the checkpoint: when it returns, all that was recorded before is durable. What could not be stored is kept,
in order, and tried again with the next event or the next flush (DSH specification, section 12).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from schemas.dsh import Event, EventJudge, LogHeader, NotLossless, snapshot
from schemas.errors import SessionWriteRefused
from storage.session_logs.persistence import SessionInspection

__all__ = ["LiveSession"]

_log = logging.getLogger("sessionmill.session_logs")


class LiveSession:
    """Made by `SessionPersistence.begin` or `Preparation.publish`; use it as a context, or close it.

    Its methods may be called from several threads. ``write`` makes a batch durable, ``released`` is called once, when
    all is stored and the session is closed.
    """

    def __init__(
        self,
        meta: LogHeader,
        events: Sequence[Event],
        *,
        write: Callable[[Sequence[Event]], None],
        released: Callable[[], None],
        batch_seconds: float,
    ) -> None:
        self.meta = meta
        self._events = list(events)
        self._judge = EventJudge(meta, self._events, meta.id)
        self._write = write
        self._released = released
        self._batch_seconds = batch_seconds
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._pending: list[Event] = []
        self._due: float | None = None
        self._closing = self._closed = False
        self._worker: threading.Thread | None = None

    @property
    def next_seq(self) -> int:
        """The number that the next event gets."""
        return len(self._events)

    def inspection(self) -> SessionInspection:
        """The session as it is now, stored or not."""
        with self._changed:
            return SessionInspection(self.meta, tuple(self._events))

    def record(self, kind: str, data: Any, *, now: int, **placed: Any) -> Event:
        """Take an event that happened ``now`` (milliseconds since 1970), and give it its number; ``placed`` are
        ``surfaceOp``, ``sourceEventSeqs`` and ``ignorable``. The event, which is borrowed.

        Raises SessionWriteRefused (``closed``, ``not_json``), LogEventRejected or LogUnsupported; then nothing has
        happened.
        """
        with self._changed:
            if self._closing:
                raise SessionWriteRefused(self.meta.id, "closed", "the session is closed")
            taken = {"type": kind, "seq": len(self._events), "time": now, "data": data, **placed}
            try:
                event: Event = snapshot(taken)
            except NotLossless as error:
                detail = f"event {kind!r:.60} is not losslessly JSON-serializable: {error}"
                raise SessionWriteRefused(self.meta.id, "not_json", detail) from None
            self._judge.admit(event)
            self._events.append(event)
            self._pending.append(event)
            if self._due is None:
                self._due = time.monotonic() + self._batch_seconds
                self._start_worker()
                self._changed.notify_all()
            return event

    def flush(self) -> None:
        """Store everything that was recorded. Raises what keeps it from being stored; the events are kept."""
        with self._writing:
            while True:
                with self._changed:
                    batch, self._pending = self._pending, []
                    self._due = None
                if not batch:
                    return
                try:
                    self._write(batch)
                except BaseException:
                    with self._changed:
                        # Without a time it is due no more: the next event or flush tries again.
                        self._pending[:0] = batch
                        self._due = None
                    raise

    def close(self) -> None:
        """Store what is left, and let others have the session. Raises as `flush` does; then it may be tried again."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._worker is not None:
            self._worker.join()
            self._worker = None
        self.flush()
        with self._changed:
            if self._closed:
                return
            self._closed = True
        self._released()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _start_worker(self) -> None:
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name=f"session log {self.meta.id!r:.40}", daemon=True)
            self._worker.start()

    def _work(self) -> None:
        """Store each batch when its time has come, until the session is closed."""
        while True:
            with self._changed:
                while not self._closing and (self._due is None or self._due > time.monotonic()):
                    self._changed.wait(None if self._due is None else self._due - time.monotonic())
                if self._closing:
                    return
            try:
                self.flush()
            except Exception as error:  # it is kept, with the batch: the next flush raises it
                _log.warning("session %r: a batch could not be stored and is kept: %s", self.meta.id, error)
