"""Corpora being added, on a page: a bar that moves by itself, and what came of it. No page waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import streamlit as st

from rlm_core.errors import InputError
from traces.home import Home
from ui.adding import fraction, progress_text
from ui.corpora import UPLOADS, shown_path
from ui.figures import counted
from ui.web import additions, plain, stored
from ui.web.additions import State
from ui.web.notices import Colour, said, sentence

GOES_ON: Final = "Reading goes on when you leave this page, and also when the app is stopped."
CANCELLED: Final = "The reading was cancelled: nothing was added."
STOPPING: Final = "Stopping: nothing of it will be kept."
_PERIOD: Final = 0.5  # seconds between two looks
_ENDED: Final[dict[str, tuple[str, Colour]]] = {
    "failed": ("Not added", "red"),
    "cancelled": ("Cancelled", "gray"),
}
_AT_ONCE: Final = 2.0  # seconds that a page waits, so that a few files need no bar


class StillReading(InputError):
    """The corpus is not there yet, but will be."""


def begin(
    home: Home, paths: Sequence[str | Path], name: str | None = None, encoding: str | None = None
) -> str:
    """Begin to add files and folders; returns the ticket. Few files are ready when it returns.

    Raises RecordError when no process can be started.
    """
    what = additions.Addition([str(path) for path in paths], name or None, encoding or None)
    ticket = additions.start(home, what)
    additions.wait(home, ticket, _AT_ONCE)
    return ticket


def bar(home: Home, ticket: str) -> State | None:
    """How an addition stands. While it works, a bar is drawn, and the page runs again at its end."""
    state = additions.look(home, ticket)
    if state is not None and state.state == "working":
        with st.container(border=True, key=f"reading-{ticket}"):
            st.fragment(_moving, run_every=_PERIOD)(home, ticket)
            st.caption(GOES_ON)
    return state


def _moving(home: Home, ticket: str) -> None:
    state = additions.look(home, ticket)
    if state is None or state.state != "working":
        st.rerun()
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch", gap="xsmall"):
            now = state.progress
            if now is None:
                st.progress(0.0, "Looking for files")
            else:
                st.progress(fraction(now), f"Reading: {progress_text(now)}")
            plain.text(now.name if now is not None else title(home, state))
        if state.stopping:
            st.text(STOPPING)
            return
        st.button(
            "Cancel", key=f"reading-cancel-{ticket}", on_click=additions.cancel, args=(home, ticket),
            help="Stops reading. Nothing of it is kept.",
        )  # fmt: skip


def title(home: Home, state: State) -> str:
    """What is being added, in words; the names in it may be anything."""
    paths = state.what.paths
    if state.what.name:
        return state.what.name
    if all(Path(path).is_relative_to(home.root / UPLOADS) for path in paths) and len(paths) > 1:
        return f"{shown_path(home, paths[0])} and {counted(len(paths) - 1, 'more file', 'more files')}"
    return ", ".join(shown_path(home, path) for path in paths)


def corpus_id_of(home: Home, ticket: str | None, nothing: str) -> str:
    """The id of the corpus that an addition made. `nothing` is the sentence for when there is no addition.

    Raises StillReading while it works, InputError when there is no corpus; both say what to do.
    """
    state = additions.look(home, ticket) if ticket else None
    if state is None:
        raise InputError(nothing)
    if state.state == "working":
        raise StillReading("the documents are being read; the run starts after that, if this page is open")
    if state.corpus_id is None:
        raise InputError(why(home, state))
    return state.corpus_id


def why(home: Home, state: State) -> str:
    """Why nothing was added; uploaded files go by the names that their owner knows."""
    words = state.error or CANCELLED
    for path in state.what.paths:
        words = words.replace(path, shown_path(home, path))
    return words


def outcomes(home: Home) -> None:
    """Every addition that works, as a bar, and every one that failed or was cancelled, until dismissed."""
    for state in additions.all_of(home):
        if state.state == "working":
            bar(home, state.ticket)
        elif state.corpus_id is None:
            with st.container(horizontal=True, vertical_alignment="center", key=f"failed-{state.ticket}"):
                with st.container(width="stretch"):
                    named, words = title(home, state), why(home, state)
                    word, colour = _ENDED[state.state]
                    said(word, colour, sentence(words) if named in words else f"{named}: {words}")
                st.button(
                    "Dismiss", key=f"dismiss-{state.ticket}", on_click=additions.forget,
                    args=(home, state.ticket),
                )  # fmt: skip


def finished(home: Home, ticket: str) -> str | None:
    """The id of the corpus once it is there and can be opened; its addition is forgotten then."""
    state = additions.look(home, ticket)
    if state is None or state.corpus_id is None or not stored.is_known(home, state.corpus_id):
        return None
    additions.forget(home, ticket)
    return state.corpus_id
