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
from flows.export_summary import ExportParameters
from flows.settings import Settings
from flows.summary import IngestParameters
from flows.verify_summary import VerifyParameters

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
    ("flow", "parameters"), [("ingest", IngestParameters), ("verify", VerifyParameters), ("export", ExportParameters)]
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
