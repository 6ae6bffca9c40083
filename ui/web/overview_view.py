"""The view `overview` of a run on one screen: its children, its prompts, what cost most, what hit a limit."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import streamlit as st

from traces.imported import is_foreign
from traces.limits import Limit
from traces.overview import FanOut, Overview, Prompts, overview
from traces.reading import RunView, SpanRow
from traces.refused import refused_words
from traces.summing import Spend
from traces.tree import OUTCOMES
from ui.figures import count, counted, duration, least, money, tokens
from ui.web import plain
from ui.web.coverage_part import percent
from ui.web.findings_view import place
from ui.web.places import href, run_link
from ui.web.rows_view import Cell, Column, Item, rows_view
from ui.web.run_record import Record, Select
from ui.web.run_words import stopped
from ui.web.ways import way

_LIMITS: Final = ("max_iterations", "budget", "timeout")
_EVENTS: Final = {
    "refused": ("a limit refused", "sub-call"),
    "timeout": ("the time for one request was over", "call"),
    "cut off": ("the reply was cut off at its length limit", "call"),
    "interrupted": ("a limit interrupted the code", "cell"),
}


def show(record: Record, select: Select) -> None:
    """Draw the overview."""
    seen, view = record.once(overview), record.view
    left, right = st.columns([11, 10], gap="medium")
    with left:
        _children(view, seen, select)
        _prompts(view, seen, select)
    with right:
        _limits(view, seen, select)
        _dearest(view, seen, select)


def _none(view: RunView) -> str:
    """That there is no sub-call; the record of another engine may leave out those that were made."""
    return f"No sub-call {'is on record' if is_foreign(view.summary) else 'has been made'}."


def _children(view: RunView, seen: Overview, select: Select) -> None:
    st.markdown("##### How many children")
    if not seen.by_depth:
        plain.text(_none(view))
        return
    plain.text(" ".join(_depths(view, seen)))
    children = any(one.child_runs for one in seen.fan_outs)
    columns = [
        Column("Started by", 100),
        Column("Sub-calls", 160 if any(one.refused for one in seen.fan_outs) else 72, right=True),
        *([Column("Child runs", 76, right=True)] if children else []),
        Column("Came out as"),
        Column("Cost", 130, right=True),
        Column("Time", 70, right=True),
    ]
    items = [_fan_out(view, one, number, children) for number, one in enumerate(seen.fan_outs)]
    rows_view(items, columns, key="fan-outs", label="Cells and what they started", on_open=select)
    _left_out(seen.rest["cells"], "cell", "with fewer")


def _depths(view: RunView, seen: Overview) -> list[str]:
    said, untold = [], view.summary.untold_sub_calls
    for depth, (calls, children) in seen.by_depth.items():
        where = "The run itself" if depth == 0 else f"Child runs of depth {depth}"
        runs = counted(children, "child run") if children else "no child run"
        made = "" if untold else f"made {counted(calls, 'sub-call')} and "
        said.append(f"{where} {made}started {runs}.")
    return said


def _fan_out(view: RunView, one: FanOut, number: int, children: bool) -> Item:
    cell = one.cell
    cells: tuple[Cell, ...] = (
        "unknown cell" if cell is None else place(view, cell.span_id),
        count(None if view.summary.untold_sub_calls else one.sub_calls) + refused_words(one.refused),
        *([f"{one.child_runs:,}"] if children else []),
        _came_out(one.outcomes),
        _money(one.spend) if one.sub_calls or one.child_runs else "",
        "" if cell is None or cell.end_ns is None else duration(cell.seconds),
    )
    key = f"unknown {number}" if cell is None else cell.span_id
    return Item(key, cells, None if cell is None else href(run_link(view.run_id, cell.span_id)))


def _came_out(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{outcomes[word]:,} {word}" for word in OUTCOMES if outcomes.get(word))


def _money(spend: Spend) -> str:
    return least(spend.usd, spend.status, spend.known_usd) if spend.calls else ""


def _prompts(view: RunView, seen: Overview, select: Select) -> None:
    st.markdown("##### What prompts")
    if not seen.prompts:
        plain.text(_none(view))
        return
    columns = (
        Column("Pattern, with the first call"),
        Column("Calls", 70, right=True),
        Column("Share", 60, right=True),
        Column("Cost", 130, right=True),
    )
    items = [_prompt(view, one) for one in seen.prompts]
    rows_view(items, columns, key="prompts", label="Prompts by their pattern", on_open=select)
    _left_out(seen.rest["patterns"], "pattern", "with fewer calls")


def _prompt(view: RunView, one: Prompts) -> Item:
    text = one.begin if one.whole else f"{one.begin}…{one.end}"
    built = f"({one.patterns:,} patterns, built by one line) " if one.patterns > 1 else ""
    total = view.summary.sub_calls
    cells = (
        built + (text if text.strip("… \n") else "(nothing in common)"),
        f"{one.calls:,}",
        percent(one.calls / total) if total else "",
        _money(one.spend),
    )
    return Item(one.first.span_id, cells, href(run_link(view.run_id, one.first.span_id)))


def _dearest(view: RunView, seen: Overview, select: Select) -> None:
    by_tokens = seen.dear_by == "tokens"
    st.markdown("##### Which cost most")
    if not seen.dearest:
        asked = "No call of a model is on record." if is_foreign(view.summary) else "No model has been asked."
        plain.text(asked)
        return
    if by_tokens and all(span.tokens_untold for span in seen.dearest):
        plain.text("What calls cost, and how many tokens they took, is not in the record.")
        return
    if by_tokens:
        st.caption("No call is known to have cost money; these took the most tokens.")
    columns = (
        Column("Call", 156),
        Column("Model"),
        Column("Tokens", 116, right=True),
        Column("Cost", 88, right=True),
        Column("Share", 50, right=True),
    )
    items = [_call(view, span, seen.total, by_tokens) for span in seen.dearest]
    rows_view(items, columns, key="dearest", label="The calls that cost most", on_open=select)
    untold = seen.total.untold if by_tokens else seen.total.unknown
    unsaid = ", or of which that is not known" if untold else ""
    _left_out(seen.rest["calls"], "call", f"that took less{unsaid}")


def _call(view: RunView, span: SpanRow, total: Spend, by_tokens: bool) -> Item:
    whole = Decimal(total.tokens["total"]) if by_tokens else total.known_usd
    mine = Decimal(span.tokens["total"] if span.tokens else 0) if by_tokens else span.cost_usd
    untold = mine is None or not whole or (by_tokens and span.tokens_untold)
    share = "" if untold or mine is None else percent(float(mine / whole))
    cells = (
        place(view, span.span_id),
        span.model,
        tokens(span.tokens),
        money(span.cost_usd, span.cost_status),
        share,
    )
    return Item(span.span_id, cells, href(run_link(view.run_id, span.span_id)))


def _limits(view: RunView, seen: Overview, select: Select) -> None:
    st.markdown("##### What hit a limit")
    if not view.live:
        ended = view.summary.stop_reason in _LIMITS or view.summary.forced
        unsaid = is_foreign(view.summary) and view.summary.stop_reason is None
        none = "Whether a limit ended the run is not recorded." if unsaid else "No limit ended the run."
        plain.text(stopped(view.summary) if ended else none)
    with st.container(horizontal=True, gap="small", key="limit-bars"):
        for limit in seen.limits:
            if limit.share is not None:
                _bar(limit)
    free = [limit for limit in seen.limits if limit.limit is None]
    if free:
        used = ", ".join(_used(view, limit) for limit in free)
        st.caption(_escaped(f"Without a limit{', so far' if view.live else ''}: {used}."))
    for name, (what, kind) in _EVENTS.items():
        if spans := seen.events.get(name):
            _event(view, name, f"{counted(len(spans), kind)}: {what}", spans[0], select)
    if not seen.events:
        found = "is on record as" if is_foreign(view.summary) else "was"
        plain.text(f"No call {found} refused, timed out or cut off, and no cell interrupted.")


def _bar(limit: Limit) -> None:
    """How much of a limit was used, as a bar and in words."""
    state = "over the limit" if limit.over else "reached" if limit.share and limit.share >= 1 else ""
    share = percent(limit.share or 0.0)
    with st.container(width=165):
        words = f"{limit.name}: {limit.words} ({state or share})"
        st.progress(min(limit.share or 0.0, 1.0), text=_escaped(words))


def _used(view: RunView, limit: Limit) -> str:
    """`6,720 tokens`, `$0.0861`, `12.3 s`: of a run that has ended the time that its head says."""
    if limit.name == "seconds" and limit.spent is not None:
        whole = None if view.live else view.summary.seconds
        return duration(float(limit.spent) if whole is None else whole)
    if limit.spent is None:
        return f"{limit.name} unknown"
    if limit.name == "depth":
        return counted(int(limit.spent), "level") + " of child runs"
    used = limit.words.removesuffix(", no limit")
    return used if limit.name == "dollars" else f"{used} {limit.name}"


def _escaped(words: str) -> str:
    """Words of ours with dollar signs, which markdown takes for formulas."""
    return words.replace("$", "\\$")


def _event(view: RunView, name: str, words: str, first: str, select: Select) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"limit-{name}"):
        with st.container(width="content"):
            plain.text(words)
        way(f":blue[the first: {place(view, first)}]", f"to-{name}", select, first)


def _left_out(number: int, one: str, which: str) -> None:
    if number > 0:
        st.caption(f"And {counted(number, one)} {which}.")
