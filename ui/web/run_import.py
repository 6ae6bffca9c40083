"""Records of other engines, and of other homes, taken in by upload: on the Runs page.

What came of an upload stays on the page until it is put away; the runs themselves are in the home at once.
"""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.importers import IMPORTERS
from traces.importers.importing import Imported, Refused, each_once, import_upload
from ui.figures import counted
from ui.visible import line
from ui.web import plain
from ui.web.notices import note, problem, said
from ui.web.places import run_link

HINT: Final = "Runs of other engines can be read from their logs, and runs of another home from its exports."
_OPEN: Final = "runs-import"  # in the session: whether the fields are shown
_DONE: Final = "runs-import-done"  # in the session: what came of the last upload
_ROUND: Final = "runs-import-round"  # in the session: makes the field new once its files were taken in
_MEGABYTES: Final = 500
_LISTED: Final = 20  # runs and files of an upload that are named
_ABOUT: Final = (
    "Logs of rlms, recursive-flow, DSPy, fast-rlm, predict-rlm and droste, OTLP files and own exports, also "
    "as zip or gz. The format is found by content. What a record does not say is unknown, never 0."
)
_FOUND: Final = "found by content"


def button() -> None:
    """The button that shows the fields."""
    st.button("Import runs…", key="runs-import-button", on_click=_toggle, help=HINT)


def _toggle() -> None:
    st.session_state[_OPEN] = not st.session_state.get(_OPEN, False)
    st.session_state.pop(_DONE, None)


def box(home: Home) -> None:
    """The fields of an upload and what came of the last one; nothing until they are asked for."""
    if not st.session_state.get(_OPEN):
        return
    with st.container(border=True, key="runs-import-box"):
        st.markdown("**Import runs**")
        st.caption(_ABOUT)
        files, format_ = _fields()
        with st.container(horizontal=True, gap="small"):
            wanted = st.button(
                f"Import {counted(len(files), 'file')}" if files else "Import",
                type="primary", disabled=not files, key="runs-import-start",
            )  # fmt: skip
            st.button("Close", key="runs-import-close", on_click=_toggle)
        if wanted:
            _take_in(home, files, format_)
        if _DONE in st.session_state:
            _outcome(st.session_state[_DONE])


def _fields() -> tuple[list[Any], str | None]:
    """The files that were given, and the format that they are said to have."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        folder = st.toggle(
            "A whole folder", key="runs-import-folder", help="A run of recursive-flow is a folder."
        )
        chosen = st.selectbox("Format", [_FOUND, *IMPORTERS], key="runs-import-format", width=220)
    turn = st.session_state.setdefault(_ROUND, 0)
    files = st.file_uploader(
        "Records",
        accept_multiple_files="directory" if folder else True,
        max_upload_size=_MEGABYTES,
        key=f"runs-import-{'folder' if folder else 'files'}-{turn}",
        help="Larger ones: rlmscope import FILE",
    )
    return list(files or ()), None if chosen == _FOUND else chosen


def _take_in(home: Home, files: list[Any], format_: str | None) -> None:
    """Import the files. A run appears whole or not at all, so leaving the page meanwhile harms nothing."""
    try:
        with st.spinner(f"Reading {counted(len(files), 'file')}"):
            done = import_upload(home, [(file.name, file) for file in files], format_)
    except RLMScopeError as error:
        problem(error)
        return
    st.session_state[_DONE] = done
    st.session_state[_ROUND] += 1
    st.rerun()


def _outcome(done: list[Imported | Refused]) -> None:
    """What came in, with the way to each run, and what did not, with the reason."""
    runs = [one for one, _ in each_once(one for one in done if isinstance(one, Imported))]
    refused = [one for one in done if isinstance(one, Refused)]
    new = sum(one.new for one in runs)
    old = len(runs) - new
    again = f", {old:,} {'was' if old == 1 else 'were'} here already" if old else ""
    if runs:
        said("Imported", "green", f"{counted(new, 'new run')}{again}.")
    else:
        said("Nothing imported", "orange", "No run could be read from these files.")
    for number, one in enumerate(runs[:_LISTED]):
        _run(one, number)
    if len(runs) > _LISTED:
        st.caption(f"And {len(runs) - _LISTED:,} more; they stand in the list below.")
    for other in refused[:_LISTED]:
        (note if other.harmless else problem)(f"{line(other.file)}: {line(other.why)}")
    if len(refused) > _LISTED:
        st.caption(f"And {len(refused) - _LISTED:,} more files of which nothing could be had.")


def _run(one: Imported, number: int) -> None:
    parts = [one.format, line(one.file)]
    parts += [f"does not say {counted(len(one.missing), 'thing')}"] if one.missing else []
    parts += [f"{counted(len(one.problems), 'part')} unreadable"] if one.problems else []
    with st.container(
        horizontal=True, gap="small", vertical_alignment="center", key=f"runs-imported-{number}"
    ):
        page, query = run_link(one.run_id)
        st.page_link(page, label=":blue[Open]", query_params=query)
        st.badge("new" if one.new else "already here", color="green" if one.new else "gray")
        with st.container(width="stretch"):
            question = line(one.question or "(the question is not recorded)")
            plain.text(f"{question} · {' · '.join(parts)}")
