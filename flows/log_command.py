"""The command that reads DeepSeek Harness session logs where they lie: a listing, one session's events, or a repair.

A folder or a database of one's own can be repaired; whatever lies in a bucket is only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.options import JsonOption

if TYPE_CHECKING:
    from pathlib import Path

    from schemas.errors import SessionmillError, WrongUse
    from storage.session_logs import SessionInspection, SessionPersistence, SessionReader

__all__ = ["log"]

_LINES_AT_ONCE = 256


def log(
    root: Annotated[
        str,
        typer.Argument(metavar="ROOT", help="A root of session logs: a folder, a URL, or a sessions.db."),
    ],
    session: Annotated[str | None, typer.Argument(metavar="ID", help="Print this session's events.")] = None,
    first: Annotated[int, typer.Option("--from", metavar="N", min=0, help="Leave out the events before number N.")] = 0,
    repair: Annotated[
        bool, typer.Option("--repair", help="Close interrupted turns in the logs themselves, and cut off torn tails.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the sessions of a DeepSeek Harness root, or print the events of one as JSON lines."""
    if session is not None:
        raise typer.Exit(_print_events(root, session, first, repair=repair, json=json))
    if first:
        from schemas.errors import WrongUse

        raise WrongUse("--from is about the events of one session: give its ID as well")
    raise typer.Exit(_repair_all(root, json=json) if repair else _list(root, json=json))


def _print_events(root: str, session: str, first: int, *, repair: bool, json: bool) -> int:
    from flows.console import DONE
    from schemas.dsh import write_event
    from schemas.errors import LogRejected, WrongUse

    try:
        found = _loaded(root, session) if repair else _inspected(root, session)
    except LogRejected as error:
        if error.rule != "missing":
            raise
        raise WrongUse(f"{root}: no session {session!r} there; `sessionmill log {root}` lists its sessions") from None
    events = found.events[first:]
    if json:
        _write_json({"header": found.meta.as_json(), "events": list(events)})
        return DONE
    for start in range(0, len(events), _LINES_AT_ONCE):
        if not _write(b"".join(map(write_event, events[start : start + _LINES_AT_ONCE]))):
            break
    return DONE


def _inspected(root: str, session: str) -> SessionInspection:
    with _reader(root) as sessions:
        return sessions.inspect(session)


def _loaded(root: str, session: str) -> SessionInspection:
    with _writer(root) as sessions:
        return sessions.load(session)


def _list(root: str, *, json: bool) -> int:
    from flows.console import DONE, PROBLEMS, columns, printable

    with _reader(root) as sessions:
        found = sessions.list_snapshots()
        unreadable = sessions.list_unreadable()
    if not found and not unreadable:
        raise _nothing_at(root)
    if json:
        listed = [{"header": each.header.as_json(), "revision": each.revision} for each in found]
        _write_json({"sessions": listed, "unreadable": unreadable})
    else:
        rows: list[list[object]] = [
            [
                header.id,
                _moment(header.created_at),
                header.cwd or "-",
                header.parent_session or "-",
                header.origin or ("fork" if header.parent_session else "-"),
                header.version,
            ]
            for header in (each.header for each in found)
        ]
        typer.echo(columns(["session", "created", "folder", "parent", "origin", "version"], rows))
    for name in unreadable:
        typer.echo(f"{printable(name)}: its first line is no session header", err=True)
    return PROBLEMS if unreadable else DONE


def _repair_all(root: str, *, json: bool) -> int:
    from flows.console import DONE, columns, error_facts, exit_code, printable, progress
    from schemas.errors import SessionmillError

    rows: list[list[Any]] = []
    bad: list[tuple[str, SessionmillError]] = []
    with _writer(root) as sessions, progress("repair") as bar:
        before = {each.header.id: each.revision for each in sessions.list_snapshots()}
        if not before and not sessions.list_unreadable():
            raise _nothing_at(root)
        bar.start(len(before))
        for session in before:
            try:
                stored = len(sessions.read_from(session, 0).events)
                rows.append([session, len(sessions.load(session).events) - stored])
            except SessionmillError as error:
                bad.append((session, error))
            bar.advance(session)
        after = {each.header.id: each.revision for each in sessions.list_snapshots()}
    repaired = [[session, added] for session, added in rows if after.get(session) != before[session]]
    if json:
        listed = [{"session": session, "events_added": added} for session, added in repaired]
        rejected = [{"session": session, **error_facts(why)} for session, why in bad]
        _write_json({"sessions": len(before), "repaired": listed, "rejected": rejected})
    else:
        typer.echo(columns(["repaired", "events added"], repaired) if repaired else "nothing to repair")
    for session, why in bad:
        typer.echo(f"{printable(session)}: {printable(str(why))}", err=True)
    return max((exit_code(why) for _, why in bad), default=DONE)


def _reader(root: str) -> SessionReader:
    """What reads the sessions at ROOT. Raises WrongUse when there is no such place."""
    from flows.settings import load_settings
    from storage.objects import open_store
    from storage.session_logs import ArchivedDatabase, ArchivedSessions, JsonlSessions

    path = _local_path(root)
    if path is None:
        store = open_store(root, settings=load_settings().store())
        store.check_root()
        return ArchivedSessions(store)
    return ArchivedDatabase(path) if path.is_file() else JsonlSessions(path, compressed=None)


def _writer(root: str) -> SessionPersistence:
    """What repairs the sessions at ROOT. Raises WrongUse when that is no place of one's own."""
    from schemas.errors import WrongUse
    from storage.session_logs import JsonlSessions, SqliteSessions

    path = _local_path(root)
    if path is None:
        raise WrongUse(f"{root}: what lies in a bucket is only read — repair a copy in a folder")
    return SqliteSessions(path) if path.is_file() else JsonlSessions(path, compressed=None)


def _local_path(root: str) -> Path | None:
    """The path that ROOT is, or None for a URL of something else; a harness's home stands for the root within it, and a
    root without files of logs for the database in it."""
    from pathlib import Path
    from urllib.parse import unquote

    from schemas.errors import WrongUse

    if root.startswith("file:///"):
        root = unquote(root.removeprefix("file://"))
    elif "://" in root:
        return None
    path = Path(root)
    if not root or "\0" in root or not path.exists():
        raise WrongUse(f"{root or 'ROOT'}: no such folder or database of session logs")
    within = path / "sessions"
    folder = within if within.is_dir() else path
    database = folder / "sessions.db"
    return database if database.is_file() and not any(folder.rglob("*.jsonl*")) else folder


def _nothing_at(root: str) -> WrongUse:
    from schemas.errors import WrongUse

    return WrongUse(
        f"no logs here: {root}: check the path or prefix; it should be `sessions`, its parent or a sessions.db"
    )


def _moment(milliseconds: int) -> str:
    from schemas.times import format_time

    # Beyond 2262 there is no calendar here; nobody began a session then.
    return format_time(milliseconds * 1_000_000) if milliseconds < 2**63 // 1_000_000 else f"{milliseconds} ms"


def _write_json(value: Any) -> None:
    from schemas.dsh import write_value

    _write(write_value(value) + b"\n")


def _write(said: bytes) -> bool:
    """Write to standard output; false when nobody reads it any more, as behind ``| head``."""
    import os
    import sys

    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(said)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Else the interpreter says so once more when it closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
