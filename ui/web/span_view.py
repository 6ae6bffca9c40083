"""One span in full: where it stands, how it went, what it took, and everything recorded about it in tabs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from rlm_core import semconv as sc
from rlm_core.errors import RLMScopeError
from traces.reading import RunView, SpanRow, span_detail
from traces.tree import outcome
from ui.figures import counted, duration, money
from ui.tree import problem as what_went_wrong
from ui.web import plain
from ui.web.notices import Colour, note, problem
from ui.web.run_header import fact
from ui.web.span_paths import failed_calls, neighbours, next_failed, parents, title, word_of
from ui.web.span_tables import taken
from ui.web.span_tabs import tabs_of
from ui.web.tree_rows import Row

_COLOURS: Final[dict[str, Colour]] = {
    "ok": "green",
    "running": "blue",
    "cancelled": "orange",
    "empty": "orange",
}
_PATH: Final = 6  # parents shown; of more, the topmost and the nearest
_CALLS: Final = ("root_call", "sub_call", "attempt")
Select = Callable[[str], None]


def span_view(view: RunView, span: SpanRow, row: Row, select: Select) -> None:
    """The detail of a span. `row` is the one it has in the tree, `select` goes to another span."""
    _path(view, span, select)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        with st.container(width="content", key="span-title"):
            st.text(title(span))
        st.badge(outcome(span), color=_COLOURS.get(outcome(span), "red"))
        with st.container(width="content", key="span-id"):
            plain.code(span.span_id)
    _ways(view, span, select)
    wrong = what_went_wrong(span)
    if span.status == "lost":
        problem("This span was not ended in the record: the process of the run ended before.")
    elif wrong:
        problem(wrong)
    if span.orphan:
        note("Its parent is not in the record, so it stands at the top.")
    try:
        detail = span_detail(view, span)
    except RLMScopeError as error:
        problem(error)
        return
    _facts(view, span, row, detail)
    if detail["missing"]:
        note(f"Not in the record, though the span names it: {', '.join(detail['missing'])}.")
    _tabs(view, span, detail)


def _path(view: RunView, span: SpanRow, select: Select) -> None:
    above = parents(view, span)
    if not above:
        return
    hidden = len(above) - _PATH
    shown = above if hidden <= 0 else [above[0], *above[1 - _PATH :]]
    with st.container(horizontal=True, gap="xxsmall", vertical_alignment="center", key="span-path"):
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


def _ways(view: RunView, span: SpanRow, select: Select) -> None:
    before, after = neighbours(view, span)
    word = word_of(span)
    ways = [(f"Previous {word}", before), (f"Next {word}", after)] if before or after else []
    failed = failed_calls(view)
    if failed:
        words = "failed or empty" if any(outcome(call) == "empty" for call in failed) else "failed"
        ways.append((f"Next {words} sub-call ({len(failed):,})", next_failed(failed, span)))
    if not ways:
        return
    with st.container(horizontal=True, gap="small", key="span-ways"):
        for number, (label, target) in enumerate(ways):
            st.button(
                label,
                key=f"span-way-{number}",
                disabled=target is None,
                on_click=select,
                args=("" if target is None else target.span_id,),
            )


def _facts(view: RunView, span: SpanRow, row: Row, detail: Mapping[str, Any]) -> None:
    with st.container(horizontal=True, gap="medium", key="span-facts"):
        if span.kind in _CALLS:
            returned = span.model_returned if span.model_returned not in (None, span.model) else None
            fact("Model", (span.model or "unknown") + (f" (the server says {returned})" if returned else ""))
        for label, value in _token_facts(span, detail):
            fact(label, value)
        if span.kind in _CALLS:
            if span.end_ns is not None:
                fact("Cost", money(detail.get("cost_usd"), span.cost_status))
        elif row.tokens:
            fact("Tokens below", row.tokens)
            fact("Cost below", row.cost)
        fact("Time", taken(span))
        start = min((other.start_ns for other in view.spans), default=span.start_ns)
        fact("Began after", duration(max(0, span.start_ns - start) / 1e9))
        for label, value in _other_facts(span):
            fact(label, value)


def _token_facts(span: SpanRow, detail: Mapping[str, Any]) -> list[tuple[str, str]]:
    if span.kind not in _CALLS or span.end_ns is None:
        return []
    if span.tokens is None:
        return [("Tokens", "unknown")]
    given = f"{span.tokens['input']:,}"
    cached = [
        f"{count:,} {word}"
        for count, word in ((span.cached_read, "cached"), (span.cache_write, "written to cache"))
        if count
    ]
    thought = detail["attributes"].get(sc.USAGE_REASONING)
    made = f"{span.tokens['output']:,}"
    if type(thought) is int and thought > 0:
        made += f" ({thought:,} reasoning)"
    estimated = " (counted here)" if detail["attributes"].get(sc.USAGE_ESTIMATED) is True else ""
    return [
        ("Tokens in", given + (f" ({', '.join(cached)})" if cached else "")),
        ("Tokens out", made + estimated),
    ]


def _other_facts(span: SpanRow) -> list[tuple[str, str]]:
    facts = []
    if span.kind == "cell" and span.phase:
        facts.append(("Phase", span.phase))
    cpu = span.attributes.get(sc.CELL_CPU)
    if isinstance(cpu, int | float) and not isinstance(cpu, bool):
        facts.append(("CPU", duration(float(cpu))))
    line = span.attributes.get(sc.CALL_LINE)
    if type(line) is int:
        facts.append(("Asked in", f"line {line}" if span.cell is None else f"cell {span.cell}, line {line}"))
    if span.attributes.get(sc.SERVED_FROM) == "record":
        facts.append(("Served from", "an answer this run already had"))
    attempts = span.attributes.get(sc.ATTEMPTS)
    if type(attempts) is int and attempts != 1:
        facts.append(("Tries", counted(attempts, "attempt")))
    return facts


def _tabs(view: RunView, span: SpanRow, detail: Mapping[str, Any]) -> None:
    """Only the open tab is filled. Spans with the same tabs share the choice, to step through them."""
    tabs = tabs_of(view, span, detail)
    names = [name for name, _ in tabs]
    boxes = st.tabs(names, key=f"span-tabs-{'-'.join(names)}", on_change="rerun")
    for box, (_, fill) in zip(boxes, tabs, strict=True):
        if box.open:
            with box:
                fill()
