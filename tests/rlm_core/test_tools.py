"""Tools of sub-models: what they are told, what runs, what is recorded, and that nothing breaks a run."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import pytest

from rlm_core import Answer, Completion, Corpus, Limits, Request
from rlm_core import semconv as sc
from rlm_core.builtin_tools import BUILTIN, calculate
from rlm_core.errors import ConfigError
from rlm_core.lm_handler import ToolCall
from rlm_core.options import Options
from rlm_core.tools import Tool, tool, without_function
from tests.support.scripted import Script, cell, completion, run
from tests.support.source_runs import Recorded
from traces.reading import load_run
from traces.recording import open_recording


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def slow_add(a: int, b: int) -> str:
    """Add two numbers, after a while."""
    await asyncio.sleep(0)
    return f"{a + b}"


def calls(*wanted: tuple[str, str], text: str | None = None) -> Completion:
    """A reply that calls tools: name and arguments."""
    made = tuple(ToolCall(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(wanted))
    return completion(text, finish_reason="tool_calls", tool_calls=made)


def told(request: Request) -> list[str]:
    """What the tools said so far."""
    return [message.content for message in request.messages if message.role == "tool"]


def once(*wanted: tuple[str, str]) -> Callable[[Request], Any]:
    """A sub-model that calls these tools once and then repeats what it was told."""
    return lambda request: completion(" | ".join(told(request))) if told(request) else calls(*wanted)


def ask(sub: Callable[[Request], Any], *tools: Any, **limits: Any) -> tuple[Answer, Script]:
    made = tuple(one if isinstance(one, Tool) else tool(one) for one in tools)
    script = Script([cell("x = llm_query('sum?')\nFINAL([x if x else repr(x)])")], sub)
    return run(script, options=Options(tools=made), limits=Limits(**limits)), script


def said(answer: Answer) -> str:
    """What the sub-call came to."""
    assert answer.stop_reason == "final", answer
    return str(answer.value[0])


# -- what a model is told


def test_a_function_becomes_a_tool_with_the_schema_of_its_arguments() -> None:
    def find(corpus: Corpus, word: str, how: Literal["all", "any"] = "any", most: int | None = None) -> str:
        """Find a word.

        More about it.
        """
        return word

    spec = tool(find).spec
    assert (spec.name, spec.description) == ("find", "Find a word.\n\nMore about it.")
    assert list(spec.parameters["properties"]) == ["word", "how", "most"]
    assert spec.parameters["required"] == ["word"] and spec.parameters["additionalProperties"] is False
    assert spec.parameters["properties"]["how"]["enum"] == ["all", "any"]
    assert tool(find, name="look-up").spec.name == "look-up"


def no_words(a: int) -> int:
    return a


def test_what_a_model_cannot_be_told_is_no_tool() -> None:
    def bare(a) -> int:  # type: ignore[no-untyped-def]
        """Say."""
        return 1

    def many(*a: int) -> int:
        """Say."""
        return 1

    def foreign(a: threading.Thread) -> int:
        """Say."""
        return 1

    for function, why in (
        (no_words, "needs a docstring"),
        (bare, "a has no annotation"),
        (many, "a cannot be given by name"),
        (foreign, "cannot be told as a JSON schema"),
    ):
        with pytest.raises(ConfigError, match=why):
            tool(function)
    with pytest.raises(ConfigError, match="cannot be called 'two words'"):
        tool(add, name="two words")
    with pytest.raises(ConfigError, match="two tools are called add"):
        Options(tools=(tool(add), tool(add)))


def test_only_sub_models_are_offered_tools_and_the_root_is_told_of_them() -> None:
    _, script = ask(once(("add", '{"a": 2, "b": 3}')), add)
    assert all(request.tools == () for request in script.root_requests)
    assert [spec.name for spec in script.sub_requests[0].tools] == ["add"]
    opening = script.root_requests[0].messages[-1].content
    assert "code cannot:\nadd: Add two numbers.\n(turn 1 of" in opening


# -- what runs


@pytest.mark.parametrize("function", [add, slow_add], ids=["sync", "async"])
def test_the_reply_rests_on_what_the_tool_said(function: Any) -> None:
    answer, script = ask(once((function.__name__, '{"a": 2, "b": 3}')), function)
    assert (said(answer), answer.sub_calls, answer.tool_calls) == ("5", 1, 1)
    assert answer.tokens["input"] >= 20, "both requests of the sub-call count"
    roles = [message.role for message in script.sub_requests[1].messages]
    assert roles == ["user", "assistant", "tool"]
    assert script.sub_requests[1].messages[2].tool_call_id == "c0"


def test_a_sync_function_that_returns_a_coroutine_gives_its_result_not_its_repr() -> None:
    def later(a: int) -> Any:
        """Say later."""
        return slow_add(a, 1)

    assert ask(once(("later", '{"a": 1}')), later)[0].value == ["2"]


def test_calls_of_one_reply_are_answered_in_order() -> None:
    answer, _ = ask(once(("add", '{"a": 1}'), ("add", '{"a": 5, "b": 5}'), ("add", "{}")), add)
    first, second, third = said(answer).split(" | ")
    assert (first, second) == ("2", "10") and "'a' is a required property" in third


def gone() -> object:
    """Return something."""
    return object()


def stops() -> str:
    """Stop."""
    raise StopIteration


def exits() -> str:
    """Exit."""
    raise SystemExit(3)


async def cancels() -> str:
    """Cancel itself."""
    raise asyncio.CancelledError


def sleeps() -> str:
    """Sleep."""
    time.sleep(1.5)
    return "late"


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (add, '{"a": "x"}', "do not fit the tool: $.a: 'x' is not of type 'integer'"),
        (add, '{"a": 1, "c": 2}', "'c' was unexpected"),
        (add, "a=1", "the arguments were not understood: it is not JSON"),
        (add, "[1]", "do not fit the tool"),
        (gone, "", "returned a value of type object, which JSON cannot hold"),
        (stops, "", "StopIteration"),
        (exits, "{}", "SystemExit: 3"),
        (cancels, "{}", "CancelledError"),
        (sleeps, "{}", "no result within 0.05 s"),
    ],
)
def test_what_goes_wrong_in_a_tool_is_its_result(function: Any, arguments: str, words: str) -> None:
    seconds = 0.05 if function is sleeps else 60.0
    answer, _ = ask(once((function.__name__, arguments)), function, tool_seconds=seconds)
    assert said(answer).startswith("Error: ") and words in said(answer)


def test_a_name_nobody_declared_is_told_with_those_there_are() -> None:
    answer, _ = ask(once(("multiply", "{}")), add)
    assert said(answer) == "Error: there is no tool 'multiply'; there are add"


def test_a_long_result_is_cut_and_its_length_said() -> None:
    def long() -> str:
        """Say much."""
        return "x" * 50_000

    text = said(ask(once(("long", "")), long)[0])
    assert len(text) < 41_000 and text.endswith("[cut here: the result has 50,000 characters]")


# -- limits


def test_a_model_that_calls_for_ever_is_told_and_then_given_up() -> None:
    answer, script = ask(lambda request: calls(("add", '{"a": 1}')), add, max_tool_rounds=2)
    assert "kind='tools'" in said(answer) and "after 2 rounds" in said(answer)
    assert told(script.sub_requests[-1])[:2] == ["2", "2"]
    assert "answer now with what you know" in told(script.sub_requests[-1])[2]
    assert (len(script.sub_requests), answer.failed_sub_calls) == (4, 1)


def test_a_model_that_is_told_to_answer_may_still_answer() -> None:
    def sub(request: Request) -> Any:
        return "enough" if len(told(request)) == 2 else calls(("add", '{"a": 1}'))

    assert ask(sub, add, max_tool_rounds=1)[0].value == ["enough"]


def test_the_limit_of_tool_calls_is_that_of_the_run() -> None:
    answer, _ = ask(once(*[("add", '{"a": 1}')] * 3), add, max_tool_calls=2)
    assert said(answer).split(" | ")[2] == "Error: the run's limit of 2 tool calls is used up"
    assert said(answer).startswith("2 | 2 | ")


def test_the_budget_is_checked_before_each_request_of_a_conversation() -> None:
    answer, script = ask(lambda _: calls(("add", '{"a": 1}'), text="x" * 6_000), add, max_tokens=12_000)
    assert "kind='budget'" in said(answer)
    assert 1 < len(script.sub_requests) < 9, "its messages grow by 1,500 tokens with each round"


def test_a_tool_of_which_only_the_description_is_known_is_not_asked_for() -> None:
    answer, script = ask(once(("add", "{}")), without_function(tool(add).spec))
    assert "function of tool add, which is not known here" in said(answer)
    assert not script.sub_requests


def test_the_demo_model_says_that_it_calls_none() -> None:
    from rlm_core import RLM

    with RLM(options=Options(tools=(tool(add),))) as rlm:
        answer = rlm.ask("When does the pact end?", "The pact ends in May.\n")
    assert answer.tool_calls == 0
    assert any("demo sub-model calls no tools" in notice for notice in answer.notices)


# -- the record


def test_rounds_and_calls_are_on_record_below_their_sub_call(recorded: Recorded) -> None:
    wanted = once(("corpus_search", '{"query": "quay"}'), ("calculate", '{"expression": "1/0"}'))
    script = Script([cell("FINAL(llm_query('how many?'))")], wanted)
    with open_recording(recorded.home, recorded.run_id, {}) as recording:
        run(
            script,
            {"a.txt": "Nothing here.\n", "b.txt": "The northern quay handled 4,812 containers in March.\n"},
            options=Options(tools=tuple(BUILTIN.values())),
            recorder=recording.recorder,
            run_id=recorded.run_id,
        )
    view = load_run(recorded.home, recorded.run_id)
    (call,) = (span for span in view.spans if span.kind == "sub_call")
    found, failed = (span for span in view.spans if span.kind == "tool")
    attempts = [span for span in view.spans if span.kind == "attempt" and span.parent_id == call.span_id]
    assert {found.parent_id, failed.parent_id} == {call.span_id}
    assert [span.attributes[sc.TOOL_ROUND] for span in attempts] == [0, 1]
    assert [span.attributes[sc.ATTEMPT] for span in attempts] == [0, 1]
    assert call.tokens == {"input": 20, "output": 10, "total": 30}
    assert (failed.status, failed.error_type) == ("error", "tool")
    result = json.loads(view.payload(found.attributes[sc.TOOL_RESULT + ".sha256"]) or "")
    assert [one["name"] for one in result] == ["b.txt"]
    assert view.payload(found.attributes[sc.TOOL_ARGUMENTS + ".sha256"]) == '{"query": "quay"}'
    ranges = json.loads(found.attributes[sc.SOURCE_RANGES])["ranges"]
    assert ranges and ranges[0][0] == 1, "what a tool read of the corpus is known"


def test_short_lines_that_a_tool_found_count_as_read(recorded: Recorded) -> None:
    rows = "".join(f"{n};quay {n}\n" for n in range(40))
    script = Script([cell("FINAL(llm_query('how many?'))")], once(("corpus_search", '{"query": "quay"}')))
    with open_recording(recorded.home, recorded.run_id, {}) as recording:
        run(
            script, rows, options=Options(tools=(BUILTIN["corpus_search"],)),
            recorder=recording.recorder, run_id=recorded.run_id,
        )  # fmt: skip
    (found,) = (s for s in load_run(recorded.home, recorded.run_id).spans if s.kind == "tool")
    ranges = json.loads(found.attributes[sc.SOURCE_RANGES])["ranges"]
    assert sum(end - start for _, start, end in ranges) > 0.9 * len(rows)


def test_equal_calls_whose_tools_read_other_documents_are_other_questions() -> None:
    child = cell("FINAL(llm_query('What does it say?'))")
    codes = "FINAL([rlm_query('what?', context=text) for text in ('of alpha', 'of beta', 'of beta')])"
    script = Script(
        [cell(codes), child, child, child], once(("corpus_read", '{"document":0,"start":0,"end":9}'))
    )
    answer = run(script, options=Options(cache=True, tools=(BUILTIN["corpus_read"],)))
    assert (answer.value, answer.cache_hits) == (["of alpha", "of beta", "of beta"], 1)


def test_a_coroutine_within_a_result_is_an_error_and_leaves_nothing_behind() -> None:
    async def twice() -> Any:
        """Return what was not awaited."""
        return slow_add(1, 1)

    assert "a value of type coroutine" in said(ask(once(("twice", "{}")), twice)[0])


# -- those that are built in


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("3 * (14.5 + 2) ** 2", "816.75"),
        ("-7 // 2 + 7 % 4", "-1"),
        ("max(1, 5, sum([1, 2])) + abs(-1)", "6"),
        ("2 ** 100", str(2**100)),
        ("1 + 1 == 2", "true"),
        ("round(10 / 3, 2)", "3.33"),
        ("2 ** -1e9", "0.0"),
    ],
)
def test_arithmetic(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "9 ** 9 ** 9",
        "__import__('os')",
        "(1).real",
        "[1] * 10",
        "x",
        "'a' * 3",
        "2 +",
        "max",
        "(-8) ** 0.5",
    ],
)
def test_what_is_no_arithmetic_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=".+"):
        calculate(expression)


def test_the_corpus_can_be_read_in_parts() -> None:
    read = once(
        ("corpus_read", '{"document": 0, "start": 4, "end": 10}'),
        ("corpus_read", '{"document": 1, "start": 0, "end": 1}'),
    )
    script = Script([cell("FINAL(llm_query('x'))")], read)
    answer = run(script, "The corpus.", options=Options(tools=(BUILTIN["corpus_read"],)))
    assert str(answer.value).startswith("corpus | Error: ValueError: there is no document 1")
