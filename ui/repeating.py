"""One question asked several times: the runs, how far they agree, and the answer that most of them gave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from traces.agreement import Agreement, agreement
from ui.ask_outcome import Outcome
from ui.figures import counted, spent
from ui.visible import line

_ANSWER_CHARS: Final = 60  # of a group, in its line


@dataclass(frozen=True, slots=True)
class Repeated:
    """What came of `wanted` runs; `outcomes` are fewer when they were cancelled. `how` compares answers."""

    outcomes: tuple[Outcome, ...]
    wanted: int
    how: str

    @property
    def agreement(self) -> Agreement:
        """How far the answers agree."""
        return agreement([(one.run_id, one.answer.text) for one in self.outcomes], self.how)

    @property
    def chosen(self) -> Outcome:
        """The first run of the largest group; without any answer the first run."""
        groups = self.agreement.groups
        first = groups[0].run_ids[0] if groups else self.outcomes[0].answer.run_id
        return next(one for one in self.outcomes if one.run_id == first)

    @property
    def run_id(self) -> str:
        """The run that is chosen."""
        return self.chosen.run_id

    @property
    def total_cost_usd(self) -> Decimal | None:
        """Dollars of all runs, None when those of any are unknown."""
        amounts = [one.answer.cost_usd for one in self.outcomes]
        known = [amount for amount in amounts if amount is not None]
        return sum(known, Decimal(0)) if len(known) == len(amounts) else None

    @property
    def exit_code(self) -> int:
        """0 when all runs took place and the chosen one has an answer, else 1."""
        return int(self._cut_short or self.chosen.exit_code)

    @property
    def failure(self) -> str:
        """Why it is a failure, as one sentence."""
        if self._cut_short:
            within = self.outcomes[-1].answer.stop_reason == "cancelled"
            return f"cancelled {'in' if within else 'after'} run {len(self.outcomes)} of {self.wanted}"
        return self.chosen.failure

    @property
    def _cut_short(self) -> bool:
        return len(self.outcomes) < self.wanted or self.outcomes[-1].answer.stop_reason == "cancelled"

    def document(self) -> dict[str, Any]:
        """The JSON document of `rlmscope ask --repeat`: that of the chosen run, and what is true of all."""
        names = ("run_id", "answer", "stop_reason", "forced", "cost_usd")
        runs = [{name: document[name] for name in names} for document in map(Outcome.document, self.outcomes)]
        agreed = self.agreement.to_json()
        return {
            **self.chosen.document(),
            "runs": runs,
            "agreement": agreed,
            "total_cost_usd": self.total_cost_usd,
        }

    def lines(self, look: str) -> Iterator[str]:
        """For people: the chosen run as if it were alone, then a line for each answer."""
        yield from self.chosen.lines(look)
        agreed = self.agreement
        most = agreed.groups[0].count if agreed.groups else 0
        yield ""
        yield f"{most} of {counted(agreed.runs, 'run')} agree ({agreed.share:.0%}, compared as {self.how})"
        for group in agreed.groups:
            forced = sum(one.answer.forced for one in self.outcomes if one.run_id in group.run_ids)
            words = _cut(group.answer) + (f" ({forced} forced)" if forced else "")
            yield "  " + line(f"{group.count} x {words} · {', '.join(group.run_ids)}")
        if agreed.unanswered:
            silent = [one.run_id for one in self.outcomes if one.answer.text is None]
            yield f"  {agreed.unanswered} x no answer · {', '.join(silent)}"
        known = sum((one.answer.known_usd for one in self.outcomes), Decimal(0))
        status = {one.answer.cost_status for one in self.outcomes}
        worst = status.pop() if len(status) == 1 else "partial" if self.total_cost_usd is None else "priced"
        yield f"all runs together: cost {spent(self.total_cost_usd, worst, known)}"


def _cut(answer: str) -> str:
    """An answer on one line."""
    words = " ".join(answer.split())
    return words if len(words) <= _ANSWER_CHARS else words[: _ANSWER_CHARS - 3] + "..."
