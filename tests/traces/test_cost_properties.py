"""Totals over random trees: every way to add up what a run cost gives the same amount, to the last digit."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm_core import semconv as sc
from rlm_core.lm_handler import Usage
from rlm_core.price_rows import Override
from rlm_core.pricing import CLASSES, Price, PriceTable, decimal_text
from tests.traces.records import RUN, START_NS, end, fin, header, home_in, start, write_spool
from traces.cost import KEYS
from traces.home import Home
from traces.reading import cost_report, load_run
from traces.what_if import what_if

ODD = dict(zip(CLASSES, map(Decimal, ("0.333333333333", "0.07", "1.000000000001", "17")), strict=True))
TABLE = PriceTable([
    Override("openai/odd", ODD, "2026-11-30"),
    Override("openai/free", dict.fromkeys(CLASSES, Decimal(0)), "2026-11-30"),
])  # fmt: skip
MODELS = (
    "openai/odd",
    "openai/free",
    "openai/gpt-5-mini",
    "gemini/gemini-2.5-pro",
    "demo/sub",
    "openai/nobody",
)
EXAMPLES = 300 if os.environ.get("RLMSCOPE_FULL") == "1" else 6


@dataclass
class Call:
    """A model call: the usage of each attempt (None: it failed and nothing is billed)."""

    model: str
    attempts: list[Usage | None]


@dataclass
class Tree:
    """A run: iterations of (root call, cells of (sub-calls, child runs))."""

    iterations: list[tuple[Call, list[tuple[list[Call], list[Tree]]]]] = field(default_factory=list)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    given_, made = draw(st.integers(0, 300_000)), draw(st.integers(0, 9_999))
    read = draw(st.integers(0, given_))
    written = draw(st.integers(0, given_ - read))
    told = draw(st.sampled_from((True,) * 9 + (False,)))
    return Usage(given_, made, read, written) if told else Usage()


def calls(models: tuple[str, ...]) -> st.SearchStrategy[Call]:
    attempts = st.lists(st.none() | usages(), min_size=1, max_size=3)
    return st.builds(Call, st.sampled_from(models), attempts)


def trees(models: tuple[str, ...], depth: int = 0) -> st.SearchStrategy[Tree]:
    children = st.lists(trees(models, depth + 1), max_size=1) if depth < 2 else st.just([])
    cell = st.tuples(st.lists(calls(models), max_size=3), children)
    iteration = st.tuples(calls(models), st.lists(cell, max_size=2))
    return st.builds(Tree, st.lists(iteration, min_size=depth == 0, max_size=2))


class Spool:
    """Writes a tree as the engine would have recorded it."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = [header()]
        self._ids = itertools.count(1)

    def run(self, tree: Tree, parent: str | None = None, depth: int = 0) -> None:
        with_run = self._open("run", parent, {sc.DEPTH: depth})
        cells = itertools.count()
        for index, (root, parts) in enumerate(tree.iterations):
            iteration = self._open("iteration", with_run, {sc.ITERATION: index})
            self._call("root_call", iteration, root)
            for subs, children in parts:
                cell = self._open("cell", iteration, {sc.CELL: next(cells)})
                for sub in subs:
                    self._call("sub_call", cell, sub)
                for child in children:
                    self.run(child, cell, depth + 1)
                self.records.append(end(cell))
            self.records.append(end(iteration))
        self.records.append(end(with_run))

    def _open(self, kind: str, parent: str | None, facts: dict[str, Any]) -> str:
        span_id = f"{next(self._ids):016x}"
        self.records.append(start(span_id, parent, kind=kind, a=facts))
        return span_id

    def _call(self, kind: str, parent: str, call: Call) -> None:
        span = self._open(kind, parent, {sc.REQUEST_MODEL: call.model})
        priced: list[tuple[Usage, Price]] = []
        for usage in call.attempts:
            attempt = self._open("attempt", span, {sc.REQUEST_MODEL: call.model})
            price = Price("free", Decimal(0)) if usage is None else TABLE.price(call.model, usage)
            priced += [] if usage is None else [(usage, price)]
            self.records.append(end(attempt, a=_facts(usage or Usage(), price)))
        counts = {
            n: _sum(getattr(u, n) for u, _ in priced)
            for n in ("input", "output", "cached_read", "cache_write")
        }
        self.records.append(end(span, a=_facts(Usage(**counts), _price_of(priced))))


def _sum(counts: Iterator[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _price_of(priced: list[tuple[Usage, Price]]) -> Price:
    """The price of a call whose attempts were priced one by one."""
    if not priced:
        return Price("free", Decimal(0))
    if any(price.usd is None for _, price in priced):
        return Price("unknown", None, priced[-1][1].row)
    return Price(
        priced[-1][1].status, sum((p.usd or Decimal(0) for _, p in priced), Decimal(0)), priced[-1][1].row
    )


def _facts(usage: Usage, price: Price) -> dict[str, Any]:
    facts = {
        sc.USAGE_INPUT: usage.input,
        sc.USAGE_OUTPUT: usage.output,
        sc.USAGE_CACHE_READ: usage.cached_read,
        sc.USAGE_CACHE_WRITE: usage.cache_write,
        sc.COST_USD: None if price.usd is None else decimal_text(price.usd),
        sc.COST_STATUS: price.status,
        sc.COST_PRICE: price.row,
    }
    return {key: value for key, value in facts.items() if value is not None}


def written(tree: Tree, folder: str) -> Home:
    home, spool = home_in(Path(folder)), Spool()
    spool.run(tree)
    write_spool(home, [*spool.records, fin()])
    return home


PRICED = MODELS[:-1]


@given(trees(MODELS))
@example(Tree([(Call("openai/nobody", [Usage(0, 0)]), [])]))
@settings(max_examples=EXAMPLES)
def test_spans_run_and_every_grouping_add_up_to_the_last_digit(tree: Tree) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = written(tree, folder)
        view = load_run(home, RUN)
        spans = [span for span in view.spans if span.kind in ("root_call", "sub_call")]
        known = sum((span.cost_usd for span in spans if span.cost_usd is not None), Decimal(0))
        total = None if any(span.cost_usd is None for span in spans) else known
        assert (view.summary.cost_usd, view.summary.known_usd, view.summary.problems) == (total, known, 0)
        for by in (*((key,) for key in KEYS), (), KEYS):
            report = cost_report(home, [RUN], by)
            assert (_amount(report["total_usd"]), Decimal(report["known_usd"])) == (total, known)
            assert report["tokens"] == view.summary.tokens and report["calls"] == len(spans)
            assert sum(Decimal(row["known_usd"]) for row in report["rows"]) == known
            assert any(row["cost_usd"] is None for row in report["rows"]) == (total is None)
            for side in ("input", "output"):
                assert sum(row["tokens"][side] for row in report["rows"]) == report["tokens"][side]


@given(trees(PRICED))
@settings(max_examples=EXAMPLES)
def test_a_record_with_gaps_costs_at_least_what_is_on_it_everywhere(tree: Tree) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, spool = home_in(Path(folder)), Spool()
        spool.run(tree)
        write_spool(home, [*spool.records, {**fin(), "problems": 2}])
        view = load_run(home, RUN)
        spans = [span for span in view.spans if span.kind in ("root_call", "sub_call")]
        known = sum((span.cost_usd or Decimal(0) for span in spans), Decimal(0))
        demo = bool(spans) and all(span.cost_status == "demo" for span in spans)
        total, status = (known, "demo") if demo else (None, "partial" if known else "unknown")
        assert (view.summary.cost_usd, view.summary.known_usd) == (total, known)
        for by in ((), ("role",), KEYS):
            for report in (cost_report(home, [RUN], by), what_if(home, [RUN], by, {})):
                assert (_amount(report["total_usd"]), Decimal(report["known_usd"])) == (total, known)
                assert report["cost_status"] == view.summary.cost_status == status
                assert report["runs_with_gaps"] == (not demo)


@given(trees(PRICED))
@settings(max_examples=EXAMPLES)
def test_attempts_add_up_to_their_call(tree: Tree) -> None:
    with tempfile.TemporaryDirectory() as folder:
        view = load_run(written(tree, folder), RUN)
        for span in view.spans:
            if span.kind in ("root_call", "sub_call") and span.cost_usd is not None:
                attempts = [child.cost_usd for child in view.spans if child.parent_id == span.span_id]
                assert sum(usd for usd in attempts if usd is not None) == span.cost_usd


@given(trees(MODELS), st.sampled_from([*((key,) for key in KEYS), (), KEYS]))
@settings(max_examples=EXAMPLES)
def test_with_no_other_model_what_if_is_what_was_recorded(tree: Tree, by: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = written(tree, folder)
        said, recorded = what_if(home, [RUN], by, {}), cost_report(home, [RUN], by)
        assert {key: said[key] for key in recorded if key != "rows"} == {
            key: value for key, value in recorded.items() if key != "rows"
        }
        for row, same in zip(said["rows"], recorded["rows"], strict=True):
            assert {key: row[key] for key in same} == same
            assert row["recorded_usd"] == row["cost_usd"]


@given(trees(MODELS), st.sampled_from(MODELS), st.sampled_from([(), ("class",), KEYS]))
@example(Tree([(Call("demo/sub", [Usage(250_000, 5), Usage(10, 2, 3, 4)]), [])]), "gemini/gemini-2.5-pro", ())
@settings(max_examples=EXAMPLES)
def test_what_if_is_what_the_price_table_says_of_each_attempt(
    tree: Tree, model: str, by: tuple[str, ...]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        said = what_if(written(tree, folder), [RUN], by, dict.fromkeys(("root", "sub"), model))
    would_be = [_again(call, model) for call in _calls_of(tree)]
    known = sum((usd for usd in would_be if usd is not None), Decimal(0))
    assert Decimal(said["known_usd"]) == sum(Decimal(row["known_usd"]) for row in said["rows"]) == known
    assert _amount(said["total_usd"]) == (None if None in would_be else known)
    assert sum(each["calls"] for each in said["unpriced"]) + said["without_usage"] == would_be.count(None)


def _calls_of(tree: Tree) -> Iterator[Call]:
    for root, parts in tree.iterations:
        yield root
        for subs, children in parts:
            yield from subs
            yield from (call for child in children for call in _calls_of(child))


def _again(call: Call, model: str) -> Decimal | None:
    """What a call would have cost; None: its price or its usage is not known."""
    if all(usage is None for usage in call.attempts):
        return Decimal(0)
    told = [usage for usage in call.attempts if usage is not None and usage.input is not None]
    when = datetime.fromtimestamp(START_NS / 1e9, UTC)
    prices = [PriceTable().price(model, usage, now=when).usd for usage in told]
    amounts = [usd for usd in prices if usd is not None]
    return sum(amounts, Decimal(0)) if amounts and len(amounts) == len(prices) else None


def _amount(usd: str | None) -> Decimal | None:
    return None if usd is None else Decimal(usd)
