"""The view `tree` of a run: its spans on the left, the chosen one in full on the right.

Keys of the address: `span`, and `pane` for how the spans are drawn; for more see `run_filters`, `run_search`.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import InputError
from traces.reading import SpanRow, resolve_span
from ui.figures import counted
from ui.web import run_filters, run_search, tree_view
from ui.web.address import put_choice
from ui.web.notices import note, problem
from ui.web.run_filters import Narrowed
from ui.web.run_record import Record, Select
from ui.web.span_view import span_view
from ui.web.tree_words import NO_PLACE

PANES: Final = {"tree": tree_view.tree, "flame": tree_view.flame, "table": tree_view.table}
_TITLES: Final = {"tree": "Tree", "flame": "Flame", "table": "Table"}
_KEY: Final = "run-pane"


def show(record: Record, select: Select) -> None:
    """Draw the spans and the detail of the one that the address names."""
    span, pane = _chosen(record), _pane()
    shown = run_filters.narrowed(record)
    _tools(record, shown, pane)
    found = run_search.hits(record)
    if found is not None:
        run_search.ways(found, span, select)
    left, right = st.columns([11, 10], gap="medium")
    with left, st.container(key="run-tree", gap="small"):
        if found:
            run_search.hit_list(record, found, span, select)
        _spans(record, shown, span, pane, select, short=bool(found))
    with right:
        span_view(record, span, select)


def _tools(record: Record, shown: Narrowed, pane: str) -> None:
    """How the spans are drawn, which, in what order, and what is looked for in them."""
    if st.session_state.get(_KEY) != pane:
        st.session_state[_KEY] = pane
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="run-tools"):
        st.segmented_control(
            "Spans as",
            list(PANES),
            format_func=_TITLES.__getitem__,
            key=_KEY,
            required=True,
            on_change=_pane_chosen,
            label_visibility="collapsed",
        )
        run_search.search_field()
        run_filters.order_field()
        run_filters.filters(record, shown)


def _spans(record: Record, shown: Narrowed, span: SpanRow, pane: str, select: Select, *, short: bool) -> None:
    if not shown.rows.rows:
        note("No span of this run fits the filters.")
        st.button("Show all spans", key="run-no-fit-clear", on_click=run_filters.clear)
        return
    if span.span_id not in shown.rows.place:
        note("The span that is shown beside does not fit the filters.")
    untold = [] if pane != "flame" else [row for row in shown.rows.rows if row.width == NO_PLACE]
    if untold and len(untold) == len(shown.rows.rows):
        note(
            "When they took place is not in the record, so there is no time line; the tree has them in order."
        )
        return
    if untold:
        note(f"When {counted(len(untold), 'span')} took place is not in the record: these have no bar.")
    PANES[pane](
        shown.rows,
        run_id=record.view.run_id,
        selected=span.span_id,
        on_select=select,
        title=shown.title,
        short=short,
    )


def _pane() -> str:
    """The pane that the address asks for; one that is not there is said to be so."""
    pane = st.query_params.get("pane", "tree")
    if pane in PANES:
        return pane
    problem(f"Spans cannot be shown as “{pane[:60]}”; this is their tree.")
    return "tree"


def _pane_chosen() -> None:
    put_choice("pane", st.session_state[_KEY], "tree")


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
