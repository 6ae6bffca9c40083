"""What spans of two runs are recognised by: one side of an alignment, and the keys of its spans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, Literal, NamedTuple

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.finding import decoded
from traces.rows import SpanRow
from traces.summing import CALL_KINDS
from traces.tree import Node, build_tree
from traces.view import RunView

Matched = Literal["code", "prompt", "template and place", "template and order", "similarity", "place"]
Range = tuple[int, int, int]  # document, first byte, byte behind the last
CALLS: Final = ("sub_call", "run")
_COMPARED_CHARS: Final = 6_000
_AT_ONCE: Final = 200  # texts that are held together
_WORD: Final = re.compile(r"\w+")
_LAST: Final = 2**62


class Sources(NamedTuple):
    """Where the text of a prompt stands in the corpus; `given` says that code named the places."""

    ranges: tuple[Range, ...]
    given: bool


class Side:
    """One of two runs that are aligned: its view, its tree, and what its spans are recognised by."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self.tops: list[Node] = build_tree(view.spans, group_from=0)

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Every node by the id of its span."""
        return {node.span.span_id: node for node in below(self.tops)}

    def above(self, spans: Iterable[SpanRow]) -> set[str]:
        """The ids of every span above some spans; a record may hold a circle of parents."""
        found: set[str] = set()
        for span in spans:
            parent_id = span.parent_id
            while parent_id in self.nodes and parent_id not in found:
                found.add(parent_id)
                parent_id = self.nodes[parent_id].span.parent_id
        return found

    @cached_property
    def untold(self) -> set[str]:
        """Spans with calls, themselves or below, whose tokens nobody reported though they are billed."""
        calls = [
            span
            for span in self.view.spans
            if span.kind in CALL_KINDS and span.tokens is None and span.cost_status != "free"
        ]
        return {span.span_id for span in calls} | self.above(calls)

    def words(self, spans: Iterable[SpanRow], prefix: str) -> dict[str, frozenset[str]]:
        """The words at the beginning of a text of each span, by span id; none where there is no text."""
        found: dict[str, frozenset[str]] = {}
        for span_id, body in self.texts({span.span_id: text(span, prefix + ".sha256") for span in spans}):
            found[span_id] = frozenset(_WORD.findall(body[:_COMPARED_CHARS].casefold()))
        return found

    def forms(self, wanted: dict[str, str | None]) -> dict[str, int]:
        """The normal forms of texts, as numbers that are equal for equal ones, by the names in `texts`."""
        return {name: hash(normalise(body)) for name, body in self.texts(wanted)}

    def texts(self, wanted: dict[str, str | None]) -> Iterator[tuple[str, str]]:
        """Whole texts for hashes that are given by some name; those that the record lacks are left out."""
        known = [(name, sha256) for name, sha256 in wanted.items() if sha256 is not None]
        for first in range(0, len(known), _AT_ONCE):
            part = known[first : first + _AT_ONCE]
            bodies = self.view.payloads({sha256 for _, sha256 in part})
            yield from ((name, bodies[sha256]) for name, sha256 in part if sha256 in bodies)


def below(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes and everything below them, from the top down."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(children(node)[::-1])


def children(node: Node) -> list[Node]:
    """The nodes right below one, in order."""
    return [child for child in node.below if isinstance(child, Node)]


def text(span: SpanRow, key: str) -> str | None:
    """A recorded fact that should be a text; None when it is not there or is none."""
    value = span.attributes.get(key)
    return value if isinstance(value, str) else None


def count(span: SpanRow, key: str) -> int | None:
    """A recorded fact that should be a whole number; None when it is not there or is none."""
    value = span.attributes.get(key)
    return value if type(value) is int else None


def asked(span: SpanRow) -> str | None:
    """What a sub-call or (child) run was asked, as a hash that is equal for equal inputs; None: unknown."""
    if span.kind != "run":
        return text(span, sc.PROMPT_HASH) or text(span, sc.PROMPT + ".sha256")
    question = text(span, sc.QUESTION + ".sha256") or text(span, sc.PROMPT_HASH)
    if question is None:
        return None
    given = text(span, sc.CHILD_CONTEXT + ".sha256")
    return f"{question} {given or ''}"


def code(span: SpanRow) -> str | None:
    """The hash of a cell's code; None: unknown."""
    return text(span, sc.CODE + ".sha256")


def sources(span: SpanRow) -> Sources:
    """The places of the corpus that stand in a prompt, as far as they are recorded."""
    found = decoded(span.attributes, sc.SOURCE_RANGES)
    listed = found.get("ranges") if isinstance(found, dict) else None
    ranges = tuple(
        (one[0], one[1], one[2])
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, list)
        and len(one) == 3
        and all(type(part) is int for part in one)
        and one[1] < one[2]
    )
    return Sources(ranges, isinstance(found, dict) and found.get("how") == "reference")


def order(span: SpanRow) -> tuple[int, int]:
    """The place of a call among those of its cell, by submission."""
    ordinal = count(span, sc.CALL_ORDINAL)
    return (_LAST if ordinal is None else ordinal, span.seq)


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of two sets of words is common to both, from 0 to 1 (Jaccard 1901)."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
