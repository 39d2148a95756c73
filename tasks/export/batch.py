"""Export many conversations, one after another, and record them in the manifest at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from schemas.errors import RejectedData
from storage.objects import ObjectStore
from storage.zone import Zone
from tasks.export.manifest import Manifest, file_name, read_manifest, record_exports
from tasks.export.outcome import ExportedFile, ExportOptions, ExportOutcome
from tasks.export.session import export_conversation, kept_on_request
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
    """The conversation exported; bad data is an outcome. An earlier file that stays is named when it holds secrets that
    were to be withheld now."""
    try:
        outcome = export_conversation(zone, exports, conversation, options, manifest)
    except BAD_DATA as error:
        rule = error.rule if isinstance(error, RejectedData) else "unreadable"
        outcome = ExportOutcome(conversation=conversation, state="rejected", rule=rule, reason=str(error))
    if outcome.file is not None:
        return outcome
    name = file_name(conversation)
    known = manifest.files.get(name)
    warning = _warning_of_secrets(known, options)
    if known is None or warning is None or exports.stat(name) is None:
        return outcome
    warned = known.model_copy(update={"warnings": tuple(dict.fromkeys((*known.warnings, warning)))})
    return outcome.model_copy(update={"name": name, "file": warned})


def _warning_of_secrets(known: ExportedFile | None, options: ExportOptions) -> str | None:
    """What to say of a file that stays because it cannot be made again now; None when it is as asked."""
    if known is None or known.secrets != "kept" or options.keep_secrets:
        return None
    requested = kept_on_request(known)
    if options.keep_secrets is None and not requested:
        return None
    return f"holds secrets {'kept on request' if requested else 'as recorded'}; it is from before, and stays"


def record_outcomes(exports: ObjectStore, outcomes: Iterable[ExportOutcome]) -> None:
    """Put what stands exported into the manifest."""
    record_exports(exports, {each.name: each.file for each in outcomes if each.file is not None})
