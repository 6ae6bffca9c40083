"""What all parts of one run share: one tree, one ledger, one recorder."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from rlm_core import semconv as sc
from rlm_core.images import Images
from rlm_core.limits import Ledger, Limits
from rlm_core.lm_handler import LMHandler
from rlm_core.options import Options
from rlm_core.playback import Playback
from rlm_core.pricing import PriceTable
from rlm_core.progress import Progress, Watcher
from rlm_core.retries import RetryPolicy
from rlm_core.sandbox import MEANING, Level, SandboxReport, below
from rlm_core.shared_answers import SharedAnswers
from rlm_core.source_ranges import SourceRanges
from rlm_core.telemetry import Recorder


@dataclass
class Totals:
    """Sums over the call spans of the tree (attempts are inside their call)."""

    input: int = 0
    output: int = 0
    usd: Decimal = Decimal(0)
    statuses: set[str] = field(default_factory=set)

    def cost(self) -> tuple[Decimal | None, str]:
        """The total and its status: None as soon as one price is unknown, demo when no language model was
        involved.
        """
        if not self.statuses:
            return Decimal(0), "free"
        if "unknown" in self.statuses:
            return None, "partial" if self.usd else "unknown"
        for status in ("priced", "demo", "free"):
            if status in self.statuses:
                return self.usd, status
        raise AssertionError(f"price statuses {self.statuses}")


@dataclass
class RunState:
    """One run and its children."""

    run_id: str
    recorder: Recorder
    handler: LMHandler
    root_model: str
    sub_model: str
    limits: Limits
    ledger: Ledger
    seed: int
    scratch: Path  # corpora of child runs
    sandbox: Level = "none"  # the lowest level any worker of the run had; expected, until one has started
    minimum: Level = "none"  # the lowest that is accepted
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    prices: PriceTable = field(default_factory=PriceTable)
    rng: random.Random = field(default_factory=random.Random)
    progress: Progress = field(default_factory=Progress)
    watcher: Watcher | None = None
    totals: Totals = field(default_factory=Totals)
    sub_calls: int = 0
    failed_sub_calls: int = 0
    refused_sub_calls: int = 0  # by a limit, before anything was sent: not among the sub-calls
    cache_hits: int = 0  # sub-calls answered by an equal one of this run
    tool_calls: int = 0
    notices: list[str] = field(default_factory=list)  # what whoever asked should know, in sentences
    playback: Playback | None = None  # of a run that is played again
    aliases: dict[str, str] = field(default_factory=dict)  # recorded model -> the one that takes its place
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        self.sources = SourceRanges(self.recorder)
        self.shared = SharedAnswers()
        self.images = Images()
        self.attempts = asyncio.Semaphore(self.limits.concurrency)
        self.workers: dict[int, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(self.limits.max_workers)
        )
        self.progress.run_id = self.run_id
        self.progress.max_iterations = self.limits.max_iterations

    def models(self, depth: int) -> tuple[str, str]:
        """Root and sub model of a (child) run at a depth."""
        return self.options.models_at(depth, self.root_model, self.sub_model)

    def locked(self, found: SandboxReport) -> None:
        """A worker has started; whoever asked is told once when generated code is not kept from the files."""
        if below(found.level, self.sandbox):
            self.sandbox = found.level
        notice = f"sandbox level {found.level}: {MEANING[found.level]}"
        if below(found.level, "standard") and notice not in self.notices:
            self.notices.append(notice)

    def count_failure(self, kind: str, sent: bool = False) -> None:
        """A sub-call did not succeed. What a limit refused before anything was `sent` counted as a call when
        it began, and is none.
        """
        refused = kind in sc.LIMIT_ERRORS and not sent
        self.sub_calls -= refused
        self.refused_sub_calls += refused
        self.failed_sub_calls += not refused
        self.progress.calls_done -= refused
        self.progress.calls_refused += refused
        self.progress.calls_failed += not refused

    def tell(self) -> None:
        """Show the progress to the watcher."""
        if self.watcher is not None:
            self.progress.seconds = self.ledger.seconds
            self.progress.tokens = self.totals.input + self.totals.output
            self.progress.cost_usd = self.totals.usd
            self.progress.cost_known = "unknown" not in self.totals.statuses
            self.watcher(self.progress)
