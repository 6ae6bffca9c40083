"""Runs that ask the same: the same question over the same corpus, and how far their answers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from rlm_core.normalise import normalise
from traces.rows import RunSummary


@dataclass(frozen=True, slots=True)
class Question:
    """Runs of one question over one corpus, in the order in which they were given; at least one.

    `answers` are the different answers, by the default rule for "the same answer", with how many runs gave
    each, the most frequent first; None stands for no answer.
    """

    runs: tuple[RunSummary, ...]
    answers: tuple[tuple[str | None, int], ...]

    @property
    def known_usd(self) -> tuple[Decimal, Decimal] | None:
        """The least and the largest cost among the runs whose cost is known; None when it is of none."""
        costs = [run.cost_usd for run in self.runs if run.cost_usd is not None]
        return (min(costs), max(costs)) if costs else None

    @property
    def unknown_costs(self) -> int:
        """How many of the runs have a cost that is not known."""
        return sum(run.cost_usd is None for run in self.runs)


def asked(run: RunSummary) -> tuple[str, str]:
    """What a run asks, equal for runs that ask the same; one whose question is not recorded asks its own."""
    if run.question is None:
        return "", run.run_id
    return normalise(run.question), run.corpus_id or ""


def questions(runs: Iterable[RunSummary]) -> list[Question]:
    """The runs by what they ask, in the order in which each question is met first."""
    found: dict[tuple[str, str], list[RunSummary]] = {}
    for run in runs:
        found.setdefault(asked(run), []).append(run)
    return [Question(tuple(group), _answers(group)) for group in found.values()]


def _answers(runs: Sequence[RunSummary]) -> tuple[tuple[str | None, int], ...]:
    counts: Counter[str | None] = Counter()
    wording: dict[str | None, str | None] = {}
    for run in runs:
        form = None if run.answer is None else normalise(run.answer)
        counts[form] += 1
        wording.setdefault(form, run.answer)
    return tuple((wording[form], count) for form, count in counts.most_common())
