"""The view `tree` of a run: its spans on the left, the chosen one in full on the right."""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import InputError
from traces.reading import SpanRow, resolve_span
from ui.web import tree_view
from ui.web.notices import problem
from ui.web.run_record import Record, Select
from ui.web.span_view import span_view

_TABLE_HELP: Final = "The same rows as a table: to search, to sort, and for screen readers."


def show(record: Record, select: Select) -> None:
    """Draw the tree and the detail of the span that the address names."""
    view, rows = record.view, record.rows
    span = _chosen(record)
    left, right = st.columns([11, 10], gap="medium")
    with left, st.container(key="run-tree", gap="small"):
        as_table = st.toggle("Table", key="run-as-table", help=_TABLE_HELP)
        draw = tree_view.table if as_table else tree_view.tree
        draw(rows, run_id=view.run_id, selected=span.span_id, on_select=select)
    with right:
        span_view(view, span, rows.rows[rows.place[span.span_id]], select)


def _chosen(record: Record) -> SpanRow:
    """The span of the address, else the topmost one; a span that is not there is said to be so."""
    ref = st.query_params.get("span", "")
    top = record.rows.rows[0].span
    assert top is not None  # groups stand below spans
    if ref:
        try:
            return resolve_span(record.view, ref)
        except InputError as error:
            problem(error)
    return record.view.by_id[top]
