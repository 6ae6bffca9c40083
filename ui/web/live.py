"""One run on the Ask page: how far its start has come, a live picture while it works, then what came out.

All state lives in the home: a reload, another tab and a new start of the app show the same. Only the picture
of a working run is drawn again by itself, as a fragment, and only while it works.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import streamlit as st

from rlm_core import semconv as sc
from rlm_core.errors import InputError, RecordError, RLMScopeError
from traces.home import Home
from traces.imported import asked_words
from traces.reading import RunView, SpoolRun
from ui.control import cancel_file
from ui.figures import duration, total_tokens
from ui.web import launch, outcome, plain, run_record
from ui.web.notices import note, problem
from ui.web.run_header import fact
from ui.web.run_words import Where, cost_words, where
from ui.web.theme import CALM

PERIOD: Final = 1.0  # seconds between two pictures
_CODE_HEIGHT: Final = 220  # pixels
_SPOOL: Final = "live-spool"  # in the session: (run id, its spool reader), which reads only what is new


def panel(home: Home, run_id: str, again: Callable[[str], None]) -> bool:
    """Show a run; False when there is none, which is said. `again` is called with the run's corpus id when
    the user wants to ask on that corpus again.
    """
    try:
        if _is_live(home, run_id):
            st.html(CALM)
            st.fragment(_live, run_every=PERIOD)(home, run_id)
            return True
        st.session_state.pop(_SPOOL, None)
        return _ended(home, run_id, again)
    except RLMScopeError as error:
        problem(error)
        return False


def _is_live(home: Home, run_id: str) -> bool:
    from traces.ingest import is_open

    started = launch.launch_state(home, run_id)
    return started.state == "starting" or (started.state == "recorded" and is_open(home, run_id))


def _ended(home: Home, run_id: str, again: Callable[[str], None]) -> bool:
    """What came of a run that is over, or why there is none."""
    started = launch.launch_state(home, run_id)
    try:
        record = run_record.open_record(home, run_id)
    except InputError as error:
        problem(started.error or error)
        return False
    for remark in record.said:
        note(remark)
    outcome.show(home, record, started.error, again)
    return True


def _live(home: Home, run_id: str) -> None:
    """The picture of a run at work. When it is over the whole page is drawn again, without this timer."""
    if not _is_live(home, run_id):
        st.rerun()
    with st.container(border=True):
        if launch.launch_state(home, run_id).state == "starting":
            st.badge("starting", color="blue")
            st.text("The process of this run is starting.")
        else:
            try:
                _picture(_view(home, run_id))
            except RecordError as error:
                problem(error)
        cancel(home, run_id)


def _view(home: Home, run_id: str) -> RunView:
    known = st.session_state.get(_SPOOL)
    if known is None or known[0] != run_id:
        known = st.session_state[_SPOOL] = (run_id, SpoolRun(home, run_id))
    view: RunView = known[1].poll()
    return view


def _picture(view: RunView) -> None:
    run, now = view.summary, where(view)
    st.badge("running", color="blue")
    plain.bounded(asked_words(run), key="live-question", file_name="question.txt")
    seconds = max(0.0, time.time() - run.started_ns / 1e9) if run.started_ns else run.seconds or 0
    with st.container(horizontal=True, gap="medium"):
        fact("Elapsed", duration(seconds) if seconds >= 60 else f"{seconds:.0f} s")
        fact("Iterations", f"{now.iterations} of {now.most:,}" if now.most else str(now.iterations))
        fact("Sub-calls done", f"{now.done:,}")
        fact("Running", f"{now.running:,}")
        fact("Failed", f"{now.failed:,}")
        fact("Tokens", total_tokens(run.tokens, run.untold_calls))
        fact("Cost", cost_words(run))
    st.text(_phase(now))
    if now.cell is not None:
        digest = now.cell.attributes.get(sc.CODE + ".sha256")
        code = view.payload(digest) if isinstance(digest, str) else None
        if code:
            plain.code(code, "python", height=_CODE_HEIGHT)


def _phase(now: Where) -> str:
    words = now.phase.capitalize()
    if now.cell is not None and now.cell.cell is not None:
        words += f": cell {now.cell.cell}"
    if now.depth:
        words += f", with a child run at depth {now.depth}"
    return words + "."


def cancel(home: Home, run_id: str) -> None:
    """The button that stops a run at work, or that it is being stopped."""
    if cancel_file(home, run_id).exists():
        st.text("Cancelling: calls that are on their way are given up.")
        return
    if st.button("Cancel the run", key="live-cancel"):
        try:
            launch.cancel_run(home, run_id)
        except (RLMScopeError, OSError) as error:
            problem(error)
            return
        st.rerun()
