"""Whether the suspects of one run alone name the call that broke it: seeded single faults in trees of about
200 calls, by kind of fault and condition.

A tree counts as found when the faulty call is among the first three suspects. Kinds that leave no trace in
one run ("present": a wrong number that stands in the prompt too) are measured beside the others.

    python -m tests.bench.single_run [TRIALS] [KIND ...]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from tests.support.tree_models import Kind
from tests.support.trees import CONDITIONS, Condition, plan, planted, record
from traces.home import Home
from traces.reading import load_run
from traces.suspects import suspects

TOP: Final = 3
DETECTABLE: Final[tuple[Kind, ...]] = ("digit", "empty", "truncated", "refused", "format")
TARGET: Final = 0.8  # of the trees of each detectable kind
RUN: Final = "20260101T000000-00005e1f"


@dataclass
class Found:
    """What came of the trees of one kind and condition: the place of the culprit among the suspects, from 0;
    None where it is no suspect. `suspects` is how many there were in all trees.
    """

    kind: Kind
    condition: Condition
    places: list[int | None] = field(default_factory=list)
    suspects: int = 0
    cpu: float = 0.0

    @property
    def share(self) -> float:
        """The share of trees whose culprit is among the first."""
        return sum(place is not None and place < TOP for place in self.places) / len(self.places)

    def line(self) -> str:
        """One row of the table."""
        missed = sum(place is None for place in self.places)
        trees = len(self.places)
        return (
            f"{self.kind:<10} {self.condition:<11} {trees:>5} {100 * self.share:>7.1f} % {missed:>7} "
            f"{self.suspects / trees:>9.1f} {1000 * self.cpu / trees:>7.1f} ms"
        )


def measured(kind: Kind, condition: Condition, trials: int, *, size: int | None = None) -> Found:
    """So many trees of one kind and condition, each with one faulty sub-call."""
    found = Found(kind, condition)
    for seed in range(trials):
        tree = plan(seed, condition, 1, cell=False, kind=kind, size=size)
        with tempfile.TemporaryDirectory() as folder:
            home = Home.resolve(Path(folder))
            record(home, tree, "bad", RUN)
            view = load_run(home, RUN)
            (culprit,) = planted(view, tree)
            began = time.process_time()
            listed = list(suspects(view))
            found.cpu += time.process_time() - began
        found.suspects += len(listed)
        found.places.append(listed.index(culprit) if culprit in listed else None)
    return found


def rows(trials: int, kinds: Sequence[Kind]) -> Iterator[Found]:
    """Every kind under every condition."""
    for kind in kinds:
        for condition in CONDITIONS:
            yield measured(kind, condition, trials)


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 when a detectable kind is found too seldom."""
    trials = int(arguments[0]) if arguments else 20
    kinds = [kind for kind in get_args(Kind) if kind in arguments[1:] or len(arguments) < 2]
    head = f"{'fault':<10} {'condition':<11} {'trees':>5} {f'top {TOP}':>9} {'unseen':>7}"
    print(f"{head} {'suspects':>9} {'CPU':>10}")
    low = False
    for found in rows(trials, kinds):
        print(found.line(), flush=True)
        low |= found.kind in DETECTABLE and found.share < TARGET
    print(f"Target: at least {100 * TARGET:.0f} % for {', '.join(DETECTABLE)}: {'missed' if low else 'met'}.")
    return int(low)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
