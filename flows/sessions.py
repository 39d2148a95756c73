"""Which sessions of a zone are worked on. None at all is wrong use: a mistyped prefix must not end green."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.errors import WrongUse
from storage.zone import Zone

__all__ = ["chosen", "matching"]


def chosen(zone: Zone, there: Sequence[str], session: str | None) -> list[str]:
    """`session` alone, or all that are `there`. Raises `WrongUse` when that is none."""
    _insist_on_any(zone, there)
    if session is None:
        return list(there)
    if session not in there:
        raise WrongUse(f"no session {session} in {zone.store.url}")
    return [session]


def matching(zone: Zone, there: Sequence[str], wanted: Callable[[str], bool]) -> list[str]:
    """Those that are `there` and `wanted`. Raises `WrongUse` when that is none."""
    _insist_on_any(zone, there)
    found = list(filter(wanted, there))
    if not found:
        number = "its one session" if len(there) == 1 else f"any of its {len(there)} sessions"
        raise WrongUse(f"no sessions to work on in {zone.store.url}: the patterns in `sessions` do not match {number}")
    return found


def _insist_on_any(zone: Zone, there: Sequence[str]) -> None:
    """Raise `WrongUse` where there are no sessions. A folder of any other kind has folders, too, and is no zone; one
    whose evidence is gone still has chains, which is for verify to say."""
    if any(map(zone.has_evidence, there)) or (there and zone.conversations()):
        return
    kind = ", and its folders hold no landed files" if there else ""
    raise WrongUse(
        f"no sessions in {zone.store.url}{kind}: check the path or prefix, or let the collector land something"
    )
