"""Where a run works: copies, checkouts and what is left of them."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from pathlib import Path

import pytest

from schemas.agent_spec import Workspace
from schemas.errors import AccessRefused, WrongUse
from tasks.agents.workspace import make_folders, remove_folders


def test_copy_leaves_its_source_alone_and_goes_with_the_run(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_text("a")
    (source / "link").symlink_to("/etc")
    folders = asyncio.run(make_folders(tmp_path / "run", Workspace(kind="copy", path=str(source))))
    (folders.workspace / "a.txt").write_text("changed")
    assert (folders.workspace / "link").is_symlink()
    (folders.workspace / "shut").mkdir(mode=0o500)
    remove_folders(folders.root)
    assert (source / "a.txt").read_text() == "a"
    assert not folders.root.exists()


def test_copy_leaves_out_what_has_no_contents(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "dangling").symlink_to("/nonexistent")
    os.mkfifo(source / "below/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "socket"))
        folders = asyncio.run(make_folders(tmp_path / "run", Workspace(kind="copy", path=str(source))))
    copied = sorted(str(path.relative_to(folders.workspace)) for path in folders.workspace.rglob("*"))
    assert copied == ["a.txt", "below", "dangling"]


@pytest.mark.parametrize("source", [".", "work"])
def test_folder_that_holds_the_runs_is_not_copied_into_one(tmp_path: Path, source: str) -> None:
    (tmp_path / "work").mkdir()
    workspace = Workspace(kind="copy", path=str(tmp_path / source))
    with pytest.raises(WrongUse, match="holds the folder for runs"):
        asyncio.run(make_folders(tmp_path / "work/reviewer/run-1", workspace))
    assert not (tmp_path / "work/reviewer/run-1").exists()


def test_what_cannot_be_copied_is_named_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    source, deepest = tmp_path / "s", os.pathconf("/", "PC_PATH_MAX") - 300
    deep = str(source)
    while len(deep) < deepest:
        deep += "/" + "x" * 100
    os.makedirs(deep)
    run = tmp_path / ("r" * 200) / ("u" * 200)
    with pytest.raises(
        AccessRefused, match=r"/s: the system does not allow to copy it: \[Errno 36\] File name too long"
    ):
        asyncio.run(make_folders(run, Workspace(kind="copy", path=str(source))))
    assert not run.exists()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Commit "one" is tagged v1, "two" is main, "three" the branch side/é, and "four" on no branch of its own."""
    import subprocess

    folder = tmp_path_factory.mktemp("repo")

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)

    def commit(text: str) -> None:
        (folder / "a.txt").write_text(text)
        git("add", ".")
        git("commit", "-qm", text)

    git("init", "-q", "-b", "main")
    commit("one")
    git("tag", "-a", "v1", "-m", "v1")
    commit("two")
    git("checkout", "-qb", "side/é")
    commit("three")
    git("checkout", "-q", "--detach", "main")
    commit("four")
    git("update-ref", "refs/remotes/elsewhere/main", "HEAD")
    git("checkout", "-q", "main")
    return folder


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("v1", "one"),
        ("refs/tags/v1", "one"),
        ("main", "two"),
        ("HEAD", "two"),
        ("main~1", "one"),
        ("refs/heads/main", "two"),
        ("side/é", "three"),
        ("heads/side/é", "three"),
        ("refs/heads/side/é", "three"),
        ("elsewhere/main", "four"),
    ],
)
def test_git_workspace_is_a_checkout_of_the_ref_with_a_history_of_its_own(
    repository: Path, tmp_path: Path, ref: str, text: str
) -> None:
    workspace = Workspace(kind="git", path=str(repository), ref=ref)
    folders = asyncio.run(make_folders(tmp_path / "run", workspace))
    assert (folders.workspace / "a.txt").read_text() == text
    assert (folders.workspace / ".git/objects").is_dir()


@pytest.mark.parametrize("ref", ["nowhere", "^main", "main..v1", "v1..", "main:a.txt", "HEAD^{tree}", "@{u}", " main"])
def test_what_names_no_commit_is_no_ref(repository: Path, tmp_path: Path, ref: str) -> None:
    with pytest.raises(WrongUse, match=f"has no ref {re.escape(ref)} — name a branch"):
        asyncio.run(make_folders(tmp_path / "run", Workspace(kind="git", path=str(repository), ref=ref)))
    assert not (tmp_path / "run").exists()


def test_folder_that_is_no_repository_has_no_refs(repository: Path, tmp_path: Path) -> None:
    (repository / "below").mkdir()
    with pytest.raises(WrongUse, match="git clone failed"):
        asyncio.run(make_folders(tmp_path / "run", Workspace(kind="git", path=str(repository / "below"), ref="main")))
