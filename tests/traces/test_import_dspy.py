"""Trajectories of dspy.RLM: what was read off them by eye is what their import holds.

The logs were made by running it (tests/fixtures/logs/dspy/make.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from tests.support.outlines import LOGS, SAMPLES, outline, taken, texts
from traces.home import Home
from traces.importers.importing import Refused, import_paths
from traces.importers.source import Source
from traces.importers.values import documents
from traces.reading import span_detail
from traces.same_answer import same_answer

DSPY = LOGS / "dspy"
WHOLE = """
run
  iteration: Explore
    root_call ? ?: Look at the documents.
    cell: print(len(context))
  iteration: Decompose
    root_call ? ?: Ask about each.
    cell: dates = llm_query_batched(['Which date?
  iteration: Explore
    root_call ? ?: A typo.
    cell error (NameError): print('so far')
  iteration: Explore
    root_call ? ?: Broken code.
    cell error (error): for x in (
  iteration: Explore
    root_call ? ?: Nothing printed.
    cell: x = 1
  iteration: Terminate
    root_call ? ?: Submit, with a wrong type.
    cell error (misfit): SUBMIT('six', 'wrong kind')
  iteration: Terminate
    root_call ? ?: Submit.
    cell: SUBMIT('6 days', 6)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


def test_a_prediction_holds_what_its_trajectory_says(home: Home) -> None:
    ((done, view),) = taken(home, DSPY / "prediction.json")
    assert outline(view) == WHOLE.strip()
    run = view.summary
    assert (run.answer, run.stop_reason, run.status) == ('{"answer":"6 days","days":6}', "final", "ok")
    assert view.spans[0].attributes[sc.ANSWER_CELL] == 6
    assert (run.question, run.cost_usd, run.seconds, run.root_model) == (None, None, None, None)
    assert any("llm_query" in sentence for sentence in done.missing)
    calls = [span.trusted for span in view.spans if span.kind == "root_call"]
    unknown = dict.fromkeys(("tokens", "cost", "start", "seconds"), "missing")
    assert calls == [unknown] * 7


def test_texts_are_whole(home: Home) -> None:
    ((_, view),) = taken(home, DSPY / "prediction.json")
    steps = json.loads((DSPY / "prediction.json").read_text())["trajectory"]
    assert texts(view, "root_call", "response") == [step["reasoning"] for step in steps]
    assert texts(view, "cell", "code") == [step["code"] for step in steps]
    printed, shown = texts(view, "cell", "stdout"), texts(view, "cell", "stdout_shown")
    assert printed == [steps[0]["output"], steps[1]["output"], *[None] * 5]
    assert shown[4] == "(no output - did you forget to print?)"
    assert shown[6] == "FINAL: {'answer': '6 days', 'days': 6}"
    raised = texts(view, "cell", "exception")
    assert raised[2] == "[Error] NameError: name 'contxt' is not defined"
    assert raised[3] == "[Error] '(' was never closed (<unknown>, line 1)"
    assert raised[5] == steps[5]["output"]


def test_however_it_was_saved_it_is_the_same_run(home: Home) -> None:
    ((first, _),) = taken(home, DSPY / "prediction.json")
    ((printed, _),) = taken(home, DSPY / "printed.txt")
    (line, _), (forced, _) = taken(home, DSPY / "many.jsonl")
    assert {printed.run_id, line.run_id} == {first.run_id} and not printed.new and not line.new
    assert forced.new
    ((steps, view),) = taken(home, DSPY / "trajectory.json")
    assert steps.new and outline(view) == WHOLE.strip() and view.summary.answer is not None


def test_what_was_saved_beside_it_is_kept(home: Home) -> None:
    ((_, view),) = taken(home, DSPY / "with_inputs.json")
    assert view.summary.question == "How many days was the pump down?"
    saved = json.loads((DSPY / "with_inputs.json").read_text())
    assert texts(view, "run", "child_context") == [{"context": saved["context"]}]
    assert view.summary.answer == '{"answer":"6 days","days":6}'


def test_what_was_saved_beside_the_parts_of_a_step_is_kept(home: Home, tmp_path: Path) -> None:
    steps = [{"code": "print(1)", "output": "1", "reasoning": "Look."} for _ in range(2)]
    steps[0] |= {"image": "x" * 10_000}
    steps[1] |= {"latency": "2 s", "tags": "new"}
    file = tmp_path / "steps.json"
    file.write_text(json.dumps(steps))
    ((_, view),) = taken(home, file)
    first, second = (span_detail(view, span) for span in view.spans if span.kind == "iteration")
    assert "dspy.saved_beside" not in first["facts"]  # too long to be read with every look at the run
    saved = view.payload(first["facts"]["dspy.saved_beside.sha256"])
    assert saved is not None and json.loads(saved) == {"image": "x" * 10_000}
    assert json.loads(second["facts"]["dspy.saved_beside"]) == {"latency": "2 s", "tags": "new"}


def test_an_answer_that_was_extracted_is_forced(home: Home) -> None:
    ((_, view),) = taken(home, DSPY / "forced.json")
    assert view.summary.forced and view.summary.stop_reason == "max_iterations"
    assert view.summary.answer == '{"answer":"perhaps 6 days","days":6}'
    assert [span.kind for span in view.spans][-2:] == ["iteration", "root_call"]
    assert view.summary.iterations == 2  # the forced turn is none


@pytest.mark.parametrize("submits", [True, False])
def test_the_only_field_of_a_prediction_is_the_answer_whatever_was_saved_beside_it(
    home: Home, tmp_path: Path, submits: bool
) -> None:
    """It equals the same answer of another engine; with several fields it stays an object."""
    said = json.loads((SAMPLES / "dspy_rlm_prediction_3.4.1.json").read_text())
    steps = said["trajectory"][: None if submits else -1]
    forced = {} if submits else {"final_reasoning": "Extract forced final output"}
    whole = {"context": "Doc A", "question": "How many?", **said, "trajectory": steps, **forced}
    (tmp_path / "saved.json").write_text(json.dumps(whole))
    ((_, view),) = taken(home, tmp_path / "saved.json")
    run = view.summary
    assert (run.answer, run.forced) == ("6 days", not submits)
    assert texts(view, "run", "child_context") == [{"context": "Doc A"}]
    assert same_answer(run.answer, "6 days.")


def test_steps_that_end_without_an_answer_have_none(home: Home, tmp_path: Path) -> None:
    steps = json.loads((DSPY / "trajectory.json").read_text())[:3]
    (tmp_path / "steps.json").write_text(json.dumps(steps))
    ((done, view),) = taken(home, tmp_path / "steps.json")
    assert view.summary.answer is None
    assert any("holds no answer" in sentence for sentence in done.missing)


def test_the_record_of_a_synthetic_run_opens(home: Home) -> None:
    ((_, view),) = taken(home, SAMPLES / "dspy_rlm_prediction_3.4.1.json")
    assert view.summary.answer == "6 days" and view.summary.iterations == 3


def test_a_file_that_ends_in_the_middle_gives_its_whole_steps(home: Home, tmp_path: Path) -> None:
    whole = (DSPY / "prediction.json").read_text()
    (tmp_path / "cut.json").write_text(whole[: whole.index("Broken code") - 20])
    ((done, view),) = taken(home, tmp_path / "cut.json")
    assert done.problems == ("The file ends in the middle: what stands after that is lost.",)
    assert texts(view, "root_call", "response") == ["Look at the documents.", "Ask about each.", "A typo."]
    assert view.summary.status == "interrupted"


def test_lines_that_cannot_be_read_are_counted(home: Home, tmp_path: Path) -> None:
    lines = (DSPY / "many.jsonl").read_text().splitlines()
    (tmp_path / "many.jsonl").write_text("\n".join([lines[0], lines[1][:300], lines[1]]))
    done = [one for one, _ in taken(home, tmp_path / "many.jsonl")]
    assert [one.problems for one in done] == [(), ("Lines of the file that cannot be read: 1.",)]


def saved(tmp_path: Path, value: Any) -> Path:
    """A value as a file of JSON."""
    (tmp_path / "saved.json").write_text(json.dumps(value))
    return tmp_path / "saved.json"


STEP = {"reasoning": "r", "code": "print(1)", "output": "1"}


def test_what_is_no_step_of_a_trajectory_is_counted_as_lost(home: Home, tmp_path: Path) -> None:
    bare = {"reasoning": "only thought"}
    value = {"answer": "6", "trajectory": ["junk", STEP, None, bare, ["code"]]}
    ((done, view),) = taken(home, saved(tmp_path, value))
    assert done.problems == ("Entries of the trajectory that are no steps: 3.",)
    assert texts(view, "root_call", "response") == ["r", "only thought"]
    assert not view.summary.complete


def test_a_null_answer_is_none(home: Home, tmp_path: Path) -> None:
    ((done, view),) = taken(home, saved(tmp_path, {"answer": None, "trajectory": [STEP]}))
    assert (view.summary.answer, view.summary.stop_reason) == (None, None)
    assert "The answer on record is null." in done.missing


def test_a_null_that_code_submitted_is_no_answer_and_the_run_ended_with_it(
    home: Home, tmp_path: Path
) -> None:
    steps = [STEP, {**STEP, "output": "FINAL: {'answer': None}"}]
    ((done, view),) = taken(home, saved(tmp_path, {"answer": None, "trajectory": steps}))
    assert (view.summary.answer, view.summary.stop_reason) == (None, "final")
    assert "The answer on record is null." in done.missing


def test_how_an_answer_came_about_is_unknown_where_no_step_submits_it(home: Home, tmp_path: Path) -> None:
    ((done, view),) = taken(home, saved(tmp_path, {"answer": "6", "trajectory": [STEP]}))
    assert (view.summary.answer, view.summary.stop_reason) == ("6", None)
    assert "How the answer came about is not in the record: no step submits it." in done.missing


def test_a_question_may_be_an_object(home: Home, tmp_path: Path) -> None:
    value = {"question": {"a": 1}, "answer": "6", "trajectory": [STEP]}
    ((done, view),) = taken(home, saved(tmp_path, value))
    assert view.summary.question == '{"a": 1}'
    assert not any("question" in sentence for sentence in done.missing)


def test_a_question_that_code_submitted_is_the_answer(home: Home, tmp_path: Path) -> None:
    steps = [{**STEP, "output": "FINAL: {'question': 'Who?'}"}]
    ((_, view),) = taken(home, saved(tmp_path, {"question": "Who?", "trajectory": steps}))
    assert (view.summary.question, view.summary.answer) == (None, "Who?")


@pytest.mark.parametrize("lines", [True, False])
def test_what_stands_beside_predictions_is_counted(home: Home, tmp_path: Path, lines: bool) -> None:
    values = [{"answer": "6", "trajectory": [STEP]}, {"answer": "7", "trajectory": []}, {"answer": "8"}]
    file = saved(tmp_path, values)
    if lines:
        file.write_text("\n".join(map(json.dumps, values)))
    ((done, view),) = taken(home, file)
    named = "Lines of the file" if lines else "Entries of the list"
    assert view.summary.answer == "6" and done.problems == (f"{named} that hold no such record: 2.",)


def test_lines_are_read_one_at_a_time(tmp_path: Path) -> None:
    """A file of many predictions need not fit into memory."""
    file, looked = tmp_path / "many.jsonl", []
    file.write_text((DSPY / "many.jsonl").read_text() * 20)

    def wanted(value: Any) -> bool:
        looked.append(1)
        return True

    found = documents(Source(file, file.name), wanted)
    assert next(found).value == json.loads((DSPY / "many.jsonl").read_text().splitlines()[0])
    assert len(looked) == 2 and len(list(found)) == 39


def test_a_printed_prediction_is_read_as_text_and_never_run(home: Home, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    step = "[{'reasoning': 'r', 'code': 'c', 'output': 'o'}]"
    hostile = f"Prediction(trajectory={step}, answer=open({str(proof)!r}, 'w'), final_reasoning='r')"
    (tmp_path / "printed.txt").write_text(hostile)
    ((done, view),) = taken(home, tmp_path / "printed.txt")
    assert not proof.exists() and view.summary.answer is None
    assert done.problems == ("Printed values that cannot be read back: answer.",)


def test_other_json_is_not_taken_for_it(home: Home, tmp_path: Path) -> None:
    (tmp_path / "react.json").write_text(
        json.dumps({"trajectory": {"thought_0": "t", "tool_name_0": "code"}, "reasoning": "r"})
    )
    (refused,) = import_paths(home, [tmp_path / "react.json"])
    assert isinstance(refused, Refused)
