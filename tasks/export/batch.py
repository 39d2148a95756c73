"""Export many conversations, one after another, and record them in the manifest at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from schemas.errors import RejectedData
from storage.objects import ObjectStore
from storage.zone import Zone
from tasks.export.manifest import Manifest, read_manifest, record_exports
from tasks.export.outcome import ExportOptions, ExportOutcome
from tasks.export.session import export_conversation
from tasks.ingest.session import BAD_DATA

__all__ = ["export_one", "export_sessions", "record_outcomes"]


def export_sessions(
    zone: Zone,
    exports: ObjectStore,
    conversations: Iterable[str],
    options: ExportOptions,
    watch: Callable[[ExportOutcome], None] = lambda outcome: None,
) -> list[ExportOutcome]:
    """Each conversation's outcome, in the order given. What is not the data's fault is raised; what was written by then
    stays, and the next export records it."""
    manifest = read_manifest(exports)
    outcomes = []
    for conversation in conversations:
        outcomes.append(export_one(zone, exports, conversation, options, manifest))
        watch(outcomes[-1])
    record_outcomes(exports, outcomes)
    return outcomes


def export_one(
    zone: Zone, exports: ObjectStore, conversation: str, options: ExportOptions, manifest: Manifest
) -> ExportOutcome:
    """The conversation exported; bad data is an outcome."""
    try:
        return export_conversation(zone, exports, conversation, options, manifest)
    except BAD_DATA as error:
        rule = error.rule if isinstance(error, RejectedData) else "unreadable"
        return ExportOutcome(conversation=conversation, state="rejected", rule=rule, reason=str(error))


def record_outcomes(exports: ObjectStore, outcomes: Iterable[ExportOutcome]) -> None:
    """Put what stands exported into the manifest."""
    record_exports(exports, {each.name: each.file for each in outcomes if each.file is not None})
