"""The rows of two aligned runs in words: how a row differs, what the differences come to. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ui.figures import counted
from ui.web.notices import Colour

if TYPE_CHECKING:
    from traces.diff import Diff, Row
    from traces.diff_plan import PlanDivergence

#: Kind -> its title in the choice of kinds, in the order of the choice.
KINDS: Final = {
    "sub_call": "Sub-calls", "cell": "Cells", "run": "Runs", "root_call": "Root calls",
    "iteration": "Iterations", "batch": "Batches", "attempt": "Attempts",
}  # fmt: skip
_OWN: Final = ("sub_call", "cell", "run")  # kinds that the differences are counted in
TONES: Final = {"same": "ok", "frontier": "bad", "downstream": "warn", "added": "live", "removed": "live"}
_WORDS: Final = {"same": "same", "added": "only in B", "removed": "only in A"}
_CHANGED: Final = {
    "prompt": "other prompt", "code": "other code", "response": "other reply", "output": "other output",
    "status": "other ending",
}  # fmt: skip
_OF_RUNS: Final = {"prompt": "other question", "response": "other answer"}
_MEANING: Final = {
    "same": "Both runs have this, and it is the same.",
    "added": "Only run B has this.",
    "removed": "Only run A has this.",
    "downstream": "What went in, or what it was made of, differs already: this comes of another difference.",
}
_PARTED: Final = {
    "cell": "The root wrote other code here, after the same inputs: here the runs part.",
    "run": "Both child runs were given the same and answered differently: here the runs part.",
}
_ASKED_THE_SAME: Final = "The prompt is the same and the reply is not: here the runs part."
_MATCHED: Final = {
    "code": "found by its code",
    "prompt": "found by its prompt",
    "template and place": "found by the form of its prompt and what it reads",
    "template and order": "found by the form of its prompt and its order",
    "similarity": "found by how alike the texts are",
    "place": "found by its place",
}


def word(row: Row) -> str:
    """How a row differs, in two or three words."""
    if is_hint(row):
        return "same passages"
    if row.status in _WORDS:
        return _WORDS[row.status]
    changed = next((name for name in _CHANGED if name in row.changed), "")
    if row.kind == "run" and changed in _OF_RUNS:
        return _OF_RUNS[changed]
    return _CHANGED.get(changed, "differs")


def meaning(row: Row) -> str:
    """What the status of a row says, as a sentence."""
    if is_hint(row):
        return (
            "No partners: both read the same passages, so they may do the same work. Nothing more is known."
        )
    if row.status == "frontier":
        return _PARTED.get(row.kind, _ASKED_THE_SAME)
    return _MEANING.get(row.status, "What this is, is not known.")


def is_hint(row: Row) -> bool:
    """Whether a row is none of the aligned trees: a call of A beside one of B that is not its partner."""
    return row.status == "removed" and row.b is not None


def matched(row: Row) -> str:
    """How the two sides of a row were found to belong together, as a clause; "" where there is one side."""
    return _MATCHED.get(row.matched or "", "")


def is_difference(row: Row) -> bool:
    """Whether a row is one to stop at; attempts are told by their call."""
    return row.status != "same" and row.kind != "attempt"


def tally(diff: Diff) -> Iterator[tuple[str, Colour]]:
    """What the differences come to, where the runs part first: (words, colour)."""
    parted = Counter(row.kind for row in diff.frontier)
    after = Counter(word(row) for row in diff.rows if row.status == "downstream" and row.kind in _OWN)
    only = Counter(row.status for row in diff.rows if row.kind in _OWN)
    same = sum(row.status == "same" and row.kind == "sub_call" for row in diff.rows)
    found: tuple[tuple[int, str, Colour], ...] = (
        (parted["sub_call"], f"{counted(parted['sub_call'], 'sub-call')} replied differently", "red"),
        (parted["run"], f"{counted(parted['run'], 'child run')} answered differently", "red"),
        (parted["cell"], f"{counted(parted['cell'], 'cell')} with other code", "red"),
        (after["other prompt"], f"{counted(after['other prompt'], 'prompt')} changed after that", "orange"),
        (after["other code"], f"{counted(after['other code'], 'cell')} with other code after that", "orange"),
        (after["other output"], f"{counted(after['other output'], 'cell')} with other output", "orange"),
        (only["removed"], f"{only['removed']:,} only in A", "blue"),
        (only["added"], f"{only['added']:,} only in B", "blue"),
        (same, f"{counted(same, 'sub-call')} the same", "green"),
    )
    return ((words, colour) for number, words, colour in found if number)


def plan_words(plan: PlanDivergence) -> str:
    """Where the roots wrote other code, as sentences."""
    place = "" if plan.iteration is None else f" in iteration {plan.iteration}"
    place += "" if plan.cell is None else f", cell {plan.cell}"
    why = "though it had been shown the same" if plan.shown_same else "after it had been shown something else"
    what = "other texts or numbers into the same code" if plan.literals else "other code"
    return f"The root wrote {what}{place}, {why}."


def lacks_partners(diff: Diff) -> bool:
    """Whether the code is so different that calls of one run have no partner in the other."""
    return diff.plan is not None and any(
        row.status in ("added", "removed") and row.kind in ("sub_call", "run") for row in diff.rows
    )
