"""Which sub-call of one cell is which of another: passes from the surest sign to the weakest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product
from typing import Final

from rlm_core import semconv as sc
from traces.align_cells import ALIKE
from traces.align_keys import Matched, Side, asked, count, likeness, order, sources, text
from traces.rows import SpanRow
from traces.tree import Node

_MOST_COMPARED: Final = 500  # left over on one side whose prompts are compared word by word
_MOST_READ: Final = 5_000  # left over on one side whose prompts are read at all
_RARE: Final = 25  # calls that share a word: what more have says nothing
_MOST_RANGES: Final = 200  # of one call that are compared with those of another
_LIKELIEST: Final = 8  # that share most of such words with one
_LAST: Final = 2**62
Pair = tuple[Node, Node, Matched]


class Calls:
    """The calls of two cells (or of all that is left of two runs) that have no partner yet."""

    def __init__(self, a: Sequence[Node], b: Sequence[Node], sides: tuple[Side, Side]) -> None:
        self.a = sorted(a, key=lambda node: order(node.span))
        self.b = sorted(b, key=lambda node: order(node.span))
        self._sides = sides

    def same_prompt(self) -> Iterator[Pair]:
        """Calls that were asked the same; equal ones in the order in which they were made. Then those whose
        prompts are equal in their normal form: replies that stand in them differ in no more either.
        """
        yield from self._by(lambda span: _known(span.kind, asked(span)), "prompt", _occurrence)
        if self.a and self.b and max(len(self.a), len(self.b)) <= _MOST_READ:
            forms = {**self._forms(0), **self._forms(1)}
            yield from self._by(lambda span: forms.get(id(span)), "prompt", _occurrence)

    def _forms(self, place: int) -> dict[int, int]:
        """Normal forms of prompts by the identity of their spans: ids of spans may be equal in both runs."""
        spans = {node.span.span_id: node.span for node in (self.a, self.b)[place] if node.span.kind != "run"}
        wanted = {span_id: text(span, sc.PROMPT + ".sha256") for span_id, span in spans.items()}
        return {id(spans[span_id]): form for span_id, form in self._sides[place].forms(wanted).items()}

    def alike(self, same_code: bool) -> Iterator[Pair]:
        """Calls that are the same for other reasons, the surest first. `same_code`: the cells that made them
        have the same code, so that calls of one line correspond.
        """
        yield from self._by(_place, "template and place")
        yield from self._by(_template, "template and order", even=True)
        yield from self._similar()
        yield from self._by(_template, "template and order")
        if same_code:
            yield from self._by(lambda span: (span.kind, count(span, sc.CALL_LINE)), "place", even=True)

    def _by(
        self,
        key: Callable[[SpanRow], Hashable | None],
        matched: Matched,
        rank: Callable[[SpanRow], tuple[int, int]] = order,
        *,
        even: bool = False,
    ) -> Iterator[Pair]:
        """Pair calls of equal keys in order; `even`: only where both sides have equally many of a key."""
        groups: dict[Hashable, tuple[list[Node], list[Node]]] = defaultdict(lambda: ([], []))
        for place, nodes in enumerate((self.a, self.b)):
            for node in nodes:
                if (found := key(node.span)) is not None:
                    groups[found][place].append(node)
        pairs: list[Pair] = []
        for one, other in groups.values():
            if one and other and (not even or len(one) == len(other)):
                ranked = (sorted(nodes, key=lambda node: rank(node.span)) for nodes in (one, other))
                pairs += [(x, y, matched) for x, y in zip(*ranked, strict=False)]
        yield from self._taken([pair for pair in pairs if matched == "prompt" or not _apart(*pair[:2])])

    def _similar(self) -> Iterator[Pair]:
        """Pairs whose words are alike, the most alike first."""
        if not self.a or not self.b or max(len(self.a), len(self.b)) > _MOST_COMPARED:
            return
        words = self._words(0), self._words(1)
        scored = []
        for x, y in _worth_comparing(*words):
            one, other = self.a[x], self.b[y]
            score = likeness(words[0][x], words[1][y])
            if score >= ALIKE and one.span.kind == other.span.kind and not _apart(one, other):
                scored.append((-score, abs(x - y), x, y))
        taken: tuple[set[int], set[int]] = (set(), set())
        pairs: list[Pair] = []
        for _, _, x, y in sorted(scored):
            if x not in taken[0] and y not in taken[1]:
                taken[0].add(x)
                taken[1].add(y)
                pairs.append((self.a[x], self.b[y], "similarity"))
        yield from self._taken(pairs)

    def _words(self, place: int) -> list[frozenset[str]]:
        nodes, side = (self.a, self.b)[place], self._sides[place]
        found = side.words((node.span for node in nodes if node.span.kind != "run"), sc.PROMPT)
        found |= side.words((node.span for node in nodes if node.span.kind == "run"), sc.QUESTION)
        return [found.get(node.span.span_id, frozenset()) for node in nodes]

    def _taken(self, pairs: Sequence[Pair]) -> Iterator[Pair]:
        gone = {id(node) for x, y, _ in pairs for node in (x, y)}
        self.a = [node for node in self.a if id(node) not in gone]
        self.b = [node for node in self.b if id(node) not in gone]
        yield from pairs


def _worth_comparing(a: Sequence[frozenset[str]], b: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Pairs of places: all of few; of many, for each those with which it shares most words that few have."""
    if len(a) * len(b) <= _MOST_COMPARED:
        yield from product(range(len(a)), range(len(b)))
        return
    having: dict[str, list[int]] = defaultdict(list)
    for y, words in enumerate(b):
        for word in words:
            having[word].append(y)
    rare = {word: places for word, places in having.items() if len(places) <= _RARE}
    for x, words in enumerate(a):
        shared = Counter(y for word in words & rare.keys() for y in rare[word])
        yield from ((x, y) for y, _ in shared.most_common(_LIKELIEST))


def _known(*parts: str | None) -> Hashable | None:
    return None if None in parts else parts


def _occurrence(span: SpanRow) -> tuple[int, int]:
    number = count(span, sc.CALL_OCCURRENCE)
    return (_LAST if number is None else number, span.seq)


def _template(span: SpanRow) -> Hashable | None:
    return _known(span.kind, text(span, sc.TEMPLATE_HASH))


def _place(span: SpanRow) -> Hashable | None:
    template, ranges = _template(span), sources(span).ranges
    return (template, ranges) if template is not None and ranges else None


def _apart(a: Node, b: Node) -> bool:
    """Whether two calls were given passages of the corpus that have nothing in common."""
    one, other = sources(a.span), sources(b.span)
    if not (one.given and other.given and one.ranges and other.ranges):
        return False
    if max(len(one.ranges), len(other.ranges)) > _MOST_RANGES:
        return False
    return not any(
        document == also and start < behind and first < end
        for document, start, end in one.ranges
        for also, first, behind in other.ranges
    )
