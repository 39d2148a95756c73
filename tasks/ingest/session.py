"""Ingest one session: assemble it, verify it, and set it aside with its reasons when it is bad.

What was found good is remembered beside the session's index, under a digest of all it depended on: the landed files'
keys and sizes, the cursors, the chain's rounds, and the interpretation. While those stand, a later run only lists
them. The memory is derived: without it the session is assembled (no round comes of it) and verified once more.
"""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ValidationError

from schemas.errors import ClaimUnbuildable, KeyRefused, ObjectTooLarge, RejectedData, TerminalError
from storage.caches import read_cache, write_cache
from storage.zone import Zone
from tasks.assemble import AssembleOptions, SessionAssembly, assemble_session
from tasks.assemble.policy import IDLE_GAP, PARSER, policy
from tasks.ingest.outcome import REASONS_KEPT, IngestOptions, Reason, SessionOutcome
from tasks.verify import verify_session
from tasks.verify.problems import refused_name

__all__ = ["BAD_DATA", "ingest_session", "quarantine_nameless"]

BAD_DATA = (RejectedData, ClaimUnbuildable, KeyRefused, ObjectTooLarge)
"""Errors that set one session aside; any other is about the system, and stops what it meets."""

MEMORY = "index/sessionmill.ingested"
MEMORY_VERSION = 1


class _Memory(BaseModel):
    depends_on: str
    outcome: SessionOutcome


def ingest_session(zone: Zone, session: str, options: IngestOptions) -> SessionOutcome:
    """Bring `session` up to its landed evidence. Bad data is an outcome; what is not the data's fault is raised."""
    assembly: SessionAssembly | None = None
    reasons: list[Reason] = []
    try:
        known = _recall(zone, session)
        if known is not None:
            return known
        assembly = assemble_session(
            zone, session, AssembleOptions(now=options.now, max_round_bytes=options.max_round_bytes)
        )
    except BAD_DATA as error:
        reasons.append(_reason(session, error))
    verification = verify_session(zone, session)
    found = (Reason(file=p.file, row=p.row, rule=p.rule, detail=p.detail) for p in verification.problems)
    # What stopped the assembly is as a rule among what verification finds, and then counts once.
    places = {(reason.file, reason.row, reason.rule) for reason in reasons}
    reasons += [reason for reason in found if (reason.file, reason.row, reason.rule) not in places]
    outcome = _outcome(session, assembly, verification.records, reasons)
    if reasons:
        _quarantine(zone, outcome)
    else:
        zone.clear_quarantine(session)
        # A folder without a record may be nobody's session: nothing of ours is put there.
        if outcome.records or outcome.round:
            _remember(zone, outcome)
    return outcome


def quarantine_nameless(zone: Zone, session: str) -> SessionOutcome:
    """Set aside a session whose folder's name is not UTF-8, under its name with escapes; no key leads to its files."""
    name = session.encode("utf-8", "backslashreplace").decode()
    detail = "the name of the session's folder is not UTF-8 text; rename it"
    reason = Reason(file=name, row=None, rule="unreadable", detail=detail)
    outcome = SessionOutcome(session=name, problems=1, reasons=[reason])
    _quarantine(zone, outcome)
    return outcome


def _quarantine(zone: Zone, outcome: SessionOutcome) -> None:
    reasons = [reason.model_dump() for reason in outcome.reasons]
    zone.quarantine(outcome.session, {"problems": outcome.problems, "reasons": reasons})


def _outcome(session: str, assembly: SessionAssembly | None, records: int, reasons: list[Reason]) -> SessionOutcome:
    judged = SessionOutcome(session=session, records=records, problems=len(reasons), reasons=reasons[:REASONS_KEPT])
    if assembly is None:
        return judged
    return judged.model_copy(
        update={
            "conversation": assembly.conversation,
            "rounds_written": assembly.rounds_written,
            "round": assembly.round,
            "digest": assembly.digest,
            "nodes": assembly.nodes,
            "relations": assembly.relations,
            "open_unresolved": assembly.open_unresolved,
            "through_seq": assembly.through_seq,
        }
    )


def _reason(session: str, error: TerminalError) -> Reason:
    if isinstance(error, RejectedData):
        return Reason(file=error.file, row=error.row, rule=error.rule, detail=error.detail)
    if isinstance(error, KeyRefused):
        return Reason(file=session, row=None, rule="unreadable", detail=refused_name(error))
    # Verification calls what cannot be read by this name, too.
    rule = "claim" if isinstance(error, ClaimUnbuildable) else "unreadable"
    file = error.key if isinstance(error, ObjectTooLarge) else session
    return Reason(file=file, row=None, rule=rule, detail=str(error))


def _recall(zone: Zone, session: str) -> SessionOutcome | None:
    data = read_cache(zone.store, f"{session}/{MEMORY}")
    if data is None:
        return None
    try:
        memory = _Memory.model_validate_json(data)
    except ValidationError:
        return None
    outcome = memory.outcome
    if outcome.session != session or outcome.conversation not in ("", session) or outcome.problems:
        return None
    if memory.depends_on != _depends_on(zone, session, outcome.conversation):
        return None
    return outcome.model_copy(update={"unchanged": True})


def _remember(zone: Zone, outcome: SessionOutcome) -> None:
    """Keep a good outcome as a later run will report it: with nothing written."""
    memory = _Memory(
        depends_on=_depends_on(zone, outcome.session, outcome.conversation),
        outcome=outcome.model_copy(update={"rounds_written": 0}),
    )
    write_cache(zone.store, f"{outcome.session}/{MEMORY}", memory.model_dump_json().encode() + b"\n")


def _depends_on(zone: Zone, session: str, conversation: str) -> str:
    """A digest of what the outcome was made from, and by which interpretation. Landed files are written once: key and
    size stand for the bytes."""
    evidence = hashlib.sha256(f"{MEMORY_VERSION} {PARSER} {policy(IDLE_GAP)}".encode())
    refs, cursors = zone.landed_files_and_cursors(session)
    lines = [f"{ref.key} {ref.size}" for ref in refs]
    lines += [f"{cursor.key} {sorted(cursor.values.items())}" for cursor in cursors]
    lines += [f"{each.name} {each.size}" for each in zone.chain(conversation).rounds()] if conversation else []
    for line in lines:
        evidence.update(b"\n" + line.encode())
    return evidence.hexdigest()
