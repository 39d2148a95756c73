"""Record times as the session-flow specification, section 3, reads and writes them."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.times import NO_TIME, file_stamp, format_time, held_time, parse_time

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1970-01-01T00:00:01Z", SECOND),
        ("1969-12-31T23:59:59Z", -SECOND),
        ("2026-08-06T09:00:00.25Z", 1786006800 * SECOND + 250_000_000),
        ("2026-08-06T9:00:00Z", 1786006800 * SECOND),
        ("2026-08-06T09:00:00,5Z", 1786006800 * SECOND + 500_000_000),
        ("2026-08-06T09:00:00.1234567899Z", 1786006800 * SECOND + 123_456_789),
        ("2026-08-06T11:30:00+02:30", 1786006800 * SECOND),
        ("2026-08-06T06:30:00-02:30", 1786006800 * SECOND),
        ("2026-08-07T09:00:00+24:00", 1786006800 * SECOND),
        ("2024-02-29T00:00:00Z", 1709164800 * SECOND),
        ("2262-04-11T23:47:16.854775807Z", (1 << 63) - 1),
        ("2262-04-11T23:47:16.854775808Z", -(1 << 63)),
        ("0000-01-01T00:00:00Z", (-62167219200 * SECOND + (1 << 63)) % (1 << 64) - (1 << 63)),
    ],
)
def test_accepted_forms(text: str, value: int) -> None:
    assert parse_time(text) == value
    is_wrapped = text in ("2262-04-11T23:47:16.854775808Z", "0000-01-01T00:00:00Z")
    assert held_time(text) == (NO_TIME if is_wrapped else value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1970-01-01T00:00:00Z",
        "2026-08-06t09:00:00Z",
        "2026-08-06T09:00:00z",
        "2026-08-06 09:00:00Z",
        "2026-08-06T09:00:00",
        "2026-08-06T24:00:00Z",
        "2026-08-06T09:60:00Z",
        "2026-08-06T09:00:60Z",
        "2026-02-29T09:00:00Z",
        "2026-13-01T09:00:00Z",
        "2026-00-01T09:00:00Z",
        "2026-01-00T09:00:00Z",
        " 2026-08-06T09:00:00Z",
        "2026-08-06T09:00:00Z ",
        "2026-08-06T09:00:00.Z",
        "2026-08-06T09:00:00+25:00",
        "2026-08-06T09:00:00+00:61",
        "2026-8-06T09:00:00Z",
        "٢٠٢٦-08-06T09:00:00Z",
        "2026-08-06T09:00:00Z\n",
    ],
)
def test_no_time(text: str) -> None:
    assert parse_time(text) == held_time(text) == NO_TIME


@given(st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1))
def test_written_times_read_back(value: int) -> None:
    assert parse_time(format_time(value)) == value


@given(st.datetimes(min_value=datetime.datetime(1700, 1, 1), max_value=datetime.datetime(2200, 1, 1)))
def test_agrees_with_the_standard_library(when: datetime.datetime) -> None:
    utc = when.replace(tzinfo=datetime.UTC)
    expected = (utc - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1) * 1000
    assert parse_time(utc.isoformat(timespec="microseconds").replace("+00:00", "Z")) == expected


def test_file_stamp_always_has_nine_digits() -> None:
    assert file_stamp(parse_time("2026-08-07T09:01:00.5Z")) == "20260807T090100.500000000Z"
