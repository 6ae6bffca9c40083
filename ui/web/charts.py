"""Charts of money, drawn by plotly. Each has a text that says the same; a table stands beside each.

Plotly reads markup in every text it draws (links too), so that whatever came from a record is escaped here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from typing import Any, Final

import streamlit as st

from ui.figures import counted, money
from ui.visible import fit, line

OTHERS: Final = "others"
_MOST_BARS: Final = 24
_MOST_SERIES: Final = 6
_LABEL_COLUMNS: Final = 28
_BAR: Final = 26  # pixels of height for each bar, gap included
_MARGIN: Final = 72
# each has a contrast of at least 3:1 to the light and to the dark background
_COLOURS: Final = ("#3779be", "#b4731c", "#3f8f5f", "#8a6fb8", "#b5606b", "#4a8f99", "#7d8894")
_CONFIG: Final = {"displayModeBar": False, "displaylogo": False, "scrollZoom": False}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar: the bar it is of, what it stands for (the same in every bar), and dollars."""

    bar: str
    series: str
    usd: Decimal


def bars(parts: Sequence[Part], *, key: str, what: str, upright: bool = False) -> None:
    """Stacked bars of dollars, in the order in which they come; `what` (ours) says what a bar is.

    The dearest 24 bars and 6 series are drawn, all others are one more each. `upright`: for days, from left
    to right; else bars lie, the first on top.
    """
    shown = _few(_few(parts, "bar", _MOST_BARS), "series", _MOST_SERIES)
    names = list(dict.fromkeys(part.bar for part in shown))
    sums: dict[str, dict[str, Decimal]] = {}
    for part in shown:
        of_series = sums.setdefault(part.series, {})
        of_series[part.bar] = of_series.get(part.bar, Decimal(0)) + part.usd
    traces = [
        _bar(series, amounts, names, place, upright) for place, (series, amounts) in enumerate(sums.items())
    ]
    axes = ("yaxis", "xaxis") if upright else ("xaxis", "yaxis")
    layout: dict[str, Any] = {
        "barmode": "stack",
        "showlegend": len(sums) > 1,
        axes[0]: {"tickprefix": "$", "fixedrange": True, "rangemode": "tozero"},
        axes[1]: {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": list(range(len(names))),
            "tickvals": list(range(len(names))),
            "ticktext": [_label(name) for name in names],
            "fixedrange": True,
            **({} if upright else {"autorange": "reversed"}),
        },
    }
    height = 260 if upright else _MARGIN + _BAR * max(len(names), 3) + 20 * (len(sums) > 1)
    _draw(traces, layout, key=key, height=height, alt=_words(shown, what))


def share_curve(lines: Mapping[str, Mapping[int, float]], *, key: str) -> None:
    """What part of the cost the dearest per cents of the calls make up: a line for each name (ours)."""
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [0, *shares],
            "y": [0, *(100 * share for share in shares.values())],
            "line": {"color": _COLOURS[place]},
            "hoverinfo": "text",
            "hovertext": [
                "",
                *(f"{name}: the dearest {part}% cost {share:.0%}" for part, share in shares.items()),
            ],
        }
        for place, (name, shares) in enumerate(lines.items())
    ]
    layout = {
        "showlegend": len(lines) > 1,
        "xaxis": {"title": {"text": "dearest calls, % of all"}, "range": [0, 100], "fixedrange": True},
        "yaxis": {"title": {"text": "% of the cost"}, "range": [0, 103], "fixedrange": True},
    }
    alt = "; ".join(
        f"{name}: "
        + ", ".join(f"dearest {part}% of the calls {share:.0%} of the cost" for part, share in shares.items())
        for name, shares in lines.items()
    )
    _draw(traces, layout, key=key, height=300, alt=alt)


def pairs(parts: Sequence[tuple[str, str, Decimal]], *, key: str, what: str) -> None:
    """Bars side by side: (group, series, dollars), where groups may be any text and series are ours."""
    groups = list(dict.fromkeys(group for group, _, _ in parts))
    traces = []
    for place, series in enumerate(dict.fromkeys(series for _, series, _ in parts)):
        amounts = {group: usd for group, name, usd in parts if name == series}
        traces.append(_bar(series, amounts, groups, 2 * place, upright=False))
    layout = {
        "barmode": "group",
        "showlegend": True,
        "xaxis": {"tickprefix": "$", "fixedrange": True, "rangemode": "tozero"},
        "yaxis": {
            "type": "category",
            "tickvals": list(range(len(groups))),
            "ticktext": [_label(name) for name in groups],
            "autorange": "reversed",
            "fixedrange": True,
        },
    }
    _draw(traces, layout, key=key, height=_MARGIN + 20 + 2 * _BAR * max(len(groups), 1),
          alt=_words([Part(*part) for part in parts], what))  # fmt: skip


def _bar(
    series: str, amounts: Mapping[str, Decimal], names: Sequence[str], place: int, upright: bool
) -> dict[str, Any]:
    """A series of bars. Bars go by number: two whose short names are the same stay two."""
    at = [number for number, name in enumerate(names) if name in amounts]
    values = [float(amounts[names[number]]) for number in at]
    told = [
        "<br>".join(
            [_label(names[number]), f"{_label(series)} {money(amounts[names[number]], None)}".strip()]
        )
        for number in at
    ]
    return {
        "type": "bar",
        "orientation": "v" if upright else "h",
        "name": _label(series),
        "x": at if upright else values,
        "y": values if upright else at,
        "marker": {"color": _COLOURS[place % len(_COLOURS)]},
        "hoverinfo": "text",
        "hovertext": told,
        "textposition": "none",
    }


def _few(parts: Sequence[Part], field: str, most: int) -> list[Part]:
    """The same money with at most so many bars (or series): the dearest, and one for all others."""
    sums: dict[str, Decimal] = {}
    for part in parts:
        name = getattr(part, field)
        sums[name] = sums.get(name, Decimal(0)) + part.usd
    if len(sums) <= most:
        return list(parts)
    kept = set(sorted(sums, key=lambda name: -sums[name])[: most - 1])
    others = f"{OTHERS} ({len(sums) - len(kept):,})"
    inside = [part for part in parts if getattr(part, field) in kept]
    outside = [part for part in parts if getattr(part, field) not in kept]
    return inside + [
        Part(others, part.series, part.usd) if field == "bar" else Part(part.bar, others, part.usd)
        for part in outside
    ]


def _label(text: str) -> str:
    """A text of a record as plotly draws it as it is."""
    return escape(fit(line(text), _LABEL_COLUMNS), quote=False)


def _words(parts: Sequence[Part], what: str) -> str:
    sums: dict[str, Decimal] = {}
    for part in parts:
        sums[part.bar] = sums.get(part.bar, Decimal(0)) + part.usd
    told = ", ".join(f"{line(name)} {money(usd, None)}" for name, usd in sums.items())
    return f"Dollars by {what}, {counted(len(sums), 'bar')}: {told}"


def _draw(traces: Sequence[Any], layout: Mapping[str, Any], *, key: str, height: int, alt: str) -> None:
    import plotly.graph_objects as go

    figure = go.Figure(data=list(traces))
    legend = {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "traceorder": "normal"}
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 28, "b": 8}, legend=legend, dragmode=False, bargap=0.28, height=height
    )
    figure.update_layout(dict(layout))
    figure.update_yaxes(automargin=True)
    figure.update_xaxes(automargin=True)
    st.plotly_chart(figure, key=key, config=_CONFIG, alt=alt)
