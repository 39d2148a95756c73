"""What a runtime notes about its turns in lines of its own: that one was stopped, that some are taken back, and which
text is a summary that nobody asked for.

Codex does (its rollouts, sections 4, 6 and 7): a turn that was aborted or failed has no answer, turns that were rolled
back and those behind the cut of a revert are not part of the conversation any more, and a compaction's summary is an
assistant's message like any other. DeepSeek Harness says of every turn how it ended (its logs, section 7).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Raw

from schemas import lenient_json
from schemas.session_data import Record, text_of

__all__ = ["NOTHING", "TurnNote", "note_of"]

_ORDINAL: Final = re.compile(r"#([0-9]{1,18})$")
_CLOSING: Final = ("task_complete", "turn_complete")


@dataclass(frozen=True, slots=True)
class TurnNote:
    """`stopped` is the turn that ended without an answer; `turns` so many of the last are taken back, and all that
    began at the ordinal `cut` or later; `summary` are the texts that a compaction put in place of the conversation."""

    stopped: str = ""
    turns: int = 0
    cut: int | None = None
    summary: tuple[str, ...] = ()

    def takes_back(self, record: str) -> bool:
        """Whether what began with the record of this id lies behind the cut."""
        found = _ORDINAL.search(record)
        return self.cut is not None and found is not None and int(found[1]) >= self.cut


NOTHING: Final = TurnNote()


def note_of(record: Record, source: str) -> TurnNote:
    """What the record notes, `NOTHING` for most."""
    if source == "deepseek-harness":
        return TurnNote(stopped=record.run) if _is_broken_turn(record) else NOTHING
    if source != "codex" or record.from_ != "runtime" or not record.parts:
        return NOTHING
    if "context_reset" in record.flags:
        return TurnNote(summary=(*_texts(record), *_replacing(_line(record))))
    if "error" in record.flags or "notice" in record.flags:
        return _noted(_line(record), record)
    if record.continues:
        base = _line(record).get("history_base")
        cut = base.get("end_ordinal_exclusive") if isinstance(base, dict) else None
        return TurnNote(cut=cut) if type(cut) is int else NOTHING
    return NOTHING


def _noted(line: dict[str, Any], record: Record) -> TurnNote:
    payload = line.get("payload")
    what = payload.get("type") if isinstance(payload, dict) else None
    if what == "turn_aborted" or (what in _CLOSING and "error" in record.flags):
        return TurnNote(stopped=record.run)
    if isinstance(payload, dict) and what == "thread_rolled_back" and type(turns := payload.get("num_turns")) is int:
        return TurnNote(turns=max(0, turns))
    return NOTHING


def _is_broken_turn(record: Record) -> bool:
    """Whether a turn ended otherwise than by being done."""
    if record.from_ != "runtime" or not record.run or len(record.parts) != 1:
        return False
    part = record.parts[0]
    if part.k != "data" or not isinstance(part.data, Raw) or b'"turn/end"' not in bytes(part.data):
        return False
    line = _line(record)
    data = line.get("data")
    reason = data.get("reason") if isinstance(data, dict) else None
    kind = reason.get("kind") if isinstance(reason, dict) else None
    return line.get("type") == "turn/end" and kind != "completed"


def _line(record: Record) -> dict[str, Any]:
    """The source's own line, which stands beside what was read of it."""
    for part in record.parts:
        if part.k == "data" and isinstance(part.data, Raw):
            try:
                value = lenient_json.decode_value(bytes(part.data))
            except ValueError:
                continue
            if isinstance(value, dict):
                return value
    return {}


def _texts(record: Record) -> list[str]:
    return [text_of(part) for part in record.parts if part.k == "text"]


def _replacing(line: dict[str, Any]) -> list[str]:
    payload = line.get("payload")
    items = payload.get("replacement_history") if isinstance(payload, dict) else None
    contents = (
        [item.get("content") for item in items or () if isinstance(item, dict)] if isinstance(items, list) else []
    )
    elements = [each for content in contents if isinstance(content, list) for each in content if isinstance(each, dict)]
    return [words for each in elements if isinstance(words := each.get("text"), str)]
