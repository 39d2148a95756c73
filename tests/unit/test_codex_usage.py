"""A thread's counter, line by line: what each line stands for that is not counted yet (Codex notes, section 5)."""

from __future__ import annotations

import pytest

from tasks.land.codex.usage import UsageCounter


def counted(*counts: tuple[int, int | None], goes_on: bool = False) -> list[int | None]:
    """The input that each `token_count` of (total, last) stands for."""
    counter, found = UsageCounter(goes_on=goes_on), []
    for total, last in counts:
        info: dict[str, object] = {"total_token_usage": {"input_tokens": total}}
        if last is not None:
            info["last_token_usage"] = {"input_tokens": last}
        used = counter.count({"info": info})
        found.append(None if used is None else used.input)
    return found


@pytest.mark.parametrize(
    ("counts", "used"),
    [
        # The reported case: repeated, grown, fallen to a new baseline, grown from that.
        ([(1000, None), (1000, None), (2000, None), (400, None), (900, None)], [1000, None, 1000, None, 500]),
        # After a fall the last response is what the next line stands for, and its repetition for nothing.
        ([(1000, 1000), (400, None), (400, 400), (900, 500)], [1000, None, None, 500]),
        # A counter that begins anew says so: its total is its last response. One that was there before is a repetition.
        ([(1000, 1000), (400, 400), (900, 500)], [1000, 400, 500]),
        ([(400, 400), (1000, 600), (400, 400), (1000, 600)], [400, 600, None, 600]),
    ],
)
def test_counter_that_repeats_falls_and_begins_anew(
    counts: list[tuple[int, int | None]], used: list[int | None]
) -> None:
    assert counted(*counts) == used


def test_counter_that_goes_on_stands_for_its_last_response_alone() -> None:
    assert counted((8100, 2100), (9000, 900), goes_on=True) == [2100, 900]
    assert counted((8100, None), (9000, 900), goes_on=True) == [None, 900]
