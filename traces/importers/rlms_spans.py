"""Iterations, cells and calls of an `rlms` run as spans, child runs to any depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core import semconv as sc
from traces.importers.foreign import ForeignSpan, Told, derived, missing, reported
from traces.importers.rlms_calls import METADATA, STDERR, Reading, grouped
from traces.importers.rlms_values import (
    LOCAL_TIME,
    Locals,
    calls_of_model,
    cost_of,
    one_batch,
    raised,
    told,
    usage_of,
)  # fmt: skip
from traces.importers.source import as_text
from traces.importers.told import lacking
from traces.importers.values import amount, items, table, text

_NO_ROOT: Final = "rlms does not log the usage of its root"
_FIRST_UNTIMED: Final = "the end of its first iteration, whose time is not in the log"
_FIRST_TURN: Final = "You have not interacted with the REPL environment"
Messages = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class RunBuilder:
    """Fills the span of a run or child run, iteration by iteration.

    `shared`: all iterations cite the one list of messages that grew along the run, as in trajectories that
    rlms kept in memory; each is cut off before the reply that it asked for.
    """

    top: ForeignSpan
    reading: Reading
    metadata: Mapping[str, Any]
    shared: bool = False
    answered: bool = False
    cells: int = 0
    last_ns: int | None = None
    first_ns: int | None = None
    _timed: bool = True  # whether the first iteration has a time, so that its beginning is known
    _names: Locals = field(default_factory=Locals)
    _sent: Messages = ()
    _replied: int = 0  # messages up to the last reply

    @property
    def model(self) -> str | None:
        """The root model."""
        return text(self.metadata.get("root_model"))

    def add(self, entry: Any) -> None:
        """One iteration of the log; anything else is passed over."""
        if not isinstance(entry, dict):
            self.reading.left_out += 1
            return
        blocks = self.reading.objects(entry.get("code_blocks"))
        end, seconds = self.reading.clock.ns(entry.get("timestamp")), amount(entry.get("iteration_time"))
        start = self.last_ns if seconds is None else None if end is None else end - round(seconds * 1e9)
        if seconds is not None:
            lasted = reported(seconds)
        elif start is None or end is None or end < start or entry.get("iteration_time") is not None:
            lasted = lacking(entry.get("iteration_time"))
        else:
            lasted = derived((end - start) / 1e9, "from the end of the iteration before to its own")
        iteration = ForeignSpan("iteration", start=_moment(start), seconds=lasted)
        iteration.children.append(self._root_call(entry, blocks, iteration))
        rest = None if seconds is None else _rest(seconds, blocks)
        begun = None if rest is None or start is None else start + round(rest * 1e9)
        for block in blocks:
            iteration.children.append(cell := self._cell(block, begun))
            begun = None if begun is None else begun + round((cell.seconds.value or 0) * 1e9)
        self.top.children.append(iteration)
        if self.first_ns is None:  # without the time of its first iteration a run began before its end
            self.first_ns, self._timed = (end, False) if start is None else (start, True)
        self.last_ns = end if end is not None else self.last_ns
        self._take_answer(entry, blocks)

    def _root_call(
        self, entry: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]], iteration: ForeignSpan
    ) -> ForeignSpan:
        seconds, call = iteration.seconds, ForeignSpan("root_call", model=self.model, start=iteration.start)
        if seconds.value is not None and (rest := _rest(seconds.value, blocks)) is not None:
            call.seconds = derived(rest, "the iteration less its cells")
        usage, cost = usage_of(entry), cost_of(entry)  # only in logs that this program wrote
        call.tokens = told(entry, "tokens", usage)
        if usage is None and call.tokens.why is None:
            call.tokens = missing(_NO_ROOT)
        call.cost = told(entry, "cost", cost)
        reply = entry.get("response")
        if reply is not None:
            call.texts[sc.RESPONSE] = as_text(reply)
        call.messages = self._messages(entry.get("prompt"), call.texts.get(sc.RESPONSE))
        return call

    def _messages(self, prompt: Any, reply: str | None) -> Messages | None:
        if isinstance(prompt, str):
            return (("user", prompt),)
        if not isinstance(prompt, list):
            return None
        sent = [_message(one) for one in prompt]
        if self.shared:
            first = self._replied if self._replied <= len(sent) else 0
            own = (place for place in range(first, len(sent)) if sent[place] == ("assistant", reply))
            place = next(own, len(sent))
            sent, self._replied = sent[:place], place + (place < len(sent))
        kept = [old if old == new else new for old, new in zip(self._sent, sent, strict=False)]
        self._sent = (*kept, *sent[len(kept) :])  # each line repeats all messages: they are held once
        return self._sent

    def _cell(self, block: Mapping[str, Any], begun: int | None) -> ForeignSpan:
        result, seconds = (
            table(block.get("result")),
            amount(table(block.get("result")).get("execution_time")),
        )
        cell = ForeignSpan("cell", start=_moment(begun))
        cell.seconds = lacking(result.get("execution_time")) if seconds is None else reported(seconds)
        code = as_text(block.get("code") or "")
        cell.texts[sc.CODE] = code
        if result.get("stdout") is not None:
            cell.texts[sc.STDOUT] = as_text(result["stdout"])
        _take_stderr(cell, as_text(result.get("stderr") or ""))
        if (variables := self._names.changes(result.get("locals"))) is not None:
            cell.texts[sc.VARIABLES] = variables
        calls = self.reading.objects(result.get("rlm_calls"))
        cell.children += grouped(calls, one_batch(code), self.reading)
        self.cells += 1
        return cell

    def _take_answer(self, entry: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> None:
        final = entry.get("final_answer")
        if final is None:
            return
        via = "answer"
        results = [table(block.get("result")).get("final_answer") for block in blocks]
        if isinstance(final, list) and len(final) == 2 and final[0] in ("FINAL", "FINAL_VAR"):
            via, final = final
        elif entry.get("forced", not blocks and entry.get("iteration_time") is None):
            via = "forced"
            self.top.children[-1].attributes |= {sc.FORCED: True, sc.PREVIEW: "forced answer"}
        elif all(result is None for result in results):
            forms = ("FINAL_VAR", "FINAL")
            via = next((form for form in forms if f"{form}(" in as_text(entry.get("response"))), "reply")
        else:
            which = next(place for place, result in enumerate(results) if result is not None)
            self.top.attributes[sc.ANSWER_CELL] = self.cells - len(blocks) + which
        self.top.texts[sc.ANSWER] = as_text(final)
        reason = "max_iterations" if via == "forced" else "final"
        self.top.attributes |= {sc.ANSWER_VIA: via, sc.STOP_REASON: reason, sc.FORCED: via == "forced"}
        self.answered = True

    def finish(self, call: Mapping[str, Any] | None = None) -> None:
        """After the last iteration. `call` is the entry of a child run in the log of the one that made it."""
        top, model = self.top, self.model
        if model is not None:
            top.attributes[sc.ROOT_MODEL] = model
        if self.metadata:
            top.attributes[METADATA] = as_text(self.metadata)
        if call is None:
            top.start, top.seconds = self._times()
            return
        if top.seconds.value is not None and self.last_ns is not None:
            top.start = _moment(self.last_ns - round(top.seconds.value * 1e9))
        top.attributes.setdefault(sc.STOP_REASON, "final")
        self._only_root_call(call)

    def _times(self) -> tuple[Told[int], Told[float]]:
        """When the run began and how long it took, as far as its iterations tell."""
        first, last = self.first_ns, self.last_ns
        if first is None or last is None:
            return missing(), missing()
        why = "the end of its first iteration less its time" if self._timed else _FIRST_UNTIMED
        start = derived(first, f"{why}. {LOCAL_TIME}" if self.reading.clock.local else why)
        if not self._timed or last < first:
            return start, missing(None if self._timed else "its first iteration has no time in the log")
        return start, derived((last - first) / 1e9, "from its first to its last iteration")

    def _only_root_call(self, call: Mapping[str, Any]) -> None:
        """The usage of a child run is that of its root call, where that was the one call to its model."""
        roots = [span for span in self.top.walk() if span.kind == "root_call" and span.model == self.model]
        others = any(span.kind == "sub_call" and span.model == self.model for span in self.top.walk())
        if (
            len(roots) != 1
            or others
            or roots[0].tokens.value is not None
            or calls_of_model(call, self.model) != 1
        ):
            return
        why = "the usage of the child run, whose only call to a model this was"
        usage, cost = usage_of(call), cost_of(call)
        if usage is not None:
            roots[0].tokens = derived(usage, why)
        if cost is not None:
            roots[0].cost = derived(cost, why)


def starts_anew(entry: Mapping[str, Any]) -> bool:
    """Whether the root is told that it has not seen anything yet, as at the beginning of each run."""
    messages = items(entry.get("prompt"))
    last = messages[-1] if messages else None
    return isinstance(last, dict) and as_text(last.get("content") or "").startswith(_FIRST_TURN)


def _take_stderr(cell: ForeignSpan, stderr: str) -> None:
    """What a cell printed there belongs to its output, as in runs of this engine; its exception does not."""
    failed = raised(stderr)
    if failed is not None:
        cell.status, cell.error = "error", failed[:2]
        cell.texts[sc.EXCEPTION] = stderr[len(failed[2]) :].lstrip("\n")
        cell.attributes[sc.EXCEPTION_TYPE] = failed[0]
    printed = stderr if failed is None else failed[2]
    if printed:
        cell.texts[sc.STDOUT] = cell.texts.get(sc.STDOUT, "") + printed
        cell.texts[STDERR] = printed


def _rest(seconds: float, blocks: Sequence[Mapping[str, Any]]) -> float | None:
    """What is left of an iteration when its cells are taken off; None where one of them has no time."""
    cells = [amount(table(block.get("result")).get("execution_time")) for block in blocks]
    known = [cell for cell in cells if cell is not None]
    return max(0.0, seconds - sum(known)) if len(known) == len(cells) else None


def _moment(ns: int | None) -> Told[int]:
    return missing() if ns is None or ns < 0 else derived(ns)


def _message(one: Any) -> tuple[str, str]:
    if not isinstance(one, dict):
        return "", as_text(one)
    content = one.get("content")
    return as_text(one.get("role") or ""), "" if content is None else as_text(content)


def go_down(reading: Reading) -> None:
    """Read the inside of all child runs found so far."""
    while reading.waiting:  # a log may nest deeper than recursion goes
        span, call = reading.waiting.pop()
        trajectory = table(call.get("metadata"))
        builder = RunBuilder(span, reading, metadata=table(trajectory.get("run_metadata")), shared=True)
        for entry in items(trajectory.get("iterations")):
            builder.add(entry)
        builder.finish(call)
