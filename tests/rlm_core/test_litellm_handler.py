"""The real LiteLLM against a real HTTP server on 127.0.0.1."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import ModelError
from rlm_core.litellm_handler import LiteLLMHandler
from rlm_core.lm_handler import Completion, Message, Request, Usage
from tests.support.loopback import Fault, Loopback, Reply, Script, echo

KEY = "sk-loopback-0123456789"
MESSAGES = (Message("system", "Be short."), Message("user", "Hi, ¿qué tal? 🙂"))


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def server(running: Loopback, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    running.use(Script())
    return running


def request(model: str = "openai/sub-test", **more: Any) -> Request:
    return Request(**{"model": model, "messages": MESSAGES, "role": "sub", "timeout": 20.0, **more})


def ask(asked: Request, *more: Request) -> Completion:
    """Ask on a loop of its own, one after the other; the last completion."""

    async def scenario() -> Completion:
        handler = LiteLLMHandler(4)
        try:
            for each in (asked, *more):
                completion = await handler.complete(each)
            return completion
        finally:
            await handler.aclose()

    return asyncio.run(scenario())


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
        sent = server.responses[0]["body"]["usage"]
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


# -- loops, concurrency, silence


def both(first: Callable[[], object], second: Callable[[], object]) -> None:
    threads = [threading.Thread(target=job) for job in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def gather(handler: LiteLLMHandler, prompts: list[str]) -> Awaitable[list[Completion]]:
    return asyncio.gather(*(handler.complete(request(messages=(Message("user", p),))) for p in prompts))


def test_loops_in_two_threads_at_once(server: Loopback) -> None:
    server.use(Script(latency=0.01))
    shared = LiteLLMHandler(8)
    results: dict[str, list[str | None]] = {}

    def job(name: str) -> None:
        async def scenario() -> None:
            try:
                for turn in range(3):
                    done = await gather(shared, [f"{name} {turn} {i}" for i in range(8)])
                    results.setdefault(name, []).extend(c.text for c in done)
            finally:
                await shared.aclose()

        asyncio.run(scenario())

    both(lambda: job("a"), lambda: job("b"))
    for name in ("a", "b"):
        assert results[name] == [echo(f"{name} {turn} {i}") for turn in range(3) for i in range(8)]


def test_calls_run_side_by_side_and_answers_are_not_mixed_up(server: Loopback) -> None:
    faults = [Fault("500", contains="p7", times=None), Fault("reset", contains="p13", times=None)]
    server.use(Script(latency=0.02, faults=faults))

    async def scenario() -> list[Completion | BaseException]:
        handler = LiteLLMHandler(20)
        calls = (handler.complete(request(messages=(Message("user", f"p{i}"),))) for i in range(20))
        try:
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await handler.aclose()

    done = asyncio.run(scenario())
    for i, each in enumerate(done):
        if i in (7, 13):
            assert isinstance(each, ModelError) and each.kind == ("server" if i == 7 else "connection")
        else:
            assert isinstance(each, Completion) and each.text == echo(f"p{i}")
    assert server.peak > 1


def test_two_handlers_on_one_loop_closing_one_leaves_the_other(server: Loopback) -> None:
    async def scenario() -> list[str | None]:
        one, two = LiteLLMHandler(), LiteLLMHandler()
        texts = [(await one.complete(request())).text, (await two.complete(request())).text]
        await one.aclose()
        texts.append((await two.complete(request())).text)
        await two.aclose()
        await two.aclose()
        again = LiteLLMHandler()
        texts.append((await again.complete(request())).text)
        await again.aclose()
        return texts

    assert asyncio.run(scenario()) == [echo(MESSAGES[1].content)] * 4


def test_one_connection_serves_one_call_after_the_other_whatever_their_timeouts(server: Loopback) -> None:
    ask(*(request(timeout=seconds) for seconds in (17.0, 18.5, 20.0, 31.9)))
    assert len(server.requests) == 4 and server.connections == 1


def test_cancelling_a_call_ends_it_and_the_connection(server: Loopback) -> None:
    server.use(Script(faults=[Fault("slow", ordinal=0)]))

    async def scenario() -> None:
        handler = LiteLLMHandler()
        call = asyncio.create_task(handler.complete(request()))
        while not server.requests:
            await asyncio.sleep(0.005)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while not server.responses:
            await asyncio.sleep(0.005)
        await handler.aclose()

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert server.responses[0]["event"] == "gone"


def test_nothing_is_left_on_the_loop_and_nothing_is_printed(
    server: Loopback, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    server.use(Script(faults=[Fault("500", ordinal=1), Fault("401", ordinal=2)]))

    async def scenario() -> set[asyncio.Task[Any]]:
        handler = LiteLLMHandler()
        for _ in range(4):
            try:
                await handler.complete(request())
            except ModelError:
                continue
        await handler.aclose()
        return asyncio.all_tasks() - {asyncio.current_task()}

    left = asyncio.run(scenario())
    gc.collect()
    printed = capfd.readouterr()
    assert not left and (printed.out, printed.err) == ("", "")
    assert not [r for r in caplog.records if "litellm" in r.name.lower() or "Unclosed" in r.getMessage()]


PROGRAM = """
import asyncio, sys
assert "litellm" not in sys.modules
from rlm_core.litellm_handler import LiteLLMHandler
from rlm_core.lm_handler import Message, Request
assert "litellm" not in sys.modules, "imported at its first use, not before"

async def ticks(stop):
    count = 0
    while not stop.is_set():
        await asyncio.sleep(0.01)
        count += 1
    return count

async def main():
    handler = LiteLLMHandler()
    stop = asyncio.Event()
    count = asyncio.create_task(ticks(stop))
    await handler.prepare()
    stop.set()
    assert await count > 3, 'the loop goes on during the import'
    request = Request("openai/sub-x", (Message("user", "hello"),), "sub")
    print((await handler.complete(request)).text)
    await handler.aclose()

asyncio.run(main())
import litellm
assert not litellm.success_callback and not litellm.callbacks
"""


def test_a_process_of_its_own_prints_nothing_and_reads_no_env_file(
    server: Loopback, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://127.0.0.1:9/v1\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM_")}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", PROGRAM],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, echo("hello") + "\n"), done.stderr
    assert done.stderr == ""


def test_who_gives_up_while_litellm_is_imported_does_not_wait_for_the_import(tmp_path: Path) -> None:
    (tmp_path / "litellm.py").write_text("import time\ntime.sleep(600)\n")
    code = (
        "import asyncio\n"
        "from rlm_core.litellm_handler import LiteLLMHandler\n"
        "async def scenario():\n"
        "    handler = LiteLLMHandler(4)\n"
        "    waiting = asyncio.create_task(handler.prepare())\n"
        "    await asyncio.sleep(0.1)\n"
        "    waiting.cancel()\n"
        "    await asyncio.gather(waiting, return_exceptions=True)\n"
        "    await handler.aclose()\n"
        "asyncio.run(scenario())\n"
        "print('ended')\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={"PYTHONPATH": path}
    )
    assert (done.stdout, done.stderr, done.returncode) == ("ended\n", "", 0)
