"""DeepSeek Harness logs of several machines in a bucket: the same as in a folder, and while they grow."""

from __future__ import annotations

from pathlib import Path

from storage.objects import open_store
from tests.dsh_logs import answer, header, numbered, turn, user
from tests.dsh_zone import assembled, land, problems, put_log, records, zone_at
from tests.s3_server import S3Server


def test_what_lands_from_a_bucket_is_what_lands_from_a_folder(s3: S3Server, tmp_path: Path) -> None:
    source, url = tmp_path / "source", "s3://zone/harness"
    talk = numbered(*turn(1, user("one"), answer("re one")), *turn(2, user("two"), answer("re two", turn=2)))
    child = header(4, id="child", parent_session="s", origin="subagent", delegation_depth=1)
    put_log(source, header(4), talk[:3], above="machine-1/home/.dsh/sessions")
    put_log(source, child, talk, above="machine-1/home/.dsh/sessions")
    path, data = put_log(source, header(4), talk[:5], talk[5:], above="machine-2/sessions")
    put_log(source, header(0, id="old"), talk, above="machine-2/old/sessions", compressed=False)
    path.write_bytes(data[:-7])
    bucket, near = open_store(url), open_store(source)
    here, far = zone_at(tmp_path / "here"), zone_at(tmp_path / "far")
    for whole in (False, True):
        if whole:
            path.write_bytes(data)
        for stat in near.list(""):
            bucket.replace(stat.key, near.read(stat.key))
        outcomes = [land(source, here), land(url, far)]
        assert problems(outcomes[0]) == problems(outcomes[1]) == []
        assert [bool(each.waiting) for each in outcomes[1]] == [False, not whole]
        for session in here.sessions():
            assert list(records(far, session)) == list(records(here, session)) != []
    assert here.sessions() == far.sessions() == ["old", "s"]
    assert {at for at, _ in records(far, "s")} == {"main", "child"}
    assert len([at for at, _ in records(far, "s") if at == "main"]) == len(talk) + 1
    assert assembled(far, "s")["open"] == {}
