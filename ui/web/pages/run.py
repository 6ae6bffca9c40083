"""The Run page: `/run?run=ID&view=NAME&span=ID`. Its head, and one view of the run.

The address is the truth about what is shown: choosing a span writes it there, a reload reads it there.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from ui.web import first_steps, launch, run_record
from ui.web.notices import note, problem
from ui.web.run_header import header
from ui.web.run_record import Record
from ui.web.run_views import choose_view
from ui.web.theme import CALM

_TICK: Final = 1.0  # seconds between two looks at a run that goes on
_SLOW_TICKS: Final = ((15_000, 10.0), (5_000, 3.0))  # the same from so many spans on: rows take a second then
_STYLE: Final = """
<style>
.st-key-run-question [data-testid="stText"] { font-size: 1.1rem; font-weight: 600; }
.st-key-span-title [data-testid="stText"] { font-size: 1.2rem; font-weight: 600; }
.st-key-run-answer { border-left: 3px solid var(--st-primary-color, #1c5d99); padding-left: 0.75rem; }
.st-key-run-id pre, .st-key-span-id pre { padding: 0.15rem 2.5rem 0.15rem 0.5rem; }
[data-testid="stLayoutWrapper"]:has(> .st-key-run-search-box) { max-width: 36rem; }
.st-key-run-tree { position: sticky; top: 3.75rem; }
.st-key-span-ways button { min-height: 1.9rem; padding: 0 0.6rem; }
.st-key-span-path button { min-height: 1.4rem; padding: 0 0.25rem; }
</style>
"""


def main() -> None:
    """Show the run that the address names, or say in one sentence why that is impossible."""
    st.html(_STYLE)
    ref = st.query_params.get("run", "")
    if not ref:
        _nothing("No run was chosen.")
        return
    try:
        home = Home.resolve()
        run_id = run_record.full_id(home, ref)
        if run_id != ref:
            st.query_params["run"] = run_id
        record = run_record.open_record(home, run_id)
    except InputError as error:
        _absent(ref, error)
    except RLMScopeError as error:
        _unreadable(error)
    else:
        every = None if record.spool is None else _tick(len(record.view.spans))
        if every is None:
            _top(record)
        else:
            st.html(CALM)
        st.fragment(_body, run_every=every)(home, run_id, every is not None)


def _tick(spans: int) -> float:
    return next((seconds for many, seconds in _SLOW_TICKS if spans >= many), _TICK)


def _nothing(sentence: object) -> None:
    problem(sentence)
    st.page_link("pages/runs.py", label="All runs")


def _absent(ref: str, error: InputError) -> None:
    """No such run; a run that is only just being started may not have a record yet."""
    started = launch.launch_state(Home.resolve(), ref)
    if started.state == "starting":
        st.badge("starting", color="blue")
        st.text("The process of this run is starting; nothing has been recorded yet.")
        st.fragment(_wait, run_every=_TICK)(ref)
        return
    _nothing(started.error if started.error and started.error != _NO_RUN else error)


_NO_RUN: Final = "There is no such run."


def _wait(run_id: str) -> None:
    if launch.launch_state(Home.resolve(), run_id).state != "starting":
        st.rerun()


def _unreadable(error: RLMScopeError) -> None:
    problem(error)
    st.button("Try again", on_click=run_record.forget)


def _top(record: Record) -> None:
    for sentence in record.said:
        note(sentence)
    first_steps.guide(record.view)
    try:
        header(record)
    except RLMScopeError as error:
        _unreadable(error)


def _body(home: Home, run_id: str, live: bool) -> None:
    """The chosen view; for a run that goes on also the head. Drawn anew by itself while it goes on."""
    try:
        record = run_record.open_record(home, run_id)
    except InputError as error:
        _nothing(error)
        return
    except RLMScopeError as error:
        _unreadable(error)
        return
    if live:
        if record.spool is None:
            st.rerun()
        _top(record)
    if not record.view.spans:
        note("Nothing has been recorded yet." if live else "This run recorded no spans.")
        return
    choose_view(record).show(record, _go)


def _go(span_id: str) -> None:
    """Show a span, in the view that is made for it."""
    st.query_params["span"] = span_id
    st.query_params.pop("view", None)


main()
