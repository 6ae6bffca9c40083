"""What came of a replay that a person started: a tested reply, or a twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import streamlit as st

from traces.diagnosis_state import State
from traces.trial import OUTCOMES
from ui.web import plain
from ui.web.diagnose_history import is_twin
from ui.web.diagnose_words import OUTCOME, badge
from ui.web.notices import note, said
from ui.web.places import diagnose_link, run_link
from ui.web.run_record import Record

_SENTENCES: Final[dict[str, str]] = {str(word): words for word, words in OUTCOMES.items()}
_ASK: Final = (
    "The root may have written its answer after reading that output, so only the root can tell: test it "
    "again and let the root be asked."
)
_NOT_TRUTH: Final = (
    "The replay proves what this text does to the answer, not that the text is true: compare it with what "
    "the call was given"
)


def replay_outcome(record: Record, state: State) -> None:
    """Draw outcome and answers; of a twin also the ways on from it."""
    trials, last = state.trials, state.trials[-1]
    if is_twin(state):
        said("Twin", "blue", "Every sub-call was asked again; this is what the same code made of it.")
    else:
        word, colour = badge(OUTCOME, last.get("outcome"))
        said(word, colour, _SENTENCES.get(str(last.get("outcome")), "Its outcome is unknown."))
    _doubt(state)
    if len(trials) > 1:
        fixed = sum(trial.get("outcome") == "fixed" for trial in trials)
        plain.text(
            f"The answer came out right in {fixed} of {len(trials)} replays, which proves nothing yet."
        )
    if isinstance(last.get("stopped"), str):
        note(f"It could not go on: {last['stopped']}")
    _answers(last)
    if last.get("outcome") == "fixed" and last.get("patches"):
        note(_NOT_TRUTH)
    if last.get("outcome") == "reached_root":
        note(_ASK)
    if isinstance(last.get("run_id"), str):
        _ways(record, state, str(last["run_id"]))


def _doubt(state: State) -> None:
    """That a replay of this run proves nothing, where even one without a patch comes out differently."""
    found = state.replayability or {}
    if found.get("status") in ("not_replayable", "seed_dependent"):
        said("No proof", "orange", found.get("words"))


def _answers(trial: Mapping[str, Any]) -> None:
    left, right = st.columns(2, gap="medium")
    for column, words, name in ((left, "Answer before", "original_answer"), (right, "Answer now", "answer")):
        with column, st.container(gap=None):
            st.caption(words)
            text = trial.get(name)
            plain.text("(no answer)" if text is None else text)


def _ways(record: Record, state: State, replayed: str) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        page, query = run_link(replayed)
        label = "Open the twin" if is_twin(state) else "Open the replay"
        st.page_link(page, label=f":blue[{label}]", query_params=query)
        pair = {"a": record.view.run_id, "b": replayed}
        st.page_link("pages/compare.py", label=":blue[Compare the two runs]", query_params=pair)
        if is_twin(state):
            st.button(
                ":blue[Take it as the good run]", key="twin-take", type="tertiary", on_click=_take,
                args=(record.view.run_id, replayed),
            )  # fmt: skip


def _take(run_id: str, twin: str) -> None:
    st.query_params.from_dict(diagnose_link(run_id, twin)[1])
