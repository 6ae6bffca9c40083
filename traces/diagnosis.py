"""What a diagnosis says: verdict, culprits, how far it is proven, what it rests on and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from traces.rows import money_json
from traces.trial import Budget, Difference, Mode, Outcome, Replayability, Spent, Target, Trial

Verdict = Literal[
    "sub_call", "cell", "sub_call_and_cell", "plan_diverged", "suspects", "undecided", "not_replayable",
    "seed_dependent", "right",
]  # fmt: skip
Origin = Literal["good run", "sibling", "source", "expected", "user", "re-ask"]
#: Verdict -> what it means, as a sentence.
VERDICTS: Final[dict[Verdict, str]] = {
    "sub_call": "Sub-calls broke the answer: with other replies of exactly these, it comes out right.",
    "cell": "Code broke the answer: with other code in exactly these cells, it comes out right.",
    "sub_call_and_cell": "Sub-calls and code broke the answer together.",
    "plan_diverged": "The root wrote another plan; single calls of the two runs cannot be compared.",
    "suspects": "Nothing is proven; these sub-calls look wrong by themselves.",
    "undecided": "It cannot be decided within the budget.",
    "not_replayable": "A replay without any patch does not come out as recorded, so replays prove nothing.",
    "seed_dependent": "The answer depends on hash or random seeds, so a replay proves nothing.",
    "right": "The answer is the one that it should be; there is nothing to find.",
}


@dataclass(frozen=True, slots=True)
class Culprit:
    """A member of a minimal set whose joint patch makes the answer right; `patch` is what it should have said
    (or the code a cell should have had), `origin` where that text is from.
    """

    span_id: str
    kind: Literal["sub_call", "run", "cell"]
    patch: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result. `words` is the verdict in a sentence or two, for a person who sees nothing else.

    `outcome` is that of the joint patch of the culprits. `proven`: minimal and decided by replays that
    reproduce (never with a judge, never by asking the root again). `candidates` are the spans that were
    considered, in the order in which they were tried; `suspects` and `findings` are as JSON objects.
    """

    diagnosis_id: str
    run_id: str
    verdict: Verdict
    words: str
    outcome: Outcome
    mode: Mode
    good_run_id: str | None = None
    target: Target | None = None
    proven: bool = False
    culprits: tuple[Culprit, ...] = ()
    candidates: tuple[str, ...] = ()
    replayability: Replayability | None = None
    reached: Difference | None = None
    assumed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    suspects: tuple[dict[str, Any], ...] = ()
    findings: tuple[dict[str, Any], ...] = ()
    trials: tuple[Trial, ...] = ()
    budget: Budget = Budget()
    spent: Spent = Spent()
    asked_again: tuple[Outcome, ...] = ()  # of the joint patch, each time the root was asked again
    stopped: str | None = None  # why it ended early: cancelled, or which part of the budget was used up

    def to_json(self) -> dict[str, Any]:
        """The keys of `rlmscope diagnose` and more."""
        target = self.target
        return {
            "diagnosis_id": self.diagnosis_id,
            "run_id": self.run_id,
            "good_run_id": self.good_run_id,
            "expected": None if target is None else target.text,
            "expected_from": None if target is None else target.origin,
            "match": None if target is None else target.how,
            "verdict": self.verdict,
            "words": self.words,
            "proven": self.proven,
            "outcome": self.outcome,
            "mode": self.mode,
            "culprits": [culprit.span_id for culprit in self.culprits],
            "patches": [
                {"span_id": c.span_id, "kind": c.kind, "text": c.patch, "origin": c.origin}
                for c in self.culprits
            ],
            "candidates": list(self.candidates),
            "replayability": None if self.replayability is None else self.replayability.to_json(),
            "asked_again": list(self.asked_again),
            "reached": None if self.reached is None else self.reached.to_json(),
            "assumed": list(self.assumed),
            "warnings": list(self.warnings),
            "suspects": list(self.suspects),
            "findings": list(self.findings),
            "trials": [trial.to_json() for trial in self.trials],
            "replays": self.spent.replays,
            "live_calls": self.spent.live_calls,
            "cost_usd": money_json(self.spent.usd),
            "budget": {
                "replays": self.budget.replays,
                "live_calls": self.budget.live_calls,
                "usd": None if self.budget.usd is None else money_json(Decimal(self.budget.usd)),
            },
            "stopped": self.stopped,
        }
