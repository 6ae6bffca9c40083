"""The spans of one trace as the tree of a run.

Rules, by what a span is (`conventions.what_is`) and what it stands in:
- The span at the top is the run. Where that is a model call or a tool, or there are several, a run is made
  around them. Spans of a web server and the like around the one agent of a trace stand inside its run.
- An agent below it is a child run.
- A tool that runs code is a cell; every other tool, retriever or embedding is a tool.
- A model call in a tool or cell is a sub-call, one directly in another model call is an attempt of that;
  every other is a root call of the agent that it stands in.
- A chain with calls below it is an iteration where it stands directly in a run, else a batch; without calls
  it is a tool. A span that no convention names counts as a chain; in a model call it is an attempt.
- A root call directly in a run begins an iteration, which is made and holds what follows up to the next one.
- A parent that has not come is stood in for: OTLP sends spans when they end, so it may still be open.
Spans of this engine are what they say they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from rlm_core import semconv as sc
from traces.importers.foreign import ForeignSpan, derived
from traces.otlp.conventions import What, what_is
from traces.otlp.spans import OtlpSpan
from traces.otlp.translating import SAID_KIND, foreign_span

MADE: Final = "made"  # `SAID_KIND` of a span that stands in the record and not in the trace
AWAITED: Final = "awaited"  # ... of a span that others name as their parent and that has not come
_INSIDE: Final = ("tool", "code")


@dataclass(slots=True, eq=False)
class _Node:
    """A span of the trace, or one that is made (`span` is None), with what is below it."""

    span_id: str
    span: OtlpSpan | None
    what: What
    kind: sc.Kind = "tool"
    below: list[_Node] = field(default_factory=list)
    calls: bool = False  # whether model calls stand below it, or it is one
    start_ns: int | None = None

    def walk(self) -> Iterator[_Node]:
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.below)


def arrange(trace_id: str, spans: Sequence[OtlpSpan]) -> ForeignSpan:
    """The run that these spans of one trace make. What has not ended or not come has the status `running`.

    The order of the spans does not matter; of several with one id the last that has ended counts.
    """
    nodes = _nodes(spans)
    tops = _hang(nodes)
    _measure(tops)
    top = _top(trace_id, tops)
    _assign(top)
    return _translated(top)


def _nodes(spans: Iterable[OtlpSpan]) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for span in spans:
        known = nodes.get(span.span_id)
        if known is None or span.ended:
            nodes[span.span_id] = _Node(span.span_id, span, what_is(span), start_ns=span.start_ns)
    return nodes


def _hang(nodes: dict[str, _Node]) -> list[_Node]:
    """Put every span below its parent, the earlier ones first; the spans without one are given back."""
    order = sorted(nodes.values(), key=lambda node: (node.start_ns or 0, _end(node)))
    tops: list[_Node] = []
    for node in order:
        parent_id = node.span.parent_id if node.span is not None else None
        if parent_id is None:
            tops.append(node)
            continue
        if parent_id not in nodes:
            nodes[parent_id] = _Node(parent_id, None, "plain")
            tops.append(nodes[parent_id])
        nodes[parent_id].below.append(node)
    reached = {node.span_id for top in tops for node in top.walk()}
    for node in order:  # parents that lead round in a circle, which is cut at its first span
        if node.span_id not in reached:
            above = nodes[(node.span.parent_id if node.span is not None else None) or ""]
            above.below = [child for child in above.below if child is not node]
            tops.append(node)
            reached |= {each.span_id for each in node.walk()}
    return tops


def _end(node: _Node) -> int:
    """What began at one moment stands in the order of its ends, the outer span first."""
    return -((node.span.end_ns if node.span is not None else None) or 0)


def _measure(tops: Sequence[_Node]) -> None:
    """Find out where calls stand, and when what is made began."""
    for top in tops:
        for node in reversed(list(top.walk())):
            node.calls = node.what in ("llm", "own") or any(child.calls for child in node.below)
            starts = [child.start_ns for child in node.below if child.start_ns is not None]
            node.start_ns = min(starts, default=None) if node.start_ns is None else node.start_ns


def _top(trace_id: str, tops: list[_Node]) -> _Node:
    """The run: the one span at the top, or one that is made around all of them."""
    top = tops[0] if len(tops) == 1 else None
    if top is None or top.what in ("llm", *_INSIDE) or _is_own_part(top):
        starts = [each.start_ns for each in tops if each.start_ns is not None]
        made = _Node(made_id(trace_id), None, "agent", below=tops, start_ns=min(starts, default=None))
        return made
    return _lone_agent(top) or top


def _is_own_part(node: _Node) -> bool:
    return node.what == "own" and node.span is not None and node.span.attributes.get(sc.KIND) != "run"


def _lone_agent(top: _Node) -> _Node | None:
    """The agent that nothing but spans of no convention stand around; they are moved into it."""
    around: list[_Node] = []
    node = top
    while node.what == "plain" and node.span is not None:
        around.append(node)
        inner = [child for child in node.below if child.calls or child.what in ("agent", "own")]
        if len(inner) != 1:
            return None
        node = inner[0]
    if not around or node.what not in ("agent", "own"):
        return None
    for outer, inside in zip(around, [*around[1:], node], strict=True):
        outer.below, outer.calls = [child for child in outer.below if child is not inside], False
    node.below = [*around, *node.below]
    return node


def made_id(*parts: str) -> str:
    """The id of a span that is made, always the same for the same place."""
    return sha256("/".join(parts).encode()).hexdigest()[:16]


# -- kinds


@dataclass(frozen=True, slots=True)
class _Around:
    """What a span stands in: the kind above it, and whether a model call there is a sub-call."""

    kind: sc.Kind
    inside: bool = False
    call: bool = False  # directly in a model call


def _assign(top: _Node) -> None:
    """Give every span its kind, from the top down, and make the iterations."""
    top.kind = "run"
    waiting = [(top, _Around("run"))]
    while waiting:
        node, around = waiting.pop()
        if node is not top:
            node.kind = _kind(node, around)
        if node.kind == "run":
            inner = _Around("run")
        else:
            inside = around.inside or node.what in _INSIDE or node.kind in ("cell", "sub_call")
            inner = _Around(node.kind, inside, node.what == "llm")
        waiting += [(child, inner) for child in node.below]
        if node.kind == "run" and node.what != "own":
            node.below = list(_turns(node.below, inner))


def _kind(node: _Node, around: _Around) -> sc.Kind:
    what = node.what
    if what == "own" and node.span is not None:
        kind: sc.Kind = node.span.attributes[sc.KIND]
        return kind
    if what == "agent":
        return "run"
    if what == "llm":
        return "attempt" if around.call else "sub_call" if around.inside else "root_call"
    if what == "code" and not around.inside:
        return "cell"
    if what in _INSIDE:
        return "tool"
    if around.call:
        return "attempt"
    if around.kind == "run" and node.calls:
        return "iteration"
    return "batch" if node.calls else "tool"


def _turns(below: Sequence[_Node], around: _Around) -> Iterator[_Node]:
    """What stands directly in a run, with an iteration made for each root call and what follows it."""
    turn: _Node | None = None
    for node in below:
        kind = _kind(node, around)
        if kind == "root_call":
            turn = _Node(made_id(node.span_id, "iteration"), None, "chain", "iteration", calls=True)
            turn.start_ns = node.start_ns
            yield turn
        elif kind == "iteration":
            turn = None
        if turn is None:
            yield node
        else:
            turn.below.append(node)


# -- translation


def _translated(top: _Node) -> ForeignSpan:
    """The tree as spans of a run, built from the bottom up: traces may be deeper than recursion goes."""
    done: dict[str, ForeignSpan] = {}
    order = list(top.walk())
    for node in reversed(order):
        children = [done.pop(child.span_id) for child in node.below]
        out = _made(node, children) if node.span is None else foreign_span(node.span, node.kind)
        out.children = children
        done[node.span_id] = out
    return done[top.span_id]


def _made(node: _Node, children: Sequence[ForeignSpan]) -> ForeignSpan:
    """A span that the trace does not hold (yet): its time is that of what is in it."""
    awaited = node.what == "plain"
    out = ForeignSpan(node.kind, span_id=node.span_id, attributes={SAID_KIND: AWAITED if awaited else MADE})
    out.status = "running" if awaited or any(child.status == "running" for child in children) else "ok"
    if node.start_ns is None:
        return out
    out.start = derived(node.start_ns, "when the first span inside it began")
    ends = [
        child.start.value + round(child.seconds.value * 1e9)
        for child in children
        if child.start.value is not None and child.seconds.value is not None
    ]
    if out.status != "running" and ends:
        seconds = max(0, max(ends) - node.start_ns) / 1e9
        out.seconds = derived(seconds, "up to the end of the last span inside it")
    return out
