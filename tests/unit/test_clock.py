"""The clock that is given with `--now`: the times that 64 bits of nanoseconds can hold, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.clock import clock
from flows.parameters import parameters_from
from flows.summary import IngestParameters
from flows.usage_summary import UsageParameters
from schemas.errors import WrongUse
from tests.command import Command

IN_RANGE = [
    ("1678-01-01T00:00:00Z", -9_214_560_000_000_000_000),
    ("2026-08-07T10:00:00.123456789Z", 1_786_096_800_123_456_789),
    ("2261-12-31T23:59:59.999999999Z", 9_214_646_399_999_999_999),
]
NO_TIMES = [
    "1677-12-31T23:59:59Z",
    "2262-01-01T00:00:00Z",
    "9999-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",  # "no time" in every format here
    "2026-08-07",
    "now",
    "",
]


@pytest.mark.parametrize(("now", "value"), IN_RANGE)
def test_a_time_is_nanoseconds(now: str, value: int) -> None:
    assert clock(now) == value


@pytest.mark.parametrize("now", NO_TIMES)
def test_what_is_out_of_range_is_refused_under_the_options_name(now: str) -> None:
    with pytest.raises(WrongUse, match=r"^--now: .* is no time from 1678 to 2261; write it as "):
        clock(now)


@pytest.mark.parametrize("now", NO_TIMES)
@pytest.mark.parametrize(("kind", "places"), [(IngestParameters, ["zone=z"]), (UsageParameters, ["zone=z", "to=u"])])
def test_a_flow_refuses_it_before_it_starts(
    now: str, kind: type[IngestParameters] | type[UsageParameters], places: list[str]
) -> None:
    with pytest.raises(WrongUse, match=r"^-p now: is no time from 1678 to 2261"):
        parameters_from(kind, [*places, f"now={now}"])


def test_a_command_refuses_it(sessionmill: Command, tmp_path: Path) -> None:
    (tmp_path / "zone").mkdir()
    done = sessionmill("assemble", tmp_path / "zone", "--now", "2262-01-01T00:00:00Z")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("sessionmill: --now: '2262-01-01T00:00:00Z' is no time from 1678 to 2261; ")
