"""`scaffold -o FILE`: what is replaced, what is not, and what of the file that was there stays."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import Command, Result
from tests.golden import GOLDEN

CASE = GOLDEN / "relavium" / "035-yaml-hostile-scalars"
EXPECTED = (CASE / "expected.relavium.yaml").read_bytes()


def scaffold(sessionmill: Command, output: Path | str) -> Result:
    done: Result = sessionmill("scaffold", CASE / "record.json", CASE / "messages.json", "-o", output)
    return done


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def test_named_pipe_is_refused_and_stays(sessionmill: Command, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = scaffold(sessionmill, folder / "pipe")
    assert (done.code, done.out, "not an ordinary file" in done.err) == (2, "", True)
    assert stat.S_ISFIFO((folder / "pipe").lstat().st_mode)
    assert names(folder) == ["pipe"]


def test_link_to_a_named_pipe_is_refused_and_stays(sessionmill: Command, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("pipe")
    assert scaffold(sessionmill, folder / "link").code == 2
    assert ((folder / "link").is_symlink(), stat.S_ISFIFO((folder / "pipe").stat().st_mode)) == (True, True)


def test_folder_is_refused(sessionmill: Command, folder: Path) -> None:
    assert scaffold(sessionmill, folder).code == 2
    assert names(folder) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no such file system here")
def test_folder_that_takes_no_files_is_named_by_the_file_asked_for(sessionmill: Command) -> None:
    done = scaffold(sessionmill, "/proc/workflow.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.err == "sessionmill: /proc/workflow.yaml: cannot be written: No such file or directory\n"


def test_disk_that_is_full_is_said_of_the_file_asked_for(folder: Path) -> None:
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    limit += "; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))"
    writes = f"from flows.output_file import write_output; write_output({str(folder / 'f')!r}, bytes(100))"
    done = subprocess.run([sys.executable, "-c", f"{limit}; {writes}"], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == f"OSError: [Errno 27] File too large: {str(folder / 'f')!r}"
    assert names(folder) == []


@pytest.mark.parametrize("name", ["", "new/", "one/", "one/two", "none/two"])
def test_what_can_be_no_file_is_refused(sessionmill: Command, folder: Path, name: str) -> None:
    (folder / "one").write_text("old")
    done = scaffold(sessionmill, f"{folder}/{name}" if name else "")
    assert (done.code, done.out) == (2, "")
    assert (names(folder), (folder / "one").read_text()) == (["one"], "old")


def test_links_that_lead_nowhere_but_to_themselves_are_refused(sessionmill: Command, folder: Path) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    assert scaffold(sessionmill, folder / "a").code == 2
    assert ((folder / "a").is_symlink(), (folder / "b").is_symlink()) == (True, True)


def test_link_is_followed_and_its_file_replaced(sessionmill: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("old")
    (folder / "link").symlink_to("../real.yaml")
    assert scaffold(sessionmill, folder / "link").code == 0
    assert (folder / "link").is_symlink()
    assert (tmp_path / "real.yaml").read_bytes() == EXPECTED
    assert names(folder) == ["link"]


def test_link_to_a_file_that_is_not_there_yet_makes_it(sessionmill: Command, folder: Path, tmp_path: Path) -> None:
    (folder / "link").symlink_to("../new.yaml")
    assert scaffold(sessionmill, folder / "link").code == 0
    assert ((folder / "link").is_symlink(), (tmp_path / "new.yaml").read_bytes()) == (True, EXPECTED)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_file_keeps_its_mode(sessionmill: Command, folder: Path, mode: int) -> None:
    (folder / "one").write_text("old")
    (folder / "one").chmod(mode)
    assert scaffold(sessionmill, folder / "one").code == 0
    assert stat.S_IMODE((folder / "one").stat().st_mode) == mode
    assert (folder / "one").read_bytes() == EXPECTED
    assert names(folder) == ["one"]


def test_new_file_has_the_mode_that_the_umask_leaves(sessionmill: Command, folder: Path) -> None:
    before = os.umask(0o027)
    try:
        assert scaffold(sessionmill, folder / "one").code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "one").stat().st_mode) == 0o640


def test_file_is_replaced_whole(sessionmill: Command, folder: Path) -> None:
    (folder / "one").write_text("old")
    with open(folder / "one") as reader:
        assert scaffold(sessionmill, folder / "one").code == 0
        assert reader.read() == "old"


def test_hyphen_is_standard_output(sessionmill: Command) -> None:
    done = scaffold(sessionmill, "-")
    assert (done.code, done.out.encode()) == (0, EXPECTED)
    assert not Path("-").exists()


def test_standard_output_by_a_link_is_refused_whatever_it_is(folder: Path) -> None:
    (folder / "out").write_text("kept\n")
    (folder / "link").symlink_to("/proc/self/fd/1")
    session = [str(CASE / "record.json"), str(CASE / "messages.json")]
    command = [sys.executable, "-m", "flows", "scaffold", *session, "-o", str(folder / "link")]
    piped = subprocess.run(command, capture_output=True, check=False)
    assert (piped.returncode, piped.stdout) == (2, b"")
    with open(folder / "out", "a") as out:
        assert subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=False).returncode == 2
    assert ((folder / "link").is_symlink(), (folder / "out").read_text()) == (True, "kept\n")
