"""The Runs page: every run of the home, newest first; filter, sort, open, compare, delete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.imported import asked_words
from traces.opinions import Opinions, opinions
from traces.questions import Question, questions
from traces.reading import RunSummary, list_runs
from ui.figures import counted
from ui.web import (
    listing,
    plain,
    run_export,
    run_import,
    runs_delete,
    runs_filters,
    runs_table,
    stored,
    training_data,
)
from ui.web.address import put
from ui.web.notices import note, problem
from ui.web.rows_view import rows_view

_PERIOD = 2.0  # seconds between two looks while a run is at work
_ARMED = "runs-armed"  # in the session: whether the list looks again by itself
_OPEN = "runs-open"  # the run to go to
_COMPARE = "runs-compare"  # the two runs to compare
_SEVERAL = "runs-several"  # the runs to be put side by side


def page() -> None:
    """Show the page for the home of `$RLMSCOPE_HOME`."""
    home = Home.resolve()
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("#### Runs", width="content")
        run_import.button()
    run_import.box(home)
    every = _PERIOD if st.session_state.get(_ARMED) else None
    st.fragment(_list, run_every=every)(home)


def _list(home: Home) -> None:
    try:
        with st.spinner("Reading the runs"):
            every, said = list_runs(home, replays=True, warn=note), opinions(home)
    except RLMScopeError as error:
        problem(error)
        return
    _leave()
    runs_filters.arrive()
    replays = sum(run.replay_of is not None for run in every)
    runs = every if runs_filters.with_replays() else [run for run in every if run.replay_of is None]
    at_work = any(run.status == "running" for run in runs)
    if at_work != st.session_state.get(_ARMED, False):
        st.session_state[_ARMED] = at_work
        st.rerun()
    runs_delete.confirm(home, runs)
    run_export.box(home)
    training_data.box(home)
    if not runs:
        if replays:
            runs_filters.replays_switch(replays)
        st.text("There are no runs yet. A run appears here as soon as a question is asked.")
        st.page_link("pages/ask.py", label="Ask a question")
        st.caption(run_import.HINT)
        return
    names = {info.corpus_id: info.name for info in stored.listed(home)}
    found = runs_table.matching(runs, wanted := runs_filters.wanted(runs, said, names), said)
    if wanted.same:
        _same(next(run for run in runs if run.run_id == wanted.same))
    groups = questions(found) if runs_filters.grouped() else None
    _bar(runs, found, groups, replays)
    if not found:
        st.text("No run fits these filters.")
        st.button("Show all runs", on_click=_all)
    elif groups is not None:
        _questions(groups, said, names)
    else:
        _runs(runs, found, said)


def _leave() -> None:
    """Go where a click in the table leads."""
    if run_id := st.session_state.pop(_OPEN, None):
        st.switch_page("pages/run.py", query_params={"run": run_id})
    if several := st.session_state.pop(_SEVERAL, None):
        st.switch_page("pages/strategies.py", query_params={"runs": ",".join(several)})
    if pair := st.session_state.pop(_COMPARE, None):
        st.switch_page("pages/compare.py", query_params=dict(zip("ab", pair, strict=True)))


def _all() -> None:
    st.query_params.clear()


def _same(run: RunSummary) -> None:
    """Say that only runs of one question are shown."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.badge("One question", color="blue")
        with st.container(width="stretch"):
            plain.text(asked_words(run)[:300])
        st.button("All questions", key="runs-all-questions", on_click=put, args=("same", ""))


def _bar(
    runs: Sequence[RunSummary], found: Sequence[RunSummary], groups: list[Question] | None, replays: int
) -> None:
    """How many are shown, and what can be done with those that are chosen; there are so many replays."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        every, at_work = counted(len(runs), "run"), sum(run.status == "running" for run in runs)
        shown = every if len(found) == len(runs) else f"{len(found):,} of {every}"
        asked = "" if groups is None else f" in {counted(len(groups), 'question')}"
        with st.container(width="stretch"):
            st.caption(shown + asked + (f", {at_work:,} at work" if at_work else ""))
        if replays or runs_filters.with_replays():
            runs_filters.replays_switch(replays)
        runs_filters.group_switch()
        if groups is None:
            _with_chosen(runs, found)
        st.button("Refresh", key="runs-refresh")


def _with_chosen(runs: Sequence[RunSummary], found: Sequence[RunSummary]) -> None:
    """Buttons that act on the chosen runs; those among them that the list does not show are counted."""
    named, there = runs_filters.chosen(), {run.run_id for run in runs}
    chosen = tuple(run_id for run_id in named if run_id in there)
    hidden = len(set(chosen) - {run.run_id for run in found})
    remarks = []
    if hidden:
        remarks.append(f"{hidden:,} not in this list")
    if gone := len(named) - len(chosen):
        remarks.append(f"{gone:,} more in the address that {'is' if gone == 1 else 'are'} of no run")
    if len(named) >= runs_filters.MOST_CHOSEN:
        remarks.append("no more can be chosen at once")
    if len(chosen) == 1:
        remarks.append("one more to compare")
    words = f"{len(chosen):,} chosen" if chosen else "none chosen"
    st.caption(f"{words} ({'; '.join(remarks)})" if remarks else words, width="content")
    st.button(
        "Compare", key="runs-compare-button", disabled=len(chosen) != 2, on_click=_compare, args=(chosen,),
        help="Two runs side by side: choose two.",
    )  # fmt: skip
    st.button(
        "Side by side", key="runs-several-button", disabled=len(chosen) < 2, on_click=_put_beside,
        args=(chosen,), help="What each took and said, by strategy.",
    )  # fmt: skip
    st.button(
        "Export…", key="runs-export-button", disabled=not chosen, on_click=run_export.ask, args=(chosen,),
        help="Files for people and other programs.",
    )  # fmt: skip
    st.button(
        "Training data…", key="runs-training-button", disabled=not chosen, on_click=training_data.ask,
        args=(chosen,),
    )  # fmt: skip
    st.button(
        "Delete…", key="runs-delete-button", disabled=not chosen, on_click=runs_delete.ask, args=(chosen,)
    )
    if chosen:
        st.button("Choose none", key="runs-choose-none", on_click=runs_filters.choose, args=((),))


def _compare(pair: tuple[str, ...]) -> None:
    st.session_state[_COMPARE] = pair


def _put_beside(run_ids: tuple[str, ...]) -> None:
    st.session_state[_SEVERAL] = run_ids


def _open(run_id: str) -> None:
    st.session_state[_OPEN] = run_id


def _runs(runs: Sequence[RunSummary], found: Sequence[RunSummary], said: Opinions) -> None:
    order = runs_filters.order()
    listed = runs_table.in_order(found, *order, said)
    zone, there = st.context.timezone, {run.run_id for run in runs}
    chosen = tuple(run_id for run_id in runs_filters.chosen() if run_id in there)

    def show(shown: Sequence[RunSummary]) -> None:
        rows_view(
            [runs_table.item(run, zone, said) for run in shown],
            runs_table.COLUMNS,
            key="runs-table",
            label="Runs",
            on_open=_open,
            chosen=chosen,
            on_choose=runs_filters.choose,
            sort=order,
            on_sort=runs_filters.set_order,
        )

    listing.paged(listed, show, key="runs", address="page")


def _questions(groups: Sequence[Question], said: Opinions, names: dict[str, str]) -> None:
    zone = st.context.timezone

    def show(shown: Sequence[Question]) -> None:
        make = partial(runs_table.question_item, zone=zone, said=said, corpora=names)
        rows_view(
            [make(question) for question in shown],
            runs_table.QUESTION_COLUMNS,
            key="questions-table",
            label="Questions",
            on_open=_runs_of,
        )

    listing.paged(groups, show, key="questions", address="page")


def _runs_of(run_id: str) -> None:
    """Show the runs that ask what this one asks."""
    put("group", "")
    put("same", run_id)


page()
