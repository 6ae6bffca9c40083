"""The rows of the tree on a run page, from the top down, with the figures of their subtrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from traces.exporters.html_data import Texts
from traces.exporters.html_words import Clean, is_bad, label, problem, short
from traces.exporters.secrets import REDACTED
from traces.figures import duration as time_words
from traces.reading import Group, Node, build_tree, mark_whole
from traces.rows import CALL_KINDS, SpanRow
from traces.tree import REFUSED, Totals, walk
from traces.tree_cells import cost_cell, status_cell, tokens_cell
from traces.view import RunView

_PARTS: Final = 10_000  # the time line is divided into that many
_OPEN_MEMBERS: Final = 50  # a fan-out with more failures stays closed until it is asked for
_COLUMNS: Final = (
    *("id", "level", "label", "note", "status", "tone", "tokens", "cost", "time", "start", "width"),
    *("opened", "fan", "bad", "span", "attempt", "texts"),
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A span that has a row; `attempt` is its only one, which has none."""

    node: Node
    attempt: SpanRow | None = None


@dataclass
class Rows:
    """The tree in columns, as the page's script takes it; `spans` in the order of their rows.

    `span` of a row is the number of its span, -1 for a group; `attempt` the id of an attempt that has no row
    of its own; `texts` lists the numbers of its texts. `ends` counts the sub-calls below a span by
    outcome.
    """

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _COLUMNS})
    spans: list[Placed] = field(default_factory=list)
    ends: dict[str, Counter[str]] = field(default_factory=dict)


def top_nodes(view: RunView) -> list[Node]:
    """The top nodes of a run with the figures of their subtrees."""
    tops = build_tree(view.spans)
    mark_whole(tops, view.summary)
    return tops


def tree_rows(tops: Sequence[Node], texts: Texts, clean: Clean) -> Rows:
    """The rows of a tree; `texts` of each stay empty."""
    made = Rows(ends=_ends(tops))
    describe = _Describer(tops, texts, clean)
    # an explicit stack: a record is untrusted and may nest deeper than Python recurses
    stack: list[tuple[int, Node | Group]] = [(0, top) for top in reversed(tops)]
    while stack:
        level, item = stack.pop()
        group = item if isinstance(item, Group) else _only_group(item)
        below: Sequence[Node | Group]
        attempt = _only_attempt(item) if isinstance(item, Node) else None
        if group is not None:
            below = _members(group)
        else:
            assert isinstance(item, Node)
            below = [] if attempt is not None else item.below
        if isinstance(item, Node):
            made.spans.append(Placed(item, attempt))
        row = describe.row(level, item, group)
        row["span"] = len(made.spans) - 1 if isinstance(item, Node) else -1
        row["attempt"] = "" if attempt is None else attempt.span_id
        for name in _COLUMNS:
            made.columns[name].append(row[name])
        stack.extend((level + 1, child) for child in reversed(below))
    return made


def _only_group(item: Node) -> Group | None:
    """The group below a batch, which adds nothing to what it says."""
    if item.span.kind == "batch" and len(item.below) == 1 and isinstance(item.below[0], Group):
        return item.below[0]
    return None


def _only_attempt(item: Node) -> SpanRow | None:
    """The attempt of a call that took one and did nothing else."""
    if item.span.kind not in CALL_KINDS or len(item.below) != 1:
        return None
    one = item.below[0]
    return one.span if isinstance(one, Node) and one.span.kind == "attempt" and not one.below else None


def _members(group: Group) -> Sequence[Node | Group]:
    """What did not go well comes first, the rest is a group of its own."""
    bad: list[Node | Group] = [node for node in group.members if is_bad(node.span)]
    fine = [node for node in group.members if not is_bad(node.span)]
    if not bad or len(fine) < 2:
        return [*bad, *fine]
    return [*bad, Group.of(group.called, fine)]


def _ends(tops: Sequence[Node]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    nodes = [item for _, item in walk(tops) if isinstance(item, Node)]
    for node in reversed(nodes):  # children before their parents
        counts = Counter[str]()
        for child in _children(node):
            counts += found[child.span.span_id]
            if child.span.kind == "sub_call":
                counts[child.outcome] += 1
        found[node.span.span_id] = counts
    return found


def _children(node: Node) -> Iterator[Node]:
    for item in node.below:
        yield from item.members if isinstance(item, Group) else (item,)


class _Describer:
    """Words and figures of rows, and their places on the time line of the whole run."""

    def __init__(self, tops: Sequence[Node], texts: Texts, clean: Clean) -> None:
        self._texts = texts
        self._clean = clean
        whole = Totals()
        for top in tops:
            whole.add(top.totals)
        self._first = whole.first_ns or 0
        self._length = max((whole.last_ns or 0) - self._first, 1)

    def row(self, level: int, item: Node | Group, group: Group | None) -> dict[str, Any]:
        """A row but for its span and attempt. `group` is the one it shows: itself, or that of a batch."""
        span = item.span if isinstance(item, Node) else None
        status, tone = status_cell(item if group is None else group)
        start, width = self._on_time_line(item)
        named = "" if span is None else label(span, self._clean)
        return {
            "id": "" if span is None else span.span_id,
            "level": level,
            "label": named if group is None else group.headline,
            "note": "" if span is None or group is not None else self._note(span),
            "status": status,
            "tone": tone,
            "tokens": tokens_cell(item.totals.spend, span),
            "cost": cost_cell(item.totals.spend, span),
            "time": _time(item),
            "start": start,
            "width": width,
            "opened": int(_opened(item, group)),
            "fan": int(group is not None),
            "bad": int(isinstance(item, Node) and _went_wrong(item)),
            "texts": [],
        }

    def _note(self, span: SpanRow) -> str:
        """What went wrong, else how it begins."""
        said = problem(span, self._clean)
        if not said or said == span.status:
            shows = span.kind not in ("iteration", "batch") and span.parent_id is not None
            said = (REDACTED if self._texts.held_key(span) else span.preview or "") if shows else ""
        return short(self._clean(("its parent is not in the record. " if span.orphan else "") + said))

    def _on_time_line(self, item: Node | Group) -> tuple[int, int]:
        """Start and width in parts of the whole; no width where the record has no times."""
        members = item.members if isinstance(item, Group) else (item,)
        spans = [node.span for node in members if node.span.start_told and not node.totals.untimed]
        if not spans:
            return 0, 0
        first = min(one.start_ns for one in spans) - self._first
        open_ = any(one.end_ns is None for one in spans)
        last = self._length if open_ else max(one.end_ns or 0 for one in spans) - self._first
        start, end = (min(max(at * _PARTS // self._length, 0), _PARTS) for at in (first, last))
        return start, max(end - start, 1)


def _went_wrong(node: Node) -> bool:
    """Whether a span failed or came back empty itself; what a limit refused did not fail."""
    return node.span.kind != "attempt" and node.outcome != REFUSED and is_bad(node.span)


def _time(item: Node | Group) -> str:
    if isinstance(item, Node):
        own = item.totals.own_seconds
        return "" if item.span.end_ns is None else "?" if item.totals.untimed else time_words(own)
    return "" if item.totals.seconds is None else time_words(item.totals.seconds)


def _opened(item: Node | Group, group: Group | None) -> bool:
    """Whether what is below an item shows at first."""
    if group is not None:
        return 0 < sum(is_bad(node.span) for node in group.members) <= _OPEN_MEMBERS
    assert isinstance(item, Node)
    if item.span.kind == "run" and item.span.parent_id is not None:
        return item.totals.failures > 0
    return item.span.kind not in (*CALL_KINDS, "attempt")
