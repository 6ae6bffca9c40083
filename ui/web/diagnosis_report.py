"""The report of a diagnosis for a colleague, as files: one self-contained page, or Markdown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import streamlit as st

from traces.diagnosis_state import State
from traces.reading import load_run
from ui.web.run_record import Record

if TYPE_CHECKING:
    from traces.report import Report

Form = Literal["html", "md"]
_FORMS: Final[tuple[tuple[Form, str, str], ...]] = (
    ("html", "HTML", "text/html"),
    ("md", "Markdown", "text/markdown"),
)
_HELP: Final = "Question, answers, culprits with prompt and reply, the passage, the proof and the cost."


def downloads(record: Record, state: State) -> None:
    """Draw a button for each form; a report is made only when it is asked for."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="diagnosis-report"):
        st.caption("Report for a colleague", width="content")
        for form, label, mime in _FORMS:
            st.download_button(
                label, partial(document, record, state, form), key=f"diagnosis-report-{form}",
                file_name=f"diagnosis-{state.run_id}.{form}", mime=mime, on_click="ignore", help=_HELP,
            )  # fmt: skip


def document(record: Record, state: State, form: Form) -> str:
    """The report as text. Raises RLMScopeError when the good run cannot be read."""
    made = _report(record, state)
    return made.html() if form == "html" else made.markdown()


def _report(record: Record, state: State) -> Report:
    from traces.report import report

    good = None if state.good_run_id is None else load_run(record.home, state.good_run_id)
    return report(record.view, state.diagnosis or {}, good=good)
