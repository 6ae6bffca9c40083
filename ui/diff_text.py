"""A comparison of two runs as text for a terminal: answers, frontier, where the plans parted, the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from rlm_core import semconv as sc
from traces.align_keys import text
from traces.diff import STATUSES, Diff, Row
from traces.diff_plan import Hint, PlanDivergence
from traces.same_answer import explain
from ui.figures import counted
from ui.render import table, terminal_width
from ui.visible import block, fit, line

if TYPE_CHECKING:
    from traces.reading import RunView, SpanRow

SHOWN: Final = 10  # of a list, unless all is asked for
CODE_LINES: Final = 40  # of a code diff, unless all is asked for
_ANSWER_SHOWN: Final = 500
_CALLED: Final = {"sub_call": "sub-call", "run": "child run", "cell": "cell"}
_SAME: Final = {
    True: "The answers are the same",
    False: "The answers differ",
    None: "Only a judge could tell whether the answers are the same",
}


def diff_text(found: Diff, a: RunView, b: RunView, *, everything: bool) -> Iterator[str]:
    """The lines of `rlmscope diff`, safe to print; `everything` cuts no list and no code."""
    for name, view, answer in (("A", a, found.answers.a), ("B", b, found.answers.b)):
        said = "no answer" if answer is None else line(answer[:_ANSWER_SHOWN])
        yield f"{name} {view.run_id}: {said}"
    yield f"{_SAME[found.answers.same]} ({explain(found.answers.how)})."
    if a.run_id == b.run_id:
        yield "A and B are the same run."
    if b.summary.replay_of == a.run_id:
        yield "B is a replay of A."
    yield from found.notes
    yield ""
    yield from _frontier(found, a, b, None if everything else SHOWN)
    if found.plan is not None:
        yield ""
        yield from _plan(found.plan, None if everything else CODE_LINES)
    if found.hints:
        yield ""
        yield from _hints(found.hints, None if everything else SHOWN)
    yield ""
    yield from _counts(found)


def _frontier(found: Diff, a: RunView, b: RunView, most: int | None) -> Iterator[str]:
    if not found.frontier:
        yield "No difference begins in a sub-call, child run or cell that both runs have."
        return
    kinds = Counter(row.kind for row in found.frontier)
    listed = ", ".join(counted(kinds[kind], words) for kind, words in _CALLED.items() if kinds[kind])
    yield f"The difference begins in {listed}: what went in is the same in both runs, what came out is not."
    for row in found.frontier[:most]:
        yield from _begins(row, a, b)
    yield from _more(len(found.frontier), most)


def _begins(row: Row, a: RunView, b: RunView) -> Iterator[str]:
    """One place where the difference begins: where it is, what went in, what came out in each run."""
    spans = a.by_id[row.a or ""], b.by_id[row.b or ""]
    place = [_CALLED.get(row.kind, row.kind)]
    if row.kind == "cell":
        place = []
    if spans[0].cell is not None:
        place.append(f"cell {spans[0].cell}")
    if spans[0].call_index is not None:
        place.append(f"call {spans[0].call_index}")
    yield f"{spans[0].span_id}  {', '.join(place)}  (B {spans[1].span_id})"
    room = terminal_width() - 9
    if row.kind == "sub_call":
        prompt = a.payload(text(spans[0], sc.PROMPT + ".sha256") or "")
        yield f"  asked  {_ends('not recorded' if prompt is None else prompt, room)}"
    for name, span in zip("AB", spans, strict=True):
        yield f"  {name}      {fit(line(_said(span)), room)}"


def _ends(whole: str, room: int) -> str:
    """A long text by its beginning and end: prompts of one batch differ in the end."""
    half = (room - 3) // 2
    if len(whole) <= room:
        return fit(line(whole), room)
    return f"{fit(line(whole[:half]), half)} … {fit(line(whole[-half:]), half)}"


def _said(span: SpanRow) -> str:
    """What came out of a call, child run or cell, in a line."""
    if span.status != "ok":
        why = text(span, sc.ERROR_MESSAGE) or span.error_type
        return f"{span.status}: {why}" if why else span.status
    if span.kind == "sub_call" and span.response_chars == 0:
        return "(an empty text)"
    key = {"run": sc.ANSWER, "cell": sc.CODE}.get(span.kind, sc.RESPONSE)
    return text(span, key + ".preview") or "(not recorded)"


def _plan(plan: PlanDivergence, most: int | None) -> Iterator[str]:
    where = "unknown" if plan.iteration is None else str(plan.iteration)
    cell = "" if plan.cell is None else f", cell {plan.cell}"
    why = (
        "both roots had been shown the same until then"
        if plan.shown_same
        else "what the roots had been shown until then was not the same"
    )
    yield f"The roots wrote other code from iteration {where}{cell} on; {why}."
    if plan.a is None or plan.b is None:
        name = "A" if plan.b is None else "B"
        yield f"Only run {name} has this cell:"
    elif plan.literals:
        yield "Only texts and numbers in the code differ:"
    lines = list(_code_diff(plan))
    yield from lines[:most]
    if most is not None and len(lines) > most:
        yield f"... {counted(len(lines) - most, 'more line')}; --all shows them"


def _code_diff(plan: PlanDivergence) -> Iterator[str]:
    texts = plan.a_code, plan.b_code
    if any(code is None and cell is not None for code, cell in zip(texts, (plan.a, plan.b), strict=True)):
        yield "(the code is not in the record)"
        return
    one, other = ((code or "").splitlines() for code in texts)
    names = [f"{name} {cell or 'no cell'}" for name, cell in zip("AB", (plan.a, plan.b), strict=True)]
    yield from (block(one_line) for one_line in unified_diff(one, other, names[0], names[1], lineterm=""))


def _hints(hints: Sequence[Hint], most: int | None) -> Iterator[str]:
    yield (
        f"{counted(len(hints), 'call')} of A without a partner read passages that one of B without a partner "
        "read too (a hint, no comparison):"
    )
    for hint in hints[:most]:
        yield f"  {hint.a}  {hint.b}  {counted(hint.shared, 'byte')} shared, {hint.share:.0%} of the smaller"
    yield from _more(len(hints), most)


def _more(count: int, most: int | None) -> Iterator[str]:
    if most is not None and count > most:
        yield f"... and {count - most:,} more; --all lists them"


def _counts(found: Diff) -> Iterator[str]:
    """How many spans of each kind have each status."""
    counts = Counter((row.kind, row.status) for row in found.rows)
    kinds = [kind for kind in sc.KINDS if any(row.kind == kind for row in found.rows)]
    rows = [(kind, *(f"{counts[kind, status]:,}" for status in STATUSES)) for kind in kinds]
    yield from table(("kind", *STATUSES), rows, right=frozenset(range(1, len(STATUSES) + 1)))
