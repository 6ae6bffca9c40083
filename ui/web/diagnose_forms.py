"""What may be done to find the call that broke an answer: three offers in the order of what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from traces.diff import Diff
from traces.imported import not_again
from traces.same_answer import explain
from traces.trial import Budget
from ui.figures import counted
from ui.web import plain
from ui.web.diagnose_jobs import BUDGET, Job
from ui.web.diagnose_words import budget_words
from ui.web.good_runs import Against, Good, Offer, good_title
from ui.web.notices import note
from ui.web.places import Link
from ui.web.run_record import Record
from ui.web.span_text_form import span_text_form
from ui.web.twin_form import twin_form

GOOD: Final = "good"  # in the address
NO_GOOD: Final = "none"  # its value for: without a good run
_LIVE: Final = "For prompts that no record holds, and to ask the root where it wrote the answer itself."
Begin = Callable[[Job], None]


def compare_link(run_id: str, good: str) -> Link:
    """The page that compares the two runs."""
    return "pages/compare.py", {"a": run_id, "b": good}


def forms(record: Record, offer: Offer, against: Against | None, target: Job, begin: Begin) -> None:
    """Draw the three offers. `target` holds what answer is wanted; `begin` starts a job."""
    good = None if against is None else against.good
    one, two, three = st.columns(3, gap="medium")
    with one, st.container(border=True, key="way-compare"):
        _compare(record, offer, against, begin)
    if (why := not_again(record.view.summary)) is not None:
        _switched_off(two, three, why)
        return
    with two, st.container(border=True, key="way-test"):
        st.markdown("##### 2 · Test this sub-answer")
        st.caption("One replay with another text, mostly in a second. Free, unless a model is to be asked.")
        job = span_text_form(record, against, target)
        if job is not None:
            begin(job)
    with three, st.container(border=True, key="way-search"):
        _search(good, target, begin)


def _switched_off(two: DeltaGenerator, three: DeltaGenerator, why: str) -> None:
    """The two ways that play a run again, with the reason why this one cannot be."""
    for column, words in ((two, "2 · Test this sub-answer"), (three, "3 · Find minimal cause")):
        with column, st.container(border=True):
            st.markdown(f"##### {words}")
            note(why)
            st.button(words.split(" · ")[1], disabled=True, key=f"way-off-{words[0]}")


def _compare(record: Record, offer: Offer, against: Against | None, begin: Begin) -> None:
    st.markdown("##### 1 · Compare with a good run or twin")
    st.caption("Free: no model is asked and nothing is run again.")
    if offer.goods:
        _choose(offer.goods, against)
    else:
        note("No other run asks the same question of the same documents yet")
    if offer.left_out:
        st.caption(f"{offer.left_out:,} more ask the same; the Runs page can compare any two.")
    if against is not None:
        _about(against.good)
        if against.difference is not None:
            plain.text(difference_words(against.difference))
        page, query = compare_link(record.view.run_id, against.good.run.run_id)
        st.page_link(page, label=":blue[Compare the two runs]", query_params=query)
    if not_again(record.view.summary) is not None:
        return
    usable = against is not None and against.good.same_cells
    with st.expander("Make a twin", expanded=not usable, key="way-twin"):
        job = twin_form(record)
        if job is not None:
            begin(job)


def difference_words(found: Diff) -> str:
    """What a comparison found, in a sentence of ours: a glance without any replay."""
    if found.plan is not None:
        return "The roots wrote other code, so single calls are not compared."
    calls = sum(row.kind != "cell" for row in found.frontier)
    cells = len(found.frontier) - calls
    after = found.counts["downstream"]
    parts = [f"{counted(calls, 'call')} asked the same and answered differently"] if calls else []
    parts += [f"{counted(cells, 'cell')} with other code"] if cells else []
    begins = " and ".join(parts) or "no call that was asked the same and answered differently"
    rest = f"; {counted(after, 'row')} of the tree differ only because of what came before" if after else ""
    return f"The difference begins in {begins}{rest}."


def _choose(goods: Sequence[Good], against: Against | None) -> None:
    by_id = {one.run.run_id: one for one in goods}
    options = [*by_id, NO_GOOD]
    now = against.good.run.run_id if against is not None else NO_GOOD
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
        note("Its root wrote other code, so single calls cannot be compared: make a twin of this run instead")
    elif good.typed:
        note(
            "A twin of this run whose sub-calls were answered differently. Its answer is the same because "
            "the root had typed it, so what both runs showed the root is compared"
        )
    elif good.same_answer:
        note("It gives the same answer as this run")
    elif good.right is False:
        note("Its answer is said to be wrong")
    elif good.right is None:
        note("Nobody has said that its answer is right; here it is taken to be")


def _search(good: Good | None, target: Job, begin: Begin) -> None:
    st.markdown("##### 3 · Find minimal cause")
    st.caption("Tries out which calls or code must be other for the answer to be right.")
    plain.text(_goal(good, target))
    left, middle, right = st.columns(3, gap="small")
    with left:
        replays = st.number_input("Replays", 1, 100_000, BUDGET.replays, key="way-replays")
    with middle:
        calls = st.number_input("Model calls", 0, 100_000, BUDGET.live_calls, key="way-calls", help=_LIVE)
    with right:
        usd = st.text_input("Dollars", key="way-usd", placeholder="no limit")
    job = Job(
        "diagnose", target.run_id, good=None if good is None else good.run.run_id, expected=target.expected,
        how=target.how, mode="recompute" if calls else "strict", replays=int(replays), live_calls=int(calls),
        usd=usd.strip() or None,
    )  # fmt: skip
    st.caption(_stated(job))
    if st.button("Find minimal cause", type="primary", key="way-start"):
        begin(job)


def _stated(job: Job) -> str:
    """The budget before anything is spent; nothing of it is free text."""
    limit = "" if job.usd is None else ", with the limit in dollars above"
    words = budget_words(Budget(job.replays, job.live_calls, None))
    return f"Budget: {words}{limit}." + ("" if job.live_calls else " It costs nothing but time.")


def _goal(good: Good | None, target: Job) -> str:
    if target.expected is not None:
        return f"Wanted: the expected answer, {_short(target.expected)} ({explain(target.how)})."
    if good is not None and not good.typed:
        return f"Wanted: the answer of the good run, {_short(good.run.answer or '')}."
    if good is not None:
        return (
            "Wanted: what the twin showed the root. The expected answer, which nobody has said, tells more."
        )
    return "Wanted: no answer is known. Suspects are tried, and which of them move the answer is said."


def _short(text: str) -> str:
    even = " ".join(text.split())
    return f"“{even if len(even) <= 80 else even[:79] + '…'}”"
