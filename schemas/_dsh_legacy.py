"""Events of generation 0 as earlier programs wrote them, in today's shape (DSH specification, section 10).

Messages had no identity then, an answer's and a tool result's content lay beside the turn, and a turn's end said less.
Each old shape has exactly its keys; anything between the old and the new is refused.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard

from schemas._dsh_json import MAX_SAFE, is_safe

__all__ = ["LegacyShape", "Upgrade"]

Event = dict[str, Any]

_BARE_REASONS = {"completed", "blocked", "max-tokens", "interrupted", "disposed"}
_FAILURE: Final[dict[str, type | tuple[type, ...]]] = {
    "message": str,
    "code": str,
    "status": (int, float),
    "providerRetryAfterMs": (int, float),
    "requestId": str,
}
_OLD_ERROR_KEYS = ({"kind", "step", "message"}, {"kind", "step", "message", "code"})


class LegacyShape(ValueError):
    """An old event that has no new shape."""


class Upgrade:
    """Brings the events of one session into today's shape, one after the other."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._ids: dict[Any, Any] = {}

    def __call__(self, event: Event) -> Event:
        """``event`` itself, or what it is today. Raises LegacyShape."""
        kind, data = event.get("type"), event.get("data")
        if not isinstance(kind, str) or kind not in _UPGRADES:
            return event
        if not isinstance(data, dict):
            if kind == "steering/message":
                raise LegacyShape("a steering/message without data")
            return event  # nothing old about it; whether it is well-formed is for others to judge
        upgrade = _UPGRADES[kind]
        event = upgrade(self, event, data)
        if event["type"] == "tool/result":
            self._remember(event)
        return event

    def _turn_start(self, event: Event, data: Event) -> Event:
        if "trigger" not in data:
            return event
        trigger = data["trigger"]
        if data.keys() != {"turn", "trigger"} or not is_safe(data["turn"], lowest=1) or not _has_kind(trigger, least=1):
            raise LegacyShape("a turn/start with a trigger holds something else than the turn and the trigger's kind")
        return {**event, "data": {"turn": data["turn"]}}

    def _turn_end(self, event: Event, data: Event) -> Event:
        reason = data.get("reason")
        if data.keys() != {"turn", "reason"} or not is_safe(data["turn"], lowest=1) or not _has_kind(reason):
            raise LegacyShape("a turn/end holds something else than its turn and its reason")
        kind = reason["kind"]
        if kind in _BARE_REASONS and reason.keys() != {"kind"}:
            raise LegacyShape(f"a turn/end of kind {kind} holds more than that")
        today: Event
        if kind == "aborted" and "reason" not in reason:
            if len(reason) > 1:
                raise LegacyShape("a turn/end of kind aborted holds no reason, but more than that")
            today = {"kind": "aborted", "reason": {"kind": "legacy"}}
        elif kind == "disposed":
            today = {"kind": "aborted", "reason": {"kind": "disposed"}}
        elif kind == "error" and "error" not in reason:
            today = {"kind": "error", "error": _old_error(reason)}
        else:
            return event
        return {**event, "data": {**data, "reason": today}}

    def _steering(self, event: Event, data: Event) -> Event:
        if not is_safe(data.get("turn"), lowest=-MAX_SAFE):
            raise LegacyShape("a steering/message without its turn")
        if data.keys() == {"turn", "message"} and isinstance(data["message"], dict):
            message = data["message"]
        elif data.keys() == {"turn", "content", "source"}:
            message = {"content": data["content"], "source": data["source"]}
        else:
            raise LegacyShape("a steering/message in no shape it ever had")
        return self._user_message({**event, "type": "user/message", "data": message}, message)

    def _user_message(self, event: Event, data: Event) -> Event:
        if "id" in data or "role" in data or not data.keys() >= {"content", "source"}:
            return event
        return {**event, "data": {**data, "id": self._new_id(event), "role": "user"}}

    def _answer(self, event: Event, data: Event) -> Event:
        if "message" in data or not data.keys() >= {"content", "provenance"}:
            return event
        provenance = data["provenance"]
        if not isinstance(provenance, dict):
            raise LegacyShape("an answer's provenance is no object")
        rest = {key: value for key, value in data.items() if key not in ("content", "provenance")}
        message = {
            "id": self._new_id(event),
            "role": "assistant",
            "content": data["content"],
            "source": {**provenance, "kind": "model"},
        }
        return {**event, "data": {**rest, "message": message}}

    def _tool_result(self, event: Event, data: Event) -> Event:
        if "message" in data or not data.keys() >= {"callId", "content"}:
            return event
        call = data["callId"]
        block = {"type": "tool-result", "toolCallId": call, "content": data["content"]}
        if "isError" in data:
            block["isError"] = data["isError"]
        rest = {key: value for key, value in data.items() if key not in ("callId", "content", "isError")}
        message = {
            "id": self._new_id(event),
            "role": "user",
            "content": [block],
            "source": {"kind": "tool", "callId": call},
        }
        return {**event, "data": {**rest, "message": message}}

    def _new_id(self, event: Event) -> Any:
        """The identity of a message that had none: its place, or that of the message which it replaces."""
        operation = event.get("surfaceOp")
        if event["type"] == "tool/result" and isinstance(operation, dict):
            start = operation.get("start")
            if isinstance(start, (int, float)) and start in self._ids:
                return self._ids[start]
        return f"legacy-message:{self._session}:{event['seq']}"

    def _remember(self, event: Event) -> None:
        message = event["data"].get("message")
        if isinstance(message, dict) and "id" in message:
            self._ids[event["seq"]] = message["id"]


def _old_error(reason: Event) -> Event:
    """What today is the error of a turn's end, from either of the ways in which it was told."""
    failure = reason.get("failure")
    if not is_safe(reason.get("step")):
        raise LegacyShape("a turn/end tells of an error without its step")
    if reason.keys() == {"kind", "step", "failure"} and isinstance(failure, dict):
        optional = {key: kinds for key, kinds in _FAILURE.items() if key in failure}
        if {"message", "code"} <= failure.keys() <= _FAILURE.keys() and all(
            isinstance(failure[key], kinds) and not isinstance(failure[key], bool) for key, kinds in optional.items()
        ):
            return failure
    if reason.keys() in _OLD_ERROR_KEYS and all(
        isinstance(reason[key], str) for key in reason.keys() - {"kind", "step"}
    ):
        return {"message": reason["message"], "code": reason.get("code", "UNKNOWN")}
    raise LegacyShape("a turn/end tells of an error in no shape it ever had")


def _has_kind(value: Any, *, least: int = 0) -> TypeGuard[Event]:
    return isinstance(value, dict) and isinstance(value.get("kind"), str) and len(value["kind"]) >= least


_UPGRADES = {
    "turn/start": Upgrade._turn_start,
    "turn/end": Upgrade._turn_end,
    "steering/message": Upgrade._steering,
    "user/message": Upgrade._user_message,
    "assistant/message": Upgrade._answer,
    "tool/result": Upgrade._tool_result,
}
