"""What the command line says of runs that were read from the records of other engines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT
from tests.support.foreign_runs import (
    NO_ROOT,
    UNREADABLE,
    WRONG,
    no_times,
    silent,
    some_times,
    write_foreign,
)
from traces.home import Home
from traces.importers.foreign import NO_TIMES
from traces.reading import load_run

Call = Callable[..., Any]
SAMPLES = ROOT / "tests" / "fixtures" / "logs" / "samples"


@pytest.fixture
def run(home: Home) -> str:
    """A run of which some numbers are told."""
    return write_foreign(home, some_times()).run_id


def test_show_says_where_a_run_comes_from_and_never_0_for_what_is_not_told(call: Call, run: str) -> None:
    told = call("show", run).out
    assert "imported: rlms, made by rlms 0.1.3, read from log.jsonl" in told
    assert f"not in the record: {NO_ROOT}" in told and f"unreadable in the record: {UNREADABLE}" in told
    assert "tokens at least 20 in, 6 out" in told and "time unknown" in told
    assert "Tokens of 4 of 6 calls are not in the record: sums of them are a lower bound." in told
    assert "Tokens or cost of 2 of 6 calls are derived, not reported." in told
    assert "0 in, 0 out" not in told and "0 ms" not in told
    (root,) = (line for line in told.splitlines() if "“done”" in line)
    assert "tokens unknown · cost unknown · time unknown" in root
    (cell,) = (line for line in told.splitlines() if "cell 0" in line)
    assert " · 2.0 s · " in cell


def test_a_record_without_times_says_so_once_and_not_on_every_line(call: Call, home: Home) -> None:
    write_foreign(home, no_times())
    told = call("show", "last").out
    assert told.count(NO_TIMES) == 1
    assert told.count("time unknown") == 1  # of the run, in its head
    assert "note: Tokens of no call are in the record: sums of them are unknown." in told
    assert "lower bound" not in told


def test_show_has_the_facts_of_the_import_as_json(call: Call, run: str) -> None:
    document = call("show", run, "--json").json
    assert document["run"]["imported_from"] == "rlms"
    assert document["run"]["import"] == {
        "format": "rlms",
        "engine": "rlms 0.1.3",
        "file": "log.jsonl",
        "missing": [NO_ROOT],
        "problems": [UNREADABLE],
    }
    assert (document["run"]["seconds"], document["run"]["untold_calls"]) == (None, 4)
    cells = [span for span in document["spans"] if span["kind"] == "cell"]
    assert cells[0]["trust"] == {"seconds": "reported", "start": "reported"}


def test_a_run_of_ours_was_not_imported(call: Call, written: Call) -> None:
    written("20270115T080000-00000001")
    document = call("show", "last", "--json").json
    assert (document["run"]["imported_from"], document["run"]["import"]) == (None, None)
    assert {span["trust"] for span in document["spans"]} == {None}
    assert "imported" not in call("show", "last").out


def test_every_number_of_a_span_has_its_mark(call: Call, home: Home, run: str) -> None:
    first, _, third, _ = (span for span in load_run(home, run).spans if span.kind == "sub_call")
    told = call("span", run, first.span_id).out
    assert "tokens 10 in, 3 out (reported) · cost $0.000008 (derived)" in told
    assert "time unknown (not in the record)" in told and "start unknown (not in the record)" in told
    assert "cost, derived: worked out from its tokens and the price of its model" in told
    told = call("span", run, third.span_id).out
    assert "tokens unknown (what the record says is known to be wrong)" in told
    assert f"the record says 500 in, 20 out; {WRONG}" in told
    document = call("span", run, third.span_id, "--json").json
    assert document["trust"]["tokens"] == "known_wrong" and document["tokens"] is None
    assert document["trust_why"] == {"tokens": WRONG}


def test_the_span_of_the_run_says_what_it_was_read_from(call: Call, home: Home, run: str) -> None:
    top = load_run(home, run).spans[0]
    document = call("span", run, top.span_id, "--json").json
    assert document["imported_from"] == "rlms" and document["import"]["missing"] == [NO_ROOT]
    assert "start 2026-05-28 20:26:40 UTC (derived)" in call("span", run, top.span_id).out


def test_cost_is_a_lower_bound_and_counts_what_is_not_told(call: Call, run: str) -> None:
    report = call("cost", run, "--json").json
    assert (report["total_usd"], report["known_usd"]) == (None, "0.000017")
    assert (report["untold_calls"], report["derived_calls"], report["calls"]) == (4, 2, 6)
    rows = {row["role"]: row for row in report["rows"]}
    assert (rows["root"]["untold_calls"], rows["root"]["derived_calls"]) == (2, 0)
    assert (rows["sub"]["untold_calls"], rows["sub"]["derived_calls"]) == (2, 2)
    told = call("cost", run).out
    (root,) = (line for line in told.splitlines() if line.startswith("root"))
    assert root.split() == ["root", "big", "unknown", "unknown", "2", "-"]
    assert "Tokens of 4 of 6 calls are not in the record" in told


def test_other_models_are_priced_by_what_is_told_only(call: Call, run: str) -> None:
    report = call("cost", run, "--as", "sub=openai/gpt-5-mini", "--json").json
    assert (report["total_usd"], report["known_usd"]) == (None, "0.000017")
    assert report["untold_calls"] == 4


def test_the_day_of_a_run_without_a_start_is_not_known(call: Call, home: Home, run: str) -> None:
    write_foreign(home, no_times())
    days = [row["day"] for row in call("cost", "--by", "day", "--json").json["rows"]]
    assert sorted(map(str, days)) == ["2026-05-28", "None"]


def test_runs_names_the_format_and_json_has_null_for_what_is_not_told(
    call: Call, home: Home, run: str
) -> None:
    write_foreign(home, no_times())
    told = call("runs", env={"COLUMNS": "200"}).out
    assert "ok, incomplete, imported: rlms" in told and "ok, imported: dspy" in told
    listed = {one["imported_from"]: one for one in call("runs", "--json").json}
    assert (listed["dspy"]["seconds"], listed["dspy"]["started"]) == (None, "")
    assert listed["rlms"]["started"] == "2026-05-28T20:26:40+00:00"


def test_a_run_without_a_question_is_called_by_its_file_and_engine(call: Call, home: Home) -> None:
    write_foreign(home, silent(), "kept.json")
    name = "(kept.json of dspy.RLM: no question on record)"
    (row,) = call("runs", env={"COLUMNS": "200"}).out.splitlines()[1:]
    assert name in row and "  ?  " in row
    told = call("show", "last").out
    assert f"question: {name}" in told and "no sub-calls on record" in told
    (listed,) = call("runs", "--json").json
    assert (listed["question"], listed["imported_file"], listed["untold_sub_calls"]) == (
        None,
        "kept.json",
        True,
    )


def test_a_rebuilt_store_knows_the_same(call: Call, run: str) -> None:
    before = call("show", run, "--json").json
    call("ingest", "--rebuild")
    assert call("show", run, "--json").json == before


def test_what_needs_a_replay_is_refused_with_the_reason(call: Call, home: Home, run: str) -> None:
    write_foreign(home, no_times())
    reason = "This run was read from a record of rlms"
    assert reason in call("resume", run).err and reason in call("replay", run).out
    told = call("diagnose", run).out
    assert reason in told and "twin" not in told and "replay " not in told.replace(reason, "")
    assert f"rlmscope diff {run} " in told  # what is left: to look at both


def test_a_set_says_why_an_imported_run_was_not_checked(call: Call, run: str) -> None:
    call("mark", run, "--verdict", "right", "--tag", "known", "--expected", "6")
    (result,) = call("check", "known", "--json").json["results"]
    assert (result["passed"], result["why"]) == (None, "unplayable")
    assert "This run was read from a record of rlms" in result["words"]


def test_a_record_that_ends_early_says_nothing_of_a_process_and_no_time_that_it_does_not_hold(
    call: Call, home: Home
) -> None:
    half = no_times()
    half.closed = False
    run = write_foreign(home, half).run_id
    told = call("show", run, "--all").out
    assert f"run {run}: interrupted" in told and "process" not in told
    assert "trace incomplete: it ends before the run does" in told
    assert "serious: The record of the run ended before the run did." in told
    assert "0 ms" not in told
    assert call("runs", "--json").json[0]["seconds"] is None


def test_a_report_of_a_record_without_times_says_so(call: Call, home: Home, tmp_path: Path) -> None:
    run, out = write_foreign(home, no_times()).run_id, tmp_path / "report.md"
    call("diagnose", run, "--expected", "8", "--report", out)
    assert "a time that is not on record" in out.read_text("utf-8")


def listed_calls(call: Call) -> dict[str, str]:
    """The column of calls in the list of runs, by run."""
    rows = [re.split(r" {2,}", row) for row in call("runs").out.splitlines()]
    assert rows[0][-2:] == ["calls", "cost"]
    return {row[0]: row[-2] for row in rows[1:]}


@pytest.mark.parametrize("log", ["dspy_rlm_prediction_3.4.1.json", "recursive_flow_run_v0_4_2"])
def test_runs_of_an_engine_that_does_not_record_sub_calls_are_not_listed_with_0_of_them(
    call: Call, log: str
) -> None:
    (taken,) = call("import", str(SAMPLES / log), "--json").json
    assert "no sub-calls on record" in call("show", taken["run_id"]).out
    assert listed_calls(call) == {taken["run_id"]: "?"}
    (run,) = call("runs", "--json").json
    assert run["sub_calls"] == 0


def test_sub_calls_that_are_on_record_are_counted_in_the_list(call: Call, run: str, written: Call) -> None:
    ours = "20270115T080000-00000001"
    written(ours)
    assert listed_calls(call) == {run: "4", ours: f"{call('show', ours, '--json').json['run']['sub_calls']}"}
