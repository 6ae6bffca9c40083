"""Forms of rlms logs that the made ones do not have: older, kept in memory, other environments, broken."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from traces.importers import rlms
from traces.importers.foreign import ForeignRun, ForeignSpan, TokenUse, reported
from traces.importers.source import Source

METADATA = {"type": "metadata", "root_model": "big", "max_depth": 1, "max_iterations": 30}
TRACED = "Traceback (most recent call last)"
COMPACTED = "Your conversation has been compacted"
GIVEN = "Your context is a str of 7 total characters."
METADATA |= {"environment_type": "local"}


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A computer five hours behind."""
    monkeypatch.setenv("TZ", "FIVE+5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def block(code: str = "x = 1", *calls: Any, **result: Any) -> dict[str, Any]:
    made = {"stdout": "", "stderr": "", "locals": {}, "execution_time": 0.5, "rlm_calls": list(calls)}
    return {"code": code, "result": made | result}


def call(prompt: Any = "p", response: str | None = "r", seconds: float = 0.1, **more: Any) -> dict[str, Any]:
    usage = {"small": {"total_calls": 1, "total_input_tokens": 4, "total_output_tokens": 2}}
    made = {"root_model": "small", "prompt": prompt, "response": response, "execution_time": seconds}
    return made | {"usage_summary": {"model_usage_summaries": usage}} | more


def turn(
    number: int = 1, *blocks: Any, final: Any = None, at: str = "10:00:03", **more: Any
) -> dict[str, Any]:
    made = {"type": "iteration", "iteration": number, "timestamp": f"2026-07-01T{at}"}
    made |= {"prompt": [{"role": "user", "content": f"turn {number}"}], "response": f"reply {number}"}
    return made | {"code_blocks": list(blocks), "final_answer": final, "iteration_time": 1.0} | more


def runs(tmp_path: Path, *lines: Any) -> list[ForeignRun]:
    file = tmp_path / "log.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    file.write_text("\n".join(texts), encoding="utf-8")
    source = Source(file, file.name)
    assert rlms.recognises(source)
    return list(rlms.read(source))


def spans(run: ForeignRun, kind: str) -> list[ForeignSpan]:
    return [span for span in run.top.walk() if span.kind == kind]


def test_a_log_of_before_0_1_0(tmp_path: Path) -> None:
    """No line of settings, tokens on the call itself, the answer as a pair, no time of the iteration."""
    old = {
        "prompt": "hi",
        "response": "hello",
        "prompt_tokens": 3,
        "completion_tokens": 1,
        "execution_time": 0.2,
    }
    line = turn(1, block("x = llm_query('hi')", old), final=["FINAL_VAR", "hello"], iteration_time=None)
    del line["type"]
    (run,) = runs(tmp_path, line)
    (asked,) = spans(run, "sub_call")
    assert asked.tokens == reported(TokenUse(3, 1))
    assert run.top.texts[sc.ANSWER] == "hello" and run.top.attributes[sc.ANSWER_VIA] == "FINAL_VAR"
    assert not run.top.attributes[sc.FORCED] and run.root_model is None and run.closed
    assert any("no line of settings" in sentence for sentence in run.missing)


def test_a_run_whose_first_iteration_has_no_time_has_none(tmp_path: Path) -> None:
    """From the end of one iteration to that same end is no time that a run took."""
    (run,) = runs(tmp_path, turn(1, iteration_time=None), turn(2, at="10:00:09", final="a"))
    assert run.top.seconds.mark == "missing" and run.top.start.mark == "derived"
    assert "whose time is not in the log" in (run.top.start.why or "")
    first, second = spans(run, "iteration")
    assert (first.seconds.mark, second.seconds.mark) == ("missing", "reported")


def test_the_time_of_a_root_call_is_unknown_where_a_cell_has_none(tmp_path: Path) -> None:
    silent = block()
    del silent["result"]["execution_time"]
    (run,) = runs(tmp_path, METADATA, turn(1, silent, block(), final="a"))
    assert spans(run, "root_call")[0].seconds.mark == "missing"
    assert [cell.start.mark for cell in spans(run, "cell")] == ["missing", "missing"]


def test_the_viewer_also_takes_answers_as_a_pair_of_a_run_that_answers_by_text(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, METADATA, turn(1, response="FINAL(four)", final=["FINAL", "four"]))
    assert (run.top.texts[sc.ANSWER], run.top.attributes[sc.ANSWER_VIA]) == ("four", "FINAL")


@pytest.mark.parametrize(
    "lines",
    [
        [turn(1), turn(2, final="a"), turn(1, at="10:00:09", final="b")],
        [turn(1, final="a"), turn(2, at="10:00:09", final="b")],  # 0.1.0 counts on
        [turn(1), turn(1, at="10:00:09", final="b")],
        [turn(1), turn(2, at="10:00:09", prompt=[{"role": "user", "content": "You have not interacted with the REPL environment or"}])],  # noqa: E501
        [turn(3), METADATA, turn(4, final="b")],
    ],
)  # fmt: skip
def test_a_new_run_begins_where_the_counter_or_the_conversation_does(
    tmp_path: Path, lines: list[Any]
) -> None:
    found = runs(tmp_path, METADATA, *lines)
    assert len(found) == 2 and found[0].key != found[1].key
    assert len(spans(found[0], "iteration")) == len(lines) - 1 - (METADATA in lines)


def test_times_without_a_zone_are_those_of_this_computer(tmp_path: Path, zone: None) -> None:
    first, second = runs(tmp_path, METADATA, turn(1, final="a"), turn(1, at="10:30:03", final="b"))
    assert first.top.start.value == 1_782_918_002_000_000_000  # 15:00:02 UTC
    assert (second.top.start.value or 0) - (first.top.start.value or 0) == 1_800_000_000_000
    assert first.top.start.mark == "derived" and any("zone" in sentence for sentence in first.missing)


def test_times_with_a_zone_are_taken_as_they_are(tmp_path: Path, zone: None) -> None:
    (run,) = runs(tmp_path, METADATA, turn(1, at="10:00:03+02:00", final="a"))
    assert run.top.start.value == 1_782_892_802_000_000_000  # 08:00:02 UTC
    assert not any("zone" in sentence for sentence in run.missing)


@pytest.mark.parametrize("at", ["", "25:00", None, 7, "10:00:03+99:99"])
def test_what_is_no_time_is_missing(tmp_path: Path, at: Any) -> None:
    (run,) = runs(tmp_path, METADATA, turn(1, block(), final="a", timestamp=at))
    assert run.top.start.mark == "missing" and spans(run, "iteration")[0].start.mark == "missing"
    assert spans(run, "cell")[0].seconds.value == 0.5


def test_equal_usage_and_time_next_to_one_another_is_a_batch_whose_numbers_are_wrong(tmp_path: Path) -> None:
    code = "a = llm_query('p')\nb = llm_query_batched(ps)\nc = llm_query_batched(qs)"
    calls = [call(seconds=0.7), *[call(f"b{n}", seconds=0.25) for n in range(3)], call("c0", seconds=0.4)]
    (run,) = runs(tmp_path, METADATA, turn(1, block(code, *calls), final="a"))
    (cell,) = spans(run, "cell")
    assert [child.kind for child in cell.children] == ["sub_call", "batch", "sub_call"]
    batch = cell.children[1]
    assert batch.attributes == {sc.BATCH_SIZE: 3, sc.BATCH_FAILED: 0} and batch.seconds.value == 0.75
    assert {child.tokens.mark for child in batch.children} == {"known_wrong"}
    assert cell.children[0].tokens.mark == cell.children[2].tokens.mark == "reported"


def test_a_cell_that_asks_one_batch_and_nothing_else_makes_one(tmp_path: Path) -> None:
    calls = [call("a", seconds=0.1), call("b", seconds=0.2)]
    for code, kinds in [
        ("x = rlm_query_batched(ps)", ["batch"]),
        ("for p in ps:\n    x = rlm_query_batched([p])", ["sub_call", "sub_call"]),
        ("x = [rlm_query_batched([p]) for p in ps]", ["sub_call", "sub_call"]),
        ("x = rlm_query_batched(ps) + [rlm_query('q')]", ["sub_call", "sub_call"]),
        ("this is no code (", ["sub_call", "sub_call"]),
    ]:
        (run,) = runs(tmp_path, METADATA, turn(1, block(code, *calls), final="a"))
        assert [child.kind for child in spans(run, "cell")[0].children] == kinds, code


def test_failed_slots_and_errors_given_as_text_are_failed_calls(tmp_path: Path) -> None:
    none = {"model_usage_summaries": {}}
    calls = [
        call("a", seconds=0.3),
        call("b", "", 0.0, usage_summary=none, error="llm() call failed - 429"),
        call("c", seconds=0.3),
        call("d", "Error: Child RLM completion failed - boom", usage_summary=none),
        call("e", "Error: LM query failed at max depth - 500", usage_summary=none),
        call("f", "Error: is what the model said"),
    ]
    (run,) = runs(tmp_path, METADATA, turn(1, block("pass", *calls), final="a"))
    (cell,) = spans(run, "cell")
    batch, child, deepest, said = cell.children
    assert [slot.error for slot in batch.children] == [None, ("call_failed", "llm() call failed - 429"), None]
    assert batch.attributes[sc.BATCH_FAILED] == 1
    assert [slot.tokens.mark for slot in batch.children] == ["known_wrong", "missing", "known_wrong"]
    assert (child.kind, child.status) == ("run", "error") and child.texts[sc.QUESTION] == "d"
    assert (deepest.kind, deepest.error) == (
        "sub_call",
        ("call_failed", "LM query failed at max depth - 500"),
    )
    assert said.status == "ok" and said.texts[sc.RESPONSE] == "Error: is what the model said"


@pytest.mark.parametrize("number", [-3, float("nan"), "14", 10**30, [14]])
def test_numbers_that_are_there_and_unusable_are_said_to_be(tmp_path: Path, number: object) -> None:
    models = {"m": {"total_input_tokens": number, "total_output_tokens": 3}}
    odd = call("a", usage_summary={"model_usage_summaries": models, "total_cost": number})
    log = turn(1, block("x = llm_query('a')", odd | {"execution_time": number}), final="a")
    (run,) = runs(tmp_path, METADATA, log)
    (one,) = spans(run, "sub_call")
    told = [number for number in (one.tokens, one.seconds) if number.mark == "missing"]
    assert len(told) == 2 and all(
        str(number.why).startswith("in the record, but unusable: ") for number in told
    )
    (said,) = run.problems
    assert said.startswith("Numbers that are in the record, but unusable: ")


def test_the_time_of_the_only_call_of_a_batch_that_did_not_fail_is_a_mean(tmp_path: Path) -> None:
    none = {"model_usage_summaries": {}}
    calls = [call("a", seconds=0.4), call("b", "", 0.0, usage_summary=none, error="llm() call failed - 429")]
    (run,) = runs(tmp_path, METADATA, turn(1, block("x = llm_query_batched(ps)", *calls), final="a"))
    (batch,) = spans(run, "cell")[0].children
    one, failed = batch.children
    assert (one.seconds.mark, one.tokens.mark, failed.seconds.mark) == ("known_wrong", "reported", "missing")
    assert (batch.seconds.value, batch.seconds.mark) == (0.8, "derived")


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        ("", None),
        ("a warning: take care\n", None),
        ("note: careful\n", None),
        ("\nStop: by the code", ("Stop", "by the code")),
        ("\nKeyError: 'x'", ("KeyError", "'x'")),
        ("seen\n\nValueError: two\nlines", ("ValueError", "two\nlines")),
        ('Traceback (most recent call last):\n  File "<c>", line 1\njson.decoder.JSONDecodeError: bad\n',
         ("json.decoder.JSONDecodeError", "bad")),
        ("Traceback (most recent call last):\n  File x\nAssertionError\n", ("AssertionError", "")),
        (f"{TRACED}:\n  File x\nKeyError: 1\n\nDuring it:\n\n{TRACED}:\n  File x\nmain.Stop: one\nword\n",
         ("main.Stop", "one\nword")),
        (f"seen\n\n-----\nStop      {TRACED}\nCell In[1], line 2\n----> 2 raise Stop\n\nStop: by code",
         ("Stop", "by code")),
    ],
)  # fmt: skip
def test_an_exception_is_found_at_the_end_of_stderr(tmp_path: Path, stderr: str, error: Any) -> None:
    (run,) = runs(tmp_path, METADATA, turn(1, block(stderr=stderr), final="a"))
    (cell,) = spans(run, "cell")
    assert cell.error == error and (cell.status == "error") == (error is not None)
    if error is None:
        assert cell.texts.get(sc.STDOUT, "") == stderr, "what is no exception was printed"


@pytest.mark.parametrize(
    "stderr",
    ["seen\n\n-----\nStop      Traceback (most recent call last)\n\nStop: x", "seen\n\nStopError: x"],
)
def test_what_was_printed_before_an_exception_is_output(tmp_path: Path, stderr: str) -> None:
    (run,) = runs(tmp_path, METADATA, turn(1, block(stdout="out\n", stderr=stderr), final="a"))
    (cell,) = spans(run, "cell")
    assert cell.texts[sc.STDOUT] == "out\nseen\n" and cell.texts[sc.EXCEPTION] == stderr[len("seen\n\n") :]


def test_a_conversation_that_was_summed_up_says_so(tmp_path: Path) -> None:
    short = [
        {"role": "assistant", "content": "so far"},
        {"role": "user", "content": f"{COMPACTED} 1 time(s)."},
    ]
    (run,) = runs(tmp_path, METADATA, turn(1), turn(2, prompt=short, at="10:00:09", final="a"))
    assert rlms.SUMMED_UP in run.missing and len(spans(run, "iteration")) == 2


def test_calls_that_an_environment_does_not_log_are_named(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, METADATA, turn(1, block("x = llm_query('p')"), final="a"))
    assert rlms.NO_CALLS in run.missing
    (run,) = runs(tmp_path, METADATA, turn(1, block("x = llm_query('p')", call()), final="a"))
    assert rlms.NO_CALLS not in run.missing
    (run,) = runs(tmp_path, METADATA, turn(1, block("print('llm_query')  # no rlm_query"), final="a"))
    assert rlms.NO_CALLS not in run.missing


@pytest.mark.parametrize(
    ("message", "question"),
    [
        (f"Answer the following: Why?\n\nOr not?\n\n{GIVEN}", "Why?\n\nOr not?"),
        ('to answer the original prompt: "Say "why"".\n\nContinue using the REPL environment', 'Say "why"'),
        (GIVEN, None),
    ],
)
def test_the_question_stands_in_the_first_messages(
    tmp_path: Path, message: str, question: str | None
) -> None:  # fmt: skip
    prompt = [{"role": "user", "content": text} for text in ("system", message)]
    (run,) = runs(tmp_path, METADATA, turn(1, final="a", prompt=prompt))
    assert run.top.texts.get(sc.QUESTION) == question
    assert any("no question" in sentence for sentence in run.missing) == (question is None)


def _completion(depth: int) -> dict[str, Any]:
    """What `completion()` returns, with child runs inside each other."""
    inside: dict[str, Any] = {}
    made = call("context", "answer")
    for level in range(depth):
        line = turn(1, block("x = rlm_query('q')", *([inside] if inside else [])), final=f"answer {level}")
        made = call(f"q{level}", f"answer {level}", metadata={"run_metadata": METADATA, "iterations": [line]})
        inside = made
    return made


@pytest.mark.parametrize("indent", [None, 2])
def test_a_completion_saved_as_json_is_a_run(tmp_path: Path, indent: int | None) -> None:
    (run,) = runs(tmp_path, json.dumps(_completion(3), indent=indent))
    assert [span.texts[sc.ANSWER] for span in spans(run, "run")] == ["answer 2", "answer 1", "answer 0"]
    assert run.root_model == "big" and run.closed and run.problems == []
    (trajectory,) = runs(tmp_path, json.dumps(_completion(3)["metadata"], indent=indent))
    assert len(spans(trajectory, "run")) == 3


def test_child_runs_nest_deeper_than_python_calls(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, _completion(70))
    assert len(spans(run, "run")) == 70


def test_of_a_log_that_is_cut_off_the_rest_is_had_and_the_cut_is_said(tmp_path: Path) -> None:
    text = json.dumps(turn(2, block(), final="a"))
    (run,) = runs(tmp_path, METADATA, turn(1, block()), text[: len(text) // 2])
    assert len(spans(run, "iteration")) == 1 and not run.closed
    assert run.problems == ["Line 3 is no entry of a log, or is cut off; it was left out."]
    assert any("without an answer" in sentence for sentence in run.missing)


def test_parts_of_another_shape_are_counted_and_cost_nothing_else(tmp_path: Path) -> None:
    odd = block("x", call({"role": "user"}), "nonsense", locals="no table", execution_time="long")
    second = turn(2, final="b", at="10:00:09", prompt=["one", {"role": "user", "content": None}])
    (run,) = runs(tmp_path, METADATA, turn(1, odd, 7, prompt="one text", response=None), second)
    assert run.problems == [
        "2 parts of its iterations are unusable and were left out.",
        "Numbers that are in the record, but unusable: 1.",
    ]
    (cell,) = spans(run, "cell")
    assert cell.seconds.mark == "missing" and sc.VARIABLES not in cell.texts
    assert spans(run, "sub_call")[0].texts[sc.PROMPT] == '{"role": "user"}'
    sent = [call.messages for call in spans(run, "root_call")]
    assert sent == [(("user", "one text"),), (("", "one"), ("user", ""))]


def test_a_log_without_an_iteration_holds_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no iteration"):
        runs(tmp_path, METADATA)


def test_the_only_root_call_of_a_child_run_used_what_the_run_did(tmp_path: Path) -> None:
    child = call(
        "q",
        "a",
        metadata={"run_metadata": METADATA | {"root_model": "small"}, "iterations": [turn(1, final="a")]},
    )
    (run,) = runs(tmp_path, METADATA, turn(1, block("rlm_query('q')", child), final="a"))
    top, inner = spans(run, "root_call")
    assert top.tokens.mark == "missing"
    assert inner.tokens.mark == "derived" and inner.tokens.value is not None and inner.tokens.value.input == 4


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"type": "metadata"}', '{"trajectory": []}', "\0" * 10, "text"]
)
def test_other_files_are_not_taken_for_a_log(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text)
    assert not rlms.recognises(Source(file, file.name))
    assert not rlms.recognises(Source(tmp_path, "folder"))


def test_a_first_line_that_is_very_long_is_recognised(tmp_path: Path) -> None:
    line = turn(1, block(locals={"context": "x" * 1_200_000}), final="a")
    (run,) = runs(tmp_path, {key: line[key] for key in line if key != "type"})
    assert "x" * 1000 not in run.top.children[0].children[1].texts[sc.VARIABLES]
