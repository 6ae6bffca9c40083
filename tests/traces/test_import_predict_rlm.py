"""Traces of predict-rlm: what was read off them by eye is what their import holds.

The logs were made by running it (tests/fixtures/logs/predict_rlm/make.py).
Its calls of predict are those of a trace built with its own classes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.outlines import LOGS, SAMPLES, outline, taken, texts
from traces.home import Home
from traces.importers.importing import Refused, import_paths

PREDICT = LOGS / "predict_rlm"
WHOLE = """
run 0.758s
  iteration 0.539s: Explore
    root_call openai/root-model 4935+17: Look.
    cell: print(len(context))
  iteration 0.134s: Explore
    root_call openai/root-model 4944+48: Ask about each.
    cell: rs = await asyncio.gather(*[predict('tex
  iteration 0.031s: Explore
    root_call openai/root-model 5003+22: A typo.
    cell error (NameError): print('so far')
  iteration 0.020s: Terminate
    root_call openai/root-model 5045+18: Count.
    cell: SUBMIT(answer='6 days')
"""
FAILED = """
run error 0.425s (error): The run failed; why is not in the record
  iteration 0.358s: Explore
    root_call openai/root-model 4935+17: Look.
    cell: print(len(context))
  iteration 0.042s: Explore
    root_call openai/root-model 4944+17: Look.
    cell: print(len(context))
  iteration error
    root_call error openai/root-model ~1038+17
"""
SAMPLE = """
run 2.400s
  iteration 2.300s: Terminate
    root_call big-model 900+40 $0.002: extract dates
    cell: r = await predict('text: str -> date: st
      sub_call small-model 60+6 0.700s $0.00003: 3 May
"""

#: What no reader expects; the others in the long suite.
VALUES = [[], *(pytest.param(value, marks=pytest.mark.full) for value in ({}, None, 7))]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


def test_a_trace_holds_what_it_says(home: Home) -> None:
    ((done, view),) = taken(home, PREDICT / "trace.json")
    assert outline(view) == WHOLE.strip()
    run = view.summary
    assert run.tokens == {"input": 19_927, "output": 105, "total": 20_032}
    assert (run.answer, run.root_model, run.sub_model) == ("6 days", "openai/root-model", "openai/sub-model")
    assert run.cost_usd is None  # the 0 of a model without a price
    assert "The code calls predict, and the engine recorded none of these calls." in done.missing


def test_a_prediction_adds_question_and_times_to_its_trace(home: Home) -> None:
    ((done, view),) = taken(home, PREDICT / "prediction.json")
    assert view.summary.question == "How many days was the pump down?"
    events = json.loads((PREDICT / "prediction.json").read_text())["evidence"]["events"]
    assert view.spans[0].start_ns == events[0]["timestamp_ns"]
    kinds = ("code.generated", "code.executed")
    generated, executed = (next(e["timestamp_ns"] for e in events if e["kind"] == kind) for kind in kinds)
    cell = next(span for span in view.spans if span.kind == "cell")
    assert (cell.start_ns, cell.end_ns) == (generated, executed)
    assert not any(sentence.startswith("When the run began") for sentence in done.missing)


def test_the_call_for_an_answer_took_what_the_steps_leave_of_the_total(home: Home) -> None:
    ((_, view),) = taken(home, PREDICT / "failed.json")
    assert outline(view) == FAILED.strip()
    total = json.loads((PREDICT / "failed.json").read_text())["usage"]["main"]
    assert view.summary.tokens["input"] == total["input_tokens"]


def test_calls_of_predict_carry_their_numbers(home: Home) -> None:
    ((_, view),) = taken(home, SAMPLES / "predict_rlm_0.13.1_run_trace.json")
    assert outline(view) == SAMPLE.strip()
    assert texts(view, "sub_call", "prompt") == ['text: str -> date: str\n{"text":"Doc A"}']
    call = next(span for span in view.spans if span.kind == "sub_call")
    marks = {**(call.trusted or {})}
    assert marks.pop("start") == "missing" and set(marks.values()) == {"reported"}


def test_tools_and_failed_calls_stand_in_their_cell(home: Home, tmp_path: Path) -> None:
    trace = json.loads((SAMPLES / "predict_rlm_0.13.1_run_trace.json").read_text())
    step = trace["steps"][0]
    failed = {"duration_ms": 5, "input": {"text": "Doc B"}, "error": "timed out"}
    step["predict_calls"][0]["calls"].append(failed)
    step["tool_calls"] = [{"name": "lookup", "args": ["pump"], "kwargs": {}, "result": 7, "duration_ms": 3}]
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    ((_, view),) = taken(home, tmp_path / "trace.json")
    last = [(span.kind, span.status, span.error_type) for span in view.spans][-3:]
    assert last == [("sub_call", "ok", None), ("sub_call", "error", "error"), ("tool", "ok", None)]
    assert texts(view, "tool", "arguments") == ['{"args":["pump"],"kwargs":{}}']
    assert texts(view, "tool", "result") == ["7"] and view.spans[-1].name == "execute_tool lookup"


def test_a_run_that_still_goes_on_has_no_end(home: Home, tmp_path: Path) -> None:
    trace = json.loads((PREDICT / "trace.json").read_text()) | {"status": "in_progress"}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    ((done, view),) = taken(home, tmp_path / "trace.json")
    assert view.summary.status == "interrupted"
    assert "The record was made while the run went on: it has no end." in done.missing


def test_a_cut_trace_gives_its_whole_steps(home: Home, tmp_path: Path) -> None:
    whole = (PREDICT / "trace.json").read_text()
    (tmp_path / "cut.json").write_text(whole[: whole.index("A typo.")])
    ((done, view),) = taken(home, tmp_path / "cut.json")
    assert [span.kind for span in view.spans].count("cell") == 3 and view.summary.status == "interrupted"
    assert done.problems == ("The file ends in the middle: what stands after that is lost.",)


def test_lines_of_traces_are_runs(home: Home, tmp_path: Path) -> None:
    traces = [json.dumps(json.loads((PREDICT / name).read_text())) for name in ("trace.json", "failed.json")]
    (tmp_path / "all.jsonl").write_text("\n".join(traces))
    assert [view.summary.status for _, view in taken(home, tmp_path / "all.jsonl")] == ["ok", "error"]


def test_other_json_is_not_taken_for_it(home: Home, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"status": "completed", "steps": []}))
    (refused,) = import_paths(home, [tmp_path / "plan.json"])
    assert isinstance(refused, Refused)


@pytest.mark.parametrize("value", VALUES)
def test_steps_with_values_of_other_types_do_no_harm(home: Home, tmp_path: Path, value: object) -> None:
    trace = json.loads((SAMPLES / "predict_rlm_0.13.1_run_trace.json").read_text())
    for name in trace["steps"][0]:
        changed = trace | {"steps": [trace["steps"][0] | {name: value}]}
        (tmp_path / "trace.json").write_text(json.dumps(changed))
        ((_, view),) = taken(home, tmp_path / "trace.json")
        assert view.summary.iterations == 1
    (tmp_path / "trace.json").write_text(json.dumps(trace | {"status": value}))
    assert isinstance(import_paths(home, [tmp_path / "trace.json"])[0], Refused)
