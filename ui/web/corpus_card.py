"""What a corpus holds, in a few lines below the fields that chose it."""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError
from traces.home import Home
from ui.corpora import kind, parts, problems, shown_path
from ui.figures import counted
from ui.web import plain
from ui.web.places import document_link, href
from ui.web.rows_view import Column, Item, rows_view

_PROBLEMS_FIRST: Final = 4  # in sight at once; a list that scrolls by itself is out of reach of a keyboard
_PREVIEWED: Final = 3  # documents
_LINE_CHARS: Final = 120  # of a document's beginning
_READ_CHARS: Final = 400  # in which the first line with text is looked for
_PROBLEMS_SHOWN: Final = 200  # the page of the corpus has them all
_KEPT_SECONDS: Final = 20.0
_COLUMNS: Final = (
    Column("Document", 120),
    Column("Kind", 86),
    Column("Characters", 80, right=True),
    Column("Begins with"),
)


def card(home: Home, corpus: Corpus) -> None:
    """Count and size, the first documents with their beginnings, and one line for each file that could not be
    read as it should."""
    st.badge(f"{counted(len(corpus.documents), 'document')}, {corpus.chars:,} characters", color="green")
    _problems(home, corpus)
    _preview(corpus)
    more = len(corpus.documents) - _PREVIEWED
    with st.container(horizontal=True, vertical_alignment="center"):
        if more > 0:
            st.caption(f"and {counted(more, 'more document')}", width="content")
        st.page_link(
            "pages/corpora.py",
            label="Open the corpus",
            icon=":material/folder_open:",
            query_params={"corpus": corpus.corpus_id},
        )


def _preview(corpus: Corpus) -> None:
    begins = _beginnings(corpus, str(corpus.folder))
    items = [
        Item(
            str(document.number),
            (
                document.name,
                ", ".join(filter(None, (kind(document), parts(document)))),
                f"{document.chars:,}",
                begin,
            ),
            href(document_link(corpus.corpus_id, document.number)),
        )
        for document, begin in zip(corpus.documents, begins, strict=False)
    ]
    rows_view(items, _COLUMNS, key="corpus-preview", label="The first documents")


@st.cache_data(max_entries=50, ttl=_KEPT_SECONDS, show_spinner=False)
def _beginnings(_corpus: Corpus, folder: str) -> list[str]:
    """The first line with text of each of the first documents; kept by the folder of the corpus."""
    found = []
    for document in _corpus.documents[:_PREVIEWED]:
        try:
            text = _corpus.text(document.number, 0, min(document.chars, _READ_CHARS))
        except CorpusError as error:
            found.append(f"({error})")
            continue
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        found.append(first if len(first) <= _LINE_CHARS else f"{first[:_LINE_CHARS]}…")
    return found


def _problems(home: Home, corpus: Corpus) -> None:
    found = problems(corpus)
    if found:
        lines = [f"{shown_path(home, one['path'])}: {one['message']}" for one in found[:_PROBLEMS_SHOWN]]
        if len(found) > _PROBLEMS_SHOWN:
            lines.append(f"… and {len(found) - _PROBLEMS_SHOWN:,} more: open the corpus to see them all")
        # no more is wrong with a document than that something of it is told
        remarks = len(found) - len(corpus.problems)
        with st.container(horizontal=True):
            if corpus.problems:
                st.badge(f"{counted(len(corpus.problems), 'file')} left out", color="orange")
            if remarks:
                st.badge(counted(remarks, "remark"), color="gray")
        plain.text("\n".join(lines[:_PROBLEMS_FIRST]))
        if more := found[_PROBLEMS_FIRST:]:
            with st.expander(f"{len(more):,} more", key="corpus-problems"):
                plain.text("\n".join(lines[_PROBLEMS_FIRST:]))
