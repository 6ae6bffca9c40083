"""Logs of fast-rlm: what was read off them by eye is what their import holds.

The logs were made by running it (tests/fixtures/logs/fast_rlm/make.py).
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from rlm_core import semconv as sc
from tests.support.outlines import LOGS, SAMPLES, outline, taken, texts
from traces.home import Home

FAST = LOGS / "fast_rlm"
#: Times, too, are differences of those of the log: 45:14.948 less 45:14.924 for the first cell of the root.
WHOLE = """
run 44.930s
  iteration 0.064s: Explore
    cell 0.064s: if isinstance(context, dict):
  iteration 0.121s: Explore
    root_call ? 5831+12 0.097s
    cell 0.024s: print(len(context))
  iteration error 0.030s (no_code_block): The reply had no code that could be run.
    root_call ? 5851+4 0.030s
  iteration 18.540s: Decompose
    root_call ? 5873+46 0.021s
    cell 18.519s: a, b = await batch_llm_query(llm_query(l
      batch 18.515s
        run 18.515s
          iteration 0.039s: Explore
            cell 0.039s: if isinstance(context, dict):
          iteration 0.238s: Explore
            root_call ? 5819+7 0.236s
            cell 0.002s: print(context)
          iteration 0.049s: Terminate
            root_call ? 5842+13 0.047s
            cell 0.002s: FINAL(context.strip().strip('.')[-5:])
        run 9.910s
          iteration 0.008s: Explore
            cell 0.008s: if isinstance(context, dict):
          iteration 0.045s: Explore
            root_call ? 5818+7 0.019s
            cell 0.026s: print(context)
          iteration 0.029s: Terminate
            root_call ? 5840+13 0.028s
            cell 0.001s: FINAL(context.strip().strip('.')[-5:])
  iteration 0.111s: Explore
    root_call ? 5930+13 0.020s
    cell error 0.091s (NameError): print('before')
  iteration 5.936s: Decompose
    root_call ? 6051+22 0.012s
    cell 5.924s: c = await llm_query(a + ' to ' + b, inst
      run 5.922s
        iteration 0.088s: Explore
          cell 0.088s: if isinstance(context, dict):
        iteration 0.188s: Terminate
          root_call ? 5815+6 0.187s
          cell 0.001s: FINAL('6')
  iteration 0.096s: Terminate
    root_call ? 6082+8 0.095s
    cell 0.001s: FINAL({'days': 6})
"""
FAILED = """
run error 19.225s (no_result): The agent ended without a result; why is
  iteration 0.058s: Explore
    cell 0.058s: if isinstance(context, dict):
  iteration 0.158s: Explore
    root_call ? 5826+6 0.151s
    cell 0.007s: print(1)
  iteration 0.009s: Explore
    root_call ? 5879+6 0.007s
    cell 0.002s: print(1)
"""

#: What no reader expects; the others in the long suite.
VALUES = [[], *(pytest.param(value, marks=pytest.mark.full) for value in ({}, None, 7))]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


def test_a_log_holds_what_it_says(home: Home) -> None:
    ((done, view),) = taken(home, FAST / "run.jsonl")
    assert outline(view) == WHOLE.strip()
    run = view.summary
    assert run.tokens == {"input": 64_752, "output": 151, "total": 64_903}  # what the engine said at its end
    assert run.started_ns == 1_796_049_894_736_000_000  # 14:44:54.736
    assert (run.question, run.root_model, run.cost_usd) == (None, None, None)
    assert run.answer == '{"days": 6}' and done.problems == ()


def test_an_answer_whose_line_was_never_written_is_read_off_the_code(home: Home, tmp_path: Path) -> None:
    ((done, view),) = taken(home, FAST / "run.jsonl")
    assert "final_result" not in (FAST / "run.jsonl").read_text().splitlines()[-1]
    (sentence,) = (told for told in done.missing if told.startswith("The result is not"))
    assert sentence.endswith("the answer was read off the code.")
    cell = view.spans[-1]
    assert view.spans[0].attributes[sc.ANSWER_CELL] == cell.cell and cell.phase == "Terminate"
    text = (FAST / "run.jsonl").read_text().replace("FINAL({'days': 6})", "FINAL(days)")
    (tmp_path / "run.jsonl").write_text(text)
    ((_, view),) = taken(home, tmp_path / "run.jsonl")
    assert (view.summary.status, view.summary.answer) == ("ok", None)


def test_an_agent_that_ended_without_a_result_failed(home: Home) -> None:
    ((_, view),) = taken(home, FAST / "unanswered.jsonl")
    assert outline(view) == FAILED.strip()
    assert view.summary.status == "error" and view.summary.answer is None


def test_texts_are_whole(home: Home) -> None:
    ((_, view),) = taken(home, FAST / "run.jsonl")
    printed = texts(view, "cell", "stdout")
    assert printed[1] == "63\n" and printed[2] == "3 May 9 May\n"
    assert texts(view, "cell", "stdout_shown")[1] == "[FULL OUTPUT SHOWN]... 63\n"
    failed = next(number for number, text in enumerate(texts(view, "cell", "exception")) if text)
    raised = str(texts(view, "cell", "exception")[failed])
    assert raised.startswith("Traceback (most recent call last):\n") and printed[failed] == "before\n"
    assert raised.endswith("NameError: name 'undefined_name' is not defined")
    assert texts(view, "run", "answer") == ['{"days": 6}', "3 May", "9 May", "6"]


def test_tokens_and_costs_are_those_of_the_log(home: Home) -> None:
    ((_, view),) = taken(home, SAMPLES / "fast_rlm_0.5.0.jsonl")
    call = next(span for span in view.spans if span.kind == "root_call")
    assert call.trusted == dict.fromkeys(("cost", "seconds", "start", "tokens"), "reported")
    assert view.summary.cost_usd == Decimal("0.00202")
    assert view.summary.answer == '{"days": 6}' and view.summary.seconds == 9


def test_usage_of_nothing_is_unknown(home: Home, tmp_path: Path) -> None:
    text = (FAST / "unanswered.jsonl").read_text()
    text = text.replace(
        '"prompt_tokens":5826,"completion_tokens":6', '"prompt_tokens":0,"completion_tokens":0'
    )
    (tmp_path / "run.jsonl").write_text(text)
    ((_, view),) = taken(home, tmp_path / "run.jsonl")
    first, second = (span for span in view.spans if span.kind == "root_call")
    assert first.tokens is None and (first.trusted or {})["tokens"] == "missing"
    assert second.tokens is not None


def test_a_log_that_ends_in_a_step_keeps_the_agents_it_had_asked(home: Home, tmp_path: Path) -> None:
    lines = (FAST / "run.jsonl").read_text().splitlines()
    (tmp_path / "cut.jsonl").write_text("\n".join(lines[:8]) + "\n" + lines[8][:100])
    ((done, view),) = taken(home, tmp_path / "cut.jsonl")
    assert done.problems == ("Lines that are none of fast-rlm, or end in the middle: 9.",)
    kinds = [(span.kind, span.status) for span in view.spans if span.kind in ("batch", "run")]
    assert kinds == [("run", "lost"), ("batch", "ok"), ("run", "lost"), ("run", "lost")]
    assert "The code of a step that was not over is not in the record." in done.missing
    assert view.summary.status == "interrupted"


def test_lines_of_on_step_without_times_of_their_own_are_read(home: Home, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (FAST / "unanswered.jsonl").read_text().splitlines()]
    own = ("level", "time")
    events = [{k: line[k] for k in line if k not in own} for line in lines if "step" in line]
    (tmp_path / "events.ndjson").write_text("\n".join(map(json.dumps, events)))
    ((_, view),) = taken(home, tmp_path / "events.ndjson")
    assert view.summary.tokens == {"input": 11_705, "output": 12, "total": 11_717}


def test_an_agent_whose_caller_is_not_there_is_a_run_of_its_own(home: Home, tmp_path: Path) -> None:
    line = {"run_id": "a", "parent_run_id": "b", "depth": 1, "event_type": "agent_start"}
    (tmp_path / "b.jsonl").write_text(json.dumps(line))
    ((done, _),) = taken(home, tmp_path / "b.jsonl")
    assert done.problems == ("The agent that asked this one is not in the record.",)


@pytest.mark.parametrize(("root_is_asked_by", "runs"), [("child", 1), ("itself", 2)])
def test_callers_that_lead_in_a_circle_are_cut_at_the_first(
    home: Home, tmp_path: Path, root_is_asked_by: str, runs: int
) -> None:
    lines = [json.loads(line) for line in (SAMPLES / "fast_rlm_0.5.0.jsonl").read_text().splitlines()]
    root, child = lines[0]["run_id"], lines[2]["run_id"]
    for line in lines:
        if root_is_asked_by == "itself":
            line["parent_run_id"] = line["run_id"]
        elif line["run_id"] == root:
            line["parent_run_id"] = child
    (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = taken(home, tmp_path / "run.jsonl")
    assert len(done) == runs and sum(view.summary.tokens["input"] for _, view in done) == 2_200
    said = f"The agent {root} names one below it, or itself, as its caller, which cannot be: "
    assert said + "it is taken for a run of its own." in done[0][0].problems


def test_a_line_that_stands_twice_counts_once(home: Home, tmp_path: Path) -> None:
    lines = (SAMPLES / "fast_rlm_0.5.0.jsonl").read_text().splitlines()
    (tmp_path / "twice.jsonl").write_text("\n".join([*lines, *lines]))
    ((done, view),) = taken(home, tmp_path / "twice.jsonl")
    assert view.summary.tokens == {"input": 2_200, "output": 67, "total": 2_267}
    assert view.summary.known_usd == Decimal("0.00202")
    assert done.problems == (
        "Lines that are in the record more than once, and taken in once: 11; the first one counts.",
    )


def test_steps_without_numbers_are_all_taken_in(home: Home, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (SAMPLES / "fast_rlm_0.5.0.jsonl").read_text().splitlines()]
    unnumbered = [{name: value for name, value in line.items() if name != "step"} for line in lines]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, unnumbered)))
    ((done, view),) = taken(home, tmp_path / "log.jsonl")
    assert view.summary.tokens == {"input": 2200, "output": 67, "total": 2267} and done.problems == ()


def test_lines_are_read_in_the_order_of_their_times_where_steps_are_not(home: Home, tmp_path: Path) -> None:
    lines = (FAST / "run.jsonl").read_text().splitlines()
    (tmp_path / "turned.jsonl").write_text("\n".join([*lines[10:], *lines[:10]]))
    ((done, view),) = taken(home, tmp_path / "turned.jsonl")
    assert outline(view) == WHOLE.strip()
    assert done.problems == (
        "Lines do not stand in the order of their steps: they were put in the order of their times.",
    )


def test_of_lines_of_one_step_that_differ_the_first_counts(home: Home, tmp_path: Path) -> None:
    lines = (SAMPLES / "fast_rlm_0.5.0.jsonl").read_text().splitlines()
    other = json.loads(lines[-3]) | {"code": "FINAL('other')"}
    (tmp_path / "twice.jsonl").write_text("\n".join([*lines, json.dumps(other)]))
    ((done, view),) = taken(home, tmp_path / "twice.jsonl")
    assert view.summary.answer == '{"days": 6}' and "1 of them said something else" in done.problems[0]


@pytest.mark.parametrize("value", [-3, "12", 10**30, float("nan"), 3.5])
def test_a_number_that_is_there_and_unusable_is_said_to_be(
    home: Home, tmp_path: Path, value: float | str
) -> None:
    lines = [json.loads(line) for line in (SAMPLES / "fast_rlm_0.5.0.jsonl").read_text().splitlines()]
    step = next(line for line in lines if line.get("step") == 1 and line["depth"] == 0)
    step["usage"]["prompt_tokens"] = value
    (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ((done, view),) = taken(home, tmp_path / "run.jsonl")
    call = next(span for span in view.spans if span.kind == "root_call" and span.depth == 0)
    assert call.tokens is None and "in the record, but unusable" in str(call.attributes[sc.TRUST_WHY])
    assert done.problems == ("Numbers that are in the record, but unusable: 1.",)


@pytest.mark.parametrize("value", VALUES)
def test_a_line_with_values_of_other_types_costs_only_itself(
    home: Home, tmp_path: Path, value: object
) -> None:
    lines = [json.loads(line) for line in (FAST / "unanswered.jsonl").read_text().splitlines()]
    for name in ("event_type", "run_id", "usage", "timestamps", "output", "time"):
        changed = [*lines[:2], lines[2] | {name: value}, *lines[3:]]
        (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, changed)))
        ((_, view),) = taken(home, tmp_path / "run.jsonl")
        assert 2 <= view.summary.iterations <= 3
