"""Diagnosing a run without a good one: suspects are tried one by one, with texts that could be theirs.

First the texts that rules propose (`traces.proposals`), the likeliest suspect first; then, as far as calls to
a model are allowed, what the sub-model replies to their prompts today; then the likeliest text of each
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from traces.candidates import Candidate, asked_anew, from_proposals
from traces.culprits import Found, OutOfBudget
from traces.diagnosis import Diagnosis
from traces.diagnosis_words import one_of_words, suspects_words
from traces.finding import number_of
from traces.suspects import unseen_words
from traces.trial import Trial

if TYPE_CHECKING:
    from traces.diagnose import Work

_NO_SUSPECT: Final = (
    "No sub-call that looks wrong by itself was found, and no good run was given to compare with."
)


def diagnose_alone(work: Work, repeat: int) -> Diagnosis:
    """The verdict on a run from its own record; a root that has to be asked again is asked `repeat` times."""
    work.warnings.append(unseen_words(len(work.suspected)))
    if not work.suspected:
        return work.result("undecided", _NO_SUSPECT)
    work.stage("looking for texts that suspects could have said")
    proposed = from_proposals(work.view, work.suspected, work.target)
    work.candidates = tuple({one.span_id: one for one in reversed(proposed)}.values())[::-1]
    if proposed:
        texts, calls = number_of(len(proposed), "text"), number_of(len(work.candidates), "suspect")
        work.stage(f"trying {texts} for {calls}, one by one")
    alone = _Alone(work)
    with suppress(OutOfBudget):
        alone.each(proposed)
        if not alone.fixed:
            alone.each(_asked_anew(work))
    if alone.fixed:
        if len(alone.fixed) > 1:  # any label that is counted adds one: that accuses none of them
            return work.result("suspects", one_of_words(work.view, alone.fixed))
        found = Found((*alone.fixed.values(),), "minimal", monotone=True, tests=len(alone.tried), unknown=0)
        return work.concluded(found, work.asked_again(found, repeat), alone.untried(proposed))
    with suppress(OutOfBudget):
        if work.target is not None and len(work.candidates) > 1:
            together = sorted(work.candidates, key=lambda one: work.view.by_id[one.span_id].seq)
            work.stage("trying the likeliest text of every suspect together")
            joint = work.play(together)
            if joint.outcome == "fixed":
                return work.found(together, joint, repeat)
    return work.result("suspects", suspects_words(work.view, work.suspected, alone.tried, work.target))


@dataclass
class _Alone:
    """Texts tried in the place of one suspect at a time."""

    work: Work
    tried: list[tuple[Candidate, Trial]] = field(default_factory=list)
    fixed: dict[str, Candidate] = field(default_factory=dict)

    def each(self, candidates: Iterable[Candidate]) -> None:
        """Try each by itself; a suspect for which a text was found is left alone. Raises OutOfBudget."""
        for one in candidates:
            if one.span_id not in self.fixed:
                self.tried.append((one, self.work.play([one])))
                if self.work.right_now(self.tried[-1][1]):
                    self.fixed[one.span_id] = one

    def untried(self, proposed: Iterable[Candidate]) -> int:
        """How many texts the budget left untried."""
        done = {one.patch for one, _ in self.tried}
        return sum(one.patch not in done and one.span_id not in self.fixed for one in proposed)


def _asked_anew(work: Work) -> Iterator[Candidate]:
    """Suspects with what the sub-model says today, one call each."""
    if work.player is None or work.budget.live_calls <= work.player.spent.live_calls:
        return
    work.stage("asking the sub-model again for what suspects were asked")
    for one in asked_anew(work.view, work.suspected, work.player.ask_again):
        work.stop_if_wished()
        if all(one.span_id != known.span_id for known in work.candidates):
            work.candidates += (one,)
        yield one
