"""The rules that every event of a log keeps (DSH specification, sections 3 and 4; version 4: 4 and 5).

Only envelope, messages and surface are judged, as the original judges them: what other events hold is theirs.
"""

from __future__ import annotations

from typing import Any

from schemas._dsh_catalogue import REFUSED_TYPES, known_types, surface_types
from schemas._dsh_json import MAX_SAFE, is_safe
from schemas._dsh_messages import message_fault
from schemas._dsh_surface import Surface

__all__ = ["EventFault", "EventRules"]

Event = dict[str, Any]

_REQUIRED = {"type", "seq", "time", "data"}
_ENVELOPE = _REQUIRED | {"surfaceOp", "sourceEventSeqs", "ignorable"}
_DEFAULTED = {"reasoningEffort", "maxTokens"}
MAX_SOURCES = 4_000_000
"""So many citations of other events one log may hold; on disk a range makes any number of them in a few bytes."""


class EventFault(ValueError):
    """How an event breaks a rule; ``rule`` is ``unknown_type`` where a later program may know better."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.detail = detail


class EventRules:
    """Judges the events of one log in their order. One that is refused leaves no trace: another can take its place."""

    def __init__(self, generation: int) -> None:
        self._generation = generation
        self._known = known_types(generation)
        self._on_surface = surface_types(generation)
        self._surface = Surface(generation)
        self._results: dict[int, Any] = {}
        self._sources = 0

    def check_retired(self, event: Event) -> None:
        """Raise EventFault (``retired``) for a type that this generation has no longer."""
        kind = event.get("type")
        if isinstance(kind, str) and kind in REFUSED_TYPES[self._generation]:
            raise EventFault("retired", f"{kind} is no event of this generation")

    def check_type(self, event: Event) -> None:
        """Raise EventFault (``unknown_type``) for a type that is neither known nor marked as one to ignore."""
        kind = event.get("type")
        if not isinstance(kind, str) or kind not in self._known:
            if event.get("ignorable") is not True:
                raise EventFault("unknown_type", f"{kind!r:.60} is no known type, and not marked as one to ignore")
            if not isinstance(kind, str) or not kind:
                raise EventFault("envelope", "type is no text, or empty")

    def check(self, event: Event) -> Event:
        """``event``, whose type has been checked, with each event that it cites written out. Raises EventFault."""
        kind = event.get("type")
        if not _REQUIRED <= event.keys() <= _ENVELOPE:
            odd = min(event.keys() - _ENVELOPE, default=None)
            raise EventFault("envelope", f"unknown key {odd!r}" if odd else "type, seq, time or data is missing")
        if type(event["time"]) is not int and not is_safe(event["time"], lowest=-MAX_SAFE):
            raise EventFault("envelope", "time is no whole number of milliseconds")
        if not is_safe(abs(event["time"])):
            raise EventFault("envelope", "time is beyond what the format can hold")
        if "ignorable" in event and event["ignorable"] is not True:
            raise EventFault("envelope", "ignorable is there and not true")
        if kind == "request/header":
            _check(_request_header_fault(event["data"]), "request_header")
        if kind not in self._on_surface:
            if "surfaceOp" in event or "sourceEventSeqs" in event:
                raise EventFault("surface", f"{kind!r:.60} is never on the surface")
            return event
        if "surfaceOp" not in event:
            raise EventFault("surface", f"{kind} does not say where on the surface it goes")
        _check(message_fault(kind, event["data"], self._generation), "message")
        if "sourceEventSeqs" in event:
            event = self._with_sources(event)
        self._place(event)
        return event

    def _with_sources(self, event: Event) -> Event:
        kind, cited, seq = event["type"], event["sourceEventSeqs"], event["seq"]
        if not isinstance(cited, list):
            raise EventFault("sources", "sourceEventSeqs is no list")
        sources = _expanded(cited, seq) if self._generation else cited
        if self._sources + len(sources) > MAX_SOURCES:
            raise EventFault("too_large", f"more than {MAX_SOURCES} citations of other events")
        if not all(is_safe(each) and each < seq for each in sources) or len(set(sources)) != len(sources):
            raise EventFault("sources", "sourceEventSeqs names an event twice, or one that does not come before")
        if kind == "assistant/message":
            if self._generation >= 2:
                raise EventFault("sources", "an answer cites no events")
        elif not sources:
            raise EventFault("sources", "sourceEventSeqs is empty")
        self._sources += len(sources)
        return {**event, "sourceEventSeqs": sources} if sources is not cited else event

    def _place(self, event: Event) -> None:
        kind, seq = event["type"], event["seq"]
        gone = self._surface.span(event["surfaceOp"])
        if gone is None:
            raise EventFault("surface", "surfaceOp names no span of the surface")
        if gone and not set(gone) <= set(event.get("sourceEventSeqs", ())):
            raise EventFault("surface", "a replacement does not cite all that it replaces")
        if kind == "tool/result":
            said = _without_content(event)
            if gone and (len(gone) > 1 or said != self._results.get(gone[0])):
                raise EventFault("surface", "a tool's result replaces something else than the content of one result")
            self._results[seq] = said
        self._surface.place(seq, gone)


def _check(fault: str | None, rule: str) -> None:
    if fault:
        raise EventFault(rule, fault)


def _expanded(cited: list[Any], seq: int) -> list[Any]:
    """Every event cited: on disk a run of them can be a pair of its first and last."""
    if not any(isinstance(each, list) for each in cited):
        return cited
    sources: list[int] = []
    latest = -1
    for each in cited:
        pair = each if isinstance(each, list) else [each, each]
        if len(pair) != 2 or not all(map(is_safe, pair)) or not latest < pair[0] <= pair[1] < seq:
            raise EventFault("sources", "sourceEventSeqs holds a range that is none, or out of order")
        if pair[1] - pair[0] > MAX_SOURCES:
            raise EventFault("too_large", f"more than {MAX_SOURCES} citations of other events")
        sources.extend(range(int(pair[0]), int(pair[1]) + 1))
        latest = int(pair[1])
    return sources


def _request_header_fault(data: Any) -> str | None:
    header = data.get("header") if isinstance(data, dict) else None
    config = header.get("config") if isinstance(header, dict) else None
    if not isinstance(header, dict) or not isinstance(config, dict):
        return "a request/header without header.config"
    for key in ("provider", "model"):
        if not isinstance(config.get(key), str) or not config[key]:
            return f"a request/header without config.{key}"
    if "reasoningEffort" in config and not (isinstance(config["reasoningEffort"], str) and config["reasoningEffort"]):
        return "a request/header with an empty config.reasoningEffort"
    defaults = header.get("adapterDefaults", {})
    if not isinstance(defaults, dict) or not defaults.keys() <= _DEFAULTED & config.keys():
        return "adapterDefaults names something else than a setting that is there"
    if not all(value is True for value in defaults.values()):
        return "adapterDefaults holds something else than true"
    return "a request/header of reason fallback" if data.get("reason") == "fallback" else None


def _without_content(event: Event) -> Any:
    """All that a tool's result says but for its content."""
    data = event["data"]
    message = data["message"]
    if message["role"] == "tool":
        return {**data, "message": {**message, "content": None}}
    return {**data, "message": {**message, "content": {**message["content"][0], "content": None}}}
