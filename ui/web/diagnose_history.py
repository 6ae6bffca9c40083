"""Earlier diagnoses of a run, and the replays that a person started, as rows."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.diagnosis_log import folder, read_diagnosis
from traces.diagnosis_state import State
from traces.home import Home
from traces.locks import is_held
from ui.figures import duration
from ui.web.diagnose_words import OUTCOME, STATUS, VERDICT, badge, spent_words
from ui.web.listing import moment
from ui.web.places import diagnose_link, href
from ui.web.rows_view import Cell, Column, Item, rows_view
from ui.web.run_record import Record

DIAGNOSIS: Final = "diagnosis"  # in the address
_KEPT: Final = 500  # logs whose content is kept in memory
_MOST: Final = 50
_COLUMNS: Final = (
    Column("Started", 130),
    Column("What", 150),
    Column("Status", 90),
    Column("Found", 130),
    Column("In words", None),
    Column("Took", 210),
    Column("Time", 76, right=True),
)


def kept_diagnoses(home: Home, run_id: str) -> list[State]:
    """The diagnoses of a run, newest first; each log is read anew only when it has grown."""
    found = []
    for path in sorted(folder(home).glob("*.jsonl"), key=lambda one: one.name, reverse=True):
        with suppress(OSError):
            now = path.stat()
            alive = is_held(path.with_suffix(".lock"))
            state = _state(home, path.stem, now.st_size, now.st_mtime_ns, alive)
            if state is not None and state.run_id == run_id:
                found.append(state)
    return found


@lru_cache(maxsize=_KEPT)
def _state(home: Home, diagnosis_id: str, _size: int, _mtime_ns: int, _alive: bool) -> State | None:
    with suppress(RLMScopeError):
        return read_diagnosis(home, diagnosis_id)
    return None


def earlier(home: Home, record: Record) -> None:
    """Draw what was done before about a run; nothing when nothing was."""
    shown = st.query_params.get(DIAGNOSIS)
    listed = [state for state in kept_diagnoses(home, record.view.run_id) if state.diagnosis_id != shown]
    if not listed:
        return
    st.markdown("##### Earlier diagnoses of this run")
    rows = [_row(state) for state in listed[:_MOST]]
    rows_view(rows, _COLUMNS, key="diagnoses", label="Earlier diagnoses of this run", on_open=_open)
    if len(listed) > _MOST:
        st.caption(f"The newest {_MOST} of {len(listed):,}.")


def _open(diagnosis_id: str) -> None:
    st.query_params[DIAGNOSIS] = diagnosis_id


def _row(state: State) -> Item:
    link = diagnose_link(state.run_id)
    link[1][DIAGNOSIS] = state.diagnosis_id
    found = state.diagnosis or {}
    cells: list[Cell] = [
        _moment(state),
        task_words(state),
        badge(STATUS, state.status),
        _found(state),
        str(found.get("words") or state.reason or ""),
        _took(state),
        duration(state.seconds) if state.status != "running" else "",
    ]
    return Item(state.diagnosis_id, cells, href(link))


def _moment(state: State) -> str:
    try:
        return moment(datetime.fromisoformat(state.started), st.context.timezone)
    except ValueError:
        return "unknown"


def task_words(state: State) -> str:
    """What a job was to do, in words of ours."""
    if state.task == "diagnose":
        return "minimal cause"
    if state.task == "prove":
        return "proof of edges"
    return "a twin" if is_twin(state) else "a replay"


def is_twin(state: State) -> bool:
    """Whether a job asked all sub-calls of the run again, and replaced nothing."""
    return state.task == "replay" and state.mode == "live" and state.span_id is None


def _found(state: State) -> Cell:
    if state.diagnosis is not None:
        return badge(VERDICT, state.diagnosis.get("verdict"))
    if state.task == "prove":
        moved = sum(trial.get("outcome") in ("fixed", "moved") for trial in state.trials)
        return f"{moved:,} move the answer" if state.trials else ""
    return badge(OUTCOME, state.trials[-1].get("outcome")) if state.trials else ""


def _took(state: State) -> str:
    if state.diagnosis is not None:
        found = state.diagnosis
        return spent_words(found.get("replays"), found.get("live_calls"), found.get("cost_usd"))
    calls = [trial.get("live_calls") for trial in state.trials]
    usd = state.trials[-1].get("cost_usd") if len(state.trials) == 1 else None
    return spent_words(len(calls), sum(c for c in calls if type(c) is int), usd)
