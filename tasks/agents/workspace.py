"""Where a run works: a folder of its own, and a private one beside it for what its runner keeps.

A run's folder is made new for each run and readable by its owner alone. What was copied into it is thrown away with
it; only a workspace of kind ``folder`` is a place that stays.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemas.agent_spec import Workspace
from schemas.errors import AccessRefused, WrongUse

__all__ = ["RunFolders", "make_folders", "passing_folder", "project_of", "remove_folders"]

_GIT_SECONDS: Final = 600
_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True)
class RunFolders:
    """A run's folder, where the agent works, and where its runner keeps its own."""

    root: Path
    workspace: Path
    home: Path


async def make_folders(root: Path, workspace: Workspace) -> RunFolders:
    """Make what a run needs below ``root``, which must not be there. Raises `WrongUse` for a workspace that is not,
    and `AccessRefused` for one that cannot be copied."""
    root.mkdir(parents=True, mode=0o700)
    home = root / "home"
    home.mkdir(mode=0o700)
    folders = RunFolders(root, _place(root, workspace), home)
    try:
        if workspace.kind == "empty":
            folders.workspace.mkdir()
        elif workspace.kind == "copy":
            await asyncio.to_thread(_copy, _source(workspace), folders.workspace)
        elif workspace.kind == "git":
            await _check_out(_source(workspace), workspace.ref or "", folders.workspace)
        else:
            _source(workspace)
    except BaseException:
        remove_folders(root)
        raise
    return folders


def passing_folder(root: Path, workspace: Workspace) -> Path | None:
    """Where the agent works when that is thrown away with the run."""
    return None if workspace.kind == "folder" else _place(root, workspace)


def project_of(workspace: Workspace, agent: str) -> str:
    """What people know the agent's work by: the folder or repository that its workspace is or is made from, and of an
    empty one the agent's name."""
    return agent if workspace.path is None else str(Path(workspace.path).resolve())


def remove_folders(root: Path) -> None:
    """Throw a run's folder away, also what the agent made unwritable in it."""

    def allow_and_retry(function: object, path: str, error: object) -> None:
        with suppress(OSError):
            os.chmod(Path(path).parent, 0o700)
            if Path(path).is_dir() and not Path(path).is_symlink():
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    shutil.rmtree(root, onerror=allow_and_retry)


def _place(root: Path, workspace: Workspace) -> Path:
    return Path(workspace.path or "").resolve() if workspace.kind == "folder" else root / "workspace"


def _source(workspace: Workspace) -> Path:
    source = Path(workspace.path or "").resolve()
    if not source.is_dir():
        raise WrongUse(f"workspace: {source} is not a folder")
    return source


def _copy(source: Path, target: Path) -> None:
    """A copy of its folders, files and links. Raises `WrongUse` for one that would copy itself, and `AccessRefused`."""
    if target.resolve().is_relative_to(source):
        raise WrongUse(
            f"workspace: {source} holds the folder for runs, so that its copy would copy itself — set agents_work"
        )
    try:
        # Links stay links: following one would copy what lies outside of the folder.
        shutil.copytree(source, target, symlinks=True, ignore=_special)
    except shutil.Error as error:
        (_, _, first), *others = error.args[0]
        more = f" (and {len(others)} more)" if others else ""
        raise AccessRefused(str(source), "copy", f"{first}{more}") from None


def _special(folder: str, names: list[str]) -> list[str]:
    """Those that cannot be copied, having no contents: pipes, sockets and devices."""
    kinds = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    return [
        name for name, mode in kinds.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
    ]


async def _check_out(repository: Path, ref: str, target: Path) -> None:
    """A checkout with a history of its own: nothing that the agent commits reaches the repository."""
    await _git("clone", "--quiet", "--no-local", "--no-checkout", "--", str(repository), str(target))
    # Asked where the branches are: a clone has them under other names, and not all that its origin has.
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    found = await _git("-C", str(repository), *asked, fails=True)
    if _COMMIT.fullmatch(found) is None:
        raise WrongUse(f"workspace: {repository} has no ref {ref} — name a branch, a tag or a commit")
    await _git("-C", str(target), "fetch", "--quiet", "origin", found)
    await _git("-C", str(target), "-c", "core.hooksPath=/dev/null", "checkout", "--quiet", "--detach", found)


async def _git(*arguments: str, fails: bool = False) -> str:
    """What git answers; nothing where it fails and may. No prompt, no configuration of this machine, no hooks."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "LC_ALL": "C",
    }
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        raise WrongUse("workspace: the program git is not installed") from None
    try:
        out, error = await asyncio.wait_for(process.communicate(), _GIT_SECONDS)
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode and not fails:
        said = error.decode("utf-8", "replace").strip().splitlines()
        raise WrongUse(f"workspace: git {arguments[0]} failed: {said[-1] if said else process.returncode}")
    return "" if process.returncode else out.decode().strip()
