"""The offer to continue a run that died, was stopped or met a limit: as a new run, from its record."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import click
import streamlit as st

from rlm_core import semconv as sc
from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from traces.recorded_settings import bounded, read_limits, read_options
from traces.replay_facts import top_facts
from traces.resume import no_dead_run
from traces.view import RunView
from ui.params import Dollars
from ui.web import launch
from ui.web.notices import problem
from ui.web.order import LimitValue

_LARGEST: Final = 10**12
_COUNTS: Final = {
    "max_iterations": "Iterations",
    "max_calls": "Sub-calls",
    "max_tokens": "Tokens",
    "max_seconds": "Seconds",
    "max_tool_calls": "Calls of tools",
    "max_tool_rounds": "Rounds of tools in a call",
}
_WINDOW: Final = "root_window"
_WORDS: Final = (
    "What its record holds is served at no cost, its cells run again, and where the record ends its models "
    "go on. What was spent before counts against the limits; the result is a new run."
)
_TICKETS: Final = "resume-tickets"  # in the session: the ticket of the next start, by run


def resume_offer(home: Home, view: RunView) -> None:
    """A form behind a button; nothing for a run that ended with an answer, or goes on."""
    if no_dead_run(view) is not None:
        return
    run_id = view.run_id
    with st.popover("Resume", key=f"resume-{run_id}", help="Go on from the record, without paying again."):
        st.caption(_WORDS)
        try:
            was = read_limits(top_facts(view).text(sc.LIMITS), spending=True)
            was = was if view.summary.imported_from is None else bounded(was, spending=True)
            window = read_options(top_facts(view).text(sc.OPTIONS)).root_window
        except RLMScopeError as error:
            problem(error)
            return
        recorded = {name: getattr(was, name) for name in _COUNTS}
        changed = _number_fields({**recorded, _WINDOW: window}, run_id)
        way = {name: changed.pop(name) for name in (_WINDOW,) if name in changed}
        cost = st.text_input(
            "Budget in dollars", "" if was.max_cost_usd is None else str(was.max_cost_usd),
            key=f"resume-cost-{run_id}", placeholder="no limit", on_change="ignore",
        ).strip()  # fmt: skip
        if not st.button("Resume the run", key=f"resume-start-{run_id}", type="primary"):
            return
        try:
            limits = {**changed, "max_cost_usd": _dollars(cost, was.max_cost_usd)}
            started = _start(home, view, limits, way)
        except RLMScopeError as error:
            problem(error)
            return
    st.switch_page("pages/run.py", query_params={"run": started})


def _number_fields(was: Mapping[str, int | float | None], run_id: str) -> dict[str, LimitValue]:
    """The limits, and the root's window, that are to be others than the recorded ones."""
    changed: dict[str, LimitValue] = {}
    left, right = st.columns(2)
    for place, (name, recorded) in enumerate(was.items()):
        shown = None if recorded is None else max(1, int(recorded))
        with right if place % 2 else left:
            value = st.number_input(
                _COUNTS.get(name, "Tokens the root can take"), 1, _LARGEST, shown, 1,
                key=f"resume-{name}-{run_id}", on_change="ignore",
                placeholder="as known" if name == _WINDOW else "no limit",
            )  # fmt: skip
        if value is not None and value != shown:
            changed[name] = value
    return changed


def _dollars(given: str, was: Decimal | None) -> str | None:
    """The budget, None where it stays as it was."""
    if not given:
        return None
    try:
        amount = Dollars().convert(given, None, None)
    except click.BadParameter as error:
        raise InputError(error.message) from None
    return None if amount == was else str(amount)


def _start(home: Home, view: RunView, limits: dict[str, LimitValue], way: Mapping[str, LimitValue]) -> str:
    """Start the process that continues the run; the id of the new run."""
    run, tickets = view.summary, st.session_state.setdefault(_TICKETS, {})
    ticket = tickets.setdefault(run.run_id, launch.new_ticket())
    order = launch.Order(
        question=run.question or "",
        corpus_id=run.corpus_id or "",
        root=run.root_model or "",
        sub=run.sub_model or "",
        limits=limits,
        way=way,
        resume_of=run.run_id,
    )
    started = launch.start_run(home, order, ticket)
    tickets.pop(run.run_id)
    return started
