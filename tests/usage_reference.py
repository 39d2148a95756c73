"""A counter of calls as plain as it can be: one loop, dictionaries, the rule word for word (usage specification,
"Counting"). It knows Claude Code's rows alone, and none of the tables' engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Seen", "reference_calls"]


class Seen(NamedTuple):
    """One row with usage, as a landed file has it."""

    session: str
    seq: int
    row: int
    call: Mapping[str, Any]


def reference_calls(seen: Iterable[Seen]) -> dict[str, dict[str, Any]]:
    """By message id: the session that the call belongs to, its numbers, and how many rows reported it."""
    rows = sorted(seen, key=lambda each: (each.session, each.seq, each.row))
    times: dict[str, list[str]] = {}
    for each in rows:
        times.setdefault(each.session, []).extend([each.call["time"]] if each.call["time"] else [])
    groups: dict[str, list[Seen]] = {}
    for each in rows:
        groups.setdefault(each.call["call"], []).append(each)
    found = {}
    for key, group in groups.items():
        sessions = sorted(
            {each.session for each in group},
            key=lambda name: (not times[name], min(times[name], default=""), max(times[name], default=""), name),
        )
        best = None
        for session in reversed(sessions):  # the earliest session last: it wins a tie
            for each in group:
                if each.session == session and (best is None or _output(each) >= _output(best)):
                    best = each
        assert best is not None
        usage = best.call["usage"]
        found[key] = {
            "session_id": sessions[0],
            "input_uncached": usage["input_tokens"],
            "cache_read": usage.get("cache_read_input_tokens", 0),
            "output": usage["output_tokens"],
            "call_time": best.call["time"],
            "copies_seen": len(group),
            "evidence": (best.session, best.seq, best.row),
        }
    return found


def _output(each: Seen) -> int:
    output: int = each.call["usage"]["output_tokens"]
    return output
