"""The Diagnose page: `/diagnose?run=ID[&good=ID][&span=ID][&diagnosis=ID]`.

It finds the call that broke an answer, or says why that cannot be told. The address says which run, with
which good run, which span is being tested and which diagnosis is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from ui.web import run_record
from ui.web.diagnose_forms import GOOD, NO_GOOD, forms
from ui.web.diagnose_head import head
from ui.web.diagnose_history import earlier
from ui.web.diagnose_jobs import Job
from ui.web.diagnose_running import begin, shown
from ui.web.expected_field import expectation
from ui.web.good_runs import Good, against, good_runs
from ui.web.notices import note, problem
from ui.web.places import run_link
from ui.web.run_record import Record
from ui.web.span_text_form import SPAN

_STYLE: Final = """
<style>
.st-key-diagnose-question [data-testid="stText"], .st-key-diagnosis-words [data-testid="stText"] {
  font-size: 1.05rem; font-weight: 600; }
.st-key-diagnosis { border-left: 3px solid var(--st-primary-color, #1c5d99); }
[class*="st-key-test-code-"] textarea { font-family: var(--st-code-font, monospace); font-size: 0.85rem; }
[class*="st-key-culprit-"] .stButton button { min-height: 1.5rem; padding: 0 0.15rem; }
</style>
"""


def page() -> None:
    """Show the run of the address with all that can be done to find what broke its answer."""
    st.html(_STYLE)
    ref = st.query_params.get("run", "")
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown("#### Find the call that broke the answer", width="content")
        if ref:
            target, query = run_link(ref)
            st.page_link(target, label=":blue[Open the run]", query_params=query)
    if not ref:
        _nothing("No run was chosen.")
        return
    try:
        home = Home.resolve()
        run_id = run_record.full_id(home, ref)
        if run_id != ref:
            st.query_params["run"] = run_id
        record = run_record.open_record(home, run_id)
        _diagnose(home, record)
    except RLMScopeError as error:
        _nothing(error)


def _nothing(sentence: object) -> None:
    problem(sentence)
    st.page_link("pages/runs.py", label="All runs")


def _diagnose(home: Home, record: Record) -> None:
    for sentence in record.said:
        note(sentence)
    head(record)
    if record.view.live:
        note("This run goes on. What broke its answer can be looked for when it has ended.")
        return
    stands = expectation(home, record.view.run_id)
    if shown(record, _test):
        st.markdown("##### What else can be tried")
    target_of = Job("diagnose", record.view.run_id, expected=stands.expected, how=stands.how)
    offer = good_runs(home, record, stands.expected, stands.how, st.query_params.get(GOOD))
    good = _good(offer.goods, record.view.run_id)
    forms(record, offer, None if good is None else against(record, good), target_of, partial(begin, home))
    earlier(home, record)


def _good(goods: Sequence[Good], run_id: str) -> Good | None:
    """The good run of the address; without one the best that was there when the page was opened, if it can be
    one: a run that ends meanwhile must not take its place under the hand that presses a button.
    """
    asked = st.query_params.get(GOOD)
    if asked is None:
        usable = [one for one in goods if one.usable]
        first = st.session_state.get(f"way-good-of-{run_id}")
        chosen = next((one for one in usable if one.run.run_id == first), next(iter(usable), None))
        if chosen is not None:
            st.session_state[f"way-good-of-{run_id}"] = chosen.run.run_id
        return chosen
    if asked == NO_GOOD:
        return None
    found = next((one for one in goods if one.run.run_id == asked), None)
    if found is None:
        problem(InputError(f"The run {asked[:60]} does not ask the same as this one, or is not there."))
    return found


def _test(span_id: str) -> None:
    """Put a span into the fields of a test."""
    st.query_params[SPAN] = span_id


page()
