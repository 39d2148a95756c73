"""A fork of an old Codex client that lands by a guess, and is corrected, in a zone in S3."""

from __future__ import annotations

from storage.objects import open_store
from tests.codex_forks import CHILD, PARENT, Forks, answer, at, meta, prompt
from tests.s3_server import S3Server


def test_guess_is_corrected_in_a_bucket_as_in_memory(s3: S3Server) -> None:
    old = [meta(PARENT, timestamp="2026-11-02T08:00:00Z"), *prompt("one"), *answer("1", 100), *prompt("two")]
    parent = [row | {"timestamp": f"2026-11-02T08:{place:02}:00Z"} for place, row in enumerate(old)]
    copies = [at(second, row) for second, row in zip([0.1, 0.1, 0.1, 0.1, 3], old, strict=True)]
    own = [at(30 + place, row) for place, row in enumerate([*answer("2", 250), *prompt("three"), *answer("3", 400)])]
    here, far = Forks(), Forks(open_store("s3://zone/forks"))
    for forks in (here, far):
        forks.put(CHILD, [at(0, meta(CHILD, forked_from_id=PARENT)), *copies, *own])
        assert [each.mark for each in forks.land()[CHILD].marked] == ["replay_guessed"]
        assert forks.own() == [150, 150]
        assert forks.conversation() == [("two", "2"), ("three", "3")]
        forks.drop(CHILD)
        forks.put(PARENT, parent)
        forks.land()
        forks.put(CHILD, [at(0, meta(CHILD, forked_from_id=PARENT)), *copies, *own])
        forks.drop(PARENT)  # what has landed of it is asked
        assert forks.land()[CHILD].files == 1
        assert forks.conversation() == [("three", "3")]
    assert far.counted() == here.counted() == [(PARENT, "main", 100), (CHILD, "main", 150), (CHILD, "main", 150)]
    assert [each.key for each in far.store.list("_calls/") if each.key.endswith(".instead")] == [
        f"_calls/{CHILD}/main%2Ftranscript~2.instead"
    ]
