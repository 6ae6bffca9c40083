"""The column of a page that came to matter, brought into view: a button far below may have filled it."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_view = st.components.v2.component(
    "rlmscope.into_view", js=(Path(__file__).parent / "into_view.js").read_text(encoding="utf-8")
)


def into_view(occasion: str) -> None:
    """Scroll to the top of the column this is called in, once in a tab for each `occasion`. Draws nothing, so
    it is called last there."""
    _view(key="into-view", data={"key": occasion}, width="content")
