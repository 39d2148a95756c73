"""How a run is judged: by evidence, never by the exit code alone (headless agent runs).

A task was carried out when the runner's own record closes its turn as completed, no tool was denied, and there is an
answer. Everything else has a stop reason and a sentence. What we stopped ourselves is judged by why we did.
"""

from __future__ import annotations

from typing import Final

from schemas.agent_run import StopReason, Verdict
from tasks.agents.runner import RunEvidence

__all__ = ["judge"]

_FROM_OUTSIDE: Final[frozenset[StopReason]] = frozenset({"cancelled", "interrupted"})
_LIMITS: Final[frozenset[StopReason]] = frozenset(
    {"turn_limit", "tool_round_limit", "token_limit", "budget_exceeded", "timeout"}
)


def judge(evidence: RunEvidence, cause: StopReason | None = None, cause_detail: str = "") -> Verdict:
    """The verdict on a run that we asked to stop for `cause`, None where we did not."""
    if evidence.turn == "completed":
        return _completed(evidence, cause, cause_detail)
    if cause in _FROM_OUTSIDE:
        return Verdict("interrupted", cause, cause_detail or f"the run was {cause}")
    if cause is not None:
        return Verdict("failed", cause, cause_detail)
    if evidence.stop is not None:
        return Verdict("failed", evidence.stop, evidence.detail or f"the run ended with {evidence.stop}")
    if evidence.turn == "aborted" or (evidence.exit_code is not None and evidence.exit_code < 0):
        by = f"signal {-evidence.exit_code}" if evidence.exit_code and evidence.exit_code < 0 else "the runner"
        return Verdict(
            "interrupted", "interrupted", f"the run was ended by {by}: {evidence.detail or 'no more is known'}"
        )
    if evidence.exit_code in (130, 143):
        return Verdict("interrupted", "interrupted", f"the program was told to end (exit {evidence.exit_code})")
    exited = "" if evidence.exit_code is None else f", although it exited with {evidence.exit_code}"
    return Verdict("failed", "open_turn", f"{evidence.detail or 'no record closes its turn'}{exited}")


def _completed(evidence: RunEvidence, cause: StopReason | None, cause_detail: str) -> Verdict:
    if cause in _LIMITS and cause != "timeout":
        return Verdict("failed", cause, f"it ended, but past its limit: {cause_detail}")
    denied = sorted({tool.name for tool in evidence.tools if tool.outcome == "denied"})
    if denied:
        return Verdict("failed", "tool_denied", f"it ended, but was denied {', '.join(denied)}")
    if not evidence.final_text.strip():
        return Verdict("failed", "empty_answer", "its turn is completed, but there is no answer")
    unknown = sum(tool.outcome == "unknown_tool" for tool in evidence.tools)
    note = f"; {unknown} call{'s' * (unknown > 1)} of tools that there are not" if unknown else ""
    return Verdict("completed", "completed", f"its turn is completed{note}")
