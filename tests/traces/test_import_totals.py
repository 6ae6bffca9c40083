"""Calls that are known to lack in a record: what is only in a total is said, and sums are the least."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.outlines import LOGS, SAMPLES, taken
from traces.cost import cost_report
from traces.home import Home
from traces.importers.foreign import NO_PREDICTIONS
from traces.importers.importing import Imported
from traces.ingest import ingest
from traces.reading import build_tree, mark_whole
from traces.subtotals import below
from traces.view import RunView

PREDICT = SAMPLES / "predict_rlm_0.13.1_run_trace.json"  # 900+40 and $0.002, one call of 60+6 and $0.00003
DROSTE = LOGS / "droste" / "run.jsonl"
Trace = dict[str, Any]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


def changed(home: Home, tmp_path: Path, change: Callable[[Trace], object]) -> tuple[Imported, RunView]:
    """The sample of predict-rlm after a change."""
    change(trace := json.loads(PREDICT.read_text()))
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    ((done, view),) = taken(home, tmp_path / "trace.json")
    return done, view


def usage(sent: int, made: int, cost: float) -> dict[str, float]:
    """Usage as predict-rlm writes it."""
    return {"input_tokens": sent, "output_tokens": made, "cost": cost, "cache_hits": 0}


def more_of_the_root(trace: Trace) -> None:
    """A total of root calls above its one step."""
    trace["usage"]["main"] = usage(1000, 90, 0.01)


def no_calls(trace: Trace) -> None:
    """A total of sub-calls, and none of them."""
    trace["usage"]["sub"] = usage(5000, 600, 1.5)
    trace["steps"][0]["predict_calls"] = []


def a_group_without_calls(trace: Trace) -> None:
    """A group of calls that only says what they took together."""
    trace["steps"][0]["predict_calls"][0] |= {"calls": [], "total_usage": usage(5000, 600, 1.5)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            more_of_the_root,
            [
                "Tokens of root calls that are only in their total: 100 in, 50 out.",
                "Dollars of root calls that are only in their total: 0.008.",
            ],
        ),
        *(
            (
                change,
                [
                    "Tokens of sub-calls that are only in their total: 5,000 in, 600 out.",
                    "Dollars of sub-calls that are only in their total: 1.5.",
                    "The code calls predict, and the engine recorded none of these calls.",
                ],
            )
            for change in (no_calls, a_group_without_calls)
        ),
    ],
)
def test_what_is_only_in_a_total_makes_sums_the_least(
    home: Home, tmp_path: Path, change: Callable[[Trace], object], said: list[str]
) -> None:
    done, view = changed(home, tmp_path, change)
    run = view.summary
    assert set(said) <= set(done.missing)
    assert (run.untold_calls, run.cost_usd, run.cost_status) == (1, None, "partial")
    assert run.known_usd > 0 and run.complete


def test_steps_that_lack_are_a_problem(home: Home, tmp_path: Path) -> None:
    done, view = changed(home, tmp_path, lambda trace: trace.update(iterations=5))
    assert done.problems == ("The run had 5 steps; the record holds 1.",)
    assert (view.summary.untold_calls, view.summary.cost_usd) == (1, None)


def test_a_total_below_what_calls_took_is_a_problem(home: Home, tmp_path: Path) -> None:
    done, _ = changed(home, tmp_path, lambda trace: trace["usage"].update(main=usage(10, 40, 0.001)))
    assert done.problems == (
        "The total of root calls (10 in, 40 out) is less than what they took one by one (900 in, 40 out).",
        "The total of root calls ($0.001) is less than what they cost one by one ($0.002).",
    )


def test_totals_that_agree_leave_sums_exact(home: Home, tmp_path: Path) -> None:
    done, view = changed(home, tmp_path, lambda trace: None)
    assert (view.summary.cost_usd, view.summary.untold_calls) == (Decimal("0.00203"), 0)
    assert not done.problems and not any("total" in sentence for sentence in done.missing)


def test_the_call_for_an_answer_cost_what_the_steps_leave(home: Home, tmp_path: Path) -> None:
    def forced(trace: Trace) -> None:
        more_of_the_root(trace)
        trace["status"] = "max_iterations"

    _, view = changed(home, tmp_path, forced)
    assert (view.summary.cost_usd, view.summary.untold_calls) == (Decimal("0.01003"), 0)
    last = [span for span in view.spans if span.kind == "root_call"][-1]
    assert (last.trusted["tokens"], last.trusted["cost"]) == ("derived", "derived")


def test_the_call_for_an_answer_is_not_said_to_cost_what_steps_did_that_lack(
    home: Home, tmp_path: Path
) -> None:
    def forced(trace: Trace) -> None:
        more_of_the_root(trace)
        trace.update(status="max_iterations", iterations=5)

    done, view = changed(home, tmp_path, forced)
    last = [span for span in view.spans if span.kind == "root_call"][-1]
    assert (last.tokens, last.cost_usd) == (None, None) and view.summary.cost_usd is None
    assert "Tokens of root calls that are only in their total: 100 in, 50 out." in done.missing


@pytest.mark.parametrize("code", ["# predict nothing", "print('I predict rain')", "model.predict(3)"])
def test_code_that_only_speaks_of_calls_leaves_sums_exact(home: Home, tmp_path: Path, code: str) -> None:
    def silent(trace: Trace) -> None:
        trace["usage"]["sub"] = usage(0, 0, 0)
        trace["steps"][0].update(code=code, predict_calls=[])

    done, view = changed(home, tmp_path, silent)
    assert (view.summary.cost_usd, view.summary.untold_calls) == (Decimal("0.002"), 0)
    assert NO_PREDICTIONS not in done.missing and not view.summary.untold_sub_calls


def test_a_step_that_stands_twice_counts_once(home: Home, tmp_path: Path) -> None:
    done, view = changed(home, tmp_path, lambda trace: trace["steps"].append(trace["steps"][0]))
    assert view.summary.tokens["total"] == 1_006 and view.summary.iterations == 1
    (problem,) = done.problems
    assert problem.startswith("Steps that are in the record more than once, and taken in once: 1")


@pytest.mark.parametrize(
    "log", ["predict_rlm/trace.json", "predict_rlm/prediction.json", "recursive_flow/run", "fast_rlm/cut"]
)
def test_code_whose_calls_are_not_recorded_makes_sums_the_least(home: Home, tmp_path: Path, log: str) -> None:
    source = LOGS / log
    if log == "fast_rlm/cut":  # it ends in a step whose call of the model was over: its code had asked agents
        source = tmp_path / "cut.jsonl"
        source.write_text("\n".join((LOGS / "fast_rlm" / "run.jsonl").read_text().splitlines()[:8]))
    ((_, view),) = taken(home, source)
    assert view.summary.untold_calls == 1 and view.summary.cost_usd is None


def test_a_run_of_recursive_flow_that_made_no_other_calls_has_exact_tokens(home: Home) -> None:
    ((_, view),) = taken(home, SAMPLES / "recursive_flow_run_v0_4_2")
    assert view.summary.untold_calls == 0 and view.summary.tokens["total"] == 409


def test_the_files_of_an_agent_that_lack_make_sums_the_least(home: Home, tmp_path: Path) -> None:
    whole = SAMPLES / "recursive_flow_run_v0_4_2"
    shutil.copytree(
        whole, tmp_path / "run", ignore=lambda folder, _: ["agent.json"] * folder.endswith("root")
    )
    ((_, view),) = taken(home, tmp_path / "run")
    assert view.summary.untold_calls == 1


@pytest.mark.parametrize(
    ("side", "change", "said"),
    [
        (
            "root",
            {"input_tokens": 6_000},
            "Tokens of root calls that are only in their total: 545 in, 0 out.",
        ),
        ("subcall", {"successes": 5}, "Of 5 answered sub-calls 3 are in the record."),
        ("unattributed", {"total_tokens": 9}, "Tokens that the engine could give to no call: 9."),
    ],
)
def test_totals_of_droste_are_compared_with_its_calls(
    home: Home, tmp_path: Path, side: str, change: Trace, said: str
) -> None:
    events = [json.loads(line) for line in DROSTE.read_text().splitlines()]
    for event in events:
        if event["type"] == "usage":
            event[side] |= change
    (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, events)))
    ((done, view),) = taken(home, tmp_path / "run.jsonl")
    assert said in done.missing and view.summary.untold_calls == 1


def test_lower_bounds_are_lower_bounds_wherever_a_run_is_summed_up(home: Home, tmp_path: Path) -> None:
    _, view = changed(home, tmp_path, no_calls)
    mark_whole(tops := build_tree(view.spans), view.summary)
    assert (tops[0].totals.spend.untold, tops[0].totals.spend.usd) == (1, None)
    assert (told := below(view, view.spans[0])) and (told["untold_calls"], told["cost_usd"]) == (1, None)
    for _ in ("from its spool", "from the store"):
        report = cost_report(home, [], ["model"])
        assert (report["total_usd"], report["runs_with_gaps"]) == (None, 1)
        assert report["known_usd"] == "0.002"
        ingest(home)
