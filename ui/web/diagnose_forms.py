"""What may be done to find the call that broke an answer: three offers in the order of what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from traces.same_answer import explain
from traces.trial import Budget
from ui.web import plain
from ui.web.diagnose_jobs import BUDGET, Job
from ui.web.diagnose_words import budget_words
from ui.web.good_runs import Good, good_title
from ui.web.notices import note
from ui.web.places import Link
from ui.web.run_record import Record
from ui.web.span_text_form import span_text_form
from ui.web.twin_form import twin_form

GOOD: Final = "good"  # in the address
NO_GOOD: Final = "none"  # its value for: without a good run
_MODES: Final = {
    "strict": "from the record alone",
    "recompute": "ask the model for changed prompts",
}
Begin = Callable[[Job], None]


def compare_link(run_id: str, good: str) -> Link:
    """The page that compares the two runs."""
    return "pages/compare.py", {"a": run_id, "b": good}


def forms(record: Record, goods: Sequence[Good], good: Good | None, target: Job, begin: Begin) -> None:
    """Draw the three offers. `target` holds what answer is wanted; `begin` starts a job."""
    one, two, three = st.columns(3, gap="medium")
    with one, st.container(border=True, key="way-compare"):
        _compare(record, goods, good, begin)
    with two, st.container(border=True, key="way-test"):
        st.markdown("##### 2 · Test this sub-answer")
        st.caption("One replay, well under a second for most runs. Free, unless changed prompts are asked.")
        job = span_text_form(record, good, target)
        if job is not None:
            begin(job)
    with three, st.container(border=True, key="way-search"):
        _search(good, target, begin)


def _compare(record: Record, goods: Sequence[Good], good: Good | None, begin: Begin) -> None:
    st.markdown("##### 1 · Compare with a good run or twin")
    st.caption("Free: no model is asked and nothing is run again.")
    if goods:
        _choose(goods, good)
    else:
        note("no other run asks the same question of the same documents yet")
    if good is not None:
        _about(good)
        page, query = compare_link(record.view.run_id, good.run.run_id)
        st.page_link(page, label=":blue[Compare the two runs]", query_params=query)
    usable = good is not None and good.same_cells
    with st.expander("Make a twin", expanded=not usable, key="way-twin"):
        job = twin_form(record)
        if job is not None:
            begin(job)


def _choose(goods: Sequence[Good], good: Good | None) -> None:
    by_id = {one.run.run_id: one for one in goods}
    options = [*by_id, NO_GOOD]
    now = good.run.run_id if good is not None else NO_GOOD
    if st.session_state.get("way-good") != now:
        st.session_state["way-good"] = now  # the address leads
    st.selectbox(
        "Good run, of those that ask the same", options, key="way-good", on_change=_chosen,
        format_func=lambda run_id: good_title(by_id[run_id]) if run_id in by_id else "no good run",
    )  # fmt: skip


def _chosen() -> None:
    st.query_params[GOOD] = st.session_state["way-good"]


def _about(good: Good) -> None:
    if not good.same_cells:
        note("its root wrote other code, so single calls cannot be compared: make a twin of this run instead")
    elif good.same_answer:
        note("it gives the same answer as this run")
    elif good.right is False:
        note("its answer is said to be wrong")
    elif good.right is None:
        note("nobody has said that its answer is right; here it is taken to be")


def _search(good: Good | None, target: Job, begin: Begin) -> None:
    st.markdown("##### 3 · Find minimal cause")
    st.caption("Tries out which calls or code must be other for the answer to be right.")
    plain.text(_goal(good, target))
    left, middle, right = st.columns(3, gap="small")
    with left:
        replays = st.number_input("Replays", 1, 100_000, BUDGET.replays, key="way-replays")
    with middle:
        calls = st.number_input("Model calls", 0, 100_000, BUDGET.live_calls, key="way-calls")
    with right:
        usd = st.text_input("Dollars", key="way-usd", placeholder="no limit")
    mode = _mode("way-mode") if calls else "strict"
    job = Job(
        "diagnose", target.run_id, good=None if good is None else good.run.run_id, expected=target.expected,
        how=target.how, mode="recompute" if mode == "recompute" else "strict", replays=int(replays),
        live_calls=int(calls), usd=usd.strip() or None,
    )  # fmt: skip
    st.caption(_stated(job))
    if st.button("Find minimal cause", type="primary", key="way-start"):
        begin(job)


def _mode(key: str) -> str:
    return st.selectbox("Mode", list(_MODES), key=key, format_func=_MODES.__getitem__)


def _stated(job: Job) -> str:
    """The budget before anything is spent; nothing of it is free text."""
    calls = job.live_calls
    words = budget_words(Budget(job.replays, calls, None))
    limit = "" if job.usd is None else ", with the limit in dollars above"
    return f"Budget: {words}{limit}." + ("" if calls else " It costs nothing but time.")


def _goal(good: Good | None, target: Job) -> str:
    if target.expected is not None:
        return f"Wanted: the expected answer, {_short(target.expected)} ({explain(target.how)})."
    if good is not None:
        return f"Wanted: the answer of the good run, {_short(good.run.answer or '')}."
    return "Wanted: no answer is known. Suspects are tried, and which of them move the answer is said."


def _short(text: str) -> str:
    even = " ".join(text.split())
    return f"“{even if len(even) <= 80 else even[:79] + '…'}”"
