"""The list of two aligned runs on a page: both sides of every row, one row chosen. See `compare_rows`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import streamlit as st

from ui.web.compare_rows import Lines
from ui.web.tree_view import send_pieces, told

_HERE: Final = Path(__file__).parent


def _source(*names: str) -> str:
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)


_view = st.components.v2.component(
    "rlmscope.aligned",
    css=_source("tree_list.css", "compare_tree.css"),
    js=_source("view_parts.js", "tree_list.js", "compare_tree.js"),
)


def compare_tree(
    lines: Lines, *, runs: str, shape: str, selected: str, on_select: Callable[[str], None]
) -> None:
    """Draw the list with one row chosen. `runs` names the two runs and `shape` the choice of rows;
    `on_select` is called with the key of a row chosen in the list."""
    key = f"compare-tree-{runs.replace(' ', '-')}"
    known = told(key, selected, shape)

    def chosen() -> None:
        if isinstance(row := st.session_state[key].selected, str):
            known.chosen = row
            on_select(row)

    with st.container(gap=None):
        _view(
            key=key,
            data={
                "run": runs,
                "pieces": [name for name, _ in lines.chunks],
                "key": known.told,
                "token": known.times,
            },
            on_selected_change=chosen,
        )
        send_pieces(key, lines.chunks)
