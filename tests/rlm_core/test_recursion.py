"""Child runs of child runs: nobody waits for ever, one budget holds for all, no code raises its depth."""

from __future__ import annotations

import asyncio
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_core import RLM, Answer, Completion, FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from rlm_core.lm_handler import Usage
from rlm_core.options import DepthModels, Options
from rlm_core.price_rows import Override
from rlm_core.pricing import PriceTable
from tests.support.no_workers import Cell, Repl, without_workers
from tests.support.scripted import FAST, cell, play
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording
from traces.view import RunView

CENT = Decimal("0.01")
USAGE = Usage(input=3, output=2)  # twice the output that a limit of one token lets expect
#: A call of one output token costs a cent, whatever its input was.
CENTS = PriceTable(
    [Override(model, {"input": Decimal(0), "cached_read": Decimal(0), "cache_write": Decimal(0),
                      "output": Decimal(10_000)}, "2026-01-01") for model in ("test/root", "test/sub")]
)  # fmt: skip
RUN = "20260101T000000-0000000a"


async def _model(request: Request) -> Completion:
    await asyncio.sleep(0)
    if request.role == "sub":
        return Completion("yes", usage=USAGE)
    level = re.search(r"# Question\nlevel (\d+)", request.messages[1].content)
    return Completion(cell(f"work_{level[1] if level else 0}"), usage=USAGE)


def tree(monkeypatch: pytest.MonkeyPatch, depth: int, width: int, limits: Limits, **options: Any) -> Answer:
    """A run whose every run, down to a depth, asks `width` child runs, and one sub-call before."""

    def work(level: int) -> Cell:
        below = [f"level {level + 1}, part {number}" for number in range(width if level < depth else 0)]

        async def run(repl: Repl) -> str:
            replies = await repl.llm_batch("how many?")
            replies += await repl.rlm_batch(*below) if below else []
            return f"{sum('ok' in reply for reply in replies)} answered"

        return run

    without_workers(monkeypatch, {f"work_{level}": work(level) for level in range(depth + 1)})
    handler = FunctionLMHandler(_model)
    with RLM("test/root", "test/sub", handler=handler, limits=limits, retries=FAST, **options) as rlm:
        return asyncio.run(asyncio.wait_for(rlm.aask("what?", "the corpus"), 60))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    depth=st.integers(0, 3),
    deeper=st.integers(0, 1),
    width=st.integers(1, 4),
    concurrency=st.integers(1, 3),
    workers=st.integers(1, 3),
    calls=st.one_of(st.none(), st.integers(1, 60)),
)
def test_a_tree_of_any_width_and_limit_comes_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
    depth: int,
    deeper: int,
    width: int,
    concurrency: int,
    workers: int,
    calls: int | None,
) -> None:
    """`deeper`: code asks for one level more than there may be."""
    limits = Limits(max_depth=depth, concurrency=concurrency, max_workers=workers, max_calls=calls)
    answer = tree(monkeypatch, depth + deeper, width, limits)
    assert answer.stop_reason == "final"
    if calls is None and depth:
        assert answer.text == f"{1 + width} answered"


def test_depth_three_width_eight_concurrency_two_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(max_depth=3, concurrency=2, max_workers=2)
    answer = tree(monkeypatch, 3, 8, limits)
    assert (answer.text, answer.stop_reason) == ("9 answered", "final")
    runs = 1 + 8 + 64 + 512
    assert answer.tokens["input"] == 3 * 2 * runs, "each run has a root call and a sub-call"


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("waits", [True, False])
def test_a_tree_that_is_cancelled_leaves_no_span_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, times: int, waits: bool
) -> None:
    """`times` 2: once more while it gives up. `waits` False: its cells have ended, their calls have not."""

    sent = asyncio.Event()

    async def work(repl: Repl) -> None:
        call = asyncio.ensure_future(repl.rlm_batch("level 1"))
        await (call if waits else sent.wait())

    async def deep(repl: Repl) -> None:
        call = asyncio.ensure_future(repl.llm_batch("a", "b", "c"))
        await (call if waits else sent.wait())

    async def model(request: Request) -> Completion:
        if request.role == "root":
            return Completion(cell("deep" if "level 1" in request.messages[1].content else "work"))
        sent.set()
        await asyncio.sleep(0.05)
        rlm.cancel()
        try:
            await asyncio.sleep(30)
        finally:
            if times == 2:
                rlm.cancel()
                await asyncio.sleep(0.01)
        return Completion("too late")

    without_workers(monkeypatch, {"work": work, "deep": deep})
    home = Home(tmp_path / "home")
    with (
        open_recording(home, RUN, {}) as recording,
        RLM("test/root", "test/sub", handler=FunctionLMHandler(model), retries=FAST) as rlm,
    ):
        answer = rlm.ask("what?", "the corpus", recorder=recording.recorder, run_id=RUN)
        recording.close("cancelled")
    spans = load_run(home, RUN).spans
    assert answer.stop_reason == "cancelled" and sum(span.kind == "cell" for span in spans) == 2
    assert not [(span.kind, span.status) for span in spans if span.end_ns is None]


# -- width and depth


def test_child_runs_stand_in_line_and_are_no_runs_before_their_turn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits = Limits(max_depth=1, max_workers=2, concurrency=2)
    view = recorded(monkeypatch, tmp_path, 1, 24, limits)
    children = [span for span in view.spans if span.is_child_run]
    steps = sorted([(span.start_ns, 1) for span in children] + [(span.end_ns, -1) for span in children])
    at_once = most = 0
    for _, step in steps:
        at_once += step
        most = max(most, at_once)
    ledger = json.loads(view.spans[0].attributes[sc.LEDGER])
    assert len(children) == 24 and most <= 2 * limits.max_workers
    assert ledger["width"]["most_workers"] <= 1 + limits.max_workers


def test_code_cannot_raise_the_depth_of_its_run_through_the_environment() -> None:
    answer, _ = play(
        "import os\n"
        "for name in ('RLM_MAX_DEPTH', 'RLMSCOPE_MAX_DEPTH', 'MAX_DEPTH', 'RLM_DEPTH'):\n"
        "    os.environ[name] = '9'\n"
        "reply = rlm_query('go deeper')\n"
        "FINAL(reply.kind)",
        limits=Limits(max_depth=0),
    )
    assert (answer.text, answer.sub_calls, answer.refused_sub_calls) == ("depth", 0, 1)


# -- one budget


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_budget_stops_a_tree_within_what_is_in_flight(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, concurrency: int
) -> None:
    limits = Limits(
        max_depth=3,
        max_workers=2,
        concurrency=concurrency,
        max_cost_usd=50 * CENT,
        max_tokens_sub=1,
        max_tokens_root=1,
    )
    view = recorded(monkeypatch, tmp_path, 3, 4, limits, prices=CENTS)
    ledger = json.loads(view.spans[0].attributes[sc.LEDGER])
    attempts = [span.cost_usd or Decimal(0) for span in view.spans if span.kind == "attempt"]
    spent = sum(attempts, Decimal(0))
    assert spent == Decimal(ledger["usd"]["spent"]) == view.summary.cost_usd
    # nothing but what was in flight when the last room was given away may exceed the budget
    assert 40 * CENT <= spent <= (50 + 2 * concurrency) * CENT
    assert view.summary.stop_reason in ("final", "budget")
    assert any(span.error_type == "budget" for span in view.spans)
    assert all(span.end_ns is not None for span in view.spans)


# -- models of each depth


def test_each_depth_has_its_models_on_record_and_is_paid_for_by_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deeper = {1: DepthModels(root="test/small"), 2: DepthModels(sub="test/tiny")}
    view = recorded(monkeypatch, tmp_path, 2, 2, Limits(max_depth=2), options=Options(models=deeper))
    asked = {(s.kind, s.depth, s.model) for s in view.spans if s.kind in ("root_call", "sub_call")}
    assert asked == {
        *(("root_call", 0, "test/root"), ("root_call", 1, "test/small"), ("root_call", 2, "test/small")),
        *(("sub_call", 0, "test/sub"), ("sub_call", 1, "test/sub"), ("sub_call", 2, "test/tiny")),
    }
    runs = {(s.depth, s.attributes[sc.ROOT_MODEL], s.attributes[sc.SUB_MODEL])
            for s in view.spans if s.kind == "run"}  # fmt: skip
    assert runs == {
        (0, "test/root", "test/sub"),
        (1, "test/small", "test/sub"),
        (2, "test/small", "test/tiny"),
    }


def recorded(
    monkeypatch: pytest.MonkeyPatch, folder: Path, depth: int, width: int, limits: Limits, **options: Any
) -> RunView:
    """The record of a `tree`."""
    home = Home(folder / "home")
    with open_recording(home, RUN, {}) as recording:
        tree(monkeypatch, depth, width, limits, recorder_factory=lambda: recording.recorder, **options)
        recording.close("ok")
    return load_run(home, RUN)
