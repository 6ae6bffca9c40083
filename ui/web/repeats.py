"""The runs of a question that was asked several times, beside the form: how each stands, how far they agree.

The address names them (`series`, ids with commas, beside `run`, the one that is shown), so that a reload and
another tab show the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.agreement import agreement
from traces.home import Home
from ui.figures import counted
from ui.web import plain
from ui.web.address import keep
from ui.web.launch import series_ids
from ui.web.notices import problem
from ui.web.rows_view import Column, Item, rows_view
from ui.web.run_words import cost_words
from ui.web.series import Member, ids_of, members

SERIES: Final = "series"  # in the address
_KEPT: Final = "ask-series"  # in the session: the ids, for when the page is come back to
_OPENED: Final = "ask-series-opened"  # in the session: the run whose row was clicked
_PERIOD: Final = 2.0  # seconds between two looks
_SHOWN: Final = 80  # characters of an answer in a sentence
_COLUMNS: Final = (
    Column("Run", 60),
    Column("Answer"),
    Column("Status", 90),
    Column("Cost", 90, right=True),
)


def begin(ticket: str, times: int) -> None:
    """Remember the runs of a start; of one alone nothing."""
    forget()
    if times > 1:
        st.session_state[_KEPT] = series_ids(ticket, times)


def forget() -> None:
    """No series is looked at any more."""
    st.session_state.pop(_KEPT, None)
    st.query_params.pop(SERIES, None)


def panel(home: Home, run_id: str) -> None:
    """The series that the shown run is one of; nothing where it is of none."""
    run_ids = ids_of(st.query_params.get(SERIES, "")) or st.session_state.get(_KEPT, ())
    if run_id not in run_ids:
        forget()
        return
    st.session_state[_KEPT] = run_ids
    keep(SERIES, ",".join(run_ids))
    try:
        found = members(home, run_ids)
    except RLMScopeError as error:
        problem(error)
        return
    every = _PERIOD if any(one.at_work for one in found) else None
    st.fragment(_picture, run_every=every)(home, run_ids, run_id)


def _picture(home: Home, run_ids: Sequence[str], run_id: str) -> None:
    if opened := st.session_state.pop(_OPENED, None):
        st.query_params["run"] = opened
        st.rerun()  # the run below is drawn by the page
    try:
        found = members(home, run_ids)
    except RLMScopeError as error:
        problem(error)
        return
    with st.container(border=True, key="ask-series-box", gap="small"):
        st.markdown(f"**Asked {len(found)} times**")
        rows_view(
            [_item(place, one, run_ids, run_id) for place, one in enumerate(found, 1)],
            _COLUMNS,
            key="ask-series-rows",
            label="Repeats of the question",
            on_open=_open,
        )
        _agreement(found)


def _item(place: int, one: Member, run_ids: Sequence[str], shown: str) -> Item:
    run = one.summary
    name = f"{place}" + (" (below)" if one.run_id == shown else "")
    answer = "" if run is None else run.answer or ("" if one.at_work else "(no answer)")
    link = None if run is None else f"?run={one.run_id}&{SERIES}={','.join(run_ids)}"
    cells = (name, answer, one.word, "" if run is None else cost_words(run))
    return Item(one.run_id, cells, link)


def _open(run_id: str) -> None:
    st.session_state[_OPENED] = run_id


def _agreement(found: Sequence[Member]) -> None:
    """How far the answers agree, of the runs that are over."""
    done = [one.summary for one in found if one.summary is not None and not one.at_work]
    if not done:
        return
    agreed = agreement([(run.run_id, run.answer) for run in done])
    most = agreed.groups[0].count if agreed.groups else 0
    plain.text(f"{most} of {counted(len(done), 'finished run')} agree.")
    for group in agreed.groups:
        text = " ".join(group.answer.split())
        plain.text(f"{group.count} × {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}")
    if agreed.unanswered:
        plain.text(f"{agreed.unanswered} × no answer")
