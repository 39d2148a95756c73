"""The kinds of source that can be landed, by the names that `--kind` takes."""

from __future__ import annotations

from schemas.errors import WrongUse
from storage.objects import ObjectStore
from tasks.land.claude_code import ClaudeCode
from tasks.land.source import Dialect, Discovery

__all__ = ["AUTO", "KINDS", "recognise"]

AUTO = "auto"
KINDS: dict[str, Dialect] = {"claude-code": ClaudeCode()}


def recognise(source: ObjectStore, kind: str) -> tuple[Dialect, Discovery]:
    """The dialect of `kind` and what it finds in `source`; for `auto`, the one dialect that finds sessions there.

    Raises `WrongUse` for a kind there is none of, and for a source in which no dialect, or more than one, finds any.
    """
    if kind != AUTO:
        if kind not in KINDS:
            raise WrongUse(f"--kind: {kind!r} is none of {', '.join([AUTO, *KINDS])}")
        return KINDS[kind], KINDS[kind].discover(source)
    found = {name: (dialect, dialect.discover(source)) for name, dialect in KINDS.items()}
    kinds = [name for name, (_, discovery) in found.items() if discovery.sessions]
    if len(kinds) != 1:
        seen = f"sessions of {' and '.join(kinds)} lie there" if kinds else "no sessions of a known kind lie there"
        raise WrongUse(f"{source.url}: {seen}; check SOURCE, or say which with --kind ({', '.join(KINDS)})")
    return found[kinds[0]]
