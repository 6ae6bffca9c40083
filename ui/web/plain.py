"""Untrusted text on a page: text of models, corpora, questions, file names, errors.

Streamlit turns most of what it is given into markdown, and markdown fetches images from anywhere. Only these
functions show such text: as plain text, code, JSON or table cells, with control characters, escape sequences
and direction marks made visible. Labels (of buttons, tabs, expanders, metrics, ...) never hold such text.
"""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from ui.visible import block, line

if TYPE_CHECKING:
    import pandas as pd

PREVIEW_CHARS: Final = 20_000
_BOUND_CHARS: Final = 600
_BOUND_LINES: Final = 6
_MOST_SHOWN: Final = 10_000_000
_CELL_CHARS: Final = 2_000
_EXACT_INT: Final = 2**53  # a browser rounds whole numbers beyond


def text(value: object) -> None:
    """Running text, wrapped. White space at both ends is not shown; longer than 20,000 characters is cut and
    its true size said."""
    _cut(str(value), st.text)


def code(value: object, language: str | None = None, *, height: int | None = None) -> None:
    """Text as it is, monospaced, long lines wrapped; `language` only colours it. Cut like `text`."""
    _cut(str(value), lambda shown: _code(shown, language, height))


def bounded(value: str, *, key: str, file_name: str) -> None:
    """The beginning of a text, and all of it on request, as `payload` shows it: what stands below must stay
    in sight. `key` must be unique on the page."""
    lines = value.split("\n")
    if len(value) <= _BOUND_CHARS and len(lines) <= _BOUND_LINES:
        text(value or "(empty)")
        return
    begin = "\n".join(lines[:_BOUND_LINES])[:_BOUND_CHARS]
    text(f"{begin} …")
    whole = st.expander(f"All {len(value):,} characters", key=f"{key}-whole", on_change="rerun")
    if whole.open:
        with whole:
            payload(value, key=key, file_name=file_name)


def json(value: object, *, expanded: int = 2) -> None:
    """A structure (not a JSON text), opened to a depth of `expanded`."""
    st.json(_clean(value), expanded=expanded)


def table(
    rows: Iterable[Mapping[str, object]],
    *,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    height: int | None = None,
) -> None:
    """Rows as a table: `columns` chooses and orders (default: all keys, in order of appearance).

    Numbers stay numbers (right-aligned, sortable), structures are shown as JSON, None as an empty cell.
    """
    st.dataframe(
        frame(rows, columns), hide_index=True, key=key, height=height or "auto", placeholder="", lazy=False
    )


def frame(rows: Iterable[Mapping[str, object]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The rows of a table, every cell safe to show."""
    import pandas as pd

    listed = list(rows)
    names = columns if columns is not None else list(dict.fromkeys(name for row in listed for name in row))
    return pd.DataFrame({line(name): _column([row.get(name) for row in listed]) for name in names})


def payload(
    value: str,
    *,
    key: str,
    file_name: str = "text.txt",
    language: str | None = None,
    height: int | None = None,
    find: str = "",
) -> None:
    """A text of any size: the first 20,000 characters, its true size, all of it on request, a download, and
    a field that finds words in the whole of it.

    `key` must be unique on the page. The download holds the text itself, not its visible form. A text of more
    than 10 million characters is only downloaded whole: it would stop the browser. `find`: words to look for
    at first, where they stand beyond the preview.
    """
    shown = value
    if len(value) > PREVIEW_CHARS:
        from ui.web.find_in_text import find_in_text

        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            if not _wants_all(value, key):
                shown = value[:PREVIEW_CHARS]
                st.caption(f"The first {PREVIEW_CHARS:,} of {len(value):,} characters.", width="content")
            _download(value, key, file_name)
        find_in_text(value, key=key, words=find)
    _code(shown, language, height)


def _wants_all(value: str, key: str) -> bool:
    if len(value) > _MOST_SHOWN:
        return False
    return st.toggle(f"Show all {len(value):,} characters", key=f"{key}-all")


def _download(value: str, key: str, file_name: str) -> None:
    st.download_button(
        "Download",
        # made only when asked for: a rerun neither copies nor keeps a big text
        lambda: value.encode("utf-8", "backslashreplace"),
        file_name=file_name,
        mime="text/plain",
        key=f"{key}-download",
        on_click="ignore",
    )


def _code(value: str, language: str | None, height: int | None) -> None:
    # the element drops one line feed at either end; one more keeps a text of line feeds as it is
    whole = f"\n{block(value)}\n" if value[:1] == "\n" or value[-1:] == "\n" else block(value)
    st.code(whole, language=language, wrap_lines=True, height=height or "content")


def _cut(value: str, show: Callable[[str], object]) -> None:
    show(block(value[:PREVIEW_CHARS]))
    if len(value) > PREVIEW_CHARS:
        st.caption(f"The first {PREVIEW_CHARS:,} of {len(value):,} characters.")


def _column(values: Iterable[object]) -> list[object]:
    """Safe cells of one kind: a column of texts and numbers is one of texts."""
    cells = [_cell(value) for value in values]
    if any(isinstance(cell, str) for cell in cells):
        return [cell if cell is None or isinstance(cell, str) else str(cell) for cell in cells]
    return cells


def _cell(value: object) -> object:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < _EXACT_INT else str(value)
    shown = value if isinstance(value, str) else str(value) if isinstance(value, Decimal) else _dumped(value)
    if len(shown) <= _CELL_CHARS:
        return block(shown)
    return f"{block(shown[:_CELL_CHARS])}… ({len(shown):,} characters)"


def _dumped(value: object) -> str:
    return json_format.dumps(_clean(value), ensure_ascii=False)


def _clean(value: Any) -> Any:
    """A structure as JSON that a browser shows exactly and safely."""
    if isinstance(value, str):
        return block(value)
    if isinstance(value, Mapping):
        return _clean_keys(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < _EXACT_INT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return line(value)


def _clean_keys(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Keys that look alike once everything in them is visible are told apart: no value is lost."""
    cleaned: dict[str, Any] = {}
    for key, item in value.items():
        shown = block(str(key))
        while shown in cleaned:
            shown += "′"
        cleaned[shown] = _clean(item)
    return cleaned
