"""The recursion tree of a run as flat rows, top first: what the tree view draws and its table lists.

All decisions are made here (grouping, order, words, what is open at first); the browser only draws rows.
Every text in a row is one line, bounded and safe to show.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from traces.reading import Group, Node, build_tree, mark_gaps
from traces.tree import Totals, outcome
from ui.figures import duration, money
from ui.tree import problem
from ui.visible import line

if TYPE_CHECKING:
    from traces.reading import RunView, SpanRow
    from traces.summing import Spend

Tone = Literal["ok", "bad", "warn", "live"]
CHUNK: Final = 2_000  # rows that travel as one message; a change elsewhere does not send them again
_TEXT_CHARS: Final = 120
_OPEN_FAILURES: Final = 50  # a group with more failures stays closed until it is asked for
_FINE: Final = ("ok", "running")
_TONES: Final[dict[str, Tone]] = {"ok": "ok", "running": "live", "cancelled": "warn", "empty": "warn"}
_CALLS: Final = ("root_call", "sub_call")
_PARTS: Final = 1000  # the time line is divided into that many


@dataclass(slots=True)
class Row:
    """One row. `span` is the id of the span it stands for, None for a group of calls without one of its own.

    `start` and `width` place it on the run's time line in thousandths. `opened`: its children show at first.
    """

    key: str
    span: str | None
    level: int
    label: str
    note: str
    status: str
    tone: Tone
    tokens: str
    cost: str
    time: str
    start: int
    width: int
    opened: bool


@dataclass
class TreeRows:
    """All rows of a run. `place` finds the row of a span; the single attempt of a call is in the call's."""

    rows: list[Row] = field(default_factory=list)
    place: dict[str, int] = field(default_factory=dict)
    folded: int = 0  # attempts that have no row of their own

    def key_of(self, span_id: str | None) -> str | None:
        """The key of the row a span is seen in, None when there is no such span."""
        place = None if span_id is None else self.place.get(span_id)
        return None if place is None else self.rows[place].key

    @cached_property
    def chunks(self) -> list[tuple[str, bytes]]:
        """The rows in pieces: name (a hash of the content) and JSON document, columns as lists."""
        return [_chunk(self.rows[first : first + CHUNK]) for first in range(0, len(self.rows), CHUNK)]


def tree_rows(view: RunView) -> TreeRows:
    """The rows of a run as it stands now."""
    tops = build_tree(view.spans)
    mark_gaps(tops, view.summary)
    whole = Totals()
    for top in tops:
        whole.add(top.totals)
    made = TreeRows()
    describe = _Describer(whole, view.summary.sub_model)
    # an explicit stack: a record is untrusted and may nest deeper than Python recurses
    stack: list[tuple[int, Node | Group]] = [(0, top) for top in reversed(tops)]
    while stack:
        level, item = stack.pop()
        place = len(made.rows)
        group = _only_group(item)
        below = _members(group) if group is not None else list(item.below) if isinstance(item, Node) else []
        if isinstance(item, Node):
            made.place[item.span.span_id] = place
            if item.span.kind in _CALLS:
                below = _without_single_attempt(below, made, place)
        made.rows.append(describe.row(level, item, group))
        stack.extend((level + 1, child) for child in reversed(below))
    return made


def _only_group(item: Node | Group) -> Group | None:
    """The group that a row shows: itself, or the one below a batch, which adds nothing to what it says."""
    if isinstance(item, Group):
        return item
    if item.span.kind == "batch" and len(item.below) == 1 and isinstance(item.below[0], Group):
        return item.below[0]
    return None


def _members(group: Group) -> list[Node | Group]:
    """What did not go well comes first; the rest follows as one group of its own."""
    bad: list[Node | Group] = [node for node in group.members if outcome(node.span) not in _FINE]
    if not bad:
        return list(group.members)
    fine = [node for node in group.members if outcome(node.span) in _FINE]
    if len(fine) < 2:
        return [*bad, *fine]
    totals, counts = Totals(), dict.fromkeys(_FINE, 0)
    for node in fine:
        totals.add(node.totals)
        counts[outcome(node.span)] += 1
    return [*bad, Group(group.called, fine, counts, totals)]


def _without_single_attempt(below: list[Node | Group], made: TreeRows, place: int) -> list[Node | Group]:
    attempts = [node for node in below if isinstance(node, Node) and node.span.kind == "attempt"]
    if len(attempts) != 1 or attempts[0].below:
        return below
    made.place[attempts[0].span.span_id] = place
    made.folded += 1
    return [node for node in below if node is not attempts[0]]


class _Describer:
    """Makes rows: words, figures, and places on the time line of the whole run."""

    def __init__(self, whole: Totals, sub_model: str | None) -> None:
        self._first = whole.first_ns or 0
        self._span = max((whole.last_ns or 0) - self._first, 1)
        self._sub_model = sub_model

    def row(self, level: int, item: Node | Group, group: Group | None) -> Row:
        """The row of an item; `group` is the one it shows, see `_only_group`."""
        totals = item.totals
        span = item.span if isinstance(item, Node) else None
        key = span.span_id if span is not None else _group_key(item)
        status, tone = _group_status(group) if group is not None else _status(item)
        first, last = (totals.first_ns, totals.last_ns) if span is None else (span.start_ns, span.end_ns)
        start, width = self._on_time_line(first, last)
        return Row(
            key=key,
            span=None if span is None else span.span_id,
            level=level,
            label=_short(group.headline if group is not None else self._label(span)),
            note="" if group is not None else _note(span),
            status=status,
            tone=tone,
            tokens=_tokens(span, totals.spend),
            cost=_cost(span, totals.spend),
            time="" if first is None or last is None else duration((last - first) / 1e9),
            start=start,
            width=width,
            opened=_opened(item, group),
        )

    def _label(self, span: SpanRow | None) -> str:
        if span is None:
            return ""
        index = "" if span.call_index is None else f" {span.call_index}"
        other = span.model if span.model is not None and span.model != self._sub_model else ""
        labels = {
            "run": "run" if span.parent_id is None else f"rlm_query{index}, depth {span.depth}",
            "iteration": f"iteration {span.iteration} {span.preview or ''}",
            "root_call": "root call",
            "cell": f"cell {'' if span.cell is None else span.cell} {span.phase or ''}",
            "batch": "llm_batch",
            "sub_call": f"llm_query{index} {other}",
            "attempt": "attempt",
        }
        return labels.get(span.kind, span.name)

    def _on_time_line(self, first: int | None, last: int | None) -> tuple[int, int]:
        if first is None:
            return 0, 0
        start = min(max((first - self._first) * _PARTS // self._span, 0), _PARTS)
        end = _PARTS if last is None else min((last - self._first) * _PARTS // self._span, _PARTS)
        return start, max(end - start, 0)


def _group_key(item: Node | Group) -> str:
    """A key that no span id can be, and that stays while a running group grows."""
    if isinstance(item, Node):
        return item.span.span_id
    return f"group {item.members[0].span.span_id}"


def _status(item: Node | Group) -> tuple[str, Tone]:
    assert isinstance(item, Node)
    word = outcome(item.span)
    inner = item.totals.failures - (item.span.status not in _FINE and item.span.kind in ("cell", "run"))
    if word == "ok" and item.span.kind != "sub_call" and inner > 0:
        return f"{inner:,} failed", "warn"
    return word, _TONES.get(word, "bad")


def _group_status(group: Group) -> tuple[str, Tone]:
    failed = sum(count for word, count in group.counts.items() if word not in (*_FINE, "empty"))
    if failed:
        return f"{failed:,} failed", "bad"
    if group.totals.open:
        return "running", "live"
    empty = group.counts.get("empty", 0)
    return (f"{empty:,} empty", "warn") if empty else ("ok", "ok")


def _opened(item: Node | Group, group: Group | None) -> bool:
    if group is not None:
        bad = sum(count for word, count in group.counts.items() if word not in _FINE)
        return 0 < bad <= _OPEN_FAILURES
    assert isinstance(item, Node)
    if item.span.kind == "run" and item.span.parent_id is not None:
        return item.totals.failures > 0
    return item.span.kind not in (*_CALLS, "attempt")


def _note(span: SpanRow | None) -> str:
    if span is None or span.kind in ("iteration", "batch") or (span.kind == "run" and span.parent_id is None):
        return "" if span is None else problem(span) or ""
    orphan = "its parent is not in the record. " if span.orphan else ""
    return _short(orphan + (problem(span) or span.preview or ""))


def _short(text: str) -> str:
    shown = line(text[: _TEXT_CHARS * 2])
    return shown if len(shown) <= _TEXT_CHARS else shown[: _TEXT_CHARS - 1] + "…"


def _tokens(span: SpanRow | None, spend: Spend) -> str:
    if not spend.calls:
        return ""
    if span is not None and span.kind in _CALLS and span.tokens is None:
        return "" if span.end_ns is None else "?"
    return f"{spend.input + spend.output:,}"


def _cost(span: SpanRow | None, spend: Spend) -> str:
    if not spend.calls or (span is not None and span.kind in _CALLS and span.end_ns is None):
        return ""
    if spend.usd is not None:
        return money(spend.usd, None)
    return f"≥ {money(spend.known_usd, None)}" if spend.known_usd else "unknown"


def _chunk(rows: Sequence[Row]) -> tuple[str, bytes]:
    columns = {name: list(_column(rows, name)) for name in Row.__slots__}
    body = json.dumps(columns, ensure_ascii=True, separators=(",", ":"))
    name = hashlib.sha256(body.encode("ascii")).hexdigest()[:16]
    return name, f'{{"name":"{name}","rows":{body}}}'.encode("ascii")


def _column(rows: Sequence[Row], name: str) -> Iterator[object]:
    return (getattr(row, name) for row in rows)
