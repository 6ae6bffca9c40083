"""The fields of an order beside its corpus, their checks, and the start. Nothing here runs an engine.

A field's complaint is one sentence, shown directly below that field.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, Final

import click
import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from rlm_core.limits import Limits
from rlm_core.models import (
    DEMO_ROOT,
    DEMO_SUB,
    check_usable,
    default_models,
    is_demo,
)
from traces.home import Home
from ui.ask_run import check_question
from ui.params import Dollars
from ui.visible import block
from ui.web import launch, outcome
from ui.web.addition_view import StillReading
from ui.web.corpus_choice import QUESTION_KEY
from ui.web.new_documents import WAITS, AlreadySaid, Ready
from ui.web.notices import note, problem
from ui.web.settings import Settings, load_settings
from ui.web.way_fields import ways_of

_SAME_CLICK: Final = 3.0  # seconds in which the same order, started again, is a double click
_UNBOUND: Final = "ask-unbound"  # in the session: its question does not stand in the address
_LARGEST: Final = 10**12
_DEFAULTS: Final = Limits()


@dataclass
class Fields:
    """What the fields hold; `slots` are the places below them for complaints."""

    values: dict[str, Any]
    slots: dict[str, Any]

    def slot(self, name: str) -> None:
        """Keep a place for complaints about a field."""
        self.slots[name] = st.empty()


@dataclass(frozen=True)
class _Start:
    """The last start of this session."""

    order: launch.Order
    ticket: str
    moment: float


def question_field(fields: Fields, *, beside_a_run: bool) -> None:
    """The question. What was typed stands in the address, also what no rerun has told the app yet, so that a
    reload keeps it; not `beside_a_run`, whose question is in its record: a bound field confuses the way back
    from the pages that an answer leads to (Streamlit 1.67 mixes the addresses of both pages then).
    """
    bound = not beside_a_run and not st.session_state.get(_UNBOUND)
    fields.values["question"] = st.text_area(
        "Question",
        key=QUESTION_KEY,
        height=110,
        placeholder="What do you want to know about these documents?",
        on_change="ignore",
        bind="query-params" if bound else None,
        persist_state="session",
    )
    fields.slot("question")


def fill(question: str | None, root: str | None, sub: str | None) -> None:
    """Put the fields on what a run was asked with. To be called before they are shown.

    A question that stands in the address goes first: it was typed later. A field shows its text as it is, so
    a text of a record that hides or reorders any of itself stays out.
    """
    if typed := st.query_params.get(QUESTION_KEY):
        question = None
        if typed != block(typed):  # of a link that somebody made: its marks are shown
            st.query_params.pop(QUESTION_KEY)
            st.session_state[QUESTION_KEY] = block(typed)
            st.session_state[_UNBOUND] = True  # a bound field begins with what the address says
    for key, value in ((QUESTION_KEY, question), ("ask-root", root), ("ask-sub", sub)):
        if value and value == block(value):
            st.session_state[key] = value


def settings_of(home: Home) -> Settings:
    """The settings of the home; none when they cannot be read, which the field of the sandbox says."""
    try:
        return load_settings(home)
    except InputError:
        return Settings()


def model_fields(fields: Fields, settings: Settings) -> None:
    """Root and sub-model: of environment or settings, else the demo model, which is said in words."""
    try:
        root, sub, unset = default_models(settings.over(os.environ))
    except InputError as error:
        problem(error)
        root, sub, unset = DEMO_ROOT, DEMO_SUB, None
    left, right = st.columns(2)
    with left:
        fields.values["root"] = _model("Root model", root, "ask-root")
    with right:
        fields.values["sub"] = _model("Sub-model", sub, "ask-sub")
    fields.slot("root")  # below both: a complaint needs more than half the width
    fields.slot("sub")
    demo = [is_demo(fields.values[name]) for name in ("root", "sub")]
    if all(demo):
        st.caption(outcome.DEMO + (" Settings has the models and keys of others." if unset else ""))
    elif any(demo):
        st.caption("One of the two is the demo model, which answers by fixed rules and is no language model.")


def _model(label: str, default: str, key: str) -> str:
    return st.text_input(
        label, default, key=key, persist_state="session", help="A LiteLLM model id, PROVIDER/NAME."
    ).strip()


def budget_field(fields: Fields, settings: Settings) -> None:
    """The most that a run may cost; it stands beside what a run will probably take."""
    fields.values["max_cost_usd"] = st.text_input(
        "Budget in dollars",
        str(settings.limits.get("max_cost_usd") or ""),
        key="ask-cost",
        placeholder="no limit",
        help="The run stops before a call that could exceed it.",
        on_change="ignore",
        persist_state="session",
    ).strip()
    fields.slot("max_cost_usd")


def limit_fields(fields: Fields, settings: Settings) -> None:
    """Limits, concurrency and seed, at first those of the settings; an empty one is no limit."""
    left, middle, right = st.columns(3)

    def limit(name: str, label: str, least: int) -> None:
        default = settings.limits.get(name, getattr(_DEFAULTS, name))
        _count(fields, name, label, least, int(default) if isinstance(default, int | float) else None)

    with left:
        limit("max_iterations", "Iterations", 1)
        limit("max_seconds", "Seconds", 1)
    with middle:
        limit("max_calls", "Sub-calls", 1)
        limit("max_tokens", "Tokens", 1)
    with right:
        limit("max_depth", "Depth of child runs", 0)
        limit("concurrency", "Calls at a time", 1)
    with left:
        limit("max_tool_calls", "Calls of tools", 1)
    with middle:
        limit("max_tool_rounds", "Rounds of tools in a sub-call", 1)
    _count(fields, "seed", "Seed", 0, 0, 2**32 - 1)


def fault_fields(fields: Fields) -> None:
    """Seeded faults of the demo model, only where it answers."""
    if not any(is_demo(fields.values[name]) for name in ("root", "sub")):
        return
    st.markdown("**Practise on a broken run**")
    st.caption("The demo model can spoil a share of its sub-calls on purpose; the seed says which.")
    left, middle, _ = st.columns(3)
    with left:
        fields.values["fault_rate"] = st.number_input(
            "Fault rate", 0.0, 1.0, 0.0, 0.05, key="ask-fault-rate",
            on_change="ignore", persist_state="session",
        )  # fmt: skip
    with middle:
        _count(fields, "fault_seed", "Fault seed", 0, 0, 2**32 - 1)


def _count(
    fields: Fields, name: str, label: str, least: int, default: int | None, most: int = _LARGEST
) -> None:
    fields.values[name] = st.number_input(
        label,
        least,
        most,
        default,
        1,
        key=f"ask-{name}",
        placeholder="no limit",
        on_change="ignore",
        persist_state="session",
    )


def waits() -> bool:
    """Whether a start that was asked for waited for its documents; asked once, it is forgotten."""
    return bool(st.session_state.pop(WAITS, False))


def start(home: Home, fields: Fields, corpus: Ready, waited: bool) -> str | None:
    """Check everything and start; the run's id, or None when a field says what is wrong with it, or that its
    documents are still being read: then the start `waits`, and comes again with `waited`.
    """
    order = _checked(fields, corpus)
    if order is None:
        if st.session_state.get(WAITS) and not waited:
            st.rerun()  # the bar stands above, where this run of the page has been already
        return None
    last: _Start | None = st.session_state.get("ask-last")
    if last is not None and last.order == order and time.monotonic() - last.moment < _SAME_CLICK:
        ticket = last.ticket
    else:
        ticket = st.session_state.setdefault("ask-ticket", launch.new_ticket())
    try:
        with st.spinner("Starting the run"):
            run_id = launch.start_run(home, order, ticket)
    except RLMScopeError as error:
        _complain(fields, "start", error)
        return None
    st.session_state["ask-last"] = _Start(order, ticket, time.monotonic())
    st.session_state["ask-ticket"] = launch.new_ticket()
    return run_id


def _checked(fields: Fields, ready: Ready) -> launch.Order | None:
    """The order; None when something is wrong, which is then said beside every field concerned."""
    values, good, reading = fields.values, True, False
    checks = {
        "question": lambda: check_question(values["question"]),
        "root": lambda: check_usable(values["root"], "the root model"),
        "sub": lambda: check_usable(values["sub"], "the sub-model"),
        "max_cost_usd": lambda: _dollars(values["max_cost_usd"]),
        "way": lambda: ways_of(values),
        "corpus": ready,
    }
    found: dict[str, Any] = {}
    for name, check in checks.items():
        try:
            found[name] = check()
        except StillReading as error:
            reading = True
            with fields.slots[name].container():
                note(error)
        except AlreadySaid:
            good = False
        except InputError as error:
            good = False
            _complain(fields, name, error)
    if not good or reading:
        st.session_state[WAITS] = good
        if not good:  # what is wrong may stand far above the button that was pressed
            with fields.slots["start"].container():
                note("Nothing was started: what is missing or wrong is said above, beside its field.")
        return None
    limits = {name: values[name] for name in _LIMITS}
    return launch.Order(
        question=values["question"],
        corpus_id=found["corpus"].corpus_id,
        root=values["root"],
        sub=values["sub"],
        limits={**limits, "max_cost_usd": found["max_cost_usd"]},
        seed=values["seed"],
        fault_rate=values.get("fault_rate", 0.0),
        fault_seed=values.get("fault_seed", 0),
        sandbox=values.get("sandbox"),
        way=found["way"][0],
        further=tuple(found["way"][1:]),
    )


_LIMITS: Final = (
    "max_iterations", "max_depth", "max_calls", "max_tokens", "max_seconds", "concurrency",
    "max_tool_calls", "max_tool_rounds",
)  # fmt: skip


def _dollars(given: str) -> str | None:
    if not given:
        return None
    try:
        return str(Dollars().convert(given, None, None))
    except click.BadParameter as error:
        raise InputError(error.message) from None


def _complain(fields: Fields, name: str, error: object) -> None:
    with fields.slots[name].container():
        problem(error)
