"""The public entry: `RLM(...).ask(question, corpus)`.

Works from threads, inside a running event loop and several times at once in one process: the engine runs on
one background event loop of its own and changes nothing global (no working directory, no standard streams).
"""

from __future__ import annotations

import asyncio
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Self

import rlm_core
from rlm_core import semconv as sc
from rlm_core import strategies
from rlm_core.answer import Answer
from rlm_core.background_loop import BackgroundLoop, Work
from rlm_core.corpus import Corpus
from rlm_core.endings import Outcome
from rlm_core.errors import ConfigError, InputError
from rlm_core.event_stream import CAPACITY, EventStream
from rlm_core.events import Event, Teller
from rlm_core.limits import Before, Ledger, Limits, unpriced
from rlm_core.lm_handler import Completion, LMHandler, Request
from rlm_core.options import Options
from rlm_core.playback import Playback
from rlm_core.pricing import PriceTable
from rlm_core.progress import Watcher
from rlm_core.prompts import PROMPTS_VERSION
from rlm_core.retries import RetryPolicy
from rlm_core.run_state import RunState
from rlm_core.sandbox import checked_level, default_minimum, require
from rlm_core.telemetry import Attribute, Recorder, as_json

_LOOK_SECONDS: Final = 0.25  # between two looks whether a run is to be cancelled
Told = Callable[[Event], None]
CorpusLike = Corpus | str | Sequence[str] | Mapping[str, str]
# those of a worker too: it runs in the same interpreter
_LIBRARIES: Final = (
    "litellm", "opentelemetry-sdk", "duckdb", "numpy", "pandas", "scipy", "sympy", "genai-prices",
)  # fmt: skip


class RLM:
    """A recursive language model: a root model that writes cells, a sub-model that reads.

    `root` and `sub` are LiteLLM model ids or `demo/root`, `demo/sub`. `handler` replaces the routing by model
    id (tests, replay). `sandbox` is the least level a worker must have (None: the default of the system); it
    is always locked in as far as the machine can. `corpora` is the folder in which texts given directly are
    kept; by default a temporary one. `prices` is what calls cost (None: the table of genai-prices alone).
    `options` say how a run goes about its question.
    Raises `ConfigError` or `SandboxError` for settings that cannot work.
    """

    def __init__(
        self,
        root: str = "demo/root",
        sub: str = "demo/sub",
        *,
        limits: Limits | None = None,
        seed: int = 0,
        sandbox: str | None = None,
        handler: LMHandler | None = None,
        fault_rate: float = 0.0,
        fault_seed: int = 0,
        recorder_factory: Callable[[], Recorder] | None = None,
        corpora: Path | None = None,
        retries: RetryPolicy | None = None,
        prices: PriceTable | None = None,
        options: Options | None = None,
    ) -> None:
        from rlm_core.models import make_handler

        self.root, self.sub = root, sub
        self.limits = limits or Limits()
        self.options = options or Options()
        self._prices = prices or PriceTable()
        self._check()
        self._minimum = checked_level(sandbox or default_minimum())
        self.sandbox = require(self._minimum).level
        self.seed = seed
        self._faults = (fault_rate, fault_seed)
        self._handler = handler or make_handler(
            root, sub, concurrency=self.limits.concurrency, fault_rate=fault_rate, fault_seed=fault_seed
        )
        self._recorder_factory = recorder_factory or Recorder
        self._corpora = corpora
        self._retries = retries or RetryPolicy()
        self._loop = BackgroundLoop()
        self._running: set[asyncio.Task[Answer]] = set()

    def check_key(self, environ: Mapping[str, str]) -> None:
        """Raise `ConfigError` where it is certain that an environment holds no key for the root model."""
        from rlm_core.models import ModelRouter
        from rlm_core.providers import check_key

        if isinstance(self._handler, ModelRouter):
            check_key(self.root, environ)

    def ask(
        self,
        question: str,
        corpus: CorpusLike,
        *,
        run_id: str | None = None,
        recorder: Recorder | None = None,
        on_event: Watcher | None = None,
        events: Told | None = None,
    ) -> Answer:
        """Answer one question over one corpus. Blocks. `on_event` gets a picture of where the run stands,
        `events` each of its events (`rlm_core.events`); both are called from the engine's thread.

        Raises `InputError` for an unusable question or corpus. A run that fails is an `Answer` that says so.
        Ctrl-C while it waits cancels the run.
        """
        return self._submit(question, corpus, run_id, recorder, on_event, events).result()

    async def aask(
        self,
        question: str,
        corpus: CorpusLike,
        *,
        run_id: str | None = None,
        recorder: Recorder | None = None,
        on_event: Watcher | None = None,
        events: Told | None = None,
    ) -> Answer:
        """`ask` for callers inside an event loop. Cancelling the awaiting task cancels the run, and waits a
        few seconds at most until it has ended in order.
        """
        return await self._submit(question, corpus, run_id, recorder, on_event, events).awaited()

    def astream(
        self,
        question: str,
        corpus: CorpusLike,
        *,
        run_id: str | None = None,
        recorder: Recorder | None = None,
        capacity: int = CAPACITY,
    ) -> EventStream:
        """Begin a run and follow it: `async for event in rlm.astream(...)`, the last event is `Answered`.

        `capacity` is how many events may wait to be taken. What `ask` raises is raised by the iteration.
        """
        named = run_id or new_run_id()
        return EventStream(
            named, lambda told: self._submit(question, corpus, named, recorder, None, told), capacity
        )

    def _submit(
        self,
        question: str,
        corpus: CorpusLike,
        run_id: str | None,
        recorder: Recorder | None,
        watcher: Watcher | None,
        told: Told | None,
        again: _Again | None = None,
    ) -> Work[Answer]:
        """Begin a run on the engine's loop."""
        named = run_id or new_run_id()
        teller = None if told is None else Teller(named, told)
        return self._loop.submit(self._ask(question, corpus, named, recorder, watcher, teller, again))

    def play(
        self,
        playback: Playback,
        question: str,
        corpus: Corpus,
        *,
        seed: int,
        limits: Limits,
        aliases: Mapping[str, str] | None = None,
        run_id: str | None = None,
        recorder: Recorder | None = None,
        facts: Mapping[str, Attribute | None] | None = None,
        on_event: Watcher | None = None,
        cancelled: Callable[[], bool] | None = None,
        before: Before | None = None,
    ) -> Answer:
        """Play a recorded run again, with the seed and limits it had. Blocks.

        `aliases` names models of the record and those that stand for them here; `facts` are more attributes
        of the run span. `cancelled` is asked a few times a second and cancels the run. `before` is what was
        spent already and counts against the limits. Raises as `ask`.
        """
        again = _Again(playback, seed, limits, dict(aliases or {}), dict(facts or {}), before or Before())
        run = self._submit(question, corpus, run_id, recorder, on_event, None, again)
        while cancelled is not None and not run.future.done():
            with suppress(TimeoutError):
                return run.result(_LOOK_SECONDS)
            if cancelled():
                self.cancel()
                break
        return run.result()

    def complete(self, request: Request) -> Completion:
        """One try of one model call outside of any run, such as a judge's; it is recorded nowhere. Blocks.

        Raises `ModelError`.
        """
        return self._loop.submit(self._complete(request)).result()

    async def _complete(self, request: Request) -> Completion:
        await self._prepare()
        return await self._handler.complete(request)

    async def _prepare(self) -> None:
        """Slow imports happen before any attempt's clock runs."""
        if (prepare := getattr(self._handler, "prepare", None)) is not None:
            await prepare()

    def completion(self, prompt: str, question: str | None = None) -> Answer:
        """`ask` as other RLM libraries spell it: the prompt is the corpus; `question` defaults to answering
        it.
        """
        return self.ask(
            question or "Do what the context asks for, or answer the question it ends with.", prompt
        )

    def cancel(self) -> None:
        """Cancel every run of this object that was begun before; where there is none, nothing happens. Safe
        from other threads and signal handlers.
        """
        self._loop.call(lambda: [task.cancel() for task in self._running])

    def close(self) -> None:
        """Cancel what runs, release connections and stop the background loop."""
        self._loop.close(self._handler.aclose)

    async def aclose(self) -> None:
        """`close` for callers inside an event loop, which goes on meanwhile."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _check(self) -> None:
        limits = self.limits
        for name in ("max_iterations", "concurrency", "max_workers"):
            if getattr(limits, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(limits, name)}")
        if limits.max_depth < 0:
            raise ConfigError(f"max_depth must be at least 0, not {limits.max_depth}")
        if unknown := unpriced(limits, (self.root, self.sub), self._prices):
            raise ConfigError(
                f"max_cost_usd cannot hold: the price of {' and '.join(unknown)} is unknown; set max_tokens "
                "or max_calls as well, or give the price (prices=)"
            )

    async def _ask(
        self,
        question: str,
        corpus: CorpusLike,
        run_id: str,
        recorder: Recorder | None,
        watcher: Watcher | None,
        teller: Teller | None,
        again: _Again | None,
    ) -> Answer:
        if not question.strip():
            raise InputError("the question is empty")
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        began = time.monotonic()
        try:
            await self._prepare()
            with tempfile.TemporaryDirectory(prefix="rlmscope-run-") as scratch:
                if not isinstance(corpus, Corpus):
                    corpus = Corpus.from_texts(corpus, self._corpora or Path(scratch) / "corpora")
                heard = recorder or self._recorder_factory()
                if teller is not None:
                    heard = heard.heard_by(teller)
                state = self._state(run_id, heard, Path(scratch))
                state.watcher = watcher
                return await self._answered(state, corpus, question, began, teller, again)
        except asyncio.CancelledError:  # before there was anything to record
            return Answer(run_id, None, None, "cancelled", cost_usd=Decimal(0), cost_status="free")
        finally:
            self._running.discard(task)

    async def _answered(
        self,
        state: RunState,
        corpus: Corpus,
        question: str,
        began: float,
        teller: Teller | None,
        again: _Again | None,
    ) -> Answer:
        """Run to an answer by the strategy of the options."""
        state.sources.question = question
        facts = self._run_facts(self.seed if again is None else again.seed)
        if again is not None:
            again.set_up(state)
            facts |= again.facts
        outcome = await strategies.answer(state, corpus, question, facts)
        if again is None and (unseen := state.images.unseen(corpus)) is not None:
            state.notices.append(unseen)
        if teller is not None and teller.problem is not None:
            state.notices.append(teller.problem)
        return _answer(state, outcome, time.monotonic() - began)

    def _state(self, run_id: str, recorder: Recorder, scratch: Path) -> RunState:
        return RunState(
            run_id=run_id,
            recorder=recorder,
            handler=self._handler,
            root_model=self.root,
            sub_model=self.sub,
            limits=self.limits,
            ledger=Ledger(self.limits),
            seed=self.seed,
            scratch=scratch / "children",
            sandbox=self.sandbox,
            minimum=self._minimum,
            policy=self._retries,
            prices=self._prices,
            rng=random.Random(f"{self.seed}/{run_id}"),
            options=self.options,
        )

    def _run_facts(self, seed: int) -> dict[str, str | int | float | bool | None]:
        rate, fault_seed = self._faults
        hash_seed = seed % (1 << 32)
        seeds = {
            "python_hash": hash_seed,
            "random": seed,
            "numpy": hash_seed,
            "fault": fault_seed,
            "fault_rate": rate,
        }
        return {
            sc.SEEDS: as_json(seeds),
            sc.VERSIONS: as_json(versions()),
            sc.PROMPTS_VERSION: PROMPTS_VERSION,
            sc.RETRIES: as_json(asdict(self._retries)),
            sc.STRATEGY: self.options.strategy,
            sc.OPTIONS: as_json(self.options.to_json()),
            sc.DEMO: self.root.startswith("demo/") and self.sub.startswith("demo/"),
        }


@dataclass(frozen=True, slots=True)
class _Again:
    """What makes a run one that is played again."""

    playback: Playback
    seed: int
    limits: Limits
    aliases: dict[str, str]
    facts: dict[str, Attribute | None]
    before: Before

    def set_up(self, state: RunState) -> None:
        """Give a run that has not begun its record."""
        state.playback, state.aliases = self.playback, self.aliases
        state.seed, state.limits, state.ledger = self.seed, self.limits, Ledger(self.limits)
        state.ledger.take_over(self.before)


def new_run_id() -> str:
    """`YYYYmmddTHHMMSS-xxxxxxxx`: the UTC start time and 8 random hex digits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.urandom(4).hex()}"


def versions() -> dict[str, str | None]:
    """The versions of what runs here, by name; None for what is not installed."""
    found: dict[str, str | None] = {
        "rlmscope": rlm_core.__version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "record": str(sc.RECORD_VERSION),
        "gen_ai": sc.GENAI_CONVENTION,
        "openinference": sc.OPENINFERENCE_CONVENTION,
    }
    return found | {library: _installed(library) for library in _LIBRARIES}


@cache  # as it was loaded; every look reads the whole description of the package
def _installed(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _answer(state: RunState, outcome: Outcome, seconds: float) -> Answer:
    usd, status = state.totals.cost()
    total = state.totals.input + state.totals.output
    return Answer(
        run_id=state.run_id,
        text=outcome.text,
        value=outcome.value,
        stop_reason=outcome.stop_reason,
        forced=outcome.forced,
        confidence=outcome.confidence,
        note=outcome.note,
        mark=outcome.mark,
        best_partial=outcome.best_partial,
        iterations=outcome.iterations,
        sub_calls=state.sub_calls,
        failed_sub_calls=state.failed_sub_calls,
        refused_sub_calls=state.refused_sub_calls,
        cache_hits=state.cache_hits,
        tool_calls=state.tool_calls,
        tokens={"input": state.totals.input, "output": state.totals.output, "total": total},
        cost_usd=usd,
        cost_status=status,
        known_usd=state.totals.usd,
        sandbox=state.sandbox,
        seconds=seconds,
        error=outcome.error,
        notices=tuple(state.notices),
    )
