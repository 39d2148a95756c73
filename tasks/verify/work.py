"""Verification as a worker does it."""

from __future__ import annotations

from storage.objects import StoreSettings
from storage.zone import Zone
from tasks.shards.work import Tell, Work, opened
from tasks.verify.outcome import VerifyOutcome, outcome_of
from tasks.verify.session import verify_session

__all__ = ["VerifyWork"]


class VerifyWork(Work[VerifyOutcome]):
    """Verify sessions of a zone."""

    zone: str
    store: StoreSettings

    def do(self, name: str, tell: Tell) -> VerifyOutcome:
        return outcome_of(verify_session(Zone(opened(self.zone, self.store)), name))

    def outcome(self, data: str) -> VerifyOutcome:
        return VerifyOutcome.model_validate_json(data)

    def failed(self, name: str, why: str) -> VerifyOutcome:
        return VerifyOutcome(session=name, failure=why)
