"""Runs of several strategies as rows: what they took, what is marked, and what is never told of a demo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, Limits, Request
from rlm_core.errors import InputError
from rlm_core.lm_handler import Completion, LMHandler, Usage
from rlm_core.options import Options
from tests.support.scripted import cell
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording
from traces.replay import Replayer
from traces.strategies import StrategyRow, strategy_rows

TEXT = "The copper aqueduct is filed under WZB-4453.\n"
CORPUS = {"a.txt": TEXT, "b.txt": "The lead aqueduct is not filed.\n" * 60}
QUESTION = "Under which reference is the copper aqueduct filed?"


class Model:
    """A model that is neither the demo model nor a script, as far as the engine can tell."""

    def __init__(self, answer: Callable[[Request], str]) -> None:
        self._answer = answer

    async def complete(self, request: Request) -> Completion:
        """Reply, with usage."""
        return Completion(self._answer(request), usage=Usage(input=100, output=5))

    async def aclose(self) -> None:
        """Nothing to release."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


def record(
    home: Home, strategy: str, handler: LMHandler | None, model: str = "openai/gpt-5-mini", **how: Any
) -> str:
    """A recorded run of a strategy; the id of the run."""
    run_id = f"20260101T000000-{len(list(home.spool.glob('*.jsonl'))):08x}"
    limits = how.pop("limits", None)
    options = Options(strategy=strategy, **how)  # type: ignore[arg-type]
    with (
        open_recording(home, run_id, {}) as recording,
        RLM(
            model, model.replace("root", "sub"), handler=handler, options=options, limits=limits,
            corpora=home.corpora, sandbox="none",
        ) as rlm,
    ):  # fmt: skip
        answer = rlm.ask(QUESTION, CORPUS, recorder=recording.recorder, run_id=run_id)
        recording.close("ok" if answer.text is not None else "error")
    return run_id


def test_a_row_says_what_a_run_took_and_whether_it_is_right(home: Home) -> None:
    def answer(request: Request) -> str:
        if request.role == "sub":
            return "wzb-4453"
        code = "FINAL(llm_batch(['Which?'] * 2)[0])"
        return cell(code) if "```repl" in request.messages[0].content else "WZB-4450"

    runs = [record(home, name, Model(answer)) for name in ("rlm", "direct")]
    runs.append(record(home, "direct", Model(answer), root_window=100))
    rlm, direct, too_long = strategy_rows(home, runs, expected="WZB-4453")
    assert (rlm.strategy, rlm.root_calls, rlm.sub_calls, rlm.fits, rlm.correct) == ("rlm", 1, 2, None, True)
    assert (direct.strategy, direct.root_calls, direct.fits, direct.correct) == ("direct", 1, True, False)
    assert direct.tokens == {"input": 100, "output": 5, "total": 105} and direct.cost_status == "priced"
    assert (too_long.answer, too_long.fits, too_long.root_calls, too_long.correct) == (None, False, 0, None)
    assert too_long.note is not None and "does not fit" in too_long.note
    assert {row.demo or row.scripted for row in (rlm, direct, too_long)} == {False}
    assert [row.correct for row in strategy_rows(home, runs)] == [None] * 3
    assert list(direct.to_json()) == list(StrategyRow.__slots__) and isinstance(
        direct.to_json()["cost_usd"], str
    )


def test_demo_and_scripted_answers_are_marked_and_never_right(home: Home) -> None:
    runs = [
        record(home, "direct", None, "demo/root"),
        record(home, "direct", FunctionLMHandler(lambda _: "WZB-4453")),
    ]
    demo, scripted = strategy_rows(home, runs, expected="WZB-4453")
    assert demo.answer is not None and demo.answer.startswith("WZB-4453")
    assert (demo.demo, demo.scripted, demo.correct) == (True, False, None)
    assert (scripted.answer, scripted.demo, scripted.scripted, scripted.correct) == (
        "WZB-4453", False, True, None,
    )  # fmt: skip


def test_a_run_that_is_not_there_is_said(home: Home) -> None:
    with pytest.raises(InputError, match="There is no run"):
        strategy_rows(home, ["20260101T000000-ffffffff"])


@pytest.mark.parametrize(
    ("strategy", "how"),
    [
        ("direct", {}),
        ("retrieve", {"passages": 1}),
        ("compaction", {"root_window": 1_000}),
        ("compaction", {"root_window": 1_000, "limits": Limits(max_iterations=2)}),
        ("direct", {"schema": {"type": "integer"}}),
    ],
)
def test_a_run_is_played_again_without_a_model(home: Home, strategy: str, how: dict[str, Any]) -> None:
    replies = iter(f"reply {number}" for number in range(100))
    run_id = record(home, strategy, FunctionLMHandler(lambda _: next(replies)), **how)
    view = load_run(home, run_id)
    with Replayer(home, view) as replayer:
        trial = replayer.trial([])
    assert (trial.answer, trial.outcome, trial.live_calls) == (view.summary.answer, "unchanged", 0)
    assert trial.misses == 0
