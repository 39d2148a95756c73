"""Which sessions of a source are one: a root with all its sub-agents (DSH version 4, sections 9 and 12).

Of a session that lies there more than once the longest log is read; one that is its beginning says nothing of its own,
and any other contradicts it. Twice in one root is a fault of that root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from schemas.dsh import LogHeader
from schemas.dsh_root import LogPlace
from storage.objects import ObjectStat
from tasks.land.dsh.databases import database_of

__all__ = ["HasLanded", "Member", "families", "root_of"]


@dataclass(frozen=True, slots=True)
class Member:
    """A log that stands for a session. `header` is None where it cannot be read."""

    place: LogPlace
    stat: ObjectStat
    id: str
    header: LogHeader | None

    @property
    def root(self) -> str:
        """The folder of the projects that the log lies in, or its database."""
        if (database := database_of(self.place.key)) is not None:
            return database[0]
        return "/".join(self.place.key.split("/")[:-3])

    @property
    def parent(self) -> str | None:
        """The session that delegated this one; a fork has none."""
        return self.header.parent_session if self.header is not None and self.header.origin is not None else None

    @property
    def age(self) -> tuple[int, str]:
        return (0 if self.header is None else self.header.created_at), self.id


HasLanded: TypeAlias = Callable[[str, str], bool]
"""Whether something has landed of a session (the second) as a sub-agent's of another (the first)."""


def root_of(session: str, members: Mapping[str, Member], has_landed: HasLanded) -> str:
    """The session that `session` and all others of its family are landed with. Where a parent's log is absent, or is a
    child of its own child, the session is one of its own, unless it has landed with the parent before that was gone."""
    seen = {session}
    found = session
    while (parent := members[found].parent) is not None:
        if parent in seen:
            return session
        if parent not in members:
            return parent if has_landed(parent, found) else found
        seen.add(parent)
        found = parent
    return found


def families(members: Iterable[Member], has_landed: HasLanded) -> dict[str, list[Member]]:
    """The members by their family's root: the root first, then the others, the first made first."""
    by_id = {member.id: member for member in members}
    found: dict[str, list[Member]] = {}
    for member in sorted(by_id.values(), key=lambda member: member.age):
        found.setdefault(root_of(member.id, by_id, has_landed), []).append(member)
    for root, family in found.items():
        family.sort(key=lambda member: (member.id != root, member.age))
    return found
