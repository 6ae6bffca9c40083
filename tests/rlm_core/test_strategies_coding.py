"""Strategies whose root writes cells: what its REPL lacks, what it is told, which passages it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, Answer, FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from rlm_core.checks import SUB_CALLS
from rlm_core.options import Options
from rlm_core.strategies import words
from tests.support.scripted import Script, cell, run
from traces.coverage import coverage
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording

RUN = "20260101T000000-0000000a"
DOCUMENTS = {
    "quay.txt": "The northern quay is closed.\n",
    "crane.txt": "The crane was repaired (in April).\n",
}


def codes(*written: str, sub: Any = lambda _: "yes", strategy: str, **options: Any) -> tuple[Answer, Script]:
    """A run of cells by a strategy."""
    script = Script([cell(code) for code in written], sub)
    how: Any = Options(strategy=strategy, **options)  # type: ignore[arg-type]
    answer = run(script, DOCUMENTS, question="When was the crane repaired?", options=how, sandbox="none")
    return answer, script


TRIES = """
missing = []
for name in NAMES:
    try:
        eval(name)
    except NameError as error:
        missing.append(str(error))
FINAL([len(missing), missing[0], len(context.top("crane", 1)), budget()["iterations"]])
"""


@pytest.mark.parametrize("strategy", ["codeact", "rlm-no-subcalls"])
def test_the_repl_has_search_but_no_sub_calls(strategy: str) -> None:
    answer, script = codes(TRIES.replace("NAMES", repr(sorted(SUB_CALLS))), strategy=strategy)
    count, said, passages, left = answer.value
    assert (count, said, passages, left) == (
        len(SUB_CALLS), "name 'llm_batch' is not defined", 1, Limits().max_iterations - 1,
    )  # fmt: skip
    (request,) = script.root_requests
    system = request.messages[0].content
    assert "llm_query" not in system and "There is no sub-model" in system and ".top(query, k)" in system
    assert request.messages[1].content.startswith("# Question\nWhen was the crane repaired?")


FORGED = """
channel = next(c.cell_contents for c in budget.__func__.__closure__ or []) if 0 else budget.__self__._channel
slot = {"p": ["Say something."], "s": []}
print(channel.ask(lambda call: [
    {"t": "open", "op": "llm", "n": 1, "batch": False, "line": 1, "id": call},
    {"t": "items", "id": call, "items": [slot]},
    {"t": "close", "id": call},
]))
"""


def test_a_call_that_code_forges_reaches_no_model() -> None:
    answer, script = codes(FORGED, "FINAL('done')", strategy="codeact")
    assert (answer.text, answer.sub_calls, script.sub_requests) == ("done", 0, [])
    assert "a sub-call in a run without sub-calls" in script.outputs[0]


def test_the_passages_stand_before_the_first_turn_and_count_as_read(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    requests: list[Request] = []

    def answer(request: Request) -> str:
        requests.append(request)
        if request.role == "sub":
            return "April"
        nested = len(requests) > 1
        return cell("FINAL('April')" if nested else "FINAL([rlm_query('When?'), llm_query('Month?')])")

    options = Options(strategy="retrieve+rlm", passages=1)
    with (
        open_recording(home, RUN, {}) as recording,
        RLM("a/b", "a/b", handler=FunctionLMHandler(answer), options=options, sandbox="none") as rlm,
    ):
        long = {f"{n}.txt": "The quay is closed.\n" * 300 for n in range(4)}
        done = rlm.ask(
            "When was the crane repaired?",
            {**long, **DOCUMENTS, "z.txt": "The end.\n" * 900},
            recorder=recording.recorder,
            run_id=RUN,
        )
    assert done.value == ["April", "April"]
    first, child = (request.messages[1].content for request in requests[:2])
    assert words.PASSAGES in first and DOCUMENTS["crane.txt"] in first and words.PASSAGES not in child
    assert first.endswith(")") and "\n(turn 1 of" in first.rpartition(DOCUMENTS["crane.txt"])[2]
    view = load_run(home, RUN)
    shown = json.loads(view.spans[0].attributes[sc.SHOWN_RANGES])
    assert [5, 0, len(DOCUMENTS["crane.txt"])] in shown["ranges"]
    (document,) = (d for d in coverage(view).documents if d.name == "crane.txt")
    assert document.share(document.read) == 1.0


def test_a_question_without_a_word_is_answered_as_it_would_be_without_passages() -> None:
    script = Script([cell("FINAL(1)")])
    how = Options(strategy="retrieve+rlm")
    answer = run(script, DOCUMENTS, question="?!", options=how, sandbox="none")
    assert answer.value == 1 and words.PASSAGES not in script.root_requests[0].messages[1].content


def test_a_schema_and_passages_stand_side_by_side() -> None:
    answer, script = codes("FINAL(4)", strategy="retrieve+rlm", schema={"type": "integer"})
    first = script.root_requests[0].messages[1].content
    assert answer.value == 4 and first.index("# Answer\n") > first.index(DOCUMENTS["crane.txt"])
