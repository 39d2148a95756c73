"""Ingest as a worker does it."""

from __future__ import annotations

from storage.objects import StoreSettings
from storage.zone import Zone
from tasks.ingest.outcome import IngestOptions, SessionOutcome
from tasks.ingest.session import ingest_session
from tasks.shards.work import Tell, Work, opened

__all__ = ["IngestWork"]


class IngestWork(Work[SessionOutcome]):
    """Assemble and verify sessions of a zone."""

    zone: str
    store: StoreSettings
    options: IngestOptions

    def do(self, name: str, tell: Tell) -> SessionOutcome:
        return ingest_session(Zone(opened(self.zone, self.store)), name, self.options)

    def outcome(self, data: str) -> SessionOutcome:
        return SessionOutcome.model_validate_json(data)

    def failed(self, name: str, why: str) -> SessionOutcome:
        return SessionOutcome(session=name, failure=why)
