"""The original programs that tests run beside ours, and Node.js itself, installed into `.node/` of this checkout.

`node_programs.json` pins each set of packages exactly, and all that it needs. A set is installed once, whole or not at
all, into a folder named by its pins; `python -m tests.node_programs [SET…]` installs them beforehand.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["NotInstallable", "claude", "codex", "node", "packages"]

_PINS: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text())
_CACHE = Path(__file__).parents[1] / ".node"
_INSTALL_SECONDS = 300
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


class NotInstallable(Exception):
    """Why a set cannot be installed on this machine, in one line."""


def node() -> Path:
    """A Node.js of a version that has zstd and SQLite. Raises NotInstallable."""
    name = _for_this_machine("node")
    return packages(name) / name / "bin" / "node"


def claude() -> Path:
    """Claude Code, one file without Node.js. Raises NotInstallable."""
    name = _for_this_machine("claude-code")
    return packages(name) / "@anthropic-ai" / name / "claude"


def codex() -> Path:
    """Codex, one file beside its resources, without Node.js. Raises NotInstallable."""
    vendor = packages(_for_this_machine("codex")) / "@openai" / "codex" / "vendor"
    return next(vendor.glob("*/bin/codex"))


def _for_this_machine(program: str) -> str:
    name = f"{program}-linux-{_MACHINES.get(platform.machine(), platform.machine())}"
    if sys.platform != "linux" or name not in _PINS:
        raise NotInstallable(f"no {program} is pinned for {sys.platform} on {platform.machine()}")
    return name


def packages(name: str) -> Path:
    """The `node_modules` that holds the set of this name, installed if it is not there. Raises NotInstallable."""
    pins = _PINS[name]
    digest = hashlib.sha256(json.dumps(pins, sort_keys=True).encode()).hexdigest()[:12]
    installed = _CACHE / f"{name}-{digest}" / "node_modules"
    if installed.is_dir():
        return installed
    _CACHE.mkdir(exist_ok=True)
    with (_CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may run in several processes
        if not installed.is_dir():
            _install(pins, installed.parent)
    return installed


def _install(pins: dict[str, str], folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstallable("npm is not on the PATH")
    with tempfile.TemporaryDirectory(dir=_CACHE) as name:
        unfinished = Path(name) / "set"
        unfinished.mkdir()
        (unfinished / "package.json").write_text(json.dumps({"private": True, "dependencies": pins}))
        # No script of a package is run, and no file with addresses is left.
        command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"]
        try:
            done = subprocess.run(
                command, cwd=unfinished, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise NotInstallable(f"npm install took more than {_INSTALL_SECONDS} s") from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise NotInstallable(f"npm install failed: {said[0] if said else f'exit {done.returncode}'}")
        unfinished.rename(folder)


def _program(name: str) -> str:
    return name.partition("-linux-")[0]


def main(names: list[str]) -> int:
    """Install these sets, or all that are for this machine; 1 when one could not be."""
    failed = 0
    for name in names or [each for each in _PINS if "-linux-" not in each or each == _for_this_machine(_program(each))]:
        try:
            print(f"{name}: {packages(name)}")
        except NotInstallable as why:
            print(f"{name}: {why}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
