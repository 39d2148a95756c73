"""What a worker does with each name of its shard: a plain value that crosses the process boundary as JSON.

Each capability has its own (`tasks.ingest.work`, `tasks.verify.work`, …); the worker knows none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from storage.objects import ObjectStore, StoreSettings, open_store

__all__ = ["Outcome", "Tell", "Work", "opened"]


class Outcome(Protocol):
    """What came of one name: a session as a rule."""

    @property
    def session(self) -> str: ...


One = TypeVar("One", bound=Outcome)
Tell = Callable[[BaseModel], None]
"""Takes news of work that goes on, for whoever waits for its outcome."""


class Work(BaseModel, ABC, Generic[One]):
    """Work on names, one after another. `do` runs in the worker's process; the rest where it was asked for."""

    model_config = ConfigDict(frozen=True)

    @abstractmethod
    def do(self, name: str, tell: Tell) -> One:
        """The outcome. A `SessionmillError` ends the shard; any other error is a fault of ours, and fails the name."""

    @abstractmethod
    def outcome(self, data: str) -> One:
        """The outcome in this JSON text."""

    @abstractmethod
    def failed(self, name: str, why: str) -> One:
        """The outcome of a name that the system failed to work on."""


@cache
def opened(url: str, settings: StoreSettings) -> ObjectStore:
    """The store at `url`, one for the whole process."""
    return open_store(url, settings=settings)
