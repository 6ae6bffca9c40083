"""A field for words to look for, whose content stands in the address."""

from __future__ import annotations

import streamlit as st


def words_field(name: str, *, key: str, placeholder: str) -> str:
    """Draw the field “Filter” and return what is in it; `name` is that of the address, `placeholder` is ours.

    A page begins with what the address says. After that the field leads: what is typed while the page works
    is never overtaken by an older address.
    """
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(name, "")
    words = st.text_input(
        "Filter", key=key, placeholder=placeholder, type="search", live=True, persist_state="session"
    )
    if words:
        st.query_params[name] = words
    else:
        st.query_params.pop(name, None)
    return words
