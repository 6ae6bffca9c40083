"""The run a page shows, kept for the session: read once when it has ended, polled while it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import streamlit as st

from rlm_core.errors import InputError
from traces.home import Home
from traces.reading import RunView, SpoolRun, load_run, resolve_run
from traces.user_log import deleted_runs
from ui.web.tree_rows import TreeRows, tree_rows

_KEPT: Final = "run-record"  # in the session: one run, the last that was looked at


@dataclass(slots=True)
class Record:
    """A run as it was last read. `said` are sentences about reading it; `spool` is there while it goes on."""

    view: RunView
    rows: TreeRows
    spool: SpoolRun | None = None
    said: list[str] = field(default_factory=list)


def full_id(home: Home, ref: str) -> str:
    """The id of the run that an address names: a full id, the beginning of one, or "last".

    Raises InputError when it names none or several.
    """
    kept = st.session_state.get(_KEPT)
    if isinstance(kept, Record) and kept.view.run_id == ref:
        return ref
    return resolve_run(home, ref, warn=_unsaid)


def _unsaid(_sentence: str) -> None:
    """The same sentences come again when the run itself is read."""


def open_record(home: Home, run_id: str) -> Record:
    """The run, read anew only when there is something new to read.

    Raises InputError when it is not there (any more), RecordError when its record cannot be read.
    """
    kept = st.session_state.get(_KEPT)
    if not isinstance(kept, Record) or kept.view.run_id != run_id:
        kept = _read(home, run_id)
    elif run_id in deleted_runs(home):
        st.session_state.pop(_KEPT)
        raise InputError(f"The run {run_id} has been deleted.")
    elif kept.spool is not None:
        kept = _polled(home, kept, kept.spool)
    st.session_state[_KEPT] = kept
    return kept


def forget() -> None:
    """Read the run anew at the next look."""
    st.session_state.pop(_KEPT, None)


def _read(home: Home, run_id: str) -> Record:
    said: list[str] = []
    view = load_run(home, run_id, warn=said.append)
    if view.live:
        spool = SpoolRun(home, run_id)
        view = spool.poll()
        return Record(view, tree_rows(view), spool, said)
    return Record(view, tree_rows(view), None, said)


def _polled(home: Home, kept: Record, spool: SpoolRun) -> Record:
    view = spool.poll()
    if not view.live:
        return _read(home, view.run_id)
    return Record(view, tree_rows(view), spool, kept.said)
