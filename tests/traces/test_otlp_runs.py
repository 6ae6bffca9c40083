"""Traces as runs: what a span becomes by what it is and where it stands, and what the run says is missing."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from rlm_core import semconv as sc
from tests.support.otlp import BEGIN, TRACE, identity, kind, llm, span
from traces.importers.foreign import ForeignSpan
from traces.otlp import messages
from traces.otlp.conventions import cost_of, error_of, model_of, tokens_of, what_is
from traces.otlp.spans import OtlpEvent, OtlpScope, OtlpSpan
from traces.otlp.trace_run import run_of_trace, settle
from traces.otlp.translating import EVENTS, LEFT_OUT, SAID_KIND


def tree(spans: list[OtlpSpan]) -> str:
    """The kinds of a run with the names of its spans, those inside in brackets."""

    def told(node: ForeignSpan) -> str:
        inner = f"({' '.join(map(told, node.children))})" if node.children else ""
        return f"{node.kind}:{node.name or '-'}{inner}"

    return told(run_of_trace(TRACE, spans).top)


AGENT = kind(0, "AGENT", name="agent", lasts=90.0)


@pytest.mark.parametrize(
    ("spans", "made"),
    [
        pytest.param(
            [AGENT, llm(1, 0), kind(2, "TOOL", 0, "python"), llm(3, 2), llm(4, 0)],
            "run:agent(iteration:-(root_call:ChatCompletion cell:python(sub_call:ChatCompletion))"
            " iteration:-(root_call:ChatCompletion))",
            id="a loop of calls and code",
        ),
        pytest.param(
            [AGENT, kind(1, "CHAIN", 0, "step"), llm(2, 1), kind(3, "TOOL", 1, "weather"), llm(4, 3)],
            "run:agent(iteration:step(root_call:ChatCompletion tool:weather(sub_call:ChatCompletion)))",
            id="a chain in a run is an iteration, a call in a tool a sub-call",
        ),
        pytest.param(
            [AGENT, llm(1, 0), kind(2, "TOOL", 0, "repl"), kind(3, "CHAIN", 2, "map"), llm(4, 3), llm(5, 3)],
            "run:agent(iteration:-(root_call:ChatCompletion cell:repl(batch:map(sub_call:ChatCompletion"
            " sub_call:ChatCompletion))))",
            id="a chain with calls elsewhere is a batch",
        ),
        pytest.param(
            [AGENT, llm(1, 0), kind(2, "TOOL", 0, "ask"), kind(3, "AGENT", 2, "helper"), llm(4, 3)],
            "run:agent(iteration:-(root_call:ChatCompletion tool:ask(run:helper(iteration:-("
            "root_call:ChatCompletion)))))",
            id="an agent inside is a child run with root calls of its own",
        ),
        pytest.param(
            [AGENT, kind(1, "LLM", 0, "wrapper"), llm(2, 1), span(3, "POST", 1)],
            "run:agent(iteration:-(root_call:wrapper(attempt:ChatCompletion attempt:POST)))",
            id="what is directly in a call is an attempt of it",
        ),
        pytest.param(
            [AGENT, kind(1, "RETRIEVER", 0, "search"), kind(2, "EMBEDDING", 1, "embed"), llm(3, 0)],
            "run:agent(tool:search(tool:embed) iteration:-(root_call:ChatCompletion))",
            id="retrieval is a tool",
        ),
        pytest.param(
            [llm(1)],
            "run:-(iteration:-(root_call:ChatCompletion))",
            id="a lone call gets a run",
        ),
        pytest.param(
            [AGENT, llm(1, 0), span(2, "b"), llm(3, 2)],
            "run:-(run:agent(iteration:-(root_call:ChatCompletion)) iteration:b(root_call:ChatCompletion))",
            id="several at the top get a run around them",
        ),
        pytest.param(
            [span(1, "POST /ask"), span(2, "handler", 1), kind(3, "AGENT", 2, "agent"), llm(4, 3)],
            "run:agent(tool:POST /ask tool:handler iteration:-(root_call:ChatCompletion))",
            id="what a web server puts around the agent stands inside",
        ),
        pytest.param(
            [kind(1, "CHAIN", name="flow"), kind(2, "AGENT", 1, "agent"), llm(3, 2)],
            "run:flow(run:agent(iteration:-(root_call:ChatCompletion)))",
            id="a chain at the top is the run",
        ),
        pytest.param(
            [llm(1, 9), kind(2, "TOOL", 9, "python")],
            "run:-(iteration:-(root_call:ChatCompletion cell:python))",
            id="a parent that has not come is stood in for",
        ),
    ],
)  # fmt: skip
def test_spans_become_what_they_are_where_they_stand(spans: list[OtlpSpan], made: str) -> None:
    assert tree(spans) == made
    shuffled = random.Random(1).sample(spans, len(spans))
    assert tree(shuffled) == made  # the order in which they come says nothing


def test_parents_in_a_circle_and_spans_that_come_twice_stand_once() -> None:
    circle = [kind(1, "CHAIN", 2, "a"), kind(2, "CHAIN", 1, "b"), llm(3, 3), llm(4, 2), llm(4, 2)]
    top = run_of_trace(TRACE, circle).top
    ids = [each.span_id for each in top.walk()]
    assert sorted(ids) == sorted(set(ids)) and {identity(number) for number in (1, 2, 3, 4)} <= set(ids)


def test_a_trace_deeper_than_recursion_is_read() -> None:
    spans = [AGENT, *(kind(number, "CHAIN", number - 1) for number in range(1, 3000)), llm(3000, 2999)]
    assert sum(each.kind == "batch" for each in run_of_trace(TRACE, spans).top.walk()) == 2998


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({"gen_ai.operation.name": "chat"}, "llm"),
        ({"gen_ai.operation.name": "text_completion"}, "llm"),
        ({"gen_ai.operation.name": "invoke_agent"}, "agent"),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"}, "tool"),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "code_interpreter"}, "code"),
        ({"openinference.span.kind": "tool", "tool.name": "PythonREPL"}, "code"),
        ({"openinference.span.kind": "TOOL", "tool.name": "encode_text"}, "tool"),
        ({"openinference.span.kind": "RETRIEVER", "tool.name": "python"}, "tool"),
        ({"traceloop.span.kind": "workflow"}, "chain"),
        ({"traceloop.span.kind": "tool", "traceloop.entity.name": "execute_code"}, "code"),
        ({"llm.request.type": "chat"}, "llm"),
        ({"gen_ai.request.model": "m", "gen_ai.usage.prompt_tokens": 3}, "llm"),
        ({"rlm.kind": "cell", "openinference.span.kind": "LLM"}, "own"),
        ({"rlm.kind": "party"}, "plain"),
        ({"http.method": "POST"}, "plain"),
    ],
)
def test_a_span_is_classed_by_the_conventions(told: dict[str, Any], what: str) -> None:
    assert what_is(span(1, "step", **told)) == what


@pytest.mark.parametrize(
    ("told", "mark", "counts"),
    [
        ({"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2}, "reported", (7, 2, None)),
        ({"llm.token_count.prompt": 7, "llm.token_count.completion": 2, "llm.token_count.total": 9,
          "llm.token_count.prompt_details.cache_read": 3}, "reported", (7, 2, 3)),
        ({"gen_ai.usage.prompt_tokens": "7", "llm.usage.completion_tokens": 2.0}, "reported", (7, 2, None)),
        ({"llm.token_count.prompt": 7, "llm.token_count.total": 9}, "derived", (7, 2, None)),
        ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2,
          "gen_ai.usage.cache_read.input_tokens": 90}, "derived", (95, 2, 90)),
        ({"llm.token_count.prompt": 7}, "missing", None),
        ({"llm.token_count.prompt": 7, "llm.token_count.total": 3}, "missing", None),
        ({"gen_ai.usage.input_tokens": -1, "gen_ai.usage.output_tokens": True}, "missing", None),
        ({}, "missing", None),
    ],
)  # fmt: skip
def test_tokens_are_told_derived_or_missing(told: dict[str, Any], mark: str, counts: Any) -> None:
    tokens = tokens_of(span(1, "chat", **told))
    use = tokens.value
    assert tokens.mark == mark
    assert (None if use is None else (use.input, use.output, use.cache_read)) == counts


def test_cost_model_and_error_are_read() -> None:
    told = {"llm__cost__total": 0.0125, "llm__invocation_parameters": '{"model": "small"}'}
    failed = span(1, "chat", status="error", message="no", error__type="RateLimitError", **told)
    assert (str(cost_of(failed).value), model_of(failed)) == ("0.0125", "small")
    assert error_of(failed) == ("RateLimitError", "no")
    assert cost_of(span(1, "chat", llm__cost__total="NaN")).mark == "missing"
    caught = {"exception.type": "KeyError", "exception.message": "'x'", "exception.stacktrace": "Trace"}
    cell = kind(2, "TOOL", 0, "python", status="error", events=(OtlpEvent("exception", BEGIN, caught),))
    run = run_of_trace(TRACE, [AGENT, llm(1, 0), cell])
    (made,) = (each for each in run.top.walk() if each.kind == "cell")
    assert (made.status, made.error, made.texts[sc.EXCEPTION]) == ("error", ("KeyError", "'x'"), "Trace")
    assert "KeyError" in str(made.attributes[EVENTS])


PARTS = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:"}}]


@pytest.mark.parametrize(
    ("told", "events", "sent", "reply"),
    [
        pytest.param(
            {"gen_ai.system_instructions": '[{"type":"text","content":"Be brief."}]',
             "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]',
             "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [
                 {"type": "reasoning", "content": "hm"}, {"type": "text", "content": "Ho"},
                 {"type": "tool_call", "name": "f", "arguments": {"x": 1}}]}])},
            (), [("system", "Be brief."), ("user", "Hi")], 'Ho\nf({"x": 1})', id="GenAI 1.37, JSON",
        ),
        pytest.param(
            {"gen_ai.input.messages": [{"role": "tool", "parts": [{"type": "tool_call_response",
                                                                   "result": "4"}]}]},
            (), [("tool", "4")], None, id="GenAI 1.37, structured",
        ),
        pytest.param(
            {}, (OtlpEvent("gen_ai.system.message", None, {"content": "Be brief."}),
                 OtlpEvent("gen_ai.user.message", None, {"content": "Hi"}),
                 OtlpEvent("gen_ai.choice", None, {"index": 0, "message": '{"content":"Ho"}'})),
            [("system", "Be brief."), ("user", "Hi")], "Ho", id="GenAI 1.28, events",
        ),
        pytest.param(
            {}, (OtlpEvent("gen_ai.content.prompt", None,
                           {"gen_ai.prompt": '[{"role":"user","content":"Hi"}]'}),
                 OtlpEvent("gen_ai.content.completion", None,
                           {"gen_ai.completion": '[{"role":"assistant","content":"Ho"}]'})),
            [("user", "Hi")], "Ho", id="GenAI 1.27, events",
        ),
        pytest.param(
            {"llm.input_messages.10.message.role": "user", "llm.input_messages.10.message.content": "last",
             "llm.input_messages.2.message.role": "user",
             "llm.input_messages.2.message.contents.0.message_content.text": "a",
             "llm.input_messages.2.message.contents.1.message_content.text": "b",
             "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
             "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}"},
            (), [("user", "a\nb"), ("user", "last")], "f({})", id="OpenInference",
        ),
        pytest.param(
            {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": json.dumps(PARTS),
             "gen_ai.completion.0.content": '[{"label": "spam"}]'},
            (), [("user", 'Look:\n{"type": "image_url", "image_url": {"url": "data:"}}')],
            '[{"label": "spam"}]',
            id="OpenLLMetry",
        ),
        pytest.param(
            {"input.value": '{"messages":[{"role":"user","content":"Hi"}],"model":"m"}',
             "output.value": '{"choices":[{"message":{"content":"Ho"}}]}'},
            (), [("user", "Hi")], "Ho", id="request and response",
        ),
        pytest.param(
            {"input.value": '{"a": "text"}', "output.value": '"quoted"'},
            (), [("user", '{"a": "text"}')], '"quoted"',
            id="texts that are JSON stay as they are",
        ),
        pytest.param({}, (), None, None, id="nothing"),
    ],
)  # fmt: skip
def test_messages_are_read_in_all_forms(
    told: dict[str, Any], events: tuple[OtlpEvent, ...], sent: Any, reply: str | None
) -> None:
    call = span(1, "chat", events=events, **told)
    assert (messages.sent(call), messages.replied(call)[0]) == (sent, reply)
    if "gen_ai.system_instructions" in told:
        assert messages.replied(call)[1] == "hm"


def test_a_prompt_of_several_messages_names_their_roles() -> None:
    assert messages.rendered([("user", "Hi")]) == "Hi"
    assert messages.rendered([("system", "S"), ("user", "U")]) == "[system]\nS\n\n[user]\nU"


def test_other_attributes_are_kept_within_bounds_and_never_taken_for_ours() -> None:
    many = {f"k{number}": number for number in range(300)}
    told = {"rlm.limits": "{}", "rlm.trust": "{}", "otlp.kind": "x", "long": "y" * 20_000, "list": [1, "a"],
            "table": {"a": [1]}, "gen_ai.usage.input_tokens": 5, **many}  # fmt: skip
    run = run_of_trace(TRACE, [AGENT, llm(1, 0), kind(2, "TOOL", 0, "look", **told)])
    (tool,) = (each for each in run.top.walk() if each.kind == "tool")
    kept = tool.attributes
    assert kept[SAID_KIND] == "TOOL" and kept["otlp.rlm.limits"] == "{}" and kept["otlp.otlp.kind"] == "x"
    assert not {sc.LIMITS, sc.TRUST, sc.USAGE_INPUT} & set(kept)
    assert len(str(kept["long"])) == 8_000 and kept["list"] == [1, "a"] and kept["table"] == '{"a": [1]}'
    assert json.loads(str(kept[sc.USAGE_RAW])) == {"gen_ai.usage.input_tokens": 5}
    counts = json.loads(str(kept[LEFT_OUT]))
    assert counts["cut"] == 1 and counts["left_out"] > 90 and len(kept) <= 201
    assert any("cut or left out" in sentence for sentence in run.missing)


def test_a_run_says_what_its_spans_do_not() -> None:
    quiet = {key: None for key in llm(1).attributes if "messages" in key or "token" in key}
    told = {"gen_ai__operation__name": "invoke_agent"}
    run = run_of_trace(
        TRACE, [span(0, "agent", **told), llm(1, 0, "How many?", "Two."), llm(2, 0, **under(quiet))]
    )
    assert run.top.texts == {sc.QUESTION: "How many?"} and run.closed
    said = " ".join(run.missing)
    assert "what the first root call was asked" in said and "do not hold the answer" in said
    assert (
        "1 of 2 model calls hold neither prompt nor reply" in said
        and "1 of 2 model calls do not tell" in said
    )


def test_a_run_whose_own_span_has_not_come_is_not_closed() -> None:
    run = run_of_trace(TRACE, [llm(1, 7)])
    assert not run.closed and run.top.status == "running" and run.top.span_id == identity(7)
    assert run.top.start.mark == "derived" and settle(run).top.status == "lost"
    unended = run_of_trace(TRACE, [span(0, "agent", lasts=None), llm(1, 0)])
    assert not unended.closed and unended.top.seconds.mark == "missing"


def test_the_key_of_a_trace_changes_with_what_is_there_of_it() -> None:
    spans = [AGENT, llm(1, 0), llm(2, 0)]
    keys = {run_of_trace(TRACE, list(part)).key for part in itertools.combinations(spans, 2)}
    assert len(keys) == 3
    assert run_of_trace(TRACE, spans).key == run_of_trace(TRACE, spans[::-1]).key


def test_the_engine_is_the_service_else_the_instrumentation() -> None:
    named = OtlpScope({"service.name": "triage", "service.version": "2.1"}, "x")
    unnamed = OtlpScope({"service.name": "unknown_service:python"}, "openinference.x", "0.1")
    assert run_of_trace(TRACE, [llm(1, scope=named)]).engine == "triage 2.1"
    assert run_of_trace(TRACE, [llm(1, scope=unnamed)]).engine == "openinference.x 0.1"
    assert run_of_trace(TRACE, [llm(1)]).engine == "unknown program"


def under(told: dict[str, Any]) -> dict[str, Any]:
    return {key.replace(".", "__"): value for key, value in told.items()}
