"""DeepSeek Harness roots of the golden set, read with the schemas alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from schemas._dsh_json import read_value
from schemas.dsh import NOT_STARTED_TEXT, OUTCOME_UNKNOWN_TEXT, Event, StoredLog, read_log
from schemas.dsh_root import check_place, find_logs

__all__ = ["golden_events", "keys_of", "read_json", "read_root", "their_texts"]

_CLOSER = "interrupted-tool-result-"
_OUR_TEXTS = {"TOOL_OUTCOME_UNKNOWN": OUTCOME_UNKNOWN_TEXT, "TOOL_NOT_STARTED": NOT_STARTED_TEXT}


def keys_of(root: Path) -> list[str]:
    """The keys of a root's files."""
    return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]


def read_root(root: Path, *, compressed: bool | None = None, session: str | None = None) -> dict[str, StoredLog]:
    """The logs of a root by session id, each looked up by its id and found to lie where it must; or one of them."""
    found = find_logs(keys_of(root), compressed=compressed, name=root.parent.name)
    if session is not None:
        found.find(session, name=root.parent.name)
    logs = {}
    for place in found.logs:
        log = read_log((root / place.key).read_bytes(), name=place.key)
        check_place(log.header, found.find(log.header.id, name=place.key))
        logs[log.header.id] = log
    return logs


def read_json(path: Path) -> Any:
    """A file's JSON as JavaScript reads it, which is how the golden set was made."""
    return read_value(path.read_bytes())[0]


def golden_events(events: Iterable[Event]) -> list[Event]:
    """The original's logical events, with our words in the results that close an interrupted turn."""
    ours = []
    for event in events:
        if _closes_call(event):
            text = _text_block(event)
            text["text"] = _OUR_TEXTS[event["data"]["error"]["code"]]
        ours.append(event)
    return ours


def their_texts(events: Iterable[Event]) -> dict[str, str]:
    """The original's words and ours for the same thing, as far as ``events`` of the original hold them."""
    return {
        _text_block(event)["text"]: _OUR_TEXTS[event["data"]["error"]["code"]]
        for event in events
        if _closes_call(event)
    }


def _closes_call(event: Event) -> bool:
    return event["type"] == "tool/result" and str(event["data"]["message"]["id"]).startswith(_CLOSER)


def _text_block(event: Event) -> dict[str, Any]:
    message = event["data"]["message"]
    content = message["content"] if message["role"] == "tool" else message["content"][0]["content"]
    block: dict[str, Any] = content[0]
    return block
