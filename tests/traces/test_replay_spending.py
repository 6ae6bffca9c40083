"""What a replay says it asked a model for is what the model was asked: no call that was refused counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import Limits, Request
from rlm_core.lm_handler import Completion, Usage
from tests.support.loopback import Loopback
from tests.support.loopback import Script as Server
from tests.support.replays import SUB, filled, recorded
from traces.home import Home
from traces.prices import price_table, set_price
from traces.reading import load_run
from traces.recording import open_recording
from traces.replay import Replayer
from traces.trial import Budget, Trial
from traces.view import RunView

BATCH = "replies = llm_batch([f'item {n}' for n in range(50)])\ntotal = sum(int(r) for r in replies)"
THREADS = (
    "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(8) as pool:\n"
    "    replies = list(pool.map(llm_query, [f'item {n}' for n in range(20)]))\n"
    "total = sum(int(r) for r in replies)"
)
RUN, AGAIN = "20260101T000000-0000aaaa", "20260101T000000-0000bbbb"
CALLS = (0, 10, 49, 50, 100)
DOLLARS = ("0.000001", "1", "2", "3", "5", "100")


def crossed(limits: Sequence[Any]) -> list[Any]:
    """Every limit at both concurrencies; in the default suite at one of them, by turns."""
    return [
        pytest.param(limit, wide, marks=() if (wide == 32) == bool(place % 2) else pytest.mark.full)
        for place, limit in enumerate(limits)
        for wide in (4, 32)
    ]


class Counting:
    """A model that takes its time, and counts what it was asked and what it answered."""

    def __init__(self, seconds: float = 0.005) -> None:
        self.asked = self.answered = 0
        self._seconds = seconds

    async def complete(self, request: Request) -> Completion:
        self.asked += 1
        await asyncio.sleep(self._seconds)
        self.answered += 1
        return Completion("3", "stop", usage=Usage(100, 5))

    async def aclose(self) -> None:
        """Nothing to release."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.resolve(tmp_path / "home")
    set_price(made, SUB, {"input": Decimal(1000), "output": Decimal(2000)})
    return made


def view_of(home: Home, concurrency: int = 32, code: str = BATCH) -> RunView:
    limits = Limits(concurrency=concurrency, max_tokens_sub=500)

    def fill(empty: Home) -> None:
        recorded(empty, code, "FINAL_VAR('total')", sub=lambda _: "3", limits=limits)

    filled(home, (concurrency, code), fill)
    return load_run(home, RUN)


def played(home: Home, view: RunView, budget: Budget, model: Counting) -> Trial:
    with (
        open_recording(home, AGAIN, {}) as recording,
        Replayer(home, view, handler=model, budget=budget, prices=price_table(home)) as replayer,
    ):
        trial = replayer.trial(mode="live", recorder=recording.recorder, run_id=AGAIN)
        recording.close("ok")
        assert replayer.spent.live_calls == trial.live_calls and replayer.spent.usd == trial.cost_usd
    return trial


@pytest.mark.parametrize(("allowed", "concurrency"), crossed(CALLS))
def test_a_limit_of_calls_in_a_batch_is_used_up_and_no_more(
    home: Home, allowed: int, concurrency: int
) -> None:
    model = Counting()
    trial = played(home, view_of(home, concurrency), Budget(live_calls=allowed), model)
    assert trial.live_calls == model.asked == model.answered == min(allowed, 50)
    assert trial.cost_usd == Decimal("0.11") * trial.live_calls
    assert trial.outcome == ("unchanged" if allowed >= 50 else "undecided")


@pytest.mark.parametrize("concurrency", [4, 32])
@pytest.mark.parametrize("allowed", [0, 5, 20])
def test_calls_from_threads_that_were_sent_end_before_the_replay_stops(
    home: Home, allowed: int, concurrency: int
) -> None:
    model = Counting(0.3)
    trial = played(home, view_of(home, concurrency, THREADS), Budget(live_calls=allowed), model)
    attempts = [span for span in load_run(home, AGAIN).spans if span.kind == "attempt"]
    assert trial.live_calls == model.asked == model.answered == len(attempts)
    assert trial.cost_usd == Decimal("0.11") * trial.live_calls
    assert trial.live_calls <= allowed and trial.outcome == ("unchanged" if allowed == 20 else "undecided")


@pytest.mark.parametrize(("dollars", "concurrency"), crossed(DOLLARS))
def test_calls_that_a_limit_of_dollars_refused_are_no_calls(
    home: Home, dollars: str, concurrency: int
) -> None:
    model = Counting()
    budget = Budget(live_calls=100, usd=Decimal(dollars))
    trial = played(home, view_of(home, concurrency), budget, model)
    view = load_run(home, AGAIN)
    attempts = [span for span in view.spans if span.kind == "attempt"]
    assert trial.live_calls == model.asked == model.answered == len(attempts)
    assert trial.cost_usd == Decimal("0.11") * trial.live_calls == view.summary.cost_usd
    assert trial.outcome == ("unchanged" if model.asked == 50 else "undecided")
    if dollars in ("0.000001", "100"):
        assert model.asked == (50 if dollars == "100" else 0)


@pytest.mark.parametrize("budget", [Budget(live_calls=7), Budget(live_calls=50, usd=Decimal("0.001"))])
def test_a_server_gets_as_many_requests_as_the_replay_says(
    home: Home, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_of(home)
    with Loopback(Server(sub=lambda _: "3")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        with Replayer(home, view, budget=budget, prices=price_table(home)) as replayer:
            trial = replayer.trial(mode="live")
            assert replayer.spent.live_calls == trial.live_calls == len(server.requests)
        assert len(server.requests) == (7 if budget.usd is None else 0)
