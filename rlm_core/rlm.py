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
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, TypeVar

import rlm_core
from rlm_core import semconv as sc
from rlm_core import strategies
from rlm_core.answer import Answer
from rlm_core.corpus import Corpus
from rlm_core.endings import Outcome
from rlm_core.errors import ConfigError, InputError
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
T = TypeVar("T")
_LOOK_UP_SECONDS: Final = 0.25
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
        self._loop = _BackgroundLoop()
        self._running: set[asyncio.Task[Answer]] = set()

    def ask(
        self,
        question: str,
        corpus: CorpusLike,
        *,
        run_id: str | None = None,
        recorder: Recorder | None = None,
        on_event: Watcher | None = None,
    ) -> Answer:
        """Answer one question over one corpus. Blocks; `on_event` is called from the engine's thread.

        Raises `InputError` for an unusable question or corpus. A run that fails is an `Answer` that says so.
        """
        run = self._loop.submit(self._ask(question, corpus, run_id, recorder, on_event))
        try:
            return _result(run)
        except BaseException:  # Ctrl-C while waiting: the run must not go on unseen
            run.cancel()
            raise

    async def aask(
        self,
        question: str,
        corpus: CorpusLike,
        *,
        run_id: str | None = None,
        recorder: Recorder | None = None,
        on_event: Watcher | None = None,
    ) -> Answer:
        """`ask` for callers inside an event loop; cancelling the awaiting task cancels the run."""
        return await asyncio.wrap_future(
            self._loop.submit(self._ask(question, corpus, run_id, recorder, on_event))
        )

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
        run = self._loop.submit(self._ask(question, corpus, run_id, recorder, on_event, again))
        try:
            while cancelled is not None and not run.done():
                with suppress(TimeoutError):
                    return run.result(_LOOK_SECONDS)
                if cancelled():
                    self.cancel()
                    break
            return _result(run)
        except BaseException:
            run.cancel()
            raise

    def complete(self, request: Request) -> Completion:
        """One try of one model call outside of any run, such as a judge's; it is recorded nowhere. Blocks.

        Raises `ModelError`.
        """
        return _result(self._loop.submit(self._complete(request)))

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
        """Cancel every run of this object; safe from other threads and signal handlers."""
        self._loop.call(lambda: [task.cancel() for task in self._running])

    def close(self) -> None:
        """Release connections and stop the background loop."""
        self._loop.close(self._handler.aclose)

    def __enter__(self) -> RLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        run_id: str | None,
        recorder: Recorder | None,
        watcher: Watcher | None,
        again: _Again | None = None,
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
                state = self._state(
                    run_id or _new_run_id(), recorder or self._recorder_factory(), Path(scratch)
                )
                state.watcher = watcher
                state.sources.question = question
                facts = self._run_facts(self.seed if again is None else again.seed)
                if again is not None:
                    again.set_up(state)
                    facts |= again.facts
                outcome = await strategies.answer(state, corpus, question, facts)
                if again is None and (unseen := state.images.unseen(corpus)) is not None:
                    state.notices.append(unseen)
                return _answer(state, outcome, time.monotonic() - began)
        finally:
            self._running.discard(task)

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


def _result(run: Future[T]) -> T:
    """The result of a run. Python runs signal handlers in the main thread, and a signal that comes as it
    begins to wait for good can stay unseen: so it looks up now and then.
    """
    while not run.done():
        wait([run], timeout=_LOOK_UP_SECONDS)
    return run.result()


class _BackgroundLoop:
    """One event loop in one long-lived daemon thread, started when first needed.

    Workers are started from this thread: on Linux they die with it.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._started())

    def call(self, function: Callable[[], object]) -> None:
        """Call a function on the loop, if it runs."""
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(function)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what runs, await `last`, stop."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(last), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._loop,), name="rlm-engine", daemon=True
                )
                self._thread.start()
            return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def _cancel_others(last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last()


def _new_run_id() -> str:
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
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = None
    return found


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
