"""Which sessions of a source are wanted, and how sources are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from flows.settings import load_settings
from flows.summary import IngestParameters
from storage.objects import ObjectStat
from tasks.land.claude_code.discover import source_file
from tasks.land.selection import Archive
from tasks.land.source import Sighting
from tests.command import Command

SESSION = "3758e554-dd3c-4170-89f8-eb139d3f8c97"
AGENT = f"{SESSION}/subagents/agent-ad44dfacb6876bcad.jsonl"


def wants(files: list[str], include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> bool:
    found = [(source_file(key), ObjectStat(key, 1, 0.0, "")) for key in files]
    sightings = [Sighting(file, stat) for file, stat in found if file is not None]
    assert len(sightings) == len(files)
    return Archive(url="x", include=include, exclude=exclude).wants(SESSION, sightings)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("-srv-my-app", True),
        ("-srv-*", True),
        ("*/" + SESSION + ".jsonl", True),
        (SESSION[:4] + "*", True),
        ("/srv/my.app", True),
        ("/srv/my app", True),
        ("/srv/**", True),
        ("/srv/my.app/**", True),
        ("/srv", False),
        ("/srv/my.ap/**", False),
        ("srv", False),
        ("-SRV-*", False),
    ],
)
def test_pattern_is_a_place_an_id_or_the_folder_that_was_worked_in(pattern: str, matches: bool) -> None:
    files = [f"-srv-my-app/{SESSION}.jsonl"]
    assert wants(files, include=(pattern,)) == matches
    assert wants(files, exclude=(pattern,)) != matches


def test_session_is_judged_by_its_main_files_and_by_all_without_one() -> None:
    assert not wants([f"a/{SESSION}.jsonl", f"b/{AGENT}"], include=("b",))
    assert wants([f"b/{AGENT}"], include=("b",))
    assert wants([f"a/{SESSION}.jsonl", f"b/{SESSION}.jsonl"], include=("b",))
    assert wants([f"a/{SESSION}.jsonl", f"b/{SESSION}.jsonl"], exclude=("b",))
    assert not wants([f"a/{SESSION}.jsonl", f"b/{SESSION}.jsonl"], exclude=("a", "b"))


def test_session_that_is_left_out_now_is_not_taken_for_gone(sessionmill: Command, tmp_path: Path) -> None:
    for project, session in (("a", SESSION), ("b", SESSION.replace("3", "4"))):
        (tmp_path / "src" / project).mkdir(parents=True)
        (tmp_path / "src" / project / f"{session}.jsonl").write_bytes(b'{"uuid":"u"}\n')
    assert sessionmill("land", tmp_path / "src", "zone").code == 0
    done = sessionmill("land", tmp_path / "src", "zone", "--include", "b", "--json")
    assert [each["unchanged"] for each in done.json["sessions"]] == [True]
    assert "source_gone" not in "".join(path.read_text() for path in Path("zone").rglob("*.cursor"))
    done = sessionmill("land", tmp_path / "src", "zone", "--exclude", "b", "--json")
    assert [each["session"] for each in done.json["sessions"]] == [SESSION]


WRITTEN = [
    ("a", [Archive(url="a")]),
    ('["a", {"url": "s3://b/c", "kind": "codex", "exclude": "x"}]', None),
    ('{"url": "a", "include": ["x", "y"]}', [Archive(url="a", include=("x", "y"))]),
    ("[]", []),
    ("", []),
]


@pytest.mark.parametrize(("text", "archives"), WRITTEN)
def test_sources_are_a_place_or_json(
    text: str, archives: list[Archive] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if archives is None:
        archives = [Archive(url="a"), Archive(url="s3://b/c", kind="codex", exclude=("x",))]
    monkeypatch.setenv("SESSIONMILL_SOURCES", text)
    assert list(load_settings().sources) == archives
    assert list(IngestParameters(zone="z").sources) == archives
    monkeypatch.delenv("SESSIONMILL_SOURCES")
    given: object = text
    assert list(IngestParameters.model_validate({"zone": "z", "sources": given}).sources) == archives


def test_sources_in_the_file_are_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sessionmill.yaml").write_text("sources:\n- a\n- {url: b, kind: codex}\n")
    assert load_settings().sources == (Archive(url="a"), Archive(url="b", kind="codex"))


@pytest.mark.parametrize("text", ["[", "[7]", '{"kind": "codex"}', '{"url": "a", "kinds": "codex"}'])
def test_sources_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        IngestParameters.model_validate({"zone": "z", "sources": text})


def test_what_is_wrong_with_a_source_is_said(sessionmill: Command) -> None:
    done = sessionmill("run", "ingest", "-p", "zone=z", "-p", "sources=" + json.dumps([{"url": "a", "kinds": "x"}]))
    assert done.code == 2
    assert "sources.0.kinds: no such key" in done.err


def test_patterns_that_let_no_session_through_are_wrong_use(sessionmill: Command, tmp_path: Path) -> None:
    (tmp_path / "src/a").mkdir(parents=True)
    (tmp_path / f"src/a/{SESSION}.jsonl").write_bytes(b'{"uuid":"u"}\n')
    for options in (["--include", "b"], ["--exclude", "*"]):
        done = sessionmill("land", tmp_path / "src", "zone", *options)
        assert done.code == 2
        assert "the patterns let none of its 1 sessions through" in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [("[7]", "sources.0: 7 is neither a place nor a mapping"), ('{"kind":"codex"}', "sources.0.url: is missing")],
)
def test_what_is_no_source_is_said_in_words(sessionmill: Command, text: str, said: str) -> None:
    done = sessionmill("run", "ingest", "-p", "zone=z", "-p", f"sources={text}")
    assert (done.code, said in done.err) == (2, True)
