"""What earlier runs say about the next one: only comparable ones, never a guess."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from tests.traces.records import home_in
from traces.estimate import Estimate, Plan, estimate
from traces.home import Home
from traces.ingest import ingest
from traces.recording import open_recording

PLAN = Plan("openai/big", "openai/small", "corpus", 1000, False)


class History:
    """Finished runs in a store."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._runs = 0

    def add(
        self, usd: str | None, *, calls: int = 1, corpus: str = "corpus", chars: int = 1000, **other: Any
    ) -> None:
        """One run with so many sub-calls of 100 tokens and 1 second, the first of which costs `usd`."""
        facts = {
            sc.ROOT_MODEL: "openai/big", sc.SUB_MODEL: "openai/small", sc.CORPUS_ID: corpus,
            sc.CORPUS_CHARS: chars, sc.DEMO: False, **other.pop("facts", {}),
        }  # fmt: skip
        self._runs += 1
        now = iter(n * 10**9 for n in range(1_800_000_000, 1_900_000_000))
        moments = [next(now)] * 2 + [next(now) for _ in range(2 * calls + 2)]
        clock = iter(moments).__next__
        run_id = f"20260101T000000-{self._runs:08x}"
        with open_recording(
            self.home, run_id, {k: v for k, v in facts.items() if v is not None}, clock=clock
        ) as made:
            run = made.recorder.start("run", sc.NAME_RUN, None, facts)
            for number in range(calls):
                call = made.recorder.start("sub_call", "chat", run, {})
                cost = usd if number == 0 else "0"
                status = "unknown" if cost is None else "priced"
                call.end(
                    "ok", {sc.USAGE_INPUT: 90, sc.USAGE_OUTPUT: 10, sc.COST_USD: cost, sc.COST_STATUS: status}
                )
            run.end("ok", {sc.STOP_REASON: other.pop("stopped", "final")})
            made.close(other.pop("status", "ok"))

    def taken_in(self) -> Home:
        """The home, with everything in its store."""
        ingest(self.home)
        return self.home


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(home_in(tmp_path))


def made(history: History, plan: Plan = PLAN) -> Estimate:
    found = estimate(history.taken_in(), plan)
    assert found is not None
    return found


def test_percentiles_of_the_runs_that_are_comparable(history: History) -> None:
    for number in range(1, 21):
        history.add(f"0.{number:02}", calls=number)
    found = made(history)
    assert (found.runs, found.basis) == (20, "same_corpus")
    assert found.usd == (Decimal("0.10"), Decimal("0.19")), "the tail, not the mean"
    assert (found.tokens, found.sub_calls) == ((1000, 1900), (10, 19))
    assert found.seconds == (21.0, 39.0)
    assert found.to_json()["cost_usd"] == {"p50": "0.1", "p95": "0.19"}


def test_one_run_is_a_history(history: History) -> None:
    history.add("0.5")
    found = made(history)
    assert (found.runs, found.usd) == (1, (Decimal("0.5"), Decimal("0.5")))


def test_without_history_there_is_nothing(history: History) -> None:
    assert estimate(history.home, PLAN) is None, "no store yet"
    history.add("0.1", corpus="other", chars=5000)
    history.add("0.1", status="error")
    history.add("0.1", stopped="budget")
    history.add("0.1", facts={sc.SUB_MODEL: "openai/other"})
    history.add("0.1", facts={sc.ROOT_MODEL: "openai/other"})
    assert estimate(history.taken_in(), PLAN) is None


def test_runs_over_the_same_corpus_are_preferred_to_those_of_similar_size(history: History) -> None:
    history.add("0.7", corpus="half", chars=500)
    history.add("0.8", corpus="double", chars=2000)
    history.add("0.9", corpus="smaller", chars=499)
    history.add("0.9", corpus="larger", chars=2001)
    history.add("0.9", corpus="unknown size", facts={sc.CORPUS_CHARS: None})
    found = made(history)
    assert (found.runs, found.basis, found.usd) == (2, "similar_size", (Decimal("0.7"), Decimal("0.8")))
    history.add("0.1")
    found = made(history)
    assert (found.runs, found.basis, found.usd) == (1, "same_corpus", (Decimal("0.1"), Decimal("0.1")))


def test_demo_runs_are_not_mixed_with_real_ones(history: History) -> None:
    history.add("0", facts={sc.DEMO: True})
    assert estimate(history.taken_in(), PLAN) is None
    assert made(history, Plan("openai/big", "openai/small", "corpus", 1000, True)).runs == 1


def test_an_unknown_cost_is_unknown_and_never_left_out(history: History) -> None:
    history.add("0.1")
    history.add(None)
    found = made(history)
    assert (found.runs, found.usd, found.tokens) == (2, None, (100, 100))
    assert found.to_json()["cost_usd"] is None


def test_a_damaged_store_is_said(history: History) -> None:
    history.add("0.1")
    history.taken_in().store.write_bytes(b"no database" * 1000)
    with pytest.raises(RecordError):
        estimate(history.home, PLAN)


def test_a_store_in_use_is_said(history: History) -> None:
    history.add("0.1")
    with duckdb.connect(str(history.taken_in().store)), pytest.raises(RecordError, match="in use"):
        estimate(history.home, PLAN)


def test_runs_of_other_engines_are_no_past_and_those_of_another_home_are(history: History) -> None:
    for format_ in ("rlms", sc.IMPORT_INSTRUMENT, "otlp"):
        history.add("5", facts={sc.IMPORT_FORMAT: format_})
    home = history.taken_in()
    assert estimate(home, PLAN) is None
    history.add("2", facts={sc.IMPORT_FORMAT: sc.IMPORT_OWN})
    found = estimate(history.taken_in(), PLAN)
    assert found is not None and (found.runs, found.usd) == (1, (Decimal(2), Decimal(2)))
