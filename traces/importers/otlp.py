"""Traces of any instrumentation out of files of OTLP/JSON: one request, or one in each line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from rlm_core.errors import InputError
from traces.importers.foreign import ForeignRun
from traces.importers.source import Source
from traces.otlp.refusals import Refusals
from traces.otlp.spans import OtlpSpan, Received, RefusedSpan, from_json, is_json
from traces.otlp.trace_run import run_of_trace, settle

_TELLING: Final = re.compile(
    rb'"(?:resource_?[sS]pans|scope_?[sS]pans|batches|instrumentationLibrarySpans)"\s*:'
)
_BAD: Final = 5  # lines that are named


def recognises(source: Source) -> bool:
    """Whether the file holds OTLP traces as JSON, whole or by lines."""
    if source.is_folder or not _TELLING.search(source.head()):
        return False
    return any(is_json(value) for value in source.first_lines()) or is_json(source.document())


def read(source: Source) -> Iterator[ForeignRun]:
    """Each trace of the file as a run, those that began first first.

    Raises InputError when it holds no spans.
    """
    received, unreadable = _received(source)
    traces: dict[str, list[OtlpSpan]] = {}
    for span in received.spans:
        traces.setdefault(span.trace_id, []).append(span)
    if not traces:
        why = f" {received.refused[0].why}" if received.refused else ""
        raise InputError(f"{source.name} holds no spans that can be used.{why}")
    own, lost = defaultdict[str, list[RefusedSpan]](list), list[RefusedSpan]()
    for each in received.refused:
        (own[each.trace_id] if each.trace_id in traces else lost).append(each)
    anywhere = Refusals(lost)  # they may be of any of them
    for trace_id, spans in sorted(traces.items(), key=lambda each: _began(each[1])):
        run = settle(run_of_trace(trace_id, spans))
        refused = Refusals(own[trace_id])
        refused.merge(anywhere)
        run.problems += unreadable + refused.sentences()
        yield run


def _received(source: Source) -> tuple[Received, list[str]]:
    """All spans of the file, and a sentence on what of it is unreadable."""
    received, bad = Received(), list[int]()
    for number, value in source.lines():
        if is_json(value):
            _add(received, value)
        else:
            bad.append(number)
    if received.spans or received.refused:
        lines = ", ".join(map(str, bad[:_BAD])) + (", ..." if len(bad) > _BAD else "")
        return received, [f"{len(bad)} lines are no OTLP and were left out: {lines}."] if bad else []
    document = source.document()
    if is_json(document):
        _add(received, document)
    return received, []


def _add(received: Received, value: Any) -> None:
    more = from_json(value)
    received.spans += more.spans
    received.refused += more.refused


def _began(spans: list[OtlpSpan]) -> int:
    return min((span.start_ns for span in spans if span.start_ns is not None), default=0)
