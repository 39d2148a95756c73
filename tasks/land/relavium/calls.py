"""What a session's record says it has used: totals, since Relavium does not say it of single calls.

All of a session's records tell the totals of one call that grows, so that whoever counts calls by id counts the last
and greatest of them, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Raw

from schemas.call_facts import CallFacts
from schemas.relavium_session import AgentSessionRecord
from schemas.session_data import Record, Usage
from tasks.land.relavium.lines import to_json
from tasks.land.relavium.parts import unicode_text

__all__ = ["call_facts", "totals_call", "usage_of"]

_LARGEST = 2**63 - 1
_TOTALS = ("totalInputTokens", "totalOutputTokens", "totalCostMicrocents", "totalConservativeMicrocents")
_COST_COUNTS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cost_microcents": "costMicrocents",
    "conservative_microcents": "conservativeMicrocents",
    "call_count": "callCount",
    "unpriced_calls": "unpricedCalls",
}


def totals_call(session: str) -> str:
    """The id of the call that a session's totals are told of."""
    return f"{session}#totals"


def usage_of(record: AgentSessionRecord) -> Usage | None:
    """The session's tokens so far; None when it has used nothing and cost nothing."""
    if not any(getattr(record, name) for name in _TOTALS):
        return None
    return Usage(in_=_count(record.totalInputTokens), out=_count(record.totalOutputTokens))


def call_facts(record: AgentSessionRecord, landed: Record, costs: Iterable[Mapping[str, Any]]) -> CallFacts | None:
    """The facts beside a landed session record: its totals, and what each model has cost where the store says so.
    Money is in micro-cents, 100,000,000 a dollar; what may have been billed (`conservative`) is no part of cost."""
    if landed.usage is None:
        return None
    usage: dict[str, Any] = {
        "inputTokens": _count(record.totalInputTokens),
        "outputTokens": _count(record.totalOutputTokens),
        "costMicrocents": _count(record.totalCostMicrocents),
        "conservativeMicrocents": _count(record.totalConservativeMicrocents),
    }
    if models := [_model(cost) for cost in costs]:
        usage["models"] = models
    return CallFacts(
        ord=landed.ord,
        id=landed.id,
        call=landed.call,
        time=landed.time,
        model=landed.model,
        usage=Raw(to_json(usage)),
        session=unicode_text(record.id),
        cwd=unicode_text(record.context.workingDir),
    )


def _model(cost: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: _count(cost.get(column)) for column, name in _COST_COUNTS.items()}
    return {"model": str(cost.get("model")), **counts, "legacy": bool(cost.get("is_legacy"))}


def _count(value: Any) -> int:
    """A count as a number that fits; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return 0
    return int(min(value, _LARGEST))
