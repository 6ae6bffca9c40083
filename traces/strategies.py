"""One question answered in several ways: a row for each run, as its record tells it, to be put side by side.

What a demo model or a script answered says nothing about a strategy: such rows are marked, and whether their
answer is the expected one is never told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.models import is_demo
from traces.facts import Facts
from traces.home import Home
from traces.imported import is_foreign
from traces.opinions import NORMALISED
from traces.refused import refused
from traces.rows import RunSummary, Tokens, money_json
from traces.runs import Warn, load_run
from traces.same_answer import same_answer
from traces.view import RunView

RLM: Final = "rlm"  # of records that were made before there were others
_LIMITS: Final = ("max_iterations", "budget", "timeout")  # stop reasons of the run's own making


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """A run beside others over the same question.

    `fits` says of a run that shows its root the whole corpus at once whether that was possible (None: it does
    not try, or it ended before that was known). `note` is why there is no answer, or what its own program
    says of it. `sub_calls` and `tool_calls` count those of child runs too; `untold_calls`, `untold_sub_calls`
    and `refused_sub_calls` are as in `traces.rows.RunSummary`, and `root_calls` holds none that a limit
    refused either. `cost_usd` None = unknown. `demo`: a demo model took part; `scripted`: no model did.
    `correct` is None for both, without an expected answer, where the comparison cannot tell, and where an
    error or a cancellation is why there is no answer (a corpus that does not fit is one): that is not a wrong
    answer. Without an answer at a limit it is False.
    """

    strategy: str
    run_id: str
    answer: str | None
    stop_reason: str | None
    forced: bool
    fits: bool | None
    note: str | None
    iterations: int
    root_calls: int
    sub_calls: int
    failed_sub_calls: int
    tool_calls: int
    tokens: Tokens
    cost_usd: Decimal | None
    known_usd: Decimal
    cost_status: str
    seconds: float | None
    root_model: str | None
    sub_model: str | None
    demo: bool
    scripted: bool
    correct: bool | None
    untold_calls: int = 0
    untold_sub_calls: bool = False
    refused_sub_calls: int = 0

    @property
    def asked(self) -> tuple[int | None, int | None]:
        """Calls of the root and sub-calls; None where the record of another engine holds none."""
        root = None if self.untold_calls and not self.root_calls else self.root_calls
        return root, None if self.untold_sub_calls else self.sub_calls

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values; money as decimal strings."""
        return {
            **asdict(self),
            "cost_usd": money_json(self.cost_usd),
            "known_usd": money_json(self.known_usd),
        }


def strategy_rows(
    home: Home,
    run_ids: Sequence[str],
    *,
    expected: str | None = None,
    how: str = NORMALISED,
    warn: Warn | None = None,
) -> list[StrategyRow]:
    """A row for each run, in the order given; running ones as far as they are.

    `expected` is the right answer, `how` the way of `traces.opinions.HOW` in which answers are compared with
    it. Raises InputError for a run that is not there or a comparison that does not exist, and RecordError for
    a record that cannot be read.
    """
    return [_row(load_run(home, run_id, warn=warn), expected, how) for run_id in run_ids]


def strategy_of(run: RunSummary) -> str:
    """The strategy of a run; of one that another engine made, the format of its record."""
    return str(run.imported_from) if is_foreign(run) else run.strategy or RLM


def _row(view: RunView, expected: str | None, how: str) -> StrategyRow:
    run, facts = view.summary, Facts(view.spans[0].attributes if view.spans else {})
    demo = run.demo or any(span.role is not None and is_demo(span.model or "") for span in view.spans)
    scripted = facts.flag(sc.SCRIPTED)
    tried = run.answer is not None or run.stop_reason in _LIMITS
    quality = expected is not None and tried and not (demo or scripted)
    turned_away = refused(view.spans)
    kinds = Counter(span.kind for span in view.spans if span.span_id not in turned_away)
    return StrategyRow(
        strategy=strategy_of(run),
        run_id=run.run_id,
        answer=run.answer,
        stop_reason=run.stop_reason,
        forced=run.forced,
        fits=facts.flag(sc.FITS) if sc.FITS in facts.attributes else None,
        note=facts.text(sc.ERROR_MESSAGE) if run.answer is None else facts.text(sc.ANSWER_NOTE),
        iterations=run.iterations,
        root_calls=kinds["root_call"],
        sub_calls=run.sub_calls,
        failed_sub_calls=run.failed_sub_calls,
        tool_calls=kinds["tool"],
        tokens=run.tokens,
        cost_usd=run.cost_usd,
        known_usd=run.known_usd,
        cost_status=run.cost_status,
        seconds=run.seconds,
        untold_calls=run.untold_calls,
        untold_sub_calls=run.untold_sub_calls,
        refused_sub_calls=run.refused_sub_calls,
        root_model=run.root_model,
        sub_model=run.sub_model,
        demo=demo,
        scripted=scripted,
        correct=same_answer(run.answer, expected, how) if quality and not view.live else None,
    )
