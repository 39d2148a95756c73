"""The kinds of source that can be landed, by the names that `--kind` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from schemas.errors import WrongUse
from storage.objects import ObjectStore
from tasks.land.claude_code import ClaudeCode
from tasks.land.codex import Codex
from tasks.land.dsh import DeepSeekHarness
from tasks.land.relavium import Relavium
from tasks.land.selection import AUTO, KIND_OPTION
from tasks.land.source import Dialect, Discovery

__all__ = ["AUTO", "KINDS", "Recognised", "recognise"]


class Recognised(NamedTuple):
    """A source's dialect, the store to read it from, and what was found there."""

    dialect: Dialect
    source: ObjectStore
    found: Discovery


def _claude_code(source: ObjectStore) -> Recognised:
    dialect = ClaudeCode()
    return Recognised(dialect, source, dialect.discover(source))


def _codex(source: ObjectStore) -> Recognised:
    dialect = Codex(source)
    return Recognised(dialect, dialect.source, dialect.discover(dialect.source))


def _dsh(source: ObjectStore) -> Recognised:
    dialect = DeepSeekHarness(source)
    return Recognised(dialect, dialect.source, dialect.discover(source))


def _relavium(source: ObjectStore) -> Recognised:
    dialect = Relavium(source)
    return Recognised(dialect, dialect.source, dialect.discover(dialect.source))


KINDS: Mapping[str, Callable[[ObjectStore], Recognised]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "dsh": _dsh,
    "relavium": _relavium,
}


def recognise(
    source: ObjectStore,
    kind: str,
    remembered: Callable[[ObjectStore, Dialect], bool] = lambda source, dialect: False,
    kind_is_given: str = KIND_OPTION,
) -> Recognised:
    """`source` as one of `kind`; for `auto`, of the one kind that finds sessions there, or of which some are
    `remembered` when all are gone. `kind_is_given` is what the kind is called where it was given.

    Raises `WrongUse` for a kind there is none of, and for a source in which no dialect, or more than one, finds any.
    """
    if kind != AUTO:
        if kind not in KINDS:
            raise WrongUse(f"{kind_is_given}: {kind!r} is none of {', '.join([AUTO, *KINDS])}")
        return KINDS[kind](source)
    found = {name: look(source) for name, look in KINDS.items()}
    kinds = [name for name, recognised in found.items() if recognised.found.sessions]
    kinds = kinds or [name for name, each in found.items() if remembered(each.source, each.dialect)]
    if len(kinds) != 1:
        seen = f"sessions of {' and '.join(kinds)} lie there" if kinds else "no sessions of a known kind lie there"
        raise WrongUse(f"{source.url}: {seen}; check the place, or say which with {kind_is_given} ({', '.join(KINDS)})")
    return found[kinds[0]]
