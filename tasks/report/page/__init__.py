"""The report as one HTML page that needs nothing else: charts, tables and the library that draws the charts.

The page states its range, zone and how far its data goes, and no clock: the same data gives the same bytes. Its content
security policy names the digests of its own scripts, so nothing else can run in it, and it can reach no network.
"""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from importlib.resources import files

from tasks.report.figures import DASH, printable, shortened
from tasks.report.page.by_agent import runs_by_agent
from tasks.report.page.by_cost import cost_by_model, cost_by_project, coverage, dearest_sessions
from tasks.report.page.by_day import cache_by_day, cost_by_day, tokens_by_day
from tasks.report.page.head import headline, warning
from tasks.report.page.markup import Markup, element, json_block, raw_text
from tasks.report.page.part import Part
from tasks.report.scope import local_time
from tasks.report.usage_report import UsageReport

__all__ = ["page_of"]

_PARTS = (
    cost_by_day,
    tokens_by_day,
    cache_by_day,
    cost_by_model,
    cost_by_project,
    dearest_sessions,
    coverage,
)
"""The figures of calls, in order of reading."""


def page_of(report: UsageReport) -> bytes:
    """The page, UTF-8."""
    from plotly.offline import get_plotlyjs

    library: str = get_plotlyjs()
    script = _resource("page.js")
    style = _resource("page.css")
    parts = [part(report) for part in _PARTS] if report.daily else []
    if report.agents:
        # Before coverage, which says how far all others go.
        parts.insert(len(_PARTS) - 1, runs_by_agent(report))
    drawn = [part.chart for part in parts if part.chart is not None]
    title = f"Agent usage, {_range(report)}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script, library)),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        raw_text("style", style),
    )
    caution = warning(report)
    body = element(
        "body",
        element(
            "main",
            _header(report),
            element("dl", *(_figure(*each) for each in headline(report)), class_="figures"),
            element("p", _unbroken(caution), class_="warning", role="note") if caution else Markup(""),
            element(
                "noscript", element("p", "The charts need JavaScript; the tables have their numbers.", class_="warning")
            ),
            element("div", *map(_part, parts), class_="charts") if parts else _nothing(),
            _footer(),
        ),
        json_block("charts", drawn),
        # As it is: whatever unpacks it in a browser answers after the page has loaded, when a picture or a print of the
        # page may have been made without its charts.
        raw_text("script", library),
        raw_text("script", script),
    )
    return b"<!DOCTYPE html>\n" + element("html", head, body, lang="en").encode() + b"\n"


def _policy(*scripts: str) -> str:
    """Only these scripts, styles (plotly writes some as it draws) and nothing from anywhere."""
    digests = " ".join(f"'sha256-{base64.b64encode(sha256(each.encode()).digest()).decode()}'" for each in scripts)
    return f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _resource(name: str) -> str:
    return (files(__name__) / name).read_text("utf-8")


def _range(report: UsageReport) -> str:
    scope, daily = report.scope, report.daily
    first = scope.since or (daily[0].key if daily else None)
    last = scope.until or (daily[-1].key if daily else None)
    if first is None and last is None:
        return "no calls"
    if first == last:
        return str(first)
    return f"{first or 'the beginning'} to {last or 'the end'}"


def _header(report: UsageReport) -> Markup:
    scope = report.scope
    facts = [("Days", _range(report)), ("Time zone", scope.zone)]
    if report.totals.last is not None:
        facts.append(("Newest call", local_time(report.totals.last, scope.zone).isoformat(" ", "minutes")))
    for name, patterns in (("Projects", scope.projects), ("Models", scope.models)):
        if patterns:
            facts.append((name, ", ".join(shortened(printable(pattern), 60) or '""' for pattern in patterns)))
    listed = (element("div", element("dt", name), element("dd", element("bdi", value))) for name, value in facts)
    return element("header", element("h1", "Agent usage"), element("dl", *listed, class_="facts"))


def _figure(name: str, value: str, note: str) -> Markup:
    return element(
        "div", element("dt", name), element("dd", value, class_="value"), element("dd", _unbroken(note), class_="note")
    )


_UNIT = re.compile(r"(?<=[0-9]) (?=[%kMBT](?![a-zA-Z]))")


def _unbroken(text: str) -> str:
    """`text` with figures that keep their units on their line."""
    return type(text)(_UNIT.sub("\u00a0", text))


def _part(part: Part) -> Markup:
    heading = f"{part.identity}-title"
    caption = element("figcaption", element("h2", part.title, id=heading), element("p", _unbroken(part.finding)))
    drawing = Markup("")
    if part.chart is not None:
        height = f"min-height:{part.chart['layout']['height']}px"
        drawing = element("div", id=part.identity, class_="chart", role="img", aria_labelledby=heading, style=height)
    numbers = element("details", element("summary", "Show the numbers"), part.numbers)
    return element("figure", caption, drawing, numbers, class_="wide" if part.wide else None, aria_labelledby=heading)


def _nothing() -> Markup:
    return element("p", "There are no calls in this range.", class_="card none")


def _footer() -> Markup:
    return element("footer", *(element("p", text) for text in _NOTES))


_NOTES = (
    "Each call to a provider is counted once, however many times a runtime wrote it down, and belongs to the earliest "
    "session that has it. A day is a day of the time zone named above.",
    "Costs are list prices at the time of each call, in US dollars, not an invoice. A call without a known price is in "
    f"no cost; {DASH} stands for a figure that is not known.",
    "Calls of sub-agents are counted once, and added to the session they worked for.",
)
