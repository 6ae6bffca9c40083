"""ask --repeat: several runs of one question, how far they agree, and whose answer comes first."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_core.lm_handler import FunctionLMHandler, Request
from rlm_core.rlm import RLM

Call = Callable[..., Any]


@pytest.fixture
def document(tmp_path: Path) -> str:
    (tmp_path / "a.txt").write_text("The pin is 7.\n")
    return str(tmp_path / "a.txt")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the n-th run end with the n-th cell."""

    def use(*cells: str) -> None:
        turns = iter(cells)

        def answer(_request: Request) -> str:
            return f"```repl\n{next(turns)}\n```"

        monkeypatch.setattr("rlm_core.models.make_handler", lambda *_, **__: FunctionLMHandler(answer))

    return use


def test_the_answer_of_the_largest_group_comes_first(
    call: Call, document: str, answers: Callable[..., None]
) -> None:
    answers("FINAL('nine')", "FINAL('seven')", "FINAL('Seven.')")
    result = call("ask", "q", document, "--repeat", "3", "--json")
    said = result.json
    first, second, third = (run["run_id"] for run in said["runs"])
    assert [run["answer"] for run in said["runs"]] == ["nine", "seven", "Seven."]
    assert (result.code, said["run_id"], said["answer"]) == (0, second, "seven")
    assert said["agreement"] == {
        "share": 2 / 3,
        "unanswered": 0,
        "groups": [
            {"answer": "seven", "count": 2, "run_ids": [second, third]},
            {"answer": "nine", "count": 1, "run_ids": [first]},
        ],
    }
    assert {run["run_id"] for run in call("runs", "--json").json} == {first, second, third}


def test_for_people(call: Call, document: str, answers: Callable[..., None]) -> None:
    answers("FINAL('46')", "FINAL('46 of them')", 'FINAL("about\\nnine")', "FINAL(46)")
    result = call("ask", "q", document, "--repeat", "4", "--match", "number")
    lines = result.out.splitlines()
    shown = call("runs", "--json").json[-1]["run_id"]  # the oldest
    assert lines[0] == "46" and any(f"look deeper: rlmscope show {shown}" in line for line in lines)
    assert "3 of 4 runs agree (75%, compared as number)" in lines
    assert any(line.startswith(f"  3 x 46 · {shown}, ") for line in lines)
    assert any(line.startswith("  1 x about nine · ") for line in lines)


def test_runs_without_an_answer_count_but_are_in_no_group(
    call: Call, document: str, answers: Callable[..., None]
) -> None:
    answers("FINAL(7)")  # then the function has nothing to say and the run fails
    result = call("ask", "q", document, "--repeat", "2", "--json")
    said = result.json
    assert (result.code, said["answer"], said["agreement"]["share"]) == (0, "7", 0.5)
    assert said["agreement"]["unanswered"] == 1 and said["runs"][1]["stop_reason"] == "error"
    failed = call("ask", "q", document, "--repeat", "2")
    assert failed.code == 1 and failed.out.startswith("no answer") and "  2 x no answer · " in failed.out


def test_a_cancelled_run_is_the_last_and_a_failure(
    call: Call, document: str, answers: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(*["FINAL(7)"] * 5)
    plain, numbers = RLM.ask, itertools.count()

    def ask(self: RLM, *arguments: Any, **options: Any) -> Any:
        done = plain(self, *arguments, **options)
        return replace(done, stop_reason="cancelled") if next(numbers) == 1 else done

    monkeypatch.setattr(RLM, "ask", ask)
    result = call("ask", "q", document, "--repeat", "5", "--json")
    assert result.code == 1 and len(result.json["runs"]) == 2 and result.json["answer"] == "7"
    assert result.err.splitlines()[-1] == "rlmscope: cancelled in run 2 of 5"


def test_answers_that_a_limit_forced_are_counted_in_their_group(
    call: Call, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Request) -> str:
        return "seven" if request.messages[2:] else "```repl\nx = 1\n```"

    monkeypatch.setattr("rlm_core.models.make_handler", lambda *_, **__: FunctionLMHandler(answer))
    result = call("ask", "q", document, "--repeat", "2", "--max-iterations", "1")
    assert "  2 x seven (2 forced) · " in result.out
