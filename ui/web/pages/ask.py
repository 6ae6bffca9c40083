"""The Ask page: a question over documents on the left, its run on the right, also after a reload."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from rlm_core.errors import RLMScopeError
from rlm_core.models import is_demo
from rlm_core.options import STRATEGIES
from traces.estimate import Plan
from traces.home import Home
from traces.imported import asked_words
from traces.reading import RunSummary, list_runs, load_run
from ui.web import corpus_choice, first_steps, live, order_form, repeats, stored, way_fields
from ui.web.expected import expected
from ui.web.into_view import into_view
from ui.web.notices import note, problem
from ui.web.rows_view import Column, Item, rows_view
from ui.web.run_words import COLOURS, status_word
from ui.web.runs_table import started
from ui.web.sandbox_field import sandbox_field

_RECENT = 5
_PERIOD = 2.0  # seconds between two looks at runs at work
_CURRENT = "ask-run"  # in the session: the run beside the form
_NAMED = "ask-named"  # in the session: the run of the address when the page was last run
_TELL = "ask-tell"  # in the session: a run was started, and the address is to say so
_STARTED = "ask-started"  # in the session: the run that was started here last
_OPEN = "ask-open"  # in the session: a run whose row was clicked


def page() -> None:
    """Show the page for the home of `$RLMSCOPE_HOME`; `?run=ID` names the run beside the form."""
    home = Home.resolve()
    _as_before(home)
    first_steps.invitation(home)
    left, right = st.columns([5, 7], gap="large")
    named = st.query_params.get("run")
    if _went_back(named):
        st.session_state.pop(_CURRENT, None)
    run_id = named or st.session_state.get(_CURRENT)
    with left:
        if started := _form(home, beside_a_run=run_id is not None):
            st.session_state[_CURRENT] = st.query_params["run"] = started
            st.session_state[_TELL] = True
            st.session_state[_STARTED] = started
            repeats.begin(started, st.session_state.get("ask-repeat") or 1)
            st.rerun()  # the form is now that beside a run
    with right:
        # a started run is told again: what a script that a second click broke off told may never have arrived
        if run_id and (st.session_state.pop(_TELL, False) or run_id != named):
            st.query_params["run"] = run_id
        if not run_id or not _current(home, run_id):
            _recent(home)
        elif run_id == st.session_state.get(_STARTED):
            into_view(run_id)  # the button stands below a form that may be longer than the window


def _current(home: Home, run_id: str) -> bool:
    """The run that this session looks at, also when it comes back from another page; False: there is none."""
    repeats.panel(home, run_id)
    head = st.container(horizontal=True, vertical_alignment="center")
    if not live.panel(home, run_id, corpus_choice.choose_saved):
        st.session_state.pop(_CURRENT, None)
        return False
    st.session_state[_CURRENT] = run_id
    head.markdown("##### This run", width="stretch")
    head.button("Close", key="ask-close", type="tertiary", icon=":material/close:", on_click=_close)
    return True


def _close() -> None:
    repeats.forget()
    st.session_state.pop(_CURRENT, None)
    st.query_params.pop("run", None)


def _went_back(named: str | None) -> bool:
    """Whether the browser went back to an address of this page that names no run: then none is meant.

    The close button is known only while the page itself stays, so coming from another page is no way back.
    """
    before = st.session_state.get(_NAMED)
    st.session_state[_NAMED] = named
    return before is not None and named is None and "ask-close" in st.session_state


def _as_before(home: Home) -> None:
    """In a new session: the form as the address says, and what it does not say as its run was asked."""
    if st.session_state.setdefault("ask-met", False):
        return
    st.session_state["ask-met"] = True
    addressed = corpus_choice.as_addressed(home)
    order_form.fill(None, None, None)
    run_id = st.query_params.get("run")
    with suppress(RLMScopeError):  # the panel says what is wrong with the run
        run = load_run(home, run_id).summary if run_id else None
        if run is not None and stored.is_known(home, run.corpus_id):
            order_form.fill(run.question, run.root_model, run.sub_model)
            if run.strategy in STRATEGIES:
                st.session_state[way_fields.STRATEGY] = run.strategy
            if not addressed:
                corpus_choice.choose_saved(str(run.corpus_id))


def _form(home: Home, *, beside_a_run: bool) -> str | None:
    """The form; the id of the run that was just started with it."""
    fields, settings = order_form.Fields({}, {}), order_form.settings_of(home)
    order_form.question_field(fields, beside_a_run=beside_a_run)
    corpus = corpus_choice.choose(home)
    fields.slot("corpus")
    order_form.model_fields(fields, settings)
    if corpus.chars is not None:
        root, sub = fields.values["root"], fields.values["sub"]
        demo = is_demo(root) and is_demo(sub)
        plan = Plan(root, sub, corpus.corpus_id, corpus.chars, demo, way_fields.strategy_asked())
        expected(home, plan)
    order_form.budget_field(fields, settings)
    with st.expander("More options"):
        way_fields.way_fields(fields)
    if said := way_fields.summary():
        st.caption(f"More options: {said}.")
    with st.expander("Limits, seeds and practice faults"):
        order_form.limit_fields(fields, settings)
        order_form.fault_fields(fields)
    fields.values["sandbox"] = sandbox_field()
    waited = order_form.waits()
    clicked = st.button("Start", type="primary", key="ask-start", width="stretch")
    fields.slot("start")
    return order_form.start(home, fields, corpus.ready, waited) if clicked or waited else None


def _recent(home: Home) -> None:
    """The runs that came last; looked at again by itself while one of them is at work."""
    st.markdown("##### Last runs")
    try:
        runs = list_runs(home, _RECENT, warn=note)
    except RLMScopeError as error:
        problem(error)
        return
    if not runs:
        st.text("There are no runs yet. Choose a corpus, ask a question and press Start.")
    elif _at_work(runs):
        st.fragment(_again, run_every=_PERIOD)(home)
    else:
        _rows(runs)


def _again(home: Home) -> None:
    try:
        runs = list_runs(home, _RECENT, warn=note)
    except RLMScopeError as error:
        problem(error)
        return
    if not _at_work(runs):
        st.rerun()
    _rows(runs)


def _at_work(runs: list[RunSummary]) -> bool:
    return any(run.status == "running" for run in runs)


def _rows(runs: list[RunSummary]) -> None:
    if run_id := st.session_state.pop(_OPEN, None):
        st.switch_page("pages/run.py", query_params={"run": run_id})
    rows_view(
        [_item(run) for run in runs],
        (Column("Question"), Column("Answer"), Column("Status", 90), Column("Started", 122, right=True)),
        key="ask-recent",
        label="Last runs",
        on_open=_open,
    )


def _item(run: RunSummary) -> Item:
    word = status_word(run)
    cells = (
        asked_words(run),
        run.answer or ("" if run.status == "running" else "(no answer)"),
        (word, COLOURS[word]),
        started(run, st.context.timezone),
    )
    return Item(run.run_id, cells, f"run?run={run.run_id}")


def _open(run_id: str) -> None:
    st.session_state[_OPEN] = run_id


page()
