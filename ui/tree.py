"""The recursion tree of a run as lines for a terminal.

Rows of calls are one line that counts them by outcome; the ones that did not go well stay visible below it.
So a fan-out of 200 calls takes a few lines, and nothing disappears without being counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os.path import commonprefix
from typing import TYPE_CHECKING, Final

from rlm_core import semconv as sc
from traces.imported import is_timed
from traces.reading import Group, Node, build_tree, mark_whole
from traces.refused import REFUSED_WORDS
from traces.tree import REFUSED, unanswered
from ui.figures import counted, duration, spent, with_tokens
from ui.visible import line

if TYPE_CHECKING:
    from traces.reading import RunView, SpanRow
    from traces.tree import Totals

SHOWN_OF_GROUP: Final = 6  # that many of a group's failed calls are listed
ID_CHARS: Final = 8  # of a span id: mostly enough to be unique in a run, short enough to type
_CALLS: Final = ("root_call", "sub_call")
_FINE: Final = ("ok", "running")


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line: the branch drawing, the text (safe to print), the status for colouring."""

    branch: str
    text: str
    status: str


@dataclass(frozen=True, slots=True)
class _More:
    """Members of a group that are not listed."""

    number: int


@dataclass(frozen=True, slots=True)
class _Look:
    """How a tree is drawn: what `everything` and `timed` say, and the ids that 8 digits do not tell apart."""

    everything: bool
    timed: bool
    long_ids: Mapping[str, int]


_Item = Node | Group | _More


def tree_lines(view: RunView, *, everything: bool = False) -> Iterator[TreeLine]:
    """The lines of a run's tree, top first. With `everything` nothing is grouped and attempts are shown."""
    tops = build_tree(view.spans, group_from=0) if everything else build_tree(view.spans)
    mark_whole(tops, view.summary)
    look = _Look(everything, is_timed(view), long_ids(view.by_id))
    # an explicit stack: a record is untrusted and may nest deeper than Python recurses
    stack: list[tuple[str, str, _Item]] = [("", "", node) for node in reversed(tops)]
    while stack:
        branch, indent, item = stack.pop()
        text, status, below = _line(item, look)
        yield TreeLine(branch, text, status)
        last = len(below) - 1
        for place in range(last, -1, -1):
            ends = place == last
            stack.append(
                (indent + ("└─ " if ends else "├─ "), indent + ("   " if ends else "│  "), below[place])
            )


def _line(item: _Item, look: _Look) -> tuple[str, str, Sequence[_Item]]:
    """Text and status of an item, and what is drawn below it."""
    if isinstance(item, _More):
        return f"… and {item.number:,} more like these", "error", ()
    if isinstance(item, Group):
        return _group_line(item, "", look)
    below: Sequence[Node | Group] = item.below
    if item.span.kind == "batch" and len(below) == 1 and isinstance(below[0], Group):
        batch = f" {_short(item.span, look.long_ids)}"
        return _group_line(below[0], batch, look)  # the batch adds nothing to its calls
    attempts = 0
    if item.span.kind in _CALLS and not look.everything:
        below = [node for node in below if isinstance(node, Group) or node.span.kind != "attempt"]
        attempts = len(item.below) - len(below)
    return _describe(item, attempts, look), item.span.status, below


def _group_line(group: Group, batch: str, look: _Look) -> tuple[str, str, Sequence[_Item]]:
    bad = [node for node in group.members if node.span.status not in _FINE or _is_empty(node.span)]
    below: list[_Item] = [*bad[:SHOWN_OF_GROUP]]
    if len(bad) > SHOWN_OF_GROUP:
        below.append(_More(len(bad) - SHOWN_OF_GROUP))
    status = (
        "running"
        if group.totals.open
        else "error"
        if group.totals.failures or group.counts.get(REFUSED)
        else "ok"
    )
    hits = sum(_is_hit(node.span) for node in group.members)
    said = [counted(hits, "cache hit")] if hits else []
    text = " · ".join((line(group.headline) + batch, *said, *_figures(group.totals, look.timed)))
    return text, status, below


def _figures(totals: Totals, timed: bool) -> list[str]:
    """Tokens and cost of the calls in a subtree, and its wall time; of a record without any times the head
    says so once."""
    parts = []
    if totals.spend.calls:
        cost = spent(totals.spend.usd, totals.spend.status, totals.spend.known_usd)
        parts = [with_tokens(totals.spend.tokens, totals.spend.untold), f"cost {cost}"]
    if totals.untimed:
        return [*parts, "time unknown"] if timed else parts
    return parts if totals.seconds is None else [*parts, duration(totals.seconds)]


def _describe(node: Node, attempts: int, look: _Look) -> str:
    """A span on one line, safe to print, with the figures of its subtree."""
    span = node.span
    parts = [f"{_title(span)} {_short(span, look.long_ids)}"]
    if span.orphan:
        parts.append("its parent is not in the record")
    wrong = problem(span)
    if node.outcome == REFUSED:
        parts.append(REFUSED_WORDS)
    if wrong:
        parts.append(wrong)  # before the figures: the end of a line may be cut
    elif span.end_ns is None:
        parts.append(span.status)
    elif _is_hit(span):
        parts.append("cache hit")
    if not (span.kind in _CALLS and span.end_ns is None):
        parts.extend(_figures(node.totals, look.timed))
    if attempts > 1:
        parts.append(counted(attempts, "attempt"))
    if not wrong and span.preview and span.kind != "iteration" and span.parent_id is not None:
        parts.append(_quoted(span))
    return " · ".join(parts)


def describe_span(span: SpanRow, longer: Mapping[str, int]) -> str:
    """A span by itself on one line, safe to print; `longer` is what `long_ids` says of its run."""
    parts = [
        f"{_title(span)} {_short(span, longer)}",
        problem(span),
        _quoted(span) if span.preview else None,
    ]
    return " · ".join(part for part in parts if part)


def _quoted(span: SpanRow) -> str:
    """The beginning of what a span said; of a call that has no reply on record, of what it was asked."""
    return f"{'asked: ' if unanswered(span) else ''}“{line(span.preview or '')}”"


def long_ids(span_ids: Iterable[str]) -> dict[str, int]:
    """How many digits those ids of a run need that share their first `ID_CHARS` with another one."""
    needed: dict[str, int] = {}
    for one, other in pairwise(sorted(span_ids)):
        if one[:ID_CHARS] == other[:ID_CHARS]:
            digits = len(commonprefix([one, other])) + 1
            needed |= {each: max(digits, needed.get(each, 0)) for each in (one, other)}
    return needed


def short_id(span_id: str, longer: Mapping[str, int]) -> str:
    """The beginning of an id that tells it from all others of its run; `longer` is of `long_ids`."""
    return line(span_id[: longer.get(span_id, ID_CHARS)])


def _short(span: SpanRow, longer: Mapping[str, int]) -> str:
    return f"[{short_id(span.span_id, longer)}]"


def _title(span: SpanRow) -> str:
    call = "llm_query" if span.call_index is None else f"llm_query {span.call_index}"
    model = span.model or "of an unknown model"
    titles = {
        "run": "run" if span.parent_id is None else f"rlm_query, depth {span.depth}",
        "iteration": f"iteration {span.iteration} {span.preview or ''}",
        "root_call": f"root {model}{_summing(span)}",
        "cell": " ".join(str(part) for part in ("cell", span.cell, span.phase) if part is not None),
        "batch": "llm_batch",
        "sub_call": f"{call} {model}",
        "attempt": "attempt",
    }
    return line(titles.get(span.kind, span.name))


def _summing(span: SpanRow) -> str:
    turns = span.attributes.get(sc.COMPACTED_TURNS)
    of = f"{turns} turns" if type(turns) is int and turns != 1 else "a turn"
    return f", summary of {of}" if span.attributes.get(sc.COMPACTED) is True else ""


def _is_empty(span: SpanRow) -> bool:
    return span.kind == "sub_call" and span.status == "ok" and span.response_chars == 0


def _is_hit(span: SpanRow) -> bool:
    return span.attributes.get(sc.SERVED_FROM) == "cache"


def problem(span: SpanRow) -> str | None:
    """What went wrong in a span, on one line and safe to print; None when nothing did."""
    if _is_empty(span):
        return "empty reply"
    if span.status in _FINE:
        return None
    kind, message = span.error_type or span.status, span.attributes.get(sc.ERROR_MESSAGE)
    if not message:
        return line(kind)
    return line(message if str(message).startswith(kind) else f"{kind}: {message}")
