"""One regression set: a new check of it, what a check found of every run, and all checks that were made."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.check_log import Finding, PastCheck, ask_to_stop, checks, new_check_id, trend
from traces.home import Home
from traces.imported import asked_words
from traces.reading import RunSummary, list_runs
from traces.regression import CHECK_MODES, WHYS, Member, RegressionSet, regression_set
from ui.figures import counted, money
from ui.web import check_jobs, plain
from ui.web.listing import listing
from ui.web.notices import Colour, note, problem, said
from ui.web.places import href, run_link
from ui.web.rows_view import Cell
from ui.web.sets_list import verdict, when

GO: Final = "sets-go"  # in the session: (page, address) to go to
_STARTED: Final = "sets-started"  # the last check that was started from here, a `_Started`
_SAME_CLICK: Final = 5.0  # seconds in which the same check, started again, is a double click
_PERIOD: Final = 1.0  # seconds between two looks at a check
_AT_ONCE: Final = 3.0  # seconds that the page waits for a check to begin
_RESULTS: Final[dict[bool | None, tuple[str, Colour]]] = {
    True: ("passed", "green"),
    False: ("failed", "red"),
    None: ("undecided", "orange"),
}
_WIDTHS: Final = {"Result": 90, "Before that": 110, "Moved by": 120, "Undecided because": 300}
_CHECK_WIDTHS: Final = {"Check": 140, "Result": 220, "Mode": 80, "Runs": 60, "Calls": 70, "Cost": 90}


@dataclass(frozen=True, slots=True)
class _Started:
    """A check that was started from the page; `at` is of the monotonic clock."""

    job: check_jobs.Job
    at: float
    check_id: str


def details(home: Home, name: str) -> None:
    """Show the set. Raises InputError when there is none of that name."""
    chosen = regression_set(home, name)
    with st.container(key="set-name"):
        plain.text(name)
    st.caption(f"{counted(len(chosen.members), 'run')} whose right answer is known")
    for run_id, words in chosen.left_out:
        note(f"run {run_id} has the tag but is left out: {words}")
    _form(home, chosen)
    past = checks(home, name)
    _at_work(home, name, past)
    shown = _shown(past)
    if shown is None:
        st.text("This set was not checked yet.")
    else:
        _results(home, chosen, past, shown)
    if past:
        _history(past)


# -- a new check


def _form(home: Home, chosen: RegressionSet) -> None:
    with st.container(border=True, key="set-form"):
        mode = st.segmented_control(
            "What is done", list(CHECK_MODES), default="replay", required=True, key="set-mode",
            format_func={"replay": "Replay", "rerun": "Ask anew"}.__getitem__,
        )  # fmt: skip
        st.caption(f"{CHECK_MODES[mode].capitalize()}.")
        first, *roots, third, fourth = st.columns((2, 2, 1, 1) if mode == "rerun" else (4, 1, 1))
        default = "that of Settings, else of each run"
        sub = first.text_input("Sub-model", key="set-sub", placeholder=default, on_change="ignore")
        root = ""
        for column in roots:
            root = column.text_input("Root model", key="set-root", placeholder=default, on_change="ignore")
        calls = third.number_input(
            "Calls at most", min_value=1, value=None, key="set-calls", placeholder="no limit",
            on_change="ignore",
        )  # fmt: skip
        cost = fourth.text_input(
            "Dollars at most", key="set-cost", placeholder="no limit", on_change="ignore"
        )
        expected = sum(member.run.sub_calls for member in chosen.members)
        st.caption(f"About {counted(expected, 'sub-call')}, as many as the recorded runs made.")
        if st.button("Check now", key="set-check", type="primary"):
            _start(home, check_jobs.Job(chosen.name, mode, root.strip(), sub.strip(), calls, cost))


def _start(home: Home, job: check_jobs.Job) -> None:
    last = st.session_state.get(_STARTED)
    if last is None or last.job != job or time.monotonic() - last.at > _SAME_CLICK:
        check_id = new_check_id()
        # before it starts: a second click ends this script at the next word with the session
        st.session_state[_STARTED] = _Started(job, time.monotonic(), check_id)
        try:
            check_jobs.start(home, job, check_id)
        except RLMScopeError as error:
            st.session_state.pop(_STARTED, None)
            problem(error)
            return
        check_jobs.wait(home, check_id, _AT_ONCE)
    st.query_params.pop("check", None)
    st.rerun()


def _at_work(home: Home, name: str, past: Sequence[PastCheck]) -> None:
    """Every check that goes on, and one that never began."""
    for check in past:
        if check.status == "running":
            with st.container(border=True, key=f"check-{check.check_id}"):
                st.fragment(_moving, run_every=_PERIOD)(home, check.check_id)
    last = st.session_state.get(_STARTED)
    if last is None or last.job.name != name or any(check.check_id == last.check_id for check in past):
        return
    if check_jobs.is_starting(home, last.check_id):
        st.fragment(_beginning, run_every=_PERIOD)(home, last.check_id)
    else:
        problem("the check did not start; the folder of logs in the home says why")


def _beginning(home: Home, check_id: str) -> None:
    if not check_jobs.is_starting(home, check_id):
        st.rerun()
    st.text("The check begins.")


def _moving(home: Home, check_id: str) -> None:
    check = check_jobs.look(home, check_id)
    if check is None or check.status != "running":
        st.rerun()
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        done = len(check.findings)
        with st.container(width="stretch"):
            words = f"Checking: {done:,} of {counted(check.members, 'run')} done"
            st.progress(done / max(check.members, 1), words)
        st.button(
            "Stop the check", key=f"check-stop-{check_id}", on_click=ask_to_stop, args=(home, check_id),
            help="Stops after the run it is at. What was found until then is kept.",
        )  # fmt: skip


# -- what was found


def _shown(past: Sequence[PastCheck]) -> PastCheck | None:
    """The check that the address names, else the newest."""
    asked = st.query_params.get("check")
    found = next((check for check in past if check.check_id == asked), None)
    if asked and found is None:
        note(f"there is no check “{asked[:60]}” of this set")
    return found or (past[-1] if past else None)


def _results(home: Home, chosen: RegressionSet, past: Sequence[PastCheck], shown: PastCheck) -> None:
    cell = verdict(shown)
    st.markdown("##### What the check found")
    if isinstance(cell, tuple):
        models = ", ".join(f"{role} {model or 'as recorded'}" for role, model in shown.models.items())
        said(cell[0], cell[1], f"{when(shown)}, {CHECK_MODES.get(shown.mode, shown.mode)}; {models}")
    if shown.reason:
        problem(shown.reason)
    runs = {run.run_id: run for run in list_runs(home, replays=True)}
    before = past[: past.index(shown)]
    listing(
        chosen.members, lambda members: _rows(members, shown, before, runs), key="set-results",
        alt="Runs of the set", widths=_WIDTHS, address="page",
        href=lambda member: href(run_link(member.run.run_id)), button=("Open", _open_run),
    )  # fmt: skip
    changed = [
        (member, found)
        for member in chosen.members
        if (found := shown.of(member.run.run_id)) and found.changed and found.now_run_id in runs
    ]
    for member, found in changed[:10]:
        _ways(member, found)


def _open_run(member: Member) -> None:
    st.session_state[GO] = run_link(member.run.run_id)


def _rows(
    members: Sequence[Member],
    shown: PastCheck,
    before: Sequence[PastCheck],
    runs: Mapping[str, RunSummary],
) -> list[dict[str, Any]]:
    rows = []
    open_ = any(found.passed is None for found in shown.findings)
    for member in members:
        found = shown.of(member.run.run_id)
        now = runs.get(found.now_run_id or "") if found else None
        right, told = trend(before, member.run.run_id)
        rows.append(
            {
                "Question": asked_words(member.run),
                "Result": _result(found),
                "Should be": member.target.text,
                "Answer now": "" if now is None else now.answer or "none",
                "Recorded answer": member.run.answer or "none",
                "Moved by": _moved(found),
                **({"Undecided because": _because(found)} if open_ else {}),
                "Before that": f"right in {right:,} of {told:,}" if told else "not checked",
            }
        )
    return rows


def _result(found: Finding | None) -> Cell:
    return ("not checked", "gray") if found is None else _RESULTS.get(found.passed, _RESULTS[None])


def _moved(found: Finding | None) -> str:
    if found is None or not found.changed:
        return ""
    if not found.moved_by_now:
        return "not known"
    calls = counted(len(found.moved_by_now), "call")
    if found.proven or len(found.moved_by_now) == 1:
        return calls + (" (proven)" if found.proven else "")
    return f"some of {calls}"


def _because(found: Finding | None) -> str:
    if found is None or found.passed is not None:
        return ""
    return "this check did not keep it" if found.why is None else WHYS[found.why]


def _ways(member: Member, found: Finding) -> None:
    """From an answer that changed to the calls that moved it."""
    now, run_id = found.now_run_id or "", member.run.run_id
    with st.container(horizontal=True, vertical_alignment="center", key=f"moved-{run_id}"):
        with st.container(width="stretch"):
            plain.text(f"The answer changed: {asked_words(member.run)}")
        ways = [("Compare", "pages/compare.py", {"a": now, "b": run_id})]
        if found.moved_by_now:
            ways.append((_first(found), *run_link(now, found.moved_by_now[0])))
        for label, page, query in ways:
            st.page_link(page, label=label, query_params=query)


def _first(found: Finding) -> str:
    """The name of the way to the first call that moved the answer, or may have where nothing is proven."""
    count = len(found.moved_by_now)
    if count == 1:
        return "The call that moved it"
    return (
        f"The first of {count:,} calls that moved it"
        if found.proven
        else f"The first of {count:,} calls that differ"
    )


def _history(past: Sequence[PastCheck]) -> None:
    st.markdown("##### All checks")
    listing(
        past[::-1], _history_rows, key="set-history", alt="Checks of the set, newest first",
        widths=_CHECK_WIDTHS, right=("Runs", "Calls", "Cost"), button=("Show", _show), address="checks",
        href=lambda check: href(("pages/sets.py", {"set": check.name, "check": check.check_id})),
    )  # fmt: skip


def _show(check: PastCheck) -> None:
    st.query_params["check"] = check.check_id


def _history_rows(shown: Sequence[PastCheck]) -> list[dict[str, Any]]:
    return [
        {
            "Check": when(check),
            "Result": verdict(check),
            "Mode": check.mode,
            "Models": ", ".join(f"{role} {model or 'as recorded'}" for role, model in check.models.items()),
            "Runs": f"{len(check.findings):,}",
            "Calls": f"{check.live_calls:,}",
            "Cost": money(check.cost_usd, None),
        }
        for check in shown
    ]
