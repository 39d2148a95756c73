"""Export one conversation: its session becomes a `.relavium.yaml` in the exports folder once it is completed.

The file is derived: the same rounds and options give the same bytes. It is replaced whole, and only when its bytes
differ, so that whoever watches the folder sees a change only where there is one.
"""

from __future__ import annotations

import hashlib
from typing import Final

from schemas.errors import ObjectMissing
from schemas.relavium import AgentSessionRecord, SessionMessage
from schemas.session_data import read_session_data
from storage.objects import ObjectStore
from storage.zone import Zone
from tasks.export.agent_session import agent_session
from tasks.export.completion import why_unfinished
from tasks.export.conversation import Conversation, read_conversation
from tasks.export.exchanges import exchanges_of
from tasks.export.manifest import Manifest, file_name
from tasks.export.outcome import ExportedFile, ExportOptions, ExportOutcome, RoundOfFile
from tasks.export.own_session import NO_RECORD, OWN, own_session, why_own_unfinished
from tasks.export.scaffold import scaffold
from tasks.export.withholding import withhold_session

__all__ = ["export_conversation", "exported_bytes", "kept_on_request"]

EXPORTER = 2
"""Counts the changes of what is exported; a file of another number is made again."""

_SECRETS: Final = {None: "as-usual", True: "keep", False: "withhold"}


def export_conversation(
    zone: Zone, exports: ObjectStore, conversation: str, options: ExportOptions, manifest: Manifest
) -> ExportOutcome:
    """Bring the conversation's file up to its rounds. `manifest` is what stood in `exports` before.

    Raises as `read_conversation` does; nothing is written then.
    """
    name = file_name(conversation)
    known = manifest.files.get(name)
    if known is not None and _stands(zone, exports, conversation, options, known, name):
        return ExportOutcome(conversation=conversation, state="unchanged", name=name, file=known)
    found = read_conversation(zone, conversation)
    if found is None:
        return _unfinished(conversation, "it has no rounds; run `sessionmill assemble` first")
    made = _session(found, options)
    reason = _not_assembled(zone, found) or (made if isinstance(made, str) else None)
    if isinstance(made, str) or reason is not None:
        return _unfinished(conversation, str(reason))
    file, data = exported_bytes(found, *made, options)
    file = file.model_copy(update={"landed": _landed(zone, found.session)})
    changed = _read(exports, name) != data
    if changed:
        exports.replace(name, data)
    return ExportOutcome(conversation=conversation, state="written" if changed else "unchanged", name=name, file=file)


def _session(
    conversation: Conversation, options: ExportOptions
) -> tuple[AgentSessionRecord, list[SessionMessage]] | str:
    """The conversation as a session, or why it is not over. Relavium's own is the one that landed."""
    if conversation.source == OWN:
        own = own_session(conversation)
        if own is None:
            return NO_RECORD
        reason = why_own_unfinished(own, conversation, as_of=options.as_of, completed_after=options.completed_after)
        return reason or (own.record, own.messages)
    exchanges = exchanges_of(conversation)
    reason = why_unfinished(conversation, exchanges, as_of=options.as_of, completed_after=options.completed_after)
    return reason or agent_session(conversation, exchanges, agent_slug=options.agent_slug)


def exported_bytes(
    conversation: Conversation,
    record: AgentSessionRecord,
    messages: list[SessionMessage],
    options: ExportOptions,
) -> tuple[ExportedFile, bytes]:
    """The session's file and what the manifest says of it. Relavium's own is exported as it is unless asked otherwise:
    its own exporter would write the same."""
    withheld: dict[str, int] = {}
    kept = conversation.source == OWN if options.keep_secrets is None else options.keep_secrets
    if not kept:
        clean = withhold_session(record, messages)
        record, messages, withheld = clean.record, clean.messages, clean.counts
    made = scaffold(record, messages)
    file = ExportedFile(
        session=conversation.session,
        conversation=conversation.id,
        agent=record.agentSlug,
        workflow=made.workflow_id,
        rounds=tuple(RoundOfFile(round=each.number, digest=each.digest) for each in conversation.rounds),
        through_seq=conversation.through_seq,
        sha256=hashlib.sha256(made.data).hexdigest(),
        bytes=len(made.data),
        turns=made.turns,
        secrets="kept" if kept else "withheld",
        withheld=withheld,
        warnings=made.warnings,
        asked=_asked(options),
    )
    return file, made.data


def kept_on_request(file: ExportedFile) -> bool:
    """Whether the file was asked for with its secrets."""
    return file.asked.endswith(f" secrets={_SECRETS[True]}")


def _unfinished(conversation: str, reason: str) -> ExportOutcome:
    return ExportOutcome(conversation=conversation, state="unfinished", reason=reason)


def _asked(options: ExportOptions) -> str:
    return f"exporter={EXPORTER} agent={options.agent_slug or ''} secrets={_SECRETS[options.keep_secrets]}"


def _stands(
    zone: Zone, exports: ObjectStore, conversation: str, options: ExportOptions, known: ExportedFile, name: str
) -> bool:
    """Whether the file is as the manifest says, and was made from the rounds and the landed files that are there now.
    The latter are told by their names and sizes; `sessionmill verify` reads them."""
    rounds = [(each.number, each.digest12) for each in zone.chain(conversation).rounds()]
    if known.asked != _asked(options) or rounds != [(each.round, each.digest[:12]) for each in known.rounds]:
        return False
    if known.landed != _landed(zone, known.session):
        return False
    data = _read(exports, name)
    return data is not None and hashlib.sha256(data).hexdigest() == known.sha256


def _landed(zone: Zone, session: str) -> str:
    """A digest of the names and sizes of all landed files: one that came later is no more to be passed over than one
    that is gone."""
    digest = hashlib.sha256()
    for ref in zone.landed_files(session):
        digest.update(f"{ref.key}\n{ref.size}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _not_assembled(zone: Zone, found: Conversation) -> str | None:
    """Why the chain cannot be trusted to show the conversation's end: records landed that it has not taken in."""
    for ref in reversed(zone.landed_files(found.session)):
        if ref.seq <= found.through_seq:
            break
        if read_session_data(zone.read(ref), name=ref.key).records:
            return f"landed sequence {ref.seq} is not assembled yet; run `sessionmill assemble` first"
    return None


def _read(exports: ObjectStore, name: str) -> bytes | None:
    try:
        return exports.read(name)
    except ObjectMissing:
        return None
