"""Runs the cells of one (child) run: checks, span, output for the root, the way back after a lost worker."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.cells import Cell
from rlm_core.checks import SUB_CALLS, CodeReport, Finding, check
from rlm_core.corpus import Corpus
from rlm_core.environment import Environment
from rlm_core.errors import CorpusError, WorkerDied
from rlm_core.playback import PlaybackStopped
from rlm_core.prompts import cut_middle, fence, left_out
from rlm_core.run_state import RunState
from rlm_core.source_ranges import Prompt
from rlm_core.sub_calls import CellScope, SubCalls
from rlm_core.telemetry import RunSpan, as_json, preview
from rlm_core.wire import CellReport, Given

_TRACEBACK_SHOWN: Final = 3_000
_MOST_NOTES: Final = 8
_KEPT: Final = "head and tail, half each"


@dataclass(slots=True)
class CellResult:
    """A cell after its run: the report (None when the worker died in it) and what the root is shown."""

    report: CellReport | None
    shown: str
    phase: str
    number: int = 0
    refused_by_budget: bool = False

    @property
    def failed(self) -> bool:
        """Whether the cell did not come to its end; what follows it in its reply expected another state."""
        return self.report is None or self.report.exception_type is not None


@dataclass
class CellRuns:
    """The cells of one run path, in order."""

    state: RunState
    environment: Environment
    host: SubCalls
    path: str
    depth: int
    documents: int
    _number: int = 0
    _names: set[str] = field(default_factory=set)
    _values: dict[str, str | None] = field(default_factory=dict)  # hashes of what variables hold
    _from_calls: set[str] = field(default_factory=set)  # variables whose values came from sub-calls
    _history: list[tuple[int, str, CellReport]] = field(default_factory=list)
    _passing: set[str] = field(default_factory=set)  # set by interrupted cells, which are not run again

    async def run(self, cell: Cell, iteration: int, parent: RunSpan) -> CellResult:
        """Run one cell; every span below it is closed before its own."""
        number, self._number = self._number, self._number + 1
        known = self.environment.known_names | self._names
        code = check(cell.code, known, self.documents, self._from_calls)
        phase = self._phase(code)
        span = self._start(cell, code, number, iteration, phase, parent)
        try:
            return await self._run(cell, code, number, iteration, phase, span)
        except BaseException:  # cancelled, also once more while it was being given up
            span.end("cancelled")
            raise

    async def _run(
        self, cell: Cell, code: CodeReport, number: int, iteration: int, phase: str, span: RunSpan
    ) -> CellResult:
        scope = CellScope(number, span, self.host, self.environment.interrupt)
        self.host.scope, self.host.iteration = scope, iteration
        if (instead := self._instead(number, iteration, span)) is not None:
            scope.ended = True
            return CellResult(None, instead, phase, number)
        self.state.progress.cell, self.state.progress.phase = number, "running a cell"
        self.state.tell()
        try:
            report = await self.environment.run_cell(number, cell.code, self.host)
        except WorkerDied as death:
            scope.ended = True
            await self.environment.settle()
            return await self._after_death(cell, code, death, scope, phase)
        except PlaybackStopped:
            scope.ended = True  # what stands in line is dropped; what was sent is paid for, and ends first
            await self.environment.settle()
            raise
        except BaseException:
            scope.ended = True
            self.environment.drop_calls()
            await self.environment.settle()
            raise
        scope.ended = True
        await self.environment.settle()
        return self._finish(cell, code, report, scope, phase, await self._touched(report.given))

    def _instead(self, number: int, iteration: int, span: RunSpan) -> str | None:
        """What the root is shown of a cell that is not run again while a record is played."""
        playback = self.state.playback
        shown = None if playback is None else playback.cell(self.path, iteration, number)
        if shown is not None:
            span.text(sc.STDOUT_SHOWN, shown)
            span.set({sc.EXCEPTION_TYPE: "NotRunAgain"})
            span.fail("NotRunAgain", "the recorded cell was killed or interrupted, so it is not run again")
        return shown

    async def _touched(self, given: Given) -> str | None:
        """What code was given, in bytes; None when nobody records it."""
        if not self.state.recorder.records:
            return None
        parts = given.parts
        if any(not self.host.corpus.is_ascii(document) for document, _, _ in parts):  # files are read for it
            parts = await asyncio.to_thread(_in_bytes, self.host.corpus, parts)
        facts: dict[str, Any] = {"whole": given.whole, "parts": parts}
        if left_out := given.left_out + len(given.parts) - len(parts):
            facts["left_out"] = left_out
        return as_json(facts)

    def _start(
        self, cell: Cell, code: CodeReport, number: int, iteration: int, phase: str, parent: RunSpan
    ) -> RunSpan:
        digest = self.state.recorder.payload(cell.code)
        return self.state.recorder.start(
            "cell",
            sc.NAME_CELL,
            parent,
            {
                sc.OPERATION: "execute_tool",
                sc.TOOL_NAME: "python",
                sc.RUN_PATH: self.path,
                sc.DEPTH: self.depth,
                sc.ITERATION: iteration,
                sc.CELL: number,
                sc.CODE + ".sha256": digest,
                sc.CODE + ".chars": len(cell.code),
                sc.CODE + ".preview": preview(cell.code),
                sc.OI_INPUT: preview(cell.code),
                sc.CODE_HOW: cell.how,
                sc.PHASE: phase,
                sc.PREVIEW: preview(telling_line(cell.code)),
                sc.NAMES_READ: as_json(code.reads),
                sc.VALUES_READ: as_json({n: self._values[n] for n in code.reads if n in self._values}),
                sc.FINDINGS: as_json([finding.as_dict() for finding in code.findings]),
                sc.WORKER: self.environment.generation,
            },
        )

    def _finish(
        self,
        cell: Cell,
        code: CodeReport,
        report: CellReport,
        scope: CellScope,
        phase: str,
        touched: str | None,
    ) -> CellResult:
        self._learn(code, report, scope)
        if report.interrupted_by is None:
            self._history.append((scope.number, cell.code, report))
            self._passing.difference_update(report.written())
        else:
            self._passing.update(report.written())
        shown = self._shown(code.findings, report)
        if self.state.playback is not None:
            self.state.playback.ran(self.path, scope.number, report, shown)
        if report.answer is not None and report.answer.get("ready") is True and phase != "Terminate":
            phase = "Terminate"
        self._record(scope.span, report, shown, phase)
        scope.span.set({sc.TOUCHED: touched})
        if report.exception_type is not None:
            message = (report.exception or "").strip().splitlines()[-1:] or [""]
            scope.span.fail(report.exception_type, report.interrupted_by or message[0])
        else:
            scope.span.end("ok")
        return CellResult(report, shown, phase, scope.number, _budget_stop(report.interrupted_by))

    def _record(self, span: RunSpan, report: CellReport, shown: str, phase: str) -> None:
        span.text(sc.STDOUT, report.stdout)
        span.text(sc.STDOUT_SHOWN, shown)
        span.text(sc.VARIABLES, as_json(report.variables))
        if report.exception is not None:
            span.text(sc.EXCEPTION, report.exception)
        span.set(
            {
                sc.PHASE: phase,
                sc.STDOUT_TRUE_CHARS: report.true_chars,
                sc.STDOUT_RULE: self._rule(),
                sc.OI_OUTPUT: preview(shown),
                sc.EXCEPTION_TYPE: report.exception_type,
                sc.CELL_INTERRUPTED: report.interrupted_by,
                sc.NAMES_WRITTEN: as_json(report.written()),
                sc.CELL_WALL: round(report.wall_seconds, 6),
                sc.CELL_CPU: report.cpu_seconds,
            }
        )
        self._look_for(shown, span)
        if report.native_output:
            span.text(sc.NATIVE_OUTPUT, report.native_output)
            span.event(sc.EV_NOTICE, {"native_output": report.native_output[:4000]})

    def _look_for(self, shown: str, span: RunSpan) -> None:
        """Search for what of the corpus stands in what the root is shown."""
        self.state.sources.search_shown(Prompt.of(self.host.corpus, [[shown]]), span)

    def _rule(self) -> str:
        """By which rule the record keeps, and the root sees, less than a cell printed."""
        limits = self.state.limits
        return as_json(
            {"kept_chars": limits.output_kept_chars, "shown_chars": limits.output_shown_chars, "of": _KEPT}
        )

    def _learn(self, code: CodeReport, report: CellReport, scope: CellScope) -> None:
        """Names and values for the next checks, phases and records."""
        _take_values(self._values, report)
        for row in report.variables:
            if row["change"] == "deleted":
                self._names.discard(row["name"])
                self._from_calls.discard(row["name"])
            else:
                self._names.add(row["name"])
        self._names.update(code.writes if report.exception_type is None else ())
        if scope.submitted or self._from_calls.intersection(code.reads):
            self._from_calls.update(report.written())

    def _phase(self, code: CodeReport) -> str:
        """The first rule that fits: sets the answer, makes sub-calls, reads what came from sub-calls, none of
        these.
        """
        if code.ends_run:
            return "Terminate"
        if code.makes_sub_calls:
            return "Decompose"
        return "Aggregate" if self._from_calls.intersection(code.reads) else "Explore"

    def _shown(self, findings: list[Finding], report: CellReport) -> str:
        """What the root sees of a cell: output and traceback cut in the middle, then remarks."""
        limit = self.state.limits.output_shown_chars
        text = report.stdout
        if len(text) > limit:
            half = limit // 2
            said = left_out(report.true_chars - 2 * half, report.true_chars)
            text = f"{text[:half]}\n{said}\n{text[-half:]}"
        parts = [_safe(text.rstrip("\n"))] if text.strip() else []
        if report.exception is not None and report.interrupted_by is None:
            parts.append(_safe(cut_middle(report.exception.rstrip("\n"), _TRACEBACK_SHOWN)))
        if report.interrupted_by is not None:
            parts.append(f"[the cell was interrupted: {report.interrupted_by}; what it had set before stays]")
        for name in report.restored:
            parts.append(f"[{name} is a fixed name and was restored; your value is now {name}_]")
        parts += [
            f"[line {finding.line}: {finding.message}]"
            for finding in findings[:_MOST_NOTES]
            if finding.rule != "syntax"
        ]
        return "\n".join(parts) or "[no output]"

    async def _after_death(
        self, cell: Cell, code: CodeReport, death: WorkerDied, scope: CellScope, phase: str
    ) -> CellResult:
        """Rebuild the worker from the completed cells and tell the root what is gone."""
        span = scope.span
        lost = sorted(set(code.writes))
        passing = sorted(self._passing)
        self._passing.clear()
        self._values.clear()
        for _, _, before in self._history:
            _take_values(self._values, before)
        if last_words := self.environment.native_output:
            span.text(sc.NATIVE_OUTPUT, last_words)
        span.event(sc.EV_WORKER_DIED, {"cause": death.cause, "message": str(death)})
        self.state.notices.append(f"the worker was lost in cell {scope.number} and rebuilt: {death}")
        differences = await self._rebuild()
        span.event(sc.EV_REBUILT, {"cells": len(self._history), "differences": as_json(differences)})
        shown = (
            f"[{death}. A new process has run your {len(self._history)} earlier cells again, with the "
            "recorded answers of their sub-calls; nothing of this cell is left"
            f"{', lost: ' + ', '.join(lost[:20]) if lost else ''}.]"
        )
        if passing:
            shown += f"\n[what interrupted cells had set is gone too: {', '.join(passing[:20])}]"
        if differences:
            shown += f"\n[not everything came back the same: {'; '.join(differences[:5])}]"
        if self.state.playback is not None:
            self.state.playback.ran(self.path, scope.number, None, shown)
        span.text(sc.STDOUT_SHOWN, shown)
        self._look_for(shown, span)
        span.set(
            {
                sc.LOST_NAMES: as_json(sorted({*lost, *passing})),
                sc.OI_OUTPUT: preview(shown),
                sc.EXCEPTION_TYPE: "WorkerDied",
            }
        )
        span.fail("WorkerDied", str(death))
        return CellResult(None, shown, phase, scope.number)

    async def _rebuild(self) -> list[str]:
        """Run the completed cells again in a new worker; returns in words what differs from before."""
        await self.environment.close()
        await self.environment.start()
        self.host.begin_replay()
        differences: list[str] = []
        try:
            for number, code, before in self._history:
                try:
                    again = await self.environment.run_cell(number, code, self.host)
                except WorkerDied as death:
                    differences.append(f"cell {number} ended the new process too ({death})")
                    await self.environment.close()
                    await self.environment.start()
                    break
                differences += _differences(number, before, again)
                await self.environment.settle()
        except asyncio.CancelledError:
            await self.environment.close()
            raise
        finally:
            self.host.end_replay()
        if self.host.missed:
            differences.append(f"{self.host.missed} sub-calls were not the ones recorded")
        return differences


def _in_bytes(corpus: Corpus, parts: list[list[int]]) -> list[list[int]]:
    found = []
    for document, start, end in parts:
        with suppress(CorpusError):
            found.append([document, *corpus.byte_range(document, start, end)])
    return found


def _take_values(values: dict[str, str | None], report: CellReport) -> None:
    for row in report.variables:
        if row["change"] == "deleted":
            values.pop(row["name"], None)
        else:
            values[row["name"]] = row.get("hash")


def _differences(number: int, before: CellReport, again: CellReport) -> list[str]:
    """Exception types and value hashes that changed between two runs of a cell."""
    found = []
    if before.exception_type != again.exception_type:
        found.append(f"cell {number} ended with {again.exception_type or 'no exception'}")
    hashes = _hashes(again)
    for name, digest in _hashes(before).items():
        if hashes.get(name) != digest:
            found.append(f"{name} of cell {number} has another value")
    return found


def _hashes(report: CellReport) -> dict[str, Any]:
    return {row["name"]: row.get("hash") for row in report.variables if row.get("change") != "deleted"}


def telling_line(code: str) -> str:
    """The line that says most about a cell: one that makes sub-calls, else the first that does something."""
    lines = [line.strip() for line in code.splitlines()]
    calling = (line for line in lines if any(name + "(" in line for name in SUB_CALLS))
    doing = (line for line in lines if line and not line.startswith(("#", "import ", "from ", "def ", '"""')))
    return next(calling, None) or next(doing, "") or next(iter(lines), "")


def _budget_stop(reason: str | None) -> bool:
    return reason is not None and "refused by the budget" in reason


def _safe(text: str) -> str:
    """Output that holds fence lines is fenced longer, so that it cannot be read as a block of the
    conversation.
    """
    return fence(text) if "```" in text or "~~~" in text else text
