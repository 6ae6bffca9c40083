"""The Strategies page: one question over one corpus, answered in several ways, side by side.

The address says which runs are shown: `runs` (ids with commas), and what is expected of them: `expected` and
`match`. Any runs may stand there; those that the form starts are carried out in turn by one process.
"""

from __future__ import annotations

import streamlit as st

from rlm_core.errors import InputError
from rlm_core.options import STRATEGIES
from traces.home import Home
from traces.opinions import NORMALISED, check_how
from ui.web import corpus_choice, order_form, strategy_rows
from ui.web.address import put
from ui.web.launch import series_ids
from ui.web.notices import problem
from ui.web.sandbox_field import sandbox_field
from ui.web.series import ids_of
from ui.web.way_fields import passages_field, strategy_words

_COMPARABLE = (NORMALISED, "exact", "contains", "number", "set")  # that need no model, and no pattern
_NAMES = ("runs", "expected", "match")  # in the address
_LEFT = "strategies-address"  # in the session: what the address said when the page was last seen
_AT_FIRST = ("rlm", "direct", "compaction", "retrieve")


def page() -> None:
    """Show the page for the home of `$RLMSCOPE_HOME`."""
    st.markdown("#### Strategies")
    home = Home.resolve()
    _arrive()
    run_ids = ids_of(st.query_params.get("runs", ""))
    if run_ids:
        strategy_rows.show(home, run_ids, _expected(), st.query_params.get("match") or NORMALISED)
        st.button("Close the table", key="strategies-close", on_click=_close)
    else:
        st.caption("One question, answered in several ways, one run after another: what each took and said.")
    with st.expander("Ask by several strategies", expanded=not run_ids, key="strategies-form"):
        started = _form(home)
    if started:
        st.query_params["runs"] = ",".join(started)
        st.rerun()


def _arrive() -> None:
    """Come back to the table as it was left, unless the address names one itself.

    Streamlit loses the query of a page that the browser goes back to, and gives it that of the page it left.
    """
    if not st.query_params.get("runs"):
        for name, value in st.session_state.get(_LEFT, {}).items():
            st.query_params[name] = value
    st.query_params.pop("run", None)
    st.session_state[_LEFT] = {name: st.query_params[name] for name in _NAMES if st.query_params.get(name)}


def _close() -> None:
    st.session_state.pop(_LEFT, None)
    for name in _NAMES:
        st.query_params.pop(name, None)


def _expected() -> str | None:
    return st.query_params.get("expected") or None


def _form(home: Home) -> tuple[str, ...]:
    """The form; the ids of the runs that were just started with it."""
    fields, settings = order_form.Fields({}, {}), order_form.settings_of(home)
    left, right = st.columns(2, gap="large")
    with left:
        order_form.question_field(fields, beside_a_run=True)
        corpus = corpus_choice.choose(home)
        fields.slot("corpus")
        order_form.model_fields(fields, settings)
    with right:
        fields.values["strategies"] = st.multiselect(
            "Strategies, in this order", STRATEGIES, list(_AT_FIRST), key="strategies-chosen",
            persist_state="session", help="  \n".join(map(strategy_words, STRATEGIES)),
        )  # fmt: skip
        fields.slot("way")
        expected, how = _expected_fields(fields)
        order_form.budget_field(fields, settings)
        st.caption("The budget and the limits are those of each run for itself.")
        with st.expander("Limits, seeds and practice faults"):
            order_form.limit_fields(fields, settings)
            fields.values["passages"] = passages_field()
            order_form.fault_fields(fields)
        fields.values["sandbox"] = sandbox_field()
        waited = order_form.waits()
        clicked = st.button("Start", type="primary", key="strategies-start", width="stretch")
        fields.slot("start")
    if not (clicked or waited) or not _comparable(fields, expected, how):
        return ()
    ticket = order_form.start(home, fields, corpus.ready, waited)
    if ticket is None:
        return ()
    for name, value in (("expected", expected), ("match", how if expected else "")):
        put(name, value)
    return series_ids(ticket, len(fields.values["strategies"]))


def _expected_fields(fields: order_form.Fields) -> tuple[str, str]:
    """The right answer, if one is known, and how answers are compared with it."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        expected = st.text_input(
            "Right answer", key="strategies-expected", placeholder="may stay empty", on_change="ignore",
            persist_state="session", help="Each row then says whether it gave that.",
        )  # fmt: skip
        how = st.selectbox("Same by", _COMPARABLE, key="strategies-match", width=140, persist_state="session")
    fields.slot("expected")
    return expected.strip(), how


def _comparable(fields: order_form.Fields, expected: str, how: str) -> bool:
    try:
        check_how(how, expected or None)
    except InputError as error:
        if expected:
            with fields.slots["expected"].container():
                problem(error)
            return False
    return True


page()
