"""Tools through LiteLLM: what is sent, what is made of what comes back, and models that take none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rlm_core.errors import ModelError
from rlm_core.litellm_handler import LiteLLMHandler, _arguments
from rlm_core.lm_handler import Completion, Message, Request, ToolCall, ToolSpec
from rlm_core.options import Options
from rlm_core.rlm import RLM
from rlm_core.tools import Tool
from tests.support.loopback import Fault, Loopback, Messages, Reply, Script

ADD = ToolSpec("add", "Add two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL = ToolCall("call_7", "add", '{"a": 1}')


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def server(running: Loopback, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    running.use(Script())
    return running


def ask(*messages: Message, model: str = "openai/sub-test", **fields: Any) -> Completion:
    async def once() -> Completion:
        handler = LiteLLMHandler()
        try:
            return await handler.complete(Request(model, messages, "sub", **{"tools": (ADD,), **fields}))
        finally:
            await handler.aclose()

    return asyncio.run(once())


def test_a_call_comes_back_with_its_arguments_as_they_were_written(server: Loopback) -> None:
    server.use(
        Script(sub=lambda _: Reply(None, "tool_calls", tool_calls=[("add", '{"a": 1'), ("other", "")]))
    )
    completion = ask(Message("user", "sum?"))
    assert (completion.text, completion.finish_reason) == (None, "tool_calls")
    assert completion.tool_calls == (
        ToolCall("call_0_0", "add", '{"a": 1'),
        ToolCall("call_0_1", "other", ""),
    )
    (sent,) = server.requests[0]["body"]["tools"]
    assert sent["function"] == {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }


def test_a_conversation_is_sent_as_the_protocol_wants_it(server: Loopback) -> None:
    talk = (
        Message("user", "sum?"),
        Message("assistant", "", tool_calls=(CALL,)),
        Message("tool", "2", tool_call_id="call_7"),
    )
    completion = ask(*talk)
    assert completion.tool_calls == () and completion.text
    _, said, told = server.requests[0]["body"]["messages"]
    assert said.get("content") is None
    assert said["tool_calls"] == [
        {"id": "call_7", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    ]
    assert told == {"role": "tool", "content": "2", "tool_call_id": "call_7"}


def test_arguments_that_are_no_object_are_sent_back_as_an_empty_one(server: Loopback) -> None:
    broken = tuple(ToolCall(f"call_{n}", "add", text) for n, text in enumerate(('{"a": 1', "[1]", "")))
    ask(Message("user", "sum?"), Message("assistant", "", tool_calls=broken))
    said = server.requests[0]["body"]["messages"][1]
    assert [call["function"]["arguments"] for call in said["tool_calls"]] == ["{}"] * 3


@pytest.mark.parametrize(
    ("schema", "tools", "sent"),
    [({"type": "object"}, (), True), ({"type": "array"}, (), False), ({"type": "object"}, (ADD,), False)],
    ids=["object", "array", "object, with tools"],
)
def test_a_schema_is_sent_beside_the_messages_where_servers_take_it(
    server: Loopback, schema: dict[str, Any], tools: tuple[ToolSpec, ...], sent: bool
) -> None:
    ask(Message("user", "what?"), schema=schema, tools=tools)
    assert ("response_format" in server.requests[0]["body"]) is sent


def test_a_model_that_takes_no_tools_is_an_error_not_a_call_without_them(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    import litellm

    monkeypatch.setattr(litellm, "get_supported_openai_params", lambda model: ["max_tokens"])
    with pytest.raises(ModelError, match="openai/sub-test: this model takes no tools") as caught:
        ask(Message("user", "sum?"))
    assert caught.value.kind == "bad_request" and not server.requests


def test_a_server_that_refuses_tools_is_quoted(server: Loopback) -> None:
    body = {"error": {"message": "sub-test does not support tools", "type": "x", "code": None, "param": None}}
    server.use(Script(faults=[Fault("body", ordinal=0, body=body, status=400)]))
    with pytest.raises(ModelError, match="rejected the request .HTTP 400.: .*does not support tools"):
        ask(Message("user", "sum?"))


@pytest.mark.parametrize("thought", ["1 and 1, so I add.", None])
def test_what_a_model_thought_before_it_called_tools_goes_back_with_its_calls(
    server: Loopback, thought: str | None
) -> None:
    def talk(messages: Messages) -> Reply:
        if messages[-1]["role"] == "tool":
            return Reply("2", reasoning="so it is 2")
        return Reply(None, "tool_calls", reasoning=thought, tool_calls=[("add", '{"a": 1}')])

    code = "```repl\nFINAL([llm_query('sum?'), llm_query('sum, again?')])\n```"
    server.use(Script(root=lambda _: Reply(code, reasoning="I ask."), talk=talk))
    options = Options(tools=(Tool(ADD, lambda corpus, arguments: 2),))
    with RLM("openai/root-test", "openai/sub-test", handler=LiteLLMHandler(), options=options) as rlm:
        assert rlm.ask("what?", "the corpus").value == ["2", "2"]
    sent = [request["body"]["messages"] for request in server.requests]
    assert [len(messages) for messages in sent[1:]] == [1, 3, 1, 3]
    back = [message.get("reasoning_content") for messages in sent for message in messages]
    assert [each for each in back if each is not None] == ([thought] * 2 if thought else [])
    assert [messages[1].get("reasoning_content") for messages in sent if len(messages) == 3] == [thought] * 2


@pytest.mark.parametrize(("model", "sent"), [("deepseek/x", True), ("groq/x", False), ("cerebras/x", False)])
def test_no_reasoning_goes_to_providers_that_refuse_it(model: str, sent: bool) -> None:
    said = Message("assistant", "", tool_calls=(CALL,), reasoning="hm")
    (made,) = _arguments(Request(model, (said,), "sub"))["messages"]
    assert ("reasoning_content" in made) is sent
