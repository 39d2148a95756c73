"""The documents name every command, argument, option, setting, flow parameter and exit code, and none that is not
there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel

from flows import console
from flows.__main__ import app
from flows.agent_parameters import DueParameters
from flows.export_summary import ExportParameters
from flows.settings import Settings
from flows.summary import IngestParameters
from flows.usage_summary import UsageParameters
from flows.verify_summary import VerifyParameters
from tasks.agents.catalogue import read_spec

ROOT = Path(__file__).parents[2]
COMMANDS = (ROOT / "docs/commands.md").read_text()
COMMON = COMMANDS.partition("\n## ")[0]
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
README = (ROOT / "README.md").read_text()


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command with the names of its arguments and options."""
    stack = [("sessionmill", typer.main.get_command(app))]
    while stack:
        name, command = stack.pop()
        inner = getattr(command, "commands", None)
        if inner:
            stack += [(f"{name} {key}", value) for key, value in inner.items()]
            continue
        words: list[str] = []
        for parameter in command.params:
            options = [each for each in (*parameter.opts, *parameter.secondary_opts) if each.startswith("-")]
            words += options or [str(parameter.metavar)]
        yield name, [word for word in words if word != "--help"]


def section(name: str) -> str:
    found = re.search(rf"^## `{re.escape(name)}[^\n]*`\n(.*?)(?=^## |\Z)", COMMANDS, re.MULTILINE | re.DOTALL)
    assert found, f"docs/commands.md has no section for {name}"
    return found[0]


@pytest.mark.parametrize(("name", "words"), sorted(commands()))
def test_command_is_documented_with_all_it_takes(name: str, words: list[str]) -> None:
    text = COMMON + section(name)
    assert [word for word in words if word not in text] == []


def test_documents_name_no_command_or_option_that_is_not_there() -> None:
    known = dict(commands())
    for name, rest in re.findall(r"^## `(sessionmill [a-z ]*[a-z])([^`\n]*)`$", COMMANDS, re.MULTILINE):
        assert name in known
        assert set(re.findall(r"--[a-z][a-z-]*", rest + section(name))) <= {*known[name], "--help"}


def test_readme_shows_every_command() -> None:
    assert [name for name, _ in commands() if name not in README] == []


def test_every_setting_and_its_variable_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", CONFIGURATION, re.MULTILINE)
    assert rows == [(name, f"SESSIONMILL_{name.upper()}") for name in Settings.model_fields]


@pytest.mark.parametrize(
    ("flow", "parameters"),
    [
        ("ingest", IngestParameters),
        ("verify", VerifyParameters),
        ("export", ExportParameters),
        ("usage", UsageParameters),
        ("agents", DueParameters),
    ],
)
def test_every_parameter_of_a_flow_is_documented(flow: str, parameters: type[BaseModel]) -> None:
    text = section(f"sessionmill run {flow}")
    assert [name for name in parameters.model_fields if f"`{name}`" not in text] == []


def test_every_exit_code_is_documented() -> None:
    rows = {int(code) for code in re.findall(r"^\| (\d+) \|", (ROOT / "docs/exit-codes.md").read_text(), re.MULTILINE)}
    assert rows == {
        console.DONE,
        console.PROBLEMS,
        console.WRONG_USE,
        console.SYSTEM_FAILED,
        console.INTERRUPTED,
        console.TERMINATED,
    }


@pytest.mark.parametrize(
    "page", sorted(str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")])
)
def test_links_between_the_documents_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
EXAMPLES = [line for page in PAGES for line in re.findall(r"^(?:[A-Z_]+=\S+ )*sessionmill .*$", page.read_text(), re.M)]


def test_agents_of_the_examples_declare_the_variables_that_are_given() -> None:
    runs = [line for line in EXAMPLES if "agent run agents/" in line]
    assert len(runs) >= 3
    for line in runs:
        found = re.search(r"agent run (agents/\S+\.yaml)", line)
        assert found, line
        spec = read_spec(ROOT / found[1])
        assert set(re.findall(r"--var (\w+)=", line)) <= set(spec.task.variables), line
        assert spec.archive is not None or "--archive " in line, line


def test_examples_leave_nothing_in_the_checkout_that_is_not_ignored() -> None:
    places = re.compile(r"(?: --to | -o | --archive | -p (?:to|export_to|archive)=)(\S+)")
    written = [place for line in EXAMPLES for place in places.findall(line.partition("  #")[0])]
    written += [found[1] for line in EXAMPLES if (found := re.search(r"sessionmill (?:land|usage) \S+ (\S+)", line))]
    kept = [place for place in written if not place.startswith(("sessionmill-demo/", "s3://", "~/", "--"))]
    assert len(written) > 10
    assert kept == []
    assert "sessionmill-demo/" in (ROOT / ".gitignore").read_text().splitlines()
    assert " sessionmill-demo " in (ROOT / "Makefile").read_text().partition("clean:\n")[2]


def test_worker_of_the_readme_has_all_that_its_flows_need() -> None:
    worker = README.partition("### On a schedule")[2].partition("prefect worker start")[0]
    for name in ("ZONE", "SOURCES", "EXPORTS", "USAGE", "AGENTS_ARCHIVE"):
        assert f"SESSIONMILL_{name}=" in worker
