"""One span in full: where it stands, how it went, what it took, and everything recorded about it in tabs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.imported import is_foreign
from traces.reading import RunView, SpanRow, span_detail
from traces.steps import Replay
from traces.suspects import Suspect
from traces.tree import outcome
from ui.tree import problem as what_went_wrong
from ui.web import plain
from ui.web.copy_button import copy_button
from ui.web.import_note import NOT_AGAIN
from ui.web.notices import note, problem, said
from ui.web.places import diagnose_link, href, run_link
from ui.web.run_record import Record, Select
from ui.web.span_facts import remarks_of, span_facts
from ui.web.span_paths import failed_calls, neighbours, next_of, parents, title, word_of
from ui.web.span_tabs import tabs_of
from ui.web.step_outline import CHILD, COLOURS, STEP, step_query
from ui.web.verdict_view import verdict

_PATH: Final = 6  # parents shown; of more, the topmost and the nearest
_Way = tuple[str, SpanRow | None, str]  # what a button says, where it leads, its key


def span_view(record: Record, span: SpanRow, select: Select) -> None:
    """The detail of a span; `select` goes to another one."""
    view = record.view
    _path(view, span, select)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        with st.container(width="content", key="span-title"):
            st.text(title(span))
        ended = outcome(span, record.refused)
        st.badge(ended, color=COLOURS.get(ended, "red"))
        with st.container(width="content", key="span-id"):
            plain.code(span.span_id)
        copy_button("Copy link", _address(view, span), key="span-link")
    _ways(record, span, select)
    wrong = what_went_wrong(span)
    if span.status == "lost":
        problem("This span was not ended in the record: the process of the run ended before.")
    elif wrong and not _is_head(span):
        problem(wrong)
    if signs := _signs(span, record.suspects):
        said("Suspect", "orange", "; ".join(signs))
    for word, colour, sentence in remarks_of(span):
        said(word, colour, sentence)
    if span.orphan:
        note("Its parent is not in the record, so it stands at the top.")
    try:
        detail = span_detail(view, span)
    except RLMScopeError as error:
        problem(error)
        return
    span_facts(view, span, detail)
    if not _is_head(span):
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="span-said"):
            st.caption(f"Verdict on this {word_of(span)}", width="content")
            with st.container(width="content", gap="small"):
                verdict(record.home, view.run_id, span.span_id, key="span-verdict")
    if detail["missing"]:
        note(f"Not in the record, though the span names it: {', '.join(detail['missing'])}.")
    _tabs(view, span, detail)


def _is_head(span: SpanRow) -> bool:
    """Whether it is the run itself: the head of the page has its error and its verdict."""
    return span.kind == "run" and span.parent_id is None


def _signs(span: SpanRow, suspects: Mapping[str, Suspect]) -> list[str]:
    """What speaks against a call beyond its outcome, which stands above it in words."""
    suspect = suspects.get(span.span_id)
    signals = () if suspect is None else suspect.signals
    return [signal.words for signal in signals if signal.kind not in ("error", "empty")]


def _path(view: RunView, span: SpanRow, select: Select) -> None:
    above = parents(view, span)
    place = st.empty()  # also without parents: what stands below keeps its place on the page
    if not above:
        return
    hidden = len(above) - _PATH
    shown = above if hidden <= 0 else [above[0], *above[1 - _PATH :]]
    with place.container(horizontal=True, gap="xxsmall", vertical_alignment="center", key="span-path"):
        for number, parent in enumerate(shown):
            if hidden > 0 and number == 1:
                st.text(f"… {hidden} more …")
            st.button(
                f"{title(parent)} ›",
                key=f"span-parent-{number}",
                type="tertiary",
                on_click=select,
                args=(parent.span_id,),
            )


def _ways(record: Record, span: SpanRow, select: Select) -> None:
    view = record.view
    before, after = neighbours(view, span)
    word = word_of(span)
    ways: list[_Way] = []
    if before or after:
        ways += [(f"Previous {word}", before, "k"), (f"Next {word}", after, "j")]
    failed = failed_calls(view, record.refused)
    if failed:
        words = "failed or empty" if any(outcome(call) == "empty" for call in failed) else "failed"
        words = "refused" if failed[0].span_id in record.refused else words
        ways.append((f"Next {words} sub-call ({len(failed):,})", next_of(failed, span), "e"))
    if record.suspects:
        listed = [other for other in view.spans if other.span_id in record.suspects]
        ways.append((f"Next suspect ({len(listed):,})", next_of(listed, span), "s"))
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="span-ways"):
        for number, (label, target, key) in enumerate(ways):
            st.button(
                label, key=f"span-way-{number}", disabled=target is None, shortcut=key,
                on_click=select, args=("" if target is None else target.span_id,),
            )  # fmt: skip
        st.button("Show in the steps", key="span-steps", on_click=_to_step, args=(view, span))
        _to_test(view, span)


def _to_test(view: RunView, span: SpanRow) -> None:
    """The way to where another reply of a call, or other code of a cell, can be tried."""
    words = "Test this code" if span.kind == "cell" else "Test this sub-answer"
    if not view.live and (span.kind in ("sub_call", "cell") or span.is_child_run):
        page, query = diagnose_link(view.run_id, span_id=span.span_id)
        if is_foreign(view.summary):
            st.caption(f"{words}: {NOT_AGAIN}", width="content")
            return
        st.page_link(page, label=f":blue[{words}]", query_params=query)


def _to_step(view: RunView, span: SpanRow) -> None:
    """Go to the step of a span; one above all steps leads to the first of them."""
    step = Replay(view).step_of(span)
    st.query_params["view"] = "steps"
    for name in (STEP, CHILD):
        st.query_params.pop(name, None)
    if step is not None:
        st.query_params.update(step_query(step))
    elif span.kind == "run" and span.parent_id is not None:
        st.query_params[CHILD] = span.span_id


def _address(view: RunView, span: SpanRow) -> str:
    """The address of the span, whole where the browser says how it reached the app."""
    base = urlsplit(st.context.url or "")
    return (
        base._replace(path="", query="", fragment="").geturl()
        + "/"
        + href(run_link(view.run_id, span.span_id))
    )


def _tabs(view: RunView, span: SpanRow, detail: Mapping[str, Any]) -> None:
    """Only the open tab is filled. Spans with the same tabs share the choice, to step through them."""
    tabs = tabs_of(view, span, detail)
    names = [name for name, _ in tabs]
    boxes = st.tabs(names, key=f"span-tabs-{'-'.join(names)}", on_change="rerun")
    for box, (_, fill) in zip(boxes, tabs, strict=True):
        if box.open:
            with box:
                fill()
