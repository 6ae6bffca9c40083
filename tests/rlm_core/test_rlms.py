"""Programs written for the `rlms` package: what it takes, what it gives back, what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rlm_core import Completion, FunctionLMHandler, Request
from rlm_core.errors import ConfigError, InputError, ModelError
from rlm_core.lm_handler import Usage
from rlm_core.options import Options
from rlm_core.rlms import (
    RLM,
    BudgetExceededError,
    CancellationError,
    RLMChatCompletion,
    StoppedError,
    TimeoutExceededError,
    TokenLimitExceededError,
)
from tests.support.litellm_calls import KEY
from tests.support.loopback import Loopback, Script
from tests.support.scripted import Script as Turns
from tests.support.scripted import cell
from traces.home import Home
from traces.reading import list_runs
from traces.recording import open_recording

GPT = {"model_name": "gpt-5"}


def used(reply: Any) -> Any:
    """A handler's reply with 10 tokens in, 5 out."""
    return Completion(reply, usage=Usage(input=10, output=5)) if isinstance(reply, str) else reply


def made(*replies: Any, sub: Any = lambda _: used("seen"), **options: Any) -> RLM:
    turns = Turns([used(reply) for reply in replies], sub)
    options.setdefault("backend_kwargs", GPT)
    return RLM(handler=FunctionLMHandler(turns), **options)


def test_a_program_for_rlms_gets_what_it_expects() -> None:
    replies = (
        cell("print(llm_query('x'))\nprint(context)"),
        cell("answer['content'] = 'yes'\nanswer['ready'] = True"),
    )
    with made(*replies, other_backends=["anthropic"], other_backend_kwargs=[{"model_name": "small"}]) as rlm:
        completion = rlm.completion("the prompt", root_prompt="Is it so?")
    assert isinstance(completion, RLMChatCompletion)
    assert (completion.response, completion.prompt) == ("yes", "the prompt")
    assert completion.root_model == "openai/gpt-5" and completion.execution_time > 0
    usage = completion.usage_summary
    by_model = {model: one.total_calls for model, one in usage.model_usage_summaries.items()}
    assert by_model == {"openai/gpt-5": 2, "anthropic/small": 1}
    assert (usage.total_input_tokens, usage.total_output_tokens, usage.total_cost) == (30, 15, None)
    assert completion.metadata is not None and completion.metadata["stop_reason"] == "final"
    shown = completion.to_dict()
    assert shown["usage_summary"] == usage.to_dict() and "total_cost" not in shown["usage_summary"]
    assert shown["usage_summary"]["model_usage_summaries"]["openai/gpt-5"]["total_cost"] > 0


@pytest.mark.parametrize("prompt", [["one", "two"], {"a": "one", "b": "two"}], ids=["list", "mapping"])
def test_prompts_of_several_texts(prompt: Any) -> None:
    with made(cell("FINAL(len(context))")) as rlm:
        assert rlm.completion(prompt).response == "2"


@pytest.mark.parametrize("prompt", [7, b"bytes", [{"role": "user", "content": "hi"}], {"a": 1}], ids=repr)
def test_other_prompts_are_refused(prompt: Any) -> None:
    with made() as rlm, pytest.raises(InputError, match="a prompt is a text, a list of texts"):
        rlm.completion(prompt)


def test_callbacks_are_called_and_one_that_fails_is_called_no_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls: list[tuple[Any, ...]] = []

    def fails(*what: Any) -> None:
        calls.append(("iteration end", *what[:2]))
        raise OSError("full")

    replies = cell("print(rlm_query('below?', 'part'))"), cell("FINAL('leaf')"), cell("FINAL(1)")
    with made(
        *replies,
        max_depth=2,
        verbose=True,
        on_subcall_start=lambda *what: calls.append(("start", *what)),
        on_subcall_complete=lambda depth, model, seconds, error: calls.append(("end", depth, model, error)),
        on_iteration_start=lambda *what: calls.append(("iteration", *what)),
    ) as rlm:
        whole = rlm.completion("text")
        assert calls == [
            ("iteration", 0, 1),
            ("start", 1, "openai/gpt-5", "below?"),
            ("iteration", 1, 1),
            ("end", 1, "openai/gpt-5", None),
            ("iteration", 0, 2),
        ]
    assert whole.metadata is not None and whole.metadata["notices"] == []
    assert "run 0: turn 1 begins" in (said := capsys.readouterr().err) and "leaf" not in said
    calls.clear()
    with made(*replies, max_depth=2, on_iteration_complete=fails) as rlm:
        broken = rlm.completion("text")
    assert calls == [("iteration end", 1, 1)] and broken.usage_summary == whole.usage_summary
    assert broken.metadata is not None and "failed with OSError: full" in broken.metadata["notices"][0]


def test_depth_0_asks_the_root_once_with_the_whole_prompt() -> None:
    with made("plain words", max_depth=0) as rlm:
        assert rlm.completion("the prompt").response == "plain words"


def test_a_completion_can_be_awaited_and_recorded(tmp_path: Path) -> None:
    home = Home(tmp_path)

    async def ask() -> list[str]:
        rlm = made(*[cell("FINAL(context)")] * 2, record=lambda run_id: open_recording(home, run_id, {}))
        with rlm:
            found = await asyncio.gather(rlm.acompletion("one"), rlm.acompletion("two"))
        return [completion.response for completion in found]

    assert asyncio.run(ask()) == ["one", "two"]
    assert [run.status for run in list_runs(home)] == ["ok", "ok"]


def test_a_limit_without_a_last_answer_is_the_exception_of_its_name() -> None:
    refused = ModelError("auth", "no")
    partly = cell("answer['content'] = 'so far'\nimport time\ntime.sleep(600)")

    def first(request: Request) -> Any:  # a slow machine may come to it only when time is over
        return partly if len(request.messages) == 2 else refused

    with made(first, refused, max_timeout=0.8) as rlm, pytest.raises(TimeoutExceededError) as timeout:
        rlm.completion("x")
    assert "(timeout): the time limit of the run is reached; no forced answer" in str(timeout.value)
    with made(max_tokens=1) as rlm, pytest.raises(TokenLimitExceededError):
        rlm.completion("x")
    with made(max_budget=0.000001) as rlm, pytest.raises(BudgetExceededError):
        rlm.completion("x")
    with made(refused) as rlm, pytest.raises(StoppedError, match="gave no usable reply"):
        rlm.completion("x")


def test_cancelled_runs_say_what_they_had() -> None:
    def cancel(_: Request) -> Any:
        rlm.cancel()
        return used("late")

    with (
        made(cell("answer['content'] = 'so far'"), cell("llm_query('x')"), sub=cancel) as rlm,
        pytest.raises(CancellationError) as stopped,
    ):
        rlm.completion("x")
    assert stopped.value.partial_answer == "so far"


def test_a_last_answer_after_a_limit_is_an_answer_and_marked() -> None:
    with made(cell("x = 1"), "as far as I see, 4", max_iterations=1) as rlm:
        completion = rlm.completion("x")
    assert completion.response == "as far as I see, 4"
    assert completion.metadata is not None and completion.metadata["forced"] is True


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"backend": "portkey"}, "backend 'portkey' is not supported; there are openai"),
        ({"backend_kwargs": {}}, "which model"),
        ({"backend_kwargs": {**GPT, "azure_deployment": "x"}}, "azure_deployment of backend_kwargs"),
        ({"backend_kwargs": {**GPT, "api_key": "sk-secret"}}, "set OPENAI_API_KEY instead of api_key"),
        ({"backend_kwargs": {**GPT, "base_url": "http://x"}}, "set OPENAI_BASE_URL instead of base_url"),
        ({"backend_kwargs": {**GPT, "sampling_args": {"max_tokens": 0}}}, "at least 1, not 0"),
        ({"sampling_args": {"temperature": 0.1}}, "temperature in sampling_args"),
        ({"sub_sampling_args": {"top_p": 0.1}}, "top_p in sampling_args"),
        ({"other_backends": ["openai", "openai"], "other_backend_kwargs": [GPT, GPT]}, "one entry each"),
        ({"other_backends": ["openai"]}, "one entry each"),
        ({"environment": "docker"}, "environment is not supported"),
        ({"environment_kwargs": {"image": "x"}}, "environment_kwargs is not supported"),
        ({"depth": 1}, "depth is not supported"),
        ({"max_errors": 3}, "max_errors is not supported"),
        ({"custom_system_prompt": "You are"}, "custom_system_prompt is not supported"),
        ({"logger": object()}, "runs are recorded with record="),
        ({"persistent": True}, "persistent is not supported"),
        ({"custom_tools": {"add": sum}}, "give sub-models tools with options="),
        ({"custom_sub_tools": {"add": sum}}, "give sub-models tools with options="),
        ({"compaction_threshold_pct": 0.5}, "root_window"),
        ({"orchestrator": False}, "orchestrator is not supported"),
        ({"user_prologue": "hints"}, "say it in root_prompt"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refused:
        RLM(**{"backend_kwargs": GPT, **given})
    assert "\n" not in str(refused.value) and "sk-secret" not in str(refused.value)


def test_settings_that_change_nothing_are_taken() -> None:
    RLM(
        backend_kwargs={**GPT, "api_key": None},
        environment_kwargs={},
        custom_tools={},
        compaction=True,
        sampling_args={"max_tokens": 500},
        options=Options(cache=True),
    ).close()


def test_through_litellm(server: Loopback) -> None:
    server.use(Script(root=["```repl\nFINAL(llm_query('hello'))\n```"], talk=lambda _: "from the server"))
    kwargs = {"model_name": "root/model", "api_key": KEY, "base_url": server.base_url}
    others = {"other_backends": ["openai"], "other_backend_kwargs": [{"model_name": "small"}]}
    with RLM("openai", kwargs, sampling_args={"max_tokens": 77}, max_iterations=1, **others) as rlm:
        completion = rlm.completion("x", "what?")
    assert completion.response == "from the server" and completion.root_model == "openai/root/model"
    assert [request["body"]["model"] for request in server.requests] == ["root/model", "small"]
    first = server.requests[0]["body"]
    assert 77 in (first.get("max_tokens"), first.get("max_completion_tokens"))
