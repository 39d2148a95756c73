"""The seam behind which session logs are kept: what every backend does, whatever it keeps them in (DSH specification,
section 12).

What is stored is the events themselves, as JSON objects; there is no other persisted type. The header lies beside them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from schemas.dsh import Event, LogHeader
from schemas.errors import WrongUse
from storage.session_logs.cancellation import Cancellation

if TYPE_CHECKING:
    from storage.session_logs.live import LiveSession

__all__ = [
    "Preparation",
    "SessionInspection",
    "SessionLocation",
    "SessionPersistence",
    "SessionReader",
    "SessionSnapshot",
]


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """Where one session's own artifact is or will be: a hint, and no promise that it is there."""

    kind: str
    path: Path


@dataclass(frozen=True, slots=True)
class SessionInspection:
    """A session: its header and events. They are borrowed, perhaps by others too, and never to be changed."""

    meta: LogHeader
    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """A stored session without its events. ``revision`` changes with every append, repair or replacement of its log; it
    says nothing else, and is compared for equality alone.
    """

    header: LogHeader
    revision: str


Headers: TypeAlias = list[LogHeader]
Names: TypeAlias = list[str]
Snapshots: TypeAlias = list[SessionSnapshot]


MAX_SEQ: Final = 2**53 - 1


class SessionReader(ABC):
    """What can be seen of stored sessions. Nothing here changes anything.

    Whatever takes a ``signal`` raises the signal's own reason once that is cancelled. Whatever takes a session's id
    raises LogRejected (``missing``) when there is none, LogUnsupported when its log is of a later program, other kinds
    of LogRejected when it is damaged, and StoreUnavailable when it cannot be read now.
    """

    @abstractmethod
    def inspect(self, session: str, signal: Cancellation | None = None) -> SessionInspection:
        """The session as it stands: a turn that a crash left open is closed in memory, a torn tail is left out. One
        that is live here is seen as it is, its turn perhaps open.
        """

    @abstractmethod
    def read_from(self, session: str, from_seq: int, signal: Cancellation | None = None) -> SessionInspection:
        """The stored events from number ``from_seq`` on, none behind the end, and nothing that is not stored. Raises
        WrongUse for a number that is none.
        """

    @abstractmethod
    def list_snapshots(self, signal: Cancellation | None = None) -> Snapshots:
        """Every stored session's header and revision, its events unread."""

    def list(self, signal: Cancellation | None = None) -> Headers:
        """Every stored session's header, its events unread. A session without events is nowhere stored."""
        return [snapshot.header for snapshot in self.list_snapshots(signal)]

    def list_unreadable(self, signal: Cancellation | None = None) -> Names:
        """The names of stored logs that a listing leaves out, because their first line is no header."""
        return []

    def close(self) -> None:
        """Release what is held. Raises what keeps a live session's last events from being stored."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class SessionPersistence(SessionReader):
    """Sessions that are written as well. Its methods may be called from several threads; those for one session take
    their turns.
    """

    @abstractmethod
    def locate(self, meta: LogHeader) -> SessionLocation | None:
        """The session's own artifact, nothing being touched; None where sessions share one."""

    @abstractmethod
    def create(self, meta: LogHeader) -> None:
        """Make a session known. Nothing is stored before its first event.

        Raises SessionWriteRefused (``exists``), LogRejected (``header``) and LogUnsupported (``version``).
        """

    @abstractmethod
    def append(self, session: str, events: Sequence[Event]) -> None:
        """Store a batch, as it is now; durable when this returns, and nothing of it is stored when it raises.

        The first event's number is the next of the log, and the others follow. A session that is only stored is
        repaired first. Raises SessionWriteRefused (``seq``, ``not_json``, ``live``), LogEventRejected or LogUnsupported
        for an event that could not be read again, SessionBusy, and StoreUnavailable.
        """

    @abstractmethod
    def load(self, session: str) -> SessionInspection:
        """The session, ending with no turn open: what that takes is written to its log first.

        Raises SessionWriteRefused (``live``) for one that is live here with its turn open, and SessionBusy.
        """

    @abstractmethod
    def prepare(self, session: str, signal: Cancellation | None = None) -> Preparation:
        """Reserve a stored session for being continued; it is repaired as for `load`. Raises as `load` does."""

    @abstractmethod
    def begin(self, meta: LogHeader, seed: Sequence[Event] = (), *, now: int) -> LiveSession:
        """A new session that is live here; ``seed`` are the events it inherits, stored at once and only once, with an
        event that says where they end. ``now`` is milliseconds since 1970. Raises as `create` and `append` do.
        """


def check_number(from_seq: int) -> None:
    """Raise WrongUse for what is no event's number."""
    if type(from_seq) is not int or not 0 <= from_seq <= MAX_SEQ:
        raise WrongUse(f"the first event's number is no non-negative safe integer: {from_seq!r:.40}")


class Preparation(ABC):
    """A stored session that is reserved, and seen by nobody yet; use it as a context."""

    meta: LogHeader
    events: Sequence[Event]

    @abstractmethod
    def publish(self, *, now: int) -> LiveSession:
        """Make it live, with an event that says where it goes on. The reservation is used up."""

    @abstractmethod
    def dispose(self) -> None:
        """Give the reservation back; again does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.dispose()
