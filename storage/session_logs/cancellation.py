"""A word that the caller has lost interest: what observes a session log asks for it between its steps."""

from __future__ import annotations

import threading

__all__ = ["Cancellation", "Cancelled", "check"]


class Cancelled(Exception):
    """The reason of a cancellation that gave none."""


class Cancellation:
    """May be cancelled once, from any thread; whoever observes it then raises exactly the reason it was given."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._reason: BaseException | None = None

    def cancel(self, reason: BaseException | None = None) -> None:
        """Cancel, unless that was done before."""
        if not self._asked.is_set():
            self._reason = reason or Cancelled("cancelled")
            self._asked.set()

    @property
    def cancelled(self) -> bool:
        return self._asked.is_set()

    def check(self) -> None:
        """Raise the reason, once cancelled."""
        if self._asked.is_set() and self._reason is not None:
            raise self._reason


def check(signal: Cancellation | None) -> None:
    """Raise the signal's reason, where there is one that was cancelled."""
    if signal is not None:
        signal.check()
