"""Several strategies over one question: the runs, one after another, and what came of them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import InputError
from rlm_core.options import STRATEGIES, Strategy
from traces.opinions import NORMALISED, check_how
from traces.refused import refused_words
from traces.same_answer import explain
from traces.strategies import RLM, StrategyRow, strategy_rows
from ui.common import say
from ui.figures import count, duration, spent, total_tokens
from ui.models_config import DEMO_WORDS
from ui.render import table
from ui.visible import line

if TYPE_CHECKING:
    from traces.home import Home
    from ui.ask_outcome import Outcome
    from ui.ask_run import Order

_RIGHT: Final = {True: "yes", False: "no", None: "-"}
_HEAD: Final = ("strategy", "answer", "root + sub", "tokens", "cost", "time", "run")
_FIGURES: Final = frozenset(range(2, 6))  # columns


def checked_strategies(text: str | None) -> tuple[Strategy, ...]:
    """The strategies of a list with commas, in its order; all without one. Raises InputError for a name that
    is none, or is there twice."""
    if text is None:
        return STRATEGIES
    names = [name.strip() for name in text.split(",")]
    known = {str(name): name for name in STRATEGIES}
    for name in names:
        if name not in known:
            raise InputError(f"there is no strategy {name[:40]!r}; there are {', '.join(STRATEGIES)}")
        if names.count(name) > 1:
            raise InputError(f"the strategy {name} is named twice")
    return tuple(known[name] for name in names)


def checked_match(how: str | None, expected: str | None) -> str:
    """How answers are compared. Raises InputError where nothing is expected, and for a judge: no model is
    asked beside the strategies."""
    if how is not None and expected is None:
        raise InputError("--match says how answers are compared with the right one: give --expected too")
    if how == "judge":
        raise InputError("compare-strategies asks no judge: give another --match")
    check_how(how or NORMALISED, expected)
    return how or NORMALISED


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of the strategies that were asked for; `outcomes` are fewer when they were cancelled."""

    outcomes: tuple[Outcome, ...]
    rows: tuple[StrategyRow, ...]
    wanted: int
    expected: str | None
    how: str

    @property
    def exit_code(self) -> int:
        """0 when every strategy ended, with an answer, at a limit, or since the corpus does not fit."""
        return int(self._cut_short or bool(self._failed))

    @property
    def failure(self) -> str:
        """Why it is a failure, as one sentence."""
        if self._cut_short:
            within = self.outcomes[-1].answer.stop_reason == "cancelled"
            return f"cancelled {'in' if within else 'after'} strategy {len(self.outcomes)} of {self.wanted}"
        return f"no answer of {self._failed[0].strategy}: {self._failed[0].note or 'it ended with an error'}"

    @property
    def _cut_short(self) -> bool:
        return len(self.outcomes) < self.wanted or self.outcomes[-1].answer.stop_reason == "cancelled"

    @property
    def _failed(self) -> list[StrategyRow]:
        return [row for row in self.rows if row.stop_reason == "error" and row.fits is not False]

    @property
    def total_cost_usd(self) -> Decimal | None:
        """Dollars of all runs, None when those of any are unknown."""
        known = [row.cost_usd for row in self.rows if row.cost_usd is not None]
        return sum(known, Decimal(0)) if len(known) == len(self.rows) else None

    def document(self) -> dict[str, Any]:
        """The JSON document of `rlmscope compare-strategies`."""
        first = self.outcomes[0]
        return {
            "question": first.question,
            "corpus_id": first.corpus_id,
            "demo": first.models.demo,
            "root_model": first.models.root,
            "sub_model": first.models.sub,
            "expected": self.expected,
            "match": None if self.expected is None else self.how,
            "rows": [row.to_json() for row in self.rows],
            "total_cost_usd": self.total_cost_usd,
            "problems": first.problems,
            "notices": list(dict.fromkeys(notice for one in self.outcomes for notice in one.notices)),
        }

    def lines(self, home: str) -> Iterator[str]:
        """For people: a line for each strategy, why there is no answer, where to look further."""
        first, judged = self.outcomes[0], self.expected is not None
        head = [*_HEAD, *(["right"] if judged else [])]
        rows = [[*_cells(row), *([_RIGHT[row.correct]] if judged else [])] for row in self.rows]
        yield from table(head, rows, right=_FIGURES, whole=frozenset(range(len(_HEAD) - 1, len(head))))
        yield ""
        yield from (line(f"{row.strategy}: {row.note}") for row in self.rows if row.note)
        if judged:
            yield line(f"right is: {self.expected} ({explain(self.how)})")
        if any(row.demo for row in self.rows):
            yield f"{DEMO_WORDS}: its answers say nothing about a strategy"
        elif any(row.scripted for row in self.rows):
            yield "A script answered for the models: its answers say nothing about a strategy"
        yield f"models: root {line(first.models.root)}, sub {line(first.models.sub)}"
        yield f"look deeper: rlmscope show RUN{home}"


def _completed(row: StrategyRow, outcome: Outcome) -> StrategyRow:
    """A run that ended before its first span has no more in its record than that it was there."""
    if row.stop_reason is not None:
        return row
    answer = outcome.answer
    return replace(row, strategy=outcome.strategy, stop_reason=answer.stop_reason, note=answer.error)


def _cells(row: StrategyRow) -> tuple[str, ...]:
    answer = row.answer
    if answer is None:
        answer = "(does not fit)" if row.fits is False else f"(none: {row.stop_reason or 'unknown'})"
    return (
        row.strategy,
        f"{answer} (forced)" if row.forced else answer,
        " + ".join(map(count, row.asked)) + refused_words(row.refused_sub_calls),
        total_tokens(row.tokens, row.untold_calls),
        spent(row.cost_usd, row.cost_status, row.known_usd),
        duration(row.seconds),
        row.run_id,
    )


def compare(
    orders: Sequence[Order], expected: str | None, how: str, home: Home, environ: Mapping[str, str]
) -> Comparison:
    """Run orders that differ in their strategy alone, over a corpus that is read once.

    A run that is cancelled is the last. Raises InputError for what cannot work.
    """
    from ui.ask_run import run_in_turn

    names = [RLM if order.options is None else order.options.strategy for order in orders]
    titles = [f"strategy {number} of {len(names)}: {name}" for number, name in enumerate(names, 1)]
    outcomes = run_in_turn(orders, titles, home, environ)
    run_ids = [outcome.answer.run_id for outcome in outcomes]
    found = strategy_rows(home, run_ids, expected=expected, how=how, warn=say)
    rows = [_completed(row, outcome) for row, outcome in zip(found, outcomes, strict=True)]
    return Comparison(tuple(outcomes), tuple(rows), len(orders), expected, how)
