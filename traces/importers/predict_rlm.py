"""Traces of predict-rlm (RunTrace), alone or inside a saved prediction, as JSON or lines of JSON.

Its steps are those of dspy.RLM, with tokens, costs, durations, and the calls of `predict` and of tools that
code made. Of those the engine groups equal ones together: their order, and when they began, is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from rlm_core.telemetry import as_json
from traces.importers.dspy import answer_of, sorted_out, turn
from traces.importers.foreign import (
    NO_PREDICTIONS,
    ForeignRun,
    ForeignSpan,
    TokenUse,
    Told,
    derived,
    missing,
    reported,
)
from traces.importers.source import Source, as_text
from traces.importers.told import cost_of, milliseconds, tokens_of, unusable
from traces.importers.totals import Balance, Total
from traces.importers.values import (
    Document,
    Once,
    count,
    digest,
    documents,
    dollars,
    items,
    some_text,
    table,
    text,
    uses,
)

_STATUSES: Final = ("in_progress", "completed", "max_iterations", "error")
_NOT_OUTPUTS: Final = frozenset(("trace", "evidence", "events"))
_STEP: Final = (
    "iteration", "reasoning", "code", "output", "untruncated_output", "error", "duration_ms", "tool_calls",
    "predict_calls", "lm", "usage", "adapter_fallbacks",
)  # fmt: skip
_NO_USAGE: Final = "the engine writes 0 where the provider reports nothing, or a cache answered"
_PREDICT: Final = ("predict",)
_MISSING: Final = (
    "Prompts are not in the record: signature, instructions and inputs of a call stand for them.",
    "Of what the root wrote only its reasoning and its code are in the record; what it was sent is not.",
    "Calls of predict are grouped by what they ask: in which order groups were asked, and what was asked at "
    "the same time, is not in the record, nor when each call began.",
    "A cost of 0 is taken as unknown: the engine writes it where it knows no price.",
)


def recognises(source: Source) -> bool:
    """Whether it holds a RunTrace."""
    if source.is_folder:
        return False
    head = source.head()
    if not (b'"steps"' in head and b'"status"' in head):
        return False
    return any(_trace(found.value) for found in documents(source, _is_trace))


def read(source: Source) -> Iterator[ForeignRun]:
    """A run for each trace of the file. Raises InputError when there is none."""
    seen = False
    for found in documents(source, _is_trace):
        if _is_trace(found.value):
            seen = True
            yield _Trace(found).run()
    if not seen:
        raise InputError(f"{source.name} holds no trace of predict-rlm that can be read.")


def _is_trace(value: Any) -> bool:
    return bool(_trace(value))


def _trace(value: Any) -> Mapping[str, Any]:
    """The RunTrace that a document is or holds; empty for others."""
    found = table(value)
    trace = found if "steps" in found else table(found.get("trace"))
    named = trace.get("status") in _STATUSES and isinstance(trace.get("model"), str)
    return trace if named and "steps" in trace else {}


class _Trace:
    """One run out of a trace, or out of the prediction around it."""

    def __init__(self, document: Document) -> None:
        found = table(document.value)
        self._trace, self._whole = _trace(found), document.whole
        beside = {} if self._trace is found else found
        self._outputs = {name: value for name, value in beside.items() if name not in _NOT_OUTPUTS}
        self._events = _Events(table(beside.get("evidence")))
        self._problems = [] if document.problem is None else [document.problem]
        self._missing = list(_MISSING)
        self._balance = Balance(self._missing, self._problems)
        if "evidence" in beside:
            self._missing.append("Of the evidence beside the trace only times and inputs are taken in.")
        listed = [step for step in items(self._trace.get("steps")) if isinstance(step, dict)]
        once = Once()
        self._steps = [step for step in listed if once.is_first(count(step.get("iteration")), step)]
        self._problems += once.problems("Steps")
        self._top = ForeignSpan("run")

    def run(self) -> ForeignRun:
        """The run."""
        trace, top, status = self._trace, self._top, self._trace["status"]
        model, sub_model = text(trace["model"]), text(trace.get("sub_model"))
        top.model = model
        top.children = [self._turn(step, number) for number, step in enumerate(self._steps)]
        top.seconds = _seconds(trace)
        if (most := count(trace.get("max_iterations"))) is not None:
            top.attributes[sc.LIMITS] = as_json({"max_iterations": most})
        self._events.put_on(top)
        self._extract(status)
        self._compare(status)
        self._end(status)
        if top.start.value is None:
            self._missing.append("When the run began is not in the record: order and durations are known.")
        if sc.QUESTION not in top.texts:
            self._missing.append("The question and the inputs are not in the record.")
        if sc.ANSWER not in top.texts:
            self._missing.append("The answer is not in the record.")
        if self._balance.lacks_calls:
            top.attributes[sc.IMPORT_LACKS_CALLS] = True
        return ForeignRun(
            format="predict-rlm",
            engine="predict-rlm",
            key=digest([trace, self._outputs]),
            stem=digest(self._steps[0]) if self._steps and top.children[0].seconds.value else None,
            top=top,
            root_model=model,
            sub_model=sub_model,
            missing=self._missing,
            problems=self._problems + unusable(top),
            closed=status != "in_progress" and self._whole,
        )

    def _turn(self, step: Mapping[str, Any], number: int) -> ForeignSpan:
        iteration = turn(step, _STEP)
        call, cell = iteration.children
        call.model = text(self._trace["model"])
        main = table(table(step.get("usage")).get("main"))
        call.tokens, call.cost = _use(main), _cost(main)
        _finished(call, step)
        iteration.seconds = _seconds(step)
        if (full := some_text(step.get("untruncated_output"))) and sc.STDOUT in cell.texts:
            cell.texts[sc.STDOUT] = full
        if step.get("error") is True and cell.status != "error":
            cell.status, cell.error = "error", ("error", some_text(step.get("output")) or "")
        for group in filter(None, map(table, items(step.get("predict_calls")))):
            called = filter(None, map(table, items(group.get("calls"))))
            cell.children += [_predicted(group, one) for one in called]
        cell.children += [_tool(one) for one in filter(None, map(table, items(step.get("tool_calls"))))]
        self._events.put_on_turn(iteration, count(step.get("iteration")) or number + 1)
        return iteration

    def _extract(self, status: str) -> None:
        """The call that asks for an answer when the turns are used up: what it took the total will tell."""
        total = table(table(self._trace.get("usage")).get("main"))
        of_steps = [table(table(step.get("usage")).get("main")) for step in self._steps]
        left = [
            (count(total.get(name)) or 0) - sum(count(one.get(name)) or 0 for one in of_steps)
            for name in ("input_tokens", "output_tokens")
        ]
        if status != "max_iterations" and not (status == "error" and min(left) > 0):
            return
        call = ForeignSpan("root_call", model=text(self._trace["model"]))
        iteration = ForeignSpan("iteration", attributes={sc.FORCED: True}, children=[call])
        if status == "error":
            iteration.status = call.status = "error"
        self._top.children.append(iteration)

    def _end(self, status: str) -> None:
        top = self._top
        last = self._steps[-1] if self._steps else {}
        ended = str(last.get("output")).startswith("FINAL: ")
        if status == "in_progress":
            self._missing.append("The record was made while the run went on: it has no end.")
            top.status = "lost"
            return
        if status == "error":
            top.status, top.error = "error", ("error", "The run failed; why is not in the record.")
            top.attributes[sc.STOP_REASON] = "error"
            return
        outputs, beside = sorted_out(self._outputs, last if ended else {})
        if (answer := answer_of(outputs)) is not None:
            top.texts[sc.ANSWER] = answer
        if beside:
            top.keep("predict_rlm.saved_beside", as_json(beside))
        forced = status == "max_iterations"
        top.attributes |= {
            sc.ANSWER_VIA: "forced" if forced else "SUBMIT",
            sc.STOP_REASON: "max_iterations" if forced else "final",
            **({sc.FORCED: True} if forced else {sc.ANSWER_CELL: len(self._steps) - 1}),
        }

    def _compare(self, status: str) -> None:
        """What the record says of all calls together, of steps and code, against the calls that it holds."""
        spans, totals = list(self._top.walk()), table(self._trace.get("usage"))
        roots = [span for span in spans if span.kind == "root_call"]
        subs = [span for span in spans if span.kind == "sub_call"]
        told = count(self._trace.get("iterations"))
        cut = told is not None and told > len(self._steps)
        self._balance.compare(_total("root calls", [totals.get("main")]), roots, whole=not cut)
        of_steps = [table(step.get("usage")).get("sub") for step in self._steps]
        groups = [table(group) for step in self._steps for group in items(step.get("predict_calls"))]
        sums = ([totals.get("sub")], of_steps, [group.get("total_usage") for group in groups])
        said = [_total("sub-calls", usages) for usages in sums]
        total = max(said, key=_size)
        self._balance.compare(total, subs, whole=not cut)
        if (0, 0) < _size(said[0]) < _size(total):
            self._balance.compare(said[0], subs)
        if not subs and (_size(total) > (0, 0) or any(map(_predicts, self._steps))):
            self._missing.append(NO_PREDICTIONS)
            self._balance.lacks_calls = True
        if cut and status != "in_progress":
            self._balance.lacks_calls = True
            if self._whole:
                self._problems.append(f"The run had {told:,} steps; the record holds {len(self._steps):,}.")


class _Events:
    """The evidence that newer versions keep beside a trace: what a run was given, and when code ran."""

    def __init__(self, evidence: Mapping[str, Any]) -> None:
        self._inputs: Mapping[str, Any] = {}
        self._began: int | None = None
        self._code: dict[tuple[str, int], int] = {}  # by kind of event and number of the step
        for event in filter(None, map(table, items(evidence.get("events")))):
            data, when = table(event.get("data")), count(event.get("timestamp_ns"))
            if event.get("kind") == "run.started":
                self._inputs, self._began = table(data.get("inputs")), when
            elif when is not None and (number := count(data.get("iteration"))) is not None:
                self._code[str(event.get("kind")), number] = when

    def put_on(self, top: ForeignSpan) -> None:
        """What is known of the whole run."""
        if self._began is not None:
            top.start = reported(self._began)
        given = self._inputs
        if question := text(given.get("question")) or text(given.get("query")):
            top.texts[sc.QUESTION] = question
        if given:
            top.texts[sc.CHILD_CONTEXT] = as_json(given)

    def put_on_turn(self, iteration: ForeignSpan, number: int) -> None:
        """When the code of a step began and ended."""
        began, over = (self._code.get((kind, number)) for kind in ("code.generated", "code.executed"))
        cell = iteration.children[1]
        if began is not None:
            cell.start = reported(began)
        if began is not None and over is not None and over >= began:
            cell.seconds = derived((over - began) / 1e9, "from when it was written to when it had run")
            spent = iteration.seconds.value
            if spent is not None:
                iteration.start = derived(over - round(spent * 1e9), "its end less its duration")


def _predicted(group: Mapping[str, Any], one: Mapping[str, Any]) -> ForeignSpan:
    """A call of `predict`."""
    call = ForeignSpan("sub_call", model=text(group.get("model")), seconds=_seconds(one))
    asked = [some_text(group.get("signature")), some_text(group.get("instructions"))]
    asked.append(as_json(table(one.get("input"))))
    call.texts[sc.PROMPT] = "\n".join(filter(None, asked))
    if (said := answer_of(table(one.get("output")))) is not None:
        call.texts[sc.RESPONSE] = said
    call.tokens, call.cost = _use(table(one.get("usage"))), _cost(table(one.get("usage")))
    if error := some_text(one.get("error")):
        call.status, call.error = "error", ("error", error)
    _finished(call, one)
    return call


def _tool(one: Mapping[str, Any]) -> ForeignSpan:
    named = text(one.get("name")) or "tool"
    tool = ForeignSpan("tool", name=f"execute_tool {named}", seconds=_seconds(one))
    tool.attributes[sc.TOOL_NAME] = named
    tool.texts[sc.TOOL_ARGUMENTS] = as_json(
        {"args": items(one.get("args")), "kwargs": table(one.get("kwargs"))}
    )
    tool.texts[sc.TOOL_RESULT] = as_text(one.get("result"))
    if error := some_text(one.get("error")):
        tool.status, tool.error = "error", ("error", error)
    return tool


def _predicts(step: Mapping[str, Any]) -> bool:
    """Whether its code uses `predict`, the one way to ask the sub-model."""
    return uses(str(step.get("code")), _PREDICT)


def _total(named: str, usages: Sequence[Any]) -> Total:
    """The sum of some usages, as far as they can be used; a 0 of them is taken as unknown."""
    told = [table(usage) for usage in usages]
    used, made = (sum(count(one.get(f"{side}_tokens")) or 0 for one in told) for side in ("input", "output"))
    usd = sum((dollars(one.get("cost")) or Decimal(0) for one in told), Decimal(0))
    return Total(named, used or None, made or (0 if used else None), usd or None)


def _size(total: Total) -> tuple[Decimal, int]:
    return total.usd or Decimal(0), (total.input or 0) + (total.output or 0)


def _use(usage: Mapping[str, Any]) -> Told[TokenUse]:
    return tokens_of(usage, "input_tokens", "output_tokens", _NO_USAGE)


def _cost(usage: Mapping[str, Any]) -> Told[Decimal]:
    cost = cost_of(usage)
    return cost if cost.value else missing(cost.why)


def _seconds(timed: Mapping[str, Any]) -> Told[float]:
    return milliseconds(timed.get("duration_ms"))


def _finished(call: ForeignSpan, told: Mapping[str, Any]) -> None:
    if reason := text(table(told.get("lm")).get("finish_reason")):
        call.attributes[sc.FINISH_REASONS] = as_json([reason])
