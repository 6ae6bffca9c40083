"""One run on one screen: how many children, which prompts, what cost most, what hit a limit.

A pure function of the record. Lists are bounded, and say how much of the run they leave out.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from rlm_core import semconv as sc
from traces.facts import Facts
from traces.limits import Limit, limits
from traces.refused import refused
from traces.rows import SpanRow
from traces.siblings import siblings_of
from traces.summing import CALL_KINDS, Spend, spend_of
from traces.suspects import finished_by_length
from traces.tree import Node, build_tree, outcome, walk
from traces.view import RunView

_LISTED: Final = 6  # cells, prompts and calls: four lists are to stand on one screen
_VARIED: Final = 8  # calls of one line whose prompts have as many patterns are one row
_SAMPLES: Final = 3  # prompts of a pattern that are compared
_SAMPLE_CHARS: Final = 200_000
_BEGIN: Final = 220  # characters of what prompts have in common at their beginning
_END: Final = 80
_LAST_WORD: Final = re.compile(r"\S{1,40}\Z")
_FIRST_WORD: Final = re.compile(r"\A\S{1,40}")


@dataclass(frozen=True, slots=True)
class FanOut:
    """What one cell started. `cell` is None for calls whose cell is not on record; `refused` are calls that a
    limit refused, in no other number; `outcomes` are those of sub-calls and child runs by the words of
    `traces.tree.OUTCOMES`; `spend` is that of all calls below it.
    """

    cell: SpanRow | None
    sub_calls: int
    child_runs: int
    refused: int
    outcomes: Mapping[str, int]
    spend: Spend


@dataclass(frozen=True, slots=True)
class Prompts:
    """Sub-calls whose prompts have one pattern. `begin` and `end` are what a few of them have in common at
    their ends, `whole` whether that is all of it; texts of the record. `patterns` counts the patterns: more
    than 1 where one line of a cell built every prompt anew. `first` is a call to look at.
    """

    calls: int
    begin: str
    end: str
    whole: bool
    patterns: int
    first: SpanRow
    outcomes: Mapping[str, int]
    spend: Spend


@dataclass(frozen=True, slots=True)
class Overview:
    """See the module. `by_depth` counts (sub-calls, child runs) by the depth of the run they belong to; calls
    that a limit refused are among the `events` only, and beside what their cell started;
    `rest` counts what the three lists leave out; `dear_by` is "cost", or "tokens" where no cost is known.
    """

    by_depth: Mapping[int, tuple[int, int]]
    fan_outs: tuple[FanOut, ...]
    prompts: tuple[Prompts, ...]
    dearest: tuple[SpanRow, ...]
    dear_by: str
    total: Spend
    limits: tuple[Limit, ...]
    events: Mapping[str, tuple[str, ...]]
    rest: Mapping[str, int] = field(default_factory=dict)


def overview(view: RunView) -> Overview:
    """The overview of a run, ended or not."""
    started = [span for span in view.spans if span.kind == "sub_call" or span.is_child_run]
    turned_away = refused(view.spans)
    below = [span for span in started if span.span_id not in turned_away]
    calls = [span for span in below if span.kind == "sub_call"]
    fan_outs = sorted(_fan_outs(view, started, turned_away), key=lambda one: -one.sub_calls - one.child_runs)
    patterns = sorted(_patterns(calls), key=lambda group: -len(group))
    asked = [span for span in view.spans if span.kind in CALL_KINDS and span.span_id not in turned_away]
    dear_by = "cost" if any(span.cost_usd for span in asked) else "tokens"
    dearest = sorted(asked, key=_cost if dear_by == "cost" else _tokens, reverse=True)
    listed = tuple(fan_outs[:_LISTED])
    return Overview(
        by_depth=_by_depth(below),
        fan_outs=listed,
        prompts=tuple(_prompts(view, patterns[:_LISTED])),
        dearest=tuple(dearest[:_LISTED]),
        dear_by=dear_by,
        total=spend_of(asked),
        limits=tuple(limits(view)),
        events=_events(view, turned_away),
        rest={
            "cells": len(fan_outs) - len(listed),
            "patterns": max(0, len(patterns) - _LISTED),
            "calls": max(0, len(asked) - _LISTED),
        },
    )


def _cost(span: SpanRow) -> Decimal:
    return span.cost_usd or Decimal(0)


def _tokens(span: SpanRow) -> int:
    return span.tokens["total"] if span.tokens else 0


def _by_depth(below: Iterable[SpanRow]) -> dict[int, tuple[int, int]]:
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for span in below:
        child = span.kind == "run"
        counts[max(0, span.depth - child)][child] += 1
    return {depth: (calls, children) for depth, (calls, children) in sorted(counts.items())}


def _fan_outs(view: RunView, below: Iterable[SpanRow], turned_away: Collection[str]) -> Iterator[FanOut]:
    started: dict[str | None, list[SpanRow]] = defaultdict(list)
    for span in below:
        started[_cell_of(view, span)].append(span)
    spends = _spend_below(view)
    for cell, every in started.items():
        spans = [span for span in every if span.span_id not in turned_away]
        calls = [span for span in spans if span.kind == "sub_call"]
        counts = Counter(outcome(span) for span in spans)
        spend = spends.get(cell or "") or spend_of(calls)
        children, refusals = len(spans) - len(calls), len(every) - len(spans)
        yield FanOut(view.by_id.get(cell or ""), len(calls), children, refusals, counts, spend)


def _spend_below(view: RunView) -> dict[str, Spend]:
    """The spend of each cell's calls by the cell's id, those of child runs included."""
    items = (item for _, item in walk(build_tree(view.spans, group_from=0)))
    return {
        item.span.span_id: item.totals.spend
        for item in items
        if isinstance(item, Node) and item.span.kind == "cell"
    }


def _cell_of(view: RunView, span: SpanRow) -> str | None:
    """The id of the cell above a call: its parent, or that of its batch."""
    for _ in range(2):
        parent = view.by_id.get(span.parent_id or "")
        if parent is None:
            return None
        if parent.kind == "cell":
            return parent.span_id
        span = parent
    return None


def _patterns(calls: Iterable[SpanRow]) -> Iterator[list[SpanRow]]:
    """Calls by the pattern of their prompts. Where one line has a pattern for nearly every call, its code
    built the prompts, and the line is what they have in common.
    """
    families: dict[str, dict[str, list[SpanRow]]] = defaultdict(lambda: defaultdict(list))
    for span in calls:
        facts = Facts(span.attributes)
        pattern = facts.text(sc.TEMPLATE_HASH) or facts.text(sc.PROMPT_HASH) or ""
        families[siblings_of(span)][pattern].append(span)
    same: dict[str, list[SpanRow]] = defaultdict(list)
    for family in families.values():
        size = sum(map(len, family.values()))
        if len(family) >= _VARIED and len(family) * 2 > size:
            yield sorted((span for spans in family.values() for span in spans), key=lambda span: span.seq)
        else:
            for pattern, spans in family.items():
                same[pattern] += spans
    yield from same.values()


def _prompts(view: RunView, groups: Sequence[list[SpanRow]]) -> Iterator[Prompts]:
    chosen = [_spread(group) for group in groups]
    digests = {digest for spans in chosen for span in spans if (digest := _readable(span))}
    texts = view.payloads(digests)
    for group, spans in zip(groups, chosen, strict=True):
        begin, end, whole = _shared([_text(span, texts) for span in spans])
        yield Prompts(
            calls=len(group),
            begin=begin,
            end=end,
            whole=whole,
            patterns=len({span.attributes.get(sc.TEMPLATE_HASH) for span in group}),
            first=group[0],
            outcomes=Counter(outcome(span) for span in group),
            spend=spend_of(group),
        )


def _spread(group: Sequence[SpanRow]) -> list[SpanRow]:
    """The first, the last and one in the middle."""
    places = {0, len(group) // 2, len(group) - 1}
    return [group[place] for place in sorted(places)][:_SAMPLES]


def _readable(span: SpanRow) -> str | None:
    """The hash of a prompt that is not too long to be compared."""
    facts = Facts(span.attributes)
    short = (facts.count(sc.PROMPT + ".chars") or 0) <= _SAMPLE_CHARS
    return facts.text(sc.PROMPT + ".sha256") if short else None


def _text(span: SpanRow, texts: Mapping[str, str]) -> str:
    facts = Facts(span.attributes)
    whole = texts.get(facts.text(sc.PROMPT + ".sha256") or "")
    return facts.text(sc.PROMPT + ".preview") or "" if whole is None else whole


def _shared(texts: Sequence[str]) -> tuple[str, str, bool]:
    """What texts have in common at their beginning and end, bounded; whether that is all of them."""
    begin = os.path.commonprefix(texts)
    if all(text == begin for text in texts):
        return begin[:_BEGIN], "", len(begin) <= _BEGIN
    rests = [text[len(begin) :] for text in texts]
    end = os.path.commonprefix([rest[::-1] for rest in rests])[::-1]
    begin = _LAST_WORD.sub("", begin)  # ids and names often begin alike
    end = _FIRST_WORD.sub("", end)
    return begin[:_BEGIN], end[-_END:] if len(begin) <= _BEGIN else "", False


def _events(view: RunView, turned_away: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Spans that met a limit, by what happened: refused, timeout, cut off, interrupted."""
    found: dict[str, list[str]] = defaultdict(list)
    for span in view.spans:
        if span.kind == "sub_call" and span.span_id in turned_away:
            found["refused"].append(span.span_id)
        elif span.kind in CALL_KINDS and span.error_type == "timeout":
            found["timeout"].append(span.span_id)
        elif span.kind in CALL_KINDS and finished_by_length(span):
            found["cut off"].append(span.span_id)
        elif span.kind == "cell" and span.error_type == "KeyboardInterrupt":
            found["interrupted"].append(span.span_id)
    return {name: tuple(spans) for name, spans in found.items()}
