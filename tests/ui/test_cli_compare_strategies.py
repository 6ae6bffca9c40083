"""`rlmscope compare-strategies`: rows, exit codes, what is refused, what is said of demo models."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_core.errors import ModelError, RecordError
from rlm_core.lm_handler import Completion, Request, Usage
from rlm_core.options import STRATEGIES

Call = Callable[..., Any]
QUESTION = "Under which reference is the copper aqueduct filed?"
READING = "direct,compaction,retrieve"


class Model:
    """Who answers in the place of LiteLLM."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.models: list[str] = []

    async def complete(self, request: Request) -> Completion:
        """The reply, or the error."""
        self.models.append(request.model)
        if isinstance(self.reply, Exception):
            raise self.reply
        return Completion(self.reply, usage=Usage(input=1_000, output=10))

    async def aclose(self) -> None:
        """Nothing to release."""


@pytest.fixture
def document(tmp_path: Path) -> str:
    (tmp_path / "a.txt").write_text("The copper aqueduct is filed under WZB-4453.\n" * 3)
    return str(tmp_path / "a.txt")


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Model]:
    """Let a model answer every request."""

    def use(reply: Any) -> Model:
        model = Model(reply)
        monkeypatch.setattr("rlm_core.models.make_handler", lambda *_, **__: model)
        return model

    return use


PAID = ("--root", "openai/gpt-5-mini", "--sub", "openai/gpt-5-nano")


@pytest.mark.full
def test_every_strategy_is_run_and_recorded(call: Call, document: str) -> None:
    result = call("compare-strategies", QUESTION, document, "--expected", "WZB-4453", "--json")
    said = result.json
    rows = said["rows"]
    assert result.code == 0 and [row["strategy"] for row in rows] == list(STRATEGIES)
    assert said["demo"] is True and {row["demo"] for row in rows} == {True}
    assert {row["correct"] for row in rows} == {None}  # a demo model answered
    assert all("WZB-4453" in row["answer"] for row in rows)
    fits = {row["strategy"]: row["fits"] for row in rows}
    assert fits.pop("direct") is True and set(fits.values()) == {None}
    recorded = {run["run_id"]: run["strategy"] for run in call("runs", "--json").json}
    assert recorded == {row["run_id"]: row["strategy"] for row in rows}
    assert "strategy 7 of 7: retrieve+rlm" in result.err


def test_an_answer_of_a_model_is_right_or_wrong(
    call: Call, document: str, answered: Callable[[Any], Model]
) -> None:
    model = answered(" wzb-4453. ")
    options = ("--strategies", READING, "--expected", "WZB-4453", *PAID)
    said = call("compare-strategies", QUESTION, document, *options, "--json").json
    assert [(row["correct"], row["root_calls"]) for row in said["rows"]] == [(True, 1), (True, 2), (True, 1)]
    assert said["demo"] is False and set(model.models) == {"openai/gpt-5-mini"}
    assert float(said["total_cost_usd"]) == sum(float(row["cost_usd"]) for row in said["rows"]) > 0
    answered("WZB-4450")
    lines = call("compare-strategies", QUESTION, document, *options).out.splitlines()
    assert lines[0].split() == [
        "strategy",
        "answer",
        "root",
        "+",
        "sub",
        "tokens",
        "cost",
        "time",
        "run",
        "right",
    ]
    assert [line.split()[-1] for line in lines[1:4]] == ["no"] * 3
    assert any(line.startswith("right is: WZB-4453 (") for line in lines)
    assert not any("demo" in line for line in lines)


def test_what_does_not_fit_is_no_failure(call: Call, document: str, answered: Callable[[Any], Model]) -> None:
    answered("x")
    options = ("--strategies", "direct", "--root-window", "20", *PAID)
    result = call("compare-strategies", QUESTION, document, *options)
    assert result.code == 0 and "(does not fit)" in result.out
    assert any(line.startswith("direct: the corpus does not fit: about ") for line in result.out.splitlines())
    (row,) = call("compare-strategies", QUESTION, document, *options, "--json").json["rows"]
    assert (row["fits"], row["stop_reason"], row["correct"]) == (False, "error", None)


def test_a_model_that_cannot_be_asked_is_one(
    call: Call, document: str, answered: Callable[[Any], Model]
) -> None:
    answered(ModelError("auth", "openai/gpt-5-mini: no key"))
    result = call("compare-strategies", QUESTION, document, "--strategies", "retrieve", *PAID, "--json")
    assert result.code == 1 and json.loads(result.out)["rows"][0]["stop_reason"] == "error"
    assert result.err.splitlines()[-1].startswith("rlmscope: no answer of retrieve: the root model gave no")


def test_what_does_not_fit_and_what_failed_is_no_wrong_answer(
    call: Call, document: str, answered: Callable[[Any], Model]
) -> None:
    judged = ("--expected", "WZB-4453", *PAID, "--json")
    answered("x")
    options = ("--strategies", "direct,compaction", "--root-window", "20", *judged)
    fits = {
        row["fits"]: row["correct"]
        for row in call("compare-strategies", QUESTION, document, *options).json["rows"]
    }
    assert fits == {False: None, None: None}
    options = ("--strategies", "direct", "--max-calls", "1", "--max-tokens", "1", *judged)
    (row,) = call("compare-strategies", QUESTION, document, *options).json["rows"]
    assert (row["stop_reason"], row["answer"], row["correct"]) == ("budget", None, False)


def at_the_end(*_: Any) -> str:
    """Ctrl-C when a run has its answer already."""
    os.kill(os.getpid(), signal.SIGINT)
    return "ok"


def in_duckdb(*_: Any) -> Any:
    """Ctrl-C while the run is taken into the store."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(("place", "strikes"), [("_status", at_the_end), ("_ingested", in_duckdb)])
def test_a_wish_to_stop_that_comes_after_an_answer_ends_the_comparison_and_keeps_the_answer(
    call: Call,
    document: str,
    answered: Callable[[Any], Model],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    strikes: Callable[..., Any],
) -> None:
    model = answered("WZB-4453")
    monkeypatch.setattr(f"ui.ask_run.{place}", strikes)
    result = call("compare-strategies", QUESTION, document, "--strategies", READING, *PAID, "--json")
    assert [row["answer"] for row in result.json["rows"]] == ["WZB-4453"] and len(model.models) == 1
    assert result.code == 1
    assert result.err.splitlines()[-1] == "rlmscope: cancelled after strategy 1 of 3"


def test_a_run_that_ends_before_its_record_begins_is_an_error_of_its_strategy(
    call: Call, document: str, answered: Callable[[Any], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered("x")

    def fails(*_: Any, **__: Any) -> None:
        raise RecordError("the corpus is gone")

    monkeypatch.setattr("rlm_core.rlm.RLM.ask", fails)
    result = call("compare-strategies", QUESTION, document, "--strategies", READING, *PAID, "--json")
    said = [(row["strategy"], row["stop_reason"], row["note"]) for row in result.json["rows"]]
    assert said == [(name, "error", "the corpus is gone") for name in READING.split(",")]
    assert result.code == 1 and result.err.splitlines()[-1].endswith(
        "no answer of direct: the corpus is gone"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--strategies", "direct,dirct"), "there is no strategy 'dirct'; there are rlm, "),
        (("--strategies", ""), "there is no strategy ''"),
        (("--strategies", "direct,direct"), "the strategy direct is named twice"),
        (("--match", "number"), "give --expected too"),
        (("--expected", "x", "--match", "judge"), "asks no judge"),
        (("--expected", "(", "--match", "regex"), "no regular expression"),
        (("--expected", "x", "--match", "nearly"), "nearly"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    call: Call, document: str, options: tuple[str, ...], said: str
) -> None:
    result = call("compare-strategies", QUESTION, document, *options)
    assert result.code == 2 and said in result.error
    assert call("runs", "--json").json == []
