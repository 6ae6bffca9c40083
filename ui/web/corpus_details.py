"""One corpus: what is in it, what is not and why, the text of a document, the runs over it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import streamlit as st

from rlm_core.corpus import Corpus, Document, Problem
from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.reading import RunSummary
from ui import corpora
from ui.figures import counted, size
from ui.web import corpus_changes, corpus_choice, document_view, plain, runs_table, stored
from ui.web.address import put, put_choice
from ui.web.corpora_list import SAID
from ui.web.listing import listing
from ui.web.notices import note, problem, said
from ui.web.places import document_link, href, run_link
from ui.web.run_header import fact
from ui.web.words_field import words_field

OPEN_RUN: Final = "corpus-run"  # in the session: the run to go to
_GO: Final = "corpus-ask"  # in the session: the corpus to ask about
_SHOW: Final = "show"  # in the address: the open tab
_REMARKS: Final = "remarks"
_TAB: Final = "corpus-tab"
_TABS: Final = ("Documents", "Left out", "Runs")
_NAMED_FILES: Final = 5
_DOCUMENTS: Final = {"Document": 200, "No": 64, "Kind": 125, "Characters": 88, "Remarks": 140}
_LEFT_OUT: Final = {"File": 420, "Why": 640}
_RUNS: Final = {"Question": 420, "Status": 90, "Answer": 320, "Started": 130}


def details(home: Home, corpus_id: str) -> None:
    """The page of one corpus. Raises RLMScopeError when there is none, or it cannot be used."""
    if st.session_state.pop(_GO, None) == corpus_id:
        st.switch_page("pages/ask.py")
    for word, colour, sentence in st.session_state.pop(SAID, ()):
        said(word, colour, sentence)
    try:
        corpus = stored.load(home, corpus_id)
    except RLMScopeError as error:
        problem(error)
        if stored.is_known(home, corpus_id):
            corpus_changes.remove_button(corpus_id)
            corpus_changes.removal(home, corpus_id, corpora.runs_over(home, corpus_id, note, replays=True))
        return
    runs = corpora.runs_over(home, corpus_id, note)
    _head(home, corpus, runs)
    corpus_changes.removal(home, corpus_id, runs)
    _changed(home, corpus)
    documents, left_out, asked = st.tabs(_TABS, default=_tab(), key=_TAB, on_change=_shown)
    if documents.open:
        with documents:
            _documents(corpus)
    if left_out.open:
        with left_out:
            _left_out(home, corpus)
    if asked.open:
        with asked:
            _runs(runs)


def _tab() -> str:
    """The tab that the address asks for; one that is not there is said."""
    asked = st.query_params.get(_SHOW, _TABS[0])
    if asked in _TABS:
        return asked
    problem(f"There is no tab “{asked[:40]}” of a corpus; these are its documents.")
    return _TABS[0]


def _shown() -> None:
    put_choice(_SHOW, st.session_state[_TAB], _TABS[0])


def _head(home: Home, corpus: Corpus, runs: Sequence[RunSummary]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch", key="corpus-name"):
            plain.text(corpus.name)
        st.button(
            "Ask about this corpus", key="corpus-ask-button", type="primary", on_click=_ask,
            args=(corpus.corpus_id,),
        )  # fmt: skip
        with st.popover("Rename"):
            corpus_changes.rename(home, corpus)
        corpus_changes.remove_button(corpus.corpus_id)
    parts = corpora.pages(corpus.documents)
    with st.container(horizontal=True, gap="medium", key="corpus-facts"):
        fact("Documents", f"{len(corpus.documents):,}")
        fact("Characters", f"{corpus.chars:,}")
        fact("Size as text", size(sum(document.bytes for document in corpus.documents)))
        if parts:
            fact("Pages", f"{parts:,}")
        fact("Left out", f"{len(corpus.problems):,}")
        fact("Runs", f"{len(runs):,}")
        with st.container(width="content", gap=None):
            st.caption("Id")
            plain.text(corpus.corpus_id)


def _ask(corpus_id: str) -> None:
    corpus_choice.choose_saved(corpus_id)
    st.session_state[_GO] = corpus_id


def _changed(home: Home, corpus: Corpus) -> None:
    """Files that are no longer what was added: a run that meets one stops there."""
    names = set(stored.changed(home, corpus.corpus_id))
    files = [(one.name, os.path.exists(one.path)) for one in corpus.documents if one.name in names]
    gone, other = ([name for name, there in files if there is wanted] for wanted in (False, True))
    for word, found, sentence in (
        (
            "gone",
            gone,
            "not where it was. Put it back, or add the corpus again without it.",
        ),
        ("changed", other, "not what was added any more. Add the corpus again to ask about what is there."),
    ):
        if found:
            listed = ", ".join(found[:_NAMED_FILES]) + (", …" if len(found) > _NAMED_FILES else "")
            said(f"{counted(len(found), 'file')} {word}", "orange", f"{listed}: {sentence}")


# -- what is in it, what is not, what was asked


def _documents(corpus: Corpus) -> None:
    """The documents on the left, the text of one of them on the right."""
    chosen = document_view.chosen(corpus)
    left, right = st.columns([7, 6], gap="medium")
    with left:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            key = f"documents-filter-{corpus.corpus_id}"
            words = words_field("name", key=key, placeholder="words in the name")
            remarked = _only_remarked(corpus.corpus_id)
        found = matching(corpus.documents, words, only_remarked=remarked)
        every = counted(len(corpus.documents), "document")
        st.caption(every if len(found) == len(corpus.documents) else f"{len(found):,} of {every}")
        if found:
            listing(
                found, _document_rows, key="documents-table", alt="Documents of the corpus",
                first=chosen if len(found) == len(corpus.documents) else 0,
                widths=_DOCUMENTS, right=("No", "Characters"),
                button=("Read", lambda one: document_view.choose(corpus.corpus_id, one.number)),
                href=lambda one: href(document_link(corpus.corpus_id, one.number)),
            )  # fmt: skip
        else:
            st.text("No document fits this filter.")
    with right:
        document_view.document(corpus, document_view.choice(corpus))


def _only_remarked(corpus_id: str) -> bool:
    """The switch for documents with remarks; like the field, it shows what the address says."""
    key, only = f"documents-remarked-{corpus_id}", st.query_params.get(_REMARKS) == "1"
    st.session_state[key] = only
    st.toggle("Only with remarks", key=key, on_change=_remarked, args=(key,))
    return only


def _remarked(key: str) -> None:
    put(_REMARKS, "1" if st.session_state[key] else None)


def matching(documents: Sequence[Document], words: str, *, only_remarked: bool) -> list[Document]:
    """The documents in whose name every word occurs, whatever its case; on demand only those with remarks."""
    wanted = words.casefold().split()
    return [
        document
        for document in documents
        if (document.problems or not only_remarked)
        and all(word in document.name.casefold() for word in wanted)
    ]


def _document_rows(shown: Sequence[Document]) -> list[dict[str, Any]]:
    return [
        {
            "Document": document.name,
            "No": document.number,
            "Kind": ", ".join(filter(None, (corpora.kind(document), corpora.parts(document)))),
            "Characters": f"{document.chars:,}",
            "Remarks": "; ".join(document.problems),
        }
        for document in shown
    ]


def _left_out(home: Home, corpus: Corpus) -> None:
    if not corpus.problems:
        st.text("Every file that was given is in this corpus.")
        return

    def rows(shown: Sequence[Problem]) -> list[dict[str, Any]]:
        return [{"File": corpora.shown_path(home, one.path), "Why": one.message} for one in shown]

    listing(corpus.problems, rows, key="problems-table", alt="Files that are not in it", widths=_LEFT_OUT)


def _runs(runs: Sequence[RunSummary]) -> None:
    if not runs:
        st.text("Nothing was asked over this corpus yet.")
        return
    zone = st.context.timezone

    def rows(shown: Sequence[RunSummary]) -> list[dict[str, Any]]:
        listed = (runs_table.row(run, zone) for run in shown)
        return [{name: row[name] for name in _RUNS} for row in listed]

    listing(
        runs, rows, key="corpus-runs-table", alt="Runs over this corpus", widths=_RUNS,
        button=("Open", _open_run), href=lambda run: href(run_link(run.run_id)),
    )  # fmt: skip


def _open_run(run: RunSummary) -> None:
    st.session_state[OPEN_RUN] = run.run_id
