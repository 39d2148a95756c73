"""Source files that have landed anew, because they had been read wrongly, and which of their landings counts.

What has landed stays (DESIGN.md, rule 1). A later landing of the same file has the name of the first with ``~2`` (then
``~3``) behind its prefix. Once all that lay there has landed anew, ``_calls/<session>/<place>%2F<prefix>.instead`` is
created: from then on its calls count, and those of the landings before it do not.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from typing import TypeVar

from schemas.errors import KeyRefused, ObjectExists
from storage.keys import escape_id, unescape_id
from storage.landings import CALLS
from storage.objects import ObjectStore

__all__ = ["anew", "generation_of", "newest", "stand_in", "standing"]

_MARK = "~"
_SUFFIX = ".instead"

T = TypeVar("T")


def anew(name: str, generation: int) -> str:
    """What a prefix, or a target that ends with one, is called in a generation, which count from 1."""
    return name if generation == 1 else f"{name}{_MARK}{generation}"


def generation_of(name: str) -> tuple[str, int]:
    """The first generation's name, and which generation this one is."""
    first, mark, number = name.rpartition(_MARK)
    is_later = bool(mark and first) and number.isascii() and number.isdigit() and not number.startswith("0")
    return (first, int(number)) if is_later and int(number) > 1 else (name, 1)


def newest(target: str, known: Mapping[str, T]) -> tuple[int, T | None]:
    """The newest generation of `target` among `known` targets, and what is known of it; 1 and None for none."""
    generation = 1
    while anew(target, generation + 1) in known:
        generation += 1
    return generation, known.get(anew(target, generation))


def stand_in(store: ObjectStore, session: str, place: str, prefix: str) -> None:
    """Let this landing of a source file count instead of those before it, for good. Once is enough."""
    key = f"{CALLS}{escape_id(session)}/{escape_id(f'{place}/{prefix}')}{_SUFFIX}"
    told = {"place": place, "instead_of": generation_of(prefix)[0], "counts": prefix}
    with contextlib.suppress(ObjectExists):
        store.create(key, json.dumps(told, separators=(",", ":")).encode() + b"\n")


def standing(names: Iterable[str]) -> dict[tuple[str, str], int]:
    """Which generation counts, by place and first prefix, of those that are not the first; `names` are all that lies
    in a session's folder of calls."""
    found: dict[tuple[str, str], int] = {}
    for name in names:
        if not name.endswith(_SUFFIX):
            continue
        with contextlib.suppress(KeyRefused):  # none of ours
            place, _, prefix = unescape_id(name.removesuffix(_SUFFIX)).partition("/")
            first, generation = generation_of(prefix)
            found[place, first] = max(generation, found.get((place, first), 1))
    return found
