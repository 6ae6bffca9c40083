"""What a corpus holds, in a few lines below the fields that chose it."""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.corpus import Corpus
from traces.home import Home
from ui.corpora import problems, shown_path
from ui.figures import counted
from ui.web import plain
from ui.web.notices import said

_PROBLEMS_HEIGHT: Final = 150  # pixels
_NAMES_SHOWN: Final = 6
_PROBLEMS_SHOWN: Final = 200  # the page of the corpus has them all


def card(home: Home, corpus: Corpus) -> None:
    """Count, size and first names, and one line for each file that could not be read as it should."""
    names = [document.name for document in corpus.documents[:_NAMES_SHOWN]]
    more = "" if len(names) == len(corpus.documents) else ", …"
    size = f"{counted(len(corpus.documents), 'document')}, {corpus.chars:,} characters"
    said(size, "green", ", ".join(names) + more)
    found = problems(corpus)
    if found:
        lines = [f"{shown_path(home, one['path'])}: {one['message']}" for one in found[:_PROBLEMS_SHOWN]]
        if len(found) > _PROBLEMS_SHOWN:
            lines.append(f"… and {len(found) - _PROBLEMS_SHOWN:,} more: open the corpus to see them all")
        st.badge(counted(len(found), "file with a problem", "files with a problem"), color="orange")
        with st.container(height=_PROBLEMS_HEIGHT if len(lines) > 4 else "content", border=False):
            plain.text("\n".join(lines))
    st.page_link(
        "pages/corpora.py",
        label="Open the corpus",
        icon=":material/folder_open:",
        query_params={"corpus": corpus.corpus_id},
    )
