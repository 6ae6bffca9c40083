"""Charts as plotly is told to draw them, and tables as CSV: text of a record stays text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from ui.web.csv_file import csv_text

HOSTILE = '<a href="//x">&\u202e'


def drawn(script: Callable[..., None], *args: Any) -> tuple[dict[str, Any], str]:
    """The figure and the text alternative of the one chart that a script draws."""
    page = AppTest.from_function(script, args=args, default_timeout=60).run()
    assert not page.exception, page.exception
    (chart,) = page.get("plotly_chart")
    figure = json.loads(chart.proto.spec)
    assert isinstance(figure, dict)
    return figure, str(chart.proto)


def lying(parts: list[tuple[str, str, str]]) -> None:
    from decimal import Decimal

    from ui.web import charts

    charts.bars([charts.Part(bar, series, Decimal(usd)) for bar, series, usd in parts], key="k", what="model")


def beside(parts: list[tuple[str, str, str]]) -> None:
    from decimal import Decimal

    from ui.web import charts

    charts.pairs([(bar, series, Decimal(usd)) for bar, series, usd in parts], key="k", what="model")


@pytest.mark.parametrize("draw", [lying, beside])
def test_markup_in_names_is_drawn_as_it_is(draw: Callable[..., None]) -> None:
    figure, _ = drawn(draw, [(HOSTILE, "recorded", "1.5"), ("b", "recorded", "0.5")])
    text = json.dumps(figure["data"]) + json.dumps(figure["layout"]["yaxis"])
    assert "<a" not in text and r"&lt;a href=\"//x\"&gt;&amp;\\u202e" in text


def test_many_bars_and_series_become_a_few_and_lose_no_money() -> None:
    parts = [(f"bar {n}", f"series {n % 9}", str(n + 1)) for n in range(60)]
    figure, _ = drawn(lying, parts)
    assert len(figure["data"]) == 6 and len(figure["layout"]["yaxis"]["ticktext"]) == 24
    assert "others (37)" in figure["layout"]["yaxis"]["ticktext"]
    assert sum(sum(trace["x"]) for trace in figure["data"]) == sum(range(1, 61))


def test_two_long_names_that_begin_alike_are_two_bars() -> None:
    figure, _ = drawn(lying, [("x" * 60 + "1", "", "1"), ("x" * 60 + "2", "", "2")])
    (trace,) = figure["data"]
    assert trace["y"] == [0, 1] and len(set(figure["layout"]["yaxis"]["ticktext"])) == 1


def test_a_chart_says_in_words_what_it_shows() -> None:
    _, said = drawn(lying, [("a", "x", "0.25"), ("a", "y", "0.25"), ("b", "x", "0.125")])
    assert "Dollars by model, 2 bars: a $0.5, b $0.125" in said


@pytest.mark.parametrize(
    ("value", "cell"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-0.25", "-0.25"), ("-x", "'-x"), ("+", "'+"), (None, ""),
     (0.5, "0.5"), ('a "b", c\nd', 'a "b", c\nd'), ("\t=1", "'\t=1")],
)  # fmt: skip
def test_no_cell_is_a_formula(value: object, cell: str) -> None:
    names, row = csv.reader(io.StringIO(csv_text(["a", "b"], [{"a": value, "c": 1}])))
    assert names == ["a", "b"] and row == [cell, ""]
