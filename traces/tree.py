"""The recursion tree as data: nested nodes with subtotals, and fan-outs of sub-calls as one group.

Records are untrusted: parents may be missing or lead round in a circle, and trees may be deeper than Python's
recursion goes. Every span stands in the tree exactly once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from traces.refused import refused
from traces.rows import RunSummary, SpanRow
from traces.summing import CALL_KINDS, Spend

GROUP_FROM: Final = 8  # neighbours of one kind that become a group
REFUSED: Final = "refused"
OUTCOMES: Final = ("ok", "empty", "error", REFUSED, "cancelled", "lost", "running")
_CALLED: Final = {"sub_call": "llm_query", "run": "rlm_query"}


@dataclass(slots=True)
class Totals:
    """A subtree in figures, its own span included. `spend` is that of the calls that no limit refused.

    `seconds` is the wall time of its own span; of a group, and where that span has not ended, from the first
    start to the last end in it. `failures` counts sub-calls, cells and child runs that ended in error, were
    cancelled or lost, but for calls that a limit refused; `open` spans that have not ended. `untimed` says
    that the record of another engine does not tell how long this took.
    """

    spend: Spend = field(default_factory=Spend)
    spans: int = 0
    failures: int = 0
    open: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    untimed: bool = False
    own_seconds: float | None = None

    @property
    def seconds(self) -> float | None:
        """Wall time, None when nothing in the subtree has ended, and where it is not told."""
        if self.own_seconds is not None:  # clocks of what is inside may differ, and ends may follow from sums
            return self.own_seconds
        if self.untimed or self.first_ns is None or self.last_ns is None:
            return None
        return (self.last_ns - self.first_ns) / 1e9

    @property
    def cost_usd(self) -> Decimal | None:
        """Dollars of the calls in the subtree, None when any is unknown."""
        return self.spend.usd

    def add_span(self, span: SpanRow, ended: str) -> None:
        """Count one span, and how it ended: see `outcome`."""
        self.spans += 1
        self.open += span.end_ns is None
        failed = span.status in ("error", "cancelled", "lost") and ended != REFUSED
        self.failures += failed and span.kind in ("sub_call", "cell", "run")
        if span.kind in CALL_KINDS and ended != REFUSED:
            self.spend.add_call(span)
        self.own_seconds = span.seconds
        self._stretch(span.start_ns, None if self.own_seconds is None else span.end_ns)
        self.untimed = span.end_ns is not None and self.own_seconds is None

    def add(self, other: Totals) -> None:
        """Add a subtree below."""
        if other.spend.calls:
            self.spend.add(other.spend)
        self.spans += other.spans
        self.failures += other.failures
        self.open += other.open
        self._stretch(other.first_ns, other.last_ns)

    def _stretch(self, first_ns: int | None, last_ns: int | None) -> None:
        if first_ns is not None:
            self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        if last_ns is not None:
            self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A span, how it ended (see `outcome`), and what is below it: nodes in seq order, long rows of calls
    folded into groups.
    """

    span: SpanRow
    totals: Totals
    outcome: str
    below: list[Node | Group] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Group:
    """Neighbouring calls of one kind under one parent. `counts` are by outcome, see `outcome`.

    `whole` is the number of calls of the group that these are a part of.
    """

    called: str  # llm_query or rlm_query
    members: list[Node]
    counts: dict[str, int]
    totals: Totals
    whole: int

    @classmethod
    def of(cls, called: str, members: list[Node], whole: int | None = None) -> Group:
        """The group of these calls."""
        totals = Totals()
        for node in members:
            totals.add(node.totals)
            totals.untimed |= node.totals.untimed
        counts = Counter(node.outcome for node in members)
        return cls(called, members, dict(counts), totals, len(members) if whole is None else whole)

    @property
    def headline(self) -> str:
        """`200 x llm_query: 196 ok, 3 empty, 1 error`; of a part `4 of 200 x llm_query: 3 empty, 1 error`."""
        shares = ", ".join(f"{self.counts[word]} {word}" for word in OUTCOMES if self.counts.get(word))
        part = "" if self.whole == len(self.members) else f"{len(self.members)} of "
        return f"{part}{self.whole} x {self.called}: {shares}"


def outcome(span: SpanRow, turned_away: Collection[str] = ()) -> str:
    """How a call ended: its status, `empty` when it ended well and no text came back, or `refused` when it is
    among those that a limit has `turned_away` (their ids, see `traces.refused`).
    """
    if span.span_id in turned_away:
        return REFUSED
    silent = span.kind == "sub_call" and (
        (span.status == "ok" and span.response_chars == 0)
        or (span.status == "error" and span.error_type == "empty")
    )
    return "empty" if silent else span.status


def unanswered(span: SpanRow) -> bool:
    """Whether a sub-call has no reply on record: its preview, if it has one, is then that of its prompt."""
    return span.kind == "sub_call" and span.response_chars is None


def mark_whole(tops: Sequence[Node], run: RunSummary) -> None:
    """Let the top nodes say what their run says of itself: its time, with what came before its first span,
    and that what a run with gaps took is not known even where every call on record is.
    """
    for node in tops:
        if node.span.kind == "run" and node.span.depth == 0 and node.totals.own_seconds is not None:
            node.totals.own_seconds = run.seconds
        spend = node.totals.spend
        if run.has_gaps and spend.usd is not None:
            spend.add_gaps(1)
        spend.untold = max(spend.untold, int(run.has_gaps and run.untold_calls > 0))


def build_tree(spans: Sequence[SpanRow], *, group_from: int = GROUP_FROM) -> list[Node]:
    """The top nodes of a run, in seq order. Spans without a recorded parent stand at the top.

    A circle of parents is cut at its first span. `group_from` neighbours become a group; 0 groups nothing.
    """
    turned_away = refused(spans)
    nodes = {span.span_id: Node(span, Totals(), outcome(span, turned_away)) for span in spans}
    children: dict[str, list[Node]] = {}
    tops = []
    for node in nodes.values():
        parent_id = node.span.parent_id
        if parent_id is None or parent_id not in nodes:
            tops.append(node)
        else:
            children.setdefault(parent_id, []).append(node)
    order: list[Node] = []
    placed: set[str] = set()
    for top in tops:
        _place(top, children, placed, order)
    for node in nodes.values():  # what is left hangs in circles
        if node.span.span_id not in placed:
            tops.append(node)
            _place(node, children, placed, order)
    for node in reversed(order):
        _sum_up(node, group_from)
    return sorted(tops, key=lambda node: node.span.seq)


def _place(top: Node, children: dict[str, list[Node]], placed: set[str], order: list[Node]) -> None:
    """Hang everything below a top node, parents before children in `order`."""
    placed.add(top.span.span_id)
    waiting = [top]
    while waiting:
        node = waiting.pop()
        order.append(node)
        for child in children.get(node.span.span_id, ()):
            if child.span.span_id not in placed:
                placed.add(child.span.span_id)
                node.below.append(child)
                waiting.append(child)


def _sum_up(node: Node, group_from: int) -> None:
    node.totals.add_span(node.span, node.outcome)
    for child in node.below:
        node.totals.add(child.totals)
    if group_from > 0:
        node.below = list(_grouped([child for child in node.below if isinstance(child, Node)], group_from))


def _grouped(nodes: list[Node], group_from: int) -> Iterator[Node | Group]:
    row: list[Node] = []
    for node in nodes:
        if row and row[0].span.kind != node.span.kind:
            yield from _folded(row, group_from)
            row = []
        row.append(node)
    yield from _folded(row, group_from)


def _folded(row: list[Node], group_from: int) -> Iterator[Node | Group]:
    called = _CALLED.get(row[0].span.kind) if row else None
    if called is None or len(row) < group_from:
        yield from row
        return
    yield Group.of(called, row)


def walk(tops: Sequence[Node | Group]) -> Iterator[tuple[int, Node | Group]]:
    """All nodes and groups from the top down with their level; members follow their group."""
    stack: list[tuple[int, Node | Group]] = [(0, item) for item in reversed(tops)]
    while stack:
        level, item = stack.pop()
        yield level, item
        inner: Sequence[Node | Group] = item.members if isinstance(item, Group) else item.below
        stack.extend((level + 1, child) for child in reversed(inner))
