"""A root that typed its answer is asked again: how to is said, what it cost and what stayed open counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.support.loopback import Loopback
from tests.support.loopback import Script as Server
from tests.support.replays import recorded, span_of
from traces.diagnosis_spending import spent_beside
from traces.home import Home
from traces.opinions import judge

Call = Callable[..., Any]
BAD, GOOD = "20260101T000000-0000aaaa", "20260101T000000-0000bbbb"
COUNT = (
    "replies = llm_batch([f'item {n}: how many?' for n in range(8)])\n"
    "total = sum(int(r) for r in replies)\nprint(total)"
)


@pytest.fixture
def culprit(home: Home) -> str:
    """Two runs whose roots typed what they read; the id of the call that broke the answer of the first."""
    bad = recorded(home, COUNT, "FINAL(30)", sub=lambda request: "9" if "item 4" in request.prompt else "3")
    recorded(home, COUNT, "FINAL(24)", sub=lambda _: "3", run_id=GOOD)
    return span_of(bad, "sub_call", 4)


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    """Models that can be asked."""
    with Loopback(Server(root=lambda _: "```repl\nFINAL(total)\n```", sub=lambda _: "3")) as server:
        yield {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}


def test_how_to_ask_the_root_again_is_said_as_a_command_that_works(
    call: Call, home: Home, culprit: str, env: dict[str, str]
) -> None:
    free = call("diagnose", BAD, "--good", GOOD)
    told = next(line for line in free.out.splitlines() if line.startswith("ask the root again: "))
    command = told.removeprefix("ask the root again: rlmscope ").split()
    assert command[:8] == ["diagnose", BAD, "--good", GOOD, "--max-calls", "3", "--repeat", "3"]
    asked = call(*command[:8], env=env)
    assert "3 of 3 times" in asked.out and "ask the root again" not in asked.out


def test_what_a_person_expects_comes_before_the_answer_of_the_good_run(
    call: Call, home: Home, culprit: str
) -> None:
    judge(home, BAD, verdict="wrong", expected="24 items")
    said = call("diagnose", BAD, "--good", GOOD, "--json").json
    assert (said["expected"], said["expected_from"]) == ("24 items", "expected")


def test_what_diagnoses_spent_on_models_is_part_of_what_runs_cost(
    call: Call, home: Home, culprit: str, env: dict[str, str]
) -> None:
    before = call("cost", "--json").json
    assert before["diagnoses"] == {"live_calls": 0, "cost_usd": "0"}
    assert "diagnoses" not in call("cost").out
    options = ("--max-calls", "2", "--repeat", "2", "--root", "openai/gpt-5")
    said = call("diagnose", BAD, "--good", GOOD, *options, "--json", env=env).json
    assert said["live_calls"] == 2 and Decimal(said["cost_usd"]) > 0
    after = call("cost", BAD, "--json").json
    assert after["diagnoses"] == {"live_calls": 2, "cost_usd": said["cost_usd"]}
    assert "beside these runs, diagnoses made 2 calls to a model: $" in call("cost").out
    assert spent_beside(home, {GOOD}).live_calls == 0


def test_a_repeated_replay_that_the_budget_stopped_is_not_counted_as_a_wrong_answer(
    call: Call, home: Home, culprit: str, env: dict[str, str]
) -> None:
    patch = ("--patch", f"{culprit}=3", "--expected", "24")
    options = ("--mode", "reask", "--repeat", "3", "--max-calls", "1")
    done = call("replay", BAD, *patch, *options, env=env)
    assert "should be 1 of 1 time. 2 replays came to no answer: the budget allows 1 call" in done.out
