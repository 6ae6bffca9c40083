"""The real LiteLLM against a real HTTP server on 127.0.0.1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import ModelError
from rlm_core.lm_handler import Message, Request, Usage
from tests.support.litellm_calls import KEY, MESSAGES, ask, request
from tests.support.loopback import Fault, Loopback, Reply, Script, echo


def failure(server: Loopback, fault: Fault | None, asked: Request | None = None) -> ModelError:
    """The error of a call that the fault strikes; exactly one request was made."""
    if fault is not None:
        server.use(Script(faults=[fault]))
    with pytest.raises(ModelError) as caught:
        ask(asked or request())
    if fault is not None:
        assert len(server.requests) == 1, "one try is one request"
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)
    assert str(caught.value).startswith((asked or request()).model + ": ")
    assert caught.value.__context__ is None, "LiteLLM's exception holds the whole request"
    return caught.value


# -- what is sent and what comes back


def test_a_completion_whole(server: Loopback) -> None:
    completion = ask(request(max_tokens=77, temperature=0.25))
    sent = server.requests[0]["body"]
    assert completion.text == echo(MESSAGES[1].content)
    assert sent["messages"] == [{"role": m.role, "content": m.content} for m in MESSAGES]
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("sub-test", 77, 0.25)
    assert not sent.keys() & {"stream", "response_format", "num_retries", "api_base", "api_key"}
    assert server.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert (completion.finish_reason, completion.response_id) == ("stop", "chatcmpl-0")
    assert completion.model_returned == "sub-test" and completion.facts[sc.PROVIDER] == "openai"
    assert completion.reasoning is None


def test_what_was_not_asked_for_is_not_sent(server: Loopback) -> None:
    ask(request())
    assert server.requests[0]["body"].keys() == {"model", "messages"}


def test_a_schema_is_sent_as_response_format(server: Loopback) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    ask(request(schema=schema))
    sent = server.requests[0]["body"]["response_format"]
    assert sent["type"] == "json_schema" and sent["json_schema"]["schema"] == schema


def test_parameters_a_model_does_not_know_are_left_out_and_the_limit_is_kept(server: Loopback) -> None:
    ask(request("openai/gpt-5-mini", max_tokens=77, temperature=0.25))
    sent = server.requests[0]["body"]
    assert sent["max_completion_tokens"] == 77 and "temperature" not in sent


def test_the_older_variable_for_the_servers_address(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
    assert ask(request()).text == echo(MESSAGES[1].content)


@pytest.mark.parametrize("sizes", [(1, 40), (200_000, 1)])
def test_long_prompts_arrive_whole(server: Loopback, sizes: tuple[int, int]) -> None:
    text = "ä\x00\u2028𝔘" * sizes[0] * sizes[1]
    assert ask(request(messages=(Message("user", text),))).text == echo(text)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("plain", Usage(input=14, output=6)),
        ("cached", Usage(input=14, output=6, cached_read=7)),
        ("written", Usage(input=14, output=6, cached_read=3, cache_write=3)),
        ("reasoning", Usage(input=14, output=13, reasoning=7)),
        ("none", Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, Usage()),
    ],
)
def test_usage_as_reported_and_unknown_when_not(
    server: Loopback, kind: str | Mapping[str, Any], expected: Usage
) -> None:
    server.use(Script(sub=lambda prompt: Reply(echo(prompt), usage=kind)))
    completion = ask(request())
    assert completion.usage == expected
    if expected.input is None:
        assert completion.raw_usage is None
    else:
        sent = server.answered(1)[0]["body"]["usage"]
        raw = completion.raw_usage or {}
        assert {key: raw[key] for key in sent if isinstance(sent[key], int)} == {
            key: value for key, value in sent.items() if isinstance(value, int)
        }
        json.dumps(raw)


def test_both_model_names_and_litellms_own_cost_are_kept(server: Loopback) -> None:
    server.use(Script(sub=lambda _: Reply("x", model="gpt-5-mini-2025-08-07")))
    completion = ask(request("openai/my-local"))
    assert completion.model_returned == "gpt-5-mini-2025-08-07"
    assert completion.facts[sc.COST_LITELLM] == "0.0000055", (
        "priced by the server's name: a cross-check, never the price"
    )


def test_no_cost_of_litellm_for_a_model_it_does_not_know(server: Loopback) -> None:
    assert sc.COST_LITELLM not in ask(request()).facts


def test_reasoning_without_content_is_survived(server: Loopback) -> None:
    server.use(Script(sub=lambda _: Reply(None, reasoning="Let me think.")))
    completion = ask(request())
    assert completion.text is None and completion.reasoning == "Let me think."


@pytest.mark.parametrize("text", ["", None])
def test_finish_reason_length_without_text_is_told_as_it_is(server: Loopback, text: str | None) -> None:
    server.use(Script(sub=lambda _: Reply(text, finish_reason="length")))
    completion = ask(request())
    assert completion.finish_reason == "length" and not completion.text


# -- faults


@pytest.mark.parametrize(
    ("kind", "expected", "retryable", "status", "says"),
    [
        ("429", "rate_limit", True, 429, "Rate limit reached"),
        ("500", "server", True, 500, "The server had an error"),
        ("502", "server", True, 502, "Bad gateway"),
        ("503", "server", True, 503, "Overloaded"),
        ("reset", "connection", True, None, "connection failed"),
        ("reset_midway", "connection", True, None, "connection failed"),
        ("malformed", "malformed", True, 200, "is not JSON"),
        ("html", "malformed", True, 200, "is not JSON"),
        ("choiceless", "malformed", True, 200, "has no choices"),
        ("400", "bad_request", False, 400, "messages must not be empty"),
        ("400_context", "context_window", False, 400, "context window"),
        ("422", "bad_request", False, 422, "response_format is not supported"),
        ("401", "auth", False, 401, "OPENAI_API_KEY is probably wrong"),
        ("403", "auth", False, 403, "OPENAI_API_KEY"),
        ("404", "bad_request", False, 404, "no such model"),
    ],
)
def test_every_fault_has_its_kind(
    server: Loopback, kind: str, expected: str, retryable: bool, status: int | None, says: str
) -> None:
    error = failure(server, Fault(kind, ordinal=0))
    assert (error.kind, error.retryable, error.status) == (expected, retryable, status)
    assert says in str(error)
    assert error.retry_after is None


@pytest.mark.parametrize(
    "body",
    [
        [],
        None,
        "text",
        {},
        {"choices": None},
        {"choices": [{}]},
        {"choices": [{"index": 0, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": 7}, "finish_reason": "stop"}]},
        {"choices": 3},
    ],
)
def test_json_that_is_no_completion_is_malformed(server: Loopback, body: Any) -> None:
    error = failure(server, Fault("body", ordinal=0, body=body))
    assert (error.kind, error.retryable, error.status) == ("malformed", True, 200)


@pytest.mark.parametrize(
    "choices",
    [
        [],
        [{"index": 0, "message": {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}}],
    ],
)
def test_the_usage_of_an_answer_that_is_none_is_kept(server: Loopback, choices: list[Any]) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    body = {"id": "x", "object": "chat.completion", "model": "sub-test", "choices": choices, "usage": usage}
    error = failure(server, Fault("body", ordinal=0, body=body))
    assert error.kind == "malformed" and error.completion is not None
    assert (error.completion.usage.input, error.completion.usage.output) == (100, 5)


@pytest.mark.parametrize(
    ("facts", "kind"), [({"code": 429}, "rate_limit"), ({"code": None}, "malformed"), ({}, "malformed")]
)
def test_an_error_inside_of_a_200(server: Loopback, facts: dict[str, Any], kind: str) -> None:
    body = {"error": {"message": "upstream is busy", **facts}}
    error = failure(server, Fault("body", ordinal=0, body=body))
    assert (error.kind, error.retryable) == (kind, True) and "upstream is busy" in str(error)


def test_a_server_that_does_not_answer_is_a_timeout_and_the_next_call_works(server: Loopback) -> None:
    error = failure(server, Fault("slow", ordinal=0), request(timeout=0.3))
    assert (error.kind, error.retryable, error.status) == ("timeout", True, None)
    assert "within 0.3 s" in str(error)
    assert ask(request()).text == echo(MESSAGES[1].content)


def test_nobody_listens(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as gone:
        monkeypatch.setenv("OPENAI_BASE_URL", gone.base_url)
    error = failure(server, None)
    assert (error.kind, error.retryable, error.status) == ("connection", True, None)


def test_a_missing_key_is_named(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    error = failure(server, None)
    assert (error.kind, error.retryable) == ("auth", False) and not server.requests
    assert "OPENAI_API_KEY is probably missing" in str(error)


@pytest.mark.parametrize(
    ("model", "variable"),
    [("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"), ("gemini/x", "GEMINI_API_KEY")],
)
def test_a_missing_key_of_another_provider_is_named(model: str, variable: str) -> None:
    with pytest.raises(ModelError, match=f"{variable} is probably missing") as caught:
        ask(request(model))
    assert (caught.value.kind, caught.value.retryable) == ("auth", False)


@pytest.mark.parametrize("model", ["nobody/nothing", "nothing"])
def test_an_unknown_provider_is_said_in_one_sentence(server: Loopback, model: str) -> None:
    error = failure(server, None, request(model))
    assert error.kind == "bad_request" and "PROVIDER/NAME" in str(error) and not server.requests


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("429", "rate_limit"),
        ("500", "server"),
        ("401", "auth"),
        ("malformed", "malformed"),
        ("reset", "connection"),
    ],
)
def test_another_provider_is_understood_the_same_way(
    server: Loopback, monkeypatch: pytest.MonkeyPatch, kind: str, expected: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_BASE", server.base_url.removesuffix("/v1"))
    fault = Fault(kind, ordinal=0, headers={"Retry-After": "3"} if kind == "429" else {})
    error = failure(server, fault, request("anthropic/claude-sonnet-4-5", max_tokens=9))
    assert error.kind == expected and error.retry_after == (3.0 if kind == "429" else None)


def test_a_key_that_the_server_echoes_is_not_shown(server: Loopback) -> None:
    server.use(Script(faults=[Fault("body", ordinal=0)]))
    said = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    error = failure(server, Fault("body", ordinal=0, body=said, status=401))
    assert error.kind == "auth" and KEY not in str(error) and "***" in str(error)


def test_a_used_up_quota_is_not_retried(server: Loopback) -> None:
    said = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    error = failure(server, Fault("body", ordinal=0, body=said, status=429))
    assert (error.kind, error.retryable) == ("rate_limit", False)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "9", "retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "soon"}, None),
    ],
)
def test_retry_after_reaches_the_error(
    server: Loopback, headers: dict[str, str], seconds: float | None
) -> None:
    error = failure(server, Fault("429", ordinal=0, headers=headers))
    assert error.retry_after == seconds
    assert failure(server, Fault("503", ordinal=0, headers=headers)).retry_after == seconds
