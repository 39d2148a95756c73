"""A run as others keep it: a row of the usage tables, and a page in Markdown for people."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Literal

from schemas.agent_record import RunEnd
from schemas.times import parse_time
from schemas.usage_run import RunRow

__all__ = ["markdown", "run_row"]

_TEXT_SHOWN = 8_000


def run_row(
    end: RunEnd, schedule: str | None, folder: str, *, counted_by: Literal["runner", "landed"] = "runner"
) -> RunRow:
    """The row of a run; ``folder`` is its key in the archive. What nobody counted is null, not zero; what somebody did
    was counted by whom ``counted_by`` names."""
    tokens = end.tokens()
    counted = end.calls is not None
    main = next((path for path in end.transcripts if ".jsonl" in path), None)
    return RunRow(
        run_id=end.run_id,
        agent=end.agent,
        runner=end.runner,
        runner_version=end.runner_version or None,
        model=end.model,
        schedule=schedule if end.scheduled_for is not None else None,
        started=_time(end.started),
        ended=_time(end.ended),
        exit_status=end.status,
        exit_code=end.exit_code,
        stop_reason=end.stop,
        turns=len(end.calls) if end.calls is not None else None,
        tool_calls=len(end.tools) if end.tools is not None else None,
        denied_tools=end.outcomes("denied") if end.tools is not None else None,
        input_uncached=tokens.input if counted else None,
        cache_read=tokens.cache_read if counted else None,
        cache_write=tokens.cache_write if counted else None,
        output=tokens.output if counted else None,
        reasoning=tokens.reasoning if counted else None,
        input_total=tokens.total - tokens.output if counted else None,
        cost_microusd=end.cost_microusd,
        cost_reported_microusd=end.cost_reported_microusd,
        budget_microusd=end.budget_microusd,
        session_id=end.session_id,
        transcript_key=f"{folder}{main}" if main is not None else None,
        error_class=None if end.status == "completed" else end.stop,
        figures_from=counted_by if counted else None,
    )


def markdown(end: RunEnd, links: dict[str, str]) -> str:
    """The run for people: verdict, answer, tools, tokens, cost, and where the rest is."""
    tokens = end.tokens()
    rows = [
        ("Verdict", f"**{end.status}** ({end.stop}): {end.reason}"),
        ("Runner", f"{end.runner} {end.runner_version}, {end.provider}/{end.model}"),
        ("From, to", f"{end.started}, {end.ended}"),
        (
            "Tokens",
            f"{tokens.input} in, {tokens.cache_read} from and {tokens.cache_write} to the cache, {tokens.output} out",
        ),
        ("Cost", _money(end.cost_microusd) + f" of {_money(end.budget_microusd)}" * (end.budget_microusd is not None)),
        ("Reported cost", _money(end.cost_reported_microusd)),
        ("Tools", _tools(end)),
        ("Session", end.session_id or "none"),
        *links.items(),
    ]
    table = "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows)
    text = end.final_text[:_TEXT_SHOWN]
    more = f"\n\n… {len(end.final_text) - len(text)} more characters" if len(text) < len(end.final_text) else ""
    # Fenced, and longer than any fence inside: an answer is text and not our page.
    fence = "`" * max(3, 1 + max((len(run) for run in _ticks(text)), default=0))
    answer = f"{fence}text\n{text}\n{fence}{more}" if text else "There is no answer."
    return f"# {end.agent}\n\n| | |\n|---|---|\n{table}\n\n## Answer\n\n{answer}\n"


def _tools(end: RunEnd) -> str:
    counted = Counter((tool.name, tool.outcome) for tool in end.tools or ())
    said = [f"{name} {number} {outcome}" for (name, outcome), number in sorted(counted.items())]
    return ", ".join(said) or ("none" if end.tools is not None else "unknown")


def _money(microusd: int | None) -> str:
    return "unknown" if microusd is None else f"${microusd / 1_000_000:.6f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _ticks(text: str) -> list[str]:
    return [run for run in "".join(letter if letter == "`" else " " for letter in text).split() if run]


def _time(text: str) -> datetime:
    return datetime.fromtimestamp(parse_time(text) // 1_000 / 1_000_000, UTC)
