"""Export as a worker does it."""

from __future__ import annotations

from functools import cache

from storage.objects import ObjectStore, StoreSettings
from storage.zone import Zone
from tasks.export.batch import export_one
from tasks.export.manifest import Manifest, read_manifest
from tasks.export.outcome import ExportOptions, ExportOutcome
from tasks.shards.work import Tell, Work, opened

__all__ = ["ExportWork"]


class ExportWork(Work[ExportOutcome]):
    """Export conversations of a zone to `to`."""

    zone: str
    store: StoreSettings
    to: str
    options: ExportOptions

    def do(self, name: str, tell: Tell) -> ExportOutcome:
        exports, manifest = _exports(self.to, self.store)
        return export_one(Zone(opened(self.zone, self.store)), exports, name, self.options, manifest)

    def outcome(self, data: str) -> ExportOutcome:
        return ExportOutcome.model_validate_json(data)

    def failed(self, name: str, why: str) -> ExportOutcome:
        return ExportOutcome(conversation=name, state="failed", reason=why)


@cache
def _exports(url: str, settings: StoreSettings) -> tuple[ObjectStore, Manifest]:
    """Where exports go, and what lay there when the worker began."""
    exports = opened(url, settings)
    return exports, read_manifest(exports)
