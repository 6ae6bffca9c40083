"""The loop: root call, cells, output, until an answer or a limit. One instance per (child) run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.cell_runs import CellResult, CellRuns
from rlm_core.cells import Extraction, extract
from rlm_core.corpus import Corpus
from rlm_core.endings import Fit, Outcome, judge, partial
from rlm_core.environment import Environment
from rlm_core.errors import LimitReached, ModelError, SandboxError
from rlm_core.history import History
from rlm_core.lm_handler import Completion, Message
from rlm_core.normalise import normalise
from rlm_core.playback import PlaybackStopped
from rlm_core.prompt_families import Family, family_of
from rlm_core.prompts import cell_output, opening
from rlm_core.root_calls import RootCalls
from rlm_core.root_window import RootWindow
from rlm_core.run_state import RunState
from rlm_core.sandbox import SandboxReport
from rlm_core.source_ranges import Prompt
from rlm_core.sub_calls import CellScope, Reply, SubCalls
from rlm_core.telemetry import Attribute, RunSpan, as_json, preview, sha256_text
from rlm_core.told import told_beside
from rlm_core.values import as_text
from rlm_core.wire import OpenCall, Slot

FORCED_SECONDS: Final = 30.0  # what the forced answer may take after the run's time is over
MOST_CELL_CHARS: Final = 1_000_000
_BUDGET_STOPS: Final = 2  # cells interrupted by refusals before the run stops


@dataclass
class Orchestrator:
    """Runs one question over one corpus at one depth."""

    state: RunState
    corpus: Corpus
    question: str
    path: str = "0"
    depth: int = 0
    facts: dict[str, Attribute | None] = field(default_factory=dict)  # more attributes of the run span
    asked: Prompt | None = None  # of a child run: what its caller gave it, to be searched for
    schema: Mapping[str, Any] | None = None  # of a child run: what its answer has to fit
    _history: History = field(default_factory=History)
    _refused: bool = False
    _budget_stops: int = 0
    _partial: str | None = None
    _children: int = 0
    _iterations: int = 0
    _answered_in: int | None = None  # the cell that set the answer

    async def run(self, parent: RunSpan | None = None) -> Outcome:
        """Run to an outcome; every span is closed when this returns or raises. Only a child raises
        `CancelledError`.
        """
        span = self._start(parent)
        if self.asked is not None:
            self.state.sources.search(self.asked, span)
        outcome = Outcome("error", error="the run ended unexpectedly")
        try:
            async with self.state.workers[self.depth], contextlib.AsyncExitStack() as stack:
                stack.enter_context(self.state.ledger.worker(self.depth))
                outcome = await self._within_time(span, stack)
        except asyncio.CancelledError:
            outcome = Outcome("cancelled")
            if self.depth:
                raise
        except ModelError as error:
            outcome = Outcome("error", error=f"the root model gave no usable reply ({error.kind}): {error}")
        except SandboxError as error:
            outcome = Outcome("error", error=str(error))
        except PlaybackStopped as stop:
            outcome = Outcome("error", error=str(stop))
            if self.depth:
                raise
        finally:
            outcome.best_partial = self._partial
            outcome.iterations = self._iterations
            if not self.depth:
                await self.state.sources.finish(wait=outcome.stop_reason != "cancelled")
            self._end(span, outcome)
        return outcome

    async def _within_time(self, span: RunSpan, stack: contextlib.AsyncExitStack) -> Outcome:
        """The loop under the run's wall-clock limit; past a limit one extra root call may still answer."""
        seconds = self.state.ledger.seconds_left if self.depth == 0 else None
        environment = self._environment()
        stack.push_async_callback(environment.close)
        host = SubCalls(self.state, self.corpus, self.path, self.depth, self._run_child)
        cells = CellRuns(self.state, environment, host, self.path, self.depth, len(self.corpus.documents))
        root = RootWindow(RootCalls(self.state, self.path, self.depth), self._history)
        reason: Any
        try:
            async with asyncio.timeout(seconds):
                self._locked(span, await environment.start())
                outcome = await self._loop(span, cells, root)
                if outcome is not None:
                    return outcome
                reason, why = "max_iterations", "The limit of turns is reached."
        except TimeoutError:
            reason, why = "timeout", "The time limit of the run is reached."
        except LimitReached as limit:
            reason, why = "budget", f"The budget is used up: {limit}."
        await environment.close()
        return await self._force(span, root, reason, why)

    def _locked(self, span: RunSpan, found: SandboxReport) -> None:
        """Record how far the worker is locked in."""
        span.set({sc.SANDBOX: found.level, sc.SANDBOX_LAYERS: as_json(found.layers)})
        self.state.locked(found)

    async def _loop(self, span: RunSpan, cells: CellRuns, root: RootWindow) -> Outcome | None:
        """Turns until an answer; None when the turns are used up. Raises `LimitReached` and `ModelError`."""
        limits = self.state.limits
        self._history.opening = told_beside(
            await self._opening(span), self._fit.schema, self.state.options.tool_specs
        )
        for number in range(limits.max_iterations):
            self._iterations = number + 1
            iteration = self.state.recorder.start("iteration", sc.NAME_ITERATION, span, self._place(number))
            self.state.progress.iteration, self.state.progress.depth = number, self.depth
            try:
                outcome = await self._turn(iteration, number, cells, root)
            except BaseException as error:
                iteration.end("cancelled" if isinstance(error, asyncio.CancelledError) else "error")
                raise
            iteration.end("ok")
            if outcome is not None:
                return outcome
            if self._budget_stops >= _BUDGET_STOPS:
                raise LimitReached("calls", "sub-calls were refused again and again")
        return None

    def _environment(self) -> Environment:
        """The REPL of the run, not started yet."""
        return Environment(
            self.corpus.worker_documents(), self.state.limits, self.state.seed, minimum=self.state.minimum
        )

    async def _opening(self, span: RunSpan) -> list[Message]:
        """The first messages; what of the corpus stands in them is put on the run's span."""
        described = self.corpus.describe()
        self.state.sources.search_shown(Prompt.of(self.corpus, [[described]]), span)
        return list(opening(self.question, described, self._budget_line(0), self._family.system))

    @cached_property
    def _family(self) -> Family:
        """How the root is spoken to, by its model and the sub-model at this depth."""
        window, reply_tokens = self.state.options.root_window, self.state.limits.max_tokens_root
        return family_of(*self.state.models(self.depth), root_window=window, reply_tokens=reply_tokens)

    @cached_property
    def _fit(self) -> Fit:
        """What the answer has to fit: of a child run what its caller gave, else what the options say."""
        return Fit(self.schema, nested=True) if self.depth else Fit(self.state.options.schema)

    async def _turn(
        self, iteration: RunSpan, number: int, cells: CellRuns, root: RootWindow
    ) -> Outcome | None:
        """One root call and its cells."""
        self.state.progress.phase = "asking the root"
        self.state.tell()
        completion = await root.ask(iteration, number)
        found = extract(completion.text or "", completion.finish_reason)
        remarks = [] if found.remark is None else [f"[{found.remark}]"]
        if not completion.text:
            remarks = [_nothing_said(completion)]
        shown: list[str] = []
        phases: list[str] = []
        outcome = None
        for position, cell in enumerate(found.cells):
            if len(cell.code) > MOST_CELL_CHARS:
                remarks.append(f"[a block of {len(cell.code):,} characters is too long to run; write less]")
                break
            result = await cells.run(cell, number, iteration)
            phases.append(result.phase)
            shown.append(result.shown)
            self._budget_stops += result.refused_by_budget
            outcome, remark = await self._judge(result, iteration)
            self._answered_in = None if outcome is None else result.number
            remarks += [remark] if remark else []
            if outcome is not None or result.failed:
                if skipped := len(found.cells) - position - 1:
                    remarks.append(f"[{skipped} later blocks of this reply were not executed]")
                break
        iteration.set({sc.PHASE: as_json(sorted(set(phases))), sc.PREVIEW: ", ".join(dict.fromkeys(phases))})
        self._remember(completion, found, [*shown, *remarks], number)
        return outcome

    async def _judge(self, result: CellResult, iteration: RunSpan) -> tuple[Outcome | None, str | None]:
        """The outcome if the cell's answer counts, else what the root is told about it."""
        if result.report is None:
            return None, None
        self._partial = partial(result.report) or self._partial
        verdict = judge(result.report, self._refused)
        if verdict is None:
            return None, None
        self._refused = self._refused or verdict.once
        if (outcome := verdict.outcome) is None:
            return None, f"[{verdict.refusal}]"
        refusal = await self._fit.judge(outcome)
        iteration.set({sc.SCHEMA_PROBLEM: outcome.schema_problem})
        return (outcome, None) if refusal is None else (None, f"[{refusal}]")

    def _remember(self, completion: Completion, found: Extraction, shown: list[str], number: int) -> None:
        """Add the turn to the history: the reply up to its last cell, then what came of it."""
        said = found.kept if found.kept is not None else completion.text
        told = cell_output(shown, self._budget_line(number + 1))
        self._history.add(Message("assistant", said or "(no reply)"), told)

    async def _force(self, span: RunSpan, root: RootWindow, reason: Any, why: str) -> Outcome:
        """One extra root call after a limit. Only plain text can become the answer, marked as forced."""
        outcome = Outcome(reason, forced=True)
        place = {**self._place(self._iterations), sc.FORCED: True, sc.PREVIEW: "forced answer"}
        iteration = self.state.recorder.start("iteration", sc.NAME_ITERATION, span, place)
        try:
            async with asyncio.timeout(FORCED_SECONDS):
                completion = await root.ask_forced(iteration, self._iterations, why)
        except (ModelError, LimitReached, TimeoutError) as error:
            iteration.fail(type(error).__name__, str(error))
            outcome.error = f"{_plainly(why)}; no forced answer could be had: {error or 'no time was left'}"
            outcome.forced = False
            return outcome
        except BaseException as error:
            iteration.end("cancelled" if isinstance(error, asyncio.CancelledError) else "error")
            raise
        text = plain_text(completion.text or "")
        iteration.end("ok")
        if not text:
            outcome.error = f"{_plainly(why)}; the forced reply held no plain text"
            outcome.forced = False
            return outcome
        outcome.text = outcome.form = text
        outcome.via = "forced"
        await self._fit.read(outcome)
        return outcome

    async def _run_child(
        self, scope: CellScope, call: OpenCall, slot: Slot, index: int, parent: RunSpan
    ) -> Reply:
        """Answer `rlm_query`: a child run, one level deeper, over its own corpus or this one's."""
        from rlm_core.child_runs import run_child

        return await run_child(self, scope, call, slot, index, parent)

    def next_child_path(self) -> str:
        """The run path of the next child."""
        self._children += 1
        return f"{self.path}.{self._children}"

    def _place(self, iteration: int) -> dict[str, Attribute | None]:
        return {sc.RUN_PATH: self.path, sc.DEPTH: self.depth, sc.ITERATION: iteration}

    def _budget_line(self, iteration: int) -> str:
        """What is left, in a line; only limits that exist."""
        left = self.state.ledger.left(iteration - 1)
        line = f"turn {iteration + 1} of {self.state.limits.max_iterations}"
        for key, unit in (("tokens", "tokens"), ("usd", "USD"), ("seconds", "s")):
            if left[key] is not None:
                line += f"; {left[key]} {unit} left"
        limit = self.state.limits.max_calls
        if limit is not None and self.state.ledger.calls > limit // 2:
            line += f"; {left['calls']} sub-calls left"
        return line

    def _start(self, parent: RunSpan | None) -> RunSpan:
        recorder, limits = self.state.recorder, self.state.limits
        root_model, sub_model = self.state.models(self.depth)
        question, manifest = recorder.payload(self.question), recorder.payload(self.corpus.record_json())
        facts: dict[str, Attribute | None] = {
            sc.OPERATION: "invoke_agent",
            sc.AGENT_NAME: "rlm",
            sc.REQUEST_MODEL: root_model,
            sc.RUN_ID: self.state.run_id,
            sc.RUN_PATH: self.path,
            sc.DEPTH: self.depth,
            sc.QUESTION + ".sha256": question,
            sc.QUESTION + ".chars": len(self.question),
            sc.QUESTION + ".preview": preview(self.question),
            sc.OI_INPUT: preview(self.question),
            sc.PREVIEW: preview(self.question),
            sc.CORPUS + ".sha256": manifest,
            sc.CORPUS_ID: self.corpus.corpus_id,
            sc.CORPUS_CHARS: self.corpus.chars,
            sc.CORPUS_DOCUMENTS: len(self.corpus.documents),
            sc.ROOT_MODEL: root_model,
            sc.SUB_MODEL: sub_model,
            sc.SANDBOX: self.state.sandbox,
            sc.LIMITS: as_json({name: getattr(limits, name) for name in limits.__dataclass_fields__}),
        }
        facts |= {**self.facts, sc.PROMPTS_VERSION: self._family.version}
        return recorder.start("run", sc.NAME_RUN, parent, facts)

    def _end(self, span: RunSpan, outcome: Outcome) -> None:
        if outcome.text is not None:
            span.text(sc.ANSWER, outcome.text)
            span.text(sc.ANSWER_VALUE, as_json(outcome.form))
            span.set({sc.RESPONSE_NORM_HASH: sha256_text(normalise(outcome.text))})
        span.set(
            {
                sc.STOP_REASON: outcome.stop_reason,
                sc.FORCED: outcome.forced,
                sc.ANSWER_VIA: outcome.via,
                sc.ANSWER_EXPRESSION: outcome.expression,
                sc.ANSWER_CELL: self._answered_in,
                sc.ANSWER_CONFIDENCE: outcome.confidence,
                sc.ANSWER_NOTE: outcome.note,
                sc.ANSWER_MARK: outcome.mark,
                sc.SCHEMA_PROBLEM: outcome.schema_problem,
                sc.OI_OUTPUT: None if outcome.text is None else preview(outcome.text),
                sc.LEDGER: as_json(self.state.ledger.statement()) if self.depth == 0 else None,
            }
        )
        if outcome.best_partial:
            span.text(sc.BEST_PARTIAL, outcome.best_partial)
        if outcome.stop_reason == "cancelled":
            span.end("cancelled")
        elif outcome.text is None:
            span.fail(outcome.stop_reason, outcome.error or "no answer")
        else:
            span.end("ok")


def plain_text(reply: str) -> str:
    """A forced reply without its code blocks; "" when nothing else stands in it."""
    found = extract(reply)
    if not found.cells:
        return reply.strip()
    lines = reply.replace("\r\n", "\n").split("\n")
    opened = next((n for n, line in enumerate(lines) if line.lstrip().startswith(("```", "~~~", "<"))), 0)
    return "\n".join(lines[:opened]).strip()


def _plainly(why: str) -> str:
    """A sentence that the root was told, as the beginning of another one."""
    return why[0].lower() + why[1:].removesuffix(".")


def _nothing_said(completion: Completion) -> str:
    if completion.finish_reason == "length":
        return "[Your reply was used up before any text came; nothing was executed. Write one short cell.]"
    if completion.reasoning:
        return "[Only reasoning came, no reply; nothing was executed. Put the cell into the reply itself.]"
    return "[Your reply was empty; nothing was executed. Write one cell in a ```repl block.]"


def answer_reply(outcome: Outcome) -> Reply:
    """The outcome of a child run as the reply its caller gets."""
    if outcome.text is None:
        return {"err": outcome.stop_reason, "msg": outcome.error or "the child run gave no answer"}
    is_text = outcome.fits or isinstance(outcome.form, str)
    return {"ok": outcome.text if is_text else as_text(outcome.value)}
