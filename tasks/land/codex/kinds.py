"""How Codex names its files, and what the source calls them."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["PACKED", "THREAD_ID", "TRANSCRIPT", "RolloutName", "rollout_name"]

TRANSCRIPT = "transcript"
PACKED = ".zst"
THREAD_ID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")

_NAME = re.compile(
    rf"rollout-(?:\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-)?({THREAD_ID.pattern})(?:_([0-9A-Za-z-]+))?\.jsonl(?:\.zst)?"
)


class RolloutName(NamedTuple):
    """What a rollout's name says. `segment` names the part of a thread that a revert began, empty for its first."""

    thread: str
    segment: str
    archived: bool
    packed: bool


def rollout_name(key: str) -> RolloutName | None:
    """What lies at `key`, a path below Codex' own folder or below one that holds such folders (one a machine, say)."""
    *folders, name = key.split("/")
    found = _NAME.fullmatch(name)
    if found is None or not {"sessions", "archived_sessions"} & set(folders):
        return None
    return RolloutName(found[1], found[2] or "", "archived_sessions" in folders, name.endswith(PACKED))
