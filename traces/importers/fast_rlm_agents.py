"""One agent of fast-rlm as one run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rlm_core import semconv as sc
from traces.facts import LARGEST
from traces.importers.foreign import ForeignSpan, Told, derived, missing, reported
from traces.importers.source import as_text
from traces.importers.told import cost_of, tokens_of, told
from traces.importers.values import count, exception_in, moment, some_text, table, text

_WHOLE: Final = "[FULL OUTPUT SHOWN]... "  # what the engine puts before output that it did not cut
_EMPTY: Final = "[EMPTY OUTPUT]"  # what it writes where there was none
_CUT: Final = re.compile(r"\[TRUNCATED: Last \d+ chars shown\]\.\. ")  # before output that it cut
_NO_USAGE: Final = "the engine writes 0 where the provider reports nothing"
_BETWEEN: Final = "from its first to its last line"


class Agent:
    """Reads the lines of one agent in order and ends with `span`, complete after `finish`."""

    def __init__(self, name: str, caller: str | None) -> None:
        self.name, self.caller = name, caller
        self.span = ForeignSpan("run", status="lost", attributes={"fast_rlm.run_id": name})
        self.missing: list[str] = []
        self.lines: list[Any] = []
        self.ended = False
        self._first: int | None = None
        self._last: int | None = None
        self._cells = 0
        self._final: ForeignSpan | None = None  # the cell whose FINAL was taken
        self._answered = False
        self._groups: list[tuple[ForeignSpan, list[Agent]]] = []  # agents asked in each cell

    def take(self, line: Mapping[str, Any], asked: Sequence[Agent]) -> None:
        """One line of its own; `asked` are the agents that the code of this step has asked."""
        self.lines.append(line)
        if (when := moment(line.get("time"))) is not None:
            self._first = when if self._first is None else self._first
            self._last = when
        kind = line["event_type"]
        if kind == "final_result":
            self._answer(as_text(line.get("result")))
        elif kind == "agent_end":
            self.ended = True
        elif kind != "agent_start":
            self._step(line, asked)

    def left_open(self, asked: Sequence[Agent]) -> None:
        """Agents asked in a step whose own line was never written."""
        call, cell = ForeignSpan("root_call"), ForeignSpan("cell", status="lost")  # its code ran: it replied
        self.span.children.append(ForeignSpan("iteration", status="lost", children=[call, cell]))
        self._cells += 1
        self._groups.append((cell, list(asked)))
        self._note("The code of a step that was not over is not in the record.")

    def disown(self, asked: Agent) -> None:
        """Leave out an agent that cannot have been asked by this one; it has no caller then."""
        asked.caller = None
        self._groups = [(cell, [one for one in group if one is not asked]) for cell, group in self._groups]

    def with_those_below(self) -> Iterator[Agent]:
        """This agent and all that were asked below it, callers first."""
        waiting = [self]
        while waiting:
            agent = waiting.pop()
            yield agent
            waiting += [below for _, asked in agent._groups for below in asked]

    def finish(self) -> None:
        """Put the agents that it asked into its cells, and tell how it ended. They are finished already."""
        for cell, asked in self._groups:
            cell.children += _at_once([agent.span for agent in asked])
        span = self.span
        if self._first is not None and self._last is not None:
            span.start = reported(self._first)
            span.seconds = derived((self._last - self._first) / 1e9, _BETWEEN)
        if self._final is not None and not self._answered:
            self._read_off()
        if self._answered or self._final is not None:
            self.ended, span.status = True, "ok"
            span.attributes |= {sc.ANSWER_VIA: "FINAL", sc.STOP_REASON: "final"}
            if self._final is not None:
                span.attributes[sc.ANSWER_CELL] = self._cells - 1
        elif self.ended:
            span.status = "error"
            span.error = ("no_result", "The agent ended without a result; why is not in the record.")
        else:
            self._note("An agent has no end in the record: it was stopped, or it failed.")

    def _note(self, sentence: str) -> None:
        """Something that the record does not say; once."""
        if sentence not in self.missing:
            self.missing.append(sentence)

    def _answer(self, answer: str) -> None:
        self._answered = True
        self.span.texts[sc.ANSWER] = answer

    def _read_off(self) -> None:
        """The answer out of the code that gave it, where the engine ended before it had written it down."""
        said = "The result is not in the record: the engine ended before its last lines were written."
        code = self._final.texts[sc.CODE] if self._final is not None else ""
        try:
            last = ast.parse(code).body[-1]
            call = last.value if isinstance(last, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "FINAL" and len(call.args) == 1:
                self._answer(as_text(ast.literal_eval(call.args[0])))
                said = said[:-1] + "; the answer was read off the code."
        except (SyntaxError, ValueError, TypeError, IndexError, MemoryError, RecursionError):
            pass
        self._note(said)

    def _step(self, line: Mapping[str, Any], asked: Sequence[Agent]) -> None:
        times = table(line.get("timestamps"))
        turn = ForeignSpan("iteration")
        if (step := count(line.get("step"))) is not None:
            turn.attributes["fast_rlm.step"] = step
        called, replied = moment(times.get("llm_call_start")), moment(times.get("llm_call_end"))
        began, over = moment(times.get("execution_start")), moment(times.get("execution_end"))
        if called is not None or step != 0:
            turn.children.append(_call(line, times))
        if text(line.get("code")) and (began is not None or line["event_type"] == "execution_result"):
            turn.children.append(self._cell(line, times, asked))
        else:
            turn.status, turn.error = "error", ("no_code_block", "The reply had no code that could be run.")
            if asked:
                self._groups.append((turn, list(asked)))
        first, last = (called if called is not None else began), (over if over is not None else replied)
        if first is not None:
            turn.start = reported(first)
        if first is not None and last is not None:
            turn.seconds = derived((last - first) / 1e9)
        self.span.children.append(turn)

    def _cell(self, line: Mapping[str, Any], times: Mapping[str, Any], asked: Sequence[Agent]) -> ForeignSpan:
        cell = ForeignSpan("cell", texts={sc.CODE: str(line["code"])})
        cell.start, cell.seconds = _told(times.get("execution_start"), times.get("execution_end"))
        self._cells += 1
        self._groups.append((cell, list(asked)))
        output = some_text(line.get("output"))
        if line["event_type"] == "code_generated":  # FINAL was called and its value taken
            cell.attributes[sc.PHASE] = "Terminate"
            self._final = cell
        elif output is not None:
            cell.texts[sc.STDOUT_SHOWN] = output
            printed = "" if output == _EMPTY else output.removeprefix(_WHOLE)
            if cut := _CUT.match(output):
                printed = output[cut.end() :]
                self._note("Of long output only the end is in the record, as the engine cut it.")
            if line.get("hasError") is True:
                printed = _failed(cell, printed)
            if printed:
                cell.texts[sc.STDOUT] = printed
        return cell


def _call(line: Mapping[str, Any], times: Mapping[str, Any]) -> ForeignSpan:
    call = ForeignSpan("root_call")
    call.start, call.seconds = _told(times.get("llm_call_start"), times.get("llm_call_end"))
    if reasoning := some_text(line.get("reasoning")):
        call.texts[sc.REASONING] = reasoning
    usage = table(line.get("usage"))
    call.tokens = tokens_of(usage, "prompt_tokens", "completion_tokens", _NO_USAGE)
    if call.tokens.value is not None:
        cached, thought = count(usage.get("cached_tokens")), count(usage.get("reasoning_tokens"))
        call.tokens = reported(replace(call.tokens.value, cache_read=cached, reasoning=thought))
    call.cost = cost_of(usage)
    return call


def _told(start: Any, end: Any) -> tuple[Told[int], Told[float]]:
    """When something began and how long it took, by both times as the record has them."""
    began, over = told(start, moment), told(end, moment)
    if began.value is None or over.value is None:
        return began, missing(over.why)
    return began, reported((over.value - began.value) / 1e9)


def _failed(cell: ForeignSpan, output: str) -> str:
    """Mark a cell that raised, and give what it had printed before."""
    before, mark, trace = output.rpartition("Error: Traceback (most recent call last):\n")
    raised = exception_in(output.rstrip()) or ("", "error", output.strip()[-200:])
    cell.status, cell.error = "error", (raised[1], raised[2])
    cell.attributes[sc.EXCEPTION_TYPE] = raised[1]
    if not mark:
        return output
    cell.texts[sc.EXCEPTION] = "Traceback (most recent call last):\n" + trace.rstrip()
    return before.removesuffix("\n")


def _at_once(spans: list[ForeignSpan]) -> list[ForeignSpan]:
    """Child runs of one cell; those that ran at the same time stand in a batch."""
    groups: list[list[ForeignSpan]] = []
    until = -1
    for span in spans:
        start, seconds = span.start.value, span.seconds.value
        if not groups or start is None or start >= until:
            groups.append([])
        groups[-1].append(span)
        if start is not None:
            until = LARGEST if span.status == "lost" else max(until, start + round((seconds or 0) * 1e9))
    return [group[0] if len(group) == 1 else _batch(group) for group in groups]


def _batch(spans: list[ForeignSpan]) -> ForeignSpan:
    batch = ForeignSpan("batch", children=spans, attributes={sc.BATCH_SIZE: len(spans)})
    batch.attributes[sc.BATCH_FAILED] = sum(span.status != "ok" for span in spans)
    starts = [span.start.value for span in spans if span.start.value is not None]
    if starts:
        ends = [
            span.start.value + round((span.seconds.value or 0) * 1e9)
            for span in spans
            if span.start.value is not None
        ]
        batch.start = derived(min(starts), "when the first of its agents began")
        batch.seconds = derived((max(ends) - min(starts)) / 1e9)
    return batch
