"""Deleting runs from the Runs page: asked for, confirmed, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.imported import asked_words
from traces.reading import RunSummary
from traces.upkeep import delete_runs
from ui.figures import counted
from ui.web import plain, runs_filters
from ui.web.notices import said
from ui.web.samples import example_note

_ASKED: Final = "runs-delete"  # in the session: ids of the runs whose deletion is to be confirmed
_SAID: Final = "runs-said"  # (word, colour, sentence) of what became of the last deletion
_NAMED: Final = 10


def ask(run_ids: Sequence[str]) -> None:
    """Ask whether these runs are to go; nothing is done yet."""
    st.session_state[_ASKED] = tuple(run_ids)
    st.session_state.pop(_SAID, None)


def confirm(home: Home, runs: Sequence[RunSummary]) -> None:
    """The second step of a deletion that was asked for, and what became of the last one."""
    for word, colour, sentence in st.session_state.get(_SAID, ()):
        said(word, colour, sentence)
    asked: tuple[str, ...] = st.session_state.get(_ASKED, ())
    if not asked:
        return
    known = {run.run_id: run for run in runs}
    with st.container(border=True, key="runs-delete-box"):
        many = f"these {len(asked)} runs" if len(asked) > 1 else "this run"
        st.markdown(f"**Delete {many} for good?** The record goes and cannot be brought back.")
        plain.text("\n".join(_named(run_id, known.get(run_id)) for run_id in asked[:_NAMED]))
        if len(asked) > _NAMED:
            st.caption(f"and {len(asked) - _NAMED:,} more")
        with st.container(horizontal=True):
            st.button(
                "Delete for good", key="runs-delete-sure", type="primary", on_click=_delete,
                args=(home, asked),
            )  # fmt: skip
            st.button("Keep", key="runs-delete-keep", on_click=_keep)


def _named(run_id: str, run: RunSummary | None) -> str:
    question = " ".join((asked_words(run) if run else "(the question is not recorded)").split())[:120]
    return f"{run_id}  {question}" + ("  (an example)" if example_note(run_id) else "")


def _keep() -> None:
    st.session_state.pop(_ASKED, None)


def _delete(home: Home, run_ids: tuple[str, ...]) -> None:
    st.session_state.pop(_ASKED, None)
    try:
        report = delete_runs(home, run_ids)
    except RLMScopeError as error:
        st.session_state[_SAID] = [("Problem", "red", error)]
        return
    runs_filters.choose(())
    gone = run_ids[0] if len(run_ids) == 1 else counted(len(run_ids), "run")
    st.session_state[_SAID] = [("Deleted", "green", gone), *(("Note", "gray", n) for n in report.notices)]
