"""What a verification finds, as values."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.errors import KeyRefused, RejectedData, StoreError

__all__ = ["Problem", "SessionVerification", "refused_name", "rejection", "unreadable"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: `file` is a key of the zone, `row` counts from 1 (None when it is about the whole file).

    `rule` is a short name. A damaged file has the rules of its format (specification, sections 3 and 7) or
    ``unreadable``. Continuity: ``ord_gap`` ``byte_gap`` ``end_gap`` ``cursor``. Chain: ``missing_round``
    ``duplicate_round`` ``round_number`` ``previous`` ``from_seq`` ``missing_landed`` ``input_digest``
    ``conversation`` ``session`` ``parser`` ``policy``. Provider bodies: ``provider_body``.
    """

    file: str
    row: int | None
    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class SessionVerification:
    """One session's landed files and chain, checked.

    `streams` counts stream and run folders with landed files, `records` those of every readable landed file,
    `relanded` the records among them that an interrupted pass landed again (no problem: assembly removes them),
    `rounds` the round files.
    """

    session: str
    streams: int
    records: int
    relanded: int
    rounds: int
    problems: list[Problem]


def rejection(file: str, error: RejectedData) -> Problem:
    """A rejected file as a problem, under its key."""
    return Problem(file, error.row, error.rule, error.detail)


def unreadable(file: str, error: StoreError) -> Problem:
    """A file whose bytes cannot be had."""
    detail = refused_name(error) if isinstance(error, KeyRefused) else str(error)
    return Problem(file, None, "unreadable", detail)


def refused_name(error: KeyRefused) -> str:
    """Why what lies in the zone under such a name cannot be read."""
    return f"its name cannot be part of a key: {error.detail}; rename it"
