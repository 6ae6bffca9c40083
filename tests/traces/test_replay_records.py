"""Playing records again that hold what no engine writes, and runs that lend their replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_core import Request
from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from tests.support.dead_runs import died_at
from tests.support.replays import live, recorded, span_of
from traces.diff import diff
from traces.home import Home
from traces.reading import load_run
from traces.replay import Replayer
from traces.rows import SpanRow
from traces.trial import Budget, Patch
from traces.view import RunView

GOOD = "20260101T000000-0000bbbb"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return Home.resolve(tmp_path / "home")


def changed(view: RunView, kind: str, **facts: Any) -> RunView:
    """The run with other facts on all spans of a kind; None takes one away."""

    def other(span: SpanRow) -> SpanRow:
        if span.kind != kind:
            return span
        known = {**span.attributes, **facts}
        return span._replace(attributes={key: value for key, value in known.items() if value is not None})

    return RunView(view.summary, tuple(other(span) for span in view.spans), False, view._source)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_seconds": 10**400},
        {"cell_seconds": -1},
        {"memory_bytes": 10**30},
        {"max_iterations": 0},
        {"concurrency": 0},
        {"max_depth": True},
        {"request_timeout": "-Infinity"},
    ],
)
def test_limits_that_no_run_can_have_had_are_said_in_one_sentence(home: Home, limits: dict[str, Any]) -> None:
    view = recorded(home, "FINAL(llm_query('a'))", sub=lambda _: "3")
    said = json.loads(str(view.spans[0].attributes[sc.LIMITS]))
    with pytest.raises(RecordError, match=f"the limit {next(iter(limits))} was .* not replayable"):
        Replayer(home, changed(view, "run", **{sc.LIMITS: json.dumps(said | limits)}))


def test_a_worker_that_cannot_start_is_the_reason_that_is_told(home: Home) -> None:
    view = recorded(home, "FINAL(llm_query('a'))", sub=lambda _: "3")
    said = json.loads(str(view.spans[0].attributes[sc.LIMITS])) | {"memory_bytes": 0}
    with Replayer(home, changed(view, "run", **{sc.LIMITS: json.dumps(said)})) as replayer:
        check = replayer.check()
    assert check.status == "not_replayable" and "no worker process could be started" in check.words


def test_a_record_that_ends_in_a_cell_says_so_and_names_no_cause(home: Home, tmp_path: Path) -> None:
    view = recorded(home, "import time\ntime.sleep(0)\nprint(llm_query('a'))", "FINAL(1)", sub=lambda _: "3")
    kinds = [json.loads(line) for line in home.spool_file(view.run_id).read_bytes().splitlines()]
    in_cell = next(n for n, one in enumerate(kinds) if '"sub_call"' in json.dumps(one))
    dead = died_at(home, view.run_id, in_cell + 1, tmp_path / "dead")
    with Replayer(dead, load_run(dead, view.run_id)) as replayer:
        check = replayer.check()
    assert check.words == "Not replayable: the recorded run ended in the middle of cell 0."


def test_a_child_run_that_claims_the_path_of_its_caller_is_not_played_inside_itself(home: Home) -> None:
    view = recorded(
        home,
        "FINAL(rlm_query('a child', context=['text']))",
        sub=lambda _: "3",
        children=["FINAL(llm_query('a'))"],
    )
    said = json.loads(str(view.spans[0].attributes[sc.LIMITS])) | {"max_depth": 1_000}
    view = changed(view, "run", **{sc.RUN_PATH: "0", sc.LIMITS: json.dumps(said)})
    with Replayer(home, view) as replayer:
        trial = replayer.trial([Patch(span_of(view, "cell"), "FINAL('4')")])
    assert (trial.outcome, trial.answer) == ("moved", "4")


def test_a_run_that_only_lends_its_replies_may_lack_everything_else(home: Home) -> None:
    cell = "FINAL(llm_query('twice ' + llm_query('a')))"
    bad = recorded(home, cell, sub=lambda request: "3" if request.prompt == "a" else "six")
    good = recorded(home, cell, sub=lambda r: "4" if r.prompt == "a" else "eight", run_id=GOOD)
    good = changed(changed(good, "run", **{sc.SEEDS: None}), "cell", **{sc.CODE + ".sha256": None})
    with Replayer(home, bad, also=[good]) as replayer:
        trial = replayer.trial([Patch(span_of(bad, "sub_call"), "4")])
    assert (trial.outcome, trial.answer) == ("moved", "eight")


def test_equal_prompts_that_were_asked_at_once_keep_their_own_live_answers(home: Home) -> None:
    cell = "x = llm_query('a')\nFINAL(' '.join(llm_batch([f'more {x}'] * 3)))"
    view = recorded(home, cell, sub=lambda _: "3")
    said = iter("bcdefgh")

    def anew(_: Request) -> str:
        return next(said)

    with Replayer(home, view, handler=live(sub=anew), budget=Budget(live_calls=6)) as replayer:
        patches = [Patch(span_of(view, "sub_call"), "4")]
        first, second = (replayer.trial(patches, mode="recompute") for _ in range(2))
    assert first.answer == second.answer and sorted(first.answer or "") == sorted("b c d")
    assert (first.live_calls, second.live_calls) == (3, 0)


def test_child_runs_over_unlike_corpora_are_not_asked_the_same(home: Home) -> None:
    options = {"children": ["FINAL(llm_query('read', context))"], "sub": lambda request: request.prompt}
    cell = "FINAL(rlm_query('a child'))"
    one = recorded(home, cell, corpus={"a.txt": "old"}, **options)
    other = recorded(home, cell, corpus={"a.txt": "new"}, run_id=GOOD, **options)
    assert one.summary.answer != other.summary.answer
    assert not diff(one, other).frontier
