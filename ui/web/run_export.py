"""Runs as files for other programs and people: a choice of formats, then the file to download.

On the Run page behind a button, on the Runs page as a box for the chosen runs. A file is made when it is
asked for, by the same functions as `rlmscope export`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.exporters import FORMATS, export_runs
from traces.home import Home
from ui.figures import counted, size
from ui.web import plain
from ui.web.notices import note, problem

_ASKED: Final = "runs-export"  # in the session: ids of the runs that are to be exported
_MADE: Final = "export-made"  # in the session: what was made last
_MOST_BYTES: Final = 200_000_000  # of the records together: what is made here is held in memory
_BUTTON: Final = 92  # pixels: all names of formats fit
_CARE: Final = (
    "What looks like a key is taken out. The file holds texts of your documents and prompts: whoever gets it "
    "can read them."
)


@dataclass(frozen=True, slots=True)
class _Made:
    """A file in a format, with what must be said of it."""

    run_ids: tuple[str, ...]
    form: str
    name: str
    data: bytes
    redacted: int
    notes: tuple[str, ...]


def offer(home: Home, run_id: str) -> None:
    """A button that opens the choice for one run."""
    with st.popover("Export", key="run-export", help="This run as a file, for people or other programs."):
        _form(home, (run_id,), "run-export")


def ask(run_ids: Sequence[str]) -> None:
    """Ask in which format these runs are wanted."""
    st.session_state[_ASKED] = tuple(run_ids)


def _close() -> None:
    st.session_state.pop(_ASKED, None)
    st.session_state.pop(_MADE, None)


def box(home: Home) -> None:
    """The choice for the runs that were asked for; nothing where none were."""
    run_ids: tuple[str, ...] = st.session_state.get(_ASKED, ())
    if not run_ids:
        return
    with st.container(border=True, key="runs-export-box"):
        st.markdown(f"**Export of {counted(len(run_ids), 'run')}**")
        _form(home, run_ids, "runs-export")
        st.button("Close", key="runs-export-close", on_click=_close)


@st.fragment  # drawn by itself: with the whole page, what was made before would stay in reach that long
def _form(home: Home, run_ids: tuple[str, ...], key: str) -> None:
    """A button for each format with what it is; then what came of the last one that was pressed."""
    asked = None
    for name, form in FORMATS.items():
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            if st.button(name, key=f"{key}-{name}", width=_BUTTON):
                asked = name
            st.markdown(form.words, width="content")
    st.caption(_CARE)
    came = st.empty()  # what was made before leaves the page now, not when the next file is made
    if asked is not None:
        _make(home, run_ids, asked)
    made: _Made | None = st.session_state.get(_MADE)
    if made is not None and made.run_ids == run_ids:
        with came.container():
            _show(made, key)


def _make(home: Home, run_ids: tuple[str, ...], form: str) -> None:
    st.session_state.pop(_MADE, None)
    if (total := _bytes(home, run_ids)) > _MOST_BYTES:
        named = run_ids[0] + (" ..." if run_ids[1:] else "")
        problem(
            f"The record has {size(total)}, too much to be made here. In a terminal it can be done: "
            f"rlmscope export {named} --format {form} --out PATH"
        )
        return
    name = (run_ids[0] if len(run_ids) == 1 else "runs") + FORMATS[form].ending
    try:
        with st.spinner("Reading the runs" if run_ids[1:] else "Reading the run"):
            st.session_state[_MADE] = _made(home, run_ids, form, name)
    except (RLMScopeError, OSError) as error:
        problem(error)


def _made(home: Home, run_ids: tuple[str, ...], form: str, name: str) -> _Made:
    with tempfile.TemporaryDirectory() as scratch:
        done = export_runs(form, home, run_ids, Path(scratch, name), warn=note)
        path = done.path
        if path.is_dir():
            path = Path(shutil.make_archive(f"{path}-packed", "zip", path))
            name = f"{name.removesuffix(FORMATS[form].ending)}-{form}.zip"
        return _Made(run_ids, form, name, path.read_bytes(), done.redacted, done.notes)


def _bytes(home: Home, run_ids: Sequence[str]) -> int:
    """Bytes of the spools of these runs, as far as they are there."""
    total = 0
    for run_id in run_ids:
        with suppress(OSError):
            total += home.spool_file(run_id).stat().st_size
    return total


def _show(made: _Made, key: str) -> None:
    for sentence in made.notes:
        note(sentence)
    if made.redacted:
        note(f"What looks like a key was taken out in {counted(made.redacted, 'place')}.")
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.download_button(
            "Download", made.data, made.name, "application/octet-stream", key=f"{key}-download-{made.name}",
            on_click="ignore", icon=":material/download:",
        )  # fmt: skip
        with st.container(width="stretch"):
            plain.text(f"{made.name}, {size(len(made.data))}")
