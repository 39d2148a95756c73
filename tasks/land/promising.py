"""What a landed file will be, claimed under its sequence before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import structs

from schemas.call_facts import CallFacts, write_call_facts
from schemas.session_data import SCHEMA, SessionDataHeader, write_and_digest
from schemas.times import file_stamp, format_time
from storage.keys import check_key
from storage.landings import Claim
from tasks.land.cursors import SourceCursor
from tasks.land.source import Converted, Dialect, SourceFile
from tasks.land.workplaces import Workplace, known_as

__all__ = ["claim_of"]


def claim_of(
    dialect: Dialect,
    file: SourceFile,
    converted: Sequence[Converted],
    after: SourceCursor,
    *,
    seq: int,
    now: int,
    workplaces: Sequence[Workplace] = (),
) -> Claim:
    """The claim of a file with these records, and of the cursor that then stands. `now` is the pass's clock.

    Raises `KeyRefused` for a file that cannot be: its claim would stand in the way of all that come after it.
    """
    header = SessionDataHeader(
        h=1,
        schema=SCHEMA,
        seq=seq,
        at=format_time(now),
        kind=file.kind,
        adapter=dialect.adapter,
        dialect=dialect.name,
        src=file.key,
        session=file.session,
        stream=file.stream,
        batch=file.batch,
    )
    data, digest = write_and_digest(header, (each.record for each in converted))
    return Claim.of(
        session=file.session,
        seq=seq,
        key=check_key(f"{file.target}-{file_stamp(now)}-{seq:06d}.sd"),
        data=data,
        digest=digest,
        calls=write_call_facts(_placed_calls(converted, dialect.name, workplaces)),
        target=file.target,
        cursor=replace(after, last_seq=seq).values(),
    )


def _placed_calls(converted: Sequence[Converted], dialect: str, workplaces: Sequence[Workplace]) -> Iterator[CallFacts]:
    """What the records' calls say, with what their records say about them, where those stand, and whose work it was."""
    for row, each in enumerate(converted, 1):
        if each.call is not None:
            record = each.record
            yield structs.replace(
                each.call,
                dialect=each.call.dialect or dialect,
                row=row,
                run=record.run,
                finished="finished" in record.flags,
                cwd=known_as(each.call.cwd, workplaces),
            )
