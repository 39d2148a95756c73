"""Numbers, money, shares and names as people read them, the same in a terminal and on a page.

A figure is never shown as nothing when it is something: less than a cent is ``$0.0067``, and what is not known is a
dash. Names come from the data: what could steer a terminal or turn text around is shown as an escape.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

__all__ = [
    "DASH",
    "compact",
    "cost_and_parts",
    "count",
    "counted",
    "digits_for",
    "money",
    "money_at_a_glance",
    "named",
    "printable",
    "share",
    "shortened",
]

DASH = "–"  # noqa: RUF001  (the sign for a figure that is not known)

Kind = Literal["model", "project", "session", "agent"]
"""What a name is of."""

_UNNAMED: dict[Kind, str] = {
    "model": "(no model)",
    "project": "(no project)",
    "session": "(no session)",
    "agent": "(no agent)",
}
_CENT = 10_000
MICRO = 1_000_000
_SCALES = ((10**12, " T"), (10**9, " B"), (10**6, " M"), (10**3, " k"))


def money(microusd: int | None, digits: int = 2) -> str:
    """Micro-dollars in dollars and cents, below a cent in hundredths of one; halves are rounded away from zero.

    With four `digits` (`digits_for`), all that is below a dollar is in hundredths of a cent.
    """
    if microusd is None:
        return DASH
    sign, size = ("-" if microusd < 0 else ""), abs(microusd)
    if 0 < size < _CENT // 100:
        return f"{sign}<$0.0001"
    if 0 < size < (_CENT if digits == 2 else MICRO - 50):
        return f"{sign}$0.{(size + 50) // 100:04d}"
    cents = (size + _CENT // 2) // _CENT
    return f"{sign}${cents // 100:,}.{cents % 100:02d}"


def digits_for(whole_microusd: int) -> int:
    """How many decimals the costs of one table have, by the cost of all of it: four below a dollar, else two."""
    return 4 if abs(whole_microusd) < MICRO else 2


def cost_and_parts(cost: int | None, own: int | None, delegated: int | None, digits: int) -> tuple[str, str, str]:
    """A cost and the two parts of it, micro-dollars, with `digits` decimals: as shown, the parts come to the cost.

    What rounding leaves over is in the larger part. A part that is something and too small to be seen is ``<$0.01``.
    """
    unit = 10 ** (6 - digits)
    if cost is None or own is None or delegated is None:
        shown = [None if each is None else _units(each, unit) for each in (cost, own, delegated)]
    else:
        whole, small = _units(cost, unit), _units(min(own, delegated, key=abs), unit)
        shown = [whole, whole - small, small] if abs(own) >= abs(delegated) else [whole, small, whole - small]
    texts = [
        DASH if size is None else _fixed(size, exact or 0, digits)
        for size, exact in zip(shown, (cost, own, delegated), strict=True)
    ]
    return texts[0], texts[1], texts[2]


def _units(microusd: int, unit: int) -> int:
    """Rounded half away from zero."""
    size = (abs(microusd) + unit // 2) // unit
    return -size if microusd < 0 else size


def _fixed(units: int, exact: int, digits: int) -> str:
    if exact and not units:
        return f"{'-' if exact < 0 else ''}<$0.{1:0{digits}d}"
    whole, rest = divmod(abs(units), 10**digits)
    return f"{'-' if units < 0 else ''}${whole:,}.{rest:0{digits}d}"


def money_at_a_glance(microusd: int | None, digits: int = 2) -> str:
    """Money in as many digits as are taken in at once: cents only below ten thousand dollars."""
    if microusd is None or abs(microusd) < 10_000 * MICRO:
        return money(microusd, digits)
    sign, size = ("-" if microusd < 0 else ""), (abs(microusd) + MICRO // 2) // MICRO
    return f"{sign}${size:,}" if size < 10**6 else f"{sign}${compact(size)}"


def count(number: int) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number of things: 1 call, 2,000 calls."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def compact(number: int) -> str:
    """A whole number in three or four digits and a unit: 950, 12.3 k, 1.25 B."""
    sign, size = ("-" if number < 0 else ""), abs(number)
    for scale, unit in _SCALES:
        if size >= scale:
            value = size / scale
            digits = 2 if value < 10 else 1 if value < 100 else 0
            return f"{sign}{value:,.{digits}f}{unit}"
    return f"{number:,}"


def share(part: float | None) -> str:
    """A part of one in percent; neither none nor all where it is only nearly so."""
    if part is None:
        return DASH
    if 0 < part < 0.001:
        return "<0.1 %"
    if 0.999 < part < 1:
        return ">99.9 %"
    return f"{part * 100:.1f} %"


def named(name: str | None, kind: Kind) -> str:
    """A name from the data, on one line; one that is empty is quoted, none at all is said."""
    if name is None:
        return _UNNAMED[kind]
    return printable(name) or '""'


def printable(text: str) -> str:
    """`text` with every character that is not seen, or that moves others, shown as an escape."""
    return "".join(map(_printable, text))


def shortened(text: str, limit: int) -> str:
    """At most `limit` columns of a terminal, what is too much taken out of the middle: ids differ at both ends."""
    if sum(map(_columns, text)) <= limit:
        return text
    head = _fitting(text, limit // 2)
    tail = _fitting(text[::-1], limit - 1 - limit // 2)[::-1]
    return f"{head}…{tail}"


def _fitting(text: str, columns: int) -> str:
    """As much of the beginning of `text` as fits."""
    for place, character in enumerate(text):
        columns -= _columns(character)
        if columns < 0:
            return text[:place]
    return text


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _printable(character: str) -> str:
    if character.isprintable() and unicodedata.category(character) != "Cf":
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
