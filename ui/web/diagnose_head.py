"""The head of the Diagnose page: the run, its answer, whether it can be played again, what was expected."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from traces.diagnosis_state import State
from traces.home import Home
from traces.imported import asked_words, not_again, unanswered_words
from ui.visible import fit, line
from ui.web import plain
from ui.web.diagnose_history import kept_diagnoses
from ui.web.diagnose_words import REPLAYABLE, badge
from ui.web.expected_field import expected_field
from ui.web.import_note import import_badge
from ui.web.run_record import Record
from ui.web.run_words import COLOURS, status_word

_ANSWER_CHARS: Final = 400


def head(record: Record) -> None:
    """Draw the head. Raises RecordError when what people said cannot be read."""
    run, word = record.view.summary, status_word(record.view.summary)
    left, right = st.columns([3, 2], gap="medium")
    with left, st.container(key="diagnose-head", gap="xsmall"):
        with st.container(horizontal=True, gap="small", vertical_alignment="top"):
            st.badge(word, color=COLOURS[word])
            import_badge(run)
            if not_again(run) is None:
                replayable(record.home, record.view.run_id)
            else:
                st.badge("cannot be replayed", color="orange")
            with st.container(width="stretch", key="diagnose-question"):
                plain.text(fit(line(asked_words(run)), _ANSWER_CHARS * 2))
        st.caption("Answer")
        answer = run.answer
        if answer is None:
            st.text(unanswered_words(run))
        else:
            plain.text(answer if len(answer) <= _ANSWER_CHARS else answer[: _ANSWER_CHARS - 1] + "…")
    with right:
        expected_field(record.home, run.run_id, answer)


def replayable(home: Home, run_id: str) -> None:
    """What the last diagnosis of a run said about playing it again, as a badge with its words."""
    found = _replayability(kept_diagnoses(home, run_id))
    if found is None:
        st.badge("not replayed yet", color="gray")
        return
    word, colour = badge(REPLAYABLE, found.get("status"))
    st.badge(word, color=colour)


def _replayability(states: list[State]) -> dict[str, Any] | None:
    for state in states:
        if isinstance(state.replayability, dict):
            return state.replayability
        if (state.diagnosis or {}).get("verdict") == "not_replayable":  # its corpus is gone, for example
            return {"status": "not_replayable"}
    return None
