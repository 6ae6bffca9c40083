"""Two texts side by side on a page, with what differs marked; see `text_lines` for how they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import streamlit as st

from ui.figures import counted
from ui.visible import block
from ui.web import plain
from ui.web.text_lines import MOST_LINES, Part, Row, compared, unified

_HERE: Final = Path(__file__).parent
_MOST_ROWS: Final = 4_000  # drawn at most; a browser takes seconds for more

_view = st.components.v2.component(
    "rlmscope.diff",
    css=(_HERE / "diff_view.css").read_text(encoding="utf-8"),
    js=(_HERE / "diff_view.js").read_text(encoding="utf-8"),
)


def diff_view(
    a: str,
    b: str,
    *,
    key: str,
    names: tuple[str, str],
    label: str,
    one_text: bool | None = None,
    whole: bool = False,
) -> None:
    """Show two texts of any origin side by side, or as one with `-` and `+` before its lines.

    `names` stand above them and `label` names the whole; these are ours. `one_text` says how they are shown;
    with None there is a switch. Equal lines far from what differs are only counted unless `whole`. Of texts
    that differ in more than 2,000 lines the rest is not compared, and that is said.
    """
    if one_text is None:
        one_text = st.toggle("One below the other", key=f"{key}-unified")
    if one_text:
        plain.code(unified(a, b) or "(no difference)", "diff")
    found = compared(a, b)
    if not one_text:
        rows: Sequence[Row | int] = found.rows if whole else found.folded()
        shown = [_shown(row) for row in rows[:_MOST_ROWS]]
        _view(key=key, data={"label": label, "names": list(names), "rows": shown})
        if len(rows) > _MOST_ROWS:
            st.caption(f"The first {_MOST_ROWS:,} of {len(rows):,} lines are shown.")
    if found.left_out:
        st.caption(
            f"From where they part {MOST_LINES:,} lines of each text are compared; the longer one has "
            f"{counted(found.left_out, 'line')} more."
        )


def _shown(row: Row | int) -> Any:
    """A row as the browser gets it: nothing in it that a browser would obey, white space as it is."""
    if isinstance(row, int):
        return counted(row, "equal line")
    return [None if line is None else [_part(part) for part in line] for line in row]


def _part(part: Part) -> list[str]:
    text, mark = part
    return [block(text), mark]
