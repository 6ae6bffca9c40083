"""Spans that are collected: on disk when they are taken, arranged as they come, whole at the end."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from tests.support.collecting import AGENT, SPANS, TOOL, Rig, imported, read_run, shape
from tests.support.otlp import TRACE, kind, llm
from traces.collecting import Collected
from traces.collecting_trace import LATE
from traces.home import Home
from traces.imported import import_facts
from traces.importers.otlp import read
from traces.importers.source import Source
from traces.importers.writing import write_run
from traces.locks import is_held
from traces.otlp.spans import OtlpSpan
from traces.otlp.trace_run import run_of_trace
from traces.reading import RunView, SpoolRun, load_run
from traces.rows import SpanRow
from traces.spool import SpoolWriter

FIXTURES = Path(__file__).parents[1] / "fixtures" / "logs" / "otlp"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(Home.resolve(tmp_path / "home"))
    yield rig
    rig.collector.close()


@pytest.mark.parametrize("order", ["as they end", "backwards", "any", "all at once"])
def test_what_was_collected_is_what_the_same_trace_gives_when_it_is_imported(rig: Rig, order: str) -> None:
    spans = {
        "as they end": SPANS,
        "backwards": SPANS[::-1],
        "any": random.Random(7).sample(SPANS, len(SPANS)),
        "all at once": SPANS,
    }[order]
    for group in [spans] if order == "all at once" else [[each] for each in spans]:
        rig.collector.take(group)
        rig.collector.tend()
    (done,) = rig.collector.close()
    assert done == Collected(done.run_id, 6, True)
    stored = load_run if order == "any" else read_run
    view, other = stored(rig.home, done.run_id), imported(rig.home, SPANS)
    assert shape(view) == shape(other)
    summary = view.summary
    assert (summary.question, summary.answer, summary.status) == ("How many?", "Two.", "ok")
    assert (summary.iterations, summary.sub_calls, summary.problems) == (2, 2, 0)
    assert (summary.root_model, summary.trace_id, summary.imported_from) == ("gpt-5-mini", TRACE, "otlp")
    assert (summary.started_ns, summary.seconds) == (other.summary.started_ns, 90.0)
    facts, same = import_facts(view), import_facts(other)
    assert facts is not None and same is not None and facts.missing == same.missing
    assert not is_held(rig.home.liveness_lock(done.run_id))


def test_a_run_appears_with_its_first_span_and_grows(rig: Rig) -> None:
    rig.collector.take(SPANS[:1])
    (run_id,) = rig.runs()
    live = SpoolRun(rig.home, run_id)

    def seen() -> list[tuple[str, str]]:
        view = live.poll()
        assert view.live and view.summary.status == "running" and view.summary.problems == 0
        return [(row.kind, row.status) for row in view.spans]

    awaited = [("run", "running"), ("iteration", "ok"), ("root_call", "ok")]
    assert seen() == awaited
    rig.collector.take(SPANS[1:3])  # the tool they ran in has not come
    assert ("sub_call", "ok") not in seen()
    rig.collector.take(SPANS[3:4])
    assert seen() == [*awaited, ("cell", "ok"), ("sub_call", "ok"), ("sub_call", "ok")]
    rig.collector.take(SPANS[4:])
    assert [row.status for row in live.poll().spans] == ["ok"] * 8
    rig.clock.now = 4.9
    rig.collector.tend()
    assert live.poll().summary.status == "running"
    rig.clock.now = 5.0
    rig.collector.tend()
    assert (live.poll().summary.status, live.poll().live) == ("ok", False)
    assert [sentence.split()[2] for sentence in rig.said] == ["begins:", "is"]


def test_spans_that_are_sent_again_stand_once(rig: Rig) -> None:
    rig.collector.take(SPANS)
    rig.collector.take(SPANS)
    (done,) = rig.collector.close()
    rig.collector.take(SPANS)  # also when the run is closed
    assert done.spans == 6 and rig.runs() == [done.run_id]
    assert len(read_run(rig.home, done.run_id).spans) == 8


def test_spans_that_come_late_are_a_further_run_that_says_so(rig: Rig) -> None:
    rig.collector.take(SPANS)
    rig.collector.close()
    rig.collector.take([llm(9, 2, "late", "reply"), *SPANS])
    first, second = rig.collector.close()
    view = read_run(rig.home, second.run_id)
    facts = import_facts(view)
    assert second.spans == 1 and facts is not None and LATE in facts.missing
    assert [row.kind for row in view.spans] == ["run", "iteration", "root_call"]  # its tool is elsewhere
    assert first.run_id != second.run_id and view.summary.trace_id == TRACE


def test_a_run_whose_own_span_never_comes_waits_and_then_counts_as_interrupted(rig: Rig) -> None:
    rig.collector.take(SPANS[:4])
    rig.clock.now = 59.0
    rig.collector.tend()
    (run_id,) = rig.runs()
    assert is_held(rig.home.liveness_lock(run_id))
    rig.clock.now = 60.0
    rig.collector.tend()
    view = read_run(rig.home, run_id)
    assert view.summary.status == "interrupted" and view.spans[0].status == "lost"
    facts = import_facts(view)
    assert facts is not None and any("did not come" in sentence for sentence in facts.missing)
    assert rig.collector.close() == [Collected(run_id, 4, False)]


def test_a_trace_that_failed_ends_as_one_and_traces_do_not_mix(rig: Rig) -> None:
    failed = kind(0, "AGENT", name="other", trace="f" * 32, status="error", message="no")
    rig.collector.take([*SPANS, failed])
    views = {done.run_id: read_run(rig.home, done.run_id) for done in rig.collector.close()}
    assert sorted((view.summary.status, len(view.spans)) for view in views.values()) == [
        ("error", 1),
        ("ok", 8),
    ]


def test_what_cannot_be_written_is_not_taken(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.collector.take(SPANS[:1])
    with monkeypatch.context() as broken:
        broken.setattr(SpoolWriter, "write", lambda self, record: False)
        with pytest.raises(RecordError, match="could not be written"):
            rig.collector.take(SPANS[1:])
    rig.collector.take(SPANS[1:])  # as OTLP has it: the sender tries again
    (done,) = rig.collector.close()
    assert len(read_run(rig.home, done.run_id).spans) == 8


def test_a_cell_that_goes_to_an_iteration_that_came_later_leaves_nothing_in_its_first_one(rig: Rig) -> None:
    spans = [llm(1, 0, "How many?", "ask()"), TOOL, llm(3, 0, at=1.5), AGENT]
    for each in spans:
        rig.collector.take([each])
        rig.collector.tend()
    (done,) = rig.collector.close()
    assert shape(read_run(rig.home, done.run_id)) == shape(imported(rig.home, spans))


@pytest.mark.parametrize("name", ["openinference", "genai", "genai-older"])
def test_traces_of_real_instrumentations_give_the_runs_that_they_were(tmp_path: Path, name: str) -> None:
    """The numbers are read off the files by eye."""
    home = Home.resolve(tmp_path / "home")
    (run,) = read(Source(FIXTURES / f"{name}.json", f"{name}.json"))
    view = read_run(home, write_run(home, run, f"{name}.json", 0).run_id)
    texts = name != "genai-older"  # it sends them as logs
    table = [
        (row.kind, row.model, row.tokens and (row.tokens["input"], row.tokens["output"]), row.cached_read,
         row.status, row.seconds is not None, text(view, row, sc.RESPONSE, sc.STDOUT, sc.ANSWER))
        for row in view.spans
    ]  # fmt: skip
    code = "```python\nvotes = [ask(t) for t in tickets]\nprint(votes)\n```"
    cached = 6 if texts else None
    assert table == [
        ("run", None, None, None, "ok", True, "Two." if texts else None),
        ("iteration", None, None, None, "ok", True, None),
        ("root_call", "root-m", (21, 16), None, "ok", True, code if texts else None),
        ("cell", None, None, None, "ok", True, "['yes', 'no', None]"),
        ("sub_call", "gpt-5-mini", (13, 1), cached, "ok", True, "yes" if texts else None),
        ("sub_call", "gpt-5-mini", (13, 1), None, "ok", True, "no" if texts else None),
        ("sub_call", "gpt-5-mini", None, None, "error", True, None),
        ("iteration", None, None, None, "ok", True, None),
        ("root_call", "root-m", (40, 2), None, "ok", True, "Two." if texts else None),
    ]
    assert view.summary.engine_version == "triage 2.1"
    assert view.summary.question == ("How many tickets are about billing?" if texts else None)
    assert text(view, view.spans[3], sc.CODE) == "votes = [ask(t) for t in tickets]\nprint(votes)"
    if texts:
        assert [text(view, row, sc.PROMPT) for row in view.spans[4:7]] == [
            "first ticket: a refund", "second ticket: a login", "third ticket: broken",
        ]  # fmt: skip


def test_lines_of_a_collectors_file_are_runs_by_trace_and_broken_ones_are_said(tmp_path: Path) -> None:
    """A trace may be spread over lines; what is cut off at the end of the file is missing, and said."""
    whole = json.loads((FIXTURES / "openinference.json").read_text("utf-8"))
    groups = [part for group in whole["resourceSpans"] for part in group["scopeSpans"]]
    lines = [json.dumps({"resourceSpans": [{"scopeSpans": [part]}]}) for part in groups]
    other = json.loads((FIXTURES / "genai.json").read_text("utf-8"))
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join([*lines, "not json", json.dumps(other), lines[0][:100]]), "utf-8")
    source = Source(path, path.name)
    first, second = read(source)
    (alone,) = read(Source(FIXTURES / "openinference.json", "x"))
    assert first.key == alone.key and first.trace_id != second.trace_id
    bad = f"{len(lines) + 1}, {len(lines) + 3}"
    assert first.problems == second.problems == [f"2 lines are no OTLP and were left out: {bad}."]


def text(view: RunView, row: SpanRow, *prefixes: str) -> str | None:
    """The first of these texts that a span has, whole."""
    named = (row.attributes.get(f"{prefix}.sha256") for prefix in prefixes)
    return next((view.payload(sha256) for sha256 in named if sha256), None)


def test_many_senders_at_once_lose_nothing(rig: Rig) -> None:
    traces = [format(number, "032x") for number in range(1, 3)]

    def send(part: int) -> None:
        for trace in traces:
            for number in range(part * 8 + 1, part * 8 + 9):
                rig.collector.take([llm(number, 0, trace=trace)])
                rig.collector.tend()

    threads = [threading.Thread(target=send, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rig.collector.take([kind(0, "AGENT", trace=trace) for trace in traces])
    done = rig.collector.close()
    assert [(each.spans, each.closed) for each in done] == [(33, True)] * 2
    for each in done:
        view = read_run(rig.home, each.run_id)
        assert view.summary.problems == 0 and sum(row.kind == "root_call" for row in view.spans) == 32


def test_who_brings_spans_waits_for_no_trace_that_is_worked_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, go_on = threading.Event(), threading.Event()

    def long(trace_id: str, spans: list[OtlpSpan]) -> Any:
        if threading.current_thread() is closing:
            at_work.set()
            go_on.wait(60)
        return run_of_trace(trace_id, spans)

    closing = threading.Thread(target=rig.collector.close)
    monkeypatch.setattr("traces.collecting_trace.run_of_trace", long)
    rig.collector.take(SPANS)
    closing.start()
    assert at_work.wait(60)
    rig.collector.take([kind(0, "AGENT", trace="f" * 32)])  # of another trace
    rig.collector.take([*SPANS, llm(9, 0, "late", "reply")])  # of this one
    assert len(rig.runs()) == 3
    go_on.set()
    closing.join()
    rig.collector.close()
    views = [read_run(rig.home, run_id) for run_id in rig.runs()]
    assert sorted(len(view.spans) for view in views) == [1, 3, 8]


def test_spans_that_come_while_their_trace_is_arranged_stand_and_are_arranged_next(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.collector.take(SPANS[:1])
    (run_id,) = rig.runs()
    at_work, go_on = threading.Event(), threading.Event()

    def long(trace_id: str, spans: list[OtlpSpan]) -> Any:
        run = run_of_trace(trace_id, spans)
        if threading.current_thread() is tending:
            at_work.set()
            go_on.wait(60)
        return run

    tending = threading.Thread(target=rig.collector.tend)
    with monkeypatch.context() as slow:
        slow.setattr("traces.collecting_trace.run_of_trace", long)
        slow.setattr("traces.collecting_trace._SMALL", 0)
        rig.collector.take(SPANS[1:2])
        tending.start()
        assert at_work.wait(60)
        rig.collector.take([TOOL, AGENT])  # what stands for them in the copy must not take their place
        go_on.set()
        tending.join()
    rows = SpoolRun(rig.home, run_id).poll().by_id
    assert (rows[TOOL.span_id].name, rows[TOOL.span_id].status) == ("python", "ok")
    assert (rows[AGENT.span_id].name, rows[AGENT.span_id].status) == ("agent", "ok")
    rig.collector.take([*SPANS[2:3], SPANS[4]])
    rig.collector.close()
    assert shape(read_run(rig.home, run_id)) == shape(imported(rig.home, SPANS))


def test_spans_that_are_sent_again_before_their_trace_may_be_arranged_are_answered(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(trace_id: str, spans: list[OtlpSpan]) -> Any:
        rig.clock.now += 1
        return run_of_trace(trace_id, spans)

    monkeypatch.setattr("traces.collecting_trace.run_of_trace", slow)
    rig.collector.take(SPANS)
    rig.collector.take(SPANS)
    (done,) = rig.collector.close()
    assert len(read_run(rig.home, done.run_id).spans) == 8


def test_spans_that_could_not_be_written_are_not_acknowledged_when_they_come_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while their trace may not be arranged anew."""

    def slow(trace_id: str, spans: list[OtlpSpan]) -> Any:
        rig.clock.now += 1
        return run_of_trace(trace_id, spans)

    monkeypatch.setattr("traces.collecting_trace.run_of_trace", slow)
    rig.collector.take(SPANS[:1])
    with monkeypatch.context() as broken:
        broken.setattr(SpoolWriter, "write", lambda self, record: False)
        for _ in range(2):
            with pytest.raises(RecordError, match="could not be written"):
                rig.collector.take(SPANS[1:2])
    rig.collector.take(SPANS[1:2])
    (run_id,) = rig.runs()
    assert SPANS[1].span_id in SpoolRun(rig.home, run_id).poll().by_id


def test_a_trace_to_which_nothing_comes_is_closed_however_long_it_takes_to_arrange(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(trace_id: str, spans: list[OtlpSpan]) -> Any:
        rig.clock.now += 4
        return run_of_trace(trace_id, spans)

    monkeypatch.setattr("traces.collecting_trace.run_of_trace", slow)
    rig.collector.take(SPANS[:1])
    rig.collector.take(SPANS[1:])  # it may be arranged again in 40 seconds
    rig.clock.now += 5
    rig.collector.tend()
    (run_id,) = rig.runs()
    assert read_run(rig.home, run_id).summary.status == "ok"


def test_an_error_in_one_trace_is_said_and_does_not_end_the_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(trace_id: str, spans: list[OtlpSpan]) -> Any:
        if trace_id != TRACE:
            raise TypeError("unforeseen")
        return run_of_trace(trace_id, spans)

    rig.collector.take([*SPANS, kind(0, "AGENT", trace="f" * 32)])
    monkeypatch.setattr("traces.collecting_trace.run_of_trace", broken)
    rig.collector.close()
    statuses = sorted(read_run(rig.home, run_id).summary.status for run_id in rig.runs())
    assert statuses == ["interrupted", "ok"]
    assert sum("by an error of this program: TypeError('unforeseen')" in said for said in rig.said) == 1


def test_calls_that_come_alone_stand_below_what_they_named_and_soon_as_what_they_are(rig: Rig) -> None:
    rig.collector.take(SPANS[:1])
    (run_id,) = rig.runs()
    (trace,) = rig.collector._open.values()
    trace._next = 1e9  # as after the first time, which loads what is needed and takes long
    for each in SPANS[1:4]:
        rig.collector.take([each])
    rows = read_run(rig.home, run_id).by_id
    assert [rows[each.span_id].parent_id for each in SPANS[1:3]] == [TOOL.span_id] * 2
    assert not any(row.orphan for row in rows.values())
    trace._next = 0.0
    rig.collector.tend()
    assert {row.kind for row in read_run(rig.home, run_id).spans if row.parent_id == TOOL.span_id} == {
        "sub_call"
    }
    assert trace._next <= rig.clock.now + 1


def test_spans_that_are_the_parents_of_each_other_can_be_read_when_they_come_alone(rig: Rig) -> None:
    rig.collector.take(SPANS[:1])
    (run_id,) = rig.runs()
    (trace,) = rig.collector._open.values()
    trace._next = 1e9
    for each in (llm(8, 9, "a", "b"), llm(9, 8, "c", "d"), llm(7, 7, "e", "f")):
        rig.collector.take([each])
    assert len(read_run(rig.home, run_id).spans) == 6
    rig.collector.close()
    assert len(load_run(rig.home, run_id).spans) >= 6
