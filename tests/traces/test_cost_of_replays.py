"""What replays cost: calls that were answered out of a record or by a patch are no calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from rlm_core import Request
from rlm_core import semconv as sc
from rlm_core.lm_handler import Completion, Usage
from tests.support.replays import SUB, recorded, span_of
from traces import spend
from traces.calls import calls_of_replays, spans_of
from traces.home import Home
from traces.prices import price_table, set_price
from traces.reading import cost_report, load_run
from traces.recording import open_recording
from traces.replay import Replayer
from traces.trial import Budget, Mode, Patch, Trial
from traces.view import RunView

CODE = (
    "replies = llm_batch([f'item {n}' for n in range(20)])\n"
    "good = [r for r in replies if not isinstance(r, Exception)]\n"
    "line = llm_query('sum up ' + ' '.join(map(str, good)))"
)
RUN = "20260101T000000-0000aaaa"
STORED, LIVE = "20260101T000000-0000bbbb", "20260101T000000-0000cccc"


class Priced:
    """A model whose calls cost 0.11 dollars each."""

    asked = 0

    async def complete(self, request: Request) -> Completion:
        self.asked += 1
        return Completion("4", "stop", usage=Usage(100, 5))

    async def aclose(self) -> None:
        """Nothing to release."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.resolve(tmp_path / "home")
    set_price(made, SUB, {"input": Decimal(1000), "output": Decimal(2000)})
    return made


@pytest.fixture
def view(home: Home) -> RunView:
    return recorded(home, CODE, "FINAL_VAR('line')", sub=lambda _: "3", run_id=RUN)


@contextmanager
def replay(
    home: Home, view: RunView, run_id: str, mode: Mode, model: Priced, usd: Decimal | None = None
) -> Iterator[Trial]:
    """A replay that is still open inside of the context; its first sub-call is patched."""
    patches = [Patch(span_of(view, "sub_call"), "5")]
    with (
        open_recording(home, run_id, {sc.REPLAY_OF: view.run_id}) as recording,
        Replayer(
            home, view, handler=model, budget=Budget(live_calls=100, usd=usd), prices=price_table(home)
        ) as replayer,
    ):
        yield replayer.trial(patches, mode=mode, recorder=recording.recorder, run_id=run_id)
        recording.close("ok")


@pytest.mark.parametrize("mode", ["strict", "recompute", "live"])
def test_only_calls_that_a_model_answered_count_while_at_work_and_afterwards(
    home: Home, view: RunView, mode: Mode
) -> None:
    model = Priced()
    with replay(home, view, LIVE, mode, model) as trial:
        at_work = cost_report(home, [LIVE], ["role"])
    after = cost_report(home, [LIVE], ["role"])
    made = [span for span in load_run(home, LIVE).spans if span.kind in ("sub_call", "root_call")]
    assert at_work == after
    assert after["calls"] == trial.live_calls == model.asked
    assert after["served_calls"] == len(made) - model.asked > 0
    assert calls_of_replays(home, [LIVE]) == ({LIVE: model.asked} if model.asked else {})


def test_what_was_served_is_in_no_percentile(home: Home, view: RunView) -> None:
    for number in range(5):
        with replay(home, view, f"20260102T000000-0000000{number}", "recompute", Priced()):
            pass
    replays = [f"20260102T000000-0000000{number}" for number in range(5)]
    with spans_of(home, replays, None) as spans:
        totals, tails = spend.totals(spans), spend.tails(spans)
    assert totals.whole.calls == 5 and totals.served == 5 * 22
    assert {tail.role for tail in tails} == {None, "sub"}, "no root call was made"
    assert all((tail.calls, tail.p50, tail.p95) == (5, Decimal("0.11"), Decimal("0.11")) for tail in tails)
    (row,) = cost_report(home, replays, ["role"])["rows"]
    assert (row["calls"], row["p50_usd"], row["cost_usd"]) == (5, "0.11", "0.55")


def test_the_run_itself_counts_as_before_beside_its_replays(home: Home, view: RunView) -> None:
    before = cost_report(home, [RUN], ["role", "model"])
    with replay(home, view, STORED, "strict", Priced()):
        pass
    assert cost_report(home, [RUN], ["role", "model"]) == before
    assert before["served_calls"] == 0 and before["calls"] == 23
    both = cost_report(home, [], ["role", "model"])
    assert (both["calls"], both["rows"]) == (23, before["rows"]) and both["served_calls"] > 0


def test_calls_that_a_limit_refused_are_no_calls(home: Home, view: RunView) -> None:
    with replay(home, view, STORED, "live", Priced(), usd=Decimal("0.000001")) as trial:
        assert trial.outcome == "undecided" and trial.live_calls == 0
    report = cost_report(home, [STORED], ["role"])
    assert (report["calls"], report["total_usd"]) == (0, "0") and report["served_calls"] > 0


def test_a_failure_that_was_served_again_is_no_call(home: Home) -> None:
    def failing(request: Request) -> str:
        if "item 4" in request.prompt:
            raise ValueError("no")
        return "3"

    view = recorded(home, CODE, "FINAL_VAR('line')", sub=failing, run_id=RUN)
    assert cost_report(home, [RUN], ["role"])["calls"] == 23
    model = Priced()
    with replay(home, view, STORED, "recompute", model):
        pass
    assert cost_report(home, [STORED], ["role"])["calls"] == model.asked
