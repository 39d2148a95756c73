"""The owner of a `history.db`, at work: `python -m tests.history_owner PATH`.

It commits to the write-ahead log and never into the database, leaves a transaction open that has gone into the log as
well, says so, and goes on once it is told to. With `busy` as a second argument it changes every row in each of its
transactions instead, until it is killed, and now and then takes its log into the database.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

from tests.relavium_archive import add_messages, add_session, history

__all__ = ["BIG"]

BIG = "x" * 50_000


def main(path: Path) -> None:
    connection = history(path)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    add_session(connection, title="at work")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    add_messages(connection, "s1", ("user", "one"), ("assistant", "1"))
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    add_messages(connection, "s1", *(("user", BIG) for _ in range(40)), start=2)
    print("written", flush=True)
    sys.stdin.readline()
    connection.execute("COMMIT")
    print("committed", flush=True)
    sys.stdin.readline()


def keep_busy(path: Path) -> None:
    connection = history(path)
    connection.execute("PRAGMA synchronous = OFF")
    add_session(connection)
    add_messages(connection, "s1", *(("user", "x" * 3000) for _ in range(100)))
    print("written", flush=True)
    for moment in itertools.count():
        connection.execute("UPDATE session_messages SET created_at = ?, content = created_at || content", (moment,))
        connection.execute("UPDATE session_messages SET content = substr(content, 1, 3000 + ?)", (moment % 7 * 500,))
        if moment % 5 == 0:
            connection.execute(f"PRAGMA wal_checkpoint({('PASSIVE', 'RESTART', 'TRUNCATE')[moment % 3]})")
        time.sleep(0.003)


if __name__ == "__main__":
    (keep_busy if "busy" in sys.argv else main)(Path(sys.argv[1]))
