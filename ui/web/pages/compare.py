"""The Compare page: `/compare?a=ID&b=ID`. Answers, aligned trees, totals and settings of two runs."""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.imported import asked_words
from traces.questions import asked
from traces.reading import RunSummary, list_runs, resolve_run
from ui.visible import fit, line
from ui.web.compare_pair import open_pair
from ui.web.compare_view import comparison
from ui.web.notices import note, problem
from ui.web.runs_table import started

_OFFERED: Final = 500  # runs to choose the other one from
_STYLE: Final = """
<style>
.st-key-compare-A pre, .st-key-compare-B pre { max-height: 20rem; overflow-y: auto; }
</style>
"""


def page() -> None:
    """Show the two runs of the address, or let the missing one be chosen."""
    st.html(_STYLE)
    home = Home.resolve()
    refs = {name: st.query_params.get(name, "") for name in "ab"}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("#### Two runs side by side")
        if all(refs.values()):
            st.button("Swap", on_click=_swap, args=(refs,))
            st.button("Another B", on_click=_without, args=("b",))
    if not refs["a"]:
        st.text("Choose two runs on the Runs page, or one here.")
        st.page_link("pages/runs.py", label="Runs")
    try:
        ids = {name: resolve_run(home, ref, warn=note) for name, ref in refs.items() if ref}
        if len(ids) < 2:
            _choose(list_runs(home, warn=note), ids.get("a"), "b" if refs["a"] else "a")
            return
        with st.spinner("Reading the runs"):
            pair = open_pair(home, ids["a"], ids["b"])
    except RLMScopeError as error:
        problem(error)
        st.page_link("pages/runs.py", label="All runs")
        return
    if ids["a"] == ids["b"]:
        note("This is the same run twice.")
    comparison(pair)


def _choose(runs: list[RunSummary], other: str | None, name: str) -> None:
    """Offer the runs; those that ask the same as the run that is chosen already come first."""
    known = {run.run_id: run for run in runs if run.run_id != other}
    question = next((asked(run) for run in runs if run.run_id == other), None)
    offered = sorted(known, key=lambda run_id: asked(known[run_id]) != question)
    if not offered:
        st.text("There is no other run yet.")
        return
    zone = st.context.timezone
    st.selectbox(
        f"Run {name.upper()}, those that ask the same first" if question else f"Run {name.upper()}",
        offered[:_OFFERED], index=None, key=f"compare-{name}-choice", on_change=_chose, args=(name,),
        format_func=lambda run_id: _title(known[run_id], zone),
    )  # fmt: skip
    if len(offered) > _OFFERED:
        st.caption(f"{_OFFERED} of {len(offered):,} runs are offered here; choose any two on the Runs page.")


def _title(run: RunSummary, zone: str | None) -> str:
    question = fit(line(asked_words(run)), 100)
    answer = "" if run.answer is None else f" → {fit(line(run.answer), 40)}"
    return line(f"{started(run, zone)} · {question}{answer} · {run.run_id[-8:]}")


def _chose(name: str) -> None:
    if run_id := st.session_state[f"compare-{name}-choice"]:
        st.query_params[name] = run_id


def _swap(refs: dict[str, str]) -> None:
    st.query_params.update({"a": refs["b"], "b": refs["a"]})


def _without(name: str) -> None:
    del st.query_params[name]


page()
