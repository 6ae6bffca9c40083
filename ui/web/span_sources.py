"""The Sources tab: where the text of a sub-call came from, with the passages, or why they are not known."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from traces.home import Home
from traces.reading import RunView, SpanRow
from ui.figures import counted
from ui.passages import SHOWN_BYTES, Passage, Sources, sources_of
from ui.web import plain
from ui.web.places import Link, document_link, href
from ui.web.rows_view import Column, Item, rows_view

_WHOLE: Final = 10  # passages shown as text below the table
_COLUMNS: Final = (
    Column("Passage", 80),
    Column("Document", 140),
    Column("Place", 70),
    Column("Bytes", 110, right=True),
    Column("Other places", 60, right=True),
    Column("Text"),
)


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
    links = {str(number): _link(found, passage) for number, passage in enumerate(found.passages, 1)}
    rows_view(
        [_item(number, passage, links[str(number)]) for number, passage in enumerate(found.passages, 1)],
        _COLUMNS,
        key=f"{span.span_id}-sources",
        label="Passages of the corpus in this prompt",
        on_open=lambda number: _open(links[number]),
    )
    for number, passage in enumerate(found.passages[:_WHOLE], 1):
        if passage.text:
            cut = f", the first {SHOWN_BYTES:,} bytes" if passage.cut else ""
            st.caption(f"Passage {number}{cut}")
            plain.code(passage.text)
    if len(found.passages) > _WHOLE:
        st.caption(f"The texts of the first {_WHOLE} of {counted(len(found.passages), 'passage')}.")


def _link(found: Sources, passage: Passage) -> Link | None:
    """Where the passage can be read in its document; None where the document cannot be opened."""
    if found.corpus_id is None or passage.problem is not None:
        return None
    return document_link(found.corpus_id, passage.number, passage.start, passage.end)


def _open(link: Link | None) -> None:
    if link is not None:
        st.switch_page(link[0], query_params=link[1])


def _item(number: int, passage: Passage, link: Link | None) -> Item:
    also = "" if passage.also is None else f"{passage.also:,}"
    where = f"{passage.start:,} to {passage.end:,}"
    text = passage.text or passage.problem or ""
    name = f"Open {number}" if link is not None else str(number)
    cells = (name, passage.document, passage.place or "", where, also, text)
    return Item(str(number), cells, href=None if link is None else href(link))
