"""Lines of clients by other makers that hold several response items at once (Codex notes, section 2).

One line is one record, so the items share it: it is of whoever speaks first in it, and has the parts and flags of all.
"""

from __future__ import annotations

from dataclasses import replace

from tasks.land.codex.draft import Draft
from tasks.land.codex.items import item
from tasks.land.codex.rows import Row, objects, text
from tasks.land.codex.state import ThreadState

__all__ = ["mutation"]

_APPEND = "append"


def mutation(state: ThreadState, row: Row, draft: Draft) -> None:
    """Only what is appended is read; the line stands beside it as it is, and alone when nothing is."""
    items = objects(row.payload.get("items")) if text(row.payload, "operation") in ("", _APPEND) else []
    for payload in items:
        each = Draft(body=draft.body, id=draft.id)
        item(state, replace(row, kind="response_item", name=text(payload, "type"), payload=payload), each)
        _add(draft, each)
    draft.keep_line()


def _add(draft: Draft, each: Draft) -> None:
    if draft.from_ == "runtime":
        draft.from_ = each.from_
    draft.call, draft.model = draft.call or each.call, draft.model or each.model
    draft.trigger, draft.child = draft.trigger or each.trigger, draft.child or each.child
    draft.flags += [flag for flag in each.flags if flag not in draft.flags]
    draft.parts += [part for part in each.parts if part.k != "data"]
    draft.dropped += each.dropped
