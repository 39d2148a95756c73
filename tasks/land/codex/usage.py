"""What each of a thread's responses cost, told from records of single responses and from counters that only grow.

A client writes both, repeats counters, loses lines, starts counters anew and lets a fork's go on from its parent's. One
running total, the base, says which of a counter's lines stand for something that is not counted yet.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.session_data import Usage
from tasks.land.codex.rows import Members, within

__all__ = ["Tokens", "UsageCounter", "usage_of"]

_MOST = 2**62


class Tokens(NamedTuple):
    """`input` includes what was cached and what was written to the cache, `output` includes reasoning."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def plus(self, other: Tokens) -> Tokens:
        return Tokens(*(mine + more for mine, more in zip(self, other, strict=True)))

    def minus(self, other: Tokens) -> Tokens:
        return Tokens(*(mine - less for mine, less in zip(self, other, strict=True)))

    def falls_below(self, other: Tokens) -> bool:
        return any(mine < before for mine, before in zip(self, other, strict=True))


def usage_of(tokens: Tokens) -> Usage:
    return Usage(
        in_=max(0, tokens.input - tokens.cached - tokens.cache_write),
        out=tokens.output,
        cache_read=tokens.cached,
        cache_write=tokens.cache_write,
    )


class UsageCounter:
    """One thread's usage. Each line gives the tokens of the response that it stands for, None when it stands for none.

    `goes_on` says that counters may begin with what another thread had used before.
    """

    def __init__(self, *, goes_on: bool) -> None:
        self._base: Tokens | None = None if goes_on else Tokens()
        self._has_fallen = False
        self._pending: list[Tokens] = []
        self._seen: set[Tokens] = set()

    def record(self, payload: Members) -> Tokens | None:
        """A `token_usage_record` of this thread."""
        used = _tokens(payload, "usage")
        if used is None or used == Tokens():
            return None
        if self._base is not None:
            self._base = self._base.plus(used)
        self._pending.append(used)
        return used

    def replayed(self, payload: Members) -> None:
        """A `token_count` that was copied from another thread."""
        total = _tokens(within(payload, "info"), "total_token_usage")
        if total is not None:
            self._base = total

    def is_unknown(self, payload: Members) -> bool:
        """Whether a `token_count`, were it the next line, stood for responses of which nobody knows what they used: the
        first total of a counter that goes on, with nothing beside it (Codex specification, section 5, rule 5)."""
        info = within(payload, "info")
        total, last = _tokens(info, "total_token_usage"), _tokens(info, "last_token_usage")
        return self._base is None and not self._pending and last is None and total not in (None, Tokens())

    def count(self, payload: Members) -> Tokens | None:
        """A `token_count`."""
        info = within(payload, "info")
        total, last = _tokens(info, "total_token_usage"), _tokens(info, "last_token_usage")
        if total is None:
            return None
        used = self._used(total, last)
        self._seen.add(total)
        return None if used == Tokens() else used

    def _used(self, total: Tokens, last: Tokens | None) -> Tokens | None:
        base, self._base = self._base, total
        if last is not None and last in self._pending:
            self._pending.clear()
            self._has_fallen = False
            return None
        if total == base:
            return None
        if base is None:
            return last
        if not total.falls_below(base):
            after_fall, self._has_fallen = self._has_fallen, False
            return last if after_fall and last is not None else total.minus(base)
        if total == last and total not in self._seen:
            self._has_fallen = False
            return total
        self._has_fallen = True
        return None


def _tokens(members: Members, key: str) -> Tokens | None:
    value = members.get(key)
    if not isinstance(value, dict):
        return None
    return Tokens(
        _count(value, "input_tokens"),
        _count(value, "cached_input_tokens"),
        _count(value, "cache_write_input_tokens") or _count(value, "cache_creation_input_tokens"),
        _count(value, "output_tokens"),
        _count(value, "reasoning_output_tokens"),
    )


def _count(members: Members, key: str) -> int:
    value = members.get(key)
    return value if type(value) is int and 0 <= value < _MOST else 0
