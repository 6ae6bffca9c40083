"""What came out of a run, for the person who asked: the answer first, then how far it can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from rlm_core.sandbox import level_words
from traces.estimate import Plan, estimate
from traces.evidence import evidence
from traces.home import Home
from traces.imported import asked_words, iterations_told, on_record, sub_calls_told, unanswered_words
from traces.reading import RunSummary
from traces.refused import refused_words
from ui.answer_text import answer_markdown
from ui.ask_outcome import estimate_words, mark_words
from ui.figures import duration, tokens
from ui.web import plain, stored
from ui.web.copy_button import copy_button
from ui.web.evidence_view import FIRST, basis_words, evidence_view, shown_of
from ui.web.notices import problem, said, sentence
from ui.web.resume_form import resume_offer
from ui.web.run_header import fact
from ui.web.run_record import Record
from ui.web.run_ways import strategy_badge, way_facts
from ui.web.run_words import COLOURS, Remarks, cost_words, incomplete, remarks, status_word, stopped

DEMO: Final = "Demo model: it answers by fixed rules, no language model is involved."
_LONG_HEIGHT: Final = 480  # pixels
_COPIED_CHARS: Final = 100_000  # of an answer: what is copied travels with the page
_CUT_SHORT: Final = ("budget", "timeout", "max_iterations")  # reasons to stop that more would have helped
_FORCED: Final = " The answer was forced: the root gave its best answer in one last reply."
_LOW: Final = "The program that gave the answer marked it so, without a reason."


def show(home: Home, record: Record, error: str | None, again: Callable[[str], None]) -> None:
    """The outcome of a run that is over. `error` is what its process left as the reason why it broke off."""
    run, remarked = record.view.summary, remarks(record.view)
    with st.container(border=True):
        _head(run)
        _answer(run, remarked)
        if run.answer is not None:
            _take_along(home, record)
        _trust(home, run, remarked, error)
        if run.demo:
            st.caption(DEMO)
        _facts(record)
        _onward(home, record, again)
        if run.answer is not None:
            evidence_view(home, record)


def _head(run: RunSummary) -> None:
    word = status_word(run)
    with st.container(horizontal=True, gap="small"):
        st.badge(word, color=COLOURS[word])
        if run.forced:
            st.badge("forced answer", color="orange")
        if run.demo:
            st.badge("demo model", color="gray")
        strategy_badge(run.strategy)
        if run.resumed_from is not None:
            st.badge("resumed", color="blue")
    plain.bounded(asked_words(run), key="outcome-question", file_name="question.txt")


def _answer(run: RunSummary, remarked: Remarks) -> None:
    if run.answer is not None:
        with st.container(border=True, gap="xsmall"):
            st.caption("Answer")
            _whole(run.answer, "outcome-answer")
        return
    st.text(unanswered_words(run))
    if remarked.partial:
        with st.container(border=True, gap="xsmall"):
            st.caption("The best partial answer until then")
            _whole(remarked.partial, "outcome-partial")


def _whole(text: str, key: str) -> None:
    if len(text) <= plain.PREVIEW_CHARS:
        plain.text(text)
    else:
        plain.payload(text, key=key, file_name="answer.txt", height=_LONG_HEIGHT)


def _take_along(home: Home, record: Record) -> None:
    """The answer on the clipboard, and in a file with its question and sources."""
    run = record.view.summary
    with st.container(horizontal=True, vertical_alignment="center"):
        if run.answer is not None and len(run.answer) <= _COPIED_CHARS:
            copy_button("Copy the answer", run.answer, key="outcome-copy")
        st.download_button(
            "Download with sources", lambda: document(home, record), key="outcome-download",
            file_name=f"answer-{run.run_id}.md", mime="text/markdown", on_click="ignore",
            help="Question, answer, models, cost, why it stopped, passages: a Markdown file.",
        )  # fmt: skip


def document(home: Home, record: Record) -> str:
    """The answer of a run with all that goes with it, as Markdown. Raises RecordError."""
    found, run = record.once(evidence), record.view.summary
    return answer_markdown(
        run,
        stopped=_stopped(run),
        cost=cost_words(run),
        trust=[f"{word}: {words}" for word, words in _for_and_against(run, remarks(record.view))],
        basis=basis_words(found),
        cited=[one.cited for one in shown_of(home, record.view, found.supports[: FIRST * 2])],
    )


def _stopped(run: RunSummary) -> str:
    return stopped(run) + (_FORCED if run.forced else "")


def _trust(home: Home, run: RunSummary, remarked: Remarks, error: str | None) -> None:
    """Why the run stopped, and everything that speaks for or against its answer."""
    why = (error or remarked.error) if run.answer is None else None
    if why and run.stop_reason == "error":
        problem(f"the run broke off: {why}")
    else:
        st.text(_stopped(run))
        if why and sentence(why) not in (_stopped(run), sentence(remarked.note or "")):
            problem(why)
    for word, words in _for_and_against(run, remarked):
        said(word, "orange" if word == "low confidence" else "gray", words)
    if run.stop_reason in _CUT_SHORT and (comparable := _comparable(home, run)):
        said("To compare", "blue", comparable)


def _for_and_against(run: RunSummary, remarked: Remarks) -> Iterator[tuple[str, str]]:
    """What the program, and the record, say of the answer: a word of ours and a sentence."""
    if remarked.confidence == "low":
        yield "low confidence", (remarked.note or _LOW).removeprefix("low confidence: ")
    elif remarked.confidence:
        yield "stated", f"confidence {remarked.confidence}: {remarked.note or 'no reason given'}"
    elif remarked.note:
        yield "stated", remarked.note
    if remarked.mark:
        yield "checked", f"marked: {remarked.mark} ({mark_words(remarked.mark)})"
    if missing := incomplete(run):
        yield "Note", missing


def _comparable(home: Home, run: RunSummary) -> str | None:
    """What runs took that came to their end: how far the limit of this one was from enough."""
    if not (run.root_model and run.sub_model and stored.is_known(home, run.corpus_id)):
        return None
    assert run.corpus_id is not None
    try:
        chars = stored.load(home, run.corpus_id).chars
        plan = Plan(
            run.root_model, run.sub_model, run.corpus_id, chars, run.demo, run.strategy or "rlm"
        )  # fmt: skip
        past = estimate(home, plan)
    except RLMScopeError as error:
        return f"What comparable runs took cannot be read now: {error}"
    if past is None:
        return "No finished run of these models over a comparable corpus tells how much would be enough."
    words = estimate_words(past, demo=run.demo).removeprefix("estimate from ")
    return f"This run was cut short. What others took that came to their end, from {words}."


def _facts(record: Record) -> None:
    run = record.view.summary
    failed = f", {run.failed_sub_calls:,} failed" if run.failed_sub_calls else ""
    with st.container(horizontal=True, gap="medium", key="outcome-facts"):
        fact("Iterations", on_record(iterations_told(run)))
        fact("Sub-calls", on_record(sub_calls_told(run)) + failed + refused_words(run.refused_sub_calls))
        fact("Tokens", tokens(run.tokens, run.untold_calls))
        fact("Cost", cost_words(run))
        fact("Time", duration(run.seconds))
        fact("Root model", run.root_model or "unknown")
        fact("Sub-model", run.sub_model or "unknown")
        fact("Sandbox", level_words(run.sandbox))
        for label, value in record.once(way_facts):
            fact(label, value)


def _onward(home: Home, record: Record, again: Callable[[str], None]) -> None:
    run = record.view.summary
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.page_link(
            "pages/run.py",
            label="Open the run",
            icon=":material/account_tree:",
            query_params={"run": run.run_id},
        )
        if stored.is_known(home, run.corpus_id):
            st.button("Ask again on this corpus", key="outcome-again", on_click=again, args=(run.corpus_id,))
        resume_offer(home, record.view)
