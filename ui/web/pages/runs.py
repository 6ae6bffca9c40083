"""The Runs page: every run of the home, newest first; open one, or delete it for good."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.reading import RunSummary, list_runs
from traces.upkeep import delete_run
from ui.figures import counted
from ui.web import listing, plain, runs_table
from ui.web.notices import note, problem, said
from ui.web.run_words import COLOURS

_PERIOD = 2.0  # seconds between two looks while a run is at work
_ARMED = "runs-armed"  # in the session: whether the list looks again by itself
_SHOWN = "runs-shown"  # the ids of the rows on the page
_ASKED = "runs-delete"  # the run whose deletion was asked for and is to be confirmed
_SAID = "runs-said"  # (word, colour, sentence) of what became of the last deletion
_OPEN = "runs-open"  # the run to go to
_WIDTHS = {  # pixels; together they fit a window of 1280, a wider one spreads them
    "Question": 275,
    "Answer": 150,
    "Models": 150,
    "Sub-calls": 72,
    "Failed": 54,
    "Cost": 82,
    "Time": 75,
    "Started": 121,
}
_RIGHT = ("Sub-calls", "Failed", "Cost", "Time")


def page() -> None:
    """Show the page for the home of `$RLMSCOPE_HOME`."""
    st.markdown("#### Runs")
    every = _PERIOD if st.session_state.get(_ARMED) else None
    st.fragment(_list, run_every=every)(Home.resolve())


def _list(home: Home) -> None:
    try:
        runs = list_runs(home, warn=note)
    except RLMScopeError as error:
        problem(error)
        return
    if run_id := st.session_state.pop(_OPEN, None):
        st.switch_page("pages/run.py", query_params={"run": run_id})
    at_work = any(run.status == "running" for run in runs)
    if at_work != st.session_state.get(_ARMED, False):
        st.session_state[_ARMED] = at_work
        st.rerun()
    _confirm(home, runs)
    if not runs:
        st.text("There are no runs yet. A run appears here as soon as a question is asked.")
        st.page_link("pages/ask.py", label="Ask a question")
        return
    found = _filtered(runs)
    if not found:
        st.text("No run fits this filter.")
        return
    _table(found)


def _filtered(runs: list[RunSummary]) -> list[RunSummary]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Filter", key="runs-text", placeholder="words in question, answer, model or run id",
            type="search", live=True, persist_state="session",
        )  # fmt: skip
        status = st.selectbox(
            "Status", ["any", *COLOURS], key="runs-status", width=180, persist_state="session"
        )
        st.button("Refresh", key="runs-refresh")
    found = runs_table.matching(runs, text or "", None if status == "any" else status)
    shown = counted(len(runs), "run") if len(found) == len(runs) else f"{len(found):,} of {len(runs):,} runs"
    at_work = sum(run.status == "running" for run in runs)
    st.caption(shown + (f", {at_work:,} at work" if at_work else ""))
    return found


def _table(found: list[RunSummary]) -> None:
    pages = listing.pages(len(found))
    key = f"runs-page-of-{pages}"  # a list of another length begins at its first page
    shown = listing.page_of(found, st.session_state.get(key) or 1)
    st.session_state[_SHOWN] = [run.run_id for run in shown]
    zone = st.context.timezone
    rows = [{"Open": "Open", **runs_table.row(run, zone), "Delete": "Delete"} for run in shown]
    frame = plain.frame(rows)
    frame["Status"] = [[word] for word in frame["Status"]]
    st.dataframe(
        frame,
        hide_index=True,
        key="runs-table",
        lazy=False,
        height="content",
        column_config=_columns(),
        alt="Runs, newest first",
    )
    if pages > 1:
        st.pagination(pages, key=key)


def _columns() -> dict[str, Any]:
    config: dict[str, Any] = {
        name: st.column_config.Column(width=width, alignment="right" if name in _RIGHT else None)
        for name, width in _WIDTHS.items()
    }
    config["Status"] = st.column_config.MultiselectColumn(
        width=100, options=list(COLOURS), color=list(COLOURS.values())
    )
    for name, key in (("Open", _OPEN), ("Delete", _ASKED)):
        config[name] = st.column_config.ButtonColumn(
            "", width=60, type="tertiary", key=f"{key}-click", on_click=_chosen, args=(key,)
        )
    return config


def _chosen(key: str) -> None:
    """A button in a row was clicked: keep the id of that row's run."""
    click = st.session_state[f"{key}-click"]
    shown = st.session_state.get(_SHOWN, [])
    if click is not None and 0 <= click["row"] < len(shown):
        st.session_state[key] = shown[click["row"]]
        st.session_state.pop(_SAID, None)


def _confirm(home: Home, runs: list[RunSummary]) -> None:
    """The second step of a deletion, and what became of the last one."""
    for word, colour, sentence in st.session_state.get(_SAID, ()):
        said(word, colour, sentence)
    run_id = st.session_state.get(_ASKED)
    if run_id is None:
        return
    run = next((run for run in runs if run.run_id == run_id), None)
    with st.container(border=True):
        st.markdown("**Delete this run for good?** Its record goes with it and cannot be brought back.")
        plain.text((run.question if run else None) or "(the question is not recorded)")
        plain.text(run_id)
        with st.container(horizontal=True):
            st.button(
                "Delete for good",
                key="runs-delete-sure",
                type="primary",
                on_click=_delete,
                args=(home, run_id),
            )
            st.button("Keep it", key="runs-delete-keep", on_click=_keep)


def _keep() -> None:
    st.session_state.pop(_ASKED, None)


def _delete(home: Home, run_id: str) -> None:
    st.session_state.pop(_ASKED, None)
    try:
        report = delete_run(home, run_id)
    except RLMScopeError as error:
        st.session_state[_SAID] = [("Problem", "red", error)]
        return
    st.session_state[_SAID] = [("Deleted", "green", run_id), *(("Note", "gray", n) for n in report.notices)]


page()
