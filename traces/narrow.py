"""Which spans of a run a person wants to see: by how they ended, what made them, what they cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Final

from traces.rows import SpanRow
from traces.tree import REFUSED, outcome

SUSPECT: Final = "suspect"
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Narrow:
    """What spans must fit; an empty field takes all. Several words in one field: any of them.

    `status` holds outcomes (see `traces.tree.outcome`), "suspect", and kinds of signals (see
    `traces.suspects`); `over` takes calls that are known to have cost more than so many dollars.
    """

    status: Words = ()
    role: Words = ()
    depth: Words = ()
    phase: Words = ()
    model: Words = ()
    over: Decimal | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) not in ((), None) for one in fields(self))


@dataclass(frozen=True, slots=True)
class Fitting:
    """The spans that fit, in order. `unknown`: calls that may have cost more than `over`, or may not."""

    spans: tuple[str, ...]
    unknown: int


FIELDS: Final[dict[str, Callable[[SpanRow], str | None]]] = {
    "role": lambda span: span.role,
    "depth": lambda span: str(span.depth),
    "phase": lambda span: span.phase,
    "model": lambda span: span.model,
}


def fitting(
    spans: Iterable[SpanRow],
    narrow: Narrow,
    signals: Mapping[str, Collection[str]],
    turned_away: Collection[str] = (),
) -> Fitting:
    """The spans that fit. `signals`: the kinds of signals of each suspect, by span id; `turned_away`: the ids
    of calls that a limit refused.
    """
    found, unknown = [], 0
    tests = [(read, frozenset(wanted)) for name, read in FIELDS.items() if (wanted := getattr(narrow, name))]
    statuses = frozenset(narrow.status)
    for span in spans:
        if any(read(span) not in wanted for read, wanted in tests):
            continue
        if statuses and statuses.isdisjoint(words_of(span, signals, turned_away)):
            continue
        if narrow.over is not None and (span.cost_usd is None or span.cost_usd <= narrow.over):
            unknown += span.cost_usd is None and span.kind in ("root_call", "sub_call")
            continue
        found.append(span.span_id)
    return Fitting(tuple(found), unknown)


def words_of(
    span: SpanRow, signals: Mapping[str, Collection[str]], turned_away: Collection[str] = ()
) -> set[str]:
    """What the status field of `Narrow` can name a span by."""
    kinds = signals.get(span.span_id)
    ended = outcome(span, turned_away)
    words = {ended} if kinds is None else {ended, SUSPECT, *kinds}
    return words - {"error"} if ended == REFUSED else words  # nothing was asked, so nothing failed


def with_parents(spans: Mapping[str, SpanRow], wanted: Iterable[str]) -> set[str]:
    """The ids of spans and of all that stand above them."""
    kept: set[str] = set()
    for span_id in wanted:
        above: str | None = span_id
        while above is not None and above not in kept and above in spans:
            kept.add(above)
            above = spans[above].parent_id
    return kept
