"""The diagnosis that the address names: while it goes on, its trials as they come and a way to stop it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.diagnosis_log import new_diagnosis_id, stop_file
from traces.diagnosis_state import State
from traces.home import Home
from ui.figures import counted, duration
from ui.web import diagnose_jobs, plain
from ui.web.diagnose_history import DIAGNOSIS, task_words
from ui.web.diagnose_jobs import Job, Progress
from ui.web.diagnose_words import budget_words
from ui.web.diagnosis_view import diagnosis_view
from ui.web.notices import problem
from ui.web.run_record import Record
from ui.web.theme import CALM
from ui.web.trials_view import trials_view
from ui.web.ways import way

_PERIOD: Final = 0.5  # seconds between two looks
_AT_ONCE: Final = 1.5  # seconds that a page waits, so that a short job needs no picture of its work
_PROBLEM: Final = "diagnose-problem"  # in the session: why a job could not be stopped
_DONE: Final = "diagnose-double"  # in the session: the last job that was started, and when
_SAME_CLICK: Final = 3.5  # seconds in which the same job, started again, is a double click


def begin(home: Home, job: Job) -> None:
    """Start a job and show it; what prevents that is said."""
    last = st.session_state.get(_DONE)
    if last is not None and last[0] == job and time.monotonic() - last[1] < _SAME_CLICK:
        st.query_params[DIAGNOSIS] = last[2]
        st.rerun()
    ticket = new_diagnosis_id()
    # before it starts: a second click ends this script at the next word with the session
    st.session_state[_DONE] = (job, time.monotonic(), ticket)
    try:
        diagnose_jobs.start(home, job, ticket)
        diagnose_jobs.wait(home, ticket, _AT_ONCE)
    except RLMScopeError as error:
        st.session_state.pop(_DONE, None)
        problem(error)
        return
    st.query_params[DIAGNOSIS] = ticket
    st.rerun()


def shown(record: Record, test: Callable[[str], None]) -> bool:
    """Draw the diagnosis of the address; False, and nothing is drawn, when it names none."""
    asked = st.query_params.get(DIAGNOSIS)
    if asked is None:
        return False
    home = record.home
    now = diagnose_jobs.look(home, asked)
    if now is None or (now.state is not None and now.state.run_id != record.view.run_id):
        problem(f"There is no diagnosis “{asked[:60]}” of this run.")
    elif now.working:
        st.html(CALM)
        st.fragment(_working, run_every=_PERIOD)(record, asked)
    elif now.state is None:
        problem(now.error or "the job did not begin")
    else:
        if now.error is not None and now.state.status != "failed":
            problem(now.error)
        diagnosis_view(record, now.state, test, partial(_prove, record, asked))
        if now.state.about is not None:
            way(":blue[Open the diagnosis that it belongs to]", "diagnosis-about", _open, now.state.about)
    st.button("Close this diagnosis", key="diagnosis-close", type="tertiary", on_click=_close)
    return True


def _prove(record: Record, asked: str, span_ids: Sequence[str]) -> None:
    begin(
        record.home,
        Job("prove", record.view.run_id, mode="frozen", replays=len(span_ids), spans=span_ids, about=asked),
    )


def _open(diagnosis_id: str) -> None:
    st.query_params[DIAGNOSIS] = diagnosis_id


def _close() -> None:
    st.query_params.pop(DIAGNOSIS, None)


def _working(record: Record, ticket: str) -> None:
    """The picture of a job at work. When it is over the whole page is drawn again, without this timer."""
    try:
        now = diagnose_jobs.look(record.home, ticket)
    except RLMScopeError as error:
        problem(error)
        return
    if now is None or not now.working:
        st.rerun()
    with st.container(border=True, key="diagnosis-working"):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.badge("running", color="blue")
            with st.container(width="stretch"):
                plain.text(_stage(now))
            _cancel(record.home, ticket)
        if now.state is not None:
            _so_far(record, now.state)


def _stage(now: Progress) -> str:
    if now.state is None:
        return "Its process is starting."
    words = now.state.stage or f"working on {task_words(now.state)}"
    return words[0].upper() + words[1:].removesuffix(".") + "."


def _so_far(record: Record, state: State) -> None:
    count = len(state.trials)
    share = min(1.0, count / max(1, state.budget.replays))
    words = f"{counted(count, 'replay')} so far; {budget_words(state.budget)}; {_elapsed(state)}"
    if state.task == "diagnose":
        st.progress(share, words)
    trials_view(record.view, state.trials, key="trials-so-far")


def _elapsed(state: State) -> str:
    try:
        began = datetime.fromisoformat(state.started)
        return duration(max(0.0, (datetime.now(UTC) - began).total_seconds()))
    except (ValueError, TypeError):
        return "an unknown time"


def _cancel(home: Home, ticket: str) -> None:
    if (complaint := st.session_state.pop(_PROBLEM, None)) is not None:
        problem(complaint)
    if stop_file(home, ticket).exists():
        st.text("Stopping: what was found until now is kept.")
    else:
        st.button("Cancel", key="diagnosis-cancel", on_click=_stop, args=(home, ticket))


def _stop(home: Home, ticket: str) -> None:
    try:
        diagnose_jobs.cancel(home, ticket)
    except (RLMScopeError, OSError) as error:
        st.session_state[_PROBLEM] = error
