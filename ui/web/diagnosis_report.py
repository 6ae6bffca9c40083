"""The report of a diagnosis for a colleague, as files: one self-contained page, or Markdown."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

import streamlit as st

from traces.diagnosis_state import State
from traces.home import Home

Form = Literal["html", "md"]
_FORMS: Final[tuple[tuple[Form, str, str], ...]] = (
    ("html", "HTML", "text/html"),
    ("md", "Markdown", "text/markdown"),
)
_HELP: Final = "Question, answers, culprits with prompt and reply, the passage, the proof and the cost."


def downloads(home: Home, state: State) -> None:
    """Draw a button for each form; a report is made only when it is asked for."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="diagnosis-report"):
        st.caption("Report for a colleague", width="content")
        for form, label, mime in _FORMS:
            st.download_button(
                label, partial(document, home, state, form), key=f"diagnosis-report-{form}",
                file_name=f"diagnosis-{state.run_id}.{form}", mime=mime, on_click="ignore", help=_HELP,
            )  # fmt: skip


def document(home: Home, state: State, form: Form) -> str:
    """The report as text. Raises RLMScopeError when the run cannot be read."""
    from ui.reporting import report_of

    made = report_of(home, state.diagnosis or {})
    return made.html() if form == "html" else made.markdown()
