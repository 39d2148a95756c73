"""Usage tables: the fixed Arrow schemas of call rows and run rows, column by column (usage specification, "Columns").

Every file has every column with the same type, also where a day holds nothing but nulls, so that no reader ever guesses
a type from a file's content. Importing this module imports pyarrow.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = [
    "CALL_FILE_SCHEMA",
    "CALL_SCHEMA",
    "COST_STATUSES",
    "PARTITION_COLUMNS",
    "RUN_FILE_SCHEMA",
    "RUN_SCHEMA",
    "RUN_SCHEMA_VERSION",
    "SCHEMA_VERSION",
    "SOURCES",
]

SCHEMA_VERSION: Final = 1
"""Of call rows. Raised whenever a column is added, renamed, retyped or comes to mean something else."""
RUN_SCHEMA_VERSION: Final = 2
"""Of run rows. Version 1 had no `figures_from`."""

SOURCES: Final = ("sessionizer", "deepseek-harness", "relavium", "claude-code", "codex", "native")
"""Where a row's evidence comes from. ``sessionizer`` is a landed file that this project did not land itself: Session
Data alone says what was used, without what sources say beyond it."""

COST_STATUSES: Final = ("priced", "partial", "reported", "unknown_model", "no_time", "impossible_count")
"""How a row came by its cost.

``priced``: by a price table, at the call's own time. ``partial``: priced, but on an assumption: cache writes of unknown
lifetime have two possible rates and the 5-minute one was taken, or a kind of token has no rate. ``reported``: no table
knows the model, and the runtime's own figure stands. ``unknown_model`` and ``no_time``: no cost, never 0; so
``impossible_count``: a number that the evidence tells of the call is none that can be, and is counted as 0.
"""

_TEXT = pa.string()
_COUNT = pa.int64()
_MONEY = pa.int64()
_TIME = pa.timestamp("us", tz="UTC")


def _schema(columns: tuple[tuple[str, pa.DataType, bool, str], ...]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(name, kind, nullable=nullable, metadata={"doc": meaning})
            for name, kind, nullable, meaning in columns
        ]
    )


PARTITION_COLUMNS: Final = pa.schema(
    [
        pa.field("date", pa.date32(), False, {"doc": "UTC day of call_time; without one, of the session's first time"}),
        pa.field("source", _TEXT, False, {"doc": "which kind of archive the evidence is from, one of SOURCES"}),
    ]
)
"""The columns that are in the path of a file (``date=…/source=…``) and not in the file."""

CALL_FILE_SCHEMA: Final = _schema(
    (
        ("call_key", _TEXT, False, "the call's own id; one row of the whole data set has it"),
        ("request_id", _TEXT, True, "the provider's request or response id, where the source kept one"),
        ("project", _TEXT, True, "the call's working directory, or what that was made from; null where no source says"),
        ("session_id", _TEXT, False, "the earliest session that has the call"),
        ("conversation_id", _TEXT, False, "the conversation chain of that session"),
        ("stream_id", _TEXT, False, "the stream of the session: main, or a sub-agent's id"),
        ("parent_session_id", _TEXT, True, "sub-agents: whom they work for; forks and resumes: what they go on from"),
        ("is_subagent", pa.bool_(), False, "whether a sub-agent made the call; own and delegated totals differ by it"),
        ("call_time", _TIME, True, "when the call was made, UTC; null where the evidence does not say"),
        ("provider", _TEXT, True, "whose price list was used; null without one"),
        ("model", _TEXT, True, "the model as the runtime wrote it"),
        ("price_model", _TEXT, True, "the model as matched in a price table; null without a match"),
        ("input_uncached", _COUNT, False, "input tokens that were neither read from a cache nor written to one"),
        ("cache_read", _COUNT, False, "input tokens read from a cache"),
        ("cache_write_5m", _COUNT, False, "input tokens written to a cache for five minutes"),
        ("cache_write_1h", _COUNT, False, "input tokens written to a cache for one hour"),
        ("cache_write_unknown", _COUNT, False, "input tokens written to a cache for a time that nobody told"),
        ("output", _COUNT, False, "output tokens, reasoning included"),
        ("reasoning", _COUNT, True, "reasoning tokens, a part of output; null where the source does not say"),
        ("input_total", _COUNT, False, "all input, cached included (OpenTelemetry gen_ai.usage.input_tokens)"),
        ("finished", pa.bool_(), False, "whether the runtime recorded that the answer came to its end"),
        ("cost_microusd", _MONEY, True, "micro-dollars, rounded half up once for the whole call; null where unknown"),
        ("cost_reported_microusd", _MONEY, True, "cost in micro-dollars as the runtime itself said it"),
        ("cost_status", _TEXT, False, "how cost_microusd came about, one of COST_STATUSES"),
        ("price_source", _TEXT, True, "the table the rates are from: genai-prices or overrides; null without a match"),
        ("price_version", _TEXT, True, "the versions of both tables when the row was priced; null where it was not"),
        ("evidence_key", _TEXT, False, "key in the zone of the landed file whose record the tokens are from"),
        ("evidence_seq", _COUNT, True, "that file's landed sequence in its session"),
        ("evidence_row", _COUNT, True, "that record's row in the file, counted from 1"),
        ("copies_seen", _COUNT, False, "how many records reported the call, over all files and sessions; at least 1"),
        ("schema_version", pa.int32(), False, "SCHEMA_VERSION of the writer"),
    )
)  # fmt: skip
"""The columns of a call file, in order: one row a provider call. Token counts are never negative."""

CALL_SCHEMA: Final = pa.schema([*PARTITION_COLUMNS, *CALL_FILE_SCHEMA])
"""What readers get: the partition columns, then those of the files."""

RUN_FILE_SCHEMA: Final = _schema(
    (
        ("run_id", _TEXT, False, "the headless run"),
        ("agent", _TEXT, False, "the agent's name"),
        ("runner", _TEXT, False, "what ran it: dsh, claude-code, codex or native"),
        ("runner_version", _TEXT, True, "that program's version"),
        ("model", _TEXT, True, "the model as asked for"),
        ("schedule", _TEXT, True, "the schedule that started the run; null when somebody did"),
        ("started", _TIME, False, "when the run started, UTC"),
        ("ended", _TIME, True, "when it ended, UTC; null when it never did"),
        ("exit_status", _TEXT, False, "how the run ended as judged by evidence, not by an exit code"),
        ("exit_code", pa.int32(), True, "what the process said, which proves nothing"),
        ("stop_reason", _TEXT, True, "why the last turn ended, in the runner's words"),
        ("turns", _COUNT, True, "turns, as far as the evidence tells"),
        ("tool_calls", _COUNT, True, "tool calls"),
        ("denied_tools", _COUNT, True, "tool calls that were refused"),
        ("input_uncached", _COUNT, True, "as in call rows, summed over the run"),
        ("cache_read", _COUNT, True, "as in call rows, summed over the run"),
        ("cache_write", _COUNT, True, "cache writes of every lifetime, summed over the run"),
        ("output", _COUNT, True, "as in call rows, summed over the run"),
        ("reasoning", _COUNT, True, "as in call rows, summed over the run"),
        ("input_total", _COUNT, True, "as in call rows, summed over the run"),
        ("cost_microusd", _MONEY, True, "cost of the run in micro-dollars; null where unknown"),
        ("cost_reported_microusd", _MONEY, True, "as the runner itself said it"),
        ("budget_microusd", _MONEY, True, "what the run was allowed to cost, in micro-dollars"),
        ("session_id", _TEXT, True, "the session the run wrote, which call rows name too"),
        ("transcript_key", _TEXT, True, "key of the run's transcript"),
        ("error_class", _TEXT, True, "the kind of failure; null when there was none"),
        ("figures_from", _TEXT, True, "who counted: runner, or landed (what landed of a run that was cut); else null"),
        ("schema_version", pa.int32(), False, "RUN_SCHEMA_VERSION of the writer"),
    )
)  # fmt: skip
"""The columns of a run file, in order: one row a headless run."""

RUN_SCHEMA: Final = pa.schema([PARTITION_COLUMNS.field("date"), *RUN_FILE_SCHEMA])
"""What readers of runs get; `date` is the UTC day on which the run started, and only in the path."""
