"""Ways from what is said about a run to where it stands: buttons, since a link to the page it stands on does
nothing in Streamlit. Each writes to the address; labels are words of ours and numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from ui.web import run_filters


def way(label: str, key: str, go: Callable[..., None], *args: Any, tip: str | None = None) -> None:
    """A button that looks like a link; `key` is unique on the page."""
    st.button(label, key=key, type="tertiary", on_click=go, args=args, help=tip)


def narrow_tree(status: str) -> None:
    """Show the tree narrowed to the calls of a status, or with a signal against them, and nothing else."""
    run_filters.clear()
    st.query_params.pop("view", None)
    st.query_params.pop("span", None)
    st.query_params["status"] = status


def open_view(name: str) -> None:
    """Show another view of the run."""
    st.query_params["view"] = name
