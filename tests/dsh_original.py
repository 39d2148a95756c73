"""The original's loader and writer of session logs, run beside ours in one process for many orders."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from schemas._dsh_json import read_value, write_value
from schemas.dsh import Event, LogHeader
from tests.node_programs import node, packages

__all__ = ["How", "ordered", "reading", "writing"]

How = Literal["stored", "inspect", "load"]
_PROGRAM = Path(__file__).with_name("dsh_session_logs.mjs")
_SECONDS = 120


def writing(
    root: Path, sessions: Sequence[tuple[LogHeader, list[list[Event]]]], *, compressed: bool, packed: bool
) -> dict[str, Any]:
    """The order to store these sessions, batch by batch."""
    listed = []
    for header, batches in sessions:
        meta = header.as_json()
        del meta["type"]
        listed.append({"meta": meta, "batches": batches})
    return {**_place("write", root, compressed), "packChunks": packed, "sessions": listed}


def reading(root: Path, how: How, *, compressed: bool, ids: Sequence[str] | None = None) -> dict[str, Any]:
    """The order to read these sessions, or all that are listed; the answer has meta and events, or error, by id."""
    order = {**_place("read", root, compressed), "how": how}
    return order if ids is None else {**order, "ids": list(ids)}


def ordered(orders: Sequence[dict[str, Any]]) -> list[Any]:
    """What came of each order. Raises NotInstallable where the original cannot be had."""
    folder = packages("dsh-session-logs").parent
    command = [str(node()), "--input-type=module", "--eval", _PROGRAM.read_text()]
    said = write_value(orders)
    done = subprocess.run(command, cwd=folder, input=said, capture_output=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise AssertionError(done.stderr.decode("utf-8", "replace"))
    answers: list[Any] = read_value(done.stdout)[0]
    return answers


def _place(order: str, root: Path, compressed: bool) -> dict[str, Any]:
    return {"order": order, "root": str(root), "compression": "zstd" if compressed else "none"}
