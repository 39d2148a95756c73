"""From what sources report to candidates: tokens, times and keys of every record under one set of names.

No count is below zero, none is counted twice, and what a client made up is no call (usage specification, "Columns").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from schemas.times import NO_TIME, held_time
from tasks.usage.lines import BEYOND
from tasks.usage.reported import SYNTHETIC, Reports

__all__ = ["CANDIDATE", "KEY", "MAIN", "LandedPlace", "candidates", "family"]

_PROGRAMS = {
    "claude-code": "claude-code",
    "codex": "codex",
    "deepseek-harness": "deepseek-harness",
    "native": "deepseek-harness",
    "relavium": "relavium",
}
_SESSIONIZER, _SD = "sessionizer", "sd"
_TOKENS = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown", "output")
_TIME = pl.Datetime("us", "UTC")

Columns: TypeAlias = dict[str, pl.DataType | type[pl.DataType]]

_WINNER: Columns = {
    "source": pl.String,
    "evidence_key": pl.String,
    "evidence_seq": pl.Int64,
    "evidence_row": pl.Int64,
    "request_id": pl.String,
    "call_time": _TIME,
    "model": pl.String,
    **dict.fromkeys(_TOKENS, pl.Int64),
    "reasoning": pl.Int64,
    "reported": pl.Int64,
    "finished": pl.Boolean,
    "web_searches": pl.Int64,
    "speed": pl.String,
    "tier": pl.String,
}
KEY = ["family", "call_key"]
"""What tells calls apart. Claude Code's message ids mean the same call wherever they stand; other ids mean something
only within their own source."""

MAIN = "main"
"""The stream that is a session's own."""

CANDIDATE: Columns = {
    "family": pl.String,
    "call_key": pl.String,
    "session": pl.String,
    **_WINNER,
    "stream": pl.String,
    "is_subagent": pl.Boolean,
    "forked_from": pl.String,
    "project": pl.String,
    "home_seq": pl.Int64,
    "home_row": pl.Int64,
    "foreign": pl.Boolean,
    "records": pl.Int64,
}
"""A candidate's columns. `stream`, `is_subagent`, `forked_from` and `project` are of the session's first record of the
call, which stands at `home_seq`, `home_row`; `foreign` says that every record names another session as its own;
`records` counts them. `reported` is in micro-dollars. `web_searches` is null where a number of the record cannot be, so
that nobody knows what the call cost."""


@dataclass(frozen=True, slots=True)
class LandedPlace:
    """Where a file of reports belongs: the landed file itself, or that which a companion stands beside. `landed_here`
    says that this project landed it, `by_records` that the landed file itself is read."""

    session: str
    session_id: str
    key: str
    seq: int
    stream: str
    landed_here: bool
    by_records: bool


def family(source: pl.Expr) -> pl.Expr:
    """The family of ids that a row of `source` has its key from."""
    return pl.when(source == "sessionizer").then(pl.lit("claude-code")).otherwise(source).alias("family")


def candidates(reports: Reports, places: Sequence[LandedPlace]) -> pl.DataFrame:
    """The candidates in reports whose files lie at `places`: one a record, of which `best.best` is yet to choose. What
    a client made up, and what used nothing, is none."""
    told = [program if program in _PROGRAMS else _SESSIONIZER for program in reports.programs]
    where = pl.DataFrame(
        {
            "file": range(len(places)),
            "session": [place.session for place in places],
            "session_id": [place.session_id for place in places],
            "evidence_key": [place.key for place in places],
            "evidence_seq": [place.seq for place in places],
            "stream": [place.stream for place in places],
            # Our own agents write DeepSeek Harness' format, and are no harness of anybody's.
            "program": [_PROGRAMS.get(program, _SESSIONIZER) for program in told],
            "source": [
                program if place.landed_here else _SESSIONIZER for program, place in zip(told, places, strict=True)
            ],
        },
        schema={
            "file": pl.UInt32,
            **dict.fromkeys(("session", "session_id", "evidence_key"), pl.String),
            "evidence_seq": pl.Int64,
            **dict.fromkeys(("stream", "program", "source"), pl.String),
        },
    )
    words = set(where["program"])
    if any(place.by_records for place in places):
        words.add(_SD)
    # One query: each that Python asks for by itself waits until Python may go on, while others read.
    known = reports.table.lazy().filter(pl.col("model").ne_missing(SYNTHETIC)).rename({"session": "declared"})
    known = known.join(where.lazy(), on="file", maintain_order="left")
    counted = known.with_columns(**_counts(words), reported=_reported())
    counted = counted.filter((pl.sum_horizontal(_TOKENS) > 0) | (pl.col("reported") > 0) | pl.col(BEYOND))
    found = counted.select(
        family(pl.col("source")),
        _call_key(words),
        "session",
        "source",
        "evidence_key",
        "evidence_seq",
        pl.col("row").alias("evidence_row"),
        _text("request_id").alias("request_id"),
        _usual_time().alias("call_time"),
        _text("model").alias("model"),
        *_TOKENS,
        pl.when(pl.col("reasoning").is_not_null()).then(pl.min_horizontal("reasoning", "output")).alias("reasoning"),
        "reported",
        pl.col("finished").fill_null(False),
        pl.when(~pl.col(BEYOND).fill_null(False))
        .then(pl.col("server_tool_use.web_search_requests").clip(0, 10_000).fill_null(0))
        .alias("web_searches"),
        "speed",
        pl.col("service_tier").alias("tier"),
        "stream",
        _is_subagent().alias("is_subagent"),
        _text("forked_from").alias("forked_from"),
        _text("cwd").alias("project"),
        pl.col("evidence_seq").alias("home_seq"),
        pl.col("row").alias("home_row"),
        # A DSH log names itself, also where it is landed as another session's sub-agent.
        (
            (_text("declared").fill_null(pl.col("session_id")) != pl.col("session_id"))
            & (pl.col("program") != "deepseek-harness")
        ).alias("foreign"),
        pl.lit(1, pl.Int64).alias("records"),
        "time",
    )
    return _with_every_key(_with_odd_times(found.collect())).drop("time")


def _counts(words: Collection[str]) -> dict[str, pl.Expr]:
    """Tokens under one set of names, of records in the `words` of these programs or of Session Data; no count is below
    zero, and none is counted twice (usage specification, "Columns"; headless specification, "Normalising usage")."""
    is_sd = pl.col("sd.in").is_not_null() | pl.col("sd.out").is_not_null()
    is_sd = is_sd | pl.col("sd.cache_read").is_not_null() | pl.col("sd.cache_write").is_not_null()
    program = pl.when(is_sd).then(pl.lit(_SD)).otherwise("program") if _SD in words else pl.col("program")

    def by(**columns: pl.Expr) -> pl.Expr:
        told = {name.replace("_", "-"): each for name, each in columns.items()}
        branches = [pl.when(program == name).then(each) for name, each in told.items() if name in words]
        return pl.coalesce(*branches, pl.lit(0, pl.Int64))

    def of(*names: str) -> pl.Expr:
        return pl.coalesce(*names).clip(lower_bound=0).fill_null(0)

    read_in = of("cached_input_tokens")
    # Two spellings of one number (Codex specification, section 5): a client that writes both has 0 in the other.
    one, other = of("cache_write_input_tokens"), of("cache_creation_input_tokens")
    wrote_in = pl.when(one > 0).then(one).otherwise(other)
    anthropic_in, camel_in, camel_out = of("input_tokens"), of("inputTokens"), of("outputTokens")
    camel_read, camel_wrote = of("cacheReadTokens"), of("cacheWriteTokens")
    five, hour = of("cache_creation.ephemeral_5m_input_tokens"), of("cache_creation.ephemeral_1h_input_tokens")
    stated = of("cache_creation_input_tokens")
    wrote = pl.when(stated > 0).then(stated).otherwise(five + hour)
    # A split that says more than the whole does not say how the whole is split: the whole stays, the hour is believed.
    fits = five + hour <= wrote
    wrote_hour = pl.when(fits).then(hour).otherwise(pl.min_horizontal(hour, wrote))
    wrote_five = pl.when(fits).then(five).otherwise(0)
    return {
        "input_uncached": by(
            sd=of("sd.in"),
            claude_code=anthropic_in,
            sessionizer=anthropic_in,
            codex=(anthropic_in - read_in - wrote_in).clip(lower_bound=0),
            deepseek_harness=camel_in,
            relavium=camel_in,
        ),
        "cache_read": by(
            sd=of("sd.cache_read"),
            claude_code=of("cache_read_input_tokens"),
            sessionizer=of("cache_read_input_tokens"),
            codex=read_in,
            deepseek_harness=camel_read,
            relavium=camel_read,
        ),
        "cache_write_5m": by(claude_code=wrote_five, sessionizer=wrote_five),
        "cache_write_1h": by(claude_code=wrote_hour, sessionizer=wrote_hour),
        "cache_write_unknown": by(
            sd=of("sd.cache_write"),
            claude_code=wrote - wrote_five - wrote_hour,
            sessionizer=wrote - wrote_five - wrote_hour,
            codex=wrote_in,
            deepseek_harness=camel_wrote,
            relavium=camel_wrote,
        ),
        "output": by(
            sd=of("sd.out"),
            claude_code=of("output_tokens"),
            sessionizer=of("output_tokens"),
            codex=of("output_tokens"),
            deepseek_harness=camel_out,
            relavium=camel_out,
        ),
        "reasoning": pl.coalesce(
            "output_tokens_details.thinking_tokens", "reasoning_output_tokens", "reasoningTokens"
        ).clip(lower_bound=0),
    }


def _reported() -> pl.Expr:
    """Micro-dollars of what the runtime says in micro-cents. It says 0 of what it cannot price, too."""
    said = pl.col("costMicrocents")
    return pl.when(said > 0).then((said + 50) // 100)


def _call_key(words: Collection[str]) -> pl.Expr:
    """The call's own id, null without any. Small servers give one response id to several of Codex' calls, so there
    thread and turn belong to it (Codex specification, section 5)."""
    own = [_text("call"), _text("request_id"), _text("id")]
    if "codex" in words:
        thread = pl.col("call").str.extract(r"^(.+?)(?:_[^_#@]*)?[#@]", 1)
        response = pl.concat_str([thread, pl.col("run").fill_null(""), _text("request_id")], separator="/")
        own.insert(0, pl.when(pl.col("source") == "codex").then(response))
    return pl.coalesce(own).alias("call_key")


def _with_every_key(rows: pl.DataFrame) -> pl.DataFrame:
    """A record without any id is a call of its own, also where its row is not told."""
    if not rows["call_key"].null_count():
        return rows
    number = -1 - pl.int_range(pl.len()).over("evidence_key")
    place = pl.concat_str(["session", "evidence_seq", pl.coalesce("evidence_row", number)], separator="/")
    return rows.with_columns(pl.coalesce("call_key", place).alias("call_key"))


def _is_subagent() -> pl.Expr:
    """Whether a sub-agent made the call: it has a stream of its own, or its row or log says so. A log of DSH is a
    session of its own where its parent's is absent (DSH version 4, section 12)."""
    says_so = (pl.col("program") == "deepseek-harness") & _text("agent").is_not_null()
    return (pl.col("stream") != MAIN) | pl.col("side_chain").fill_null(False) | says_so


def _text(name: str) -> pl.Expr:
    """A text column in which an empty text says nothing, as an absent one does."""
    return pl.when(pl.col(name) != "").then(name)


def _usual_time() -> pl.Expr:
    """The instant that is written as most are; null for the epoch, and for what is written in any other way."""
    usual = r"^(19[7-9]|20\d|21\d)\d-\d\d-\d\dT[0-2]\d:[0-5]\d:[0-5]\d(\.\d{1,9})?Z$"
    written = pl.when(pl.col("time").str.contains(usual)).then("time")
    at = written.str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", strict=False)
    return pl.when(at.dt.timestamp("us") != 0).then(at).dt.replace_time_zone("UTC").cast(_TIME)


def _with_odd_times(rows: pl.DataFrame) -> pl.DataFrame:
    """With the other instants, too; null for what is none (session-flow specification, section 3), and for one so far
    from today that its nanoseconds are another's."""
    if not rows["call_time"].null_count():
        return rows
    odd = rows.filter(pl.col("call_time").is_null() & (pl.col("time") != ""))["time"].unique().to_list()
    values = {text: value // 1000 for text in odd if (value := held_time(text)) != NO_TIME}
    read = pl.col("time").replace_strict(values, default=None, return_dtype=pl.Int64).cast(_TIME)
    # What comes to nothing in microseconds is the epoch.
    read = pl.when(read.dt.timestamp("us") != 0).then(read)
    return rows.with_columns(pl.coalesce("call_time", read).alias("call_time"))
