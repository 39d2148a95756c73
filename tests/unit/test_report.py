"""What a report adds up: days of one zone, own and delegated, costs that are known and those that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import UsageRejected, WrongUse
from schemas.usage import CALL_FILE_SCHEMA, SCHEMA_VERSION
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import manifest_key
from tasks.report import Amounts, Line, Scope, UsageReport, condense, json_of, merge, read_report, report_of, scope_of
from tasks.report.coverage import covered, status_words
from tasks.report.figures import (
    DASH,
    compact,
    cost_and_parts,
    digits_for,
    money,
    money_at_a_glance,
    named,
    share,
    shortened,
)
from tasks.report.page import page_of
from tasks.report.page.charts import Step, share_over_time
from tasks.report.page.head import headline
from tests.usage_rows import NOON, Row, call, sample_calls, write_calls


def frame(rows: Iterable[Row]) -> pl.LazyFrame:
    converted = pl.from_arrow(pa.Table.from_pylist(list(rows), CALL_FILE_SCHEMA))
    assert isinstance(converted, pl.DataFrame)
    return converted.lazy()


def report(*rows: Row, **options: Any) -> UsageReport:
    scope = scope_of(**options)
    by_day = groupby(sorted(rows, key=lambda row: row["date"]), key=lambda row: row["date"])
    return report_of(merge([condense([(day, frame(part))], scope.zone) for day, part in by_day]), scope)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def keys(lines: Iterable[Line]) -> list[Any]:
    return [line.key for line in lines]


def store(folder: Path) -> LocalStore:
    return LocalStore(str(folder), StoreSettings())


# Sums.


def test_line_sums_tokens_by_kind_and_micro_dollars_exactly() -> None:
    (day,) = report(
        call("a", input_uncached=1, cache_read=2, cache_write_5m=4, output=8, cost_microusd=1),
        call("b", input_uncached=16, cache_write_1h=32, cache_write_unknown=64, output=128, cost_microusd=2),
    ).daily
    assert day.all == Amounts(calls=2, input=17, cache_write=100, cache_read=2, output=136, known_microusd=3)
    assert (day.all.total, day.all.all_input, day.all.cost_microusd) == (255, 119, 3)


def test_reasoning_is_part_of_output_and_not_added() -> None:
    row = call(input_uncached=10, output=5, cache_read=2, cache_write_unknown=3, reasoning=2)
    assert report(row).totals.all.total == 20


def test_sums_beyond_64_bits_are_exact() -> None:
    huge = 2**63 - 1
    totals = report(*(call(str(n), output=huge, input_total=0, cost_microusd=huge) for n in range(3))).totals.all
    assert (totals.output, totals.cost_microusd) == (3 * huge, 3 * huge)


def test_cost_of_unknown_models_is_unknown_and_never_zero() -> None:
    unknown = call("a", model="my-local-1", cost_status="unknown_model")
    (line,) = report(unknown).models
    assert (line.all.cost_microusd, line.all.without_cost) == (None, 1)
    both = report(unknown, call("b", cost_microusd=450)).totals.all
    assert (both.cost_microusd, both.without_cost) == (450, 1)


def test_free_call_costs_nothing_and_is_known_to() -> None:
    assert report(call(cost_microusd=0)).totals.all.cost_microusd == 0


def test_partly_priced_calls_count_their_cost_and_are_counted() -> None:
    totals = report(call("a", cost_status="partial", cost_microusd=7), call("b")).totals.all
    assert (totals.cost_microusd, totals.partial, totals.without_cost) == (457, 1, 0)


def test_share_from_cache_is_of_all_input() -> None:
    assert report(call(input_uncached=5, cache_read=75, cache_write_5m=20)).totals.all.cache_hit_share == 0.75
    assert report(call(input_uncached=0, output=3)).totals.all.cache_hit_share is None


# Days.


@pytest.mark.parametrize(
    ("moment", "zone", "day"),
    [
        ("2026-03-08T07:30", "UTC", date(2026, 3, 8)),
        ("2026-03-08T07:30", "America/Los_Angeles", date(2026, 3, 7)),  # the day before clocks go forward, 23:30
        ("2026-03-09T06:59", "America/Los_Angeles", date(2026, 3, 8)),  # that day has 23 hours
        ("2026-03-09T07:00", "America/Los_Angeles", date(2026, 3, 9)),
        ("2026-11-02T07:59", "America/Los_Angeles", date(2026, 11, 1)),  # and this one 25
        ("2026-11-02T08:00", "America/Los_Angeles", date(2026, 11, 2)),
        ("2026-03-08T18:29", "Asia/Kolkata", date(2026, 3, 8)),
        ("2026-03-08T18:30", "Asia/Kolkata", date(2026, 3, 9)),
        ("2026-03-08T18:15", "Asia/Kathmandu", date(2026, 3, 9)),
        ("2026-03-08T10:00", "Pacific/Kiritimati", date(2026, 3, 9)),
    ],
)
def test_day_of_a_call_is_the_zones(moment: str, zone: str, day: date) -> None:
    found = report(call(call_time=at(moment)), zone=zone)
    assert keys(found.daily) == [day]
    assert keys(found.monthly) == [f"{day:%Y-%m}"]
    assert keys(report(call(call_time=at(moment)), zone=zone, since=str(day), until=str(day)).sessions) == ["session-1"]


def test_call_without_a_time_counts_on_the_day_of_its_file() -> None:
    row = call(call_time=None, cost_status="no_time", date=date(2026, 3, 5))
    found = report(row, zone="America/Los_Angeles")
    assert keys(found.daily) == [date(2026, 3, 5)]
    assert (found.totals.first, found.totals.last) == (None, None)


def test_dates_include_both_ends() -> None:
    rows = [call(str(day), call_time=datetime(2026, 3, day, 12, tzinfo=UTC)) for day in range(1, 6)]
    found = report(*rows, since="2026-03-02", until="20260304")
    assert keys(found.daily) == [date(2026, 3, 2), date(2026, 3, 3), date(2026, 3, 4)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"zone": "Mars/Base"}, "--zone 'Mars/Base' is no time zone"),
        ({"zone": ""}, "--zone '' is no time zone"),
        ({"zone": "America/Los_Angles"}, "did you mean America/Los_Angeles?"),
        ({"since": "2026-02-30"}, "--since '2026-02-30' is no date"),
        ({"until": "2026-3-1"}, "--until '2026-3-1' is no date"),
        ({"since": "2026-03-02", "until": "2026-03-01"}, "--since 2026-03-02 is after --until 2026-03-01"),
    ],
)
def test_zones_and_dates_that_are_none_are_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongUse) as refused:
        scope_of(**options)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("name", ["localtime", "localtim", "Factory"])
def test_no_zone_is_meant_that_would_be_refused_too(name: str) -> None:
    with pytest.raises(WrongUse, match=r"^[^;]*$"):
        scope_of(zone=name)


def test_days_at_the_ends_of_the_calendar_are_days() -> None:
    assert scope_of(since="0001-01-01", until="9999-12-31").may_hold(date.min)
    rows = [call(text, call_time=at(text)) for text in ("1900-01-01T00:00", "9998-12-31T23:59")]
    found = report(*rows, zone="UTC")
    assert keys(found.daily) == [date(1900, 1, 1), date(9998, 12, 31)]
    assert b"Cost per month, by model" in page_of(found)
    assert b"Cost per day, by model" in page_of(report(rows[1]))


def test_years_have_four_digits() -> None:
    found = report(call(call_time=datetime(999, 1, 2, 3, 4, 5, 678_999, tzinfo=UTC)))
    document = json_of(found)
    assert (document["firstActivity"], document["daily"][0]["date"]) == ("0999-01-02T03:04:05.678Z", "0999-01-02")
    assert document["monthly"][0]["month"] == "0999-01"
    assert b"0999-01-02 03:04<" in page_of(found)


def test_weeks_begin_on_mondays_of_the_zone() -> None:
    # A Sunday evening in California is a Monday morning in London.
    found = report(call("a", call_time=at("2026-03-09T05:00")), call("b", call_time=at("2026-03-15T12:00")))
    assert keys(found.weekly) == [date(2026, 3, 9)]
    found = report(call("a", call_time=at("2026-03-09T05:00")), zone="America/Los_Angeles")
    assert (keys(found.daily), keys(found.weekly)) == ([date(2026, 3, 8)], [date(2026, 3, 2)])


@pytest.mark.parametrize(("days", "step"), [(124, "day"), (125, "week"), (800, "week"), (801, "month")])
def test_a_page_draws_no_more_bars_than_can_be_told_apart(days: int, step: str) -> None:
    first = at("2024-01-03T12:00")
    found = report(call("a", call_time=first), call("b", call_time=first + timedelta(days=days - 1)))
    page = page_of(found)
    for title in (b"Cost per %s, by model", b"Tokens per %s, by kind", b"Share of input read from cache, per %s"):
        assert title % step.encode() in page


@pytest.mark.parametrize(
    ("step", "days", "drawn"),
    [
        ("day", ["2026-02-27", "2026-02-28", "2026-03-01"], ["27", "28", "01"]),
        ("day", ["2026-02-27", "2026-03-01", "2026-03-09"], ["27", "28-", "01", "02-", "09"]),
        ("week", ["2026-12-21", "2026-12-28", "2027-01-04", "2027-01-18"], ["21", "28", "04", "11-", "18"]),
        (
            "month",
            ["2026-11-01", "2026-12-01", "2027-01-01", "2027-03-01"],
            ["11-01", "12-01", "01-01", "02-01-", "03-01"],
        ),
    ],
)
def test_a_share_is_joined_to_that_of_the_next_step_and_no_other(step: Step, days: list[str], drawn: list[str]) -> None:
    chart = share_over_time("x", [date.fromisoformat(day) for day in days], step, [0.5] * len(days), "Share")
    (line,) = chart["data"]
    points = [
        day[-len(text.rstrip("-")) :] + ("" if value else "-")
        for day, value, text in zip(line["x"], line["y"], drawn, strict=True)
    ]
    assert points == drawn


def test_a_share_that_nothing_joins_has_a_mark_of_its_own() -> None:
    days = [date(2026, 3, 1) + timedelta(days=number) for number in range(70) if number != 68]
    (line,) = share_over_time("x", days, "day", [0.5] * 69, "Share")["data"]
    assert line["marker"]["size"] == [0] * 68 + [0, 6]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/Los_Angeles"])
def test_times_beyond_the_calendar_count_at_its_ends(zone: str) -> None:
    ends = [call("a", call_time=at("0001-01-01T00:00")), call("b", call_time=at("9999-12-31T23:59"))]
    moments = pl.Series([-(10**17), 3 * 10**17]).cast(pl.Datetime("us", "UTC"))
    beyond = frame(ends).with_columns(call_time=moments)
    for rows in (frame(ends), beyond):
        found = report_of(condense([(date(2026, 3, 1), rows)], zone), scope_of(zone=zone))
        assert [day.year for day in keys(found.daily)] == [1, 9999]
        assert page_of(found)
        assert json_of(found)["totals"]["calls"] == 2


# Names.


def test_projects_keep_apart_what_is_named_empty_and_what_is_not_named() -> None:
    found = report(call("a", project=""), call("b", project=None), call("c", project="007"))
    assert sorted(keys(found.projects), key=str) == ["", "007", None]


@pytest.mark.parametrize(
    ("pattern", "projects"),
    [
        ("007", ["007"]),
        ("/srv/*", ["/srv/a", "/srv/b"]),
        ("", ["", None]),
        ("/home/[x]", ["/home/[x]"]),  # a name is itself, whatever it would mean as a pattern
        ("nothing", []),
    ],
)
def test_project_pattern_is_a_name_or_a_shell_pattern(pattern: str, projects: list[str | None]) -> None:
    names = ["007", "", None, "/srv/a", "/srv/b", "/home/[x]"]
    found = report(*(call(str(n), project=name) for n, name in enumerate(names)), projects=[pattern])
    assert sorted(keys(found.projects), key=str) == sorted(projects, key=str)


def test_model_patterns_add_up() -> None:
    models = ["claude-a", "claude-b", "gpt"]
    found = report(*(call(name, model=name) for name in models), models=["claude-b", "g*"])
    assert sorted(keys(found.models)) == ["claude-b", "gpt"]


def test_models_are_dearest_first_and_unknown_costs_last() -> None:
    found = report(
        call("a", model="cheap", cost_microusd=1),
        call("b", model="b", cost_status="unknown_model", output=9_999),
        call("c", model="dear", cost_microusd=9),
        call("d", model="also-cheap", cost_microusd=1),
    )
    assert keys(found.models) == ["dear", "also-cheap", "cheap", "b"]
    assert [each.model for each in found.totals.models] == keys(found.models)


# Own and delegated.


def test_sub_agents_of_a_session_are_delegated_in_every_table() -> None:
    found = report(call("a", cost_microusd=5), call("b", is_subagent=True, stream_id="agent-1", cost_microusd=3))
    for table in (found.daily, found.weekly, found.monthly, found.models, found.projects, found.sessions):
        (line,) = table
        assert (line.own.cost_microusd, line.delegated.cost_microusd, line.all.cost_microusd) == (5, 3, 8)


def test_session_of_a_sub_agent_counts_with_the_session_at_the_top() -> None:
    child = {"session_id": "child", "parent_session_id": "top", "is_subagent": True}
    grandchild = {"session_id": "grandchild", "parent_session_id": "child", "is_subagent": True}
    found = report(
        call("a", session_id="top", cost_microusd=100),
        call("b", **child, cost_microusd=20),
        call("c", **grandchild, cost_microusd=3),
    )
    (line,) = found.sessions
    assert (line.key, line.own.cost_microusd, line.delegated.cost_microusd) == ("top", 100, 23)
    assert found.totals.all.calls == 3


def test_session_at_the_top_is_found_through_calls_that_are_not_asked_for() -> None:
    child = {"session_id": "child", "parent_session_id": "top", "is_subagent": True}
    grandchild = {"session_id": "grandchild", "parent_session_id": "child", "is_subagent": True}
    rows = call("a", session_id="top"), call("b", **child), call("c", **grandchild, model="small")
    assert keys(report(*rows, models=["small"]).sessions) == ["top"]


def test_fork_is_a_session_of_its_own() -> None:
    rows = call("a", session_id="a"), call("b", session_id="b", parent_session_id="a")
    assert sorted(keys(report(*rows).sessions)) == ["a", "b"]


def test_sessions_that_name_each_other_as_parents_end_somewhere() -> None:
    ring = [
        call(name, session_id=name, parent_session_id=parent, is_subagent=True)
        for name, parent in (("b", "c"), ("c", "a"), ("a", "b"), ("d", "b"))
    ]
    (line,) = report(*ring).sessions
    assert (line.key, line.all.calls) == ("a", 4)


def test_session_has_the_project_of_its_own_newest_call() -> None:
    (line,) = report(
        call("a", project="/old"),
        call("b", project="/new", call_time=NOON.replace(hour=13)),
        call("c", project="/agent", call_time=NOON.replace(hour=14), is_subagent=True),
    ).sessions
    assert line.project == "/new"


# The whole and its parts.


@settings(max_examples=15)
@given(st.lists(st.integers(0, 59), max_size=8), st.sampled_from(["UTC", "America/Los_Angeles", "Asia/Kolkata"]))
def test_every_table_adds_up_to_the_totals_however_the_rows_were_parted(cuts: list[int], zone: str) -> None:
    rows = SAMPLE
    whole = report(*rows, zone=zone)
    for table in (whole.daily, whole.weekly, whole.monthly, whole.models, whole.projects, whole.sessions):
        assert sum((line.all for line in table), Amounts()) == whole.totals.all
        assert sum((line.delegated for line in table), Amounts()) == whole.totals.delegated
        for line in table:
            assert sum((each.amounts for each in line.models), Amounts()) == line.all
    assert sum((line.amounts for line in whole.coverage), Amounts()) == whole.totals.all
    ends = [0, *sorted(cuts), len(rows)]
    parts = [
        [condense([(row["date"], frame([row])) for row in rows[first:last]], zone)]
        for first, last in pairwise(ends)
        if first < last
    ]
    assert report_of(merge(merge(part) for part in parts), Scope(zone)) == whole


SAMPLE = sample_calls(days=3, sessions_a_day=2)[:60]


def test_no_rows_give_an_empty_report() -> None:
    empty = report_of(merge([]), Scope())
    assert empty == UsageReport(Scope(), Line(None, Amounts(), Amounts()), (), (), (), (), (), (), ())
    assert empty.totals.all.cost_microusd == 0


# JSON.


def test_json_has_the_names_of_ccusage() -> None:
    document = json_of(report(call(cache_write_5m=3, cache_read=2, cost_microusd=1_234_567)))
    day = document["daily"][0]
    amounts = {
        "inputTokens": 100,
        "outputTokens": 10,
        "cacheCreationTokens": 3,
        "cacheReadTokens": 2,
        "totalTokens": 115,
        "totalCost": 1.234567,
    }
    assert {key: day[key] for key in amounts} == amounts
    assert {key: document["totals"][key] for key in amounts} == amounts
    assert (day["date"], day["modelsUsed"]) == ("2026-03-01", ["claude-sonnet-4-5"])
    assert day["modelBreakdowns"][0].items() >= {"modelName": "claude-sonnet-4-5", "cost": 1.234567}.items()
    assert document["monthly"][0]["month"] == "2026-03"
    session = document["sessions"][0]
    assert (session["sessionId"], session["projectPath"]) == ("session-1", "/home/ada/kite")
    assert session["lastActivity"] == "2026-03-01T12:00:00.000Z"


def test_json_cost_that_nobody_knows_is_null_and_counted() -> None:
    document = json_of(report(call(cost_status="unknown_model")), ["models"])
    assert (document["models"][0]["totalCost"], document["models"][0]["unpricedCalls"]) == (None, 1)
    assert document["coverage"][0]["costStatus"] == "unknown_model"
    assert "daily" not in document


# Figures.


@pytest.mark.parametrize(
    ("microusd", "text"),
    [
        (None, DASH),
        (0, "$0.00"),
        (1, "<$0.0001"),
        (-1, "-<$0.0001"),
        (6_681, "$0.0067"),
        (9_999, "$0.0100"),
        (14_999, "$0.01"),
        (15_000, "$0.02"),
        (1_234_567_891, "$1,234.57"),
        (-2_500_000, "-$2.50"),
    ],
)
def test_money_is_read_in_cents_and_never_as_nothing_when_it_is_something(microusd: int | None, text: str) -> None:
    assert money(microusd) == text


def test_figures_are_short_where_they_are_glanced_at() -> None:
    assert [compact(n) for n in (950, 1_250, 12_345, 999_999, 1_250_000_000)] == [
        "950",
        "1.25 k",
        "12.3 k",
        "1,000 k",
        "1.25 B",
    ]
    amounts = (9_999_994_999, 10_000_499_999, 2_500_000_000_000)
    assert [money_at_a_glance(n) for n in amounts] == ["$9,999.99", "$10,000", "$2.50 M"]
    assert [share(part) for part in (None, 0.0, 0.0001, 0.5, 0.9999, 1.0)] == [
        DASH,
        "0.0 %",
        "<0.1 %",
        "50.0 %",
        ">99.9 %",
        "100.0 %",
    ]


@given(st.integers(0, 3_000_000), st.integers(0, 3_000_000))
def test_own_and_delegated_come_to_the_cost_as_shown(own: int, delegated: int) -> None:
    digits = digits_for(own + delegated)
    shown = cost_and_parts(own + delegated, own, delegated, digits)
    whole, *parts = (0 if text.startswith("<") else int(text.lstrip("$").replace(".", "")) for text in shown)
    assert whole == sum(parts)
    assert all(
        abs(part * 10 ** (6 - digits) - exact) <= 10 ** (6 - digits)
        for part, exact in zip(parts, (own, delegated), strict=True)
    )


def test_costs_of_a_table_have_one_precision() -> None:
    assert cost_and_parts(55_000, 44_950, 10_050, digits_for(55_000)) == ("$0.0550", "$0.0449", "$0.0101")
    assert cost_and_parts(1_234_500_000, 1_234_499_000, 1_000, 2) == ("$1,234.50", "$1,234.50", "<$0.01")
    assert cost_and_parts(5_000, None, 5_000, 2) == ("$0.01", DASH, "$0.01")


def test_cost_a_day_is_of_all_days_with_calls_priced_or_not() -> None:
    unpriced = call("b", call_time=NOON.replace(day=2), cost_microusd=None, cost_status="unknown_model")
    (_, (name, value, _), *_) = headline(report(call("a", cost_microusd=3_000_000), unpriced))
    assert (name, value) == ("Cost a day with calls", "$1.50")


def test_long_names_keep_both_ends_and_wide_characters_count_twice() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcde…hijk"
    assert shortened("\u4e2d" * 6, 10) == "\u4e2d\u4e2d…\u4e2d\u4e2d"


def test_names_show_what_is_not_seen() -> None:
    assert named("a\u202eb\n\x1b\u200b", "model") == r"a\u202eb\n\x1b\u200b"
    assert (named("", "project"), named(None, "project")) == ('""', "(no project)")


def test_a_status_that_is_not_known_shows_what_is_not_seen() -> None:
    assert status_words("unknown_model") == "No price: the model is in no price table"
    assert (status_words(None), status_words("")) == ("No status", "No status")
    found = report(call("a", cost_status="\x1b[31mRED<script>\n\u202e"))
    assert [words for words, _, _ in covered(found, 0)] == [r"Other: \x1b[31mRED<script>\n\u202e"]


# The page.


class Elements(HTMLParser):
    """Every element of a page and every attribute, counted."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found[" ".join([tag, *sorted(name for name, _ in attributes)])] += 1


NAMES = st.text(st.sampled_from("<>&\"'/!-=$%{} \n\0\u202eabcdef;#\u05d0\u4e2d") | st.characters(codec="utf-8"))


@settings(max_examples=10)
@given(NAMES, NAMES, NAMES)
def test_names_add_no_element_to_the_page(model: str, project: str, session: str) -> None:
    plain = page_of(report(call()))
    named = page_of(report(call(model=model, project=project, session_id=session)))
    assert Elements(named).found == Elements(plain).found


# Data sets.


def test_data_set_is_read_by_its_newest_manifest_alone(tmp_path: Path) -> None:
    write_calls(store(tmp_path), [call("old")])
    write_calls(store(tmp_path), [call("new", output=7), call("newer", output=8)], generation=2)
    store(tmp_path).create("date=2026-03-01/source=codex/part-stray.parquet", b"half written")
    found = read_report(store(tmp_path), Scope())
    assert found is not None
    assert (found.totals.all.calls, found.totals.all.output) == (2, 15)


def test_days_out_of_range_are_not_read(tmp_path: Path) -> None:
    days = [call(str(day), call_time=datetime(2026, 3, day, 12, tzinfo=UTC)) for day in range(1, 11)]
    write_calls(store(tmp_path), days)
    read: list[str] = []
    found = read_report(store(tmp_path), scope_of(since="2026-03-05", until="2026-03-05"), advances=read.append)
    assert found is not None
    assert found.totals.all.calls == 1
    assert [key[:15] for key in read] == ["date=2026-03-04", "date=2026-03-05", "date=2026-03-06"]


def test_data_set_of_nothing_but_nulls_reads(tmp_path: Path) -> None:
    nothing: Row = {"project": None, "model": None, "provider": None, "call_time": None}
    write_calls(store(tmp_path), [call(**nothing, cost_status="no_time")])
    found = read_report(store(tmp_path), Scope())
    assert found is not None
    assert (keys(found.models), keys(found.projects), found.totals.all.cost_microusd) == ([None], [None], None)


def test_data_set_without_calls_is_empty_and_a_folder_without_one_is_none(tmp_path: Path) -> None:
    assert read_report(store(tmp_path), Scope()) is None
    write_calls(store(tmp_path), [])
    found = read_report(store(tmp_path), Scope())
    assert found is not None
    assert found.daily == ()


@pytest.mark.parametrize(
    ("damage", "rule"),
    [(lambda data: data[:-1], "digest"), (lambda data: b"x" + data[1:], "digest"), (None, "missing")],
)
def test_damaged_file_is_named(tmp_path: Path, damage: Any, rule: str) -> None:
    key = write_calls(store(tmp_path), [call()]).files[0].key
    if damage is None:
        store(tmp_path).delete(key)
    else:
        store(tmp_path).replace(key, damage(store(tmp_path).read(key)))
    with pytest.raises(UsageRejected) as refused:
        read_report(store(tmp_path), Scope())
    assert (refused.value.file, refused.value.rule) == (key, rule)


def test_file_of_other_columns_is_named_among_good_ones(tmp_path: Path) -> None:
    good = [call("a"), call("b", call_time=NOON.replace(day=2))]
    without_output = pa.schema([field for field in CALL_FILE_SCHEMA if field.name != "output"])
    bad = write_calls(store(tmp_path), [call("c", call_time=NOON.replace(day=3))], 1, without_output)
    files = (*write_calls(store(tmp_path), good, 2).files, *bad.files)
    store(tmp_path).create(manifest_key(3), bad.model_copy(update={"generation": 3, "files": files}).to_bytes())
    with pytest.raises(UsageRejected) as refused:
        read_report(store(tmp_path), Scope())
    assert (refused.value.file, refused.value.rule) == (bad.files[0].key, "columns")


def test_data_set_of_a_later_version_is_refused(tmp_path: Path) -> None:
    manifest = write_calls(store(tmp_path), [call()])
    later = manifest.model_copy(update={"generation": 2, "schema_version": SCHEMA_VERSION + 1})
    store(tmp_path).create(manifest_key(2), later.to_bytes())
    with pytest.raises(UsageRejected, match=r"m000002\.json: schema_version: it has version 2"):
        read_report(store(tmp_path), Scope())


def test_file_that_a_writer_takes_away_meanwhile_is_read_from_the_newer_manifest(tmp_path: Path) -> None:
    old = write_calls(store(tmp_path), [call("a"), call("b", call_time=NOON.replace(day=2))])

    def update(files: int) -> None:
        if store(tmp_path).stat(manifest_key(2)) is None:
            write_calls(store(tmp_path), [call("c", output=77)], generation=2)
            store(tmp_path).delete(old.files[1].key)

    found = read_report(store(tmp_path), Scope(), starts=update)
    assert found is not None
    assert (found.totals.all.calls, found.totals.all.output) == (1, 77)
