"""Replays have the options of their run, and its tools as far as the record holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_core import Completion, Request
from rlm_core.builtin_tools import BUILTIN
from rlm_core.errors import RecordError
from rlm_core.lm_handler import ToolCall
from rlm_core.options import DepthModels, Options
from rlm_core.pricing import PriceTable
from rlm_core.telemetry import as_json
from rlm_core.tools import has_function, tool
from tests.support.replays import live, recorded
from traces.home import Home
from traces.recorded_settings import lacking, read_limits, read_options, with_models
from traces.replay import Replayer
from traces.resume import spent_before
from traces.trial import Budget

ASK = "r = llm_query('how many?')\nFINAL(r)"


def weather(place: str) -> str:
    """The weather at a place."""
    return f"rain in {place}"


def answer(request: Request) -> Any:
    return "four"


def test_sub_calls_whose_tools_only_the_asker_has_are_served_and_never_asked_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    options = Options(tools=(tool(weather),), cache=True, schema={"type": "string"})
    view = recorded(home, ASK, sub=answer, options=options)
    with Replayer(home, view, handler=live(sub=answer), budget=Budget(live_calls=9)) as replayer:
        trial = replayer.trial()
        assert (trial.outcome, trial.answer, trial.hits) == ("unchanged", "four", 1)
        again = replayer.trial(mode="live")
    assert (again.outcome, again.live_calls) == ("undecided", 0)
    assert again.stopped == (
        "sub-calls of this run may use tools whose functions are not in its record (weather), so none can be "
        "asked again"
    )


def test_options_come_back_out_of_the_record() -> None:
    options = Options(
        strategy="retrieve+rlm",
        cache=True,
        schema={"type": "integer"},
        tools=(BUILTIN["calculate"], tool(weather)),
        models={1: DepthModels("test/a", None), 3: DepthModels(None, "test/b")},
        root_window=1_000,
        passages=3,
    )
    again = read_options(as_json(options.to_json()))
    assert again.to_json() == options.to_json()
    assert [has_function(one) for one in again.tools] == [True, False] and lacking(again) == ("weather",)
    assert read_options(None) == Options(), "records of before there were any"


@pytest.mark.parametrize(
    "said",
    ['{"strategy": "guess"}', '{"tools": [7]}', '{"models": {"one": {}}}', '{"tools": [{"name": "a b"}]}'],
)
def test_options_that_no_run_can_have_had_are_said_in_one_sentence(said: str) -> None:
    with pytest.raises(RecordError, match="options in the record are none that a run can have"):
        read_options(said)


def test_another_model_takes_the_place_of_all_of_its_role() -> None:
    options = Options(models={1: DepthModels("test/a", "test/b")})
    assert with_models(options, None, "test/c").models_at(2, "root", "test/c") == ("test/a", "test/c")
    assert with_models(options, "test/d", None).models_at(2, "test/d", "sub") == ("test/d", "test/b")


@pytest.mark.parametrize("usd", ["a dollar", "-1", "NaN", 3])
def test_a_limit_in_dollars_that_is_none_is_said(usd: Any) -> None:
    with pytest.raises(RecordError, match="the limit max_cost_usd was"):
        read_limits({"max_cost_usd": usd}, spending=True)


def test_a_call_is_asked_alone_as_it_was_asked_or_not_at_all(tmp_path: Path) -> None:
    home, asked = Home(tmp_path), list[Request]()

    def answer(request: Request) -> str:
        asked.append(request)
        return "7"

    code = "llm_query('how many?', schema={'type': 'integer'})\nFINAL(1)"
    views = [
        recorded(home, code, sub=answer, options=options, run_id=f"20260101T000000-0000000{number}")
        for number, options in enumerate((Options(), Options(tools=(BUILTIN["calculate"],))))
    ]
    for view, reply in zip(views, ("7", None), strict=True):
        (call,) = (span.span_id for span in view.spans if span.kind == "sub_call")
        budget = Budget(live_calls=5)
        with Replayer(home, view, handler=live(sub=answer), budget=budget) as replayer:
            assert replayer.ask_again(call) == reply
    first, _, again = asked
    assert again.messages == first.messages and again.schema == first.schema


def test_only_calls_of_tools_that_were_made_count_as_spent(tmp_path: Path) -> None:
    home = Home(tmp_path)
    wanted = [("calculate", '{"expression": "1/0"}'), ("calculate", "{}"), ("unknown", "{}")]
    calls = tuple(ToolCall(f"c{number}", *one) for number, one in enumerate(wanted))

    def sub(request: Request) -> Completion:
        is_told = request.messages[-1].role == "tool"
        return Completion("7") if is_told else Completion(None, tool_calls=calls)

    view = recorded(home, ASK, sub=sub, options=Options(tools=(BUILTIN["calculate"],)))
    assert spent_before(view, PriceTable()).tool_calls == 1
