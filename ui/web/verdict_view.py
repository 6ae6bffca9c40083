"""The small form in which a person says what to think of a run or of one of its spans."""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.opinions import HOW, NORMALISED, VERDICTS, Opinion, judge, opinions, tag
from ui.web import plain
from ui.web.notices import Colour, problem

COLOURS: Final[dict[str, Colour]] = {"right": "green", "wrong": "red", "unsure": "orange"}
_NOTHING: Final = Opinion(None, None, NORMALISED, None, "")
_SHOWN: Final = 300  # characters of an expected answer or note beside the form


def verdict(home: Home, run_id: str, span_id: str | None = None, *, key: str) -> None:
    """Show what stands about a run (or a span of it), and let it be changed. `key` is unique on the page.

    A verdict is kept at the click; expected answer, note and, for a run, tags by a form of their own.
    """
    try:
        said = opinions(home)
    except RLMScopeError as error:
        problem(error)
        return
    stands = said.of(run_id, span_id) or _NOTHING
    with st.container(gap="small", key=f"{key}-said"):
        for complaint in st.session_state.pop(f"{key}-problems", ()):
            problem(complaint)
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"{key}-verdict"):
            if st.session_state.get(f"{key}-word") != stands.verdict:  # another tab may have said something
                st.session_state[f"{key}-word"] = stands.verdict
            st.segmented_control(
                "Verdict", VERDICTS, key=f"{key}-word", label_visibility="collapsed", width="content",
                on_change=_judged, args=(home, run_id, span_id, key),
            )  # fmt: skip
            with st.popover("Expected answer, note, tags" if span_id is None else "Note"):
                _form(home, run_id, span_id, key, stands, said.tags(run_id))
            _words(stands, () if span_id else said.tags(run_id))


def _judged(home: Home, run_id: str, span_id: str | None, key: str) -> None:
    """A verdict was clicked, or the one that stands was taken back; all else that was said stays, also what
    another tab has said since this page was drawn."""
    try:
        stands = opinions(home).of(run_id, span_id) or _NOTHING
    except RLMScopeError as error:
        st.session_state[f"{key}-problems"] = [error]
    else:
        _keep(home, run_id, span_id, key, st.session_state[f"{key}-word"], stands)


def _keep(home: Home, run_id: str, span_id: str | None, key: str, word: str | None, rest: Opinion) -> None:
    try:
        judge(
            home, run_id, span_id=span_id, verdict=word, expected=rest.expected, how=rest.how, note=rest.note
        )
    except RLMScopeError as error:
        st.session_state[f"{key}-problems"] = [error]


def _form(
    home: Home, run_id: str, span_id: str | None, key: str, stands: Opinion, tags: tuple[str, ...]
) -> None:
    # the fields of another statement are other fields: what another tab saved is not overwritten unseen
    name = f"{key}-{run_id}-{span_id}-{stands.time}"
    with st.form(name, border=False, width=420):
        expected, how, given = "", stands.how, ""
        if span_id is None:
            expected = st.text_area(
                "Expected answer", stands.expected or "", key=f"{name}-expected", height=80
            )
            ways = list(dict.fromkeys((*HOW, stands.how)))
            how = st.selectbox(
                "An answer is right when it is the same by", ways, ways.index(stands.how), key=f"{name}-how"
            )
        note = st.text_area("Note", stands.note or "", key=f"{name}-note", height=80)
        if span_id is None:
            given = st.text_input("Tags, with commas between them", ", ".join(tags), key=f"{name}-tags")
        if not st.form_submit_button("Save", type="primary"):
            return
    wanted = sorted({one.strip() for one in given.split(",") if one.strip()})
    said = Opinion(stands.verdict, expected.strip() or None, how, note.strip() or None, "")
    try:
        if span_id is None and tuple(wanted) != tags:
            tag(home, run_id, wanted)
    except RLMScopeError as error:
        st.session_state[f"{key}-problems"] = [error]
    else:
        _keep(home, run_id, span_id, key, stands.verdict, said)
    st.rerun()


def _words(stands: Opinion, tags: tuple[str, ...]) -> None:
    """What was said beside the verdict, in sight without opening the form."""
    told = {"Expected": stands.expected, "Note": stands.note, "Tags": ", ".join(tags)}
    shown = [f"{name}: {_short(text)}" for name, text in told.items() if text]
    if shown:
        with st.container(width="content"):
            plain.text(" · ".join(shown))


def _short(text: str) -> str:
    even = " ".join(text.split())
    return even if len(even) <= _SHOWN else even[: _SHOWN - 1] + "…"
