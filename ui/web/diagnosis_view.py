"""What a diagnosis found: the verdict in words, the culprits, the proof, what it rests on, what it took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import streamlit as st

from traces.diagnosis_state import State
from traces.trial import MODES
from ui.figures import counted, duration
from ui.web import diagnosis_report, lineage_view, plain
from ui.web.culprit_view import culprit_view, height
from ui.web.diagnose_words import OUTCOME, STATUS, VERDICT, badge, budget_words, span_words, spent_words
from ui.web.notices import note, problem, said
from ui.web.places import href, run_link
from ui.web.replay_outcome import replay_outcome
from ui.web.rows_view import Column, Item, rows_view
from ui.web.run_header import fact
from ui.web.run_record import Record
from ui.web.trials_view import trials_view

_CULPRITS: Final = 12  # that are drawn in full
_SUSPECTS: Final = 20
_LOST: Final = "Its process is gone without an end"
_SUSPECT_COLUMNS: Final = (Column("Sub-call", 190), Column("Suspicion", 80, right=True), Column("Evidence"))


def diagnosis_view(
    record: Record, state: State, test: Callable[[str], None], prove: lineage_view.Prove
) -> None:
    """Draw a diagnosis, or the replay that a person started, that has ended. `test` goes to the field where
    another text for a span can be tried, `prove` starts a proof of the edges of some calls."""
    found = state.diagnosis
    if found is None:
        _without_result(record, state, prove)
        return
    word, colour = badge(VERDICT, found.get("verdict"))
    with st.container(border=True, key="diagnosis", gap="small"):
        with st.container(horizontal=True, gap="small", vertical_alignment="top"):
            st.badge(word, color=colour)
            _proven(found)
            with st.container(width="stretch", key="diagnosis-words"):
                plain.text(_text(found, "words"))
        _ended(state, found)
        _facts(state, found)
        lineage_view.strip(record, state, prove)
        _proof(state)
        diagnosis_report.downloads(record.home, state)
    _culprits(record, found, test)
    _suspects(record, found)
    _rest(record, state, found)


def _proven(found: Mapping[str, Any]) -> None:
    if found.get("culprits"):
        proven = found.get("proven") is True
        st.badge("proven" if proven else "not proven", color="green" if proven else "orange")


def _without_result(record: Record, state: State, prove: lineage_view.Prove) -> None:
    """A replay that a person started, a proof, or a diagnosis that found nothing before it ended."""
    word, colour = badge(STATUS, state.status)
    with st.container(border=True, key="diagnosis", gap="small"):
        if state.status == "failed":
            problem(state.reason or "it broke off without a reason")
        elif state.status == "lost":
            rest = "what it found until then stands below" if state.trials else "it had found nothing yet"
            said(word, colour, f"{_LOST}; {rest}.")
        elif state.trials and state.task == "replay":
            replay_outcome(record, state)
        elif state.trials and state.task == "prove":
            lineage_view.strip(record, state, prove)
        elif (replayability := _no_proof(state)) is not None:
            said("No proof", "orange", replayability)
        elif not state.trials:
            said(word, colour, "Nothing was tried.")
        if state.trials:
            _reached(state.trials[-1].get("reached"))
            trials_view(record.view, state.trials, key="trials")
            _sentences("Assumed", state.trials[-1].get("assumed"))


def _no_proof(state: State) -> str | None:
    """Why the edges of a run cannot be proven; None where they can, or another job was to be done."""
    found = state.replayability or {}
    if state.task != "prove" or found.get("status") in (None, "replayable"):
        return None
    return str(found.get("words"))


def _ended(state: State, found: Mapping[str, Any]) -> None:
    """That it did not run to its end, and what that leaves open."""
    if isinstance(found.get("stopped"), str):
        note(f"It ended early: {found['stopped']}")
    elif state.status == "cancelled":
        note("It was cancelled; what it found until then stands here.")


def _facts(state: State, found: Mapping[str, Any]) -> None:
    with st.container(horizontal=True, gap="medium", key="diagnosis-facts"):
        expected = found.get("expected")
        if isinstance(expected, str):
            origin = "the good run" if found.get("expected_from") == "good run" else "a person"
            fact(f"Answer that {origin} gives", expected)
            fact("Compared by", str(found.get("match")))
        if found.get("culprits"):
            with st.container(width="content", gap=None):
                st.caption("With the culprits replaced")
                word, colour = badge(OUTCOME, found.get("outcome"))
                st.badge(word, color=colour)
        fact("Mode", str(found.get("mode")))
        fact("Took", spent_words(found.get("replays"), found.get("live_calls"), found.get("cost_usd")))
        fact("Allowed", budget_words(state.budget))
        fact("Time", duration(state.seconds))


def _proof(state: State) -> None:
    """The way to the replay that decided it, where it was kept as a run."""
    kept = [trial["run_id"] for trial in state.trials if isinstance(trial.get("run_id"), str)]
    if kept:
        page, query = run_link(kept[-1])
        st.page_link(page, label=":blue[Open the replay that decided it]", query_params=query)


def _culprits(record: Record, found: Mapping[str, Any], test: Callable[[str], None]) -> None:
    listed = [one for one in _list(found, "patches") if isinstance(one, Mapping)]
    if not listed:
        return
    st.markdown("##### What broke it" if found.get("proven") is True else "##### What may have broken it")
    for number, patch in enumerate(listed[:_CULPRITS]):
        culprit_view(record, patch, number, proven=found.get("proven") is True, test=test)
    if len(listed) > _CULPRITS:
        st.caption(f"The first {_CULPRITS} of {len(listed):,}; the report has all of them.")


def _suspects(record: Record, found: Mapping[str, Any]) -> None:
    """What looks wrong by itself, where nothing better was found."""
    listed = [one for one in _list(found, "suspects") if isinstance(one, Mapping)]
    if not listed or found.get("culprits"):
        return
    st.markdown("##### What looks wrong by itself")
    rows = []
    for one in listed[:_SUSPECTS]:
        span_id, score = one.get("span_id"), one.get("score")
        figure = f"{score:.2f}" if isinstance(score, int | float) else "unknown"
        cells = (span_words(record.view, span_id), figure, " ".join(_signals(one)))
        rows.append(Item(str(span_id), cells, href(run_link(record.view.run_id, str(span_id)))))
    rows_view(rows, _SUSPECT_COLUMNS, key="diagnosis-suspects", label="Suspects")


def _signals(suspect: Mapping[str, Any]) -> Iterable[str]:
    """The evidence of a suspect in words, whichever form the log gives it."""
    for signal in _list(suspect, "signals"):
        yield str(signal.get("words", "")) if isinstance(signal, Mapping) else str(signal)


def _rest(record: Record, state: State, found: Mapping[str, Any]) -> None:
    _reached(found.get("reached"))
    st.markdown("##### How it was found out")
    mode = found.get("mode")
    if isinstance(mode, str) and mode in MODES:
        st.caption(f"Mode {mode}: a replay {MODES[mode]}.")
    considered = _list(found, "candidates")
    if considered:
        st.caption(f"{counted(len(considered), 'candidate')} considered.")
    trials_view(record.view, state.trials, key="trials")
    _sentences("Assumed", found.get("assumed"))
    _sentences("Warning", found.get("warnings"))


def _reached(value: object) -> None:
    """The first place where the root was shown something else."""
    if not isinstance(value, Mapping):
        return
    iteration = value.get("iteration")
    where = f" of iteration {iteration}" if type(iteration) is int else ""
    st.markdown(f"##### What the root was shown{where}")
    left, right = st.columns(2, gap="medium")
    for column, words, name in ((left, "In the record", "old"), (right, "This time", "new")):
        with column:
            st.caption(words)
            text = value.get(name)
            if text is None:
                st.text("(nothing)")
            else:
                plain.payload(str(text), key=f"reached-{name}", file_name=f"{name}.txt", height=height(text))


def _sentences(word: str, value: object) -> None:
    for sentence in value if isinstance(value, Sequence) and not isinstance(value, str) else ():
        said(word, "gray" if word == "Assumed" else "orange", sentence)


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    return value if isinstance(value, list) else []


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""
