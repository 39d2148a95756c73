"""`sessionmill usage` and `sessionmill verify --usage`: what they say, and with which exit code."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from schemas.session_data import Usage
from storage.landings import calls_key
from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tests.command import Command
from tests.usage_sessions import claude, land, land_bare


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    """Two sessions, the first with a chain of two rounds."""
    folder = tmp_path / "zone"
    folder.mkdir()
    store = open_store(folder)
    for seq in (1, 2):
        used = Usage(in_=5, out=7)
        land_bare(store, "a", [(f"m{seq}", f"2026-03-0{seq}T00:00:00Z", used)], seq=seq)
        assemble_session(Zone(store), "a", AssembleOptions(now=1))
    land(store, "b", [claude("m9", 1, model="m", cwd="/srv/app")])
    return folder


def test_a_data_set_is_written_once_and_then_found_up_to_date(sessionmill: Command, zone: Path) -> None:
    done = sessionmill("usage", zone, "--to", "usage")
    assert (done.code, done.err) == (0, "")
    assert done.out == "3 calls of 2 sessions, 2 days written, no problems\n"
    assert sessionmill("usage", zone, "--to", "usage").out == "3 calls of 2 sessions, nothing new, no problems\n"
    names = sorted(str(path.parent) for path in Path("usage").glob("date=*/source=*/*.parquet"))
    assert names == [
        "usage/date=2026-03-01/source=claude-code",
        "usage/date=2026-03-01/source=sessionizer",
        "usage/date=2026-03-02/source=sessionizer",
    ]
    assert sessionmill("report", "usage", "--json").json["totals"]["outputTokens"] == 15


def test_one_session_and_prices_of_ones_own(sessionmill: Command, zone: Path) -> None:
    Path("mine.yaml").write_text("prices: [{model: m, provider: p, rates: {input: 1, output: 2}}]")
    done = sessionmill("usage", zone, "--to", "usage", "--session", "b", "--prices", "mine.yaml", "--json")
    shown = done.json
    assert (shown["calls"], shown["sessions"], shown["records"], shown["changed"]) == (1, 1, 1, True)
    Path("mine.yaml").write_text("prices: [{model: m, provider: p, rates: {input: 2, output: 4}}]")
    options = ("usage", zone, "--to", "usage", "--session", "b", "--prices", "mine.yaml", "--json")
    assert not sessionmill(*options).json["changed"]
    assert sessionmill(*options, "--reprice").json["changed"]
    assert sessionmill("report", "usage", "--json").json["totals"]["totalCost"] == pytest.approx(24e-6)


def test_only_reprice_takes_a_price_that_is_found_later_and_one_that_it_takes_away_is_told(
    sessionmill: Command, zone: Path
) -> None:
    Path("mine.yaml").write_text("prices: [{model: m, provider: p, rates: {input: 1, output: 2}}]")
    options = ("usage", zone, "--to", "usage")
    sessionmill(*options)
    assert sessionmill(*options, "--prices", "mine.yaml", "--json").json["changed"] is False
    done = sessionmill(*options, "--prices", "mine.yaml", "--reprice")
    assert ", 1 call got a price, no problems\n" in done.out
    assert sessionmill(*options, "--prices", "mine.yaml", "--json").json["changed"] is False
    assert sessionmill(*options, "--json").json["changed"] is False
    assert sessionmill("report", "usage", "--json").json["totals"]["totalCost"] == pytest.approx(252e-6)
    told = "1 call lost the price (no table of this run knows the model)"
    assert told in sessionmill(*options, "--reprice").out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nowhere", "--to", "usage"), 2, "nowhere"),
        (("zone", "--to", "zone/a"), 2, "lies in the zone, among its sessions"),
        (("zone", "--to", "zone"), 2, "is the zone itself; take another place"),
        (("zone", "--to", "zone/"), 2, "is the zone itself; take another place"),
        (("zone", "--to", "usage", "--session", "c"), 2, "c"),
        (("zone", "--to", "usage", "--prices", "none.yaml"), 2, "none.yaml: no such file of prices"),
        (("zone", "--to", "usage", "--prices", "bad.yaml"), 2, "bad.yaml: row 2: provider: it is missing — a file of"),
    ],
)
def test_wrong_use_is_said_in_one_sentence(
    arguments: tuple[str, ...], code: int, words: str, sessionmill: Command, zone: Path
) -> None:
    rates = "rates: {input: 1, output: 2}"
    Path("bad.yaml").write_text(f"prices: [{{model: m, provider: p, {rates}}}, {{model: n, {rates}}}]")
    done = sessionmill("usage", *(str(zone.parent / each) if each.startswith("zone") else each for each in arguments))
    assert (done.code, done.err.count("\n")) == (code, 1)
    assert words in done.err
    assert not Path("usage").exists()


def test_evidence_that_cannot_be_read_is_named_and_the_rest_is_counted(sessionmill: Command, zone: Path) -> None:
    companion = zone / calls_key("b", 1)
    companion.chmod(0o644)
    companion.write_bytes(b"no")
    done = sessionmill("usage", zone, "--to", "usage")
    assert done.code == 1
    assert f"b: {calls_key('b', 1)}: calls: it does not unpack" in done.out
    assert done.out.endswith("2 calls of 2 sessions, 2 days written, 1 problem\n")


def lost(done: Any) -> list[str]:
    return [each["rule"] for each in done.json["usage"]]


def test_a_chain_that_lost_its_newest_round_is_found_by_what_was_counted(sessionmill: Command, zone: Path) -> None:
    sessionmill("usage", zone, "--to", "usage")
    assert sessionmill("verify", zone, "--usage", "usage").code == 0
    for path in (zone / "_conversations/a/rounds").glob("r000002*"):
        path.unlink()
    done = sessionmill("verify", zone, "--usage", "usage", "--json")
    assert (done.code, lost(done)) == (1, ["chain_shortened"])
    said = sessionmill("verify", zone, "--usage", "usage").out
    assert "a: chain_shortened: its chain ends at round 1, and round 2 had been there\n" in said
    again = sessionmill("usage", zone, "--to", "usage")
    assert (again.code, "chain_shortened" in again.out) == (1, True)
    assert lost(sessionmill("verify", zone, "--usage", "usage", "--json")) == ["chain_shortened"]
    assemble_session(Zone(open_store(zone)), "a", AssembleOptions(now=2))
    assert sessionmill("verify", zone, "--usage", "usage").code == 0


@pytest.mark.parametrize("rounds", [2, 3])
def test_a_chain_that_was_made_anew_is_found_however_long_it_has_grown(
    sessionmill: Command, zone: Path, rounds: int
) -> None:
    sessionmill("usage", zone, "--to", "usage")
    shutil.rmtree(zone / "_conversations/a")
    shutil.rmtree(zone / "a/index")
    store = open_store(zone)
    for seq in range(2, 2 + rounds):
        if seq > 2:
            land_bare(store, "a", [(f"m{seq}", f"2026-03-0{seq}T00:00:00Z", Usage(in_=5, out=7))], seq=seq)
        assemble_session(Zone(store), "a", AssembleOptions(now=1))
    assert [each.number for each in Zone(store).chain("a").rounds()] == list(range(1, rounds + 1))
    done = sessionmill("verify", zone, "--usage", "usage", "--json")
    assert (done.code, lost(done)) == (1, ["chain_replaced"])


def test_a_landed_file_that_was_counted_and_is_gone_is_found(sessionmill: Command, zone: Path) -> None:
    sessionmill("usage", zone, "--to", "usage")
    for path in (zone / "b").rglob("*.sd"):
        path.unlink()
    done = sessionmill("verify", zone, "--usage", "usage", "--json")
    assert (done.code, lost(done)) == (1, ["landed_lost"])
    assert sessionmill("verify", zone, "--usage", "nowhere").code == 2
