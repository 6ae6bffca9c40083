"""On the Ask page: documents that are in no corpus yet, uploaded or at a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import streamlit as st

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from ui.corpora import UPLOADS
from ui.figures import counted
from ui.web import addition_view, additions, launch, stored, uploads
from ui.web.corpus_card import card
from ui.web.notices import problem

Ready = Callable[[], Corpus]  # gives the chosen corpus; raises InputError, which says what to do
Source = Literal["upload", "path"]
MAX_UPLOAD_MB: Final = 200
WAITS: Final = "ask-waits"  # in the session: a start was asked for while documents are being read


class AlreadySaid(InputError):
    """The page says already what is wrong."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What fields say about a corpus: `ready` gives it when a run starts.

    `corpus_id` is "" until it is known; `chars` are its characters, or its bytes while nobody has counted
    them, None for unknown. `address` is what the address is to say, a name and a value.
    """

    ready: Ready
    corpus_id: str = ""
    chars: int | None = None
    address: tuple[str, str] | None = None


@dataclass
class _Uploaded:
    """What this session has uploaded: where the files are, and the addition of those listed at the moment.

    `earlier` says that these files are from before the page was loaded anew: the widget does not list them.
    """

    folder: str
    kept: dict[str, Path] = field(default_factory=dict)
    listed: tuple[str, ...] = ()
    ticket: str | None = None
    error: str | None = None
    earlier: bool = False


def resume(home: Home, state: additions.State) -> Source:
    """In a new session: go on with an addition that an earlier one began; returns where it came from."""
    paths = [Path(path) for path in state.what.paths]
    if all(path.is_relative_to(home.root / UPLOADS) for path in paths) or len(paths) != 1:
        new = _Uploaded(launch.new_ticket(), ticket=state.ticket, earlier=True)
        st.session_state["ask-upload"] = new
        return "upload"
    st.session_state["ask-path"] = state.what.paths[0]
    st.session_state["ask-read"] = {state.what.paths[0]: state.ticket}
    return "path"


def upload(home: Home) -> Chosen:
    """Fields for files of the user's machine."""
    state: _Uploaded = st.session_state.setdefault("ask-upload", _Uploaded(launch.new_ticket()))
    folder = st.toggle("A whole folder", key="ask-upload-folder", persist_state="session")
    key = "ask-folder" if folder else "ask-files"
    files = st.file_uploader(
        "Documents",
        accept_multiple_files="directory" if folder else True,
        max_upload_size=MAX_UPLOAD_MB,
        key=key,
        on_change=_files_changed,
        args=(key,),
        help="For more than that, give the path of a folder instead.",
    )
    if files and tuple(file.file_id for file in files) != state.listed:
        _read(home, state, files)
    if state.earlier and state.ticket is not None:
        st.caption("Uploaded before this page was loaded anew; files chosen now make another corpus.")
    if state.error is not None:
        problem(state.error)
    complaint, corpus = _shown(home, state.ticket)
    nothing = state.error or "No documents are uploaded yet."
    return _chosen(
        lambda: _once(complaint or state.error, lambda: _ready(home, state.ticket, nothing)),
        corpus,
        state.ticket,
    )


def _chosen(ready: Ready, corpus: Corpus | None, ticket: str | None) -> Chosen:
    if corpus is not None:
        return Chosen(ready, corpus.corpus_id, corpus.chars, ("corpus", corpus.corpus_id))
    return Chosen(ready, address=None if ticket is None else ("reading", ticket))


def _files_changed(key: str) -> None:
    """Files that the user takes off the list are no longer meant; leaving the page takes nothing off."""
    if not st.session_state[key]:
        state = st.session_state["ask-upload"]
        state.listed, state.ticket, state.error = (), None, None


def _read(home: Home, state: _Uploaded, files: list[Any]) -> None:
    """Read the files of the list. What still reads an earlier list is stopped, and waited for, first."""
    if state.ticket is not None and _works(home, state.ticket):
        additions.cancel(home, state.ticket)
        return
    if state.ticket is not None and not state.earlier:
        additions.forget(home, state.ticket)  # nobody asks for an earlier list any more
    state.ticket, state.error, state.earlier = None, None, False
    try:
        with st.spinner(f"Reading {counted(len(files), 'file')}"):
            paths = uploads.keep(home, state.folder, files, state.kept)
            state.ticket = addition_view.begin(home, paths)
    except RLMScopeError as error:
        state.error = str(error)
    state.listed = tuple(file.file_id for file in files)


def _works(home: Home, ticket: str) -> bool:
    found = additions.look(home, ticket)
    return found is not None and found.state == "working"


def path(home: Home) -> Chosen:
    """Fields for files and folders of the machine where the app runs."""
    given = st.text_input(
        "File or folder on the machine where this app runs",
        key="ask-path",
        placeholder="/data/contracts",
        persist_state="session",
        on_change="ignore",
    )
    tickets: dict[str, str] = st.session_state.setdefault("ask-read", {})
    if st.button("Read it now", key="ask-read-now", help="Starting does this too, if it was not done."):
        try:
            _read_path(home, given or "", tickets)
        except RLMScopeError as error:
            problem(error)
    ticket = tickets.get(given or "")
    complaint, corpus = _shown(home, ticket)
    return _chosen(lambda: _once(complaint, lambda: _path_ready(home, given or "", tickets)), corpus, ticket)


def _read_path(home: Home, given: str, tickets: dict[str, str]) -> None:
    if not given.strip():
        raise InputError("Give the path of a file or folder.")
    with st.spinner("Reading the documents"):
        tickets[given] = addition_view.begin(home, [Path(given.strip()).expanduser()])


def _path_ready(home: Home, given: str, tickets: dict[str, str]) -> Corpus:
    if given not in tickets or additions.look(home, tickets[given]) is None:
        _read_path(home, given, tickets)
    try:
        return _ready(home, tickets[given], "The path was not read yet.")
    except addition_view.StillReading:
        raise
    except InputError:
        del tickets[given]  # the next start reads it again
        raise


def _shown(home: Home, ticket: str | None) -> tuple[str | None, Corpus | None]:
    """How the reading goes, and what came of it: the complaint that is shown, if one is, and the corpus."""
    state = addition_view.bar(home, ticket) if ticket else None
    if state is None or state.state == "working":
        return None, None
    if state.corpus_id is None:
        if st.session_state.get(WAITS):  # the start that waited says it
            return None, None
        problem(words := addition_view.why(home, state))
        return words, None
    try:
        corpus = stored.load(home, state.corpus_id)
        card(home, corpus)
    except InputError as error:
        problem(error)
        return str(error), None
    return None, corpus


def _once(shown: str | None, ready: Ready) -> Corpus:
    """The corpus; a complaint that stands on the page already is not to be shown again."""
    try:
        return ready()
    except InputError as error:
        if str(error) == shown:
            raise AlreadySaid(shown) from None
        raise


def _ready(home: Home, ticket: str | None, nothing: str) -> Corpus:
    return stored.load(home, addition_view.corpus_id_of(home, ticket, nothing))
