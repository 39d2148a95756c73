"""The report page in a real browser: it draws, asks no network, complains of nothing, and no text of the data runs."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import write_run
from tasks.report import read_report, scope_of
from tasks.report.figures import DASH
from tasks.report.page import page_of
from tests import chromium
from tests.usage_rows import NOON, Row, call, headless_run, sample_calls, write_calls

pytestmark = pytest.mark.skipif(chromium.installed() is None, reason="no chromium here; .ci/run installs it")

HOSTILE = '</script><img src=x onerror="document.title=1;alert(1)"><script>alert(2)</script>'
CHARTS = [
    "cost-by-day",
    "tokens-by-day",
    "cache-by-day",
    "cost-by-model",
    "cost-by-project",
    "dearest-sessions",
    "coverage",
]
LINK = '<a href="https://e.invalid/">press</a><b>x</b><br>%{y}$x$&lt;i&gt;'


OUTSIDE = """[...document.querySelectorAll('.chart')].flatMap(chart => {
    const frame = chart.getBoundingClientRect();
    return [...chart.querySelectorAll('text')].filter(text => {
        const box = text.getBoundingClientRect();
        return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1);
    }).map(text => text.textContent);
})"""
"""A chart's words that are not in its frame."""


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    with chromium.running() as browser:
        yield browser


def page(folder: Path, rows: list[Row], **options: Any) -> str:
    """The URL of the page of these rows."""
    store = LocalStore(str(folder / "usage"), StoreSettings())
    write_calls(store, rows)
    found = read_report(store, scope_of(**options))
    assert found is not None
    (folder / "report.html").write_bytes(page_of(found))
    return (folder / "report.html").as_uri()


def drawn(browser: chromium.Browser, url: str, **view: Any) -> chromium.Page:
    """The page when its charts are drawn, having asked for nothing and complained of nothing."""
    opened = browser.open(url, **view)
    assert opened.wait_for("document.documentElement.dataset.charts") != "failed", opened.complaints
    assert (opened.requests, opened.complaints) == ([url], [])
    return opened


def bars(opened: chromium.Page, chart: str) -> list[list[float | None]]:
    """The values of each series as the library drew them."""
    script = f"document.getElementById('{chart}').calcdata.map(s => s.map(p => p.s ?? p.y ?? null))"
    found: list[list[float | None]] = opened.evaluate(script)
    return found


def test_a_frame_without_its_chart_says_that_it_is_being_drawn(browser: chromium.Browser, tmp_path: Path) -> None:
    opened = drawn(browser, page(tmp_path, [call()]))
    words = "getComputedStyle(document.querySelector('.chart'), '::before').content"
    assert opened.evaluate(words) == "none"
    as_before = "delete document.documentElement.dataset.charts; document.querySelector('.chart').replaceChildren();"
    assert opened.evaluate(f"(() => {{ {as_before} return {words}; }})()") == '"Drawing the chart…"'


def test_charts_are_there_when_the_page_has_loaded(browser: chromium.Browser, tmp_path: Path) -> None:
    note = """addEventListener("load", () => {
        const drawn = chart => chart.querySelector(".point, text") !== null;
        window.loaded = [...document.querySelectorAll(".chart")].map(chart => [chart.id, drawn(chart)]);
    });"""
    listening = browser.ask("Page.addScriptToEvaluateOnNewDocument", {"source": note})
    try:
        opened = browser.open(page(tmp_path, [call()]))
    finally:
        browser.ask("Page.removeScriptToEvaluateOnNewDocument", listening)
    assert opened.evaluate("window.loaded") == [[chart, True] for chart in CHARTS]


def test_picture_made_by_the_browser_alone_shows_every_chart(tmp_path: Path) -> None:
    document = chromium.dumped(page(tmp_path, [call()]))
    for chart in CHARTS:
        frame = document[document.index(f'id="{chart}"') :]
        assert 'class="main-svg"' in frame[: frame.index("<details")]


@pytest.mark.parametrize("view", [{"width": 1280}, {"width": 390}, {"width": 1280, "dark": True}])
def test_printed_page_has_every_chart_in_its_frame_and_dark_on_light(
    browser: chromium.Browser, tmp_path: Path, view: dict[str, Any]
) -> None:
    opened = drawn(browser, page(tmp_path, sample_calls(12)), **view)
    widths = "[...document.querySelectorAll('.chart')].map(c => [c.clientWidth, c.querySelector('svg').clientWidth])"
    ink = "getComputedStyle(document.querySelector('.legendtext')).fill"
    on_screen = opened.evaluate(f"[{widths}, {ink}]")
    opened.evaluate(
        f"""window.paper = matchMedia("print"), window.printed = [], paper.addEventListener("change", () => {{
            const tall = document.querySelector("main").scrollHeight;
            if (paper.matches) printed.push({{ widths: {widths}, ink: {ink}, tall }});
        }}), 0"""
    )
    browser.ask("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    last = opened.evaluate("printed.at(-1)")
    assert [frame for frame, _ in last["widths"]] == [frame for frame, _ in last["widths"]][:1] * 7
    assert all(frame == chart and 600 < chart < 760 for frame, chart in last["widths"])
    assert last["ink"] == "rgb(27, 36, 48)" or not view.get("dark")
    # What is on the screen afterwards is what was there before.
    opened.wait_for(f"JSON.stringify([{widths}, {ink}]) === {json.dumps(json.dumps(on_screen, separators=(',', ':')))}")


def test_paper_has_as_many_pages_whatever_the_window(browser: chromium.Browser, tmp_path: Path) -> None:
    url, pages = page(tmp_path, sample_calls(12)), []
    for width in (1280, 500):
        drawn(browser, url, width=width)
        printed = base64.b64decode(browser.ask("Page.printToPDF", {})["data"])
        pages.append(len(re.findall(rb"/Type */Page\b", printed)))
    assert pages[0] == pages[1] > 1


def test_charts_show_the_data(browser: chromium.Browser, tmp_path: Path) -> None:
    rows = [
        call("a", model="dear", cost_microusd=3_000_000, output=7),
        call("b", model="cheap", cost_microusd=1_250_000, is_subagent=True, cache_read=300),
        call("c", model="dear", cost_microusd=500_000, call_time=NOON + timedelta(days=1)),
        call("d", model="my-local-1", cost_status="unknown_model", session_id="session-2"),
    ]
    opened = drawn(browser, page(tmp_path, rows))
    charts = opened.evaluate("[...document.querySelectorAll('.chart')].map(c => c.id)")
    assert charts == CHARTS
    assert opened.evaluate("[...document.querySelectorAll('.chart')].every(c => c.querySelector('svg.main-svg'))")
    assert bars(opened, "cost-by-day") == [[3.0, 0.5], [1.25, None]]
    assert bars(opened, "dearest-sessions")[:2] == [[3.5], [1.25]]
    texts = opened.evaluate("document.getElementById('coverage').textContent")
    assert "3 (75.0 %)" in texts
    assert "1 (25.0 %)" in texts
    figures = opened.evaluate("[...document.querySelectorAll('.figures .value')].map(e => e.textContent)")
    assert figures == ["$4.75", "$2.38", "737", "42.9 %", "2", "$1.25"]
    assert "1 call of 4 (25.0\xa0%) has no price" in opened.evaluate("document.querySelector('.warning').textContent")


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_names_are_texts_and_nothing_more(browser: chromium.Browser, tmp_path: Path, width: int) -> None:
    names = [
        HOSTILE,
        LINK,
        "\u202egnp.exe",
        "\u05e9\u05dc\u05d5\u05dd 123 abc",
        "x" * 5_000,
        "W" * 40,
        "",
        "007",
        "2026-01-01",
        "-->",
    ]
    rows = [
        call(str(place), model=name, project=name, session_id=name, cost_microusd=9_000_000 - place)
        for place, name in enumerate(names)
    ]
    rows += [call(f"no-{place}", model=name, cost_status="unknown_model") for place, name in enumerate(names)]
    opened = drawn(browser, page(tmp_path, rows, projects=["*"], models=["*"]), width=width, phone=width < 600)
    assert opened.evaluate("document.title") == "Agent usage, 2026-03-01"
    assert opened.evaluate("document.querySelectorAll('img, a, iframe, object, b, .chart br').length") == 0
    assert opened.evaluate("document.querySelectorAll('script').length") == 3  # data, library, the page's own
    for chart in ("cost-by-model", "cost-by-project", "dearest-sessions"):
        shown = opened.evaluate(f"document.getElementById('{chart}').textContent")
        assert "</script><img s" in shown
        assert '<a href="https:' in shown
        assert "\\u202egnp.exe" in shown
    opened.evaluate("Plotly.Fx.hover('cost-by-day', [{curveNumber: 1, pointNumber: 0}])")
    box = opened.wait_for("document.querySelector('#cost-by-day .hoverlayer').textContent")
    assert box.startswith('<a href="https:')
    assert opened.evaluate("document.querySelectorAll('img, a, b').length") == 0
    assert opened.complaints == []
    cells = opened.evaluate("[...document.querySelectorAll('#dearest-sessions ~ details bdi')].map(e => e.textContent)")
    assert {HOSTILE, LINK, '""', "007", "\\u202egnp.exe"} <= set(cells)
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_weeks_of_work_fit_wide_and_narrow_light_and_dark(browser: chromium.Browser, tmp_path: Path) -> None:
    url = page(tmp_path, sample_calls(40), zone="America/Los_Angeles")
    color = "getComputedStyle(document.querySelector('.bars path')).fill"
    for width in (1280, 390):
        opened = drawn(browser, url, width=width, phone=width < 600)
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert opened.evaluate(OUTSIDE) == []
        before = opened.evaluate(color)
        browser.ask("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        opened.wait_for(f"{color} !== {json.dumps(before)}")
        assert opened.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_headless_runs_are_drawn_by_agent_with_what_became_of_them(
    browser: chromium.Browser, tmp_path: Path, width: int
) -> None:
    store = LocalStore(str(tmp_path / "usage"), StoreSettings())
    failed = {"exit_status": "failed", "stop_reason": "timeout", "error_class": "timeout"}
    for number in range(14):
        write_run(store, headless_run(f"a{number}", cost_microusd=10**9, **(failed if number % 5 == 4 else {})))
    write_run(store, headless_run("b", agent=f"{LINK}{'W' * 60}"))
    opened = drawn(browser, page(tmp_path, [call()]), width=width, phone=width < 600)
    assert bars(opened, "runs-by-agent")[:2] == [[12, 1], [2, 0]]
    shown = opened.evaluate("document.getElementById('runs-by-agent').textContent")
    assert "12 of 14 (85.7 %), $14,000.00" in shown
    finding = "document.querySelector('#runs-by-agent').closest('figure').querySelector('figcaption p').textContent"
    assert opened.evaluate(finding) == "15 runs of 2 agents: 13 completed; 2 timeout."
    assert opened.evaluate(OUTSIDE) == []
    assert opened.evaluate("document.querySelectorAll('img, a, b').length") == 0


@pytest.mark.parametrize(
    ("rows", "charts"),
    [
        ([], 0),
        ([call(cost_status="no_time", call_time=None, model=None, project=None)], 6),  # no cost by day
        ([call(input_uncached=0, output=5)], 6),  # no input, so no share of it
    ],
)
def test_charts_with_nothing_to_show_are_left_out(
    browser: chromium.Browser, tmp_path: Path, rows: list[Row], charts: int
) -> None:
    opened = drawn(browser, page(tmp_path, rows))
    assert opened.evaluate("document.documentElement.dataset.charts") == str(charts)
    assert opened.evaluate("document.querySelectorAll('figure').length") == (7 if rows else 0)


def test_tokens_stand_in_for_costs_that_nobody_knows(browser: chromium.Browser, tmp_path: Path) -> None:
    unpriced = {"cost_status": "unknown_model", "cache_read": 0}
    rows = [
        call("a", model="small", output=10, session_id="s1", **unpriced),
        call("b", model="large", output=900, session_id="s2", is_subagent=True, **unpriced),
    ]
    opened = drawn(browser, page(tmp_path, rows))
    assert opened.evaluate("[...document.querySelectorAll('h2')].map(e => e.textContent)")[3:6] == [
        "Tokens by model",
        "Tokens by project",
        "Largest sessions",
    ]
    assert bars(opened, "cost-by-model")[:2] == [[0, 110], [1000, 0]]
    assert "1.00 k (90.1 %)" in opened.evaluate("document.getElementById('cost-by-model').textContent")
    assert opened.evaluate("document.querySelector('.figures .note').textContent") == "no price for 2 calls"
    # A kind of token that there is none of has no place in the legend.
    legend = "[...document.querySelectorAll('#tokens-by-day .legendtext')].map(e => e.textContent)"
    assert opened.evaluate(legend) == ["Input, not cached", "Output"]


def test_costs_below_a_dollar_have_one_number_of_decimals(browser: chromium.Browser, tmp_path: Path) -> None:
    rows = [
        call("a", model="x", cost_microusd=12_000),
        call("b", model="y", cost_microusd=450, call_time=NOON + timedelta(days=2)),
    ]
    opened = drawn(browser, page(tmp_path, rows))
    figures = opened.evaluate("[...document.querySelectorAll('.figures .value')].map(e => e.textContent)")
    assert figures[:2] == ["$0.0125", "$0.0062"]
    shown = opened.evaluate("document.getElementById('cost-by-model').textContent")
    assert "$0.0120 (96.4 %)" in shown
    assert "$0.0005 (3.6 %)" in shown


def test_numbers_beyond_reason_are_drawn(browser: chromium.Browser, tmp_path: Path) -> None:
    huge = 2**63 - 1
    rows = [
        call("a", cost_microusd=huge, output=huge, cache_read=huge, input_total=huge),
        call("b", cost_microusd=-5_000_000, output=-7, model="refund", call_time=NOON + timedelta(days=1)),
        call("c", cost_microusd=huge, output=huge, cache_read=huge, input_total=huge),
    ]
    opened = drawn(browser, page(tmp_path, rows))
    figures = opened.evaluate("[...document.querySelectorAll('.figures .value')].map(e => e.textContent)")
    assert figures[:3] == ["$18.4 T", "$9.22 T", "36,893,488 T"]
    assert "-$5.00" in opened.evaluate("document.querySelector('#cost-by-day ~ details').textContent")


def test_cost_of_a_model_on_a_day_is_a_dash_where_unknown_and_left_out_where_it_was_not_called(
    browser: chromium.Browser, tmp_path: Path
) -> None:
    later = {"call_time": NOON + timedelta(days=1)}
    rows = [
        call("a", model="x", cost_microusd=2_000_000),
        call("b", model="y", cost_microusd=1_000_000),
        call("c", model="y", cost_status="unknown_model", **later),
    ]
    opened = drawn(browser, page(tmp_path, rows))
    cells = opened.evaluate(
        "[...document.querySelectorAll('#cost-by-day ~ details tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert cells == [
        ["Day", "x", "y", "All", "No price"],
        ["2026-03-01", "$2.00", "$1.00", "$3.00", ""],
        ["2026-03-02", "", DASH, DASH, "1"],
    ]


def test_years_are_drawn_by_month(browser: chromium.Browser, tmp_path: Path) -> None:
    rows = [
        call(str(number), call_time=NOON.replace(year=2020 + number // 12, month=1 + number % 12), cost_microusd=10**6)
        for number in range(48)
    ]
    opened = drawn(browser, page(tmp_path, rows))
    assert bars(opened, "cost-by-day") == [[1.0] * 48]
    assert opened.evaluate("document.querySelector('h2').textContent") == "Cost per month, by model"
    assert opened.evaluate("document.querySelector('#cost-by-day .bars path').getBoundingClientRect().width > 5")


def test_months_are_drawn_by_week(browser: chromium.Browser, tmp_path: Path) -> None:
    rows = [
        call(str(number), call_time=NOON.replace(month=1, day=1) + timedelta(days=number), cost_microusd=10**6)
        for number in range(350)
    ]
    opened = drawn(browser, page(tmp_path, rows))
    # The first of January 2026 is a Thursday.
    assert bars(opened, "cost-by-day") == [[4.0] + [7.0] * 49 + [3.0]]
    assert opened.evaluate("document.querySelector('h2').textContent") == "Cost per week, by model"
    assert opened.evaluate("document.querySelector('#cost-by-day .bars path').getBoundingClientRect().width > 5")


def test_browser_that_cannot_draw_shows_the_tables(browser: chromium.Browser, tmp_path: Path) -> None:
    without = browser.ask("Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.TextDecoder"})
    try:
        opened = browser.open(page(tmp_path, [call()]))
        assert opened.wait_for("document.documentElement.dataset.charts") == "failed"
    finally:
        browser.ask("Page.removeScriptToEvaluateOnNewDocument", without)
    assert opened.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    assert "could not draw" in opened.evaluate("document.getElementById('coverage').textContent")


def test_policy_stops_what_is_not_the_pages_own(browser: chromium.Browser, tmp_path: Path) -> None:
    url = page(tmp_path, [call()])
    file = tmp_path / "report.html"
    file.write_text(
        file.read_text().replace("</main>", '<img src="x" onerror="document.title=1"><script>2</script></main>')
    )
    opened = browser.open(url)
    assert opened.evaluate("document.title") == "Agent usage, 2026-03-01"
    assert len([each for each in opened.complaints if "Content Security Policy" in each]) >= 2
