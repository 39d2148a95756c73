"""Stage 8: segments, the activity windows of the main stream (session-flow specification, section 6).

A window ends where the main stream was quiet for longer than the idle gap. Its gates say whether it could be committed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from .ids import at_position, node_id
from .row import Row
from .spawns import Spawns
from .streams import MAIN, Streams
from .talks import Talk, Talks
from .tools import Tool, Tools

__all__ = ["Segment", "cut_segments"]


class Segment(Row, frozen=True):
    """seq, row: the anchor of its first talk. main, delegated: ids of its talks, on the main stream and on others."""

    id: str
    seq: int
    row: int
    last: bool
    gates_unmet: tuple[str, ...]
    main: tuple[str, ...]
    delegated: tuple[str, ...]


class _Window(Row, frozen=True):
    talks: list[str]
    first: int
    last: int


def cut_segments(
    talks: Talks, streams: Streams, tools: Tools, spawns: Spawns, *, gap: int, conversation: str
) -> list[Segment]:
    """`gap` in nanoseconds."""
    main = [(name, talk) for name, talk in talks.talks.items() if talk.stream == MAIN]
    if not main:
        return []
    main.sort(key=lambda item: item[1].first)
    windows = list(_windows(main, gap))
    # Stable by stream name, so that the order does not depend on how many steps the evidence came in.
    others = sorted(
        ((name, talk) for name, talk in talks.talks.items() if talk.stream != MAIN), key=lambda item: item[1].stream
    )
    waiting_child = any(open_.kind == "child_stream" for open_ in spawns.unresolved.values())
    uses = sorted(
        ((tool.use.ts, _settled_at(tool)) for tool in tools.tools.values() if tool.use is not None),
        key=lambda pair: pair[0],
    )
    starts = [start for start, _ in uses]
    latest = streams.streams[MAIN].last
    segments = []
    for place, window in enumerate(windows):
        last = place == len(windows) - 1
        unmet = []
        if last:
            unmet.append("activity_boundary")
        crossing = waiting_child or any(
            settled is None or not window.first <= settled <= window.last
            for _, settled in uses[bisect_left(starts, window.first) : bisect_right(starts, window.last)]
        )
        if crossing:
            unmet.append("no_crossing_open_operation")
        if last or not latest - window.last > gap:
            unmet.append("lateness_watermark")
        if not conversation:
            unmet.append("conversation_identity")
        anchor = talks.talks[window.talks[0]]
        delegated = tuple(name for name, talk in others if talk.first and window.first <= talk.first <= window.last)
        key = at_position("at", anchor.seq, anchor.row)
        segments.append(
            Segment(node_id("segment", key), anchor.seq, anchor.row, last, tuple(unmet), tuple(window.talks), delegated)
        )
    return segments


def _settled_at(tool: Tool) -> int | None:
    """When the use was answered, by one result only; None while it is open or ambiguous."""
    return tool.result.ts if tool.result is not None and tool.answered else None


def _windows(main: list[tuple[str, Talk]], gap: int) -> Iterable[_Window]:
    current: list[str] = []
    first = last = before = 0
    for name, talk in main:
        if current and talk.first and before and talk.first - before > gap:
            yield _Window(current, first, last)
            current, first, last = [], 0, 0
        current.append(name)
        if not first or (talk.first and talk.first < first):
            first = talk.first
        last = max(last, talk.last)
        before = talk.last
    yield _Window(current, first, last)
