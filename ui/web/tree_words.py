"""The words and figures of a row of the recursion tree. Every text is one line, bounded and safe to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from rlm_core import semconv as sc
from traces.reading import Group, Node
from traces.tree import Totals, outcome, unanswered
from traces.tree_cells import FINE, Tone, cost_cell, status_cell, tokens_cell
from ui.figures import duration
from ui.tree import problem
from ui.visible import line

if TYPE_CHECKING:
    from traces.reading import SpanRow
    from traces.suspects import Suspect

Look = Literal["", "fan", "parent"]
NO_PLACE: Final = -1  # the width of what has no place on the time line: its record does not say when it was
PARTS: Final = 1_000_000  # the time line is divided into that many
CALLS: Final = ("root_call", "sub_call")
_TEXT_CHARS: Final = 120


@dataclass(slots=True)
class Row:
    """One row. `span` is the id of the span it stands for, None for a group of calls without one of its own.

    `start` and `width` place it on the run's time line in millionths (`NO_PLACE`: it has none). `opened`:
    its children show at first. `look`: "fan" for a fan-out, whose label counts its calls; "parent" for what
    is there only because something below it fits.
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
    look: Look


class Describer:
    """Makes rows: words, figures, and places on the time line of the whole run."""

    def __init__(
        self, whole: Totals, sub_model: str | None, suspects: Mapping[str, Suspect], *, timed: bool = True
    ) -> None:
        self._timed = timed
        self._first = whole.first_ns or 0
        self._span = max((whole.last_ns or 0) - self._first, 1)
        self._sub_model = sub_model
        self._suspects = suspects

    def row(self, level: int, item: Node | Group, group: Group | None, *, opened: bool, fits: bool) -> Row:
        """The row of an item. `group` is the one it shows: itself, or the one below a batch."""
        totals = item.totals
        span = item.span if isinstance(item, Node) else None
        key = span.span_id if span is not None else _group_key(item)
        status, tone = status_cell(item if group is None else group)
        first, last = (totals.first_ns, totals.last_ns) if span is None else (span.start_ns, span.end_ns)
        start, width = self._on_time_line(first, last)
        if totals.untimed or (span is not None and not span.start_told):
            width = NO_PLACE
        return Row(
            key=key,
            span=None if span is None else span.span_id,
            level=level,
            label=_short(group.headline if group is not None else label(span, self._sub_model)),
            note="" if group is not None else self._note(span),
            status=status,
            tone=tone,
            tokens=tokens_cell(totals.spend, span),
            cost=cost_cell(totals.spend, span),
            time=self._time(span, totals, first, last),
            start=start,
            width=width,
            opened=opened,
            look="fan" if group is not None else "" if fits else "parent",
        )

    def _time(self, span: SpanRow | None, totals: Totals, first: int | None, last: int | None) -> str:
        if totals.untimed:
            return "?" if self._timed else ""
        if span is not None:
            return "" if totals.own_seconds is None else duration(totals.own_seconds)
        return "" if first is None or last is None else duration((last - first) / 1e9)

    def _note(self, span: SpanRow | None) -> str:
        """What went wrong, else what speaks against it, else its beginning."""
        if span is None:
            return ""
        said = problem(span) or ""
        if said == span.status:
            said = ""  # the status stands beside it
        if not said and span.kind not in ("iteration", "batch") and not _is_top(span):
            suspect = self._suspects.get(span.span_id) if outcome(span) in FINE else None
            asked = "asked: " if span.preview and unanswered(span) else ""
            said = f"suspect: {suspect.signals[0].words}" if suspect else asked + (span.preview or "")
        return _short(("its parent is not in the record. " if span.orphan else "") + said)

    def _on_time_line(self, first: int | None, last: int | None) -> tuple[int, int]:
        if first is None:
            return 0, 0
        start = min(max((first - self._first) * PARTS // self._span, 0), PARTS)
        end = PARTS if last is None else min((last - self._first) * PARTS // self._span, PARTS)
        return start, max(end - start, 0)


def label(span: SpanRow | None, sub_model: str | None) -> str:
    """What a span is called in lists. The model of a sub-call is named where it is another than `sub_model`.
    The text is not safe to show yet: models are named by people, phases stand in a file."""
    if span is None:
        return ""
    index = "" if span.call_index is None else f" {span.call_index}"
    other = span.model if span.model is not None and span.model != sub_model else ""
    labels = {
        "run": "run" if span.parent_id is None else f"rlm_query{index}, depth {span.depth}",
        "iteration": f"iteration {span.iteration} {span.preview or ''}",
        "root_call": "root call",
        "cell": f"cell {'' if span.cell is None else span.cell} {span.phase or ''}",
        "batch": "llm_batch",
        "sub_call": f"llm_query{index} {other}",
        "attempt": "attempt",
    }
    if span.kind == "tool":  # attributes of a stored run are decoded when they are looked at
        return f"tool {span.attributes.get(sc.TOOL_NAME) or ''}"
    if span.kind == "root_call" and span.attributes.get(sc.COMPACTED) is True:
        return "root call, a summary"
    return labels.get(span.kind, span.name)


def _group_key(item: Node | Group) -> str:
    """A key that no span id can be, and that stays while a running group grows."""
    if isinstance(item, Node):
        return item.span.span_id
    return f"group {item.members[0].span.span_id}"


def _is_top(span: SpanRow) -> bool:
    return span.kind == "run" and span.parent_id is None


def _short(text: str) -> str:
    shown = line(text[: _TEXT_CHARS * 2])
    return shown if len(shown) <= _TEXT_CHARS else shown[: _TEXT_CHARS - 1] + "…"
