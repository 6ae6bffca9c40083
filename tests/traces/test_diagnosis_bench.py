"""The measurement behind `make bench-diagnosis`, on smaller trees and with a few trials of each condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bench import diagnosis as bench
from tests.support.tree_models import Kind
from tests.support.trees import CONDITIONS, Condition, plan, record_pair
from tests.traces.records import home_in
from traces.diff import diff
from traces.telling import Answers, right_answers
from traces.view import SpoolRun

SIZE = {"format": 20, "paraphrase": 20, "layers": 45, "children": 48}


def _all_exact(jobs: list[bench.Job]) -> None:
    results = list(bench.measured(jobs, processes=1))
    assert bench.fell_short(results) == [], "\n".join(bench.report(results))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_planted_culprits_are_found_exactly(condition: Condition) -> None:
    _all_exact([bench.Job(condition, 2, 501, size=SIZE[condition])])


@pytest.mark.full
@pytest.mark.parametrize("condition", CONDITIONS)
def test_more_planted_culprits_are_found_exactly(condition: Condition) -> None:
    _all_exact([bench.Job(condition, 1 + n % 3, 500 + n, size=SIZE[condition]) for n in range(8)])


@pytest.mark.full
@pytest.mark.parametrize("condition", CONDITIONS)
def test_planted_culprits_of_large_trees_are_found_exactly(condition: Condition) -> None:
    _all_exact(bench.jobs_of([condition], [1, 2, 3], trials=4, seed=900))


_LISTS = [bench.Job("format", 2, 40), bench.Job("children", 2, 35)]


@pytest.mark.full
@pytest.mark.parametrize("job", _LISTS, ids=lambda job: job.condition)
def test_a_culprit_whose_item_the_wrong_answer_does_not_show_is_found_too(job: bench.Job) -> None:
    _all_exact([job])


@pytest.mark.full
def test_output_that_only_seemed_to_tell_the_right_answer_is_tried_again_in_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_values(*given: Any) -> tuple[Answers, ...]:
        return right_answers(*given)[2:3]  # what the answers differ in: too little here

    monkeypatch.setattr("traces.diagnose.right_answers", by_values)
    _all_exact(_LISTS[:1])


@pytest.mark.parametrize("kind", ["empty", "truncated", "refused", "format", "present"])
def test_faults_of_every_kind_are_the_frontier_of_trees_with_noise(kind: Kind, tmp_path: Path) -> None:
    home = home_in(tmp_path)
    pair = record_pair(home, plan(7, "format", 2, kind=kind, size=20, cell=False))
    bad, good = (SpoolRun(home, run_id).poll() for run_id in (pair.bad, pair.good))
    assert {row.a for row in diff(bad, good).frontier} == pair.culprits


def test_a_shortfall_is_said_and_fails_the_measurement() -> None:
    result = bench.Result(
        bench.Job("format", 1, 0), True, False, False, False, "undecided", "undecided", (), 0, 1, 0, 1, 0.01,
        300, 0, False, 1.0, "Nothing could be decided.",
    )  # fmt: skip
    assert bench.fell_short([result]) == [
        "format: 0.0% exact, target 95%", "format: a budget was not kept",
    ]  # fmt: skip
    assert bench.so_far([result], 1_200) == "1 of 1,200 trials, 0 exact"
    assert any(line.startswith("not exact: ") for line in bench.report([result]))
