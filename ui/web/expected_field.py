"""The answer that a person expects of a run, in a small form; kept with what else is said of the run."""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.opinions import HOW, NORMALISED, Opinion, judge, opinions
from traces.same_answer import explain, same_answer
from ui.visible import block
from ui.web.notices import note, problem, said

_NOTHING: Final = Opinion(None, None, NORMALISED, None, "")


def expectation(home: Home, run_id: str) -> Opinion:
    """What stands about a run. Raises RecordError when what people said cannot be read."""
    return opinions(home).of(run_id) or _NOTHING


def expected_field(home: Home, run_id: str, answer: str | None) -> Opinion:
    """Let the expected answer of a run be entered; returns what stands. `answer` is what the run says.

    Raises RecordError when what people said cannot be read.
    """
    stands = expectation(home, run_id)
    name = f"expected-{run_id}-{stands.time}"  # the field of another statement is another field
    with (
        st.form(name, border=False),
        st.container(horizontal=True, gap="small", vertical_alignment="bottom"),
    ):
        text = st.text_area(
            "Expected answer", _editable(stands.expected), key=f"{name}-text", height=68,
            placeholder="What should it say? Optional.",
        )  # fmt: skip
        ways = list(dict.fromkeys((*HOW, stands.how)))
        how = st.selectbox("Same by", ways, ways.index(stands.how), key=f"{name}-how", width=140)
        saved = st.form_submit_button("Save")
    if saved:
        unseen = stands.expected if _editable(stands.expected) != stands.expected else None
        expected = text.strip() or unseen
        try:
            judge(home, run_id, verdict=stands.verdict, expected=expected, how=how, note=stands.note)
        except RLMScopeError as error:
            problem(error)
        else:
            st.rerun()
    if stands.expected is not None:
        _compared(answer, stands.expected, stands.how)
    return stands


def _editable(expected: str | None) -> str:
    """A text as a field may show it: one that hides or reorders any of itself stays out."""
    return expected if expected is not None and expected == block(expected) else ""


def _compared(answer: str | None, expected: str, how: str) -> None:
    if _editable(expected) != expected:
        note(f"The expected answer holds marks that cannot be seen: {expected}")
    same = same_answer(answer, expected, how)
    if same:
        said("Same", "green", f"The answer is the expected one; {explain(how)}.")
    elif same is None:
        said("Undecided", "orange", f"No rule can tell whether it is the expected one; {explain(how)}.")
