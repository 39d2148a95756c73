"""Which threads a thread was made from, and whose session it is in (Codex notes, sections 6 and 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks.land.codex.kinds import THREAD_ID
from tasks.land.codex.rows import Members, text, within

__all__ = ["Families", "copies_untold", "parent_named"]


class Families:
    """What threads say of themselves. `described` has, by thread, what its rollout's first line says of it, followed by
    what the lines that it copied say of those that it was made from: of a thread whose rollout is not there that is all
    there is."""

    def __init__(self, described: Mapping[str, Sequence[Members]]) -> None:
        copied = (meta for metas in described.values() for meta in metas[1:])
        self._metas: dict[str, Members] = {text(meta, "id"): meta for meta in copied}
        self._metas |= {thread: metas[0] for thread, metas in described.items() if metas}

    def session(self, thread: str) -> str:
        """The root of the thread's family: its own word for it, else what its parents lead to."""
        return self.lineage(thread)[-1]

    def lineage(self, thread: str) -> list[str]:
        """The thread, its parents, the nearest first, and at the end its session."""
        found = [thread]
        while True:
            meta = self._metas.get(found[-1], {})
            named = text(meta, "session_id")
            if THREAD_ID.fullmatch(named):
                return found if named == found[-1] else [*found, named]
            parent = parent_named(meta)
            if not THREAD_ID.fullmatch(parent) or parent in found:
                return found
            found.append(parent)

    def copied_from(self, thread: str) -> str:
        """The thread whose lines an old client may have copied into this one, empty where there is none."""
        meta = self._metas.get(thread, {})
        if not copies_untold(meta):
            return ""
        origin = text(meta, "forked_from_id") or parent_named(meta)
        return origin if THREAD_ID.fullmatch(origin) else ""

    def is_led(self, thread: str) -> bool:
        """Whether its session is only known from its parents."""
        meta = self._metas.get(thread, {})
        return bool(parent_named(meta)) and not THREAD_ID.fullmatch(text(meta, "session_id"))


def copies_untold(meta: Members) -> bool:
    """Whether a thread that describes itself so does not say which of its lines are copies."""
    return (
        not isinstance(meta.get("history_base"), dict) and type(meta.get("subagent_history_start_ordinal")) is not int
    )


def parent_named(meta: Members) -> str:
    """The thread that delegated to the one that describes itself so, empty for none."""
    spawn = within(within(within(meta, "source"), "subagent"), "thread_spawn")
    return text(meta, "parent_thread_id") or text(spawn, "parent_thread_id")
