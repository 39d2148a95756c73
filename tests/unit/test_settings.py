"""Configuration: file, then environment, then options; unknown keys and secrets in the wrong place."""

import os
import tempfile
from pathlib import Path

import pytest

from flows.agent_parameters import private_folder
from flows.settings import load_settings
from schemas.errors import ConfigurationRejected


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and no settings in the environment."""
    for name in list(os.environ):
        if name.startswith("SESSIONMILL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults_hold_when_nothing_is_configured() -> None:
    settings = load_settings()
    assert (settings.zone, settings.max_round_bytes, settings.shard_bytes) == (None, 2_097_152, 67_108_864)


def test_option_wins_over_environment_wins_over_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sessionmill.yaml").write_text("zone: from-file\nworkers: 3\nmax_round_bytes: 100\n")
    monkeypatch.setenv("SESSIONMILL_WORKERS", "4")
    monkeypatch.setenv("SESSIONMILL_MAX_ROUND_BYTES", "200")
    settings = load_settings(max_round_bytes=300)
    assert (settings.zone, settings.workers, settings.max_round_bytes) == ("from-file", 4, 300)


def test_option_that_is_not_given_leaves_the_setting(folder: Path) -> None:
    (folder / "sessionmill.yaml").write_text("max_round_bytes: 100\n")
    assert load_settings(max_round_bytes=None).max_round_bytes == 100


def test_named_file_is_read_instead_of_the_one_in_the_current_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sessionmill.yaml").write_text("zone: here\n")
    (folder / "other.yaml").write_text("zone: there\n")
    monkeypatch.setenv("SESSIONMILL_CONFIG", "other.yaml")
    assert load_settings().zone == "there"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("zoen: a\n", "zoen: no such setting"),
        ("workers: 0\n", "workers: the value is less than 1"),
        ("zone: [\n", "sessionmill.yaml is not YAML"),
        ("- zone\n", "sessionmill.yaml is not a mapping"),
        ("zone\n", "sessionmill.yaml is not a mapping"),
    ],
)
def test_file_that_cannot_be_meant_is_refused(folder: Path, text: str, sentence: str) -> None:
    (folder / "sessionmill.yaml").write_text(text)
    with pytest.raises(ConfigurationRejected, match=sentence):
        load_settings()


def test_unknown_variable_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONMILL_ZOEN", "a")
    with pytest.raises(ConfigurationRejected, match="no such setting: SESSIONMILL_ZOEN"):
        load_settings()


def test_named_file_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONMILL_CONFIG", "nowhere.yaml")
    with pytest.raises(ConfigurationRejected, match=r"nowhere\.yaml, which is no file"):
        load_settings()


@pytest.mark.parametrize(
    "text",
    [
        "aws_secret_access_key: hunter2\n",
        "workers: hunter2\n",
        "s3_endpoint_url: http://me:hunter2@127.0.0.1:8333\n",
        "zone: [hunter2\n",
    ],
)
def test_value_that_may_be_a_secret_is_not_repeated(folder: Path, text: str) -> None:
    (folder / "sessionmill.yaml").write_text(text)
    with pytest.raises(ConfigurationRejected) as refused:
        load_settings()
    assert "hunter2" not in str(refused.value)


def test_store_is_reached_as_configured(folder: Path) -> None:
    (folder / "sessionmill.yaml").write_text("s3_endpoint_url: http://127.0.0.1:8333\nmax_object_bytes: 1000\n")
    store = load_settings().store()
    assert (store.endpoint_url, store.region, store.max_object_bytes) == ("http://127.0.0.1:8333", None, 1000)


def test_what_is_wrong_with_an_option_is_said_under_its_name(folder: Path) -> None:
    (folder / "sessionmill.yaml").write_text("shard_bytes: 0\n")
    with pytest.raises(ConfigurationRejected) as refused:
        load_settings(max_delta_bytes=0, completed_after="soon")
    assert set(str(refused.value).split("; ")) == {
        "configuration: shard_bytes: the value is less than 1",
        "--max-delta-bytes: the value is less than 1",
        "--completed-after: 'soon' is no length of time",
        "write it as 1h, 90m or 1h30m",
    }


@pytest.mark.parametrize("below", ["", "/below"])
def test_file_in_the_place_of_the_folder_for_runs_is_refused_by_the_settings_name(folder: Path, below: str) -> None:
    (folder / "work").touch()
    with pytest.raises(ConfigurationRejected, match=f"^agents_work: work{below} is not a folder$"):
        private_folder(load_settings(agents_work=f"work{below}"))


def test_no_folder_for_runs_is_not_the_current_one() -> None:
    with pytest.raises(ConfigurationRejected, match="agents_work is empty"):
        private_folder(load_settings(agents_work=""))


def test_folder_for_runs_below_tmp_is_private_or_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    ours = private_folder(load_settings())
    assert ours.parent == folder.resolve()
    assert ours.stat().st_mode & 0o777 == 0o700
    assert private_folder(load_settings()) == ours
    ours.rmdir()
    ours.touch(mode=0o600)
    with pytest.raises(ConfigurationRejected, match="not a private folder of this user — remove it"):
        private_folder(load_settings())
    ours.unlink()
    ours.symlink_to(folder / "elsewhere")
    with pytest.raises(ConfigurationRejected, match="not a private folder"):
        private_folder(load_settings())
