"""Replies and answers that have to fit a JSON schema, and equal sub-calls that are answered once."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from rlm_core.errors import ConfigError
from rlm_core.options import Options
from rlm_core.schema_check import Shape
from tests.support.scripted import Script, cell, completion, play, run
from tests.support.source_runs import Recorded
from traces.reading import load_run
from traces.recording import open_recording

COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def saying(*replies: str) -> Any:
    """A sub-model that says these one after another."""
    left = iter(replies)
    return lambda request: completion(next(left))


# -- sub-calls


def test_code_gets_the_value_of_a_reply_that_fits() -> None:
    answer, script = play(
        f"FINAL(llm_query('how many?', schema={COUNT})['n'] + 1)", sub=saying('```json\n{"n": 41}\n```')
    )
    assert answer.value == 42
    (asked,) = script.sub_requests
    assert asked.schema == COUNT and [message.role for message in asked.messages] == ["system", "user"]


def test_a_reply_that_does_not_fit_goes_back_with_what_is_wrong() -> None:
    answer, script = play(
        f"FINAL(llm_query('how many?', schema={COUNT}))", sub=saying("three", '{"n": "3"}', '{"n": 3}')
    )
    assert (answer.value, answer.sub_calls) == ({"n": 3}, 1)
    said = [message.content for message in script.sub_requests[-1].messages]
    assert said[2] == "three" and "does not fit: it is not JSON" in said[3]
    assert said[4] == '{"n": "3"}' and "$.n: '3' is not of type 'integer'" in said[5]
    assert json.dumps(COUNT, sort_keys=True, separators=(",", ":")) in said[5]


def test_after_two_repairs_the_call_has_failed() -> None:
    answer, script = play(
        f"x = llm_query('how many?', schema={COUNT})\nFINAL([bool(x), x.kind, x.message])",
        sub=saying(*"abcd"),
    )
    assert answer.value[:2] == [False, "schema"] and "not JSON" in answer.value[2]
    assert (len(script.sub_requests), answer.failed_sub_calls) == (3, 1)


def test_a_slot_that_does_not_fit_loses_none_of_the_others() -> None:
    def sub(request: Request) -> str:
        return "no" if "bad" in request.messages[1].content else '{"n": 1}'

    code = f"FINAL([getattr(x, 'kind', x) for x in llm_batch(['good', 'bad', 'fine'], schema={COUNT})])"
    assert play(code, sub=sub)[0].value == [{"n": 1}, "schema", {"n": 1}]


def test_what_is_no_schema_is_said_and_asks_nobody() -> None:
    answer, script = play("x = llm_query('q', schema={'type': 'thing'})\nFINAL([x.kind, x.message])")
    assert answer.value[0] == "bad_request" and "no JSON schema" in answer.value[1]
    assert not script.sub_requests


def test_a_pydantic_model_is_a_schema_and_makes_instances() -> None:
    code = """
from pydantic import BaseModel, field_validator
class Row(BaseModel):
    name: str
    n: int
    @field_validator("n")
    @classmethod
    def even(cls, n):
        assert n % 2 == 0, "odd"
        return n
rows = llm_batch(["a", "b"], schema=Row)
FINAL([isinstance(rows[0], Row), rows[0].n, rows[1].kind, "odd" in rows[1].message])
"""

    def sub(request: Request) -> str:
        return json.dumps({"name": "x", "n": 2 if request.prompt == "a" else 3})

    assert play(code, sub=sub)[0].value == [True, 2, "schema", True]


def test_a_child_run_answers_with_a_value_too() -> None:
    script = Script([cell("FINAL(rlm_query('list', schema={'type': 'array'})[1])"), cell("FINAL((1, 2))")])
    assert run(script).value == 2
    script = Script(
        [cell("x = rlm_query('list', schema={'type': 'array'})\nFINAL(x.kind)"), *[cell("FINAL('no')")] * 3]
    )
    assert run(script).value == "schema"


def test_the_record_holds_the_texts_and_every_misfit(recorded: Recorded) -> None:
    view = recorded.play(
        f"a = llm_query('a', schema={COUNT})\nb = llm_query('b', schema={COUNT})\nFINAL(a)",
        corpus="x",
        sub=saying("one", '{"n": 1}', "two", "three", "four"),
    )
    first, second = (span for span in view.spans if span.kind == "sub_call")
    attempts = [span for span in view.spans if span.kind == "attempt"]
    below = [[a for a in attempts if a.parent_id == call.span_id] for call in (first, second)]
    assert [a.error_type for a in below[0]] == ["schema", None]
    assert view.payload(below[0][0].attributes[sc.RESPONSE + ".sha256"]) == "one"
    assert "not JSON" in below[0][0].attributes[sc.SCHEMA_PROBLEM]
    assert view.payload(first.attributes[sc.RESPONSE + ".sha256"]) == '{"n": 1}'
    assert first.tokens == {"input": 20, "output": 10, "total": 30}
    assert (second.status, second.error_type, len(below[1])) == ("error", "schema", 3)
    assert view.payload(second.attributes[sc.RESPONSE + ".sha256"]) == "four"


# -- the final answer


def test_an_answer_that_does_not_fit_goes_back_to_the_root() -> None:
    answer, script = play("FINAL('{\"n\": 3}')", "FINAL({'n': 3})", options=Options(schema=COUNT))
    assert (answer.value, answer.text, answer.mark) == ({"n": 3}, '{"n": 3}', None)
    assert "is not of type 'object'; give the value itself, not its text" in script.outputs[0]
    assert '"required":["n"]' in script.root_requests[0].messages[-1].content


def test_the_third_answer_that_does_not_fit_is_taken_and_marked(recorded: Recorded) -> None:
    script = Script([cell(f"FINAL({{'n': {n}.5}})") for n in range(3)])
    with open_recording(recorded.home, recorded.run_id, {}) as recording:
        answer = run(
            script, options=Options(schema=COUNT), recorder=recording.recorder, run_id=recorded.run_id
        )
    assert (answer.value, answer.mark, answer.stop_reason) == ({"n": 2.5}, "schema", "final")
    view = load_run(recorded.home, recorded.run_id)
    problems = [s.attributes.get(sc.SCHEMA_PROBLEM) for s in view.spans if s.kind in ("run", "iteration")]
    assert problems == [f"$.n: {n}.5 is not of type 'integer'" for n in (2, 0, 1, 2)]


def test_a_forced_answer_is_read_as_json() -> None:
    script = Script([cell("1"), '{"n": 7}'])
    from rlm_core import Limits

    answer = run(script, options=Options(schema=COUNT), limits=Limits(max_iterations=1))
    assert (answer.value, answer.forced, answer.mark) == ({"n": 7}, True, None)


def test_a_tuple_fits_an_array_and_a_set_fits_nothing() -> None:
    options = Options(schema={"type": "array"})
    assert play("FINAL((1, 2))", options=options)[0].text == "[1, 2]"
    answer, script = play("FINAL({1})", "FINAL([1])", options=options)
    assert answer.value == [1] and "nothing that JSON can hold" in script.outputs[0]


def test_a_schema_that_is_none_is_refused_before_the_run() -> None:
    with pytest.raises(ConfigError, match="the schema of the answer: the schema is no JSON schema"):
        Options(schema={"type": "thing"})


# -- equal calls, answered once


def test_equal_calls_are_asked_once_also_at_the_same_time(recorded: Recorded) -> None:
    script = Script([cell("a = llm_batch(['x', 'x', 'y', 'x'])\nFINAL(a + [llm_query('x')])")])
    with open_recording(recorded.home, recorded.run_id, {}) as recording:
        answer = run(script, options=Options(cache=True), recorder=recording.recorder, run_id=recorded.run_id)
    assert answer.value == ["seen 1"] * 5
    assert (len(script.sub_requests), answer.sub_calls, answer.cache_hits) == (2, 5, 3)
    view = load_run(recorded.home, recorded.run_id)
    served = [s.attributes[sc.SERVED_FROM] for s in view.spans if s.kind == "sub_call"]
    assert sorted(served) == ["cache"] * 3 + ["model"] * 2
    hits = [s for s in view.spans if s.attributes.get(sc.SERVED_FROM) == "cache"]
    assert all((s.attributes[sc.COST_USD], s.tokens) == ("0", None) for s in hits)


def test_other_prompts_models_and_schemas_are_other_questions() -> None:
    asked = ["'x'", "'x', max_tokens=5", "'x', model='root'", "'x', schema={}", "'z'"]
    code = f"r = [{', '.join(f'llm_query({one})' for one in asked)}]\nFINAL(len(r))"
    _, script = play(code, options=Options(cache=True))
    # the one with a schema is told twice that its reply is no JSON
    assert len(script.sub_requests) == 4 + 3


def test_a_failure_is_nobody_elses() -> None:
    from rlm_core.errors import ModelError

    answers = iter([ModelError("auth", "no"), "late"])
    answer, script = play(
        "a = llm_query('x')\nb = llm_query('x')\nc = llm_query('x')\nFINAL([bool(a), b, c])",
        sub=lambda request: next(answers),
        options=Options(cache=True),
    )
    assert answer.value == [False, "late", "late"] and len(script.sub_requests) == 2


def test_a_child_run_shares_what_was_answered() -> None:
    script = Script(
        [cell("a = llm_query('x')\nb = rlm_query('child')\nFINAL([a, b])"), cell("FINAL(llm_query('x'))")]
    )
    answer = run(script, options=Options(cache=True))
    assert answer.value == ["seen 1"] * 2 and len(script.sub_requests) == 1


def test_without_the_option_equal_calls_are_asked_again() -> None:
    answer, script = play("FINAL(llm_batch(['x', 'x']))")
    assert (len(script.sub_requests), answer.cache_hits) == (2, 0)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("[" * 150 + "]" * 150, "nested deeper than 100 levels"),
        ("[" + "0," * 1_000_000 + "0]", "more than 1,000,000 parts"),
    ],
    ids=["deep", "large"],
)
def test_a_reply_that_code_could_not_be_given_exactly_does_not_fit(reply: str, why: str) -> None:
    answer, script = play("x = llm_query('?', schema={})\nFINAL([x.kind, x.message])", sub=lambda _: reply)
    assert answer.value[0] == "schema" and why in answer.value[1], answer
    assert len(script.sub_requests) == 3


@pytest.mark.parametrize(
    ("value", "schema", "kind"),
    [
        ("__import__('datetime').date(2026, 1, 1)", {"type": "string"}, "datetime.date"),
        ("[object()]", {"type": "array"}, "object"),
    ],
)
def test_the_repr_of_an_object_is_no_text_that_fits(value: str, schema: dict[str, Any], kind: str) -> None:
    script = Script([cell(f"FINAL({value})")] * 3)
    answer = run(script, options=Options(schema=schema))
    assert answer.mark == "schema"
    assert f"it holds a value of type {kind}, which JSON cannot hold" in script.outputs[0].replace(
        "builtins.", ""
    )


def test_an_answer_of_many_rows_is_checked_to_its_end() -> None:
    row = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
    answer, _ = play("FINAL([{'a': 1}] * 20_000)", options=Options(schema={"type": "array", "items": row}))
    assert answer.mark is None and len(answer.value) == 20_000


def test_what_was_answered_after_a_failure_is_a_hit_later() -> None:
    from rlm_core.errors import ModelError

    answers = iter([ModelError("auth", "no"), "late"])
    answer, script = play(
        "a = llm_batch(['x', 'x'])\nFINAL([bool(a[0]), a[1], llm_query('x')])",
        sub=lambda request: next(answers),
        options=Options(cache=True),
    )
    assert answer.value == [False, "late", "late"] and (len(script.sub_requests), answer.cache_hits) == (2, 1)


def test_a_hit_that_the_budget_refused_is_refused_again_when_its_worker_is_rebuilt() -> None:
    answer, _ = play(
        "a = llm_batch(['x', 'x'])",
        "import os\nos._exit(1)",
        "FINAL([bool(one) or one.kind for one in a])",
        options=Options(cache=True),
        limits=Limits(max_calls=1),
    )
    assert answer.value == [True, "budget"]


def test_the_event_loop_goes_on_while_a_large_reply_and_answer_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    beats, went_on = threading.Semaphore(0), list[bool]()
    check = Shape.problem

    def watched(shape: Shape, value: Any) -> str | None:
        while beats.acquire(blocking=False):
            pass
        went_on.append(beats.acquire(timeout=60))
        return check(shape, value)

    monkeypatch.setattr(Shape, "problem", watched)

    async def beat() -> None:
        while True:
            beats.release()
            await asyncio.sleep(0.001)

    async def ask() -> Any:
        script = Script(
            [cell(f"FINAL(llm_query('all?', schema={schema}))")], saying(json.dumps([7] * 20_000))
        )
        heart = asyncio.ensure_future(beat())
        answer = await RLM(
            "root-test", "sub-test", handler=FunctionLMHandler(script), options=Options(schema=schema)
        ).aask("what?", "the corpus")
        heart.cancel()
        return answer.value

    assert asyncio.run(ask()) == [7] * 20_000
    assert len(went_on) == 3 and all(went_on)  # the reply, the same for code, the answer
