"""The Sources tab: where the text of a sub-call came from, with the passages, or why they are not known."""

from __future__ import annotations

from itertools import compress
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
    Column("Passage", 70),
    Column("Document", 120),
    Column("Place", 70),
    Column("Bytes", 90, right=True),
    Column("Also in", 60, right=True),
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
    _table(span, found)
    for number, passage in enumerate(found.passages[:_WHOLE], 1):
        if passage.text:
            cut = f", the first {SHOWN_BYTES:,} bytes" if passage.cut else ""
            st.caption(f"Passage {number}{cut}")
            plain.code(passage.text)
    if len(found.passages) > _WHOLE:
        st.caption(f"The texts of the first {_WHOLE} of {counted(len(found.passages), 'passage')}.")


def _table(span: SpanRow, found: Sources) -> None:
    """Where the passages stand; columns that say nothing are left out."""
    numbered = {str(number): passage for number, passage in enumerate(found.passages, 1)}
    links = {number: _link(found, passage) for number, passage in numbered.items()}
    cells = {number: _cells(number, passage, links[number]) for number, passage in numbered.items()}
    said = [any(row[place] for row in cells.values()) for place in range(len(_COLUMNS))]
    rows_view(
        [
            Item(
                number,
                list(compress(row, said)),
                href=None if (link := links[number]) is None else href(link),
            )
            for number, row in cells.items()
        ],
        list(compress(_COLUMNS, said)),
        key=f"{span.span_id}-sources",
        label="Passages of the corpus in this prompt",
        on_open=lambda number: _open(links[number]),
    )


def _link(found: Sources, passage: Passage) -> Link | None:
    """Where the passage can be read in its document; None where the document cannot be opened."""
    if found.corpus_id is None or passage.problem is not None:
        return None
    return document_link(found.corpus_id, passage.number, passage.start, passage.end)


def _open(link: Link | None) -> None:
    if link is not None:
        st.switch_page(link[0], query_params=link[1])


def _cells(number: str, passage: Passage, link: Link | None) -> tuple[str, ...]:
    """The cells of a passage, in the order of the columns; "" says nothing."""
    also = f"{passage.also:,}" if passage.also else ""
    where = f"{passage.start:,} to {passage.end:,}"
    name = f"Open {number}" if link is not None else number
    return name, passage.document, passage.place or "", where, also, passage.text or passage.problem or ""
