"""A culprit of a diagnosis: what it was asked, what it said and should have said, the passage it read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import streamlit as st

from rlm_core.corpus import Corpus
from rlm_core.errors import RLMScopeError
from traces.reading import RunView, SpanRow, span_detail
from ui.figures import counted
from ui.passages import Passage, Sources, passage_line, sources_of
from ui.tree import problem as what_went_wrong
from ui.web import plain, stored
from ui.web.diagnose_words import ORIGIN
from ui.web.diff_view import diff_view
from ui.web.findings_view import place
from ui.web.notices import problem, said
from ui.web.places import document_link, run_link
from ui.web.run_record import Record
from ui.web.ways import way

_PASSAGES: Final = 3  # of one culprit
_TEXT_HEIGHT: Final = 200  # pixels of a text that is longer than a few lines
_FEW_LINES: Final = 8
_FEW_CHARS: Final = 600
_Text = tuple[str | None, str]  # the text, and what stands in its place where there is none


def detail_of(record: Record, span: SpanRow) -> dict[str, Any]:
    """All that is recorded of a span, worked out once. Raises RecordError."""
    return record.once(lambda view: span_detail(view, span), f"detail-{span.span_id}")


def sources_of_span(record: Record, span: SpanRow) -> Sources | None:
    """Where the text of a span's prompt came from, worked out once. Raises RecordError."""

    def make(view: RunView) -> Sources | None:
        def load(_folder: Path, corpus_id: str) -> Corpus:
            return stored.load(record.home, corpus_id)

        ranges = detail_of(record, span).get("source_ranges")
        return sources_of(view, span, ranges, record.home.corpora, load)

    return record.once(make, f"sources-{span.span_id}")


def culprit_view(
    record: Record, patch: Mapping[str, Any], number: int, *, proven: bool, test: Callable[[str], None]
) -> None:
    """Draw one culprit. `patch` is as in the JSON of a diagnosis; `test` goes to the field where another
    answer of that span can be tried."""
    span = record.view.by_id.get(str(patch.get("span_id")))
    with st.container(border=True, key=f"culprit-{number}", gap="small"):
        if span is None:
            problem(f"The span {str(patch.get('span_id'))[:60]} is not in the record of this run.")
            return
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.badge("culprit" if proven else "candidate", color="red" if proven else "orange")
            page, query = run_link(record.view.run_id, span.span_id)
            st.page_link(page, label=f":blue[{place(record.view, span.span_id)}]", query_params=query)
            way(":blue[Try another text]", f"culprit-test-{number}", test, span.span_id)
        try:
            _texts(record, span, patch, number)
        except RLMScopeError as error:
            problem(error)


def _texts(record: Record, span: SpanRow, patch: Mapping[str, Any], number: int) -> None:
    detail = detail_of(record, span)
    text = patch.get("text")
    should = text if isinstance(text, str) else None
    origin = ORIGIN.get(str(patch.get("origin")), "of unknown origin")
    if span.kind == "cell":
        st.caption(f"Its code, and the code that makes the answer right: {origin}")
        diff_view(
            detail.get("code") or "", should or "", key=f"culprit-{number}-code",
            names=("As it ran", "As it should be"), label="The code of the cell on both sides",
        )  # fmt: skip
        return
    left, right = st.columns(2, gap="medium")
    with left:
        _text("It said", said_by(detail, span), f"culprit-{number}-said")
    with right:
        _text(f"It should have said: {origin}", (should, "(not recorded)"), f"culprit-{number}-should")
    asked, missing = asked_of(detail, span)
    if asked is not None:
        label = "Prompt" if span.kind == "sub_call" else "Question"
        box = st.expander(f"{label}, {counted(len(asked), 'character')}", key=f"culprit-{number}-prompt")
        with box:
            plain.payload(asked, key=f"culprit-{number}-asked", file_name="prompt.txt")
    else:
        st.caption(missing)
    passages(record, span, f"culprit-{number}")


def said_by(detail: Mapping[str, Any], span: SpanRow) -> _Text:
    """What a call answered."""
    text = detail.get("answer") if span.kind == "run" else detail.get("response")
    if text is not None:
        return str(text), "(empty)"
    return None, f"No reply: {what_went_wrong(span) or 'no reply is recorded.'}"


def asked_of(detail: Mapping[str, Any], span: SpanRow) -> _Text:
    """What a call was asked."""
    text = detail.get("question") if span.kind == "run" else detail.get("prompt")
    return (None if text is None else str(text)), "Its prompt is not in the record."


def _text(label: str, text: _Text, key: str) -> None:
    st.caption(label)
    found, missing = text
    if not found:
        plain.text(missing)
        return
    plain.payload(found, key=key, file_name=f"{key}.txt", height=height(found))


def height(text: object) -> int | None:
    """Pixels of the box of a text: as high as it is, unless it is long."""
    words = str(text)
    return _TEXT_HEIGHT if words.count("\n") >= _FEW_LINES or len(words) > _FEW_CHARS else None


def passages(record: Record, span: SpanRow, key: str) -> None:
    """The passages that a call read, each with the way to its document."""
    found = sources_of_span(record, span)
    if found is None:
        return
    for number, passage in enumerate(found.passages[:_PASSAGES]):
        with st.container(gap=None, key=f"{key}-passage-{number}"):
            with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                said("It read", "blue", passage_line(passage))
                _open(found.corpus_id, passage)
            if passage.text:
                plain.code(passage.text, height=height(passage.text))
            elif passage.problem is not None:
                st.caption("The passage cannot be shown here.")
                plain.text(passage.problem)
    if len(found.passages) > _PASSAGES:
        st.caption(f"{len(found.passages) - _PASSAGES:,} more passages stand at the span itself.")
    if not found.passages:
        for sentence in found.words:
            plain.text(sentence)


def _open(corpus_id: str | None, passage: Passage) -> None:
    if corpus_id is not None and passage.problem is None:
        page, query = document_link(corpus_id, passage.number, passage.start, passage.end)
        st.page_link(page, label=":blue[Open in the document]", query_params=query)
