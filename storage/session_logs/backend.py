"""What one kind of storage does for the coordinator, which does the rest the same for all (DSH specification, section
12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from schemas.dsh import Event, LogHeader
from storage.session_logs.cancellation import Cancellation
from storage.session_logs.persistence import SessionLocation, SessionSnapshot

__all__ = ["Hold", "LogBackend", "LogChanged", "Source", "Stored"]

Source = TypeVar("Source")


class LogChanged(Exception):
    """The stored log is not at the revision that was expected: somebody else wrote to it. It was left alone."""


@dataclass(frozen=True)
class Stored(Generic[Source]):
    """A session as it is stored. ``torn`` says what is wrong behind its events, if anything is; ``source`` is for the
    backend's own repair.
    """

    header: LogHeader
    events: list[Event]
    revision: str
    torn: str | None
    source: Source


class Hold(Protocol):
    """A log kept open for writing by one owner."""

    def release(self) -> None:
        """Let others have it; again does nothing."""


class LogBackend(Protocol[Source]):
    """Storage of session logs. Calls for one session never overlap within one process."""

    @property
    def name(self) -> str:
        """What errors call the place."""

    def locate(self, header: LogHeader) -> SessionLocation | None:
        """The session's own artifact, nothing being touched."""

    def check(self, header: LogHeader) -> None:
        """Raise SessionWriteRefused for a header that this storage would not keep as it is."""

    def read(self, session: str, signal: Cancellation | None) -> Stored[Source] | None:
        """The session, or None when none is stored."""

    def read_from(
        self, session: str, from_seq: int, signal: Cancellation | None
    ) -> tuple[LogHeader, list[Event]] | None:
        """The stored events from this number on, or None when no such session is stored."""

    def revision(self, session: str, signal: Cancellation | None) -> str | None:
        """The session's revision, or None when none is stored."""

    def publish(self, header: LogHeader, events: Sequence[Event], hold: bool) -> tuple[str, Hold | None]:
        """Store a new session with its first batch; its revision, and with ``hold`` the log kept open.

        Raises SessionWriteRefused (``exists``).
        """

    def append(self, header: LogHeader, events: Sequence[Event], revision: str, held: Hold | None) -> str:
        """Store one more batch on the log at this revision; the new one. Raises LogChanged and SessionBusy."""

    def repair(self, stored: Stored[Source]) -> None:
        """Take away a torn tail, and write the events that close an open turn. Raises LogChanged and SessionBusy."""

    def hold(self, header: LogHeader) -> Hold | None:
        """Keep a stored log open for writing, where the storage knows of such; raises SessionBusy."""

    def snapshots(self, signal: Cancellation | None) -> list[SessionSnapshot]:
        """Every stored session's header and revision."""

    def unreadable(self, signal: Cancellation | None) -> list[str]:
        """The names of stored logs whose first line is no header."""

    def close(self) -> None:
        """Release what is held."""
