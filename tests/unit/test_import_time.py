"""Start-up stays instant: what is slow to import is imported by the command that needs it."""

import subprocess
import sys

import pytest

SLOW = {"prefect", "s3fs", "fsspec", "polars", "duckdb", "pyarrow", "plotly", "botocore", "pydantic_settings"}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["assemble", "--help"], ["land", "--help"], ["report", "--help"], ["run", "ingest", "--help"]],
)
def test_help_imports_nothing_slow(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from flows.__main__ import app\n"
        f"try:\n    app({arguments!r})\n"
        "except SystemExit:\n    pass\n"
        "print('\\n'.join(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert "typer" in imported
    assert imported & SLOW == set()


def test_commands_that_work_on_a_folder_do_not_import_prefect_or_s3fs() -> None:
    script = (
        "import sys, flows.direct, flows.landing, storage.local\n"
        "print('\\n'.join(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & {"prefect", "s3fs", "polars", "duckdb"} == set()
