"""Another name for a corpus, and its removal in two steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from rlm_core.corpus import Corpus
from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.reading import RunSummary
from ui import corpora
from ui.figures import counted
from ui.web.corpora_list import OPEN, SAID
from ui.web.notices import sentence

_ASKED: Final = "corpus-remove"  # in the session: the corpus whose removal is to be confirmed
_NAMED: Final = 5  # runs


def rename(home: Home, corpus: Corpus) -> None:
    """The field for another name."""
    key = f"corpus-name-{corpus.corpus_id}"
    st.session_state.setdefault(key, corpus.name)
    st.text_input("New name", key=key, on_change="ignore")
    st.button("Save", key="corpus-rename", on_click=_renamed, args=(home, corpus.corpus_id, key))


def _renamed(home: Home, corpus_id: str, key: str) -> None:
    try:
        Corpus.rename(home.corpora, corpus_id, st.session_state[key])
    except RLMScopeError as error:
        st.session_state[SAID] = [("Problem", "red", sentence(error))]


def remove_button(corpus_id: str) -> None:
    """The first step of a removal."""
    st.button("Remove", key="corpus-remove-button", on_click=_ask_to_remove, args=(corpus_id,))


def _ask_to_remove(corpus_id: str) -> None:
    st.session_state[_ASKED] = corpus_id


def removal(home: Home, corpus_id: str, runs: Sequence[RunSummary]) -> None:
    """The second step of a removal."""
    if st.session_state.get(_ASKED) != corpus_id:
        return
    with st.container(border=True, key="corpus-removal"):
        st.markdown("**Remove this corpus for good?** Your own files stay where they are.")
        if runs:
            named = ", ".join(run.run_id for run in runs[:_NAMED])
            more = f" and {len(runs) - _NAMED:,} more" if len(runs) > _NAMED else ""
            keep = "They keep their record, but the passages they read can no longer be opened"
            st.text(f"{counted(len(runs), 'recorded run')} used it. {keep}: {named}{more}.")
        else:
            st.text("No recorded run used it.")
        with st.container(horizontal=True):
            st.button(
                "Remove for good", key="corpus-remove-sure", type="primary", on_click=_remove,
                args=(home, corpus_id, runs),
            )  # fmt: skip
            st.button("Keep it", key="corpus-remove-keep", on_click=_keep)


def _keep() -> None:
    st.session_state.pop(_ASKED, None)


def _remove(home: Home, corpus_id: str, runs: Sequence[RunSummary]) -> None:
    _keep()
    try:
        corpora.remove(home, corpus_id, runs)
    except RLMScopeError as error:
        st.session_state[SAID] = [("Problem", "red", sentence(error))]
        return
    st.session_state[SAID] = [("Removed", "green", corpus_id)]
    st.session_state[OPEN] = ""
