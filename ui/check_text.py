"""A check of a regression set, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rlm_core.models import is_demo
from traces.check_log import PastCheck, trend
from traces.diagnosis_words import name_of
from traces.imported import asked_words
from traces.regression import CHECK_MODES
from ui.figures import counted, money
from ui.models_config import DEMO_WORDS
from ui.tree import long_ids, short_id
from ui.visible import fit, line

if TYPE_CHECKING:
    from traces.home import Home
    from traces.regression import Check, RegressionSet, Result
    from ui.checking import Checker

_ANSWER: Final = 60  # columns of an answer
_NAMED: Final = 5  # calls that are named
WORDS: Final = {True: "passed", False: "FAILED", None: "undecided"}


def opening(chosen: RegressionSet, checker: Checker) -> Iterator[str]:
    """What is going to be done, before anything is spent."""
    order = checker.order
    yield f"set {line(chosen.name)}: {counted(len(chosen.members), 'run')}; {CHECK_MODES[order.mode]}"
    for role, model in checker.models.items():
        said = "the model of each run" if model is None else line(model)
        yield f"{role}: {said}" + (f" ({DEMO_WORDS})" if model is not None and is_demo(model) else "")
    limits = [] if order.max_calls is None else [counted(order.max_calls, "call")]
    limits += [] if order.max_cost is None else [money(order.max_cost, None)]
    if limits:
        yield f"at most {' and '.join(limits)}"
    for run_id, words in chosen.left_out:
        yield f"left out: {run_id}: {words}"
    yield ""


def result_lines(home: Home, result: Result, past: Sequence[PastCheck]) -> Iterator[str]:
    """What became of one run; `past` are the checks before."""
    run, expected = result.member.run, _short(result.member.target.text)
    now, before = _short(result.played.answer), _short(run.answer)
    yield f"{WORDS[result.passed]:<9} {run.run_id}  {_short(asked_words(run))}"
    if result.passed is not None:
        changed = f"; before: {before}" if result.changed else ", as before"
        right = "as expected" if result.passed else f"expected {expected}"
        yield f"          answer: {now}, {right}{changed}"
    if result.moved_by_now:
        yield f"          moved by {moved_words(home, result)}"
    if result.words:
        yield f"          {line(result.words)}"
    right_before, told = trend(past, run.run_id)
    if told:
        yield f"          was {trend_words(right_before, told)}"
    if result.changed and result.played.run_id:
        yield f"          look: rlmscope diff {result.played.run_id} {run.run_id}"


def trend_words(right: int, told: int) -> str:
    """In how many of the last checks, as many as `told`, something was right: what stands after "was"."""
    if told == 1:
        return f"{'right' if right else 'wrong'} in the last check"
    return f"right in {right} of the last {told} checks"


def _short(text: str | None) -> str:
    return fit(line(text), _ANSWER) if text else "none"


def moved_words(home: Home, result: Result) -> str:
    """The calls that moved an answer, by name, and whether that is proven."""
    names = names_of(home, result.played.run_id, result.moved_by_now[:_NAMED])
    more = len(result.moved_by_now) - len(names)
    shown = ", ".join(names) + (f" and {more:,} more" if more > 0 else "")
    return shown + (" (proven by replays)" if result.proven else "")


def names_of(home: Home, run_id: str | None, span_ids: Sequence[str]) -> list[str]:
    """What spans of a run are called, with the beginnings of their ids; only ids where the record is gone."""
    from rlm_core.errors import RLMScopeError
    from traces.reading import load_run

    try:
        spans = load_run(home, run_id).by_id if run_id is not None else {}
    except RLMScopeError:
        spans = {}
    longer = long_ids(spans)
    return [
        f"{line(name_of(spans[one]))} [{short_id(one, longer)}]" if one in spans else line(one)
        for one in span_ids
    ]


def closing(done: Check, chosen: RegressionSet) -> Iterator[str]:
    """The counts, and what the check took."""
    counts = {"passed": done.count(True), "failed": done.count(False), "undecided": done.count(None)}
    counts["not checked"] = len(chosen.members) - len(done.results)
    yield ""
    said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count or word == "passed")
    yield f"{said}; {counted(done.live_calls, 'live call')}, {money(done.cost_usd, None)}"
