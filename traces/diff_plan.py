"""Where the root models of two runs parted: other code after the same history, and what is left to say."""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile, zip_longest
from typing import Any, Final

from rlm_core import semconv as sc
from traces.align import Alignment
from traces.align_keys import Side, Sources, children, code, sources, text
from traces.diff_changes import Changes, foreign
from traces.tree import Node

_OVERLAPS: Final = 50  # calls of the other run that are looked at for one passage
_LITERALS: Final = (tokenize.NUMBER, tokenize.STRING)
_SILENT: Final = (tokenize.COMMENT, tokenize.NL)
_Cells = list[tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class PlanDivergence:
    """Where the two roots first wrote different code. `a` and `b` are the cells that they wrote there (None:
    that run has none), no partners when one is an addition; `iteration` and `cell` are the numbers of the
    first of them.

    `shown_same`: both roots had been shown the same until then, so that the root itself parted here; else
    it answered to other output. `literals`: only texts and numbers in the code differ.
    """

    iteration: int | None
    cell: int | None
    a: str | None
    b: str | None
    a_code: str | None
    b_code: str | None
    shown_same: bool
    literals: bool

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {name: getattr(self, name) for name in PlanDivergence.__slots__}


@dataclass(frozen=True, slots=True)
class Hint:
    """Two calls that have no partner and were given the same passages: `shared` bytes of the corpus, and that
    as a share of the smaller one. They may do the same work; nothing more is known.
    """

    a: str
    b: str
    shared: int
    share: float

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {name: getattr(self, name) for name in Hint.__slots__}


def roots_apart(alignment: Alignment, changed: Mapping[str, Changes]) -> set[str]:
    """Cells of the first run that its root wrote differently although it had been shown the same until then.

    What it was shown: question and corpus, and the output of every cell before. Cells of one reply were
    written together.
    """
    found: set[str] = set()
    for one, other in _runs(alignment):
        for cells, shown_same in _history(alignment, changed, one, other):
            if not shown_same:
                break
            found |= {x for x, y in cells if x is not None and y is not None and _apart(changed, x)}
    return found


def plan_of(alignment: Alignment, changed: Mapping[str, Changes]) -> PlanDivergence | None:
    """The first cell of the runs themselves (not of child runs) that is not the same code in both."""
    for one, other in _runs(alignment):
        if one.span.is_child_run:
            continue
        for cells, shown_same in _history(alignment, changed, one, other):
            apart = [(a, b) for a, b in cells if a is None or b is None or _apart(changed, a)]
            if apart:
                return _divergence(alignment, *_next_written(apart), shown_same)
    return None


def _next_written(apart: _Cells) -> tuple[str | None, str | None]:
    """What each root wrote next: a pair, or two cells that are no partners."""
    if None not in apart[0]:
        return apart[0]
    return (
        next((a for a, b in apart if b is None), None),
        next((b for a, b in apart if a is None), None),
    )


def _divergence(alignment: Alignment, a: str | None, b: str | None, shown_same: bool) -> PlanDivergence:
    spans = [
        None if span_id is None else side.nodes[span_id].span
        for side, span_id in zip(alignment.sides, (a, b), strict=True)
    ]
    texts = [
        None if span is None else dict(side.texts({"code": code(span)})).get("code")
        for side, span in zip(alignment.sides, spans, strict=True)
    ]
    literals = None not in texts and same_but_literals(texts[0] or "", texts[1] or "")
    first = next((span for span in spans if span is not None), None)
    iteration, cell = (None, None) if first is None else (first.iteration, first.cell)
    return PlanDivergence(iteration, cell, a, b, texts[0], texts[1], shown_same, literals)


def same_but_literals(a: str, b: str) -> bool:
    """Whether only texts and numbers in two pieces of code differ, comments aside; False for no Python."""
    known = _without_literals(a)
    return known is not None and known == _without_literals(b)


def _without_literals(source: str) -> list[str] | None:
    """The tokens of code, each text or number as one mark; None for what is no Python."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    return ["0" if t.type in _LITERALS else t.string for t in tokens if t.type not in _SILENT]


def _runs(alignment: Alignment) -> Iterator[tuple[Node, Node]]:
    """Pairs of runs and child runs."""
    a, b = alignment.sides
    for one, (other, _) in alignment.of_a.items():
        if a.nodes[one].span.kind == "run":
            yield a.nodes[one], b.nodes[other]


def _given(node: Node) -> tuple[str | None, ...]:
    keys = (sc.QUESTION + ".sha256", sc.CHILD_CONTEXT + ".sha256", sc.CORPUS_ID)
    return tuple(text(node.span, key) for key in keys)


def _history(
    alignment: Alignment, changed: Mapping[str, Changes], a: Node, b: Node
) -> Iterator[tuple[_Cells, bool]]:
    """The cells of two runs side by side, iteration by iteration, each with whether the roots had been shown
    the same before it.
    """
    turns = ("iteration", "cell")  # other engines record cells right below a run
    rows = [[node for node in children(run) if node.span.kind in turns] for run in (a, b)]
    if foreign(a.span, b.span):  # of what was given to read each engine records something else, or nothing
        shown_same = "prompt" not in changed[a.span.span_id].differing | changed[a.span.span_id].unknown
    else:
        shown_same = _given(a) == _given(b)
    for one, other in zip_longest(*rows):
        cells = list(_cells(alignment, one, other))
        yield cells, shown_same
        shown_same = shown_same and one is not None and other is not None and _equal(cells, changed)


def _cells(alignment: Alignment, a: Node | None, b: Node | None) -> Iterator[tuple[str | None, str | None]]:
    """The cells of two iterations side by side."""
    mine, theirs = (
        []
        if node is None
        else [one.span.span_id for one in (node, *children(node)) if one.span.kind == "cell"]
        for node in (a, b)
    )
    for one in mine:
        partner = alignment.of_a.get(one, ("",))[0]
        yield one, partner if partner in theirs else None
    yield from ((None, other) for other in theirs if alignment.of_b.get(other) not in mine)


def _equal(cells: _Cells, changed: Mapping[str, Changes]) -> bool:
    """Whether cells are the same code and showed the root the same, as far as that is known for sure."""
    return all(
        a is not None and b is not None
        and not {"code", "output"} & (changed[a].differing | changed[a].unknown)
        for a, b in cells
    )  # fmt: skip


def _apart(changed: Mapping[str, Changes], span_id: str) -> bool:
    return "code" in changed[span_id].differing


def hints(alignment: Alignment) -> tuple[Hint, ...]:
    """For each call of the first run without a partner, the one without a partner in the second that shares
    most bytes of the corpus with it, if any does.
    """
    left = (_left(alignment.sides[0], alignment.of_a), _left(alignment.sides[1], alignment.of_b))
    theirs = _Passages(left[1])
    found = []
    for span_id, (corpus, given) in left[0].items():
        shared: Counter[str] = Counter()
        for document, start, end in given.ranges:
            for first, behind, other in theirs.overlapping((corpus, document), start, end):
                shared[other] += min(end, behind) - max(start, first)
        if shared:
            other, size = shared.most_common(1)[0]
            least = min(_size(given), _size(left[1][other][1]))
            found.append(Hint(span_id, other, size, min(1.0, size / least)))
    return tuple(found)


class _Passages:
    """Passages of calls by corpus and document, to be found by what they overlap."""

    def __init__(self, calls: Mapping[str, tuple[str, Sources]]) -> None:
        self._of: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
        for span_id, (corpus, given) in calls.items():
            for document, start, end in given.ranges:
                self._of.setdefault((corpus, document), []).append((start, end, span_id))
        for ranges in self._of.values():
            ranges.sort()
        self._longest = {key: max(end - start for start, end, _ in r) for key, r in self._of.items()}

    def overlapping(self, key: tuple[str, int], start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Passages that overlap one, from their beginnings on; of very many only the first."""
        ranges = self._of.get(key, [])
        at = bisect_left(ranges, (start - self._longest.get(key, 0),))
        near = takewhile(lambda one: one[0] < end, islice(ranges, at, None))
        return islice((one for one in near if start < one[1]), _OVERLAPS)


def _left(side: Side, known: Container[str]) -> dict[str, tuple[str, Sources]]:
    """Sub-calls without a partner: the corpus they read, and which passages of it."""
    found = {}
    waiting: list[tuple[Node, str]] = [(top, "") for top in side.tops]
    while waiting:
        node, corpus = waiting.pop()
        if node.span.kind == "run":
            corpus = text(node.span, sc.CORPUS_ID) or text(node.span, sc.CORPUS + ".sha256") or ""
        if node.span.kind == "sub_call" and node.span.span_id not in known:
            found[node.span.span_id] = (corpus, sources(node.span))
        waiting.extend((child, corpus) for child in reversed(children(node)))
    return found


def _size(given: Sources) -> int:
    return sum(max(0, end - start) for _, start, end in given.ranges)
