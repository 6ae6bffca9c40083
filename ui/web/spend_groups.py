"""What the money went on: spend by any of role, model, depth, iteration, cell, class, corpus and day."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import streamlit as st

from rlm_core.errors import InputError
from traces.cost import KEYS, check_keys
from traces.home import Home
from ui.figures import least, money, total_tokens
from ui.visible import line
from ui.web import charts
from ui.web.address import put_choice
from ui.web.csv_file import csv_button
from ui.web.listing import paged
from ui.web.rows_view import Cell, Column, Item, rows_view
from ui.web.spend_data import Question, groups
from ui.web.spend_scope import corpus_names, corpus_words

DEFAULT: Final = ("role", "model")
_FIGURES: Final = ("Cost", "Share", "Calls", "Tokens in", "Tokens out", "p50", "p95", "Most")
_WIDTHS: Final = {"Cost": 92, "Share": 60, "Calls": 56, "Tokens in": 82, "Tokens out": 75}
_KEY_WIDTHS: Final = {"role": 60, "model": 150, "corpus": 130, "day": 84}
_JSON: Final = (
    "cost_usd",
    "known_usd",
    "cost_status",
    "calls",
    "tokens_in",
    "tokens_out",
    "untold_calls",
    "derived_calls",
    "p50_usd",
    "p95_usd",
    "max_usd",
)
_NONE: Final = {
    "role": "not recorded",
    "model": "not recorded",
    "iteration": "outside of iterations",
    "cell": "outside of cells",
    "class": "not told apart",
    "day": "not recorded",
}
_CLASSES: Final = {"cached_read": "cached read", "cache_write": "cache write"}
_ABOUT: Final = {
    "day": "A day is the UTC date on which a call began.",
    "class": "A call stands in each class it has tokens of; calls are counted in each of them.",
    "cell": "Cells and iterations are numbered within each run: number 0 is the first of every run.",
}
#: How rows are ordered by a column; words first by the alphabet, figures by size.
_ORDERS: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    "Cost": lambda row: Decimal(row["known_usd"]),
    "Calls": lambda row: row["calls"],
    "Tokens in": lambda row: row["tokens"]["input"],
    "Tokens out": lambda row: row["tokens"]["output"],
    "Most": lambda row: Decimal(row["max_usd"] or 0),
}


def keys_of_address() -> tuple[str, ...]:
    """The keys that the address groups by. Raises InputError for one that is none."""
    text = st.query_params.get("by")
    if text is None:
        return DEFAULT
    keys = check_keys([part for part in text.split(",") if part])
    if not keys:
        raise InputError(f"by= names nothing; there are {', '.join(KEYS)}")
    return keys


def choose_keys(keys: tuple[str, ...]) -> None:
    """The field of what to group by."""
    st.session_state["spend-by"] = list(keys)
    st.pills(
        "By", KEYS, selection_mode="multi", key="spend-by", on_change=_written,
        format_func=lambda key: {"class": "class of tokens"}.get(key, key),
    )  # fmt: skip


def _written() -> None:
    chosen = st.session_state["spend-by"]
    if st.query_params.get("sort", "").removeprefix("-") in KEYS:  # maybe of a column that is gone
        st.query_params.pop("sort")
    put_choice("by", ",".join(chosen), ",".join(DEFAULT))


def show(home: Home, asked: Question) -> None:
    """The field, a table and a chart. Raises InputError for an address that means nothing."""
    keys = keys_of_address()
    choose_keys(keys)
    for key in keys:
        if key in _ABOUT:
            st.caption(_ABOUT[key])
    report = groups(asked, keys).value
    names = corpus_names(home) if "corpus" in keys else {}
    rows = report["rows"]
    if not rows:
        st.text("No model was asked.")
        return
    left, right = st.columns([19, 8], gap="medium")
    with left:
        table(rows, keys, names, known=Decimal(report["known_usd"]), key="spend-groups")
        csv_button(
            [*keys, *_JSON],
            [flat(row, keys) for row in rows],
            key="spend-groups-csv",
            name="spend-by-" + "-".join(keys),
        )
    with right:
        if Decimal(report["known_usd"]):
            chart(rows, keys, names)


def table(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str], names: dict[str, str], *, known: Decimal, key: str
) -> None:
    """Rows of spend, fifty at a time, in the order that the address asks for (dearest first)."""
    column, descending = sort_of_address((*keys, *_ORDERS))

    def order(row: Mapping[str, Any]) -> Any:
        if column in _ORDERS:
            return _ORDERS[column](row)
        return row[column] is not None, row[column] if row[column] is not None else 0

    def show_page(shown: Sequence[Mapping[str, Any]]) -> None:
        rows_view(
            [
                Item(str(at), [*(place(row, one, names) for one in keys), *_cells(row, known)])
                for at, row in enumerate(shown)
            ],
            [
                *(Column(one, _KEY_WIDTHS.get(one, 75), sortable=True) for one in keys),
                *(Column(one, _WIDTHS.get(one, 80), right=True, sortable=one in _ORDERS) for one in _FIGURES),
            ],
            key=key,
            label="Spend by " + ", ".join(keys),
            sort=(column, descending),
            on_sort=write_sort,
        )

    paged(sorted(rows, key=order, reverse=descending), show_page, key=f"{key}-{column}-{descending}")


def sort_of_address(columns: Sequence[str]) -> tuple[str, bool]:
    """(column, whether the largest comes first) of `?sort=`, dearest first without one.

    Raises InputError for what is no column here.
    """
    text = st.query_params.get("sort", "-Cost")
    column = text.removeprefix("-")
    if column not in columns:
        raise InputError(f"the table cannot be sorted by {column[:60]!r}; it can by {', '.join(columns)}")
    return column, text.startswith("-")


def write_sort(column: str, descending: bool) -> None:
    """Ask for another order."""
    st.query_params["sort"] = f"-{column}" if descending else column


def place(row: Mapping[str, Any], key: str, names: dict[str, str]) -> str:
    """What a row is about, of one key, in words; may hold any text."""
    value = row[key]
    if key == "corpus":
        return corpus_words(value, names)
    if value is None:
        return _NONE.get(key, "not recorded")
    return line(_CLASSES.get(str(value), str(value)))


def _cells(row: Mapping[str, Any], known: Decimal) -> list[Cell]:
    own = Decimal(row["known_usd"])
    return [
        least(row["cost_usd"], row["cost_status"], row["known_usd"]),
        f"{float(own / known):.1%}" if known and (own or row["cost_usd"]) else "—",
        f"{row['calls']:,}",
        *(total_tokens({"total": row["tokens"][side]}, row["untold_calls"]) for side in ("input", "output")),
        *("—" if row[name] is None else money(row[name], None) for name in ("p50_usd", "p95_usd", "max_usd")),
    ]


def flat(row: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """A row as the cells of a CSV line, amounts to the last digit; what no call tells is empty."""
    told = {
        side: count if count or not row["untold_calls"] else None for side, count in row["tokens"].items()
    }
    sides = {"tokens_in": told["input"], "tokens_out": told["output"]}
    return {**{key: row[key] for key in keys}, **row, **sides}


def chart(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], names: dict[str, str]) -> None:
    """Bars by the first key (days: by the day), pieces of them by the others."""
    first = "day" if "day" in keys else keys[0]
    rest = [key for key in keys if key != first]
    listed = sorted(rows, key=lambda row: row[first] or "") if first == "day" else list(rows)
    parts = [
        charts.Part(
            place(row, first, names),
            " · ".join(place(row, key, names) for key in rest),
            Decimal(row["known_usd"]),
        )
        for row in listed
    ]
    charts.bars(parts, key="spend-chart", what=first, upright=first == "day")
