"""Relavium's sessions in a bucket: the same as in a folder, a database with its log included."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from storage.objects import open_store
from storage.zone import Zone
from tests.memory_store import MemoryStore
from tests.relavium_archive import add_messages, add_session, history, land, problems, put_pair, records
from tests.relavium_sessions import message, record_value, said
from tests.s3_server import S3Server


def test_what_lands_from_a_bucket_is_what_lands_from_a_folder(s3: S3Server, tmp_path: Path) -> None:
    source = tmp_path / "source"
    put_pair(source / "files", record_value(id="s2"), [message(0, "user", said("x"))])
    owner = history(source / "home/history.db")
    owner.execute("PRAGMA wal_autocheckpoint = 0")
    add_session(owner)
    add_messages(owner, "s1", ("user", "one"), ("assistant", "1"))
    bucket = open_store("s3://zone/relavium")
    near, far = open_store(source), Zone(MemoryStore())
    for stat in near.list(""):
        if not stat.key.endswith("-shm"):
            bucket.create(stat.key, near.read(stat.key))
    before = [stat.etag for stat in bucket.list("")]
    with closing(sqlite3.connect(f"file:{source}/home/history.db?immutable=1", uri=True)) as without_log:
        assert without_log.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    here = Zone(MemoryStore())
    assert problems(land(near, here)) == problems(land(bucket, far)) == []
    owner.close()
    assert here.sessions() == far.sessions() == ["s1", "s2"]
    for session in here.sessions():
        assert records(far, session) == records(here, session) != []
    assert [stat.etag for stat in bucket.list("")] == before
