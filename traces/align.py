"""Which span of one run is which of another: the trees of two runs, aligned from the top down.

Children of two spans that belong together are matched by kind: iterations and cells by the code that the root
wrote (`traces.align_cells`), sub-calls and child runs by their prompts and what they were made from
(`traces.align_calls`), the rest by order. Calls that find no partner there are looked for by prompt in the
whole run. After research on keyed tree alignment: linear where keys are equal, and shuffled siblings cost
nothing, unlike the edit distance of Zhang and Shasha (1989).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from traces.align_calls import Calls
from traces.align_cells import align_iterations
from traces.align_keys import CALLS, Matched, Side, below, children, code
from traces.tree import Node


class Alignment:
    """The pairs of two runs' spans. `of_a`: span id of the first run -> (span id of the second, matched by);
    `of_b`: the other way round.
    """

    def __init__(self, a: Side, b: Side) -> None:
        self.sides = (a, b)
        self.of_a: dict[str, tuple[str, Matched]] = {}
        self.of_b: dict[str, str] = {}
        self._waiting: list[tuple[Sequence[Node], Sequence[Node], bool]] = [(a.tops, b.tops, False)]
        self._work()
        self._moved()

    def _work(self) -> None:
        while self._waiting:
            a, b, same_code = self._waiting.pop()
            rows = _by_kind(a), _by_kind(b)
            for kind in rows[0].keys() & rows[1].keys():
                if kind in ("iteration", "cell"):
                    pairs = align_iterations(rows[0][kind], rows[1][kind], self.sides)
                    for one, other, matched in pairs:
                        self._join(one, other, matched)
                elif kind not in (*CALLS, "batch"):
                    for one, other in zip(rows[0][kind], rows[1][kind], strict=False):
                        self._join(one, other, "place")
            self._calls(_calls(a), _calls(b), same_code)
            self._batches(rows[0].get("batch", []), rows[1].get("batch", []))

    def _join(self, a: Node, b: Node, matched: Matched) -> None:
        self.of_a[a.span.span_id] = (b.span.span_id, matched)
        self.of_b[b.span.span_id] = a.span.span_id
        if a.below and b.below and a.span.kind != "batch":
            known = code(a.span) if a.span.kind == "cell" else None
            same_code = known is not None and known == code(b.span)
            self._waiting.append((children(a), children(b), same_code))

    def _calls(self, a: Sequence[Node], b: Sequence[Node], same_code: bool) -> None:
        if not a or not b:
            return
        left = Calls(a, b, self.sides)
        tops = [
            [node for node in nodes if node.span.kind == "run" and node.span.parent_id is None]
            for nodes in (left.a, left.b)
        ]
        if tops[0] and tops[1]:  # the runs themselves belong together whatever they were asked
            self._join(tops[0][0], tops[1][0], "place")
            left.a, left.b = ([node for node in n if not self._has(node)] for n in (left.a, left.b))
        for pair in left.same_prompt():
            self._join(*pair)
        for pair in left.alike(same_code):
            self._join(*pair)

    def _has(self, node: Node) -> bool:
        return node.span.span_id in self.of_a or node.span.span_id in self.of_b

    def _batches(self, a: Sequence[Node], b: Sequence[Node]) -> None:
        """Batches belong together when their slots do; those without such slots by order."""
        owner = {slot.span.span_id: batch for batch in b for slot in children(batch)}
        left_b = {id(batch): batch for batch in b}
        left_a = []
        for batch in a:
            partners = (self.of_a.get(slot.span.span_id, ("",))[0] for slot in children(batch))
            found = Counter(id(owner[partner]) for partner in partners if partner in owner)
            best = next((key for key, _ in found.most_common() if key in left_b), None)
            if best is None:
                left_a.append(batch)
            else:
                self._join(batch, left_b.pop(best), "place")
        for one, other in zip_longest(left_a, left_b.values()):
            if one is None or other is None:
                break
            self._join(one, other, "place")

    def _moved(self) -> None:
        """Pair calls that another cell made in the other run, by prompt; child runs first, then what stands
        in them is no longer left.
        """
        for kind in ("run", "sub_call"):
            left = [
                [
                    node
                    for node in below(side.tops)
                    if node.span.kind == kind and not self._has_in(node, place)
                ]
                for place, side in enumerate(self.sides)
            ]
            for pair in Calls(left[0], left[1], self.sides).same_prompt():
                if not self._has_in(pair[0], 0) and not self._has_in(pair[1], 1):
                    self._join(*pair)
                    self._work()

    def _has_in(self, node: Node, place: int) -> bool:
        return node.span.span_id in (self.of_b if place else self.of_a)


def _by_kind(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    rows: dict[str, list[Node]] = {}
    for node in nodes:
        rows.setdefault(node.span.kind, []).append(node)
    return rows


def _calls(nodes: Iterable[Node]) -> list[Node]:
    """The calls right below a cell, those in batches included."""
    found = []
    for node in nodes:
        if node.span.kind == "batch":
            found += [slot for slot in children(node) if slot.span.kind in CALLS]
        elif node.span.kind in CALLS:
            found.append(node)
    return found
