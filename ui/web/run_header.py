"""The head of the run page: what was asked, what came out, how far it can be trusted, what it took."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

import streamlit as st

from rlm_core.sandbox import level_words
from traces.calls import served_calls
from traces.imported import (
    asked_words,
    is_foreign,
    iterations_told,
    on_record,
    sub_calls_told,
    unanswered_words,
)
from traces.narrow import SUSPECT
from traces.reading import RunView
from traces.refused import refused_words
from traces.summing import spend_of
from traces.tree import REFUSED, outcome
from ui.figures import counted, duration, least, tokens
from ui.trust_text import marked
from ui.visible import line
from ui.web import plain, run_export
from ui.web.import_note import import_badge, import_note
from ui.web.notices import Colour, note, problem, said
from ui.web.places import diagnose_link
from ui.web.replay_note import replay_note
from ui.web.resume_form import resume_offer
from ui.web.run_record import Record
from ui.web.run_ways import continued_note, mark_note, resumed_note, strategy_badge, way_facts
from ui.web.run_words import COLOURS, Remarks, cost_words, incomplete, remarks, status_word, stopped, top_span
from ui.web.samples import example_note
from ui.web.verdict_view import verdict
from ui.web.ways import narrow_tree, way

_FACT_CHARS: Final = 60
_COMPARE: Final = ":blue[Compare]"
_DIAGNOSE: Final = ":blue[Diagnose]"  # short: the row stands beside the views at 1280 pixels
_DIAGNOSE_HELP: Final = "Find the call that broke the answer."
_CHIP_HELP: Final = "Narrow the tree to these."
_CHIP_COLOURS: Final[dict[str, Colour]] = {
    "error": "red",
    REFUSED: "orange",
    "lost": "red",
    "cancelled": "orange",
    "empty": "orange",
    "cut off": "orange",
    SUSPECT: "orange",
}
_STYLE: Final = """
<style>
.st-key-run-chips .stButton button, .st-key-run-replay .stButton button,
[class*="st-key-finding-"] .stButton button,
[class*="st-key-limit-"] .stButton button { padding: 0 0.15rem; min-height: 1.5rem; }
.st-key-run-chips a { background: none; padding: 0 0.15rem; }
.st-key-run-export button { padding: 0 0.6rem; min-height: 1.75rem; }
.st-key-run-chips button p, .st-key-run-chips a p { font-weight: 400; }
</style>
"""
DEMO: Final = "No language model was involved: the demo model answers by fixed rules."


def header(record: Record) -> None:
    """The head of a run, ended or not."""
    st.html(_STYLE)
    view = record.view
    run, remarked = view.summary, remarks(view)
    word = status_word(run)
    with st.container(key="run-head", gap="small"):
        with st.container(horizontal=True, gap="small", vertical_alignment="top"):
            st.badge(word, color=COLOURS[word])
            if run.forced:
                st.badge("forced answer", color="orange")
            if run.demo:
                st.badge("demo model", color="gray")
            if run.replay_of is not None or run.resumed_from is not None:
                st.badge("replay" if run.resumed_from is None else "resumed", color="blue")
            strategy_badge(run.strategy)
            import_badge(run)
            with st.container(width="stretch", key="run-question"):
                plain.bounded(asked_words(run), key="run-question-text", file_name="question.txt")
            with st.container(width="content", key="run-id"):
                plain.code(run.run_id)
            run_export.offer(record.home, run.run_id)
        _answer(view, remarked)
        _facts(record)
        import_note(record)
        _remarks(view, remarked)
        replay_note(record)
        resumed_note(record)
        continued_note(record)


def onward(record: Record) -> None:
    """What may be done about a run: ways to what looks wrong in it, the verdict, the comparison."""
    run_id = record.view.run_id
    with st.container(
        horizontal=True, width="content", gap="small", vertical_alignment="center", key="run-chips"
    ):
        _chips(record)
        if not record.view.live:
            st.caption("Your verdict", width="content")
            verdict(record.home, run_id, key="run-said")
            # the Runs page compares the two runs that are chosen there: this one already is
            st.page_link("pages/runs.py", label=_COMPARE, query_params={"chosen": run_id})
            page, query = diagnose_link(run_id)
            st.page_link(page, label=_DIAGNOSE, query_params=query, help=_DIAGNOSE_HELP)
            resume_offer(record.home, record.view)


def _chips(record: Record) -> None:
    """What went wrong or looks wrong, with counts that lead to the tree narrowed to it."""
    for status, word, colour, number in _counts(record):
        label = f":{colour}-badge[{number:,} {word}]"
        way(label, f"chip-{status}", narrow_tree, status, tip=_CHIP_HELP)


def _counts(record: Record) -> list[tuple[str, str, Colour, int]]:
    """Status in the address, word, colour and count of each chip. Of a run that goes on only what its spans
    say at once: to weigh its sub-calls against each other every second would take too long.
    """
    ends = Counter(outcome(span, record.refused) for span in record.view.spans if span.kind == "sub_call")
    counts = {word: ends[word] for word in ("error", REFUSED, "lost", "cancelled", "empty")}
    if not record.view.live:
        signals = (signal.kind for suspect in record.suspects.values() for signal in suspect.signals)
        counts |= {"cut off": Counter(signals)["cut off"], SUSPECT: len(record.suspects)}
    words = {"error": "failed", SUSPECT: "suspects" if counts.get(SUSPECT) != 1 else "suspect"}
    return [
        (status, words.get(status, status), _CHIP_COLOURS[status], number)
        for status, number in counts.items()
        if number
    ]


def _answer(view: RunView, remarked: Remarks) -> None:
    run = view.summary
    # the reason itself, where one is recorded, stands below and says more
    told = run.answer is None and remarked.error is not None
    how = ([] if view.live or told else [stopped(run)]) + ([DEMO] if run.demo else [])
    if run.answer is not None:
        how.insert(0, "Answer ·")
        text, key = run.answer, "run-answer-text"
    elif remarked.partial:
        how.insert(0, "There is no answer; the best partial one ·")
        text, key = remarked.partial, "run-partial-text"
    else:
        how[:0] = [] if view.live else [unanswered_words(run)]
        text, key = None, ""
    with st.container(gap=None, key="run-answer" if text is not None else None):
        if how:
            st.caption(" ".join(how).removesuffix(" ·"))
        if text is not None:
            plain.bounded(text, key=key, file_name="answer.txt")


def _facts(record: Record) -> None:
    view = record.view
    run = view.summary
    served, top = served_calls(view), top_span(view)
    with st.container(horizontal=True, gap="medium", key="run-facts"):
        fact("Root model", run.root_model or "unknown")
        fact("Sub-model", run.sub_model or "unknown")
        fact("Iterations", _with(iterations_told(run), served=served.get("root_call", 0)))
        calls = {"failed": run.failed_sub_calls, "served": served.get("sub_call", 0)}
        made = _with(sub_calls_told(run), **calls)
        fact("Sub-calls", made + refused_words(run.refused_sub_calls))
        fact("Tokens", tokens(run.tokens, run.untold_calls))
        fact("Cost", cost_words(run) + _shares(view))
        trust = {} if top is None else top.trusted
        fact("Time", marked(duration(_elapsed(view)), trust, "seconds"))
        began = run.started[:19].replace("T", " ") + " UTC" if run.started else "unknown"
        fact("Started", marked(began, trust, "start"))
        fact("Sandbox", level_words(run.sandbox) if not is_foreign(run) else "unknown")
        for label, value in record.once(way_facts):
            fact(label, value)


def _with(number: int | None, **of_them: int) -> str:
    """A number, and how many of them are so: no model was asked for those that a record served."""
    parts = [f"{count:,} {word}" for word, count in of_them.items() if count]
    return f"{on_record(number)} ({', '.join(parts)})" if parts else on_record(number)


def _elapsed(view: RunView) -> float | None:
    """Seconds of the run, None where its record does not say: up to now while it is live, since the record
    may have nothing new to say.
    """
    run = view.summary
    if view.live and run.started_ns:
        return max(run.seconds or 0, time.time() - run.started_ns / 1e9)
    return run.seconds


def fact(label: str, value: str) -> None:
    """A value on one line under a small label; the value may be any text, the label is ours."""
    shown = line(value[: _FACT_CHARS * 2])
    with st.container(width="content", gap=None):
        st.caption(label)
        plain.text(shown if len(shown) <= _FACT_CHARS else shown[: _FACT_CHARS - 1] + "…")


def _shares(view: RunView) -> str:
    """What of the cost was the root's and what the sub-model's; said only where money was spent."""
    if not view.summary.known_usd:
        return ""
    parts = []
    for word, kind in (("root", "root_call"), ("sub", "sub_call")):
        spend = spend_of(span for span in view.spans if span.kind == kind)
        parts.append(f"{word} {least(spend.usd, spend.status, spend.known_usd)}")
    return f" ({', '.join(parts)})"


def _stated(confidence: str | None, note: str | None) -> str:
    """What the program said of its answer; a note that names the confidence already says it for both."""
    if confidence is None or (note or "").casefold().startswith(f"{confidence} confidence".casefold()):
        return note or ""
    return f"confidence {confidence}: {note}" if note else f"confidence {confidence}"


def _remarks(view: RunView, remarked: Remarks) -> None:
    run = view.summary
    if (example := example_note(run.run_id)) is not None:
        said("Example", "gray", example)
    if remarked.note or remarked.confidence:
        said("Stated", "blue", _stated(remarked.confidence, remarked.note))
    mark_note(remarked)
    if remarked.error and run.answer is None:
        problem(remarked.error)
    missing = incomplete(run)
    if missing:
        note(missing)
    elif view.live and run.problems:
        note(f"The record is incomplete: {counted(run.problems, 'record')} missing or unreadable.")
