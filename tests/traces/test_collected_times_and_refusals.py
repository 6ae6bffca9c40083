"""Collected runs whose clocks differ, and of whose spans some cannot be used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rlm_core.errors import RecordError
from tests.support.otlp import TRACE, kind, llm
from traces.collecting import Collector
from traces.collecting_trace import CollectedTrace
from traces.home import Home
from traces.imported import import_facts
from traces.importers.otlp import read
from traces.importers.source import Source
from traces.otlp.spans import OtlpSpan, RefusedSpan
from traces.reading import load_run

AGENT = kind(0, "AGENT", name="agent", lasts=9.0, input__value="How many?", output__value="Two.")
CALL = llm(1, 0, "How many?", "Two.")


def test_a_collected_run_began_and_took_what_its_own_span_says_whatever_clocks_inside_say(
    tmp_path: Path,
) -> None:
    home = Home.resolve(tmp_path / "home")
    collector = Collector(home)
    assert CALL.start_ns is not None and CALL.end_ns is not None and AGENT.start_ns is not None
    hour = 3600 * 10**9
    collector.take([replace(CALL, start_ns=CALL.start_ns - hour, end_ns=CALL.end_ns - hour), AGENT])
    (done,) = collector.close()
    summary = load_run(home, done.run_id).summary
    assert (summary.started_ns, summary.seconds) == (AGENT.start_ns, 9.0)


def test_a_span_without_any_time_has_ended_and_its_time_is_unknown(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    collector = Collector(home)
    collector.take([replace(span, start_ns=None, end_ns=None) for span in (CALL, AGENT)])
    (done,) = collector.close()
    view = load_run(home, done.run_id)
    assert done.closed and view.summary.status == "ok" and view.summary.answer == "Two."
    assert (view.summary.started, view.summary.seconds) == ("", None)
    assert all(span.status == "ok" and span.seconds is None for span in view.spans)


REFUSED = RefusedSpan("The span 'x' has no valid span id.", TRACE)


@pytest.mark.parametrize("comes", ["before", "with", "after"])
def test_a_run_says_which_of_its_spans_could_not_be_used_whenever_they_came(
    tmp_path: Path, comes: str
) -> None:
    home, said = Home.resolve(tmp_path / "home"), list[str]()
    collector = Collector(home, say=said.append)
    parts = {"before": ([], [AGENT, CALL]), "with": ([AGENT, CALL], []), "after": ([], [])}[comes]
    if comes == "after":
        collector.take([AGENT, CALL])
    collector.take(parts[0], [REFUSED] * 7)
    collector.take(parts[1])
    collector.tend()
    (done,) = collector.close()
    view = load_run(home, done.run_id)
    facts = import_facts(view)
    assert facts is not None and facts.problems == (*[REFUSED.why] * 5, "2 more spans cannot be used.")
    assert (view.summary.status, view.summary.complete, view.summary.problems) == ("ok", False, 6)
    assert done.refused == 7
    assert said[-1] == f"Run {done.run_id} is closed: 2 spans, 7 more could not be used."


def test_what_cannot_be_used_counts_once_though_it_was_sent_again_with_spans_that_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector, take = Collector(Home.resolve(tmp_path / "home")), CollectedTrace.take
    message = [AGENT, CALL, replace(CALL, trace_id="f" * 32)], [REFUSED]

    def full(trace: CollectedTrace, spans: list[OtlpSpan]) -> bool:
        if trace.trace_id != TRACE:
            raise RecordError("The disk is full.")
        return take(trace, spans)

    monkeypatch.setattr(CollectedTrace, "take", full)
    for _ in range(3):
        with pytest.raises(RecordError):
            collector.take(*message)
    monkeypatch.undo()
    collector.take(*message)
    assert [(done.spans, done.refused) for done in collector.close()] == [(2, 1), (1, 0)]


def test_refused_spans_of_another_trace_are_no_problem_of_a_run(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    collector = Collector(home)
    collector.take([AGENT, CALL], [RefusedSpan("another", "f" * 32), RefusedSpan("of no trace")])
    (done,) = collector.close()
    assert load_run(home, done.run_id).summary.complete and done.refused == 0


def test_an_imported_run_has_the_problems_of_its_own_trace_and_of_those_that_nobody_can_place(
    tmp_path: Path,
) -> None:
    def entry(trace: str, span_id: str, name: str) -> dict[str, object]:
        times = {"startTimeUnixNano": "1780000000000000000", "endTimeUnixNano": "1780000001000000000"}
        return {"traceId": trace, "spanId": span_id, "name": name, **times}

    other, valid = "f" * 32, "1" * 16
    spans = [
        entry(TRACE, valid, "a"),
        entry(other, valid, "b"),
        entry(TRACE, "0", "x"),
        entry("0", valid, "y"),
    ]
    file = tmp_path / "traces.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    problems = {run.trace_id: run.problems for run in read(Source(file, file.name))}
    lost = "The span 'y' has no valid trace id."
    assert problems == {TRACE: ["The span 'x' has no valid span id.", lost], other: [lost]}
