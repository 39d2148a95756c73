"""Stage 4: tool uses and their results, joined by the id that the model gave them (session-flow specification, section
6).

The first use and the first result count, streams by name first; a second result makes the join ambiguous.
"""

from __future__ import annotations

from typing import NamedTuple

from .canonical import Delivered
from .entries import Entry
from .row import Row

__all__ = ["NO_TOOLS", "Result", "Tool", "Tools", "Use", "join_tools"]


Place = tuple[str, int, int, int]
"""(stream, seq, row, block): the order in which the first use and the first result are found."""


class Use(Row, frozen=True):
    """call: the call id of the record that holds the use; ts in nanoseconds, 0 = none."""

    stream: str
    seq: int
    row: int
    block: int
    name: str
    call: str
    container: str
    ts: int

    @property
    def place(self) -> Place:
        return self.stream, self.seq, self.row, self.block


class Result(Row, frozen=True):
    stream: str
    seq: int
    row: int
    block: int
    batch: str
    ts: int

    @property
    def place(self) -> Place:
        return self.stream, self.seq, self.row, self.block


class Tool(Row, frozen=True):
    """results: how many there are; `result` is the first."""

    use: Use | None
    result: Result | None
    results: int

    @property
    def met(self) -> Place:
        """Where the id is met first, be it by its use or by its result."""
        return min(block.place for block in (self.use, self.result) if block is not None)

    @property
    def stream(self) -> str:
        """The stream where the id is met first."""
        if self.use is not None and (self.result is None or self.use.stream == self.result.stream):
            return self.use.stream  # nearly every tool
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
                elif known.use is None or use.place < known.use.place:
                    tools[tool_id] = Tool(use, known.result, known.results)
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
    elif known.result is None or result.place < known.result.place:
        tools[tool_id] = Tool(known.use, result, known.results + 1)
    else:
        tools[tool_id] = Tool(known.use, known.result, known.results + 1)
