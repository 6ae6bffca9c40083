"""On the Ask page: documents that are in no corpus yet, uploaded or at a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import streamlit as st

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from ui.figures import counted
from ui.web import addition_view, additions, launch, stored, uploads
from ui.web.corpus_card import card
from ui.web.notices import problem

Ready = Callable[[], Corpus]  # gives the chosen corpus; raises InputError, which says what to do
MAX_UPLOAD_MB: Final = 200
WAITS: Final = "ask-waits"  # in the session: a start was asked for while documents are being read


class AlreadySaid(InputError):
    """The page says already what is wrong."""


@dataclass
class _Uploaded:
    """What this session has uploaded: where the files are, and the addition of those listed at the moment."""

    folder: str
    kept: dict[str, Path] = field(default_factory=dict)
    listed: tuple[str, ...] = ()
    ticket: str | None = None
    error: str | None = None


def upload(home: Home) -> Ready:
    """Fields for files of the user's machine."""
    state: _Uploaded = st.session_state.setdefault("ask-upload", _Uploaded(launch.new_ticket()))
    files = st.file_uploader(
        "Documents",
        accept_multiple_files=True,
        max_upload_size=MAX_UPLOAD_MB,
        key="ask-files",
        on_change=_files_changed,
        help="For more than that, or for a whole folder, give its path instead.",
    )
    if files and tuple(file.file_id for file in files) != state.listed:
        _read(home, state, files)
    if state.error is not None:
        problem(state.error)
    shown = _shown(home, state.ticket) or state.error
    nothing = state.error or "No documents are uploaded yet."
    return lambda: _once(shown, lambda: _ready(home, state.ticket, nothing))


def _files_changed() -> None:
    """Files that the user takes off the list are no longer meant; leaving the page takes nothing off."""
    if not st.session_state["ask-files"]:
        state = st.session_state["ask-upload"]
        state.listed, state.ticket, state.error = (), None, None


def _read(home: Home, state: _Uploaded, files: list[Any]) -> None:
    """Read the files of the list. What still reads an earlier list is stopped, and waited for, first."""
    if state.ticket is not None and _works(home, state.ticket):
        additions.cancel(home, state.ticket)
        return
    state.ticket = state.error = None
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


def path(home: Home) -> Ready:
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
    shown = _shown(home, tickets.get(given or ""))
    return lambda: _once(shown, lambda: _path_ready(home, given or "", tickets))


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


def _shown(home: Home, ticket: str | None) -> str | None:
    """How the reading goes, and what came of it; gives the complaint that is shown, if one is."""
    state = addition_view.bar(home, ticket) if ticket else None
    if state is None or state.state == "working":
        return None
    if state.corpus_id is None:
        if st.session_state.get(WAITS):  # the start that waited says it
            return None
        problem(words := addition_view.why(home, state))
        return words
    try:
        card(home, stored.load(home, state.corpus_id))
    except InputError as error:
        problem(error)
        return str(error)
    return None


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
