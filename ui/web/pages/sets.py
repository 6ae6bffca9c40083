"""The Sets page: every regression set of the home, or the one that the address names (`?set=NAME`)."""

from __future__ import annotations

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from ui.web import set_details, sets_list
from ui.web.notices import problem

_STYLE = """
<style>
.st-key-set-name [data-testid="stText"] { font-size: 1.35rem; font-weight: 600; }
</style>
"""


def _to_the_list() -> None:
    st.session_state[sets_list.OPEN] = ""


def page() -> None:
    """Show the page for the home of `$RLMSCOPE_HOME`."""
    home = Home.resolve()
    st.html(_STYLE)
    if (way := st.session_state.pop(set_details.GO, None)) is not None:
        st.switch_page(way[0], query_params=way[1])
    if (opened := st.session_state.pop(sets_list.OPEN, None)) is not None:
        st.query_params.from_dict({"set": opened} if opened else {})
    named = st.query_params.get("set")
    try:
        if named:
            # a link to the page itself would leave the address as it is
            st.button("All sets", key="sets-all", icon=":material/arrow_back:", on_click=_to_the_list)
            set_details.details(home, named)
        else:
            st.markdown("#### Sets")
            sets_list.overview(home)
    except RLMScopeError as error:
        problem(error)


page()
