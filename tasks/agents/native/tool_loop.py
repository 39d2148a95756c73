"""The guard against a turn that calls tools for ever.

A turn ends with ``tool_loop`` when it has made as many rounds as one turn may, or when several rounds in a row made
the same calls and got the same results: another request would be spent on what is known already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tasks.agents.native.conversation import Round

__all__ = ["DEFAULT_LOOPS", "LoopLimits", "loop_found"]


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """Rounds that one turn may make, and how many in a row may be the same."""

    rounds: int = 50
    same: int = 4


DEFAULT_LOOPS: Final = LoopLimits()


def loop_found(limits: LoopLimits, rounds: Sequence[Round]) -> str | None:
    """Why the turn must not go on after these rounds; None when it may."""
    if len(rounds) >= limits.rounds:
        return f"the turn made {len(rounds)} tool rounds, as many as one turn may"
    last = rounds[-limits.same :]
    if len(last) == limits.same and len({_signature(each) for each in last}) == 1:
        names = ", ".join(dict.fromkeys(call.name for call in last[0].answer.calls))
        return f"{limits.same} rounds in a row made the same calls ({names}) and got the same results"
    return None


def _signature(round: Round) -> tuple[tuple[str, str], ...]:
    calls = [(call.name, call.arguments) for call in round.answer.calls]
    return tuple(calls + [(result.outcome, result.text) for result in round.results])
