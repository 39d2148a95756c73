"""Of source files that have landed more than once, which landing counts.

A file that had been read wrongly lands anew, and what landed first stays (`storage.replacements`). Its calls count from
one landing alone: from the first, until a later one stands in for it; then the session is counted anew, since counted
calls cannot be told apart any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from storage.objects import ObjectStat
from storage.replacements import generation_of, standing
from storage.usage_marks import SessionMark
from storage.zone import LandedRef

__all__ = ["generations"]


def generations(
    landed: Sequence[LandedRef], mark: SessionMark, calls: Iterable[ObjectStat]
) -> tuple[list[LandedRef], frozenset[int], bool]:
    """The landed files to take into account beyond `mark`, which of all have no calls that count, and whether those
    that were counted have to be forgotten first. `calls` is what lies in the session's folder of calls."""
    stands = standing(stat.key.rpartition("/")[2] for stat in calls)
    later, silent = set(), set()
    is_anew = False
    for ref in landed:
        first, generation = generation_of(ref.prefix)
        counts = stands.get((ref.place, first), 1)
        if generation > counts:
            later.add(ref.seq)  # what it stands in for has not all landed anew yet
        elif generation < counts:
            silent.add(ref.seq)
    for (place, first), generation in stands.items():
        of_file = [ref for ref in landed if (ref.place, generation_of(ref.prefix)[0]) == (place, first)]
        now = [ref for ref in of_file if generation_of(ref.prefix)[1] == generation]
        before = [ref for ref in of_file if generation_of(ref.prefix)[1] < generation]
        has_counted = any(mark.has(ref.seq) for ref in now)
        is_anew |= bool(now) and not has_counted and any(mark.has(ref.seq) for ref in before)
    new = [ref for ref in landed if ref.seq not in later and (is_anew or not mark.has(ref.seq))]
    return new, frozenset(silent), is_anew
