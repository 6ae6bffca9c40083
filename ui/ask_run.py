"""One run, from the command line or the app: models, corpus, recording, engine, ingest."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlm_core.answer import Answer
from rlm_core.errors import InputError, RecordError, RLMScopeError
from ui.ask_outcome import CUT_SHORT, Outcome, estimate_words
from ui.common import say
from ui.control import StopWatch, cancel_file
from ui.failure import LOGS, unexpected
from ui.interrupts import Interrupts
from ui.models_config import Models, check_money_limit, choose_models, with_depths
from ui.progress import ProgressLine

if TYPE_CHECKING:
    from rlm_core.corpus import Corpus
    from rlm_core.limits import Limits
    from rlm_core.options import Options
    from rlm_core.pricing import PriceTable
    from rlm_core.progress import Progress, Watcher
    from rlm_core.rlm import RLM
    from traces.estimate import Estimate
    from traces.home import Home
    from traces.recording import Recording
    from traces.resume import Continuation


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for, checked for form. `sandbox` None: that of the settings,
    else the engine's default. `options` None: the plain way, rlm. `resume` is the dead run to be continued.

    `corpus_id` names a corpus exactly; without it `sources` are paths or one id. `run_id` None: a new one.
    """

    question: str
    sources: Sequence[str]
    root: str | None
    sub: str | None
    limits: Limits
    seed: int
    sandbox: str | None
    fault_rate: float
    fault_seed: int
    corpus_id: str | None = None
    run_id: str | None = None
    options: Options | None = None
    resume: Continuation | None = None


def check_question(question: str) -> str:
    """The question. Raises InputError when it is empty or holds what UTF-8 cannot."""
    if not question.strip():
        raise InputError("the question is empty")
    try:
        question.encode()
    except UnicodeEncodeError:
        raise InputError("the question is not valid UTF-8 text") from None
    return question


def prepare(order: Order, home: Home, environ: Mapping[str, str]) -> tuple[Models, RLM]:
    """The models and the engine of a run. Raises InputError for what cannot work; starts nothing."""
    from traces.prices import price_table
    from ui.web.settings import environment_with_keys, load_settings

    settings, prices = load_settings(home), price_table(home)
    models = choose_models(order.root, order.sub, settings.over(environ))
    if order.options is not None:
        models = with_depths(models, order.options.models, order.limits)
    check_money_limit(models, order.limits, prices)
    # a file of keys that cannot be used, or a key that is missing, is said before anything starts
    known = None if models.demo else environment_with_keys(home, environ)
    rlm = _engine(replace(order, sandbox=order.sandbox or settings.sandbox), models, home, prices)
    if known is not None and order.resume is None:  # what is left of a dead run may ask no model
        rlm.check_key(known)
    return models, rlm


def run_order(order: Order, home: Home, environ: Mapping[str, str]) -> Outcome:
    """Run one question to its end and record it. Raises InputError for what cannot work.

    While it goes on, the provider keys of the home are in the environment of this process, unless no language
    model is involved.
    """
    (outcome,) = run_repeats(order, 1, home, environ)
    return outcome


def run_repeats(order: Order, times: int, home: Home, environ: Mapping[str, str]) -> list[Outcome]:
    """`run_order`, `times` in turn, over a corpus that is read once; each is a run with limits of its own.

    Fewer when they are cancelled, see `run_in_turn`. Raises InputError for what cannot work.
    """
    titles = [f"run {number} of {times}" if number > 1 else None for number in range(1, times + 1)]
    return run_in_turn([order] * times, titles, home, environ)


def run_in_turn(
    orders: Sequence[Order], titles: Sequence[str | None], home: Home, environ: Mapping[str, str]
) -> list[Outcome]:
    """Orders over one corpus, which is read once, by the same models; each title is said before its run.

    A wish to stop ends them all, also one that comes when a run has its answer already, or between two runs:
    what has come out by then is returned. Raises InputError for what cannot work.
    """
    from ui.web.settings_keys import keys_lent

    models, rlm = prepare(orders[0], home, environ)
    outcomes: list[Outcome] = []
    # what functions of tools print is no part of what the command says
    with redirect_stdout(sys.stderr), nullcontext() if models.demo else keys_lent(home):
        ground = _ground(orders[0], models, home)
        for order, title in zip(orders, titles, strict=True):
            try:
                if title is not None:
                    say(title)
                if outcomes:
                    _, rlm = prepare(order, home, environ)
                outcome, stopped = _outcome(order, models, rlm, home, ground)
            except KeyboardInterrupt:
                if not outcomes:
                    raise
                break
            outcomes.append(outcome)
            if stopped:
                break
    return outcomes


@dataclass(frozen=True, slots=True)
class _Ground:
    """What all repeats of an order stand on, said once."""

    corpus: Corpus
    problems: list[dict[str, str]]
    estimate: Estimate | None


def _ground(order: Order, models: Models, home: Home) -> _Ground:
    from ui.sources import corpus_problems

    for notice in models.notices:
        say(notice)
    corpus = _corpus(order, home)
    problems = corpus_problems(corpus)
    for problem in problems:
        say(f"{problem['path']}: {problem['message']}")
    expected = _estimate(home, models, corpus, _strategy(order)) if order.resume is None else None
    return _Ground(corpus, problems, expected)


def _outcome(order: Order, models: Models, rlm: RLM, home: Home, ground: _Ground) -> tuple[Outcome, bool]:
    """What came of an order, and whether somebody wished to stop meanwhile."""
    recording, answer, cancelled = _recorded(order, rlm, home, ground.corpus, models)
    said = list(answer.notices)
    said.extend(filter(None, (recording.unwritable, recording.loss, recording.unsent)))
    if not cancelled:  # a wish to stop must not wait for a lock; the next reading command ingests
        try:
            said.extend(_ingested(home))
        except KeyboardInterrupt:  # the answer is there, and paid for
            cancelled = True
    for notice in said:
        say(notice)
    outcome = Outcome(
        question=order.question,
        models=models,
        corpus_id=ground.corpus.corpus_id,
        answer=answer,
        spool=recording.spool_path,
        record_problems=recording.problems,
        problems=ground.problems,
        notices=(*models.notices, *said),
        estimate=ground.estimate,
        strategy=_strategy(order),
    )
    return outcome, cancelled or answer.stop_reason == "cancelled"


def _strategy(order: Order) -> str:
    return "rlm" if order.options is None else order.options.strategy


def _estimate(home: Home, models: Models, corpus: Corpus, strategy: str) -> Estimate | None:
    """What the run will probably take, said; None where no earlier run tells. A failure stops no run."""
    from traces.estimate import Plan, estimate

    plan = Plan(models.root, models.sub, corpus.corpus_id, corpus.chars, models.demo, strategy)
    try:
        expected = estimate(home, plan)
    except RLMScopeError as error:
        say(f"no estimate: {error}")
        return None
    if expected is not None:
        say(estimate_words(expected, demo=models.demo))
    return expected


def _engine(order: Order, models: Models, home: Home, prices: PriceTable) -> RLM:
    from rlm_core.rlm import RLM

    level: dict[str, Any] = {} if order.sandbox is None else {"sandbox": order.sandbox}
    return RLM(
        models.root,
        models.sub,
        limits=order.limits,
        seed=order.seed,
        fault_rate=order.fault_rate,
        fault_seed=order.fault_seed,
        corpora=home.corpora,
        prices=prices,
        options=order.options,
        **level,
    )


def _corpus(order: Order, home: Home) -> Corpus:
    from rlm_core.corpus import Corpus
    from ui.sources import open_corpus

    if order.corpus_id is not None:
        return Corpus.load(home.corpora, order.corpus_id)
    return open_corpus(home, order.sources)


def _recorded(
    order: Order, rlm: RLM, home: Home, corpus: Corpus, models: Models
) -> tuple[Recording, Answer, bool]:
    """The recording of the run, its answer, and whether it was cancelled from outside."""
    from traces.home import new_run_id
    from traces.recording import open_recording

    recording = open_recording(home, order.run_id or new_run_id(), _facts(order, corpus, models))
    if recording.unwritable:  # said before anything is spent
        say(recording.unwritable)
    shown = ProgressLine()
    stop = _Stop(rlm, shown.update)
    interrupts = Interrupts(stop, shown.stop)
    asked = StopWatch(cancel_file(home, recording.run_id), interrupts.request)
    # signals outermost: giving up connections and workers belongs to the time a cancelled run has
    with interrupts, asked, rlm, recording:
        try:
            with shown:
                answer = _answer(order, rlm, corpus, recording, stop.on_event)
        except InputError:
            raise
        except Exception as error:
            known = isinstance(error, RLMScopeError)
            words = str(error) if known else unexpected(error, home.root / LOGS)
            answer = _so_far(home, recording, words)
        recording.close(_status(answer), hurried=lambda: interrupts.cancelled)
    if (seconds := recording.seconds) is not None:  # one run has one time, wherever it is told
        answer = replace(answer, seconds=seconds)
    return recording, answer, interrupts.cancelled


def _answer(order: Order, rlm: RLM, corpus: Corpus, recording: Recording, watcher: Watcher) -> Answer:
    """Ask the question, or go on with the run that is to be continued."""
    known: dict[str, Any] = {
        "run_id": recording.run_id,
        "recorder": recording.recorder,
        "on_event": watcher,
    }
    if order.resume is None:
        return rlm.ask(order.question, corpus, **known)
    more = order.resume
    return rlm.play(
        more.playing,
        order.question,
        corpus,
        seed=order.seed,
        limits=order.limits,
        facts=more.facts,
        before=more.before,
        **known,
    )


class _Stop:
    """Cancels the run, also one that has not begun: as long as the engine knows nothing of it, every call
    tries again; a run that has begun is cancelled once, and ends in order.
    """

    def __init__(self, rlm: RLM, watcher: Watcher) -> None:
        self._cancel = rlm.cancel
        self._watcher = watcher
        self._begun = False
        self._heard = False

    def __call__(self) -> None:
        if not self._heard:
            self._heard = self._begun  # looked at before, so that the run began before it is cancelled
            self._cancel()

    def on_event(self, now: Progress) -> None:
        """Pass an event on: that there is one shows that the run has begun."""
        self._begun = True
        self._watcher(now)


def _facts(order: Order, corpus: Corpus, models: Models) -> dict[str, str | int | bool]:
    """What stands in the record before the first span."""
    from rlm_core import semconv as sc
    from rlm_core.telemetry import preview

    return {
        sc.QUESTION + ".preview": preview(order.question),
        sc.ROOT_MODEL: models.root,
        sc.SUB_MODEL: models.sub,
        sc.CORPUS_ID: corpus.corpus_id,
        sc.CORPUS_CHARS: corpus.chars,
        sc.DEMO: models.demo,
        **({} if order.resume is None else {sc.RESUME_OF: order.resume.of}),
    }


def _status(answer: Answer) -> str:
    if answer.stop_reason in CUT_SHORT:
        return answer.stop_reason
    return "error" if answer.text is None else "ok"


def _so_far(home: Home, recording: Recording, error: str) -> Answer:
    """The answer of a run that broke off, with the figures its record holds."""
    from traces.reading import SpoolRun

    try:
        run = SpoolRun(home, recording.run_id).poll().summary
    except RecordError:  # nothing of it is known
        return _unknown(recording, error)
    return Answer(
        run_id=run.run_id,
        text=None,
        value=None,
        stop_reason="error",
        iterations=run.iterations,
        sub_calls=run.sub_calls,
        failed_sub_calls=run.failed_sub_calls,
        refused_sub_calls=run.refused_sub_calls,
        tokens=run.tokens,
        cost_usd=run.cost_usd,
        cost_status=run.cost_status,
        sandbox=run.sandbox or "unknown",
        seconds=run.seconds or 0,
        error=error,
    )


def _unknown(recording: Recording, error: str) -> Answer:
    """The answer of a run that broke off and left no record."""
    return Answer(
        run_id=recording.run_id,
        text=None,
        value=None,
        stop_reason="error",
        iterations=0,
        sub_calls=0,
        failed_sub_calls=0,
        tokens={"input": 0, "output": 0, "total": 0},
        cost_usd=None,
        cost_status="unknown",
        sandbox="unknown",
        seconds=0.0,
        error=error,
    )


def _ingested(home: Home) -> Sequence[str]:
    """Take the closed run into the store; what prevented it, in words. The spool holds the run anyway."""
    from traces.ingest import ingest

    try:
        return ingest(home).notices
    except RLMScopeError as error:
        return (f"the run is recorded in its spool but not in the store yet: {error}",)
