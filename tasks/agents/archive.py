"""What of a run's private folder goes into the archive: its transcripts, masked, below ``transcripts/<kind>/``.

They keep their paths below the root that the land stage knows, so that this folder of one run is a source to land. A
file that cannot be taken (a link, a device, one that is too large, a name that is no text, a second one whose name
differs from another's by a secret alone) is left out: an agent can make any of these.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from tasks.agents.masking import Mask
from tasks.agents.runner import Transcripts

__all__ = ["LARGEST", "left_transcripts", "place_of", "transcript_files"]

LARGEST: Final = 512 * 1024 * 1024
"""Bytes of the largest transcript that is archived."""
MOST: Final = 10_000
"""Files of one run that are looked at."""


_PLACES: Final[dict[str, tuple[Literal["dsh", "claude-code", "codex"], str, str]]] = {
    "dsh": ("dsh", "dsh/sessions", "session*.jsonl*"),
    "claude-code": ("claude-code", "claude/projects", "*"),
    "codex": ("codex", "codex", "sessions/**/rollout-*"),
    "native": ("dsh", "native/sessions", "session*.jsonl*"),
}
"""Kind, root and files of each runner's transcripts, below its private folder."""


def left_transcripts(runner: str, home: Path) -> Transcripts | None:
    """The transcripts in a runner's private folder; None for a runner that keeps none there."""
    if runner not in _PLACES:
        return None
    kind, place, files = _PLACES[runner]
    root = home / place
    # An agent may have put a link in the way; what lies behind it is not this run's.
    inside = home.resolve()
    found = [file for file in islice(root.rglob(files), MOST) if file.parent.resolve().is_relative_to(inside)]
    return Transcripts(kind, root, tuple(sorted(found)))


def place_of(runner: str, home: Path) -> Path:
    """The root of a runner's transcripts in its private folder."""
    return home / _PLACES[runner][1]


def transcript_files(transcripts: Transcripts, mask: Mask) -> Iterator[tuple[str, bytes]]:
    """Masked path and masked bytes of each transcript, in order of the paths."""
    given = set()
    for file in sorted(transcripts.files):
        path = mask.text(file.relative_to(transcripts.root).as_posix())
        if path.isprintable() and path not in given and (data := _read(file)) is not None:
            given.add(path)
            yield f"transcripts/{transcripts.kind}/{path}", mask.file(data)


def _read(file: Path) -> bytes | None:
    try:
        # Neither followed nor waited for: what lies here was named by a program that the agent may steer.
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
        os.close(opened)
        return None
    with open(opened, "rb") as content:
        return content.read()
