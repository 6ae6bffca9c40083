"""Spans by how they ended, what made them and what they cost; what stands above them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from tests.traces.records import RUN, end, fin, header, home_in, start, write_spool
from traces.narrow import Narrow, fitting, with_parents
from traces.reading import RunView, SpoolRun

SIGNALS = {"odd": {"value", "length"}}


@pytest.fixture
def view(tmp_path: Path) -> RunView:
    home = home_in(tmp_path)
    records: list[dict[str, Any]] = [
        start("run", kind="run"),
        start("cell", "run", "cell", a={sc.PHASE: "Decompose"}),
        start("root", "run", "root_call", a={sc.REQUEST_MODEL: "big"}),
        end("root", a={sc.COST_USD: "0.5", sc.COST_STATUS: "priced"}),
        start("good", "cell", a={sc.REQUEST_MODEL: "small"}),
        end("good", a={sc.COST_USD: "0.01", sc.COST_STATUS: "priced"}),
        start("odd", "cell", a={sc.REQUEST_MODEL: "small"}),
        end("odd", a={sc.COST_STATUS: "unknown"}),
        start("bad", "cell", a={sc.REQUEST_MODEL: "small"}),
        end("bad", status="error"),
        start("child", "cell", "run", a={sc.DEPTH: 1}),
        end("child", status="ok"),
        fin(),
    ]
    write_spool(home, [header(), *records])
    return SpoolRun(home, RUN).poll()


@pytest.mark.parametrize(
    ("narrow", "found"),
    [
        (Narrow(status=("error",)), ["bad"]),
        (Narrow(status=("error", "suspect")), ["odd", "bad"]),
        (Narrow(status=("value",)), ["odd"]),
        (Narrow(role=("root",)), ["root"]),
        (Narrow(depth=("1",)), ["child"]),
        (Narrow(phase=("Decompose",)), ["cell"]),
        (Narrow(model=("small",), status=("ok",)), ["good", "odd"]),
        (Narrow(over=Decimal("0.01")), ["root"]),
        (Narrow(over=Decimal(0), model=("small",)), ["good"]),
        (Narrow(phase=("nowhere",)), []),
    ],
)
def test_spans_that_fit(view: RunView, narrow: Narrow, found: list[str]) -> None:
    assert narrow
    assert list(fitting(view.spans, narrow, SIGNALS).spans) == found


def test_calls_of_unknown_cost_are_counted_and_left_out(view: RunView) -> None:
    assert fitting(view.spans, Narrow(over=Decimal(1)), {}).unknown == 2
    assert fitting(view.spans, Narrow(over=Decimal(1), status=("error",)), {}).unknown == 1
    assert fitting(view.spans, Narrow(status=("error",)), {}).unknown == 0


def test_no_filter_is_no_narrowing() -> None:
    assert not Narrow()
    assert Narrow(over=Decimal(0))


def test_parents_are_kept_also_in_circles_and_where_they_are_missing(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    links = [("a", "b"), ("b", "a"), ("c", "a"), ("d", "gone"), ("e", "d"), ("f", None)]
    write_spool(home, [header(), *(start(name, parent, "cell") for name, parent in links), fin()])
    spans = SpoolRun(home, RUN).poll().by_id
    assert with_parents(spans, ["c", "e"]) == {"a", "b", "c", "d", "e"}
    assert with_parents(spans, ["nothing"]) == set()
