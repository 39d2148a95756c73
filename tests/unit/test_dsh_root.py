"""Where session logs lie: names, encodings, generations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.dsh_root import check_place, encode_segment, find_logs, log_key, place_of, project_of
from schemas.errors import LogRejected
from tests.dsh_logs import header

LOG = "--srv-proj--/s/session.jsonl.zstd"


@pytest.mark.parametrize(
    ("text", "segment"),
    [
        ("session-0a", "session-0a"),
        ("sé~ ../x", "s~00E9~007E~0020..~002Fx"),
        ("\U0001f9ea", "~D83E~DDEA"),
        ("\ud800", "~D800"),
        (".", "~002E"),
        ("..", "~002E~002E"),
    ],
)
def test_an_id_is_one_path_segment(text: str, segment: str) -> None:
    assert encode_segment(text) == segment


@given(st.lists(st.text(st.characters(codec=None, exclude_categories=[])), min_size=2, max_size=2, unique=True))
def test_no_two_ids_share_a_segment(ids: list[str]) -> None:
    as_units = {each.encode("utf-16-le", "surrogatepass") for each in ids}
    assert len({encode_segment(each) for each in ids}) == len(as_units)


@pytest.mark.parametrize(
    ("cwd", "project"),
    [
        (None, "_no-cwd"),
        ("/srv/proj", "--srv-proj--"),
        ("C:\\work\\a b", "--C-work-a~0020b--"),
        ("/", "--root--"),
        ("/wörk/my proj:1/~tmp//x", "--w~00F6rk-my~0020proj-1-~007Etmp-x--"),
        ("/" + "a" * 300, "--" + "a" * 251 + "--"),
    ],
)
def test_a_working_directory_gives_the_projects_name(cwd: str | None, project: str) -> None:
    assert project_of(cwd) == project


def test_only_the_highest_generation_of_a_directory_is_the_session() -> None:
    keys = [
        LOG,
        "--srv-proj--/s/session.v4.jsonl.zstd",
        "--srv-proj--/s/session.v10.jsonl.zstd",
        "_no-cwd/t/session.jsonl.zstd",
    ]
    assert [(place.session, place.generation) for place in find_logs(keys, name="root").logs] == [("s", 10), ("t", 0)]


def test_files_that_are_no_logs_are_passed_over() -> None:
    keys = [
        "readme.jsonl",
        "p/s/session.lock",
        LOG + ".0123456789ab.tmp",
        "p/s/t/session.jsonl",
        "p/s/session.v0.jsonl",
        LOG,
    ]
    assert [place.key for place in find_logs(keys, name="root").logs] == [LOG]


def test_one_log_without_a_directory_spoils_the_root() -> None:
    with pytest.raises(LogRejected, match="layout"):
        find_logs([LOG, "--srv-proj--/old.jsonl"], name="root")


@pytest.mark.parametrize("compressed", [None, True, False])
def test_a_root_has_one_encoding(compressed: bool | None) -> None:
    with pytest.raises(LogRejected, match="encoding"):
        find_logs([LOG, "--srv-proj--/t/session.v4.jsonl"], compressed=compressed, name="root")


def test_an_id_in_two_projects_is_no_session_of_either() -> None:
    root = find_logs([LOG, "_no-cwd/s/session.jsonl.zstd"], name="root")
    with pytest.raises(LogRejected, match="duplicate_id"):
        root.find("s", name="root")
    with pytest.raises(LogRejected, match="missing"):
        root.find("absent", name="root")


def test_a_log_lies_where_its_header_says() -> None:
    place = place_of("machine-1/sessions/" + LOG)
    assert place is not None
    check_place(header(), place)
    for strange in (header(id="t"), header(cwd="/srv/other"), header(cwd=None)):
        with pytest.raises(LogRejected, match="place"):
            check_place(strange, place)


def test_the_key_of_a_new_log_is_found_again() -> None:
    for generation in range(5):
        for compressed in (True, False):
            made = header(generation, id="../é")
            place = place_of(log_key(made, compressed=compressed))
            assert place is not None
            assert (place.generation, place.compressed) == (generation, compressed)
            check_place(made, place)
