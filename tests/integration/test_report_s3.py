"""A report on a data set in S3 is the report on the same data set in a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from storage.local import LocalStore
from storage.objects import StoreSettings, open_store
from tests.s3_server import S3Server
from tests.usage_rows import sample_calls, write_calls


def report(url: str, *options: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "flows", "report", url, *options, "--json"], capture_output=True, text=True, check=False
    )
    return done.returncode, json.loads(done.stdout)


def test_report_reads_s3_as_it_reads_a_folder(s3: S3Server, tmp_path: Path) -> None:
    rows = sample_calls(days=10)
    write_calls(LocalStore(str(tmp_path / "usage"), StoreSettings()), rows)
    there = open_store("s3://zone/report/usage")
    manifest = write_calls(there, rows)
    options = ("--zone", "Asia/Kolkata", "--until", "2026-03-09")
    assert report("s3://zone/report/usage", *options) == report(str(tmp_path / "usage"), *options)

    there.delete(manifest.files[0].key)
    code, error = report("s3://zone/report/usage")
    assert (code, error["error"], error["file"], error["rule"]) == (
        1,
        "UsageRejected",
        manifest.files[0].key,
        "missing",
    )
    code, error = report("s3://zone/report/nothing")
    assert (code, error["error"]) == (2, "WrongUse")
