"""Two runs compared span by span: which sub-calls were asked the same and answered differently.

`diff` aligns the trees (`traces.align`) and gives every row a status: *same*; *frontier*, where what went in
is equal and what came out is not, so that the difference began there; *downstream*, where what went in
differed already; *added* and *removed*, what only the second or the first run has. No model is asked and
nothing is replayed. Design: diff and frontier.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from rlm_core.errors import InputError
from rlm_core.normalise import normalise
from traces.align import Alignment
from traces.align_keys import Matched, Side, children
from traces.diff_changes import Change, Changes, changes
from traces.diff_plan import Hint, PlanDivergence, hints, plan_of, roots_apart
from traces.opinions import LOOKED_FOR
from traces.rows import money_json
from traces.same_answer import same_answer
from traces.tree import Node, Totals
from traces.view import RunView

RowStatus = Literal["same", "frontier", "downstream", "added", "removed"]
#: Status -> what it says of a row, as a clause.
STATUSES: Final[dict[RowStatus, str]] = {
    "same": "the same in both runs",
    "frontier": "the same went in and something else came out: the difference begins here",
    "downstream": "what went in, or what it was made of, was different already",
    "added": "only the second run has it",
    "removed": "only the first run has it",
}


_NOTHING: Final = Totals()


@dataclass(frozen=True, slots=True)
class Row:
    """A span of the first run beside one of the second; one of them is None where there is no partner.

    `level` is its depth in the aligned tree. `changed` says what differs, `unknown` what cannot be told since
    a record lacks it. `usd`, `seconds` and `tokens` are b - a with everything below (a missing side counts as
    nothing), None where one side is unknown.
    """

    a: str | None
    b: str | None
    kind: str
    status: RowStatus
    level: int
    matched: Matched | None
    changed: tuple[Change, ...] = ()
    unknown: tuple[Change, ...] = ()
    usd: Decimal | None = None
    seconds: float | None = None
    tokens: int | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields; dollars as a decimal string."""
        out = {name: getattr(self, name) for name in Row.__slots__}
        return out | {"usd": _signed(self.usd), "changed": list(self.changed), "unknown": list(self.unknown)}


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of both runs, and whether they are the same by the rule `how` (None: only a judge can
    tell).
    """

    a: str | None
    b: str | None
    same: bool | None
    how: str

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {name: getattr(self, name) for name in Answers.__slots__}


@dataclass(frozen=True, slots=True)
class Diff:
    """Two runs beside each other: the first is mostly the bad one, the second the good one.

    `rows` are in the order of the aligned tree; each span of both runs stands in exactly one. `frontier` are
    those sub-calls, child runs and cells where the difference begins. `matching` says how responses were
    compared: normalised, or raw (byte for byte). `notes` are sentences on what else differs.
    """

    a_run: str
    b_run: str
    answers: Answers
    rows: tuple[Row, ...]
    frontier: tuple[Row, ...]
    matching: Literal["normalised", "raw"]
    plan: PlanDivergence | None = None
    hints: tuple[Hint, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[RowStatus, int]:
        """How many rows have each status."""
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in STATUSES}

    def to_json(self) -> dict[str, Any]:
        """The keys of `rlmscope diff`."""
        return {
            "a_run": self.a_run,
            "b_run": self.b_run,
            "answers": self.answers.to_json(),
            "matching": self.matching,
            "counts": self.counts,
            "frontier": [row.to_json() for row in self.frontier],
            "plan": None if self.plan is None else self.plan.to_json(),
            "hints": [hint.to_json() for hint in self.hints],
            "notes": list(self.notes),
            "rows": [row.to_json() for row in self.rows],
        }


def diff(a: RunView, b: RunView, how: str = "normalised") -> Diff:
    """Compare two runs; `how` their answers are compared (`traces.same_answer`); with "exact", responses are
    compared byte for byte too.

    An empty frontier of runs whose answers differ is looked for once more byte for byte; `matching` and
    `notes` say so. Raises InputError for a comparison that does not exist or that needs an expected text,
    RecordError when texts cannot be read; nothing for what a record may hold.
    """
    if how in LOOKED_FOR:
        raise InputError(
            f"{how} looks for an expected text, and no answer of two runs is one: compare them by "
            "normalised, exact, number, set or judge"
        )
    sides = Side(a), Side(b)
    answers = Answers(a.summary.answer, b.summary.answer, None, how)
    answers = Answers(answers.a, answers.b, same_answer(answers.a, answers.b, how), how)
    alignment = Alignment(*sides)
    table = _Table(alignment, raw=how == "exact")
    notes = list(_notes(sides))
    if how != "exact" and not table.frontier and answers.same is not True:
        closer = _Table(alignment, raw=True)
        if closer.frontier:
            table = closer
            notes.append(
                "No response differs in more than white space, letter case or a final full stop, so "
                "responses were compared byte for byte."
            )
    plan = plan_of(alignment, table.changes)
    found = hints(alignment) if plan is not None else ()
    matching: Literal["normalised", "raw"] = "raw" if table.raw else "normalised"
    rows, frontier = tuple(table.rows), tuple(table.frontier)
    return Diff(a.run_id, b.run_id, answers, rows, frontier, matching, plan, found, tuple(notes))


class _Table:
    """The rows of an alignment under one rule for equal responses."""

    def __init__(self, alignment: Alignment, *, raw: bool) -> None:
        self.raw = raw
        self._alignment = alignment
        self.changes = changes(alignment, raw=raw)
        self._began = roots_apart(alignment, self.changes)
        self._inside = self._with_a_cause_inside()
        self.rows = [self._row(*place) for place in _walk(alignment)]
        self.frontier = [row for row in self.rows if row.status == "frontier"]

    def _with_a_cause_inside(self) -> set[str]:
        """Spans of the first run in which something below began to differ: they are no beginning."""
        side = self._alignment.sides[0]
        began = (span_id for span_id in self.changes if self._is_beginning(span_id, frozenset()))
        return side.above(side.nodes[span_id].span for span_id in began)

    def _is_beginning(self, span_id: str, inside: set[str] | frozenset[str]) -> bool:
        span, change = self._alignment.sides[0].nodes[span_id].span, self.changes[span_id]
        if span.kind == "cell":
            return span_id in self._began
        if span.kind == "sub_call" or span.is_child_run:
            asked_same = not {"prompt"} & (change.differing | change.unknown)
            return asked_same and "response" in change.differing and span_id not in inside
        return False

    def _row(self, a: Node | None, b: Node | None, level: int) -> Row:
        deltas = _deltas(a, b, self._alignment.sides)
        if a is None or b is None:
            mine, theirs = (None if node is None else node.span.span_id for node in (a, b))
            kind = next((node.span.kind for node in (a, b) if node is not None), "")
            status: RowStatus = "added" if a is None else "removed"
            return Row(mine, theirs, kind, status, level, None, (), (), *deltas)
        one, other = a.span.span_id, b.span.span_id
        change, matched = self.changes[one], self._alignment.of_a[one][1]
        return Row(
            one, other, a.span.kind, self._status(one, change), level, matched,
            tuple(sorted(change.differing)), tuple(sorted(change.unknown)), *deltas,
        )  # fmt: skip

    def _status(self, span_id: str, change: Changes) -> RowStatus:
        if self._is_beginning(span_id, self._inside):
            return "frontier"
        return "downstream" if change.differing else "same"


def _walk(alignment: Alignment) -> list[tuple[Node | None, Node | None, int]]:
    """The aligned tree from the top down: what only the second run has follows what came before it there."""
    a, b = alignment.sides
    found: list[tuple[Node | None, Node | None, int]] = []
    waiting = [(*pair, 0) for pair in reversed(_merged(a.tops, b.tops, alignment))]
    while waiting:
        one, other, level = waiting.pop()
        found.append((one, other, level))
        below = _merged(children(one) if one else [], children(other) if other else [], alignment)
        waiting.extend((*pair, level + 1) for pair in reversed(below))
    return found


def _merged(a: list[Node], b: list[Node], alignment: Alignment) -> list[tuple[Node | None, Node | None]]:
    """Children of two spans as one list. A pair stands where it stands in the first run."""
    here = {node.span.span_id for node in a}
    after: dict[str | None, list[Node]] = {}
    last: str | None = None
    for node in b:
        known = alignment.of_b.get(node.span.span_id)
        if known is None:
            after.setdefault(last, []).append(node)
        elif known in here:
            last = known
    rows: list[tuple[Node | None, Node | None]] = [(None, node) for node in after.get(None, [])]
    nodes = alignment.sides[1].nodes
    for node in a:
        partner = alignment.of_a.get(node.span.span_id)
        rows.append((node, None if partner is None else nodes[partner[0]]))
        rows += [(None, added) for added in after.get(node.span.span_id, [])]
    return rows


def _deltas(
    a: Node | None, b: Node | None, sides: tuple[Side, Side]
) -> tuple[Decimal | None, float | None, int | None]:
    """Dollars, seconds and tokens of b less those of a."""
    one, other = (_NOTHING if node is None else node.totals for node in (a, b))
    costs = one.cost_usd, other.cost_usd
    usd = None if costs[0] is None or costs[1] is None else costs[1] - costs[0]
    both = zip((a, b), sides, strict=True)
    times = [0.0 if node is None else side.view.seconds_of(node.span) for node, side in both]
    seconds = None if times[0] is None or times[1] is None else times[1] - times[0]
    if (a and a.span.span_id in sides[0].untold) or (b and b.span.span_id in sides[1].untold):
        return usd, seconds, None
    spent, before = other.spend, one.spend
    return usd, seconds, spent.input + spent.output - before.input - before.output


def _notes(sides: tuple[Side, Side]) -> list[str]:
    one, other = (side.view.summary for side in sides)
    said = []
    imported = one.imported_from is not None or other.imported_from is not None
    asked, read = (one.question, other.question), (one.corpus_id, other.corpus_id)
    if imported and one.question is not None and other.question is not None:
        asked = normalise(one.question), normalise(other.question)  # engines wrap and trim them
    for values, apart, alike in (
        (asked, "The runs were asked different questions.", "were asked the same question"),
        (read, "The runs worked on different corpora.", "worked on the same corpus"),
    ):
        if imported and None in values:
            said.append(f"Whether both runs {alike} is unknown: an imported record does not say.")
        elif values[0] != values[1]:
            said.append(apart)
    tried = [any(span.kind == "attempt" for span in side.view.spans) for side in sides]
    if imported and True in tried and False in tried:
        said.append("One record holds no attempts of calls: those of the other run have no partner.")
    for name, run in (("first", one), ("second", other)):
        if run.problems or not run.complete:
            said.append(f"The record of the {name} run is not complete: what it lacks counts as unknown.")
    return said


def _signed(amount: Decimal | None) -> str | None:
    text = money_json(amount)
    return "0" if text == "-0" else text
