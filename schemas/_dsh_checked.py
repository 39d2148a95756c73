"""From events as they are stored to events that keep the rules (DSH specification, sections 3 and 10)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from schemas._dsh_chunks import ROW_TYPES
from schemas._dsh_events import EventFault, EventRules
from schemas._dsh_header import LogHeader
from schemas._dsh_legacy import LegacyShape, Upgrade
from schemas._dsh_scan import Scan
from schemas.errors import LogEventRejected, LogUnsupported

__all__ = ["EventJudge", "checked_events"]

Event = dict[str, Any]


def checked_events(found: Scan, header: LogHeader, name: str, *, first_row: int = 2) -> list[Event]:
    """The events of a scan, brought up to date, each found to keep the rules of the header's generation;
    ``first_row`` is what errors call the first of its lines.

    Raises LogEventRejected for an old shape that is none, LogUnsupported for an unknown type, LogEventRejected for an
    event that breaks a rule: each for the whole log before the next, as the original does.
    """
    events = found.events
    # A row's members are as this program makes them: only events that stand alone need a look.
    single = [line.first_seq for line in found.lines if line.events == 1]
    upgrade = Upgrade(header.id)
    rules = EventRules(header.version)
    seq = 0
    try:
        for seq in single:
            rules.check_retired(events[seq])
            if header.version < 2:
                events[seq] = upgrade(events[seq])
        for seq in single:
            rules.check_type(events[seq])
        if found.not_finite:
            seq = min(found.not_finite)
            raise EventFault("number", "a number is -0 or infinite")
        for seq in single:
            events[seq] = rules.check(events[seq])
    except LegacyShape as error:
        raise LogEventRejected(name, first_row + _index(found, seq), "legacy", str(error)) from None
    except EventFault as error:
        kind = LogUnsupported if error.rule == "unknown_type" else LogEventRejected
        raise kind(name, first_row + _index(found, seq), error.rule, error.detail) from None
    return events


def _index(found: Scan, seq: int) -> int:
    return bisect_right(found.lines, seq, key=lambda line: line.first_seq) - 1


class EventJudge:
    """The rules of one log, kept from event to event: nothing is appended that could not be read again."""

    def __init__(self, header: LogHeader, events: Iterable[Event], name: str) -> None:
        self._name = name
        self._rules = EventRules(header.version)
        self._has_rows = header.version < 2
        for event in events:  # they are stored, so they were found good
            self._rules.check(event)

    def admit(self, event: Event) -> None:
        """Take ``event`` as the next. Raises LogUnsupported or LogEventRejected as reading it would; then it is not
        taken, and another can come in its place.
        """
        try:
            self._rules.check_retired(event)
            self._rules.check_type(event)
            if self._has_rows and event["type"] in ROW_TYPES:
                raise EventFault("envelope", f"{event['type']} is what a row of several events is called")
            self._rules.check(event)
        except EventFault as error:
            kind = LogUnsupported if error.rule == "unknown_type" else LogEventRejected
            detail = f"event {event.get('seq')!r:.20}: {error.detail}"
            raise kind(self._name, None, error.rule, detail) from None
