"""The rows of the recursion tree on a page: as a tree, on their time line, or as a table.

The rows travel in pieces, apart from what is selected: a click or a button sends no rows again, and a running
run only the pieces that changed. Tree and flame share the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamlit as st

from ui.figures import counted
from ui.web import plain
from ui.web.tree_rows import TreeRows

if TYPE_CHECKING:
    import pandas as pd
    from streamlit.components.v2.types import ComponentRenderer

_HERE: Final = Path(__file__).parent
_INDENT: Final = "\u2003"
_FRAME: Final = "tree-table-frame"  # in the session: (rows, their frame)
_FIGURES: Final = ("tokens", "cost", "time")


def _source(*names: str) -> str:
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)


_tree = st.components.v2.component(
    "rlmscope.tree",
    css=_source("tree_list.css", "tree_view.css"),
    js=_source("view_parts.js", "tree_list.js", "tree_view.js"),
)
_flame = st.components.v2.component(
    "rlmscope.flame", css=_source("flame_view.css"), js=_source("view_parts.js", "flame_view.js")
)
_piece = st.components.v2.component("rlmscope.tree_piece", js=_source("tree_piece.js"))


@dataclass(slots=True)
class Known:
    """What a tree shows as chosen, what it was last told to show, and how often it was told something new.

    A choice made in the tree is shown by it at once and comes back as `chosen`; it is not told again. So the
    tree neither jumps back while a choice travels, nor misses one that was made elsewhere.
    """

    chosen: str | None = None
    told: str | None = None
    times: int = 0
    shape: str = ""

    def follow(self, span_id: str, shape: str) -> None:
        """Tell the tree about a span that was chosen elsewhere: by the address or by a button.

        Where other rows are shown than before the chosen one has to be found anew.
        """
        if self.chosen != span_id or self.shape != shape:
            self.shape = shape
            self.chosen = self.told = span_id
            self.times += 1


def told(view: str, selected: str, shape: str) -> Known:
    """What a view, by its key, shows as chosen, now that `selected` was chosen; `shape` names its rows."""
    known = st.session_state.setdefault(f"{view}-known", Known())
    assert isinstance(known, Known)
    known.follow(selected, shape)
    return known


def tree(
    rows: TreeRows,
    *,
    run_id: str,
    selected: str,
    on_select: Callable[[str], None],
    title: str | None = None,
    short: bool = False,
) -> None:
    """Draw the tree with one span chosen. `on_select` is called with the id of a span chosen in it.

    `title` says how many spans there are; it is worked out from the rows when it is not given. `short`: there
    is something else above that should stay in sight.
    """
    with st.container(gap=None):
        _draw(_tree, f"tree-{run_id}", rows, run_id, selected, on_select, title, short)


def flame(
    rows: TreeRows,
    *,
    run_id: str,
    selected: str,
    on_select: Callable[[str], None],
    title: str | None = None,
    short: bool = False,
) -> None:
    """The same rows as bars on the time line of the run, calls at the same time side by side."""
    with st.container(gap=None):
        _draw(_flame, f"flame-{run_id}", rows, run_id, selected, on_select, title, short)


def _draw(
    component: ComponentRenderer,
    key: str,
    rows: TreeRows,
    run_id: str,
    selected: str,
    on_select: Callable[[str], None],
    title: str | None,
    short: bool,
) -> None:
    known = told(key, selected, rows.name)
    pieces = rows.chunks

    def chosen() -> None:
        span = st.session_state[key].selected
        if isinstance(span, str):
            known.chosen = span
            on_select(span)

    component(
        key=key,
        data={
            "run": run_id,
            "pieces": [name for name, _ in pieces],
            "title": title or words(rows),
            "key": rows.key_of(known.told),
            "token": known.times,
            "seconds": rows.seconds,
            "short": short,
        },
        on_selected_change=chosen,
    )
    send_pieces(f"tree-{run_id}", pieces)


def send_pieces(key: str, pieces: Sequence[tuple[str, bytes]]) -> None:
    """Hand the rows over to a view that names these pieces; `key` must be unique on the page."""
    for number, (_, piece) in enumerate(pieces):
        _piece(key=f"{key}-{number}", data=piece)


def table(
    rows: TreeRows,
    *,
    run_id: str,
    selected: str,
    on_select: Callable[[str], None],
    title: str | None = None,
    short: bool = False,
) -> None:
    """The same rows, all of them, as a table that can be searched, sorted and read aloud."""
    known = told(f"table-{run_id}", selected, rows.name)
    place = rows.place.get(known.told or selected)  # None when it is filtered out
    key = f"tree-table-{run_id}-{known.times}"  # a choice made elsewhere makes a new table, with it chosen

    def chosen() -> None:
        for place in st.session_state[key].selection.rows:
            if place < len(rows.rows) and (span := rows.rows[place].span):
                known.chosen = span
                on_select(span)

    st.dataframe(
        _frame(rows),
        hide_index=True,
        height=400 if short else 640,
        placeholder="",
        alt="Spans of the run",
        column_config={name: st.column_config.TextColumn(alignment="right") for name in _FIGURES},
        key=key,
        on_select=chosen,
        selection_mode="single-row" if place is None else "single-row-required",
        selection_default=None if place is None else {"selection": {"rows": [place]}},
        lazy=False,
    )
    st.caption(title or words(rows))


def _frame(rows: TreeRows) -> pd.DataFrame:
    """The cells of the table, kept for the session as long as the rows are the same: many take a second."""
    kept = st.session_state.get(_FRAME)
    if kept is None or kept[0] is not rows:
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
        kept = st.session_state[_FRAME] = (rows, plain.frame(shown))
    frame: pd.DataFrame = kept[1]
    return frame


def words(rows: TreeRows) -> str:
    """How many spans the rows stand for."""
    spans = counted(len(rows.place), "span")
    if not rows.folded:
        return spans
    return f"{spans}; {counted(rows.folded, 'single attempt')} in the rows of the calls"
