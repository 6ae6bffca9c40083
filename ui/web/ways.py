"""Ways from what is said about a run to where it stands: buttons, since a link to the page it stands on does
nothing in Streamlit. Each writes to the address; labels are words of ours and numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from traces.narrow import FIELDS


def way(label: str, key: str, go: Callable[..., None], *args: Any, tip: str | None = None) -> None:
    """A button that looks like a link; `key` is unique on the page."""
    st.button(label, key=key, type="tertiary", on_click=go, args=args, help=tip)


def narrow_tree(status: str) -> None:
    """Show the tree narrowed to the calls of a status, or with a signal against them, and nothing else."""
    dropped = {*FIELDS, "over", "view", "span"}
    asked = {name: st.query_params.get_all(name) for name in st.query_params if name not in dropped}
    st.query_params.from_dict({**asked, "status": status})  # at once: a step back leads to what was there


def open_view(name: str) -> None:
    """Show another view of the run."""
    st.query_params["view"] = name
