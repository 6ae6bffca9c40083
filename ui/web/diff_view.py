"""Two texts side by side, with what differs marked: lines by difflib, and within a changed line its words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import streamlit as st

from ui.visible import block
from ui.web import plain

MOST_LINES: Final = 2_000  # of each text; difflib takes seconds for more when nothing is alike
LINE_CHARS: Final = 2_000
_WORDED: Final = 100  # changed lines whose words are compared; the others are marked as a whole
_WORDED_CHARS: Final = 1_000  # in a longer pair of lines no words are compared
_HERE: Final = Path(__file__).parent
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")

Part = tuple[str, bool]  # a piece of a line, and whether it differs
Line = list[Part] | None  # None where the other text has a line more
Row = tuple[Line, Line]

_view = st.components.v2.component(
    "rlmscope.diff",
    css=(_HERE / "diff_view.css").read_text(encoding="utf-8"),
    js=(_HERE / "diff_view.js").read_text(encoding="utf-8"),
)


def side_by_side(a: str, b: str) -> list[Row]:
    """The lines of two texts, those that belong together in one row."""
    left, right = _lines(a), _lines(b)
    rows: list[Row] = []
    worded = 0
    for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, left, right).get_opcodes():
        if tag == "equal":
            rows.extend(([(text, False)], [(text, False)]) for text in left[i:i_end])
            continue
        for at in range(max(i_end - i, j_end - j)):
            one = left[i + at] if i + at < i_end else None
            other = right[j + at] if j + at < j_end else None
            if one and other and worded < _WORDED and len(one) + len(other) <= _WORDED_CHARS:
                worded += 1
                rows.append(_worded(one, other))
            else:
                rows.append(
                    (None if one is None else [(one, True)], None if other is None else [(other, True)])
                )
    return rows


def _lines(text: str) -> list[str]:
    return [piece[:LINE_CHARS] for piece in text.split("\n")[:MOST_LINES]]


def _worded(a: str, b: str) -> Row:
    """Two lines with the words marked that differ."""
    left, right = _WORDS.findall(a), _WORDS.findall(b)
    codes = difflib.SequenceMatcher(None, left, right).get_opcodes()
    return (
        [("".join(left[i:i_end]), tag != "equal") for tag, i, i_end, _, _ in codes if i < i_end],
        [("".join(right[j:j_end]), tag != "equal") for tag, _, _, j, j_end in codes if j < j_end],
    )


def diff_view(a: str, b: str, *, key: str, names: tuple[str, str], label: str) -> None:
    """Show two texts of any origin side by side, or, on demand, as one with `-` and `+` before its lines.

    `names` stand above them and `label` names the whole; these are ours. Of longer texts the first 2,000
    lines and of longer lines the first 2,000 characters are compared, and that is said.
    """
    unified = st.toggle("One below the other", key=f"{key}-unified")
    if unified:
        plain.code("\n".join(_unified(a, b)) or "(no difference)", "diff")
    else:
        rows = side_by_side(a, b)
        cells = [[_shown(one), _shown(other)] for one, other in rows]
        _view(key=key, data={"label": label, "names": list(names), "rows": cells})
    longest = max(a.count("\n"), b.count("\n")) + 1
    if longest > MOST_LINES:
        st.caption(f"The first {MOST_LINES:,} lines are compared; the longer text has {longest:,}.")
    if any(len(piece) > LINE_CHARS for text in (a, b) for piece in text.split("\n")[:MOST_LINES]):
        st.caption(f"Of longer lines the first {LINE_CHARS:,} characters are compared.")


def _unified(a: str, b: str) -> Iterator[str]:
    found = difflib.unified_diff(_lines(a), _lines(b), "A", "B", lineterm="")
    return (text for number, text in enumerate(found) if number > 1)


def _shown(parts: Sequence[Part] | None) -> list[list[str | bool]] | None:
    """A line as the browser gets it: nothing in it that a browser would obey, white space as it is."""
    if parts is None:
        return None
    return [[block(text), differs] for text, differs in parts]
