"""Which landed files a claim was made from: all up to its highest sequence, but for ranges that had none (rule 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from storage.claims import Claim
from storage.zone import LandedRef

__all__ = ["gaps", "missing_evidence", "without"]


def missing_evidence(claim: Claim, landed: Sequence[LandedRef]) -> str:
    """Which of the claim's landed files are not in `landed`, for a person to look for."""
    found = gaps((*(ref.seq for ref in landed), claim.indexed_seq + 1))
    missing = [gap for gap in found if gap not in claim.absent]
    if missing:
        shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in missing[:10])
        return f"missing: sequence {shown}"
    return "none is missing, so one was changed or added"


def gaps(sequences: Iterable[int]) -> list[tuple[int, int]]:
    """The ranges (first, last) of sequences from 1 that ascending `sequences` leave out before their last."""
    left_out = []
    expected = 1
    for seq in sequences:
        if seq > expected:
            left_out.append((expected, seq - 1))
        expected = max(expected, seq + 1)
    return left_out


def without(ranges: Iterable[tuple[int, int]], landed: Sequence[LandedRef]) -> list[LandedRef]:
    """`landed`, in sequence order, without those in one of the ranges (first, last)."""
    absent = sorted(ranges)
    kept: list[LandedRef] = []
    place, last = 0, -1
    for ref in landed:
        while place < len(absent) and absent[place][0] <= ref.seq:
            last = max(last, absent[place][1])
            place += 1
        if ref.seq > last:
            kept.append(ref)
    return kept
