"""A reservation of a stored session: it is published once, or given back (DSH specification, section 12)."""

from __future__ import annotations

from collections.abc import Callable

from schemas.errors import SessionWriteRefused
from storage.session_logs.live import LiveSession
from storage.session_logs.persistence import Preparation, SessionInspection

__all__ = ["Reservation"]


class Reservation(Preparation):
    """``publish`` is called with its session and the time, or ``dispose`` with its id: one of them, and once."""

    def __init__(
        self,
        inspection: SessionInspection,
        publish: Callable[[SessionInspection, int], LiveSession],
        dispose: Callable[[str], None],
    ) -> None:
        self.meta = inspection.meta
        self.events = inspection.events
        self._inspection: SessionInspection | None = inspection
        self._publish = publish
        self._dispose = dispose

    def publish(self, *, now: int) -> LiveSession:
        inspection, self._inspection = self._inspection, None
        if inspection is None:
            raise SessionWriteRefused(self.meta.id, "closed", "the reservation is used up")
        return self._publish(inspection, now)

    def dispose(self) -> None:
        inspection, self._inspection = self._inspection, None
        if inspection is not None:
            self._dispose(self.meta.id)
