"""The charts of the page, as plotly's figures: what they show, and nothing of how a browser dresses them.

A figure names tones, not colours, because the reader's browser chooses light or dark (`page.js`). Every text from the
data goes through `label`: plotly reads a few HTML tags in texts, and must not find any that we did not write.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any, Literal

import plotly.graph_objects as go

from tasks.report.figures import shortened

__all__ = ["REST", "Bars", "Step", "label", "over_time", "ranked", "share_over_time"]

REST = "rest"
"""The tone of what is not worth a colour of its own."""

_DAY_MS = 24 * 60 * 60 * 1000
_RIGHT_TO_LEFT = {"R", "AL", "AN"}

Step = Literal["day", "week", "month"]
_STEPS: dict[Step, int] = {"day": 1, "week": 7, "month": 30}
_HOVER: dict[Step, str] = {"day": "%A, %-d %B %Y", "week": "Week from %-d %B %Y", "month": "%B %Y"}

Bars = tuple[str, int | str, Sequence[float | None]]
"""One series: its name as `label` made it, its tone, its values."""


def label(text: str, limit: int = 30) -> str:
    """`text` from the data for a chart: shortened, with no tag in it, and turning nothing but itself around."""
    # Two dollar signs would make a formula.
    text = html.escape(shortened(text, limit), quote=False).replace("$", "&#36;")
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return f"\u2068{text}\u2069"  # first strong isolate, and its end
    return text


def over_time(
    identity: str, days: Sequence[date], step: Step, series: Iterable[Bars], *, value: str, prefix: str = ""
) -> dict[str, Any]:
    """Stacked bars, one a step; `value` is d3's format of a value in the box beside the pointer."""
    traces = [
        go.Bar(
            x=[day.isoformat() for day in days],
            y=list(values),
            name=name,
            width=0.82 * _DAY_MS * _STEPS[step],
            meta={"tone": tone},
            hovertemplate=f"%{{fullData.name}}  {prefix}%{{y:{value}}}<extra></extra>",
        )
        for name, tone, values in series
    ]
    layout = _timed_layout(days, step, height=340)
    layout["yaxis"] |= {"tickprefix": prefix, "exponentformat": "B", "separatethousands": True}
    # Where it is narrow, each name of the legend has a line of its own.
    narrow = {"height": 250 + 20 * len(traces)}
    return _chart(identity, traces, layout | {"barmode": "relative"}) | {"narrow": narrow}


def share_over_time(
    identity: str, days: Sequence[date], step: Step, shares: Sequence[float | None], name: str
) -> dict[str, Any]:
    """A line of parts of one, with a gap where there is none: a point is joined to those of the steps beside it."""
    points = list(_with_gaps(days, shares, step))
    values = [value for _, value in points]
    # A point that nothing joins would not be seen without a mark of its own.
    alone = [before is after is None for before, after in zip([None, *values], [*values[1:], None], strict=False)]
    trace = go.Scatter(
        x=[day.isoformat() for day, _ in points],
        y=values,
        name=name,
        mode="lines+markers",
        marker={"size": [6 if len(days) <= 60 or each else 0 for each in alone]},
        line={"width": 2.5},
        meta={"tone": 2},
        cliponaxis=False,  # none and all lie on the edges
        hovertemplate="%{y:.1%}<extra></extra>",
    )
    layout = _timed_layout(days, step, height=300)
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    return _chart(identity, [trace], layout | {"showlegend": False})


def ranked(
    identity: str, names: Sequence[str], series: Sequence[Bars], texts: Sequence[str], *, legend: bool = False
) -> dict[str, Any]:
    """Horizontal bars, the first on top, `texts` at their ends. Names may be alike: a bar is known by its place.

    ``narrow`` is what differs where there is no room for names beside the bars: they stand above them.
    """
    places = list(range(len(names)))
    ends = [sum(values[place] or 0 for _, _, values in series) for place in places]
    traces: list[Any] = [
        go.Bar(
            x=list(values),
            y=places,
            name=name,
            orientation="h",
            meta={"tone": tone},
            hoverinfo="skip",
        )
        for name, tone, values in series
    ]
    traces.append(
        go.Scatter(
            x=ends,
            y=places,
            text=[f" {text}" for text in texts],
            mode="text",
            textposition="middle right",
            cliponaxis=False,
            showlegend=False,
            hoverinfo="skip",
            meta={"tone": REST},
        )
    )
    above = 34 if legend else 4
    beside = 16 + 7 * max(map(len, texts))
    layout = {
        "barmode": "stack",
        "height": above + 31 * len(names) + 12,
        "margin": {"l": 8, "r": beside, "t": above, "b": 8},
        "xaxis": {"visible": False, "fixedrange": True, "rangemode": "tozero"},
        "yaxis": {
            "tickmode": "array",
            "tickvals": places,
            "ticktext": list(names),
            "range": [len(names) - 0.4, -0.6],
            "fixedrange": True,
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
        },
        "legend": _LEGEND,
        "showlegend": legend,
        "bargap": 0.34,
    }
    above_bars = [
        {
            "text": name,
            "x": 0,
            "y": place - 0.2,
            "xanchor": "left",
            "yanchor": "bottom",
            "showarrow": False,
            "borderpad": 0,
        }
        for place, name in enumerate(names)
    ]
    narrow = {"annotations": above_bars, "height": above + 48 * len(names) + 16, "bargap": 0.6}
    return _chart(identity, traces, layout) | {"narrow": narrow}


_LEGEND = {
    "orientation": "h",
    "x": 0,
    "xref": "container",
    "xanchor": "left",
    "y": 1,
    "yref": "container",
    "yanchor": "top",
    "traceorder": "normal",
    "itemsizing": "constant",
}


def _timed_layout(days: Sequence[date], step: Step, *, height: int) -> dict[str, Any]:
    # The bar of a single day should not fill the chart.
    room = max(0, 7 - (days[-1] - days[0]).days) // 2 if step == "day" else _STEPS[step] // 2
    axis: dict[str, Any] = {
        "type": "date",
        "range": [f"{_moved(days[0], -room - 1)} 12:00", f"{_moved(days[-1], room)} 12:00"],
        "fixedrange": True,
        "showgrid": False,
        "automargin": True,
        "tickformat": "%-d %b\n%Y",
        "hoverformat": _HOVER[step],
        "nticks": 10,
        "tickangle": 0,
    }
    if (days[-1] - days[0]).days < 9:
        # Left to itself the library would divide so few days into hours.
        axis |= {"tickmode": "linear", "tick0": days[0].isoformat(), "dtick": _DAY_MS}
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 10, "b": 24},
        "xaxis": axis,
        "yaxis": {"fixedrange": True, "automargin": True, "rangemode": "tozero", "zeroline": False, "nticks": 6},
        "hovermode": "x unified",
        "legend": _LEGEND,
        "bargap": 0.15,
    }


def _with_gaps(days: Sequence[date], values: Sequence[float | None], step: Step) -> Iterator[tuple[date, float | None]]:
    """The points, and one without a value wherever days are missing between two of them."""
    following = None
    for day, value in zip(days, values, strict=True):
        if following is not None and following < day:
            yield following, None
        yield day, value
        # Any day of the next month, and back to its first.
        following = _moved(day, 31).replace(day=1) if step == "month" else _moved(day, _STEPS[step])


def _moved(day: date, by: int) -> date:
    """A day some days away, as far as there are days."""
    return date.fromordinal(min(max(day.toordinal() + by, 1), date.max.toordinal()))


def _chart(identity: str, traces: Sequence[Any], layout: dict[str, Any]) -> dict[str, Any]:
    """A figure that plotly has checked, without its default look."""
    drawn = go.Figure(data=list(traces), layout=layout | {"dragmode": False}).to_plotly_json()
    drawn["layout"].pop("template", None)
    return {"id": identity, "data": drawn["data"], "layout": drawn["layout"]}
