"""Every error this project raises on purpose.

::

    SessionmillError
     ├─ TransientError                   trying again may help
     │   ├─ StoreUnavailable
     │   ├─ SessionBusy                  somebody has the session's log open for writing
     │   └─ ServerUnavailable            the Prefect server, or its temporary API
     └─ TerminalError                    trying again cannot help
         ├─ WrongUse                     bad options or configuration (exit 2)
         │   ├─ ConfigurationRejected
         │   ├─ AgentSpecRejected        an agent's specification
         │   └─ RunnerMissing            a program or package that an agent needs is not installed
         ├─ StoreError                   the store answered, and the answer is no
         │   ├─ ObjectMissing
         │   ├─ ObjectExists
         │   ├─ KeyRefused
         │   ├─ ObjectTooLarge
         │   ├─ AccessRefused            the system does not let this process at a file or folder
     │   └─ SessionWriteRefused      a session's log cannot take what was to be written
         ├─ RejectedData                 the data breaks a rule of its format (exit 1)
         │   ├─ SessionDataRejected      a landed .sd file
         │   ├─ RoundRejected            a round .sf file
         │   ├─ ChainRejected            rounds that do not form one chain
         │   ├─ SessionRejected          a session that cannot be assembled
         │   ├─ LogRejected              a DeepSeek Harness session log, or where it lies
         │   │   ├─ LogUnsupported       sound, but of a generation or with events this reader does not know
         │   │   └─ LogEventRejected     an event breaks a rule, or the order of events does
         │   ├─ UsageRejected            the usage data set
         │   ├─ RunRecordRejected        a headless run's start or end
         │   └─ FieldRejected            a field of a Relavium document
         │       ├─ AgentSessionRejected a session's record, messages or stored rows
         │       └─ WorkflowRejected     a .relavium.yaml workflow
         └─ ClaimUnbuildable             a claimed round's evidence is gone or changed

A retry policy asks only ``isinstance(error, TransientError)``. Each error carries the facts of its sentence as
attributes and survives pickling with them: errors cross process boundaries when work is spread over workers.
"""

from __future__ import annotations

from typing import Any


class SessionmillError(Exception):
    """Root of the tree; ``str()`` is one sentence a person can act on."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls ``cls(*args)`` with the sentence, which no class below accepts.
        return _revive, (type(self), self.args, dict(self.__dict__))


def _revive(kind: type[SessionmillError], args: tuple[Any, ...], fields: dict[str, Any]) -> SessionmillError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class TransientError(SessionmillError):
    """The same call may succeed later."""


class StoreUnavailable(TransientError):
    """The store did not answer, or answered that it cannot right now."""

    def __init__(self, key: str, operation: str, detail: str) -> None:
        super().__init__(f"{key}: the store did not complete {operation}: {detail} — try again, or check the endpoint")
        self.key = key
        self.operation = operation
        self.detail = detail


class SessionBusy(TransientError):
    """A session whose log somebody has open for writing: another process, or this one."""

    def __init__(self, session: str, detail: str) -> None:
        super().__init__(f"session {session!r}: {detail} — try again when it is closed there")
        self.session = session
        self.detail = detail


class ServerUnavailable(TransientError):
    """The Prefect server that records flow runs did not answer, or answered that it cannot."""

    def __init__(self, server: str, detail: str) -> None:
        super().__init__(
            f"{server}: {detail} — start it or correct PREFECT_API_URL; without that variable a temporary one is used"
        )
        self.server = server
        self.detail = detail


class TerminalError(SessionmillError):
    """The same call will fail again until something else changes."""


class WrongUse(TerminalError):
    """An option or an argument that cannot be meant."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class ConfigurationRejected(WrongUse):
    """A setting, from a file or the environment, that is unknown or has no usable value."""


class AgentSpecRejected(WrongUse):
    """An agent's specification that cannot be meant; ``field`` is its path (``limits.turns``), "" for the whole."""

    def __init__(self, file: str, rule: str, field: str, detail: str) -> None:
        place = f"{file}: {field}" if field else file
        super().__init__(f"{place}: {rule}: {detail} — correct it; nothing was run")
        self.file = file
        self.rule = rule
        self.field = field
        self.detail = detail


class RunnerMissing(WrongUse):
    """The program or package behind an agent's runner is not there; ``remedy`` says what to install or set."""

    def __init__(self, runner: str, detail: str, remedy: str) -> None:
        super().__init__(f"runner {runner}: {detail} — {remedy}")
        self.runner = runner
        self.detail = detail
        self.remedy = remedy


class StoreError(TerminalError):
    """The store refused, for a reason that stays."""


class ObjectMissing(StoreError):
    """No object has this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key}: no such object — check the zone and the key")
        self.key = key


class ObjectExists(StoreError):
    """The key is taken; nothing that exists is ever overwritten."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key}: an object with this key already exists, and it is never overwritten")
        self.key = key


class KeyRefused(StoreError):
    """A key that would leave the root or cannot be stored; with an ``operation``, one that the store refused to carry
    out here, and may carry out elsewhere or later."""

    def __init__(self, key: str, detail: str, operation: str | None = None) -> None:
        why = "not usable as a key" if operation is None else f"the store refused to {operation} it"
        super().__init__(f"{key!r}: {why}: {detail}")
        self.key = key
        self.detail = detail


class ObjectTooLarge(StoreError):
    """An object above the size (bytes) that may be read into memory."""

    def __init__(self, key: str, size: int, limit: int) -> None:
        super().__init__(f"{key}: {size} bytes, above the limit of {limit} — raise the limit if the object is meant")
        self.key = key
        self.size = size
        self.limit = limit


class AccessRefused(StoreError):
    """A file or folder that the operating system keeps this process from, or that is not safe to use."""

    def __init__(self, name: str, operation: str, detail: str) -> None:
        super().__init__(f"{name}: the system does not allow to {operation} it: {detail} — check owner and rights")
        self.name = name
        self.operation = operation
        self.detail = detail


class SessionWriteRefused(StoreError):
    """What cannot be written to a session's log; ``rule`` is ``exists``, ``seq``, ``not_json``, ``live``, ``closed`` or
    ``read_only``.
    """

    def __init__(self, session: str, rule: str, detail: str) -> None:
        super().__init__(f"session {session!r}: {rule}: {detail} — nothing of it was written")
        self.session = session
        self.rule = rule
        self.detail = detail


class RejectedData(TerminalError):
    """Data that breaks a rule of its format.

    ``file`` names the object (or session or chain), ``row`` counts from 1 and is None when the rule is about the whole
    file, ``rule`` is the specification's short name, ``detail`` is for people.
    """

    advice = "the data is kept as it is; look at it with `sessionmill check`"

    def __init__(self, file: str, row: int | None, rule: str, detail: str) -> None:
        place = file if row is None else f"{file} row {row}"
        super().__init__(f"{place}: {rule}: {detail} — {self.advice}")
        self.file = file
        self.row = row
        self.rule = rule
        self.detail = detail


class SessionDataRejected(RejectedData):
    """A landed ``.sd`` file breaks a rule of section 3; rows count from 1 after the header."""

    advice = "land the source again, or take the file out of the zone"


class RoundRejected(RejectedData):
    """A round ``.sf`` file breaks a rule of section 7; rows count its non-empty lines from 1."""

    advice = (
        "restore it from a copy, or remove it and run `sessionmill assemble`: the claim beside it gives the same bytes"
    )


class ChainRejected(RejectedData):
    """Rounds that do not form one chain: order, previous link, conversation, session, parser or policy."""

    advice = "restore the chain's rounds and claims from a copy, or assemble into a new zone"


class SessionRejected(RejectedData):
    """A session without usable evidence, or whose chain reaches beyond it."""

    advice = "check that all landed files of the session are in the zone"


class LogRejected(RejectedData):
    """A DeepSeek Harness session log that cannot be read, or lies where it must not; rows are lines, the header's is
    1.
    """

    advice = "restore it from a copy, or from the machine that wrote it"


class LogUnsupported(LogRejected):
    """A log of a generation, or with a type of event, that this reader does not know; nothing says it is damaged."""

    advice = "keep it, and read it with a release that knows it"


class LogEventRejected(LogRejected):
    """An event of a log that breaks a rule of its type, or cannot follow the events before it."""


class UsageRejected(RejectedData):
    """The usage data set's manifest, or one of its files."""

    advice = "restore it from a copy; the data set itself can be built again with `sessionmill usage` into a new folder"


class RunRecordRejected(RejectedData):
    """The start or the end of a headless run, in the archive, that is no such document."""

    advice = "move the run's folder out of the archive"


class FieldRejected(RejectedData):
    """A field of a Relavium document breaks a rule; ``field`` is its path (``content.1.id``), "" for the whole."""

    def __init__(self, file: str, row: int | None, rule: str, field: str, detail: str) -> None:
        super().__init__(file, row, rule, f"{field}: {detail}" if field else detail)
        self.field = field


class AgentSessionRejected(FieldRejected):
    """A session's record, or one of its messages; rows count messages from 1 in the order they were given."""

    advice = "correct it where it comes from; nothing is exported of this session"


class WorkflowRejected(FieldRejected):
    """A workflow that Relavium would not parse; rows are lines, for what breaks YAML's own rules."""

    advice = "correct the file, or export the session again"


class ClaimUnbuildable(TerminalError):
    """A claimed round that cannot be rebuilt to the claimed digest."""

    def __init__(self, conversation: str, round: int, detail: str) -> None:
        super().__init__(
            f"conversation {conversation}: claimed round {round} cannot be rebuilt: {detail} — "
            "bring back the landed files the claim was made from"
        )
        self.conversation = conversation
        self.round = round
        self.detail = detail
