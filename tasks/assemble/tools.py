"""Stage 4: tool uses and their results, joined by the id that the model gave them (session-flow specification, section
6).

The first use and the first result count, streams by name first; a second result makes the join ambiguous.
"""

from __future__ import annotations

from typing import NamedTuple

from .canonical import Delivered
from .entries import Entry

__all__ = ["NO_TOOLS", "Result", "Tool", "Tools", "Use", "join_tools"]


class Use(NamedTuple):
    """call: the call id of the record that holds the use; ts in nanoseconds, 0 = none."""

    stream: str
    seq: int
    row: int
    block: int
    name: str
    call: str
    container: str
    ts: int


class Result(NamedTuple):
    stream: str
    seq: int
    row: int
    block: int
    batch: str
    ts: int


class Tool(NamedTuple):
    """results: how many there are; `result` is the first."""

    use: Use | None
    result: Result | None
    results: int

    @property
    def met(self) -> tuple[str, int, int, int]:
        """(stream, seq, row, block) where the id is met first, be it by its use or by its result."""
        return min(place[:4] for place in (self.use, self.result) if place is not None)

    @property
    def stream(self) -> str:
        return self.met[0]

    @property
    def answered(self) -> bool:
        return self.results == 1


class Tools(NamedTuple):
    """tools: tool id to tool. touched: ids that a use or a result named in this step."""

    tools: dict[str, Tool]
    touched: list[str]


NO_TOOLS = Tools({}, [])


def join_tools(before: Tools, delivered: Delivered, containers: list[str]) -> Tools:
    tools = dict(before.tools)
    touched: dict[str, None] = {}
    for place, entry in enumerate(delivered.entries):
        if not entry.stream:
            continue
        for block, tool_id, name in entry.uses:
            if tool_id:
                use = Use(entry.stream, entry.seq, entry.row, block, name, entry.call, containers[place], entry.ts)
                known = tools.get(tool_id)
                if known is None:
                    tools[tool_id] = Tool(use, None, 0)
                elif known.use is None or use[:4] < known.use[:4]:
                    tools[tool_id] = known._replace(use=use)
                touched[tool_id] = None
        for block, tool_id in entry.results:
            if tool_id:
                _add_result(tools, tool_id, block, entry)
                touched[tool_id] = None
    return Tools(tools, list(touched))


def _add_result(tools: dict[str, Tool], tool_id: str, block: int, entry: Entry) -> None:
    result = Result(entry.stream, entry.seq, entry.row, block, entry.batch, entry.ts)
    known = tools.get(tool_id)
    if known is None:
        tools[tool_id] = Tool(None, result, 1)
    elif known.result is None or result[:4] < known.result[:4]:
        tools[tool_id] = Tool(known.use, result, known.results + 1)
    else:
        tools[tool_id] = known._replace(results=known.results + 1)
