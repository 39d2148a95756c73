"""docs/usage.md says what is: its columns are the schema's, its examples run, and their answers are right."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.usage import CALL_FILE_SCHEMA, CALL_SCHEMA, COST_STATUSES, RUN_SCHEMA, SOURCES
from schemas.usage_run import RunRow
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import parquet_bytes, write_run
from tasks.report import CALL_TABLES, json_of, read_report, scope_of
from tasks.usage.price_table import load_price_table
from tests.command import Command
from tests.usage_rows import Row, call, headless_run, sample_calls, write_calls

PAGE = (Path(__file__).parents[2] / "docs/usage.md").read_text()
LOS_ANGELES = ZoneInfo("America/Los_Angeles")


def section(name: str) -> str:
    found = re.search(rf"^##+ {name}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, name
    return found[1]


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", section(name), re.MULTILINE | re.DOTALL)


def rows_of_table(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


# The schema.


@pytest.mark.parametrize(("name", "schema"), [("Columns", CALL_SCHEMA), ("Headless runs", RUN_SCHEMA)])
def test_columns_are_documented_as_they_are(name: str, schema: pa.Schema) -> None:
    said = [row for row in rows_of_table(section(name)) if len(row) == 4]
    assert said == [
        [f"`{field.name}`", str(field.type), "yes" if field.nullable else "", field.metadata[b"doc"].decode()]
        for field in schema
    ]


def test_cost_statuses_are_documented_all() -> None:
    assert [row[0].strip("`") for row in rows_of_table(section("Columns")) if len(row) == 2] == list(COST_STATUSES)


HIVE = {pa.string(): "string", pa.int64(): "bigint", pa.int32(): "int", pa.bool_(): "boolean"}
TRINO = {pa.string(): "varchar", pa.int64(): "bigint", pa.int32(): "integer", pa.bool_(): "boolean"}
TIME = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("name", "types", "partitions"),
    [
        ("Athena", HIVE | {TIME: "timestamp"}, [("date", "string"), ("source", "string")]),
        ("Trino", TRINO | {TIME: "timestamp(6)"}, [("date", "date"), ("source", "varchar")]),
    ],
)
def test_tables_are_declared_with_every_column(
    name: str, types: dict[pa.DataType, str], partitions: list[tuple[str, str]]
) -> None:
    statement = blocks(name, "sql")[0]
    body, rest = statement.split("\n)\n", 1)
    declared = re.findall(r'^  "?(\w+)"? ([\w()]+),?$', body, re.MULTILINE)
    columns = [(field.name, types[field.type]) for field in CALL_FILE_SCHEMA]
    if name == "Athena":
        assert declared == columns
        clause = re.search(r"PARTITIONED BY \((.*)\)", rest)
        assert clause
        assert re.findall(r"`?(\w+)`? (\w+)", clause[1]) == partitions
        assert f"'projection.source.values' = '{','.join(SOURCES)}'" in rest
        assert "date=${date}/source=${source}/" in rest
    else:
        assert declared == [*columns, *partitions]
        assert "partitioned_by = ARRAY['date', 'source']" in rest


def test_example_of_prices_holds_as_it_is_explained() -> None:
    (block,) = blocks("Prices", "yaml")
    table = load_price_table([("prices.yaml", block.encode())])
    (entry,) = table.of("Example/My-Local-1")
    at_work, at_rest = datetime(2026, 7, 6, 7, 0, tzinfo=UTC), datetime(2026, 7, 5, 7, 0, tzinfo=UTC)
    before = datetime(2025, 12, 31, 23, 59, tzinfo=UTC)
    found = [entry.rates_at(time) for time in (at_work, at_rest, before)]
    assert [rates and str(rates.input) for rates in found] == ["0.20", "0.10", None]
    assert found[1] is not None
    assert set(type(found[1]).model_fields) == set(re.findall(r"(\w+): \"", block.split("rates:")[1]))
    assert [name for name in type(entry).model_fields if f"{name}" not in section("Prices")] == []


# The queries. What they should answer is added up here from the rows, one at a time.


def rows() -> list[Row]:
    """Weeks of work, and what is odd: no time, times about midnight and DST, a sub-agent's own session, no input."""
    child = {"session_id": "child", "parent_session_id": "top", "is_subagent": True}
    moments = ["2026-03-08T07:59:59", "2026-03-08T08:00:00", "2026-03-09T06:59:59", "2026-03-09T07:00:00"]
    return [
        *sample_calls(days=8, sessions_a_day=3),
        *(call(text, call_time=datetime.fromisoformat(text).replace(tzinfo=UTC)) for text in moments),
        call("untimed", call_time=None, cost_status="no_time", project="007"),
        call("top", session_id="top", cost_microusd=90_000_000),
        call("child", **child, cost_microusd=4_000_000, call_time=datetime(2026, 3, 3, tzinfo=UTC)),
        call("empty", session_id="empty", project="", input_uncached=0, output=1, cost_status="unknown_model"),
    ]


ROWS = rows()
Answer = list[tuple[Any, ...]]


def grouped(key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in ROWS:
        groups.setdefault(key(row), []).append(row)
    return groups


def dollars(some: list[Row]) -> float | None:
    costs = [row["cost_microusd"] for row in some if row["cost_microusd"] is not None]
    return sum(costs) / 1e6 if costs else None


def same(found: list[Answer], expected: list[Answer]) -> bool:
    """Whether answers are alike; engines divide by a million in their own ways."""
    assert [len(answer) for answer in found] == [len(answer) for answer in expected]
    for answer, other in zip(found, expected, strict=True):
        for row, wanted in zip(answer, other, strict=True):
            assert list(row) == [pytest.approx(each, abs=1e-9) if isinstance(each, float) else each for each in wanted]
    return True


def last_if_none(value: float | None) -> tuple[bool, float]:
    return (value is None, -(value or 0))


def by_model() -> Answer:
    answer = []
    for model, some in grouped(lambda row: row["model"]).items():
        tokens = (sum(row["input_total"] for row in some), sum(row["output"] for row in some))
        unpriced = sum(row["cost_microusd"] is None for row in some)
        answer.append((model, len(some), *tokens, dollars(some), unpriced))
    return sorted(answer, key=lambda row: (last_if_none(row[4]), row[0]))


def by_day() -> Answer:
    def day(row: Row) -> Any:
        return row["call_time"].astimezone(LOS_ANGELES).date() if row["call_time"] else row["date"]

    return sorted((key, dollars(some)) for key, some in grouped(day).items())


def by_session() -> Answer:
    def session(row: Row) -> Any:
        return (row["is_subagent"] and row["parent_session_id"]) or row["session_id"]

    answer = []
    for key, some in grouped(session).items():
        own = [row for row in some if not row["is_subagent"]]
        delegated = [row for row in some if row["is_subagent"]]
        answer.append((last_if_none(dollars(some)), key, dollars(own), dollars(delegated)))
    return [row[1:] for row in sorted(answer, key=lambda row: row[:2])][:10]


def by_project() -> Answer:
    answer = []
    for project, some in grouped(lambda row: row["project"]).items():
        total = sum(row["input_total"] for row in some)
        answer.append((project, sum(row["cache_read"] for row in some) / total if total else None))
    return sorted(answer, key=lambda row: (last_if_none(row[1]), row[0] is None, row[0]))


def by_status() -> Answer:
    answer = []
    for (status, model), some in grouped(lambda row: (row["cost_status"], row["model"])).items():
        answer.append((status, model, len(some), sum(row["input_total"] + row["output"] for row in some)))
    return sorted(answer, key=lambda row: (row[0], -row[2], row[1]))


EXPECTED = [by_model, by_day, by_session, by_project, by_status]
TOTAL = (len(ROWS), dollars(ROWS), sum(row["cost_microusd"] is None for row in ROWS))


@pytest.fixture
def usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The rows as a data set in the folder `usage` of the current folder."""
    folder = tmp_path / "usage"
    write_calls(LocalStore(str(folder), StoreSettings()), ROWS)
    monkeypatch.chdir(tmp_path)
    return folder


def answers(connection: duckdb.DuckDBPyConnection, statements: list[str]) -> list[Answer]:
    """What the statements that ask something answer."""
    found = []
    for statement in statements:
        text = statement.strip()
        done = connection.execute(text)
        if text.startswith(("SELECT", "FROM")):
            found.append([tuple(row) for row in done.fetchall()])
    return found


def test_duckdb_examples_answer_right(usage: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        statements = [each for block in blocks("DuckDB", "sql") for each in block.split(";") if each.strip()]
        first, *others = answers(connection, statements)
    assert same([first, *others], [[TOTAL], *(expected() for expected in EXPECTED)])


def test_duckdb_example_that_follows_the_manifest_sees_no_other_file(usage: Path) -> None:
    file = next(usage.glob("date=*/*/*.parquet"))
    file.with_name("part-of-an-update.parquet").write_bytes(file.read_bytes())
    write_calls(LocalStore(str(usage), StoreSettings()), [call("only", cost_microusd=5, source="native")], generation=2)
    with duckdb.connect() as connection:
        (answer,) = answers(connection, [each for each in blocks("DuckDB", "sql")[0].split(";") if each.strip()])
    assert answer == [(1, 0.000005, 0)]


def test_polars_examples_answer_right(usage: Path) -> None:
    names: dict[str, Any] = {}
    for block in blocks("polars", "python"):
        exec(block, names)
    frames = [names[name] for name in ("by_model", "by_day", "sessions", "shares", "coverage")]
    assert same([frame.rows() for frame in frames], [expected() for expected in EXPECTED])


def test_athena_examples_answer_right_in_an_engine_of_the_same_language(usage: Path) -> None:
    """With the table as Athena declares it: times in UTC without a zone, and days as text."""
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO with_timezone(moment, zone) AS moment AT TIME ZONE zone")
        connection.execute(
            "CREATE VIEW usage_calls AS SELECT * REPLACE "
            "(call_time AT TIME ZONE 'UTC' AS call_time, CAST(date AS varchar) AS date) "
            "FROM read_parquet('usage/date=*/source=*/*.parquet', hive_partitioning = true)"
        )
        found = answers(connection, blocks("Athena", "sql")[1:])
    assert same(found, [expected() for expected in EXPECTED])


def test_example_of_runs_reads(usage: Path) -> None:
    run = RunRow(run_id="1", agent="a", runner="dsh", started=datetime(2026, 3, 1, tzinfo=UTC), exit_status="completed")
    write_run(LocalStore(str(usage), StoreSettings()), run)
    later = write_run(LocalStore(str(usage), StoreSettings()), run.model_copy(update={"run_id": "2"}))
    # One of an earlier version has a column less.
    earlier = pq.read_table(usage / later, partitioning=None).drop_columns(["figures_from"])
    (usage / later.replace("-2.", "-0.")).write_bytes(parquet_bytes(earlier))
    (block,) = blocks("Headless runs", "sql")
    with duckdb.connect() as connection:
        (answer,) = answers(connection, [block])
    assert [row[0] for row in answer] == ["2", "1", "2"]


def test_sum_of_a_column_has_the_name_of_the_column() -> None:
    sums = re.findall(r"(?<!CAST\()sum\((\w+)\) AS (\w+)", PAGE)
    sums += [(column, name) for name, column in re.findall(r'(\w+)=pl\.col\("(\w+)"\)\.sum\(\),', PAGE)]
    assert len(sums) >= 6
    assert [(column, name) for column, name in sums if column != name] == []


# Reports.


def test_example_of_a_report_is_what_the_command_prints(sessionmill: Command) -> None:
    block = re.search(r"```\n\$ sessionmill (report [^\n]*)\n(.*?)\n```", section("Reports"), re.DOTALL)
    assert block
    write_calls(LocalStore("usage", StoreSettings()), sample_calls(days=5, sessions_a_day=3))
    printed = sessionmill(*block[1].split()).out
    assert "\n".join(line.rstrip() for line in printed.splitlines()).strip("\n") == block[2]


def test_every_name_in_the_json_is_documented(usage: Path) -> None:
    write_run(LocalStore(str(usage), StoreSettings()), headless_run())
    found = read_report(LocalStore(str(usage), StoreSettings()), scope_of())
    assert found is not None
    document = json_of(found)
    names = {*document, *document["totals"]}
    names |= {*document["agents"][0]}
    for table in CALL_TABLES:
        names |= {*document[table][0], *document[table][0]["modelBreakdowns"][0]}
    names -= {"costMicroUsd"}
    assert sorted(name for name in names if f"`{name}`" not in section("JSON")) == []
