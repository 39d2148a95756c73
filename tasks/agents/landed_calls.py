"""What a run used by what landed of it, where its process was killed and nobody was left to count.

Its calls are those that usage rows are made of: each once, with what the source said last. One that was under way when
the run was cut is in no transcript, and nobody knows what it used (headless agent runs; usage specification).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from schemas.agent_record import RunEnd
from schemas.agent_run import ModelCall, TokenCount
from schemas.times import parse_time
from storage.usage_marks import SessionMark
from storage.zone import Zone
from tasks.agents.prices import listed_for
from tasks.usage.best import best
from tasks.usage.candidates import KEY
from tasks.usage.evidence import Wanted, evidence_of
from tasks.usage.reading import candidates_in

__all__ = ["LandedCalls", "landed_calls", "with_landed_figures"]

_WRITTEN = ("cache_write_5m", "cache_write_1h", "cache_write_unknown")


@dataclass(frozen=True)
class LandedCalls:
    """Calls in order of their times, and the session that made them itself; None where that was not one."""

    calls: tuple[ModelCall, ...]
    session: str | None


def with_landed_figures(end: RunEnd, zone: Zone, sessions: Iterable[str]) -> RunEnd | None:
    """`end` with calls, cost and session by what these sessions hold of it; None where they hold no call, or not all of
    them could be read: a part would be taken for the whole."""
    first, last = (datetime.fromtimestamp(parse_time(text) / 1e9, UTC) for text in (end.started, end.ended))
    found = landed_calls(zone, sessions, first, last)
    if found is None or not found.calls:
        return None
    price = listed_for(end.provider, end.model, lambda: parse_time(end.started))
    costs = [price(call) for call in found.calls]
    return end.model_copy(
        update={
            "calls": found.calls,
            "cost_microusd": None if None in costs else sum(cost for cost in costs if cost is not None),
            "session_id": end.session_id or found.session,
        }
    )


def landed_calls(zone: Zone, sessions: Iterable[str], first: datetime, last: datetime) -> LandedCalls | None:
    """The calls that these sessions made from `first` to `last`, or at a time that nobody wrote down; a session that is
    gone on with has earlier ones. None where something of a session cannot be read."""
    unread: list[str] = []

    def report(file: Wanted, error: Exception, is_whole: bool) -> None:
        unread.append(file.key)

    tables = []
    for session in sessions:
        evidence = evidence_of(zone, session, SessionMark(session=session))
        unread += [problem.session for problem in evidence.problems]
        tables += list(candidates_in(zone, evidence.wanted, report))
    if unread:
        return None
    rows = best(tables).sort("output", "evidence_seq", "evidence_row").unique(KEY, keep="last", maintain_order=True)
    rows = rows.filter(pl.col("call_time").is_between(first, last).fill_null(True))
    rows = rows.sort("call_time", "call_key", nulls_last=True)
    own = rows.filter(~pl.col("is_subagent"))["session"].unique().to_list()
    written = rows.select(pl.sum_horizontal(_WRITTEN)).to_series()
    calls = tuple(
        ModelCall(key, model or "", TokenCount(uncached, read, wrote, output, reasoning or 0), time)
        for key, model, uncached, read, output, reasoning, time, wrote in zip(
            *(rows[name] for name in ("call_key", "model", "input_uncached", "cache_read", "output", "reasoning")),
            rows["call_time"].dt.timestamp("us"),
            written,
            strict=True,
        )
    )
    return LandedCalls(calls, own[0] if len(own) == 1 else None)
