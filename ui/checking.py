"""Checking a regression set with what the machine is set up for: shared by the command line and the app."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import InputError
from traces.regression import Check, CheckMode, Member, Played, RegressionSet, Result, Why

if TYPE_CHECKING:
    from traces.check_log import CheckLog, PastCheck
    from traces.home import Home
    from traces.reading import RunView
    from traces.trial import Budget

_TYPED: Final = (
    "The root would have been shown other output, and its answer stands in its own code: only the root can "
    "tell (--mode rerun asks it)."
)


@dataclass(frozen=True, slots=True)
class Order:
    """A check as it was asked for. `root` and `sub` None: those of the present configuration, and where
    nothing is configured those of each run. `max_calls` and `max_cost` are for all runs together.
    """

    mode: CheckMode = "replay"
    root: str | None = None
    sub: str | None = None
    max_calls: int | None = None
    max_cost: Decimal | None = None


@dataclass
class Checker:
    """One check at work. Raises InputError for models that cannot be used, before anything is spent."""

    home: Home
    order: Order
    environ: Mapping[str, str]
    cancelled: Callable[[], bool] = lambda: False
    stopped: bool = False  # a rerun was cancelled by a signal that it took for itself
    check: Check = field(default_factory=Check)

    def __post_init__(self) -> None:
        self.models: dict[str, str | None] = self._chosen()
        self._check_money()

    def _chosen(self) -> dict[str, str | None]:
        """Who is asked, by role; None: the model of each run."""
        from rlm_core.models import check_usable, default_models
        from ui.web.settings import load_settings

        root, sub, unset = default_models(load_settings(self.home).over(self.environ))
        chosen = {"root": self.order.root, "sub": self.order.sub}
        if unset is None:
            chosen = {"root": chosen["root"] or root, "sub": chosen["sub"] or sub}
        if self.order.mode == "replay":
            del chosen["root"]  # the recorded cells run: no root is asked
            if self.order.root is not None:
                raise InputError("--root is for --mode rerun: a replay runs the cells that are recorded")
        for role, model in chosen.items():
            if model is not None:
                check_usable(model, f"--{role}" if getattr(self.order, role) else f"the {role} model")
        return chosen

    def _check_money(self) -> None:
        """Refuse a cost limit that cannot hold."""
        from traces.prices import price_table

        if self.order.max_cost is None:
            return
        prices = price_table(self.home)
        for model in filter(None, self.models.values()):
            if prices.upper_bound_usd(model, 1, 1) is None:
                raise InputError(
                    f"the cost limit cannot hold: the price of {model} is unknown; limit the calls "
                    "(--max-calls) instead, or set its price with `rlmscope prices set`"
                )

    def results(self, members: tuple[Member, ...], past: list[PastCheck]) -> Iterator[Result]:
        """Check the members one after another; each result is kept in `check` too."""
        from traces.check_log import last_word
        from traces.regression import check_set

        play = self._replay if self.order.mode == "replay" else self._rerun
        for result in check_set(
            self.home,
            members,
            play,
            before=last_word(past),
            cancelled=lambda: self.stopped or self.cancelled(),
        ):
            half_way = self.stopped or (result.passed is None and self.cancelled())
            if not half_way:  # what was stopped says nothing
                self.check.results.append(result)
                yield result

    def _replay(self, view: RunView, member: Member) -> Played:
        from traces.regression import typed_by_root
        from traces.replay_runs import record_replay
        from ui.common import say
        from ui.replaying import present

        budget = self._budget(view)
        if budget is None:
            return _nothing_left()
        with (
            present(
                self.home, view, self.environ, roles=("sub",), sub=self.models["sub"], budget=budget
            ) as now,
            now.replayer(self.home, view, budget=budget, cancelled=self.cancelled) as replayer,
        ):
            check = replayer.check()
            if check.status == "not_replayable":
                words = f"It cannot be replayed (--mode rerun asks anew). {check.words}"
                return Played(None, undecided=words, why="unreplayable")
            trial = record_replay(
                self.home, replayer, mode="live", target=member.target, cancelled=self.cancelled, warn=say
            )
        undecided = trial.stopped
        why: Why | None = None if undecided is None else "stopped"
        if undecided is None and trial.outcome == "reached_root" and typed_by_root(view):
            undecided, why = _TYPED, "typed"
        return Played(
            trial.answer,
            trial.run_id,
            trial.live_calls,
            trial.cost_usd,
            trial.seconds,
            undecided,
            trial.assumed,
            why,
        )

    def _rerun(self, view: RunView, member: Member) -> Played:
        from ui.ask_outcome import CUT_SHORT
        from ui.ask_run import run_order
        from ui.replaying import ensure_corpus

        if (order := self._asked_anew(view)) is None:
            return _nothing_left()
        ensure_corpus(self.home, view)
        answer = run_order(order, self.home, self.environ).answer
        self.stopped = answer.stop_reason == "cancelled"
        undecided = None
        why: Why | None = None
        if answer.stop_reason in CUT_SHORT:
            undecided = answer.error or f"the run ended early: {answer.stop_reason}"
            why = "ended early"
        calls = answer.sub_calls + answer.iterations
        return Played(answer.text, answer.run_id, calls, answer.cost_usd, answer.seconds, undecided, why=why)

    def _asked_anew(self, view: RunView) -> Any:
        from dataclasses import replace

        from ui.ask_run import Order as Asked
        from ui.web.settings import load_settings

        budget, summary = self._budget(view), view.summary
        if budget is None:
            return None
        if summary.corpus_id is None or not summary.question:
            raise InputError(
                f"the record of run {view.run_id} lacks its question or corpus: it cannot be asked"
            )
        limits = load_settings(self.home).checked_limits()
        if self.order.max_calls is not None:
            limits = replace(limits, max_calls=min(limits.max_calls or budget.live_calls, budget.live_calls))
        if budget.usd is not None:
            limits = replace(limits, max_cost_usd=budget.usd)
        return Asked(
            question=summary.question,
            sources=(),
            root=self.models["root"] or summary.root_model,
            sub=self.models["sub"] or summary.sub_model,
            limits=limits,
            seed=0,
            sandbox=None,
            fault_rate=0.0,
            fault_seed=0,
            corpus_id=summary.corpus_id,
        )

    def _budget(self, view: RunView) -> Budget | None:
        """What one more run may spend; None when nothing is left."""
        from traces.trial import Budget
        from ui.replaying import calls_allowed

        most = self.order.max_calls
        calls = calls_allowed(view.summary, "live") if most is None else most - self.check.live_calls
        usd = self.order.max_cost
        if usd is not None:
            spent = self.check.cost_usd
            usd = Decimal(0) if spent is None else usd - spent
        if calls <= 0 or (usd is not None and usd <= 0):
            return None
        return Budget(replays=1, live_calls=calls, usd=usd)


def _nothing_left() -> Played:
    return Played(None, undecided="It was not played: what the check may spend is used up.", why="budget")


def run_check(
    checker: Checker, chosen: RegressionSet, log: CheckLog, tell: Callable[[Result], None]
) -> Check:
    """Check a set, keep the results in `log` and tell each; past checks say what passed before."""
    from traces.check_log import checks

    wanted = checker.cancelled
    checker.cancelled = lambda: wanted() or log.cancelled()
    past = [one for one in checks(checker.home, chosen.name) if one.check_id != log.check_id]
    for result in checker.results(chosen.members, past):
        log.result(result)
        tell(result)
    log.end(cancelled=len(checker.check.results) < len(chosen.members))
    return checker.check
