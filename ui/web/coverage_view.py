"""The view `coverage` of a run: which parts of each document it read, and the spans that read them.

In the address: `docs` (all, unsent, unanswered, untouched), `name` (words in the name), `document` (a
number), and `from` and `to`, the bytes of a part of it. "Sent, never answered" shows only where it happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st

from traces.coverage import Coverage, DocumentCoverage, coverage
from traces.imported import is_foreign
from ui.figures import counted, size
from ui.web import coverage_part
from ui.web.address import put_choice
from ui.web.coverage_part import percent
from ui.web.listing import paged
from ui.web.notices import note, problem
from ui.web.places import DOCUMENT, FROM, TO
from ui.web.run_header import fact
from ui.web.run_record import Record, Select
from ui.web.strips_view import Strip, strips_view
from ui.web.words_field import words_field

_STYLE: Final = """
<style>
.st-key-coverage-document [data-testid="stText"] { font-size: 1.2rem; font-weight: 600; }
</style>
"""
_DOCS: Final = "docs"  # in the address
_NAME: Final = "name"
_WHICH: Final = "coverage-which"
_ALL: Final = "all"
_FATES: Final = {  # column, and words above the strips
    "sent": ("Sent", "Sent to sub-calls"),
    "shown": ("Shown", "Only shown to the root"),
    "unanswered": ("Failed", "Sent, never answered"),
    "given": ("Given", "Only given to code"),
    "never": ("Never", "Never touched"),
}
_UNANSWERED: Final = " What went only to calls that failed was never answered: it does not count as read."
_SLOW: Final = 20_000  # documents or spans: working it out takes a moment


def show(record: Record, select: Select) -> None:
    """Draw the figures of the corpus, its documents, and the one that the address names."""
    st.html(_STYLE)
    many = len(record.view.spans) > _SLOW
    with st.spinner("Working out what was read", show_time=False) if many else st.container():
        found = record.once(coverage)
    if found.documents or not is_foreign(record.view.summary):
        _figures(found)
    for sentence in found.words:
        note(sentence)
    if not found.documents:
        return
    chosen = _chosen(found)
    listed, detail = st.columns([7, 6], gap="medium")
    with listed:
        _documents(found, chosen, record.view.run_id)
    with detail:
        if chosen is None:
            st.text("Choose a document, or a part of its strip, to see what read it.")
        else:
            coverage_part.document(record, found, chosen, select)


def _figures(found: Coverage) -> None:
    """What became of the corpus: shares that add up to all of it, and how many documents were missed."""
    least = "at least " if found.lower_bound else ""
    with st.container(horizontal=True, gap="medium", key="coverage-facts"):
        fact("Read by a model", f"{least}{percent(found.read_share)}")
        for how in _fates(found):
            share = found.sizes[how] / found.bytes if found.bytes else None
            fact(_FATES[how][1], f"{percent(share)} ({size(found.sizes[how])})")
        fact("Documents", f"{len(found.documents):,}")
    st.caption(
        "Each byte counts once, with what tells most about it: sent before shown before given to code."
        + (_UNANSWERED if found.sizes["unanswered"] else "")
    )


def _fates(found: Coverage) -> list[str]:
    """What parts of this corpus may have met with."""
    return [how for how in _FATES if how != "unanswered" or found.sizes[how]]


# -- the list


def _documents(found: Coverage, chosen: DocumentCoverage | None, run_id: str) -> None:
    which: Mapping[str, Sequence[DocumentCoverage]] = {
        _ALL: found.least_first,
        "unsent": found.never_sent,
        **({"unanswered": found.never_answered} if found.never_answered else {}),
        "untouched": found.never_touched,
    }
    titles = {
        _ALL: "All", "unsent": "Never sent", "unanswered": "Never answered", "untouched": "Never touched",
    }  # fmt: skip
    st.session_state[_WHICH] = _asked(which)  # the address leads, also after a step back
    with st.container(horizontal=True, vertical_alignment="top"):
        st.segmented_control(
            "Documents", list(which), key=_WHICH, required=True,
            format_func=lambda name: f"{titles[name]} ({len(which[name]):,})",
            on_change=_listed,
        )  # fmt: skip
        words = words_field(_NAME, key=f"coverage-words-{run_id}", placeholder="words in the name")
    wanted = words.casefold().split()
    listed = which[st.session_state[_WHICH]]
    fitting = [one for one in listed if all(word in one.name.casefold() for word in wanted)]
    every = counted(len(found.documents), "document")
    count = every if len(fitting) == len(found.documents) else f"{len(fitting):,} of {every}"
    st.caption(f"{count}, those that models read least of first")
    if not fitting:
        st.text("No document fits this filter.")
        return
    paged(
        fitting, lambda shown: _strips(found, shown, chosen), key="coverage-documents", address="page",
        first=fitting.index(chosen) if chosen in fitting else 0,
    )  # fmt: skip


def _strips(found: Coverage, shown: Sequence[DocumentCoverage], chosen: DocumentCoverage | None) -> None:
    fates = _fates(found)
    strips_view(
        [_strip(document, fates) for document in shown],
        [_FATES[how][0] for how in fates],
        key="coverage-strips",
        label="Documents and what became of their parts",
        chosen=None if chosen is None else str(chosen.number),
        on_choose=lambda key: _go(found.documents[int(key)]),
        on_part=lambda key, start, end: _go(found.documents[int(key)], start, end),
    )


def _strip(document: DocumentCoverage, fates: Sequence[str]) -> Strip:
    parts = document.parts()
    sizes = {how: sum(part.end - part.start for part in parts if part.how == how) for how in fates}
    shares = [percent(sizes[how] / document.bytes if document.bytes else None) for how in fates]
    return Strip(str(document.number), document.name, parts, shares)


# -- the address


def _asked(which: Mapping[str, Any]) -> str:
    asked = st.query_params.get(_DOCS, _ALL)
    if asked in which:
        return asked
    problem(f"There is no list “{asked[:40]}” of documents; these are all of them.")
    return _ALL


def _chosen(found: Coverage) -> DocumentCoverage | None:
    """The document that the address names; one that does not exist is said."""
    asked = st.query_params.get(DOCUMENT)
    if asked is None:
        return None
    if asked.isdecimal() and asked.isascii() and len(asked) < 10 and int(asked) < len(found.documents):
        return found.documents[int(asked)]
    problem(f"There is no document “{asked[:20]}” in this run: they are 0 to {len(found.documents) - 1:,}.")
    return None


def _listed() -> None:
    put_choice(_DOCS, st.session_state[_WHICH], _ALL)


def _go(document: DocumentCoverage, start: int | None = None, end: int | None = None) -> None:
    """Choose a document, or a part of it: of a strip in steps the part in which the middle lies."""
    for name in (FROM, TO):
        st.query_params.pop(name, None)
    st.query_params[DOCUMENT] = str(document.number)
    if start is None or end is None:
        return
    middle = (start + end) // 2
    parts = document.parts()
    exact = next((part for part in parts if (part.start, part.end) == (start, end)), None)
    part = exact or next((part for part in parts if part.start <= middle < part.end), None)
    if part is not None:
        st.query_params.update({FROM: str(part.start), TO: str(part.end)})
