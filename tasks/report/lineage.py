"""Which session a sub-agent's calls are charged to: the one that started it, through any number of levels.

Each call stays one row of its own session; only the table by session adds a sub-agent's calls to those of the session
that people know, as delegated (specs/usage.md, "Counting"; field report 16).
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

__all__ = ["with_root"]


def with_root(condensed: pl.DataFrame) -> pl.DataFrame:
    """`condensed` with a column `root`: the session itself, or for delegated calls the one at the top."""
    spawned = condensed.filter(pl.col("delegated") & (pl.col("parent") != pl.col("session")))
    # One parent each: should rows of a session disagree, the smallest id, whatever the order of rows.
    parents = dict(spawned.group_by("session").agg(pl.col("parent").min()).iter_rows())
    roots = pl.DataFrame(
        {"session": list(parents), "top": [_top(session, parents) for session in parents]},
        schema={"session": pl.String, "top": pl.String},
    )
    joined = condensed.join(roots, on="session", how="left")
    root = pl.when("delegated").then(pl.coalesce("top", "session")).otherwise("session")
    return joined.with_columns(root=root).drop("top")


def _top(session: str, parents: Mapping[str, str]) -> str:
    """The first session without a parent; sessions that name each other in a ring have their smallest id as one."""
    way: dict[str, None] = {}
    while session in parents and session not in way:
        way[session] = None
        session = parents[session]
    if session not in way:
        return session
    steps = list(way)
    return min(steps[steps.index(session) :])
