"""The Spend page: what runs cost, on what, the dear calls, limits, and what other models would have cost.

`/spend?run=ID&run=ID&corpus=ID&from=DAY&to=DAY&demo=1&view=NAME&by=KEYS&sort=COLUMN&root=MODEL&sub=MODEL`
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from traces.reading import list_runs
from traces.spend import Chosen, choose
from ui.web import (
    spend_calls,
    spend_data,
    spend_figures,
    spend_groups,
    spend_limits,
    spend_scope,
    spend_what_if,
)
from ui.web.address import put_choice
from ui.web.notices import note, problem

_VIEWS: Final = {
    "on": "On what",
    "calls": "Dear calls",
    "limits": "Runs and limits",
    "models": "Other models",
}
_FIRST: Final = "on"
_VIEW: Final = "spend-view"
_STYLE: Final = """
<style>
.st-key-spend-figures [data-testid="stMetricValue"], .st-key-spend-as-totals [data-testid="stMetricValue"] {
  font-size: 1.6rem;
}
.st-key-spend-figures [data-testid="stText"],
.st-key-spend-as-totals [data-testid="stText"] { font-size: 0.8125rem; }
</style>
"""


def main() -> None:
    """Show the page for the home of `$RLMSCOPE_HOME`."""
    st.html(_STYLE)
    st.markdown("#### Spend")
    home = Home.resolve()
    try:
        runs = list_runs(home, replays=True, warn=note)
        if not runs:
            st.text("There are no runs yet, so nothing was spent.")
            st.page_link("pages/ask.py", label="Ask a question")
            return
        scope = spend_scope.scope_of_address(home, runs)
        spend_scope.fields(home, runs, scope)
        chosen = choose(runs, scope)
        spend_scope.words(scope, chosen, len(runs))
        _shown(home, chosen)
    except InputError as error:
        problem(error)
        st.button("Ask about all runs", on_click=_all)
    except RLMScopeError as error:
        problem(error)
        st.button("Try again")


def _all() -> None:
    st.query_params.clear()


def _shown(home: Home, chosen: Chosen) -> None:
    if not chosen.runs:
        if chosen.demo_left_out:
            st.text(
                "All of these runs are of the demo model. “Count demo runs” shows what they did, at no cost."
            )
        else:
            st.text("No run fits.")
        return
    asked = spend_data.question(home, chosen)
    told = spend_data.totals(asked)
    for sentence in told.said:
        note(sentence)
    spend_figures.figures(told.value, chosen)
    spend_figures.diagnoses(home, chosen)
    spend_figures.remarks(home, told.value)
    view = _view()
    if view == "calls":
        spend_calls.show(asked)
    elif view == "limits":
        spend_limits.show(chosen, asked)
    elif view == "models":
        spend_what_if.show(home, chosen.runs, asked)
    else:
        spend_groups.show(home, asked)


def _view() -> str:
    """Draw the choice of views, and return the one that the address asks for."""
    name = st.query_params.get("view", _FIRST)
    if name not in _VIEWS:
        raise InputError(f"there is no view {name[:60]!r} of the spend; there are {', '.join(_VIEWS)}")
    st.session_state[_VIEW] = name
    st.segmented_control(
        "View",
        list(_VIEWS),
        format_func=lambda view: _VIEWS[view],
        key=_VIEW,
        required=True,
        on_change=_chosen,
        label_visibility="collapsed",
    )
    return name


def _chosen() -> None:
    put_choice("view", st.session_state[_VIEW], _FIRST)


main()
