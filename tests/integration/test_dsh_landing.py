"""A real session of DeepSeek Harness against a model of ours: what its program wrote lands, assembles, verifies and is
exported, while it grows and once it is done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from schemas.relavium_yaml_reader import read_yaml
from storage.zone import Zone
from tests.dsh_zone import assembled, calls, land, problems, records, told, zone_at
from tests.stub_llm import Answer, StubLlm, Tokens, ToolCall

USED = Tokens(input=100, cache_read=20, output=10)


def sessionmill(*arguments: str | Path) -> int:
    command = [sys.executable, "-m", "flows", *map(str, arguments)]
    return subprocess.run(command, check=False, timeout=120, stdout=subprocess.DEVNULL).returncode


PROGRAM = """
import json, sys
from deepseek_harness import DeepSeekHarness

with DeepSeekHarness(**json.loads(sys.argv[1])) as harness:
    session = harness.start_session()
    print(session.id, flush=True)
    for prompt in sys.stdin:
        print(session.run(prompt.strip()).final_response, flush=True)
"""


@contextmanager
def conversation(dsh_home: Path, workspace: Path, stub_llm: StubLlm) -> Iterator[tuple[str, Callable[[str], str]]]:
    """A session of the real program: its id, and what says something to it and gives its answer."""
    options = {"dsh_home": str(dsh_home), "cwd": str(workspace), "base_url": stub_llm.url, "api_key": "sk-stub"}
    command = [sys.executable, "-P", "-c", PROGRAM, json.dumps({**options, "model": "deepseek-v4-flash"})]
    environment = {**os.environ, "DSH_TELEMETRY_MODE": "DISABLED", "DSH_PERMISSION_MODE": "danger-full-access"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=workspace
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        given, answered = running.stdin, running.stdout

        def say(prompt: str) -> str:
            print(prompt, file=given, flush=True)
            return answered.readline().rstrip("\n")

        yield answered.readline().rstrip("\n"), say
        given.close()
        assert running.wait(60) == 0


def is_over(zone: Zone, session: str) -> bool:
    """Whether a sub-agent was started and has reported, and no turn is open."""
    found = list(records(zone, session))
    streams = {stream for stream, _ in found}
    reported = any(record.trigger == "notification" for _, record in found)
    ends = [told(record for at, record in found if at == stream).ends for stream in streams]
    return len(streams) == 2 and reported and all(end for each in ends for end in each.values())


def test_a_real_session_lands_while_it_grows_and_becomes_a_workflow(stub_llm: StubLlm, tmp_path: Path) -> None:
    command = {"description": "Count", "command": "printf 'one\\ntwo\\n' | wc -l"}
    delegation = {"description": "look", "prompt": "script:child Look at it."}
    stub_llm.script(Answer("Seen.", usage=USED), name="child")
    stub_llm.script(
        Answer("Let me count.", (ToolCall("bash", command),), USED),
        Answer("Two lines.", usage=USED),
        Answer("I have somebody look.", (ToolCall("subagent", delegation),), USED),
        Answer("All is done.", usage=USED),
    )
    zone, source, workspace = zone_at(tmp_path / "zone"), tmp_path / "dsh", tmp_path / "workspace"
    workspace.mkdir()
    with conversation(source, workspace, stub_llm) as (session, say):
        assert say("How many lines?") == "Two lines."
        assert problems(land(source, zone)) == []
        assert told(record for _, record in records(zone, session)).human == [(f"{session}:t1", "How many lines?")]
        say("Have it looked at.")
        # The sub-agent works on beside its parent, which is told when it is done.
        deadline = time.monotonic() + 60
        while not is_over(zone, session) and time.monotonic() < deadline:
            time.sleep(0.2)
            assert problems(land(source, zone)) == []
    assert is_over(zone, session)
    assert sessionmill("land", source, tmp_path / "zone") == 0
    found = assembled(zone, session)
    (started,) = (each for key, each in found["relations"].items() if key.startswith("rel/starts/"))
    assert started["quality"] == "exact_unique"
    main = told(record for at, record in records(zone, session) if at == "main")
    assert [text for _, text in main.human] == ["How many lines?", "Have it looked at."]
    (count,) = (each for each in main.calls.values() if each[0] == "bash")
    assert count[1] == (False, "available", "2\n")
    served = [each.tokens for each in stub_llm.requests() if each.tokens is not None and not each.request.is_title]
    beside = [json.loads(bytes(each.usage)) for each in calls(zone, session)]
    assert len(beside) == len(served) >= 5
    assert all((each["inputTokens"], each["cacheReadTokens"], each["outputTokens"]) == (100, 20, 10) for each in beside)
    exports = tmp_path / "exports"
    assert sessionmill("export", tmp_path / "zone", "--to", exports, "--as-of", "2099-01-01T00:00:00Z") == 0
    (exported,) = exports.glob("*.relavium.yaml")
    nodes = read_yaml(exported.read_bytes(), name=exported.name)["workflow"]["nodes"]
    prompts = [(node["prompt_template"], node.get("tools")) for node in nodes if node["type"] == "agent"]
    assert prompts == [("How many lines?", ["bash"]), ("Have it looked at.", ["subagent"])]
