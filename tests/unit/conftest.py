"""The command line, run in the test's own process."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.__main__ import main
from tests.command import Command, Result


@pytest.fixture
def sessionmill(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Command]:
    """Runs a command in this process, in an empty folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["sessionmill", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert isinstance(left.value.code, int)
        return Result(left.value.code, out, err)

    yield run
    signal.signal(signal.SIGTERM, before)
