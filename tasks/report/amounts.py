"""What a set of calls amounts to: tokens of each kind and money, as exact whole numbers.

Every call counts once and a call without a price never counts as free: a cost that nobody knows is None, and beside a
cost that is known stands how many calls it leaves out (specs/usage.md, "Money").
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

__all__ = ["NONE", "Amounts", "Breakdown", "CoverageLine", "Line", "part_of"]


@dataclass(frozen=True, slots=True)
class Amounts:
    """Sums over calls. `input` is without cache, `cache_write` covers all lifetimes, reasoning is part of `output`.

    `known_microusd` sums the calls that have a cost, in micro-dollars; `without_cost` of the `calls` have none, and of
    `partial` the cost covers only a part.
    """

    calls: int = 0
    input: int = 0
    cache_write: int = 0
    cache_read: int = 0
    output: int = 0
    known_microusd: int = 0
    without_cost: int = 0
    partial: int = 0

    @property
    def cost_microusd(self) -> int | None:
        """The cost as far as it is known; None when there are calls and no cost of any is known."""
        return None if self.calls and self.calls == self.without_cost else self.known_microusd

    @property
    def total(self) -> int:
        """All tokens, in and out."""
        return self.all_input + self.output

    @property
    def all_input(self) -> int:
        """All input tokens, cache included."""
        return self.input + self.cache_write + self.cache_read

    @property
    def cache_hit_share(self) -> float | None:
        """The part of all input that was read from cache, 0 to 1; None without input, or where counts make no part."""
        return part_of(self.cache_read, self.all_input)

    def cost_share_of(self, whole: Amounts) -> float | None:
        """The part of a larger known cost, 0 to 1; None where it makes no part."""
        return part_of(self.known_microusd, whole.known_microusd)

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(mine + theirs for mine, theirs in zip(_fields(self), _fields(other), strict=True)))

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(*(mine - theirs for mine, theirs in zip(_fields(self), _fields(other), strict=True)))


NONE = Amounts()


def part_of(part: int, whole: int) -> float | None:
    """`part` of `whole`, 0 to 1; None where it is no part of it."""
    return part / whole if whole > 0 and 0 <= part <= whole else None


def _fields(amounts: Amounts) -> tuple[int, ...]:
    return tuple(getattr(amounts, name) for name in Amounts.__slots__)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One model's part of a line; `model` as the runtime wrote it, None where it named none."""

    model: str | None
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: all its calls, those of sub-agents among them, and its models, dearest first.

    `key` is the day, the month (``2026-03``), or the model, project or session, None where the rows name none.
    `project` is a session's. `first` and `last` are the times of its first and last call, UTC.
    """

    key: date | str | None
    all: Amounts
    delegated: Amounts
    models: tuple[Breakdown, ...] = ()
    project: str | None = None
    first: datetime | None = None
    last: datetime | None = None

    @property
    def name(self) -> str | None:
        """The key as text."""
        return None if self.key is None else str(self.key)

    @property
    def own(self) -> Amounts:
        """What sessions spent themselves, without their sub-agents."""
        return self.all - self.delegated


@dataclass(frozen=True, slots=True)
class CoverageLine:
    """How many calls of one model have one cost status."""

    status: str
    model: str | None
    amounts: Amounts
