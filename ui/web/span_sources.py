"""The Sources tab: where the text of a sub-call came from, with the passages, or why they are not known."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from traces.home import Home
from traces.reading import RunView, SpanRow
from ui.figures import counted
from ui.passages import SHOWN_BYTES, sources_of
from ui.web import plain

_WHOLE: Final = 10  # passages shown as text below the table


def sources(view: RunView, span: SpanRow, value: Any) -> None:
    """The passages that a prompt holds, by document name, place and byte range, and their text."""
    found = sources_of(view, span, value, Home.resolve().corpora)
    if found is None:
        plain.json(value)
        return
    for sentence in found.words:
        plain.text(sentence)
    if not found.passages:
        return
    rows = [
        {
            "number": number,
            "document": passage.document,
            "place": passage.place,
            "from byte": passage.start,
            "to byte": passage.end,
            "bytes": passage.end - passage.start,
            "in other places": passage.also,
            "text": passage.text or passage.problem,
        }
        for number, passage in enumerate(found.passages, 1)
    ]
    kept = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    plain.table(rows, columns=kept, key=f"{span.span_id}-sources")
    for number, passage in enumerate(found.passages[:_WHOLE], 1):
        if passage.text:
            cut = f", the first {SHOWN_BYTES:,} bytes" if passage.cut else ""
            st.caption(f"Passage {number}{cut}")
            plain.code(passage.text)
    if len(found.passages) > _WHOLE:
        st.caption(f"The texts of the first {_WHOLE} of {counted(len(found.passages), 'passage')}.")
