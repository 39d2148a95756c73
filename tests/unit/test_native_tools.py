"""The tools of a native agent: they stay in the workspace, and what a run permits is only ever narrowed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.agents.masking import Mask
from tasks.agents.native import confinement
from tasks.agents.native.beneath import open_beneath
from tasks.agents.native.conversation import ToolCall, ToolResult
from tasks.agents.native.workspace_tools import MAX_RESULT, TOOLS, WorkspaceTools

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def _call(tools: WorkspaceTools, name: str, **given: Any) -> ToolResult:
    return asyncio.run(tools.call(ToolCall("c", name, json.dumps(given))))


@pytest.fixture
def tools(tmp_path: Path) -> WorkspaceTools:
    (tmp_path / "w").mkdir()
    return WorkspaceTools(tmp_path / "w", "workspace-write", environment=ENVIRONMENT)


def test_files_are_written_listed_and_read(tools: WorkspaceTools) -> None:
    assert _call(tools, "write_file", path="a/b.txt", content="héllo").outcome == "ok"
    assert _call(tools, "list_files").text == "a/"
    assert _call(tools, "read_file", path="a/b.txt").text == "héllo"
    assert _call(tools, "read_file", path="a/b.txt", offset=3).text == "llo"


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "link", "link/x", "loop", "a\0b", ""])
@pytest.mark.parametrize("name", ["read_file", "write_file", "list_files"])
def test_no_path_leaves_the_workspace(tools: WorkspaceTools, tmp_path: Path, name: str, path: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tools.workspace / "link").symlink_to(tmp_path / "outside")
    (tools.workspace / "loop").symlink_to("loop")
    result = _call(tools, name, path=path, content="x")
    assert result.outcome == "error"
    assert "secret" not in result.text.replace("../secret", "")
    assert list((tmp_path / "outside").iterdir()) == []
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_folder_that_has_become_a_link_leads_nowhere(tools: WorkspaceTools, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tools.workspace / "d").symlink_to(tmp_path / "outside")
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT):
        with pytest.raises(OSError, match="Not a directory"):
            open_beneath(tools.workspace, tools.workspace / "d" / "x", flags, make_folders=True)
    assert list((tmp_path / "outside").iterdir()) == []


def test_links_within_the_workspace_work(tools: WorkspaceTools) -> None:
    (tools.workspace / "d").mkdir()
    (tools.workspace / "to-d").symlink_to("d")
    assert _call(tools, "write_file", path="to-d/x", content="y").outcome == "ok"
    assert (tools.workspace / "d" / "x").read_text() == "y"
    assert _call(tools, "list_files", path="to-d").text == "x"


def test_no_descriptor_is_left_open(tools: WorkspaceTools) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for path in (".", "nowhere", "a/b", "../x"):
        for name in ("read_file", "list_files", "write_file"):
            _call(tools, name, path=path, content="x")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_pipe_does_not_stop_the_run(tools: WorkspaceTools) -> None:
    os.mkfifo(tools.workspace / "pipe")
    assert _call(tools, "read_file", path="pipe").outcome == "error"
    assert _call(tools, "write_file", path="pipe", content="x").outcome == "error"


def test_a_long_file_is_given_in_parts(tools: WorkspaceTools) -> None:
    whole = "x" + "äö€😀" * 9000
    (tools.workspace / "long").write_text(whole)
    given, offset = "", 0
    for _ in range(9):
        part = _call(tools, "read_file", path="long", offset=offset).text
        assert len(part.encode()) <= MAX_RESULT
        text, mark, rest = part.rpartition("\n[more from byte ")
        given += text if mark else part
        if not mark:
            break
        offset = int(rest.split()[0])
    assert given == whole


@pytest.mark.parametrize("arguments", ["", "[]", '"x"', '{"path": 5}', '{"path"', '{"path": "a", "offset": -1}'])
def test_arguments_that_do_not_fit_are_an_error_for_the_model(tools: WorkspaceTools, arguments: str) -> None:
    result = asyncio.run(tools.call(ToolCall("c", "read_file", arguments)))
    assert (result.outcome, result.code in ("INVALID_ARGUMENTS", "TOOL_FAILED")) == ("error", True)


def test_a_command_runs_without_a_shell_and_with_nothing_of_ours_in_its_environment(tools: WorkspaceTools) -> None:
    os.environ["SESSIONMILL_TEST_SECRET"] = "s3cret"
    try:
        assert "; echo" in _call(tools, "run_command", command="echo", args=["a; echo b"]).text
        assert "s3cret" not in _call(tools, "run_command", command="env").text
    finally:
        del os.environ["SESSIONMILL_TEST_SECRET"]


def test_a_failing_command_says_its_exit_code(tools: WorkspaceTools) -> None:
    assert _call(tools, "run_command", command="sh", args=["-c", "echo no >&2; exit 3"]).text == "[exit code 3]\nno\n"
    assert _call(tools, "run_command", command="no-such-program").outcome == "error"


def test_a_command_that_takes_too_long_is_ended_with_its_children(tools: WorkspaceTools) -> None:
    result = _call(tools, "run_command", command="sh", args=["-c", "sleep 71 & sleep 72"], timeout_seconds=1)
    assert "stopped after 1 seconds" in result.text
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if b"sleep\x0071" in command or b"sleep\x0072" in command]


@pytest.mark.parametrize("left", ["sleep 47 &", "setsid sleep 47 &", "(setsid sh -c '(sleep 47 &)' &);"])
def test_a_command_that_leaves_something_running_ends_with_its_own_exit_code(tools: WorkspaceTools, left: str) -> None:
    began = time.monotonic()
    told = _call(tools, "run_command", command="sh", args=["-c", f"{left} echo ok; exit 3"], timeout_seconds=20)
    assert told.text == "[exit code 3]\nok\n"
    assert time.monotonic() - began < 10
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if found.read_bytes() == b"sleep\x0047\x00":
                os.kill(int(found.parent.name), signal.SIGKILL)


def test_what_a_command_left_running_may_go_on_writing(tools: WorkspaceTools) -> None:
    async def play() -> str:
        write = "(sleep 2; yes | head -c 200000; echo more > more.txt) & echo ok"
        told = await tools.call(ToolCall("c", "run_command", json.dumps({"command": "sh", "args": ["-c", write]})))
        for _ in range(200):
            if (tools.workspace / "more.txt").exists():
                break
            await asyncio.sleep(0.05)
        return told.text

    assert asyncio.run(play()) == "[exit code 0]\nok\n"
    assert (tools.workspace / "more.txt").read_text() == "more\n"


def test_a_flood_of_output_is_cut(tools: WorkspaceTools) -> None:
    text = _call(tools, "run_command", command="sh", args=["-c", "head -c 3000000 /dev/zero | tr '\\0' x"]).text
    assert len(text) < MAX_RESULT
    assert "more bytes]" in text


@pytest.mark.parametrize("shown", [4, 9, 12])
def test_output_is_cut_before_a_secret_and_not_within(tmp_path: Path, shown: int) -> None:
    """In part it would not be masked: no 9 characters of a key of 13 are to be read where output is cut."""
    key = "sk-0123456789"
    tools = WorkspaceTools(tmp_path, "full", environment=ENVIRONMENT | {"KEY": key}, begun=Mask([key]).begun)
    before = 48 * 1024 - shown
    printed = _call(tools, "run_command", command="sh", args=["-c", f"printf %{before}s x; printf %s $KEY; echo"]).text
    assert printed.endswith(f"x\n[{len(key) + 1} more bytes]")


def test_a_file_is_cut_before_a_secret_and_its_next_part_has_it_whole(tmp_path: Path) -> None:
    key = "sk-0123456789"
    tools = WorkspaceTools(tmp_path, "read-only", begun=Mask([key]).begun)
    (tmp_path / "a.txt").write_text("x" * (MAX_RESULT - 108) + key + "y")
    first = _call(tools, "read_file", path="a.txt").text
    assert first.endswith(f"x\n[more from byte {MAX_RESULT - 108} on]")
    assert _call(tools, "read_file", path="a.txt", offset=MAX_RESULT - 108).text == f"{key}y"


def test_a_list_is_cut_before_a_secret(tmp_path: Path) -> None:
    key = "sk-0123456789"
    tools = WorkspaceTools(tmp_path, "read-only", begun=Mask([key]).begun)
    for number in range(300):
        (tmp_path / f"{number:03d}{'n' * (222 - len(key))}{key}").touch()
    text = _call(tools, "list_files").text
    assert text.endswith("nnnn\n[cut after 65536 characters]")


def test_a_command_writes_nowhere_but_to_the_workspace(tools: WorkspaceTools, tmp_path: Path) -> None:
    if not confinement.available():
        assert tools.permit("run_command") == "denied"
        return
    _call(
        tools, "run_command", command="sh", args=["-c", f"echo in > in; echo out > {tmp_path}/out; rm -f {tmp_path}/w"]
    )
    assert (tools.workspace / "in").read_text() == "in\n"
    assert not (tmp_path / "out").exists()
    move = "import os; os.makedirs('a'); os.makedirs('b'); open('a/x', 'w').close(); os.rename('a/x', 'b/y')"
    assert "exit code 0" in _call(tools, "run_command", command=sys.executable, args=["-c", move]).text
    out = _call(tools, "run_command", command=sys.executable, args=["-c", "import os; os.rename('b/y', '../y')"]).text
    assert "exit code 1" in out
    assert not (tmp_path / "y").exists()


@pytest.mark.skipif(not confinement.scopes_signals(), reason="Landlock of this kernel does not see signals")
def test_a_command_signals_nothing_but_what_it_started(tools: WorkspaceTools) -> None:
    """It could kill the process that supervises its run."""
    other = subprocess.Popen(["sleep", "60"])
    try:
        text = f"kill -9 {other.pid}; echo $?; sleep 61 & kill -9 $! && wait $!; echo $?"
        told = _call(tools, "run_command", command="sh", args=["-c", text]).text
        assert [line for line in told.splitlines() if line.isdecimal()] == ["1", "137"], told
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.skipif(not confinement.scopes_signals(), reason="Landlock of this kernel does not see abstract sockets")
def test_a_command_reaches_no_abstract_socket_of_others(tools: WorkspaceTools) -> None:
    name = f"sessionmill-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')"
        told = _call(tools, "run_command", command=sys.executable, args=["-c", connect]).text
    assert "Operation not permitted" in told


def test_full_mode_is_not_confined(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    tools = WorkspaceTools(tmp_path / "w", "full", environment=ENVIRONMENT)
    _call(tools, "run_command", command="sh", args=["-c", f"echo out > {tmp_path}/out"])
    assert (tmp_path / "out").exists()


def test_modes_and_lists_only_narrow(tmp_path: Path) -> None:
    def permitted(mode: Any, only: set[str] | None) -> dict[str, str]:
        tools = WorkspaceTools(tmp_path, mode, None if only is None else frozenset(only))
        assert {tool.name for tool in tools.offered} == {name for name in TOOLS if tools.permit(name) == "run"}
        return {name: tools.permit(name) for name in (*TOOLS, "bash")}

    assert permitted("full", None) == dict.fromkeys(TOOLS, "run") | {"bash": "unknown"}
    assert permitted("read-only", None)["write_file"] == "denied"
    assert permitted("read-only", {"write_file"})["write_file"] == "denied"
    assert permitted("full", {"read_file"}) == dict.fromkeys(TOOLS, "denied") | {"read_file": "run", "bash": "unknown"}
    assert permitted("full", set())["read_file"] == "denied"


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
given_arguments = st.fixed_dictionaries(
    {},
    optional={
        "path": st.one_of(values, st.sampled_from(["f", "d", "d/x", "loop", "../f", "." * 5000, "a/" * 300])),
        "content": values,
        "offset": st.one_of(values, st.integers(-1, 2**80)),
        "args": values,
        "command": st.one_of(values.filter(lambda value: not isinstance(value, str)), st.just("no-such-program")),
        "timeout_seconds": values,
    },
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(TOOLS)), arguments=given_arguments)
def test_whatever_a_model_gives_a_tool_there_is_a_result(
    tools: WorkspaceTools, name: str, arguments: dict[str, Any]
) -> None:
    (tools.workspace / "d").mkdir(exist_ok=True)
    if not (tools.workspace / "loop").is_symlink():
        (tools.workspace / "loop").symlink_to("loop")
    result = _call(tools, name, **arguments)
    assert result.outcome in ("ok", "error")
    assert len(result.text) <= MAX_RESULT + 100
