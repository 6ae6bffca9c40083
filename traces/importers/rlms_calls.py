"""The calls of a cell in a log of `rlms`: sub-calls, child runs, and which of them were one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core import semconv as sc
from traces.importers.foreign import ForeignSpan, derived, known_wrong, reported
from traces.importers.rlms_values import Clock, cost_of, told, usage_of
from traces.importers.source import as_text
from traces.importers.told import lacking
from traces.importers.values import amount, items, text

WRITTEN_HERE: Final = "rlmscope"  # the back end in logs that this program wrote
STDERR: Final = "rlms.stderr"  # payload prefix: the end of a cell's output that was printed there
LACKS_CALLS: Final = "lacks_calls"  # among the settings in such logs: calls are known to be nowhere in them
METADATA: Final = "rlms.metadata"  # the settings of a run, as JSON
_SHARED: Final = "the log gives all calls of a batch the usage of the one that ended last"
_MEAN: Final = "the log gives all calls of a batch the time of the batch divided by their number"
_CHILD_FAILED: Final = ("Error: Child RLM", "Error: Budget exhausted", "Error: Timeout exhausted")
_FAILED: Final = "failed"
_GIVEN: Final = "given"
_ALONE: Final = "alone"


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


def grouped(calls: Sequence[Mapping[str, Any]], whole: bool, reading: Reading) -> list[ForeignSpan]:
    """The calls of a cell with those of one batch under a span of their own.

    `llm_query_batched` leaves all its calls with one usage and one time. Nothing else tells a batch, unless
    the code asks nothing but one batch (`whole`).
    """
    found: list[ForeignSpan] = []
    whole = whole and bool(calls) and not any("batch" in call for call in calls)
    for group in [list(calls)] if whole else _together(calls):
        marks = [_mark_of_batch(call) for call in group]
        alike = [marks.count(mark) > 1 and not mark.startswith(_GIVEN) for mark in marks]
        mean = whole and _FAILED in marks  # only `llm_query_batched` logs failures so, and means as times
        spans = [
            _call(call, shared, shared or mean, reading) for call, shared in zip(group, alike, strict=True)
        ]
        if len(group) == 1 and not whole and not marks[0].startswith((_FAILED, _GIVEN)):
            found += spans
            continue
        failed = sum(span.error is not None for span in spans)
        batch = ForeignSpan("batch", children=spans)
        batch.attributes = {sc.BATCH_SIZE: len(spans), sc.BATCH_FAILED: failed}
        means = [span.seconds.value for span in spans if span.seconds.mark == "known_wrong"]
        if means and means[0] is not None:
            batch.seconds = derived(
                means[0] * len(group),
                "the mean time of its calls, as often as are in the log: too short where one failed",
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
    if "batch" in call:  # in a log that this program wrote
        return f"{_ALONE} {id(call)}" if call["batch"] is None else f"{_GIVEN} {as_text(call['batch'])}"
    if call.get("error") is not None:
        return _FAILED
    if call.get("metadata") is not None or not seconds or usage is None:
        return f"{_ALONE} {id(call)}"
    return as_text([call.get("root_model"), usage.input, usage.output, seconds])


def _call(call: Mapping[str, Any], shared: bool, mean: bool, reading: Reading) -> ForeignSpan:
    prompt, response = call.get("prompt"), call.get("response")
    usage, failure = usage_of(call), _failure(call)
    inside = isinstance(call.get("metadata"), dict)
    child = inside or (failure is not None and as_text(response or "").startswith(_CHILD_FAILED))
    span = ForeignSpan("run" if child else "sub_call", model=text(call.get("root_model")))
    seconds = amount(call.get("execution_time"))
    shared, mean = shared and failure is None, mean and failure is None
    if seconds:  # 0.0 stands where no time was taken
        span.seconds = known_wrong(seconds, _MEAN) if mean else reported(seconds)
    elif seconds is None:
        span.seconds = lacking(call.get("execution_time"))
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
        span.tokens = (
            told(call, "tokens", usage) if usage is None or not shared else known_wrong(usage, _SHARED)
        )
        cost = cost_of(call)
        span.cost = told(call, "cost", cost) if cost is None or not shared else known_wrong(cost, _SHARED)
    if inside:
        reading.waiting.append((span, call))
    return span


def _failure(call: Mapping[str, Any]) -> str | None:
    """Why a call failed; None where it did not. A reply that only begins with "Error:" has a usage."""
    if call.get("error") is not None:
        return as_text(call["error"])
    response = call.get("response")
    failed = isinstance(response, str) and response.startswith("Error:") and usage_of(call) is None
    return response.removeprefix("Error:").strip() if isinstance(response, str) and failed else None
