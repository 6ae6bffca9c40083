"""The list of corpora, and the fields that add one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import streamlit as st

from rlm_core.corpus import CorpusInfo
from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from ui.figures import counted, size
from ui.web import addition_view, launch, stored, uploads
from ui.web.listing import listing, moment
from ui.web.new_documents import MAX_UPLOAD_MB
from ui.web.notices import problem, said
from ui.web.places import CORPUS, href
from ui.web.words_field import words_field

OPEN: Final = "corpora-open"  # in the session: the corpus to go to, "" for the list
SAID: Final = "corpora-said"  # (word, colour, sentence) about what was done last
_STARTED: Final = "corpora-started"  # tickets of additions that were begun on this page
_ADDED: Final = "corpora-added"  # ids of what came of them, until it is dismissed
_ROUND: Final = "corpora-round"  # counts the forms: a new one has no files in it
_WIDTHS: Final = {
    "Name": 260,
    "Documents": 90,
    "Characters": 105,
    "Size": 80,
    "Left out": 75,
    "Changed files": 105,
    "Added": 130,
    "Id": 150,
}
_FILTER_WIDTH: Final = 480  # pixels
_RIGHT: Final = ("Documents", "Characters", "Size", "Left out", "Changed files")


def overview(home: Home) -> None:
    """What is being added, the form, and every corpus of the home."""
    for word, colour, sentence in st.session_state.pop(SAID, ()):
        said(word, colour, sentence)
    _went_well(home)
    addition_view.outcomes(home)
    found = stored.listed(home)
    with st.expander("Add documents", expanded=not found, icon=":material/add:"):
        _form(home)
    if not found:
        st.text("There are no corpora yet. Add documents here, or ask about a sample on the Ask page.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=_FILTER_WIDTH):
            words = words_field("filter", key="corpora-filter", placeholder="words in name or id")
        st.button("Refresh", key="corpora-refresh")
    fitting = matching(found, words)
    all_of_them = counted(len(found), "corpus", "corpora")
    st.caption(all_of_them if len(fitting) == len(found) else f"{len(fitting):,} of {all_of_them}")
    if not fitting:
        st.text("No corpus fits this filter.")
        return
    listing(
        fitting, lambda shown: _rows(home, shown), key="corpora-table", alt="Corpora, newest first",
        widths=_WIDTHS, right=_RIGHT, button=("Open", _open), address="page",
        href=lambda info: href(("pages/corpora.py", {CORPUS: info.corpus_id})),
    )  # fmt: skip


def _open(info: CorpusInfo) -> None:
    st.session_state[OPEN] = info.corpus_id


def matching(found: Iterable[CorpusInfo], words: str) -> list[CorpusInfo]:
    """The corpora in whose name or id every word occurs, whatever its case."""
    wanted = words.casefold().split()
    return [i for i in found if all(word in f"{i.name}\n{i.corpus_id}".casefold() for word in wanted)]


def _rows(home: Home, shown: Sequence[CorpusInfo]) -> list[dict[str, Any]]:
    zone = st.context.timezone
    return [
        {
            "Name": info.name if info.broken is None else f"(cannot be used: {info.broken})",
            **_figures(info, changes),
            "Added": moment(info.added, zone),
            "Id": info.corpus_id,
        }
        for info, changes in zip(shown, stored.changes(home, shown), strict=True)
    ]


def _figures(info: CorpusInfo, changes: str) -> dict[str, str]:
    if info.broken is not None:
        return dict.fromkeys(_RIGHT, "unknown")
    counts = (info.documents, info.chars, info.problems)
    documents, chars, left_out = (f"{count:,}" for count in counts)
    return dict(zip(_RIGHT, (documents, chars, size(info.bytes), left_out, changes), strict=True))


# -- adding


def _form(home: Home) -> None:
    """Files or a path, a name, an encoding. The reading begins at once and needs no page."""
    form = st.session_state.setdefault(_ROUND, 0)
    source = st.segmented_control(
        "From", ["Upload", "Path"], default="Upload", required=True, key="corpora-source"
    )
    files: list[Any] = []
    given = ""
    if source == "Path":
        given = st.text_input(
            "File or folder on the machine where this app runs",
            key=f"corpora-path-{form}", placeholder="/data/contracts", on_change="ignore",
        )  # fmt: skip
        st.caption("Files that are UTF-8 are read in place; all others are copied as text.")
    else:
        files = st.file_uploader(
            "Documents", accept_multiple_files=True, max_upload_size=MAX_UPLOAD_MB,
            key=f"corpora-files-{form}", help="For more than that, or for a whole folder, give its path.",
        )  # fmt: skip
    left, right = st.columns(2)
    name = left.text_input(
        "Name", key=f"corpora-name-{form}", placeholder="after the first file or folder", on_change="ignore"
    )
    encoding = right.text_input(
        "Encoding of texts that are not UTF-8", key=f"corpora-encoding-{form}", placeholder="guessed",
        on_change="ignore", help="A name such as cp1252 or shift_jis.",
    )  # fmt: skip
    if st.button("Add", key="corpora-add", type="primary"):
        try:
            _begin(home, files, given, name, encoding)
        except RLMScopeError as error:
            problem(error)
            return
        st.session_state[_ROUND] = form + 1
        st.rerun()


def _begin(home: Home, files: list[Any], given: str, name: str, encoding: str) -> None:
    paths = [Path(given.strip()).expanduser()] if given.strip() else []
    if not files and not paths:
        raise InputError("Choose files, or give the path of a file or folder.")
    with st.spinner("Reading the documents"):
        if files:
            paths = uploads.keep(home, launch.new_ticket(), files, {})
        ticket = addition_view.begin(home, paths, name.strip(), encoding.strip())
    st.session_state.setdefault(_STARTED, []).append(ticket)


def _went_well(home: Home) -> None:
    """Say what was added from here, with the way to it. The page itself stays where it is."""
    added: list[str] = st.session_state.setdefault(_ADDED, [])
    for ticket in list(st.session_state.get(_STARTED, ())):
        if corpus_id := addition_view.finished(home, ticket):
            st.session_state[_STARTED].remove(ticket)
            added[:] = [*(one for one in added if one != corpus_id), corpus_id]
    for info in [info for info in stored.listed(home) if info.corpus_id in added]:
        with st.container(horizontal=True, vertical_alignment="center", key=f"added-{info.corpus_id}"):
            with st.container(width="content"):
                said("Added", "green", f"{info.name}: {_contents(info)}")
            # a link to the page itself would leave the address as it is
            st.button("Open it", key=f"added-open-{info.corpus_id}", on_click=_open, args=(info,))
            st.button(
                "Dismiss", key=f"added-dismiss-{info.corpus_id}", on_click=added.remove,
                args=(info.corpus_id,),
            )  # fmt: skip


def _contents(info: CorpusInfo) -> str:
    """What is in a corpus and what is not, in words."""
    left_out = f", {counted(info.problems, 'file')} left out" if info.problems else ""
    return f"{counted(info.documents, 'document')}, {info.chars:,} characters{left_out}."
