"""What came out of a run, for the person who asked: the answer first, then how far it can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from rlm_core.sandbox import level_words
from traces.home import Home
from traces.reading import RunSummary, RunView
from ui.figures import duration, tokens
from ui.web import plain, stored
from ui.web.notices import note, problem, said
from ui.web.run_header import fact
from ui.web.run_words import COLOURS, Remarks, cost_words, incomplete, remarks, status_word, stopped

DEMO: Final = "Demo model: it answers by fixed rules, no language model is involved."
_LONG_HEIGHT: Final = 480  # pixels


def show(home: Home, view: RunView, error: str | None, again: Callable[[str], None]) -> None:
    """The outcome of a run that is over. `error` is what its process left as the reason why it broke off."""
    run, remarked = view.summary, remarks(view)
    with st.container(border=True):
        _head(run)
        _answer(run, remarked)
        _trust(run, remarked, error)
        _facts(run)
        if run.demo:
            st.caption(DEMO)
        _onward(home, run, again)


def _head(run: RunSummary) -> None:
    word = status_word(run)
    with st.container(horizontal=True, gap="small"):
        st.badge(word, color=COLOURS[word])
        if run.forced:
            st.badge("forced answer", color="orange")
        if run.demo:
            st.badge("demo model", color="gray")
    plain.text(run.question or "(the question is not recorded)")


def _answer(run: RunSummary, remarked: Remarks) -> None:
    if run.answer is not None:
        with st.container(border=True, gap="xsmall"):
            st.caption("Answer")
            _whole(run.answer, "outcome-answer")
        return
    st.text("There is no answer.")
    if remarked.partial:
        with st.container(border=True, gap="xsmall"):
            st.caption("The best partial answer until then")
            _whole(remarked.partial, "outcome-partial")


def _whole(text: str, key: str) -> None:
    if len(text) <= plain.PREVIEW_CHARS:
        plain.text(text)
    else:
        plain.payload(text, key=key, file_name="answer.txt", height=_LONG_HEIGHT)


def _trust(run: RunSummary, remarked: Remarks, error: str | None) -> None:
    """Why the run stopped, and everything that speaks for or against its answer."""
    st.text(stopped(run) + (_FORCED if run.forced else ""))
    if remarked.confidence == "low":
        said("low confidence", "orange", (remarked.note or _LOW).removeprefix("low confidence: "))
    elif remarked.confidence or remarked.note:
        plain.text(f"confidence {remarked.confidence or 'not stated'}: {remarked.note or 'no reason given'}")
    if remarked.mark:
        plain.text(f"marked: {remarked.mark} (the program insisted on this answer)")
    why = error or remarked.error
    if why and run.answer is None:
        problem(why)
    missing = incomplete(run)
    if missing:
        note(missing)


_FORCED: Final = " The answer was forced: the root gave its best answer in one last reply."
_LOW: Final = "The program that gave the answer marked it so, without a reason."


def _facts(run: RunSummary) -> None:
    failed = f", {run.failed_sub_calls:,} failed" if run.failed_sub_calls else ""
    with st.container(horizontal=True, gap="medium"):
        fact("Iterations", f"{run.iterations:,}")
        fact("Sub-calls", f"{run.sub_calls:,}{failed}")
        fact("Tokens", tokens(run.tokens))
        fact("Cost", cost_words(run))
        fact("Time", duration(run.seconds))
        fact("Root model", run.root_model or "unknown")
        fact("Sub-model", run.sub_model or "unknown")
        fact("Sandbox", level_words(run.sandbox))


def _onward(home: Home, run: RunSummary, again: Callable[[str], None]) -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.page_link(
            "pages/run.py",
            label="Open the run",
            icon=":material/account_tree:",
            query_params={"run": run.run_id},
        )
        if stored.is_known(home, run.corpus_id):
            st.button("Ask again on this corpus", key="outcome-again", on_click=again, args=(run.corpus_id,))
