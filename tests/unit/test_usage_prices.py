"""What calls cost: at their own time, by two tables, in micro-dollars; and never again, unless somebody asks."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import polars as pl
import pytest
from genai_prices import Usage, calc_price

from schemas.errors import ConfigurationRejected
from tasks.usage import RateCard, load_price_table, shipped_price_table
from tasks.usage.price_table import SHIPPED
from tasks.usage.pricing import priced
from tests.memory_store import MemoryStore
from tests.usage_sessions import CARD, claude, codex, count, dsh, land, rows

MILLION = 1_000_000
NO_TABLE = RateCard(load_price_table([]))


def card(text: str) -> RateCard:
    return RateCard(load_price_table([("prices.yaml", text.encode()), (SHIPPED.name, SHIPPED.read_bytes())]))


def costs(*calls: dict[str, Any], dialect: str = "claude-code/1", by: RateCard = CARD) -> list[Any]:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", calls, dialect=dialect)
    count(zone, usage, by)
    return rows(usage, "cost_microusd", "cost_status")


@pytest.mark.parametrize(
    ("time", "times"),
    [
        ("2026-08-24T02:00:00Z", 2),  # Monday, peak
        ("2026-08-24T12:00:00Z", 1),
        ("2026-08-29T02:00:00Z", 1),  # Saturday
        ("2026-08-30T07:00:00Z", 1),  # Sunday
        ("2026-08-22T02:00:00Z", 2),  # a Saturday before weekends were off-peak
        ("2026-08-24T00:59:59.999Z", 1),
        ("2026-08-24T03:59:59.999Z", 2),
        ("2026-08-24T04:00:00Z", 1),
        ("2026-08-24T06:00:00Z", 2),
        ("2026-08-24T10:00:00Z", 1),
    ],
)
def test_deepseek_costs_double_at_its_peak_and_not_on_weekends(time: str, times: int) -> None:
    flash = dsh("S:t1.s1", MILLION, MILLION, read=MILLION, time=time)
    pro = {**flash, "call": "S:t1.s2", "model": "deepseek-v4-pro"}
    assert costs(flash, pro, dialect="deepseek-harness/1") == [
        (times * (220_000 + 7_000 + 660_000), "priced"),
        (times * (660_000 + 22_000 + 1_980_000), "priced"),
    ]


def test_deepseek_has_no_peak_before_it_began() -> None:
    call = dsh("S:t1.s1", MILLION, MILLION, read=MILLION, time="2026-08-10T02:00:00Z")
    assert costs(call, dialect="deepseek-harness/1") == [(140_000 + 2_800 + 280_000, "priced")]


def test_deepseek_new_rates_began_at_midnight_in_beijing() -> None:
    before = dsh("S:t1.s1", MILLION, 0, time="2026-08-16T15:59:59.999Z")
    after = dsh("S:t1.s2", MILLION, 0, time="2026-08-16T16:00:00Z")
    assert costs(before, after, dialect="deepseek-harness/1") == [(140_000, "priced"), (220_000, "priced")]


def test_deepseek_weekends_are_those_of_beijing() -> None:
    friday_evening = dsh("S:t1.s1", MILLION, 0, time="2026-11-27T16:30:00Z")
    monday_in_beijing = dsh("S:t1.s2", MILLION, 0, time="2026-11-30T01:00:00Z")
    assert costs(friday_evening, monday_in_beijing, dialect="deepseek-harness/1") == [
        (150_000, "priced"),
        (300_000, "priced"),
    ]


def test_an_hour_of_cache_costs_twice_the_input_and_five_minutes_a_quarter_more() -> None:
    def writes(call: str, **split: int) -> dict[str, Any]:
        whole = {"input_tokens": 0, "cache_creation_input_tokens": 3904, "cache_creation": split or None}
        return claude(call, 0, usage=whole)

    assert costs(
        writes("m1", ephemeral_1h_input_tokens=3904),
        writes("m2", ephemeral_5m_input_tokens=3904),
        writes("m3"),
        writes("m4", ephemeral_1h_input_tokens=904),
    ) == [
        (3904 * 6, "priced"),
        (3904 * 375 // 100, "priced"),
        (3904 * 375 // 100, "partial"),
        (904 * 6 + 3000 * 375 // 100, "partial"),
    ]


def test_writes_of_unknown_time_are_no_guess_where_time_makes_no_price() -> None:
    assert costs(dsh("S:t1.s1", 0, 0, write=MILLION), dialect="deepseek-harness/1") == [(140_000, "priced")]


def test_a_table_of_ones_own_may_say_what_writes_of_unknown_time_cost() -> None:
    rates = "input: 1, output: 1, cache_write: 2, cache_write_1h: 4"
    call = claude("m1", 0, model="m", usage={"input_tokens": 0, "cache_creation_input_tokens": 100})
    guess = f"prices: [{{model: m, provider: p, rates: {{{rates}}}}}]"
    told = f"prices: [{{model: m, provider: p, rates: {{{rates}, cache_write_unknown: 3}}}}]"
    assert [costs(call, by=card(text)) for text in (guess, told)] == [[(200, "partial")], [(300, "priced")]]


def test_unknown_models_and_times_have_no_cost_and_say_why() -> None:
    assert costs(
        claude("m1", MILLION, model="my-local-1"),
        claude("m2", MILLION, model=""),
        claude("m3", MILLION, time=""),
        claude("m4", MILLION, time="", model="my-local-1"),
    ) == [(None, "unknown_model"), (None, "unknown_model"), (None, "no_time"), (None, "no_time")]


def test_a_sum_over_calls_is_never_priced_and_what_the_runtime_said_stands() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    reported = {"inputTokens": 1, "outputTokens": 1, "costMicrocents": 12_345}
    call = {"time": "2026-03-01T00:00:00Z", "usage": reported}
    calls = [{"call": name, "model": name, **call} for name in ("x", "gpt-5")]
    land(zone, "a", calls, dialect="relavium/1")
    count(zone, usage)
    columns = ("source", "cost_microusd", "cost_reported_microusd", "cost_status", "price_source")
    assert rows(usage, *columns) == [
        ("relavium", 123, 123, "reported", None),
        ("relavium", 123, 123, "reported", None),
    ]


def test_a_call_with_a_number_that_cannot_be_has_no_cost_but_what_the_runtime_says() -> None:
    told = {"inputTokens": 2**62, "outputTokens": 1, "costMicrocents": 12_345}
    call = {"call": "m1", "model": "x", "time": "2026-03-01T00:00:00Z", "usage": told}
    assert costs(call, dialect="relavium/1") == [(123, "reported")]
    far = {"input_tokens": 2**61, "server_tool_use": {"web_search_requests": 3}}
    assert costs(claude("m1", 2_000_000, usage=far)) == [(None, "impossible_count")]
    assert costs(codex("t@1", 10, 5, 2**62 - 1), dialect="codex/1") == [(None, "impossible_count")]


def test_a_runtime_that_says_zero_has_said_nothing() -> None:
    call = {"call": "m1", "model": "my-local-1", "time": "2026-03-01T00:00:00Z"}
    usage = {"inputTokens": 1, "outputTokens": 1, "costMicrocents": 0}
    assert costs({**call, "usage": usage}, dialect="relavium/1") == [(None, "unknown_model")]


def test_long_input_has_a_rate_of_its_own_for_the_whole_call() -> None:
    at = claude("m1", 10, usage={"input_tokens": 200_000})
    above = claude("m2", 10, usage={"input_tokens": 1, "cache_read_input_tokens": 200_000})
    assert costs(at, above) == [(200_000 * 3 + 150, "priced"), (6 + 120_000 + 225, "priced")]


def test_fast_and_batched_calls_and_searches_cost_what_they_do() -> None:
    fast = claude("m1", 1_000, model="claude-opus-4-8", time="2026-11-01T00:00:00Z")
    batch = claude("m2", 1_000, time="2026-11-01T00:00:00Z", usage={"service_tier": "batch"})
    search = claude("m3", 1_000, usage={"server_tool_use": {"web_search_requests": 3}, "service_tier": "standard"})
    quick = {**fast, "call": "m0", "usage": {**fast["usage"], "speed": "fast"}}
    faster, usual, batched, searched = (cost for cost, _ in costs(quick, fast, batch, search))
    assert (usual, batched, searched) == (25_050, 7_515, 15_030 + 30_000)
    assert faster > usual


def test_every_row_names_the_tables_and_what_they_matched() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 1, model="claude-sonnet-4-5-20250929"), claude("m2", 1, model="my-local-1")])
    land(zone, "d", [dsh("S:t1.s1", 1, 1, model="deepseek-v4-flash-0731")], dialect="deepseek-harness/1")
    count(zone, usage)
    assert rows(usage, "provider", "model", "price_model", "price_source", "price_version") == [
        ("deepseek", "deepseek-v4-flash-0731", "deepseek-v4-flash*", "overrides", CARD.version),
        ("anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5", "genai-prices", CARD.version),
        (None, "my-local-1", None, None, None),
    ]
    assert CARD.version == f"genai-prices 0.2.3, overrides {shipped_price_table().version}"


MODELS = [
    *("claude-sonnet-4-5-20250929", "claude-opus-4-5", "gpt-5.2-codex", "gpt-5.5", "deepseek-chat", "gemini-2.5-pro"),
    *("anthropic/claude-haiku-4-5", "openrouter/google/gemini-2.5-flash"),
]


def test_packaged_prices_come_out_to_the_micro_dollar() -> None:
    chance = random.Random(7)
    calls = [
        {
            "model": chance.choice(MODELS),
            "tier": chance.choice([None, "batch", "standard"]),
            "speed": None,
            "call_time": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(28_000_000)),
            "input_uncached": chance.randrange(300_000),
            "cache_read": chance.randrange(200_000),
            "cache_write_5m": chance.randrange(5_000),
            "cache_write_1h": chance.choice([0, 7_777]),
            "cache_write_unknown": 0,
            "output": chance.randrange(9_000),
            "web_searches": chance.choice([0, 2]),
            "cost_reported_microusd": None,
            "source": "claude-code",
        }
        for _ in range(400)
    ]
    kinds: dict[str, Any] = {"call_time": pl.Datetime("us", "UTC"), "tier": pl.String, "speed": pl.String}
    kinds["cost_reported_microusd"] = pl.Int64
    found = priced(pl.DataFrame(calls, schema_overrides=kinds), NO_TABLE)
    assert found["cost_microusd"].to_list() == [_package_price(call) for call in calls]


def _package_price(call: dict[str, Any]) -> int:
    model = call["model"]
    provider, rest = model.split("/", 1) if "/" in model else (None, model)
    context = {} if call["tier"] is None else {"service_tier": call["tier"]}
    if call["tier"] == "batch":
        context = {"processing": "batch"}
    writes = call["cache_write_5m"] + call["cache_write_1h"]
    price = calc_price(
        Usage(
            input_tokens=call["input_uncached"] + call["cache_read"] + writes,
            cache_read_tokens=call["cache_read"],
            cache_write_tokens=writes,
            cache_write_1h_tokens=call["cache_write_1h"],
            output_tokens=call["output"],
            web_searches=call["web_searches"],
        ),
        rest,
        provider_id=provider,
        genai_request_timestamp=call["call_time"],
        price_context=context,
    )
    return int((price.total_price * MILLION).to_integral_value(ROUND_HALF_UP))


def test_half_a_micro_dollar_is_rounded_up_once_for_the_whole_call() -> None:
    table = "prices: [{model: m, provider: p, rates: {input: '0.3', output: '0.2'}}]"
    halves = claude("m1", 1, model="m", usage={"input_tokens": 1})
    assert costs(halves, {**halves, "call": "m2", "usage": {"output_tokens": 2}}, by=card(table)) == [
        (1, "priced"),
        (0, "priced"),
    ]


def test_calls_larger_than_any_are_still_counted_out_exactly() -> None:
    huge = claude("m1", 2**47, model="claude-opus-4-5", usage={"input_tokens": 0})
    assert costs(huge) == [(25 * 2**47, "priced")]


RATES = "rates: {input: 1, output: 1}"
PRICES = """
prices:
  - model: house-*
    provider: house
    valid_from: 2026-03-01T00:00:00Z
    valid_to: 2026-04-01T00:00:00Z
    rates: {input: "1", output: "2", cache_read: "0.5", cache_write: "1.5", cache_write_1h: "3"}
    bands:
      - zone: America/Los_Angeles
        days: [sat, sun]
        hours: ["01:00-03:30"]
        rates: {input: "0", output: "0.25"}
"""


@pytest.mark.parametrize(
    ("time", "cost"),
    [
        ("2026-02-28T23:59:59.999999Z", None),
        ("2026-03-01T00:00:00Z", 2_000_000),
        ("2026-03-31T23:59:59Z", 2_000_000),
        ("2026-04-01T00:00:00Z", None),
        ("2026-03-07T09:30:00Z", 250_000),  # 01:30 on a Saturday
        ("2026-03-08T10:29:59Z", 250_000),  # 03:29 on the Sunday on which 02:00 became 03:00
        ("2026-03-08T10:30:00Z", 2_000_000),
        ("2026-03-06T09:30:00Z", 2_000_000),
    ],
)
def test_an_entry_holds_from_to_and_in_its_bands(time: str, cost: int | None) -> None:
    call = claude("m1", MILLION, model="House-1", time=time, usage={"input_tokens": 0})
    assert costs(call, by=card(PRICES)) == [(cost, "unknown_model" if cost is None else "priced")]


@pytest.mark.parametrize(
    ("text", "row", "detail"),
    [
        ("prices: [{model: a, provider: p}]", 1, "rates: it is missing"),
        ("prices: [{model: a, provider: p, rates: {input: 1, output: -1}}]", 1, "rates.output"),
        ("prices: [{model: a, provider: p, rates: {input: 1, output: 1}, until: x}]", 1, "until: there is no such key"),
        (
            "prices: [{model: a, provider: p, rates: {input: 1, output: 1}, valid_from: 2026-03-01T00:00:00}]",
            1,
            "timezone",
        ),
        (
            f"prices: [{{model: a, provider: p, {RATES}, bands: [{{zone: Mars, {RATES}}}]}}]",
            1,
            "no time zone is called Mars",
        ),
        (
            f"prices: [{{model: a, provider: p, {RATES}, bands: [{{hours: ['22:00-02:00'], {RATES}}}]}}]",
            1,
            "two spans to pass midnight",
        ),
        ("prices: [", None, "not YAML"),
        ("- a", None, "valid dictionary"),
    ],
)
def test_a_table_that_says_what_it_cannot_mean_is_refused(text: str, row: int | None, detail: str) -> None:
    with pytest.raises(ConfigurationRejected, match=detail) as caught:
        load_price_table([("mine.yaml", text.encode())])
    assert str(caught.value).startswith("mine.yaml: row 1: " if row else "mine.yaml: ")


def test_the_form_that_a_refusal_shows_is_one_of_a_table() -> None:
    with pytest.raises(ConfigurationRejected) as caught:
        load_price_table([("mine.yaml", b"{}")])
    form = str(caught.value).partition("written as in ")[2]
    assert [entry.model for entry in load_price_table([("mine.yaml", form.encode())]).entries] == ["my-model"]


def test_history_keeps_its_price_when_tables_change_until_somebody_asks() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    old = card("prices: [{model: m, provider: p, rates: {input: 0, output: 1}}]")
    new = card(
        "prices: [{model: m, provider: p, rates: {input: 0, output: 9}},"
        " {model: q, provider: p, rates: {input: 0, output: 1}}]"
    )
    land(zone, "a", [claude("m1", 10, model="m"), claude("m2", 20, model="m"), claude("m3", 30, model="q")])
    count(zone, usage, old)
    first = [("m1", 10, old.version), ("m2", 20, old.version), ("m3", None, None)]
    columns = ("call_key", "cost_microusd", "price_version")
    assert rows(usage, *columns) == first
    assert not count(zone, usage, new).changed
    land(zone, "b", [claude("m4", 40, model="m"), claude("m2", 20, model="m")])
    count(zone, usage, new)
    assert rows(usage, *columns) == [*first, ("m4", 360, new.version)]
    land(zone, "a", [claude("m1", 11, model="m")], seq=2)
    count(zone, usage, new)
    assert rows(usage, *columns) == [("m1", 99, new.version), *first[1:], ("m4", 360, new.version)]
    assert count(zone, usage, new, reprice=True, sessions=("b",)).changed is False
    assert count(zone, usage, new, reprice=True).changed
    assert rows(usage, *columns) == [
        ("m1", 99, new.version),
        ("m2", 180, new.version),
        ("m3", 30, new.version),
        ("m4", 360, new.version),
    ]
    assert not count(zone, usage, new, reprice=True).changed


def test_a_later_row_that_tells_of_a_search_is_priced_with_it() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 10)])
    count(zone, usage)
    land(zone, "a", [claude("m1", 10, usage={"server_tool_use": {"web_search_requests": 1}})], seq=2)
    count(zone, usage)
    again = MemoryStore()
    count(zone, again)
    assert rows(usage, "cost_microusd") == rows(again, "cost_microusd") == [30 + 150 + 10_000]


def test_codex_is_priced_with_what_was_cached_inside_its_input() -> None:
    call = codex("c#1", 1_000, 800, 100, 50, time="2026-03-01T00:00:00Z")
    assert costs(call, dialect="codex/1") == [(int(200 * Decimal("1.75") + 800 * Decimal("0.175") + 1_400), "priced")]
