"""Which iteration of one run is which of another: by its code, then by likeness and place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from rlm_core import semconv as sc
from traces.align_keys import Matched, Side, children, code, likeness, text
from traces.tree import Node

ALIKE: Final = 0.6  # of the words of two texts, from which on they are versions of one
_MOST_PAIRS: Final = 4_000_000  # of equal code that are looked at: more are paired by their place
_MOST_COMPARED: Final = 3_600  # pairs of code in one gap whose texts are compared
Pair = tuple[int, int, Matched]
Gap = tuple[int, int, int, int]  # first and behind the last of one side, then of the other


def align_iterations(
    a: Sequence[Node], b: Sequence[Node], sides: tuple[Side, Side]
) -> Iterator[tuple[Node, Node, Matched]]:
    """Pairs of iterations (or cells) of two runs, in order and never crossing.

    Equal code first (a longest common subsequence), then in the gaps code whose words are alike, then what
    stands at the same place between those.
    """
    codes = [[_code(node, number) for number, node in enumerate(nodes)] for nodes in (a, b)]

    def alike(gap: Gap) -> Callable[[int, int], float]:
        words = [
            _words(nodes[first:behind], side)
            for nodes, side, first, behind in zip((a, b), sides, gap[::2], gap[1::2], strict=True)
        ]
        return lambda x, y: likeness(words[0][x - gap[0]], words[1][y - gap[2]])

    for x, y, matched in _aligned(codes[0], codes[1], alike):
        yield a[x], b[y], matched


def _code(node: Node, number: int) -> object:
    """What an iteration does, equal for equal code; unknown code is like nothing else."""
    cells = _cells(node)
    if not cells:
        reply = [text(one.span, sc.RESPONSE + ".sha256") for one in children(node)]
        return ("reply", *reply) if any(reply) else (node.span.span_id, number, id(node))
    hashes = [code(cell.span) for cell in cells]
    return (node.span.span_id, number, id(node)) if None in hashes else tuple(hashes)


def _cells(node: Node) -> list[Node]:
    return [node] if node.span.kind == "cell" else [one for one in children(node) if one.span.kind == "cell"]


def _words(nodes: Sequence[Node], side: Side) -> list[frozenset[str]]:
    cells = [_cells(node) for node in nodes]
    found = side.words((cell.span for row in cells for cell in row), sc.CODE)
    return [frozenset().union(*(found.get(cell.span.span_id, ()) for cell in row)) for row in cells]


def _aligned(
    a: Sequence[object], b: Sequence[object], alike: Callable[[Gap], Callable[[int, int], float]]
) -> Iterator[Pair]:
    at_a = at_b = 0
    for x, y, size in [*_common(a, b), (len(a), len(b), 0)]:
        if at_a < x and at_b < y:
            yield from _in_gap((at_a, x, at_b, y), alike)
        yield from ((x + step, y + step, "code") for step in range(size))
        at_a, at_b = x + size, y + size


def _common(a: Sequence[object], b: Sequence[object]) -> Iterator[tuple[int, int, int]]:
    """Runs of equal keys: beginning and end first, which is all there is in most pairs of runs."""
    most = min(len(a), len(b))
    head = next((n for n in range(most) if a[n] != b[n]), most)
    tail = next((n for n in range(most - head) if a[-1 - n] != b[-1 - n]), most - head)
    yield 0, 0, head
    inner_a, inner_b = a[head : len(a) - tail], b[head : len(b) - tail]
    if len(inner_a) * len(inner_b) <= _MOST_PAIRS:
        blocks = SequenceMatcher(None, inner_a, inner_b, autojunk=False).get_matching_blocks()
        yield from ((head + x, head + y, size) for x, y, size in blocks if size)
    yield len(a) - tail, len(b) - tail, tail


def _in_gap(gap: Gap, alike: Callable[[Gap], Callable[[int, int], float]]) -> Iterator[Pair]:
    first_a, last_a, first_b, last_b = gap
    similar = _similar(gap, alike(gap)) if _size(gap) <= _MOST_COMPARED else []
    at_a, at_b = first_a, first_b
    for x, y in [*similar, (last_a, last_b)]:
        for here, there in zip(range(at_a, x), range(at_b, y), strict=False):
            yield here, there, "place"
        if x < last_a:
            yield x, y, "similarity"
        at_a, at_b = x + 1, y + 1


def _size(gap: Gap) -> int:
    return (gap[1] - gap[0]) * (gap[3] - gap[2])


def _similar(gap: Gap, score: Callable[[int, int], float]) -> list[tuple[int, int]]:
    """The pairs of a gap that are most alike all together, in order (dynamic programming as Needleman and
    Wunsch 1970, gaps cost nothing)."""
    first_a, last_a, first_b, last_b = gap
    scores = [[score(x, y) for y in range(first_b, last_b)] for x in range(first_a, last_a)]
    rows, columns = len(scores), last_b - first_b
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for x in range(rows - 1, -1, -1):
        for y in range(columns - 1, -1, -1):
            taken = scores[x][y] + best[x + 1][y + 1] if scores[x][y] >= ALIKE else 0.0
            best[x][y] = max(taken, best[x + 1][y], best[x][y + 1])
    found, x, y = [], 0, 0
    while x < rows and y < columns:
        if scores[x][y] >= ALIKE and best[x][y] == scores[x][y] + best[x + 1][y + 1]:
            found.append((first_a + x, first_b + y))
            x, y = x + 1, y + 1
        elif best[x][y] == best[x + 1][y]:
            x += 1
        else:
            y += 1
    return found
