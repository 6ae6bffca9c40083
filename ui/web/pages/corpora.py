"""The Corpora page: every corpus of the home, or the one that the address names (`?corpus=ID`)."""

from __future__ import annotations

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from ui.web import corpora_list, corpus_details
from ui.web.notices import problem

_STYLE = """
<style>
.st-key-corpus-name [data-testid="stText"] { font-size: 1.35rem; font-weight: 600; }
.st-key-document-name [data-testid="stText"] { font-size: 1.1rem; font-weight: 600; }
.st-key-document-kind [data-testid="stText"] { font-size: 0.875rem; }
</style>
"""


def _to_the_list() -> None:
    st.session_state[corpora_list.OPEN] = ""


def page() -> None:
    """Show the page for the home of `$RLMSCOPE_HOME`."""
    home = Home.resolve()
    st.html(_STYLE)
    if run_id := st.session_state.pop(corpus_details.OPEN_RUN, None):
        st.switch_page("pages/run.py", query_params={"run": run_id})
    if (opened := st.session_state.pop(corpora_list.OPEN, None)) is not None:
        st.query_params.from_dict({"corpus": opened} if opened else {})
    named = st.query_params.get("corpus")
    try:
        if named:
            # a link to the page itself would leave the address as it is
            st.button("All corpora", key="corpora-all", icon=":material/arrow_back:", on_click=_to_the_list)
            corpus_details.details(home, named)
        else:
            st.markdown("#### Corpora")
            corpora_list.overview(home)
    except RLMScopeError as error:
        problem(error)


page()
