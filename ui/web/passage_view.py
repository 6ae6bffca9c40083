"""A passage of a document, marked in the text that stands around it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from rlm_core.corpus import Corpus
from ui.visible import block

AROUND: Final = 2_000  # bytes of text shown before a passage, and after it
MOST: Final = 20_000  # bytes of a passage that are shown
_LABEL: Final = "Text of the document with the passage marked"
_HERE: Final = Path(__file__).parent


def _source(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


_view = st.components.v2.component(
    "rlmscope.passage", css=_source("passage_view.css"), js=_source("passage_view.js")
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage with the text around it, and where all of it stands: bytes `first` to `last`."""

    before: str
    text: str
    after: str
    first: int
    last: int


def passage_of(corpus: Corpus, document: int, start: int, end: int) -> Passage:
    """The bytes `start` to `end` of a document and what surrounds them, bounded in size.

    A range that begins or ends inside a character takes no part of it. Raises CorpusError for a range that
    does not exist, and when the text can no longer be read.
    """
    size = corpus.documents[document].bytes
    stop = min(end, start + MOST)
    first, last = max(start - AROUND, 0), min(stop + AROUND, size)
    raw = corpus.raw(document, first, last)
    cuts = (raw[: start - first], raw[start - first : stop - first], raw[stop - first :])
    before, text, after = (part.decode("utf-8", "ignore") for part in cuts)
    return Passage(before, text, after, first, last)


def passage(shown: Passage, *, key: str, label: str = _LABEL) -> None:
    """Draw it, scrolled to where the passage begins; `label` (ours) says to screen readers what it is."""
    _view(
        key=key,
        data={
            "label": label,
            "before": block(shown.before),
            "passage": block(shown.text),
            "after": block(shown.after),
        },
    )
