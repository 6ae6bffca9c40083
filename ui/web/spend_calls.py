"""The dear calls: how the cost is spread over calls, and the ten dearest sub-calls, each a link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from traces.rows import money_json
from traces.spend import TAIL, Dear, Tail
from ui.figures import money
from ui.visible import line
from ui.web import charts
from ui.web.csv_file import csv_button
from ui.web.places import href, run_link
from ui.web.rows_view import Column, Item, rows_view
from ui.web.spend_data import Question, calls

_PLACE: Final = ("iteration", "cell", "call")
_NAMES: Final = {None: "all calls", "root": "root calls", "sub": "sub-calls"}


def show(asked: Question) -> None:
    """Percentiles, the tail as a table and a chart, the dearest sub-calls."""
    found, dear = calls(asked).value
    if not found:
        st.text("The cost of no call is known.")
        return
    left, right = st.columns([13, 8], gap="medium")
    with left:
        st.markdown("##### How the cost is spread over calls")
        _tails(found)
        st.markdown("##### The dearest sub-calls")
        if dear:
            _dearest(dear)
        else:
            st.text("No sub-call cost anything, as far as is known.")
    with right:
        lines = {_name(tail): tail.shares for tail in found if tail.shares}
        if lines:
            charts.share_curve(lines, key="spend-curve")


def _name(tail: Tail) -> str:
    return _NAMES.get(tail.role, "other calls")


def _tails(found: Sequence[Tail]) -> None:
    columns = ("Calls", "Number", "Cost", "p50", "p95", "Most", *(f"Dearest {part}%" for part in TAIL))
    rows_view(
        [
            Item(
                _name(tail),
                [
                    _name(tail),
                    f"{tail.calls:,}",
                    *(money(usd, None) for usd in (tail.usd, tail.p50, tail.p95, tail.most)),
                    *("—" if tail.shares is None else f"{tail.shares[part]:.0%}" for part in TAIL),
                ],
            )
            for tail in found
        ],
        [Column(name, 90, right=place > 0) for place, name in enumerate(columns)],
        key="spend-tails",
        label="How the cost is spread over calls",
    )
    st.caption(
        "Calls whose cost is known. p95: what 95 of 100 calls do not exceed. "
        "Dearest 1%: their part of the cost of all calls in the row."
    )
    amounts = ("usd", "p50", "p95", "most")
    rows = [
        {
            "role": tail.role or "all",
            "calls": tail.calls,
            **{name: money_json(getattr(tail, name)) for name in amounts},
            **{f"share_of_dearest_{part}": (tail.shares or {}).get(part) for part in TAIL},
        }
        for tail in found
    ]
    csv_button(list(rows[0]), rows, key="spend-tails-csv", name="spend-tail")


def _dearest(dear: Sequence[Dear]) -> None:
    rows_view(
        [
            Item(
                f"{one.run_id} {one.span_id}",
                [
                    money(one.usd, None),
                    one.model or "not recorded",
                    "unknown" if one.input is None else f"{one.input:,}",
                    "unknown" if one.output is None else f"{one.output:,}",
                    _where(one),
                    line(one.preview or ""),
                ],
                href(run_link(one.run_id, one.span_id)),
                f"run {one.run_id}",
            )
            for one in dear
        ],
        [
            Column("Cost", 100),
            Column("Model", 130),
            Column("Tokens in", 80, right=True),
            Column("Tokens out", 80, right=True),
            Column("Where", 205),
            Column("Text"),
        ],
        key="spend-dearest",
        label="The dearest sub-calls",
    )
    fields = ("model", "input", "output", "run_id", "span_id", "depth")
    rows = [
        {
            "usd": money_json(one.usd),
            **{name: getattr(one, name) for name in fields},
            **dict(zip(_PLACE, one.place, strict=True)),
        }
        for one in dear
    ]
    csv_button(list(rows[0]), rows, key="spend-dearest-csv", name="dearest-sub-calls")


def _where(one: Dear) -> str:
    """Iteration, cell and number of a call, as far as they are recorded."""
    told = [f"{word} {number}" for word, number in zip(_PLACE, one.place, strict=True) if number is not None]
    return ", ".join([*told, *([f"depth {one.depth}"] if one.depth else [])]) or "not recorded"
