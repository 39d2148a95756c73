"""The types of event that each generation knows (DSH specification, section 4; version 4: section 8).

Little is known of generations 1 to 3 but what changed in them. They are read with the types on both sides of them,
less those that the change took away.
"""

from __future__ import annotations

from typing import Final

__all__ = ["REFUSED_TYPES", "known_types", "surface_types"]


def _types(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON = _types("""
    agent-preset/selected agent/inbox/spliced approval/asked approval/decided approval/policy assistant/message
    command/done command/run compaction/end compaction/prune compaction/start compaction/summary feedback/record
    goal/change hook/invoked hook/result llm/retry llm/retry-started permission/preset plan/mode request/context
    request/header sandbox/mode schedule/change session/end-seed session/title session/title-llm-request step/end
    step/start subagent/descriptor team/member team/message/delivered team/message/queued team/task todo/write
    tool-workflow/agent-end tool-workflow/agent-start tool-workflow/run-end tool-workflow/run-start tool/call
    tool/result turn/end turn/start user/message web/deepseek-search-llm-request
""")
_FIRST = _COMMON | {"assistant/chunk", "tool/code-dispatch", "tool/code-dispatch-start"}
_LATEST = _COMMON | _types("""
    assistant/attempt deliverables/presented developer/message feedback/message-delete feedback/message-put
    image/offload job/registered job/settled model/selection session-log-deepseek/delivery-accepted slots/dispatch
    subagent/catalog subagent/model-selection-policy system/message tool/ptc-dispatch tool/ptc-dispatch-start
    working-directory/change workspace/changes
""")
_RETIRED_FIRST = frozenset({"request/header-delta", "mode/set"})
_RETIRED_STREAM = _RETIRED_FIRST | {"assistant/chunk", "steering/message"}
_RETIRED_NAMES = _RETIRED_STREAM | {"tool/code-dispatch", "tool/code-dispatch-start"}

REFUSED_TYPES: Final = (_RETIRED_FIRST, _RETIRED_FIRST, _RETIRED_STREAM, _RETIRED_NAMES, _RETIRED_NAMES)
"""For each generation, the types that it once had or never had under this name: refused even where marked ignorable."""

_KNOWN: Final = (_FIRST, _FIRST | _LATEST, _FIRST | _LATEST, _FIRST | _LATEST, _LATEST)
_SURFACE = frozenset({"user/message", "assistant/message", "tool/result"})
_ON_SURFACE: Final = (
    _SURFACE,
    _SURFACE,
    _SURFACE,
    _SURFACE | {"system/message"},
    _SURFACE | {"system/message", "developer/message"},
)


def known_types(generation: int) -> frozenset[str]:
    """The types a log of this generation may hold without marking them as ones to ignore."""
    return _KNOWN[generation]


def surface_types(generation: int) -> frozenset[str]:
    """The types that are messages on the surface."""
    return _ON_SURFACE[generation]
