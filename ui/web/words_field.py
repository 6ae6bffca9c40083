"""A field for words to look for, whose content stands in the address."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from ui.web.address import put


def words_field(name: str, *, key: str, placeholder: str, width: int | Literal["stretch"] = "stretch") -> str:
    """Draw the field “Filter” and return what is in it; `name` is that of the address, `placeholder` is ours.

    The address leads, so that a step back is followed. A field that shows what it says is left alone: to set
    it would stop a person typing.
    """
    words = st.query_params.get(name, "")
    if st.session_state.get(key) != words:
        st.session_state[key] = words
    st.text_input(
        "Filter", key=key, placeholder=placeholder, type="search", live=True, width=width,
        on_change=_typed, args=(name, key),
    )  # fmt: skip
    return words


def _typed(name: str, key: str) -> None:
    put(name, st.session_state[key])
