"""The recursion tree on a page: a view of its own, or a table of the same rows.

The rows travel in pieces, apart from what is selected: a click or a button sends no rows again, and a running
run only the pieces that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import streamlit as st

from ui.figures import counted
from ui.web import plain
from ui.web.tree_rows import TreeRows

_HERE: Final = Path(__file__).parent
_INDENT: Final = "\u2003"

_view = st.components.v2.component(
    "rlmscope.tree",
    css=(_HERE / "tree_view.css").read_text(encoding="utf-8"),
    js=(_HERE / "tree_view.js").read_text(encoding="utf-8"),
)


def tree(
    rows: TreeRows, *, run_id: str, selected: str | None, token: int, on_select: Callable[[str], None]
) -> None:
    """Draw the tree. `on_select` is called with the id of a span that was chosen in it.

    The tree follows `selected` (a span id) whenever `token` is another one than before; so it neither jumps
    back while a choice made in it travels, nor misses one that was made elsewhere.
    """
    key = f"tree-{run_id}"
    pieces = rows.chunks()

    def chosen() -> None:
        span = st.session_state[key].selected
        if isinstance(span, str):
            on_select(span)

    with st.container(gap=None):
        _view(
            key=key,
            data={
                "run": run_id,
                "pieces": [name for name, _ in pieces],
                "title": _title(rows),
                "key": rows.key_of(selected),
                "token": token,
            },
            on_selected_change=chosen,
        )
        for number, (_, piece) in enumerate(pieces):
            _view(key=f"{key}-{number}", data=piece)


def table(
    rows: TreeRows, *, run_id: str, selected: str | None, token: int, on_select: Callable[[str], None]
) -> None:
    """The same rows, all of them, as a table that can be searched, sorted and read aloud."""
    key = f"tree-table-{run_id}-{token}"

    def chosen() -> None:
        for place in st.session_state[key].selection.rows:
            if span := rows.rows[place].span:
                on_select(span)

    here = rows.key_of(selected)
    place = next((number for number, row in enumerate(rows.rows) if row.key == here), None)
    shown = [
        {
            "span": _INDENT * min(row.level, 20) + row.label,
            "status": row.status,
            "tokens": row.tokens,
            "cost": row.cost,
            "time": row.time,
            "note": row.note,
            "id": row.span,
        }
        for row in rows.rows
    ]
    st.dataframe(
        plain.frame(shown),
        hide_index=True,
        height=640,
        key=key,
        on_select=chosen,
        selection_mode="single-row",
        selection_default=None if place is None else {"selection": {"rows": [place]}},
        lazy=False,
    )
    st.caption(_title(rows))


def _title(rows: TreeRows) -> str:
    spans = counted(len(rows.place), "span")
    if not rows.folded:
        return spans
    return f"{spans}; {counted(rows.folded, 'attempt')} stand on the row of their call"
