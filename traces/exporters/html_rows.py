"""The rows of the tree on a run page, from the top down, with the figures of their subtrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from traces.exporters.html_words import duration as time_words
from traces.exporters.html_words import is_bad, label, money, problem, short
from traces.reading import Group, Node, build_tree, mark_gaps
from traces.rows import CALL_KINDS, SpanRow
from traces.tree import Totals, outcome, walk
from traces.view import RunView

_PARTS: Final = 10_000  # the time line is divided into that many
_OPEN_MEMBERS: Final = 50  # a fan-out with more failures stays closed until it is asked for
_TONES: Final = {"ok": "ok", "running": "live", "cancelled": "warn", "empty": "warn"}
_COLUMNS: Final = (
    *("id", "level", "label", "note", "status", "tone", "tokens", "cost", "time", "start", "width"),
    *("opened", "fan", "bad", "span", "texts"),
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A span that has a row; `attempt` is its only one, which has none."""

    node: Node
    attempt: SpanRow | None = None


@dataclass(slots=True)
class Below:
    """Of a span and all below it: calls that ended and do not say their tokens; of those below it the
    sub-calls, by outcome.
    """

    untold: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass
class Rows:
    """The tree in columns, as the page's script takes it; `spans` in the order of their rows.

    `span` of a row is the number of its span, -1 for a group; `texts` lists the numbers of its texts.
    """

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _COLUMNS})
    spans: list[Placed] = field(default_factory=list)
    whole: Totals = field(default_factory=Totals)
    tops: list[Node] = field(default_factory=list)
    below: dict[str, Below] = field(default_factory=dict)  # by span


def tree_rows(view: RunView) -> Rows:
    """The rows of a run; `texts` stay empty."""
    made = Rows(tops=build_tree(view.spans))
    mark_gaps(made.tops, view.summary)
    for top in made.tops:
        made.whole.add(top.totals)
    made.below = _sums(made.tops)
    # an explicit stack: a record is untrusted and may nest deeper than Python recurses
    stack: list[tuple[int, Node | Group]] = [(0, top) for top in reversed(made.tops)]
    while stack:
        level, item = stack.pop()
        group = item if isinstance(item, Group) else _only_group(item)
        below: Sequence[Node | Group]
        if group is not None:
            below = _members(group)
        else:
            assert isinstance(item, Node)
            attempt = _only_attempt(item)
            below = [] if attempt is not None else item.below
        if isinstance(item, Node):
            made.spans.append(Placed(item, _only_attempt(item)))
        _add(made, level, item, group)
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


def _sums(tops: Sequence[Node]) -> dict[str, Below]:
    found: dict[str, Below] = {}
    nodes = [item for _, item in walk(tops) if isinstance(item, Node)]
    for node in reversed(nodes):  # children before their parents
        span, made = node.span, Below()
        for child in _children(node):
            made.untold += found[child.span_id].untold
            made.outcomes += found[child.span_id].outcomes
            if child.kind == "sub_call":
                made.outcomes[outcome(child)] += 1
        made.untold += span.kind in CALL_KINDS and span.end_ns is not None and span.tokens is None
        found[span.span_id] = made
    return found


def _children(node: Node) -> Iterator[SpanRow]:
    for item in node.below:
        for member in item.members if isinstance(item, Group) else (item,):
            yield member.span


def tokens_words(totals: Totals, untold: int) -> str:
    """Tokens in and out together; a plus where some calls do not say."""
    if not totals.spend.calls:
        return ""
    if untold >= totals.spend.calls:
        return "?"
    return f"{totals.spend.input + totals.spend.output:,}" + ("+" if untold else "")


def timed(span: SpanRow) -> bool:
    """Whether the record says when a span was at work."""
    return not {span.trusted.get("start"), span.trusted.get("seconds")} & {"missing", "known_wrong"}


def _add(made: Rows, level: int, item: Node | Group, group: Group | None) -> None:
    span = item.span if isinstance(item, Node) else None
    members = item.members if isinstance(item, Group) else (item,)
    untold = sum(made.below[node.span.span_id].untold for node in members)
    status, tone = _group_status(group) if group is not None else _status(item)
    start, width = _on_time_line(made.whole, item)
    row = {
        "id": "" if span is None else span.span_id,
        "level": level,
        "label": short(group.headline) if group is not None else "" if span is None else label(span),
        "note": _note(span) if group is None else "",
        "status": status,
        "tone": tone,
        "tokens": tokens_words(item.totals, untold),
        "cost": _cost(item.totals, span),
        "time": _time(item),
        "start": start,
        "width": width,
        "opened": int(_opened(item, group)),
        "fan": int(group is not None),
        "bad": int(span is not None and is_bad(span)),
        "span": -1 if span is None else len(made.spans) - 1,
        "texts": [],
    }
    for name in _COLUMNS:
        made.columns[name].append(row[name])


def _note(span: SpanRow | None) -> str:
    if span is None:
        return ""
    said = problem(span)
    if not said or said == span.status:
        shows = span.kind not in ("iteration", "batch") and span.parent_id is not None
        said = span.preview or "" if shows else ""
    return short(("its parent is not in the record. " if span.orphan else "") + said)


def _cost(totals: Totals, span: SpanRow | None) -> str:
    if not totals.spend.calls or (span is not None and span.kind in CALL_KINDS and span.end_ns is None):
        return ""
    if totals.spend.usd is None and totals.spend.known_usd:
        return f"≥ {money(totals.spend.known_usd)}"
    return money(totals.spend.usd)


def _time(item: Node | Group) -> str:
    if isinstance(item, Node):
        if item.span.end_ns is None:
            return ""
        return "?" if item.span.seconds is None else time_words(item.span.seconds)
    if any(node.span.seconds is None for node in item.members):
        return ""
    return time_words(item.totals.seconds)


def _on_time_line(whole: Totals, item: Node | Group) -> tuple[int, int]:
    """Start and width in parts of the whole; no width where the record has no times."""
    spans = [node.span for node in (item.members if isinstance(item, Group) else (item,)) if timed(node.span)]
    if not spans or whole.first_ns is None:
        return 0, 0
    length = max((whole.last_ns or 0) - whole.first_ns, 1)
    first = min(one.start_ns for one in spans)
    last = None if any(one.end_ns is None for one in spans) else max(one.end_ns or 0 for one in spans)
    start = min(max((first - whole.first_ns) * _PARTS // length, 0), _PARTS)
    end = _PARTS if last is None else min((last - whole.first_ns) * _PARTS // length, _PARTS)
    return start, max(end - start, 1)


def _status(item: Node | Group) -> tuple[str, str]:
    assert isinstance(item, Node)
    word = outcome(item.span)
    inner = item.totals.failures - (is_bad(item.span) and item.span.kind in ("cell", "run"))
    if word == "ok" and item.span.kind != "sub_call" and inner > 0:
        return f"{inner:,} failed", "warn"
    return word, _TONES.get(word, "bad")


def _group_status(group: Group) -> tuple[str, str]:
    failed = sum(count for word, count in group.counts.items() if word not in ("ok", "running", "empty"))
    if failed:
        return f"{failed:,} failed", "bad"
    if group.totals.open:
        return "running", "live"
    empty = group.counts.get("empty", 0)
    return (f"{empty:,} empty", "warn") if empty else ("ok", "ok")


def _opened(item: Node | Group, group: Group | None) -> bool:
    """Whether what is below an item shows at first."""
    if group is not None:
        return 0 < sum(is_bad(node.span) for node in group.members) <= _OPEN_MEMBERS
    assert isinstance(item, Node)
    if item.span.kind == "run" and item.span.parent_id is not None:
        return item.totals.failures > 0
    return item.span.kind not in (*CALL_KINDS, "attempt")
