"""Lists, references and views of runs, running and stored."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError, RecordError
from tests.traces.records import (
    ROOT,
    RUN,
    START_NS,
    body,
    end,
    fill_run,
    fin,
    header,
    home_in,
    record_run,
    recording,
    start,
    write_spool,
)
from traces import view as view_module
from traces.ingest import ingest
from traces.reading import SpoolRun, list_runs, load_run, money_json, resolve_run, resolve_span


def test_a_run_in_one_line(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home, calls=3, cost="0.1")
    (run,) = list_runs(home)
    found = run.to_json()
    assert found.pop("engine_version")
    assert found == {
        "run_id": RUN,
        "question": "How many?",
        "status": "ok",
        "answer": "42",
        "stop_reason": "final",
        "forced": False,
        "root_model": "r",
        "sub_model": "s",
        "sub_calls": 3,
        "failed_sub_calls": 0,
        "iterations": 1,
        "cost_usd": "1.3",
        "cost_status": "priced",
        "known_usd": "1.3",
        "tokens": {"input": 121, "output": 19, "total": 140},
        "started": "2023-11-14T22:13:20+00:00",
        "started_ns": START_NS,
        "seconds": 1.4e-05,
        "sandbox": None,
        "corpus_id": None,
        "demo": False,
        "complete": True,
        "problems": 0,
        "spans": 7,
        "trace_id": f"{0xABC:032x}",
        "replay_of": None,
        "resumed_from": None,
        "strategy": None,
        "imported_from": None,
        "untold_calls": 0,
        "imported_file": None,
        "untold_sub_calls": False,
        "refused_sub_calls": 0,
    }
    json.dumps(found)


def test_replays_are_listed_when_they_are_asked_for(tmp_path: Path) -> None:
    """From the spool of an open one as from the store; the newest run is one that somebody asked for."""
    home = home_in(tmp_path)
    record_run(home)
    facts = {sc.REPLAY_OF: RUN}
    for number, run_id in ((1, "again"), (2, "once-more")):
        write_spool(home, [header(run_id, started_ns=START_NS + number, facts=facts), fin()], run_id)
    with recording(home, "going-on", facts) as open_one:
        fill_run(open_one)
        assert [run.run_id for run in list_runs(home)] == [RUN] == [resolve_run(home, "last")]
        found = {run.run_id: run.replay_of for run in list_runs(home, replays=True)}
        assert found == {RUN: None, "again": RUN, "once-more": RUN, "going-on": RUN}
    assert [run.run_id for run in list_runs(home, 1)] == [RUN]
    assert len(list_runs(home, 2, replays=True)) == 2
    assert load_run(home, "again").summary.replay_of == RUN == load_run(home, "going-on").summary.replay_of


def test_newest_first_running_ones_included(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for number, run_id in enumerate(("b", "a", "c")):
        write_spool(home, [header(run_id, started_ns=START_NS + number), fin()], run_id)
    with recording(home, "live") as made:
        fill_run(made)
        runs = list_runs(home)
        # `live` began in the same moment as `b`; then the later id counts as newer
        assert [run.run_id for run in runs] == ["c", "a", "live", "b"]
        assert [run.status for run in runs] == ["ok", "ok", "running", "ok"]
        assert [run.run_id for run in list_runs(home, 2)] == ["c", "a"]
        assert list_runs(home, 0) == []


def test_references_to_runs(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with pytest.raises(InputError, match="no runs yet"):
        resolve_run(home, "last")
    write_spool(home, [header("run-1a", started_ns=5), fin()], "run-1a")
    write_spool(home, [header("run-1b", started_ns=9), fin()], "run-1b")
    write_spool(home, [header("run-1", started_ns=7), fin()], "run-1")
    with recording(home, "live-1"):
        assert resolve_run(home, "run-1") == "run-1"
        assert resolve_run(home, "run-1b") == "run-1b"
        assert resolve_run(home, "li") == "live-1"
        assert resolve_run(home, "last") == "live-1"
    for ref, message in [
        ("run", "fits several runs: run-1, run-1a, run-1b"),
        ("", "fits several runs"),
        ("nothing", "no run whose id begins with 'nothing'"),
        ("%", "no run"),
        ("../x", "no run"),
        ("x" * 5000, "no run"),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            resolve_run(home, ref)
        assert len(str(caught.value)) < 300


def test_many_candidates_are_counted(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for number in range(12):
        write_spool(home, [header(f"run-{number:02}"), fin()], f"run-{number:02}")
    with pytest.raises(InputError, match="run-07 and 4 more"):
        resolve_run(home, "run")


def test_references_to_spans(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    view = load_run(home, RUN)
    assert resolve_span(view, view.spans[2].span_id) == view.spans[2]
    with pytest.raises(InputError, match="fits several spans"):
        resolve_span(view, "0000")
    with pytest.raises(InputError, match="no span"):
        resolve_span(view, "f")
    write_spool(home, [header("x"), start("abc"), start("abd"), fin()], "x")
    assert resolve_span(load_run(home, "x"), "abc").span_id == "abc"


def test_a_running_run_is_read_as_it_grows(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        live = SpoolRun(home, RUN)
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        run.text(sc.QUESTION, "Why?")
        call = made.recorder.start("sub_call", "chat s", run, {})
        call.event("notice", {"text": "waiting"})
        first = live.poll()
        assert (first.live, first.summary.status) == (True, "running")
        assert [span.status for span in first.spans] == ["running", "running"]
        assert first.events(call.span_id)[0]["attributes"] == {"text": "waiting"}
        assert first.payload(body("Why?")["sha256"]) == "Why?"
        assert first.payload("0" * 64) is None
        assert load_run(home, RUN).spans == first.spans
        call.end("ok", {sc.COST_STATUS: "free"})
        second = live.poll()
        assert [span.status for span in second.spans] == ["running", "ok"]
        assert second.summary.question is None  # the question stands on a span that has not ended
        run.end()
    last = live.poll()
    assert (last.live, last.summary.status, last.summary.question) == (False, "ok", "Why?")
    assert [span.status for span in first.spans] == ["running", "running"]  # a view does not change


def test_a_torn_last_line_of_a_running_run_is_no_problem(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        with made.spool_path.open("ab") as file:
            file.write(b'{"seq":1,"kind":"s","span')
        assert load_run(home, RUN).summary.problems == 0


def test_a_demo_run_costs_nothing_and_says_so(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    spans = [start("1", kind="run", a={sc.DEMO: True}), end("1")]
    write_spool(home, [header("none"), *spans, fin()], "none")
    calls = [record for i in "23" for record in (start(i, "1", a={sc.COST_STATUS: "demo"}), end(i))]
    write_spool(home, [header("some"), *spans, *calls, fin()], "some")
    for run in list_runs(home):
        assert (run.demo, money_json(run.cost_usd), run.cost_status) == (True, "0", "demo")


@pytest.mark.parametrize(
    ("costs", "usd", "known", "status"),
    [
        ([], "0", "0", "free"),
        (["0.1", "0.2"], "0.3", "0.3", "priced"),
        (["0.1", None], None, "0.1", "partial"),
        ([None, None], None, "0", "unknown"),
        (["0.000000000000000001", "999999999"], "999999999.000000000000000001", None, "priced"),
    ],
)
def test_an_unknown_cost_makes_the_sum_unknown_and_gives_a_lower_bound(
    tmp_path: Path, costs: list[str | None], usd: str | None, known: str | None, status: str
) -> None:
    home = home_in(tmp_path)
    calls = []
    for number, cost in enumerate(costs):
        a = {} if cost is None else {sc.COST_USD: cost, sc.COST_STATUS: "priced"}
        attempt = start(f"a{number}", str(number), "attempt", a={sc.COST_USD: "7", sc.USAGE_INPUT: 1000})
        calls += [start(str(number), a=a), attempt, end(f"a{number}"), end(str(number))]
    write_spool(home, [header(), *calls, fin()])
    (run,) = list_runs(home)
    assert (money_json(run.cost_usd), run.cost_status, run.tokens["total"]) == (usd, status, 0)
    assert money_json(run.known_usd) == (usd if known is None else known)


def test_only_calls_of_any_depth_count_and_only_iterations_of_the_top(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    usage: dict[str, Any] = {sc.USAGE_INPUT: 1, sc.COST_USD: "1", sc.COST_STATUS: "priced"}
    records = [
        start("r", kind="run", a=usage),
        start("i", "r", "iteration"),
        start("q", "i", "sub_call", a=usage),
        start("c", "i", "run", a={sc.DEPTH: 1}),
        start("ci", "c", "iteration"),
        start("cr", "ci", "root_call", a=usage),
        start("t", "cr", "tool", a=usage),
        end("q", status="error"),
    ]
    write_spool(home, [header(), *records, fin()])
    (run,) = list_runs(home)
    assert (run.cost_usd, run.tokens["total"], run.iterations) == (Decimal(2), 2, 1)
    assert (run.sub_calls, run.failed_sub_calls) == (1, 1)


def test_a_missing_payload_is_shown_as_its_preview(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    a = {sc.ANSWER + ".sha256": "0" * 64, sc.ANSWER + ".preview": "The ans"}
    write_spool(home, [header(), start("1", kind="run", a=a), fin()])
    (run,) = list_runs(home)
    assert (run.answer, run.question) == ("The ans", None)


def test_payloads_of_a_big_run_are_fetched_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    record_run(home)
    wanted = [body(text)["sha256"] for text in ("prompt 0", "response 1", "not there")]
    expected = {wanted[0]: "prompt 0", wanted[1]: "response 1"}
    assert load_run(home, RUN).payloads(wanted) == expected
    monkeypatch.setattr(view_module, "_SMALL_RUN_CHARS", 3)
    assert load_run(home, RUN).payloads(wanted) == expected
    assert load_run(home, RUN).payloads([]) == {}


def test_a_view_outlived_by_its_run_says_so(tmp_path: Path) -> None:
    from traces.upkeep import delete_run

    home = home_in(tmp_path)
    record_run(home)
    view = load_run(home, RUN)
    delete_run(home, RUN)
    with pytest.raises(RecordError, match="no longer in the store"):
        dict(view.spans[0].attributes)
    with recording(home, "gone") as made:
        live = SpoolRun(home, "gone")
        made.spool_path.unlink()
        with pytest.raises(RecordError, match="cannot be read"):
            live.poll()


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for run_id in ("nothing", "../x", ""):
        with pytest.raises(InputError, match="no run"):
            load_run(home, run_id)
    assert list_runs(home) == []
    assert not home.store.exists()


def test_the_read_interface_loads_duckdb_only_when_asked(tmp_path: Path) -> None:
    code = (
        "import sys, traces, traces.reading, traces.home\n"
        "print([n for n in ('duckdb', 'opentelemetry.sdk', 'streamlit') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_home_without_write_access_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a mounted archive; the refusal is made by hand, since root may write anywhere."""
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    record_run(home, "second")
    import traces.locks

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Read-only file system")

    monkeypatch.setattr(traces.locks.FileLock, "try_acquire", refuse)
    said: list[str] = []
    assert sorted(run.run_id for run in list_runs(home, warn=said.append)) == [RUN, "second"]
    assert len(said) == 1 and "cannot be written" in said[0]
