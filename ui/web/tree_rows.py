"""The recursion tree of a run as flat rows, top first: what the tree view draws and its table lists.

All decisions are made here and in `tree_words` (grouping, order, words, what is open at first); the browser
only draws rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from traces.imported import is_timed
from traces.narrow import with_parents
from traces.reading import Group, Node, build_tree, mark_whole
from traces.tree import Totals
from traces.tree_cells import FINE, Tone
from ui.web.tree_words import CALLS, Describer, Row

if TYPE_CHECKING:
    from traces.reading import RunView
    from traces.suspects import Suspect

__all__ = ["CHUNK", "ORDERS", "Row", "Shape", "Tone", "TreeRows", "pieces", "tree_rows"]

CHUNK: Final = 2_000  # rows that travel as one message; a change elsewhere does not send them again
ORDERS: Final = ("order", "cost", "time", "suspicion")
_OPEN_MEMBERS: Final = 50  # a group with more failures, or more that fit, stays closed until it is asked for


@dataclass(frozen=True, slots=True)
class Shape:
    """What the tree shows, and how. `fits`: only these spans, and what stands above them; None for all.

    `order` is that of the calls of one fan-out: as recorded (with what failed first), or the dearest, the
    slowest, the most suspicious first; what is not known comes last. `suspects` by span id. `name` is another
    for every other choice of spans and order.
    """

    fits: Collection[str] | None = None
    order: str = "order"
    suspects: Mapping[str, Suspect] = field(default_factory=dict)
    name: str = ""


@dataclass
class TreeRows:
    """All rows of a run. `place` finds the row of a span; the single attempt of a call is in the call's."""

    rows: list[Row] = field(default_factory=list)
    place: dict[str, int] = field(default_factory=dict)
    single: set[str] = field(default_factory=set)  # attempts that have no row of their own
    seconds: float = 0.0  # of the time line
    name: str = ""  # of their shape

    @property
    def folded(self) -> int:
        """How many attempts have no row of their own."""
        return len(self.single)

    def key_of(self, span_id: str | None) -> str | None:
        """The key of the row a span is seen in, None when there is no such span."""
        place = None if span_id is None else self.place.get(span_id)
        return None if place is None else self.rows[place].key

    @cached_property
    def chunks(self) -> list[tuple[str, bytes]]:
        """The rows in pieces: name (a hash of the content) and JSON document, columns as lists."""
        return pieces(self.rows, Row.__slots__)


def tree_rows(view: RunView, shape: Shape | None = None) -> TreeRows:
    """The rows of a run as it stands now."""
    shape = shape or Shape()
    tops = build_tree(view.spans)
    mark_whole(tops, view.summary)
    whole = Totals()
    for top in tops:
        whole.add(top.totals)
    made = TreeRows(seconds=whole.seconds or 0.0, name=shape.name)
    describe = Describer(whole, view.summary.sub_model, shape.suspects, timed=is_timed(view))
    cut = _Cut(view, shape)
    # an explicit stack: a record is untrusted and may nest deeper than Python recurses
    stack: list[tuple[int, Node | Group]] = [(0, top) for top in reversed(cut.kept(tops))]
    while stack:
        level, item = stack.pop()
        place = len(made.rows)
        below = cut.kept(item.below) if isinstance(item, Node) else []
        group = item if isinstance(item, Group) else _only_group(item, below)
        if group is not None:
            below = cut.members(group)
        if isinstance(item, Node):
            made.place[item.span.span_id] = place
            if item.span.kind in CALLS:
                below = _without_single_attempt(item, below, made, place)
        opened, fits = cut.opened(item, group), cut.fits(item)
        made.rows.append(describe.row(level, item, group, opened=opened, fits=fits))
        stack.extend((level + 1, child) for child in reversed(below))
    return made


def _only_group(item: Node, below: list[Node | Group]) -> Group | None:
    """The group below a batch, which adds nothing to what it says."""
    if item.span.kind == "batch" and len(below) == 1 and isinstance(below[0], Group):
        return below[0]
    return None


def _without_single_attempt(
    item: Node, below: list[Node | Group], made: TreeRows, place: int
) -> list[Node | Group]:
    attempts = [node for node in item.below if isinstance(node, Node) and node.span.kind == "attempt"]
    if len(attempts) != 1 or attempts[0].below:
        return below
    made.place[attempts[0].span.span_id] = place
    made.single.add(attempts[0].span.span_id)
    return [node for node in below if node is not attempts[0]]


class _Cut:
    """Takes of the tree what a shape shows, in its order."""

    def __init__(self, view: RunView, shape: Shape) -> None:
        self._fits = None if shape.fits is None else frozenset(shape.fits)
        self._kept = None if self._fits is None else with_parents(view.by_id, self._fits)
        by: dict[str, Callable[[Node], float]] = {
            "cost": lambda node: -float(node.totals.spend.known_usd),
            "time": lambda node: -(node.span.seconds or 0),
            "suspicion": lambda node: (
                -(shape.suspects[node.span.span_id].score if node.span.span_id in shape.suspects else 0)
            ),
        }
        self._by = by.get(shape.order)

    def kept(self, items: Sequence[Node | Group]) -> list[Node | Group]:
        """Those of some siblings that are shown."""
        if self._kept is None:
            return list(items)
        narrowed = (self._part(item) if isinstance(item, Group) else item for item in items)
        return [
            item
            for item in narrowed
            if item is not None and (isinstance(item, Group) or item.span.span_id in self._kept)
        ]

    def _part(self, group: Group) -> Group | None:
        assert self._kept is not None
        members = [node for node in group.members if node.span.span_id in self._kept]
        return Group.of(group.called, members, group.whole) if members else None

    def members(self, group: Group) -> list[Node | Group]:
        """In the order of the record what did not go well comes first; the rest is a group of its own."""
        if self._by is not None:
            return [*sorted(group.members, key=self._by)]
        bad: list[Node | Group] = [node for node in group.members if node.outcome not in FINE]
        fine = [node for node in group.members if node.outcome in FINE]
        if not bad:
            return list(fine)
        return [*bad, *fine] if len(fine) < 2 else [*bad, Group.of(group.called, fine)]

    def fits(self, item: Node | Group) -> bool:
        """Whether an item is shown for its own sake."""
        return self._fits is None or (isinstance(item, Node) and item.span.span_id in self._fits)

    def opened(self, item: Node | Group, group: Group | None) -> bool:
        """Whether what is below an item shows at first."""
        if group is not None:
            counted = len(group.members)
            if self._kept is None:
                counted -= sum(group.counts.get(word, 0) for word in FINE)
            return 0 < counted <= _OPEN_MEMBERS
        assert isinstance(item, Node)
        if self._kept is not None:
            return True
        if item.span.kind == "run" and item.span.parent_id is not None:
            return item.totals.failures > 0
        return item.span.kind not in (*CALLS, "attempt")


def pieces(rows: Sequence[object], names: Sequence[str]) -> list[tuple[str, bytes]]:
    """Rows in pieces: the name of each (a hash of its content), and a JSON document with these attributes of
    its rows as lists."""
    return [_piece(rows[first : first + CHUNK], names) for first in range(0, len(rows), CHUNK)]


def _piece(rows: Sequence[object], names: Sequence[str]) -> tuple[str, bytes]:
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    body = json.dumps(columns, ensure_ascii=True, separators=(",", ":"))
    name = hashlib.sha256(body.encode("ascii")).hexdigest()[:16]
    return name, f'{{"name":"{name}","rows":{body}}}'.encode("ascii")
