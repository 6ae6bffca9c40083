"""The fields of one test: which span, and what it should have said (or, for a cell, what should have run)."""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.proposals import proposals
from traces.reading import RunView, SpanRow
from traces.tree import outcome
from traces.trial import Mode
from ui.visible import block, fit, line
from ui.web import plain
from ui.web.culprit_view import detail_of, said_by
from ui.web.diagnose_jobs import Job
from ui.web.diagnose_words import ORIGIN
from ui.web.findings_view import place
from ui.web.good_runs import Against
from ui.web.notices import note, problem
from ui.web.run_record import Record

SPAN: Final = "span"  # in the address
_KEY: Final = "test-span"
_LONGEST: Final = 200_000  # characters that a field can hold without stopping the browser
_MOST: Final = 5_000  # spans that are offered; any other can be chosen on the Run page
_SHOWN: Final = 400
_CALLS: Final = {"recompute": 20, "reask": 100}  # model calls that a test may make at first
_TIMES: Final = 3  # replays in which the root is asked, at first
_PREVIEW_COLUMNS: Final = 40
_MODES: Final[dict[Mode, str]] = {
    "strict": "No model is asked: stop at a changed prompt",
    "recompute": "Ask the sub-model for changed prompts",
    "reask": "Ask the root again from where it would see the change",
}


def span_text_form(record: Record, against: Against | None, target: Job) -> Job | None:
    """Draw the fields; returns the job when the button was pressed and something can be tested."""
    listed = _offered(record)
    if not listed:
        note("This run made no sub-call and ran no cell")
        return None
    span = _span(record, listed)
    try:
        detail = detail_of(record, span)
    except RLMScopeError as error:
        problem(error)
        return None
    code = span.kind == "cell"
    old = detail.get("code") if code else said_by(detail, span)[0]
    better = {} if against is None else against.replies
    text = _field(record, span, old, better.get(span.span_id))
    if not code:
        _proposed(record, span, target)
    mode, calls, repeat = _mode()
    if not st.button("Test this answer" if not code else "Test this code", key="test-start"):
        return None
    if text == (old or "") and outcome(span) == "ok":
        problem("this is what was recorded: change the text before you test it")
        return None
    return Job(
        "test", record.view.run_id, good=None if against is None else against.good.run.run_id,
        expected=target.expected, how=target.how, patches=((span.span_id, text),), mode=mode,
        live_calls=calls, repeat=repeat,
    )  # fmt: skip


def _offered(record: Record) -> list[str]:
    """Spans that can be replaced: suspects first, then calls and child runs, then cells."""
    return record.once(lambda view: _replaceable(view, list(record.suspects)), "test-spans")


def _replaceable(view: RunView, first: list[str]) -> list[str]:
    calls = [s.span_id for s in view.spans if s.kind == "sub_call" or s.is_child_run]
    cells = [s.span_id for s in view.spans if s.kind == "cell"]
    return list(dict.fromkeys([*first, *calls[:_MOST], *cells[:_MOST]]))


def _span(record: Record, listed: list[str]) -> SpanRow:
    """The span of the address, else the first suspect; one that cannot be replaced is said so."""
    view = record.view
    asked = st.query_params.get(SPAN, "")
    if asked and not _can_be_replaced(view, asked):
        problem(f"The span {asked[:60]} is no sub-call, child run or cell of this run.")
        asked = ""
    now = asked or listed[0]
    options = listed if now in listed else [now, *listed]
    if st.session_state.get(_KEY) != now:
        st.session_state[_KEY] = now
    suspects = record.suspects
    st.selectbox(
        "Sub-call, child run or cell", options, key=_KEY, on_change=_chosen,
        format_func=lambda span_id: span_title(view.by_id[span_id], view, span_id in suspects),
    )  # fmt: skip
    return view.by_id[now]


def _can_be_replaced(view: RunView, span_id: str) -> bool:
    span = view.by_id.get(span_id)
    return span is not None and (span.kind in ("sub_call", "cell") or span.is_child_run)


def _chosen() -> None:
    st.query_params[SPAN] = st.session_state[_KEY]


def span_title(span: SpanRow, view: RunView, suspect: bool) -> str:
    """A span in one line of a select box."""
    said = fit(line(span.preview or ""), _PREVIEW_COLUMNS) if span.response_chars else ""
    parts = [place(view, span.span_id), "suspect" if suspect else "", said]
    return " · ".join(part for part in parts if part)


def _field(record: Record, span: SpanRow, old: object, better: str | None) -> str:
    """The text in a field, byte for byte. A text with marks that cannot be seen is shown above an empty field
    instead: a browser would change some of them, and nobody would see what is replaced. `better` is what the
    good run has in its place."""
    text = old if isinstance(old, str) else ""
    if len(text) > _LONGEST:
        note(f"It has {len(text):,} characters, too many for a field here; `rlmscope replay` takes a file.")
        text = ""
    elif text != block(text):
        note("It holds marks that cannot be seen; here they are shown. Type what it should have been.")
        plain.code(text[:_SHOWN], height=120)
        text = ""
    if span.kind != "cell" and old is None:
        st.caption("It gave no reply.")
    key = _key(record, span)
    label = "Code that should have run" if span.kind == "cell" else "It should have said"
    typed = st.text_area(label, text, key=key, height=160)
    if better is not None and better == block(better) and len(better) <= _LONGEST:
        st.button(
            ":blue[Take what the good run has]", key="test-better", type="tertiary", on_click=_take,
            args=(key, better),
        )  # fmt: skip
    return typed


def _key(record: Record, span: SpanRow) -> str:
    what = "code" if span.kind == "cell" else "text"
    return f"test-{what}-{record.view.run_id}-{span.span_id}"


def _proposed(record: Record, span: SpanRow, target: Job) -> None:
    """Texts that rules propose for a reply, to be put into the field; nothing where no rule fits."""
    try:
        listed = record.once(
            lambda view: proposals(view, span.span_id, target.target), "test-proposals",
            (span.span_id, target.target),
        )  # fmt: skip
    except RLMScopeError as error:
        problem(error)
        return
    offered = {one.text: one for one in listed if one.text == block(one.text) and len(one.text) <= _LONGEST}
    if not offered:
        return
    key = f"test-proposed-{span.span_id}"
    st.selectbox(
        "Texts to try, by rule", list(offered), index=None, key=key, placeholder="none chosen",
        format_func=lambda text: f"{fit(line(text), _PREVIEW_COLUMNS)} · {ORIGIN[offered[text].origin]}",
        on_change=_take_chosen, args=(_key(record, span), key),
    )  # fmt: skip


def _take_chosen(field: str, choice: str) -> None:
    if (text := st.session_state[choice]) is not None:
        st.session_state[field] = text


def _take(key: str, text: str) -> None:
    st.session_state[key] = text


def _mode() -> tuple[Mode, int, int]:
    """The mode of a test, how many model calls it may make, and how often it is made."""
    mode = st.selectbox("Models", list(_MODES), key="test-mode", format_func=_MODES.__getitem__)
    if mode == "strict":
        return mode, 0, 1
    left, right = st.columns(2, gap="small")
    with left:
        calls = st.number_input("Model calls at most", 1, 100_000, _CALLS[mode], key=f"test-calls-{mode}")
    if mode != "reask":
        return mode, int(calls), 1
    with right:
        times = st.number_input("Times", 1, 20, _TIMES, key="test-times")
    return mode, int(calls), int(times)
