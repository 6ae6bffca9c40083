"""What of a run becomes training data, and what is left out, with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.builtin_tools import BUILTIN
from rlm_core.lm_handler import Completion, Request, ToolCall, Usage
from rlm_core.options import Options
from rlm_core.telemetry import as_json
from tests.support.replays import recorded
from tests.traces.records import RUN, recording
from traces.exporters.secrets import redacted
from traces.exporters.sft_chat import Example
from traces.exporters.sft_examples import CALLED_WRONG, RunExamples
from traces.exporters.sft_runs import Choice, left_out
from traces.home import Home
from traces.opinions import judge, opinions
from traces.reading import load_run
from traces.view import RunView

ID = "20260101T000000-0000aaaa"
ALL = Choice(("trajectories", "turns", "sub-calls"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


def of(home: Home, view: RunView, *kinds: Any) -> tuple[list[Example], dict[str, int]]:
    found = RunExamples(view, opinions(home), Choice(kinds) if kinds else ALL)
    return list(found), dict(found.left_out)


def test_a_conversation_with_a_failed_cell_is_left_out_its_other_turns_are_not(home: Home) -> None:
    view = recorded(home, "print(nothing_there)", "x = 7\nprint(x)", "FINAL(x)", sub=lambda _: "")
    found, reasons = of(home, view, "trajectories", "turns")
    assert reasons == {"a cell of the turn failed": 2}
    assert [(one.kind, one.messages[-1].content) for one in found] == [
        ("turns", "```repl\nx = 7\nprint(x)\n```"),
        ("turns", "```repl\nFINAL(x)\n```"),
    ]


@pytest.mark.parametrize("kind", ["iteration", "cell"])
def test_what_lies_below_something_called_wrong_is_left_out_and_so_is_its_turn(home: Home, kind: str) -> None:
    view = recorded(home, "r = llm_query('what?')\nprint(r)", "FINAL(7)", sub=lambda _: "it")
    wrong = next(span.span_id for span in view.spans if span.kind == kind)
    judge(home, view.run_id, span_id=wrong, verdict="wrong")
    found, reasons = of(home, view)
    assert reasons == {CALLED_WRONG: 3}
    assert [(one.kind, one.messages[-1].content) for one in found] == [("turns", "```repl\nFINAL(7)\n```")]


def test_a_turn_without_a_cell_is_left_out(home: Home) -> None:
    view = recorded(home, "I think about it.", "FINAL(7)", sub=lambda _: "")
    found, reasons = of(home, view, "turns")
    assert reasons == {"the turn had no cell": 1} and len(found) == 1


def test_what_the_root_made_up_after_its_cell_is_not_learned(home: Home) -> None:
    view = recorded(home, lambda _: "```repl\nFINAL(7)\n```\nOutput: 7.", sub=lambda _: "")
    (found,), _ = of(home, view, "trajectories")
    assert found.messages[-1].content == "```repl\nFINAL(7)\n```" and found.estimated


def test_a_strategy_that_writes_no_cells_is_one_turn_with_its_whole_answer(home: Home) -> None:
    reply = "It is this:\n```python\nprint(7)\n```\nand nothing else."
    view = recorded(home, lambda _: reply, sub=lambda _: "", options=Options(strategy="direct"))
    (found,), reasons = of(home, view, "trajectories")
    assert found.messages[-1].content == reply == view.summary.answer and reasons == {}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "the reply is empty"),
        ("I'm sorry, but I cannot help with that.", "the reply declines"),
        (Completion("half a", finish_reason="length"), "the reply was cut off"),
        (ValueError("no"), "the call failed"),
    ],
)
def test_replies_that_are_no_example(home: Home, reply: Any, reason: str) -> None:
    def answer(_request: Request) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    view = recorded(home, "r = llm_query('what?')\nprint(bool(r))\nFINAL(7)", sub=answer)
    found, reasons = of(home, view, "sub-calls")
    assert (found, reasons) == ([], {reason: 1})


def test_tokens_are_those_reported_without_reasoning_else_an_estimate(home: Home) -> None:
    usage = Usage(input=100, output=30, reasoning=20)
    view = recorded(
        home,
        "print(llm_query('what?'), llm_query('why?'))\nFINAL(7)",
        sub=lambda request: Completion("it", usage=usage) if "what" in request.prompt else "because",
    )
    (what, why), _ = of(home, view, "sub-calls")
    assert (what.tokens, what.estimated) == (110, False)
    assert (why.tokens, why.estimated) == (3, True)


def sent(request: Request) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in request.messages]


def test_a_call_with_tools_is_the_conversation_that_the_model_had(home: Home) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Any:
        asked.append(request)
        if len(asked) > 1:
            return Completion("it is 42")
        wanted = ToolCall("call-1", "calculate", '{"expression": "6*7"}')
        return Completion("I work it out.", finish_reason="tool_calls", tool_calls=(wanted,))

    options = Options(tools=(BUILTIN["calculate"],))
    view = recorded(home, "print(llm_query('six by seven?'))\nFINAL(42)", sub=answer, options=options)
    (found,), _ = of(home, view, "sub-calls")
    assert [(m.role, m.content) for m in found.messages] == [*sent(asked[-1]), ("assistant", "it is 42")]
    said, told = json.loads(found.line())["messages"][1:3]
    (call,) = said["tool_calls"]
    assert call["function"] == {"name": "calculate", "arguments": '{"expression": "6*7"}'}
    assert told["tool_call_id"] == call["id"] == "call-1" and told["content"] == "42"
    (tool,) = json.loads(found.line())["tools"]
    assert tool["function"]["name"] == "calculate" and tool["function"]["parameters"]["type"] == "object"
    assert found.estimated  # the usage on record is that of both requests


def test_a_call_whose_tool_failed_is_left_out(home: Home) -> None:
    def answer(request: Request) -> Any:
        if request.messages[-1].role == "tool":
            return Completion("no idea")
        return Completion(None, tool_calls=(ToolCall("c", "calculate", '{"expression": "1/0"}'),))

    options = Options(tools=(BUILTIN["calculate"],))
    view = recorded(home, "print(llm_query('one by zero?'))\nFINAL(0)", sub=answer, options=options)
    assert of(home, view, "sub-calls") == ([], {"a tool call failed": 1})


def test_of_a_reply_that_was_sent_back_only_the_one_that_fits_is_learned(home: Home) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Any:
        asked.append(request)
        return "six" if len(asked) == 1 else "6"

    code = "print(llm_query('how many?', schema={'type': 'integer'}))\nFINAL(6)"
    (found,), _ = of(home, recorded(home, code, sub=answer), "sub-calls")
    assert [(m.role, m.content) for m in found.messages] == [*sent(asked[0]), ("assistant", "6")]
    assert len(asked) == 2 and found.messages[0].role == "system"


def test_child_runs_are_conversations_of_their_own(home: Home) -> None:
    view = recorded(
        home, "print(rlm_query('a child question'))\nFINAL(7)", sub=lambda _: "", children=["FINAL(5)"]
    )
    found, _ = of(home, view, "trajectories")
    assert [(one.depth, one.messages[-1].content) for one in found] == [
        (0, "```repl\nprint(rlm_query('a child question'))\nFINAL(7)\n```"),
        (1, "```repl\nFINAL(5)\n```"),
    ]


def compacted(home: Home) -> RunView:
    """A run whose history was summed up after its first turn."""
    with recording(home) as made:
        recorder = made.recorder
        place = {sc.RUN_PATH: "0", sc.DEPTH: 0}
        run = recorder.start("run", sc.NAME_RUN, None, {**place, sc.ROOT_MODEL: "r", sc.SUB_MODEL: "s"})
        run.text(sc.QUESTION, "How many?")
        turns = [
            (0, [("system", "S"), ("user", "Q")], "```repl\na = 1\n```", {}),
            (2, [("assistant", "```repl\na = 1\n```"), ("user", "sum up")], "notes", {sc.COMPACTED: True}),
            (2, [("user", "notes"), ("assistant", "```repl\na = 1\n```"), ("user", "O")], "", {}),
        ]
        for number, (prior, added, reply, facts) in enumerate(turns):
            asked = as_json([[role, recorder.payload(text)] for role, text in added])
            known = {sc.MESSAGES_PRIOR: prior, sc.MESSAGES_ADDED: asked, sc.ITERATION: number}
            iteration = recorder.start("iteration", sc.NAME_ITERATION, run, {**place, sc.ITERATION: number})
            call = recorder.start("root_call", "chat r", iteration, {**place, **known, **facts})
            call.text(sc.RESPONSE, reply or "```repl\nFINAL(a)\n```")
            call.end("ok")
            cell = recorder.start("cell", sc.NAME_CELL, iteration, {**place, sc.ITERATION: number})
            cell.end("ok")
            iteration.end()
        run.text(sc.ANSWER, "1")
        run.end("ok", {sc.STOP_REASON: "final"})
        made.close("ok")
    return load_run(home, RUN)


def test_where_the_history_was_summed_up_a_new_conversation_begins(home: Home) -> None:
    found, reasons = of(home, compacted(home), "trajectories")
    assert reasons == {}
    first, second = ([(m.role, m.content, m.learn) for m in one.messages] for one in found)
    assert first[2:] == [("assistant", "```repl\na = 1\n```", True)]
    assert [learn for role, _, learn in second if role == "assistant"] == [False, True]
    assert "sum up" not in [content for _, content, _ in second]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "nobody said whether it is right"),
        ({"verdict": "right"}, None),
        ({"verdict": "wrong", "expected": "7"}, "its verdict is wrong"),
        ({"expected": "7"}, None),
        ({"expected": "8"}, "its answer is not the expected one"),
        ({"expected": "eight", "how": "judge"}, "only a judge could tell whether it is right"),
    ],
)
def test_right_is_what_a_person_called_so_or_expects(
    home: Home, said: dict[str, str], reason: str | None
) -> None:
    view = recorded(home, "FINAL(7)", sub=lambda _: "")
    if said:
        judge(home, ID, **{"verdict": None, **said})  # type: ignore[arg-type]
    assert left_out(view, opinions(home), ALL) == reason
    assert left_out(view, opinions(home), Choice(any_verdict=True)) is None


def changed(view: RunView, change: Callable[[Any], Any]) -> RunView:
    """The same view with another summary."""
    return RunView(change(view.summary), view.spans, view.live, view._source)


def test_runs_that_a_model_did_not_answer_by_itself_are_left_out(home: Home) -> None:
    view, any_ = recorded(home, "FINAL(7)", sub=lambda _: ""), Choice(any_verdict=True)
    for change, reason in (
        ({"replay_of": "x"}, "it plays another run again"),
        ({"forced": True}, "its answer was forced by a limit"),
        ({"complete": False}, "its record is not complete"),
        ({"answer": None}, "it has no answer"),
        ({"status": "cancelled"}, "it has no answer"),
    ):
        made = changed(view, lambda run, change=change: replace(run, **change))  # type: ignore[misc]
        assert left_out(made, opinions(home), any_) == reason


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-0123456789abcdefghijklmn",
        "sk-ant-api03-abcdefghijklmnop-0123456789",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "AKIA0123456789ABCDEF",
        "hf_abcdefghijklmnopqrstuvwxyz0123456789",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_strings_in_the_form_of_keys_are_replaced(secret: str) -> None:
    assert redacted(f"before {secret} after") == ("before [redacted] after", 1)


def test_values_that_a_text_calls_a_key_are_replaced_and_words_are_not() -> None:
    assert redacted('API_KEY = "abcdef0123456789abcdef"') == ('API_KEY = "[redacted]"', 1)
    assert redacted("Authorization: Bearer abcdef0123456789abcdef") == (
        "Authorization: Bearer [redacted]",
        1,
    )
    for plain in (
        "password: correct",
        "the api key rotation policy",
        "task-force-2024-review",
        "a risk-based",
    ):
        assert redacted(plain) == (plain, 0)


def test_keys_are_looked_for_in_time_that_grows_with_the_text_alone() -> None:
    for text in ("a-" * 100_000, "api_key=" * 20_000, "eyJaaaaaaaaaaaaa-" * 5_000, "sk-" * 20_000):
        assert redacted(text) == (text, 0)  # minutes, were it quadratic


def test_names_with_sk_in_front_are_no_keys() -> None:
    assert redacted("sk-learn-like-estimators") == ("sk-learn-like-estimators", 0)
