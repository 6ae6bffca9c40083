"""Iterations, cells and calls of an `rlms` run as spans, child runs to any depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core import semconv as sc
from traces.importers.foreign import ForeignSpan, TokenUse, Told, derived, known_wrong, missing, reported
from traces.importers.rlms_values import (
    LOCAL_TIME,
    Clock,
    Locals,
    calls_of_model,
    cost_of,
    one_batch,
    raised,
    usage_of,
)  # fmt: skip
from traces.importers.source import as_text
from traces.importers.values import amount, items, table, text

STDERR: Final = "rlms.stderr"  # payload prefix: the end of a cell's output that was printed there
METADATA: Final = "rlms.metadata"  # the settings of a run, as JSON
_NO_ROOT: Final = "rlms does not log the usage of its root"
_SHARED: Final = "the log gives all calls of a batch the usage of the one that ended last"
_MEAN: Final = "the log gives all calls of a batch the time of the batch divided by their number"
_CHILD_FAILED: Final = ("Error: Child RLM", "Error: Budget exhausted", "Error: Timeout exhausted")
_FAILED: Final = "failed"
_ALONE: Final = "alone"
_FIRST_TURN: Final = "You have not interacted with the REPL environment"
Messages = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Reading:
    """What the runs of one log have in common: its clock, and child runs whose inside is still to be read."""

    clock: Clock = field(default_factory=Clock)
    left_out: int = 0  # parts that should be objects and are none
    waiting: list[tuple[ForeignSpan, Mapping[str, Any]]] = field(default_factory=list)

    def objects(self, value: Any) -> list[Mapping[str, Any]]:
        """The JSON objects of a list; others are counted."""
        found: list[Mapping[str, Any]] = [one for one in items(value) if isinstance(one, dict)]
        self.left_out += len(items(value)) - len(found)
        return found

    def go_down(self) -> None:
        """Read the inside of all child runs found so far."""
        while self.waiting:  # a log may nest deeper than recursion goes
            span, call = self.waiting.pop()
            trajectory = table(call.get("metadata"))
            builder = RunBuilder(span, self, metadata=table(trajectory.get("run_metadata")), shared=True)
            for entry in items(trajectory.get("iterations")):
                builder.add(entry)
            builder.finish(call)


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
        elif start is None or end is None or end < start:
            lasted = missing()
        else:
            lasted = derived((end - start) / 1e9, "from the end of the iteration before to its own")
        iteration = ForeignSpan("iteration", start=_moment(start), seconds=lasted)
        iteration.children.append(self._root_call(entry, blocks, iteration))
        begun = None if seconds is None or start is None else start + round(_rest(seconds, blocks) * 1e9)
        for block in blocks:
            iteration.children.append(cell := self._cell(block, begun))
            begun = None if begun is None else begun + round((cell.seconds.value or 0) * 1e9)
        self.top.children.append(iteration)
        if self.first_ns is None:  # without the time of its first iteration a run began before its end
            self.first_ns = end if start is None else start
        self.last_ns = end if end is not None else self.last_ns
        self._take_answer(entry, blocks)

    def _root_call(
        self, entry: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]], iteration: ForeignSpan
    ) -> ForeignSpan:
        seconds, call = iteration.seconds, ForeignSpan("root_call", model=self.model, start=iteration.start)
        if seconds.value is not None:
            call.seconds = derived(_rest(seconds.value, blocks), "the iteration less its cells")
        call.tokens = missing(_NO_ROOT)
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
        cell.seconds = missing() if seconds is None else reported(seconds)
        code = as_text(block.get("code") or "")
        cell.texts[sc.CODE] = code
        if result.get("stdout") is not None:
            cell.texts[sc.STDOUT] = as_text(result["stdout"])
        _take_stderr(cell, as_text(result.get("stderr") or ""))
        if (variables := self._names.changes(result.get("locals"))) is not None:
            cell.texts[sc.VARIABLES] = variables
        calls = self.reading.objects(result.get("rlm_calls"))
        cell.children += _grouped(calls, one_batch(code), self.reading)
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
        elif not blocks and entry.get("iteration_time") is None:
            via = "forced"
        elif all(result is None for result in results):
            via = "FINAL_VAR" if "FINAL_VAR(" in as_text(entry.get("response")) else "FINAL"
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
            why = LOCAL_TIME if self.reading.clock.local else "the end of its first iteration less its time"
            top.start = derived(self.first_ns, why) if self.first_ns is not None else missing()
            if self.first_ns is not None and self.last_ns is not None and self.last_ns >= self.first_ns:
                top.seconds = derived(
                    (self.last_ns - self.first_ns) / 1e9, "from its first to its last iteration"
                )
            return
        if top.seconds.value is not None and self.last_ns is not None:
            top.start = _moment(self.last_ns - round(top.seconds.value * 1e9))
        top.attributes.setdefault(sc.STOP_REASON, "final")
        self._only_root_call(call)

    def _only_root_call(self, call: Mapping[str, Any]) -> None:
        """The usage of a child run is that of its root call, where that was the one call to its model."""
        roots = [span for span in self.top.walk() if span.kind == "root_call" and span.model == self.model]
        others = any(span.kind == "sub_call" and span.model == self.model for span in self.top.walk())
        if len(roots) != 1 or others or calls_of_model(call, self.model) != 1:
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


def _grouped(calls: Sequence[Mapping[str, Any]], whole: bool, reading: Reading) -> list[ForeignSpan]:
    """The calls of a cell with those of one batch under a span of their own.

    `llm_query_batched` leaves all its calls with one usage and one time. Nothing else tells a batch, unless
    the code asks nothing but one batch (`whole`).
    """
    found: list[ForeignSpan] = []
    for group in [list(calls)] if whole and calls else _together(calls):
        marks = [_mark_of_batch(call) for call in group]
        spans = [_call(call, marks.count(mark) > 1, reading) for call, mark in zip(group, marks, strict=True)]
        if len(group) == 1 and not whole and marks != [_FAILED]:
            found += spans
            continue
        failed = sum(span.error is not None for span in spans)
        batch = ForeignSpan("batch", children=spans)
        batch.attributes = {sc.BATCH_SIZE: len(spans), sc.BATCH_FAILED: failed}
        means = [span.seconds.value for span in spans if span.seconds.mark == "known_wrong"]
        if means and means[0] is not None:
            batch.seconds = derived(
                means[0] * len(group), "the mean time of its calls, as often as there are"
            )
        found.append(batch)
    return found


def _together(calls: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Calls next to one another that may be slots of one batch."""
    groups: list[tuple[set[str], list[Mapping[str, Any]]]] = []
    for call in calls:
        mark = _mark_of_batch(call)
        marks = (groups[-1][0] | {mark}) - {_FAILED} if groups else set()
        if groups and len(marks) < 2 and not any(one.startswith(_ALONE) for one in marks):
            groups[-1][0].add(mark)
            groups[-1][1].append(call)
        else:
            groups.append(({mark}, [call]))
    return [group for _, group in groups]


def _mark_of_batch(call: Mapping[str, Any]) -> str:
    """What calls of one batch have in common, and no others."""
    seconds, usage = amount(call.get("execution_time")), usage_of(call)
    if call.get("error") is not None:
        return _FAILED
    if call.get("metadata") is not None or not seconds or usage is None:
        return f"{_ALONE} {id(call)}"
    return as_text([call.get("root_model"), usage.input, usage.output, seconds])


def _call(call: Mapping[str, Any], shared: bool, reading: Reading) -> ForeignSpan:
    prompt, response = call.get("prompt"), call.get("response")
    usage, failure = usage_of(call), _failure(call)
    inside = isinstance(call.get("metadata"), dict)
    child = inside or (failure is not None and as_text(response or "").startswith(_CHILD_FAILED))
    span = ForeignSpan("run" if child else "sub_call", model=text(call.get("root_model")))
    seconds = amount(call.get("execution_time"))
    shared = shared and failure is None
    if seconds is not None and not (failure is not None and seconds == 0):
        span.seconds = known_wrong(seconds, _MEAN) if shared else reported(seconds)
    if prompt is not None:
        span.texts[sc.QUESTION if child else sc.PROMPT] = as_text(prompt)
    if response:
        span.texts[sc.ANSWER if child else sc.RESPONSE] = as_text(response)
    elif failure is None and response is not None and not child:
        span.texts[sc.RESPONSE] = ""
    if failure is not None:
        span.status, span.error = "error", ("call_failed", failure)
    if child:
        said = call.get("usage_summary")
        span.attributes |= {sc.USAGE_RAW: as_text(said)} if isinstance(said, dict) else {}
    else:
        span.tokens = _tokens(usage, shared)
        cost = cost_of(call)
        span.cost = missing() if cost is None else known_wrong(cost, _SHARED) if shared else reported(cost)
    if inside:
        reading.waiting.append((span, call))
    return span


def _tokens(usage: TokenUse | None, shared: bool) -> Told[TokenUse]:
    if usage is None:
        return missing()
    return known_wrong(usage, _SHARED) if shared else reported(usage)


def _failure(call: Mapping[str, Any]) -> str | None:
    """Why a call failed; None where it did not. A reply that only begins with "Error:" has a usage."""
    if call.get("error") is not None:
        return as_text(call["error"])
    response = call.get("response")
    failed = isinstance(response, str) and response.startswith("Error:") and usage_of(call) is None
    return response.removeprefix("Error:").strip() if isinstance(response, str) and failed else None


def _take_stderr(cell: ForeignSpan, stderr: str) -> None:
    """What a cell printed there belongs to its output, as in runs of this engine; its exception does not."""
    failed = raised(stderr)
    if failed is not None:
        cell.status, cell.error = "error", failed[:2]
        cell.texts[sc.EXCEPTION] = stderr.strip("\n")
        cell.attributes[sc.EXCEPTION_TYPE] = failed[0]
    printed = stderr if failed is None else failed[2]
    if printed:
        cell.texts[sc.STDOUT] = cell.texts.get(sc.STDOUT, "") + printed
        cell.texts[STDERR] = printed


def _rest(seconds: float, blocks: Sequence[Mapping[str, Any]]) -> float:
    """What is left of an iteration when its cells are taken off."""
    cells = (amount(table(block.get("result")).get("execution_time")) or 0 for block in blocks)
    return max(0.0, seconds - sum(cells))


def _moment(ns: int | None) -> Told[int]:
    return missing() if ns is None or ns < 0 else derived(ns)


def _message(one: Mapping[str, Any]) -> tuple[str, str]:
    return as_text(one.get("role") or ""), as_text(
        one.get("content") if one.get("content") is not None else ""
    )
