"""The commands that do a capability's work here and now, without Prefect: assemble, verify, fold, check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import typer

from flows.clock import clock
from flows.console import DONE, PROBLEMS, columns, error_facts, exit_code, printable, progress, write_json
from flows.conversation_text import conversation_text
from flows.parameters import counted
from flows.sessions import chosen
from flows.settings import Settings, load_settings, open_zone
from flows.summary import complaint
from schemas.errors import KeyRefused, ObjectMissing, ObjectTooLarge, TerminalError, WrongUse
from schemas.session_flow import view_json
from schemas.verdict import Verdict, check_bytes
from storage.objects import open_store
from storage.usage_marks import SessionMark
from tasks.assemble import AssembleOptions, assemble_session
from tasks.ingest.session import BAD_DATA
from tasks.verify import verifiable, verify_session
from tasks.verify.problems import refused_name

__all__ = ["assemble_zone", "check_files", "fold_conversation", "verify_zone"]
CHECKED = (".sd", ".sf", ".relavium.yaml")


def assemble_zone(url: str, session: str | None, max_round_bytes: int | None, now: str | None, *, json: bool) -> int:
    """Assemble one session or all; a bad one is reported and the others go on. The exit code."""
    settings = load_settings(max_round_bytes=max_round_bytes)
    options = AssembleOptions(now=clock(now), max_round_bytes=settings.max_round_bytes)
    zone = open_zone(url, settings)
    assembled = []
    rejected: list[tuple[str, TerminalError]] = []
    with progress("assemble") as bar:
        names = chosen(zone, zone.sessions(), session)
        bar.start(len(names))
        for name in names:
            try:
                assembled.append(assemble_session(zone, name, options))
            except BAD_DATA as reason:
                rejected.append((name, reason))
            bar.advance(name)
    if json:
        bad = [{"session": name, **error_facts(error)} for name, error in rejected]
        write_json({"sessions": [each._asdict() for each in assembled], "rejected": bad})
    else:
        header = ["session", "written", "round", "through", "nodes", "relations", "open unresolved"]
        rows = [
            [a.session, a.rounds_written, a.round, a.through_seq, a.nodes, a.relations, a.open_unresolved]
            for a in assembled
        ]
        typer.echo(columns(header, rows))
    for name, error in rejected:
        said = refused_name(error) if isinstance(error, KeyRefused) else str(error)
        typer.echo(f"{printable(name)}: {printable(said)}", err=True)
    return PROBLEMS if rejected else DONE


def verify_zone(url: str, session: str | None, usage: str | None, *, json: bool) -> int:
    """Verify one session or all, also against what a usage data set has counted of them; the exit code."""
    zone = open_zone(url)
    marks = {} if usage is None else _counted_in(usage)
    found = []
    with progress("verify") as bar:
        names = chosen(zone, sorted({*verifiable(zone), *marks}), session)
        bar.start(len(names))
        for name in names:
            found.append(verify_session(zone, name))
            bar.advance(name)
    lost = []
    if marks:
        from tasks.usage.lost import lost_evidence

        lost = lost_evidence(zone, [marks[name] for name in names if name in marks])
    problems = sum(len(v.problems) for v in found) + len(lost)
    if json:
        facts = {"usage": [each.model_dump() for each in lost]} if usage is not None else {}
        write_json({"sessions": [asdict(each) for each in found], **facts, "problems": problems})
        return PROBLEMS if problems else DONE
    for verification in found:
        for problem in verification.problems:
            typer.echo(complaint(verification.session, problem))
    for each in lost:
        typer.echo(printable(f"{each.session}: {each.rule}: {each.detail}"))
    streams, records = sum(v.streams for v in found), sum(v.records for v in found)
    sums = {"session": len(found), "stream": streams, "record": records, "round": sum(v.rounds for v in found)}
    typer.echo(f"checked {', '.join(counted(number, noun) for noun, number in sums.items())}")
    if relanded := sum(v.relanded for v in found):
        typer.echo(f"{counted(relanded, 'record')} landed more than once; assembly removes what is there twice")
    good = "all landed data is contiguous and matches its digests"
    typer.echo(counted(problems, "problem") if problems else good)
    return PROBLEMS if problems else DONE


def _counted_in(url: str) -> dict[str, SessionMark]:
    """What a usage data set has counted; raises `WrongUse` when none is there."""
    from tasks.usage.lost import counted_sessions

    store = open_store(url, settings=load_settings().store())
    store.check_root()
    marks = counted_sessions(store)
    if not marks:
        raise WrongUse(f"{url}: no usage data set here — `sessionmill usage` writes one")
    return marks


def fold_conversation(url: str, conversation: str, *, json: bool) -> int:
    """Print the conversation as it stands; the exit code."""
    zone = open_zone(url)
    view = zone.chain(conversation).fold() if conversation in zone.conversations() else None
    if view is None or not view.round:
        raise WrongUse(f"no rounds for conversation {conversation}; run `sessionmill assemble` first, or check the id")
    if json:
        write_json(view_json(view))
    else:
        typer.echo(conversation_text(view))
    return DONE


def check_files(files: Iterable[str], *, json: bool) -> int:
    """One verdict a file, on its bytes alone. One that cannot be read is said and does not keep the others from theirs;
    the exit code is that of the worst."""
    settings = load_settings()
    verdicts: list[Verdict] = []
    unread: list[tuple[str, TerminalError]] = []
    for file in files:
        try:
            verdicts.append(check_bytes(file, _read(file, settings)))
        except TerminalError as error:
            unread.append((file, error))
    if json:
        bad = [{"file": file, **error_facts(why)} for file, why in unread]
        write_json({"files": [verdict.model_dump() for verdict in verdicts], "unread": bad})
    else:
        for verdict in verdicts:
            place = verdict.file if verdict.row is None else f"{verdict.file} row {verdict.row}"
            said = f"accept: {verdict.detail}" if verdict.accepted else f"reject: {verdict.rule}: {verdict.detail}"
            typer.echo(printable(f"{place}: {said}"))
    for _, why in unread:
        typer.echo(f"sessionmill: {printable(str(why))}", err=True)
    codes = [DONE if verdict.accepted else PROBLEMS for verdict in verdicts] + [exit_code(why) for _, why in unread]
    return max(codes, default=DONE)


def _read(file: str, settings: Settings) -> bytes:
    """The bytes of a file or an object; a name that is no such file, or of no format we know, is wrong use."""
    if not file.endswith(CHECKED):
        raise WrongUse(f"{file}: only files ending in .sd, .sf or .relavium.yaml can be checked")
    if "://" in file:
        folder, _, name = file.rpartition("/")
        try:
            return open_store(folder, settings=settings.store()).read(name)
        except (ObjectMissing, KeyRefused):
            raise WrongUse(f"{file}: no such object") from None
    try:
        size = Path(file).stat().st_size
        if size > settings.max_object_bytes:
            raise ObjectTooLarge(file, size, settings.max_object_bytes)
        return Path(file).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise WrongUse(f"{file}: no such file") from None
