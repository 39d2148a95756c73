"""From events as they are stored to events that keep the rules (DSH specification, sections 3 and 10)."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from schemas._dsh_events import EventFault, EventRules
from schemas._dsh_header import LogHeader
from schemas._dsh_legacy import LegacyShape, Upgrade
from schemas._dsh_scan import Scan
from schemas.errors import LogEventRejected, LogUnsupported

__all__ = ["checked_events"]

Event = dict[str, Any]


def checked_events(found: Scan, header: LogHeader, name: str, *, first_row: int = 2) -> list[Event]:
    """The events of a scan, brought up to date, each found to keep the rules of the header's generation;
    ``first_row`` is what errors call the first of its lines.

    Raises LogUnsupported for an unknown type, LogEventRejected for an event that breaks a rule.
    """
    upgrade = Upgrade(header.id) if header.version < 2 else None
    rules = EventRules(header.version)
    events = found.events
    position = 0
    try:
        for line in found.lines:
            position = line.first_seq
            if found.not_finite and not found.not_finite.isdisjoint(range(position, position + line.events)):
                raise EventFault("number", "a number is -0 or infinite")
            if line.events != 1:
                continue  # a row's members are as this program makes them
            event = events[position]
            if upgrade is not None:
                event = upgrade(event)
            events[position] = rules.check(event)
    except LegacyShape as error:
        raise LogEventRejected(name, first_row + _index(found, position), "legacy", str(error)) from None
    except EventFault as error:
        kind = LogUnsupported if error.rule == "unknown_type" else LogEventRejected
        raise kind(name, first_row + _index(found, position), error.rule, error.detail) from None
    return events


def _index(found: Scan, seq: int) -> int:
    return bisect_right(found.lines, seq, key=lambda line: line.first_seq) - 1
