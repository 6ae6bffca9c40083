"""delete, prune and backup on the command line: what they refuse, ask and say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.traces.records import RUN, header, record_run, recording, write_spool
from traces.home import Home
from traces.reading import list_runs
from ui.web.samples import install_examples

Call = Callable[..., Any]


@pytest.fixture
def example(home: Home) -> str:
    """A run that says it came with the program."""
    write_spool(home, [header("shipped", facts={"rlm.example": True})], "shipped")
    return "shipped"


def test_delete_takes_prefixes_and_last_and_says_what_went(home: Home, call: Call) -> None:
    record_run(home)
    size = home.spool_file(RUN).stat().st_size
    done = call("delete", RUN[:8], "last", "--yes", "--json")
    assert done.json == {"deleted": [RUN], "bytes": size, "notices": []}
    assert list_runs(home) == [] and not home.spool_file(RUN).exists()


def test_an_example_is_deleted_like_any_run_and_stays_away(home: Home, call: Call) -> None:
    gone, *left = install_examples(home)
    assert call("delete", gone, "--yes", "--json").json["deleted"] == [gone]
    assert install_examples(home) == ()
    assert sorted(run.run_id for run in list_runs(home)) == sorted(left)


def test_delete_refuses_a_running_run(home: Home, call: Call) -> None:
    with recording(home):
        done = call("delete", RUN, "--yes")
        assert done.code == 2 and "still going on" in done.error


@pytest.mark.parametrize("words", [["delete", RUN], ["prune", "--older-than", "1d"]])
def test_nothing_goes_where_nobody_can_be_asked(home: Home, call: Call, words: list[str]) -> None:
    record_run(home)
    for more in ([], ["--json"]):
        done = call(*words, *more)
        assert done.code == 2 and "say --yes" in done.error and not done.out
    assert len(list_runs(home)) == 1


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1.5d", "30 d", "1y", "9999999d"])
def test_prune_refuses_what_is_no_age(call: Call, age: str) -> None:
    done = call("prune", "--older-than", age)
    assert done.code == 2 and "no age" in done.error


def test_prune_says_why_runs_stay(home: Home, call: Call, example: str) -> None:
    record_run(home)
    done = call("prune", "--older-than", "0h", "--yes")
    assert done.code == 0 and "1 old run:" in done.out and "How many?" in done.out
    assert "1 old run kept: an example that came with the program" in done.out
    assert [run.run_id for run in list_runs(home)] == [example]


def test_keep_verdicts_alone_is_a_mistake(call: Call) -> None:
    done = call("prune", "--keep-verdicts")
    assert done.code == 2 and "--older-than" in done.error


def test_pruning_an_empty_home_is_no_failure(call: Call) -> None:
    assert call("prune", "--older-than", "1d").code == 0
    assert call("prune", "--json").json["bytes"] == 0


def test_backup_refuses_what_is_there(home: Home, call: Call, tmp_path: Path) -> None:
    record_run(home)
    target = tmp_path / "copy"
    assert call("backup", str(target), "--json").json["runs"] == 1
    done = call("backup", str(target))
    assert done.code == 2 and "never overwrites" in done.error
