"""Session logs in a real bucket are listed, inspected and read as they are in a folder, and not repaired."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flows.log_command import _print_events
from schemas.errors import WrongUse
from storage.objects import open_store
from storage.session_logs import ArchivedSessions, JsonlSessions
from tests.golden import golden_cases
from tests.s3_server import S3Server

ROOTS = [case / "root" for case in golden_cases("dsh") if "list-root" in case.name] + [
    case / "root" for case in golden_cases("dsh-v4")[:2]
]


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.parent.name)
def test_a_bucket_is_read_as_a_folder_is(root: Path, s3: S3Server, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    url = f"s3://zone/logs-{os.getpid()}/{root.parent.name}"
    store = open_store(url)
    for stat in open_store(root).list(""):
        store.create(stat.key, open_store(root).read(stat.key))
    archive, local = ArchivedSessions(store), JsonlSessions(root)
    assert [header.id for header in archive.list()] == [header.id for header in local.list()]
    revisions = {snapshot.revision for snapshot in archive.list_snapshots()}
    assert len(revisions) == len(local.list())
    for header in archive.list():
        assert archive.inspect(header.id) == local.inspect(header.id)
        assert archive.read_from(header.id, 3) == local.read_from(header.id, 3)
        printed = {}
        for place in (url, str(root)):
            assert _print_events(place, header.id, 1, repair=False, json=False) == 0
            printed[place] = capfdbinary.readouterr().out
        assert printed[url] == printed[str(root)] != b""
    with pytest.raises(WrongUse, match="only read"):
        _print_events(url, header.id, 0, repair=True, json=False)
