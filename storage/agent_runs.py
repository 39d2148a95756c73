"""The archive of headless runs: ``runs/<agent>/<run>/`` with the run's start, its end and its transcripts.

Its documents are created once: start, end, and last that it is settled. The heartbeat between the first two is replaced
all the time and means nothing after the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from pydantic import ValidationError

from schemas.agent_record import GoingOn, Heartbeat, RunEnd, RunStart, Settlement
from schemas.errors import ObjectExists, ObjectMissing, RunRecordRejected
from schemas.times import format_time
from storage.keys import escape_id
from storage.objects import ObjectStore

__all__ = ["AgentRuns"]

R = TypeVar("R", RunStart, RunEnd, Heartbeat, GoingOn)

_START, _END, _BEAT, _SETTLED = "started.json", "ended.json", "heartbeat.json", "settled.json"


class AgentRuns:
    """The runs in one store."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def folder(self, agent: str, run: str) -> str:
        """Where all of a run lies; ends with a slash."""
        return f"runs/{escape_id(agent)}/{escape_id(run)}/"

    def begin(self, start: RunStart) -> None:
        """Raises `ObjectExists` for a run that began before."""
        self.store.create(self.folder(start.agent, start.run_id) + _START, start.model_dump_json().encode() + b"\n")

    def is_start(self, key: str) -> bool:
        """Whether this is the key of a run's start: taken, it says that the run was begun by somebody else."""
        return key.endswith(f"/{_START}")

    def beat(self, agent: str, run: str, beat: Heartbeat) -> None:
        self.store.replace(self.folder(agent, run) + _BEAT, beat.model_dump_json().encode() + b"\n")

    def add(self, agent: str, run: str, files: Iterable[tuple[str, bytes]]) -> list[str]:
        """Keep files below the run's folder by their path there; the same bytes may come again. Their paths."""
        kept = []
        for path, data in files:
            key = self.folder(agent, run) + path
            try:
                self.store.create(key, data)
            except ObjectExists:
                if self.store.read(key) != data:
                    raise
            kept.append(path)
        return kept

    def finish(self, end: RunEnd) -> bool:
        """Close a run; False where somebody closed it before, and that stands."""
        try:
            self.store.create(self.folder(end.agent, end.run_id) + _END, end.model_dump_json().encode() + b"\n")
        except ObjectExists:
            return False
        return True

    def go_on(self, agent: str, run: str, place: int, by: str, now: int) -> GoingOn:
        """Take this place, 1 and up, among the runs that go on with `run`; who has it. ``now`` in nanoseconds."""
        key = f"{self.folder(agent, run)}continued-{place}.json"
        mine = GoingOn(by=by, at=format_time(now))
        try:
            self.store.create(key, mine.model_dump_json().encode() + b"\n")
        except ObjectExists:
            return self._read(key, GoingOn) or mine
        return mine

    def settle(self, agent: str, run: str, settlement: Settlement) -> None:
        """Say that a run is settled; where that was said before, that stands."""
        with suppress(ObjectExists):
            self.store.create(self.folder(agent, run) + _SETTLED, settlement.model_dump_json().encode() + b"\n")

    def end(self, agent: str, run: str) -> RunEnd | None:
        """How a run ended; None while it is open or where there is none. Raises `RunRecordRejected`."""
        return self._read(self.folder(agent, run) + _END, RunEnd)

    def start(self, agent: str, run: str) -> RunStart | None:
        """How a run began. Raises `RunRecordRejected`."""
        return self._read(self.folder(agent, run) + _START, RunStart)

    def last_beat(self, agent: str, run: str) -> Heartbeat | None:
        """When a run was last known to be alive. Raises `RunRecordRejected`."""
        return self._read(self.folder(agent, run) + _BEAT, Heartbeat)

    def runs(self, agent: str) -> list[str]:
        """The runs of an agent by name; names begin with the time, so the last is the newest."""
        return self.store.children(f"runs/{escape_id(agent)}/")[0]

    def open_runs(self, agent: str) -> Iterator[RunStart]:
        """Runs of an agent that began and were not closed."""
        return (start for start, end in self.unfinished(agent) if end is None)

    def unfinished(self, agent: str) -> Iterator[tuple[RunStart, RunEnd | None]]:
        """Runs of an agent that began and were not closed, or were closed and not settled. A folder whose documents
        cannot be read is passed over."""
        for run in self.runs(agent):
            folder = self.folder(agent, run)
            known = {each.key.removeprefix(folder) for each in self.store.children(folder)[1]}
            if _START not in known or _SETTLED in known:
                continue
            with suppress(RunRecordRejected):
                end = self.end(agent, run)
                if (end is None or end.to_settle) and (start := self.start(agent, run)) is not None:
                    yield start, end

    def _read(self, key: str, kind: type[R]) -> R | None:
        try:
            data = self.store.read(key)
        except ObjectMissing:
            return None
        try:
            return kind.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise RunRecordRejected(key, None, "record", f"{where}: {first['msg']}") from None
