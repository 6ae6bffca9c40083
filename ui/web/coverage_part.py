"""One document of a run's corpus in the view `coverage`: its parts, the text of one, and what read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import streamlit as st

from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError
from traces.coverage import Coverage, DocumentCoverage, Part, Reading
from ui.figures import counted, size
from ui.web import plain, stored
from ui.web.listing import PAGE_ROWS, listing
from ui.web.notices import Colour, note, problem
from ui.web.passage_view import MOST, passage, passage_of
from ui.web.places import DOCUMENT, FROM, TO, document_link, href, run_link
from ui.web.run_record import Record, Select
from ui.web.span_paths import title
from ui.web.strips_view import WORDS

_COLOURS: Final[dict[str, Colour]] = {
    "sent": "blue",
    "shown": "blue",
    "unanswered": "red",
    "given": "gray",
    "never": "orange",
}
_PARTS: Final = {"Bytes": 170, "Place": 110, "Size": 80, "Fate": 150}
_PARTS_HEIGHT: Final = 270  # pixels
_FEW: Final = 7  # parts that stand there without scrolling
_READINGS: Final = {"Span": 130, "Read as": 150, "Bytes": 170, "Outcome": 80}


def percent(share: float | None) -> str:
    """A share as people read it: what is not nothing is never 0%, what is not all never 100%.

    >>> percent(0.5), percent(0.0001), percent(0.9999), percent(1.0), percent(None)
    ('50%', '<1%', '>99%', '100%', 'unknown')
    """
    if share is None:
        return "unknown"
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"


def document(record: Record, found: Coverage, chosen: DocumentCoverage, select: Select) -> None:
    """The name, the parts, and of the part that the address names its text and its readers."""
    with st.container(key="coverage-document"):
        plain.text(chosen.name)
    corpus = _corpus(record, found, chosen)
    parts = chosen.parts()
    at = _asked(chosen, parts)
    share = percent(chosen.share(chosen.read))
    st.caption(f"{size(chosen.bytes)} · {counted(len(parts), 'part')} · {share} read by a model")
    if corpus is not None:
        start, end = (at.start, at.end) if at is not None else (None, None)
        page, query = document_link(corpus.corpus_id, chosen.number, start, end)
        word = "Open the document" if at is None else "Open the document at this part"
        st.page_link(page, label=word, icon=":material/article:", query_params=query)
    if parts:
        with st.container(height=_PARTS_HEIGHT if len(parts) > _FEW else "content", border=False):
            _parts(found, chosen, parts, at)
    if at is not None:
        _text(corpus, chosen, at)
    _readings(record, found, chosen, at, select)


def _corpus(record: Record, found: Coverage, chosen: DocumentCoverage) -> Corpus | None:
    """The corpus of the run if the home still holds it."""
    if found.corpus_id is None:
        return None
    try:
        corpus = stored.load(record.home, found.corpus_id)
    except CorpusError:
        note("The corpus of this run is not here (any more), so that the text cannot be shown.")
        return None
    return corpus if chosen.number < len(corpus.documents) else None


def _asked(chosen: DocumentCoverage, parts: Sequence[Part]) -> Part | None:
    """The part that the address names: one of the parts, or any range of the document."""
    given = [st.query_params.get(name) for name in (FROM, TO)]
    if given == [None, None]:
        return None
    start, end = (int(n) if n and n.isascii() and n.isdecimal() and len(n) < 16 else -1 for n in given)
    if not 0 <= start < end <= (chosen.bytes or 0):
        problem(f"There is no part “{' to '.join(n or '?' for n in given)[:40]}” of this document.")
        return None
    same = (part for part in parts if (part.start, part.end) == (start, end))
    return next(same, Part(start, end, ""))


# -- parts


def _parts(found: Coverage, chosen: DocumentCoverage, parts: Sequence[Part], at: Part | None) -> None:
    def rows(shown: Sequence[Part]) -> list[dict[str, Any]]:
        places = [found.place(chosen.number, part.start, part.end) for part in shown]
        return [
            {
                "Bytes": f"{part.start:,} to {part.end:,}" + (" (below)" if part == at else ""),
                **({"Place": place or ""} if any(places) else {}),
                "Size": size(part.end - part.start),
                "Fate": (WORDS[part.how], _COLOURS[part.how]),
            }
            for part, place in zip(shown, places, strict=True)
        ]

    listing(
        parts, rows, key=f"coverage-parts-{chosen.number}", alt="Parts of the document", widths=_PARTS,
        right=("Size",), first=parts.index(at) if at in parts else 0, button=("Show", _show),
        href=lambda part: _address(chosen, part),
    )  # fmt: skip


def _show(part: Part) -> None:
    st.query_params.update({FROM: str(part.start), TO: str(part.end)})


def _address(chosen: DocumentCoverage, part: Part) -> str:
    run = st.query_params.get("run", "")
    query = {"run": run, "view": "coverage", DOCUMENT: str(chosen.number)}
    return href(("pages/run.py", {**query, FROM: str(part.start), TO: str(part.end)}))


def _text(corpus: Corpus | None, chosen: DocumentCoverage, at: Part) -> None:
    """The text of a part, marked in what stands around it."""
    if corpus is None:
        return
    try:
        shown = passage_of(corpus, chosen.number, at.start, at.end)
    except CorpusError as error:
        problem(error)
        return
    if at.end - at.start > MOST:
        st.caption(f"The first {MOST:,} bytes of the part are marked.")
    passage(shown, key=f"coverage-text-{chosen.number}-{at.start}-{at.end}")


# -- who read it


def _readings(
    record: Record, found: Coverage, chosen: DocumentCoverage, at: Part | None, select: Select
) -> None:
    read = found.readings(chosen.number, *((at.start, at.end) if at is not None else ()))
    what = "this document" if at is None else "this part"
    if not read:
        st.text(f"Nothing on record read {what}.")
        return
    readers = {one.span_id for one in read if one.how != "unanswered"}
    failed = len({one.span_id for one in read} - readers)
    unanswered = f", {counted(failed, 'call')} that got it failed" if failed else ""
    spans = counted(len(readers), "span")
    st.caption(f"{spans} read {what}{unanswered}; a span with several passages has several rows")
    first = next((place for place, one in enumerate(read) if one.how == "sent"), 0)

    def rows(shown: Sequence[Reading]) -> list[dict[str, Any]]:
        return [
            {
                "Span": title(record.view.by_id[one.span_id]),
                "Read as": WORDS[one.how],
                "Bytes": f"{one.start:,} to {one.end:,}",
                "Outcome": record.view.by_id[one.span_id].status,
            }
            for one in shown
        ]

    listing(
        read, rows, key=f"coverage-readings-{chosen.number}", alt=f"Spans that read {what}",
        widths=_READINGS, first=first - first % PAGE_ROWS, button=("Open", lambda one: select(one.span_id)),
        href=lambda one: href(run_link(record.view.run_id, one.span_id)),
    )  # fmt: skip
