"""Which objects below a `projects` folder belong to which session (Claude Code specification, section 1).

A file's place alone decides: its session, its kind, and the stream or run that its records land in. All other files,
and every other depth, are somebody else's.
"""

from __future__ import annotations

import re

from schemas.errors import StoreError
from storage.objects import ObjectStat, ObjectStore
from tasks.land.claude_code.kinds import (
    AGENT_ID,
    JOURNAL,
    MANIFEST,
    PREFIXES,
    SCRIPT,
    SESSION_ID,
    SIDECAR,
    TRANSCRIPT,
)
from tasks.land.source import Discovery, Sighting, SourceFile

__all__ = ["discover", "source_file"]

PROJECTS = "projects"

_RUN_OF_SCRIPT = re.compile(r"wf_[A-Za-z0-9][A-Za-z0-9_-]*")
_GROWING = {TRANSCRIPT, JOURNAL}


def discover(store: ObjectStore) -> Discovery:
    """Sessions in order of their ids, over all projects; each one's files in order of their paths."""
    found: dict[str, list[Sighting]] = {}
    unreadable: list[tuple[str, str]] = []
    for project in store.children("")[0]:
        try:
            stats = store.list(f"{project}/")
        except StoreError:
            stats = _walk(store, f"{project}/", 0, unreadable)
        for stat in stats:
            if (file := source_file(stat.key)) is not None:
                found.setdefault(file.session, []).append(Sighting(file, stat))
    for sightings in found.values():
        sightings.sort(key=lambda sighting: sighting.stat.key.encode("utf-8", "surrogateescape"))
    return Discovery({session: found[session] for session in sorted(found)}, tuple(unreadable))


def source_file(key: str) -> SourceFile | None:
    """What lies at `key`, a path below the `projects` folder or below one that holds such folders (one a machine, say);
    None for what is none of a session's."""
    path = key.split("/")
    found = _placed(key, path)
    if found is None and PROJECTS in path:
        return _placed(key, path[path.index(PROJECTS) + 1 :])
    return found


def _placed(key: str, path: list[str]) -> SourceFile | None:
    match path:
        case [_, name] if (session := name.removesuffix(".jsonl")) != name and SESSION_ID.fullmatch(session):
            return _streamed(session, key, TRANSCRIPT, "main")
        case [_, session, *below] if SESSION_ID.fullmatch(session):
            match below:
                case ["subagents", name]:
                    return _of_agent(session, key, name)
                case ["subagents", "workflows", run, "journal.jsonl"]:
                    return _of_run(session, key, JOURNAL, run)
                case ["subagents", "workflows", _, name]:
                    return _of_agent(session, key, name)
                case ["workflows", name] if name.startswith("wf_") and name.endswith(".json"):
                    return _of_run(session, key, MANIFEST, name.removesuffix(".json"))
                case ["workflows", "scripts", name] if name.endswith(".js"):
                    _, found, run = name.removesuffix(".js").rpartition("-wf_")
                    if found and _RUN_OF_SCRIPT.fullmatch("wf_" + run):
                        return _of_run(session, key, SCRIPT, "wf_" + run)
    return None


def _of_agent(session: str, key: str, name: str) -> SourceFile | None:
    stem = name.removeprefix("agent-")
    if stem == name:
        return None
    for suffix, kind in ((".meta.json", SIDECAR), (".jsonl", TRANSCRIPT)):
        agent = stem.removesuffix(suffix)
        if agent != stem and AGENT_ID.fullmatch(agent):
            return _streamed(session, key, kind, agent)
    return None


def _streamed(session: str, key: str, kind: str, stream: str) -> SourceFile:
    return SourceFile(session, key, kind, PREFIXES[kind], "streams", stream, kind in _GROWING)


def _of_run(session: str, key: str, kind: str, run: str) -> SourceFile:
    return SourceFile(session, key, kind, PREFIXES[kind], "runs", run, kind in _GROWING)


def _walk(store: ObjectStore, prefix: str, depth: int, unreadable: list[tuple[str, str]]) -> list[ObjectStat]:
    """A project folder by folder, as deep as sessions go, so that one closed folder hides no other."""
    try:
        folders, stats = store.children(prefix)
    except StoreError as error:
        unreadable.append((prefix, str(error)))
        return []
    if depth < 4:
        for folder in folders:
            if depth > 0 or SESSION_ID.fullmatch(folder):
                stats += _walk(store, f"{prefix}{folder}/", depth + 1, unreadable)
    return stats
