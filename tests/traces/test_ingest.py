"""Closed runs enter the store whole, once, whoever brings them in."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rlm_core.errors import RecordError
from tests.traces.records import (
    OTHER,
    ROOT,
    RUN,
    body,
    dump,
    end,
    fill_run,
    fin,
    header,
    home_in,
    lines,
    record_run,
    recording,
    start,
    write_spool,
)
from traces import ingest as ingesting
from traces import store
from traces.home import Home
from traces.ingest import ingest
from traces.migrations import MIGRATIONS
from traces.reading import SpoolRun, cost_report, list_runs, load_run, resolve_run

INGESTER = """
import sys
from traces.home import Home
from traces.ingest import ingest
sys.stdin.readline()
for _ in range(20):
    for run_id in ingest(Home.resolve(sys.argv[1]), patience=60).runs:
        print(run_id, flush=True)
"""
KILLED = """
import os, sys
from traces import ingest, store
from traces.home import Home
ingest._TOGETHER = 2
append = store.append_runs
def die(con, runs):
    append(con, runs)
    if runs[0][0].run_id == "run-2":  # all rows of the second two are written, and not yet kept
        os.kill(os.getpid(), 9)
store.append_runs = die
ingest.ingest(Home.resolve(sys.argv[1]))
"""
OWNER = """
import sys, duckdb
con = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
"""


class Owner:
    """Another program that has the store open for writing."""

    def __init__(self, home: Home) -> None:
        command = [sys.executable, "-c", OWNER, str(home.store)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"open\n"
        self.pid = self._process.pid

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(b"\n")


def test_a_stored_run_is_the_run_of_its_spool(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home, calls=3)
    spooled = SpoolRun(home, RUN).poll()
    assert ingest(home).runs == (RUN,)
    stored = load_run(home, RUN)
    assert stored.spans == spooled.spans
    assert stored.summary == spooled.summary
    assert [s.attributes for s in stored.spans] == [s.attributes for s in spooled.spans]
    assert stored.summary.status == "ok" and stored.summary.complete and not stored.live


def test_taking_in_twice_changes_nothing(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    assert ingest(home).runs == (RUN,)
    before = dump(home)
    assert ingest(home).runs == ()
    assert dump(home) == before
    assert len(before["run"]) == 1 and len(before["payload"]) == 6


def test_an_open_run_waits(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    made = recording(home)
    fill_run(made)
    assert ingest(home).runs == ()
    assert load_run(home, RUN).live
    made.close("ok")
    assert ingest(home).runs == (RUN,)


def test_a_final_record_closes_a_run_whose_process_goes_on(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    made = recording(home)
    with made.spool_path.open("ab") as file:
        file.write(lines([fin(seq=1, status="cancelled")]))
    assert ingest(home).runs == (RUN,)
    assert load_run(home, RUN).summary.status == "cancelled"
    made.close("ok")


def test_without_a_final_record_open_spans_are_lost(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_spool(home, [header(), start("1", kind="run"), start("2", "1"), start("3", "1"), end("3")])
    assert ingest(home).runs == (RUN,)
    view = load_run(home, RUN)
    assert view.summary.status == "interrupted"
    assert [(span.span_id, span.status) for span in view.spans] == [("1", "lost"), ("2", "lost"), ("3", "ok")]
    assert (view.summary.problems, view.summary.complete) == (0, False)


def test_a_run_that_went_on_after_all_is_taken_in_again(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_spool(home, [header(), start("1"), body("a")])
    ingest(home)
    with path.open("ab") as file:
        file.write(lines([{**end("1"), "seq": 3}, {**fin(), "seq": 4}]))
    assert ingest(home).runs == (RUN,)
    rows = dump(home)
    assert [len(rows[table]) for table in ("run", "span", "payload", "spool_file")] == [1, 1, 1, 1]
    assert load_run(home, RUN).summary.status == "ok"


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for name in ("notes.txt", "bad name.jsonl", ".jsonl", "x.lock", "y.jsonl.bak"):
        (home.spool / name).write_bytes(lines([header(), fin()]))
    assert ingest(home) == ingest(home)
    assert list_runs(home) == [] and len(list(home.spool.iterdir())) == 5


@pytest.mark.skipif(os.name == "nt", reason="another system: POSIX modes")
def test_the_store_is_private_and_in_the_older_format(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    assert stat.S_IMODE(home.store.stat().st_mode) == 0o600
    with store.reader(home, store.deadline_in()) as con:
        assert con is not None
        sql = "SELECT tags['storage_version'] FROM duckdb_databases() WHERE NOT internal"
        assert "v1.5.0" in str(store.rows_of(con, sql))
    assert sorted(path.name for path in home.root.iterdir() if "duckdb" in path.name) == ["traces.duckdb"]


def test_three_processes_at_once_take_each_run_in_exactly_once(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    run_ids = [record_run(home, f"run-{number:02}") for number in range(30)]
    command = [sys.executable, "-c", INGESTER, str(home.root)]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(3)
    ]
    taken = [run_id for racer in racers for run_id in racer.communicate("\n")[0].split()]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert sorted(taken) == run_ids
    rows = dump(home)
    assert sorted(row[0] for row in rows["run"]) == run_ids
    assert len(rows["span"]) == 30 * 6 and len(rows["payload"]) == 30 * 6


def test_threads_of_one_process_may_read_and_take_in_at_once(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for number in range(5):
                run_id = record_run(home, f"run-{name}-{number}")
                assert load_run(home, run_id).summary.status == "ok"
                ingest(home)
                list_runs(home)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(dump(home)["run"]) == 20


def test_a_store_in_use_leaves_runs_in_their_spools_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    record_run(home, OTHER)
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with Owner(home) as owner:
        report = ingest(home)
        assert report.runs == ()
        assert [f"in use by process {owner.pid}" in notice for notice in report.notices] == [True]
        said: list[str] = []
        runs = list_runs(home, warn=said.append)
        assert sorted(run.run_id for run in runs) == [RUN, OTHER]
        view = load_run(home, RUN, warn=said.append)
        assert view.payload(body("prompt 1")["sha256"]) == "prompt 1"
        assert resolve_run(home, RUN[:-1], warn=said.append) == RUN
        report_by_role = cost_report(home, [], ["role"], warn=said.append)
        assert report_by_role["total_usd"] == "4"
        assert len(said) == 4 and all("read from their spools" in line for line in said)
    assert ingest(home).runs == (OTHER,)
    assert cost_report(home, [], ["role"]) == report_by_role
    assert load_run(home, RUN).spans == view.spans
    assert list_runs(home) == runs


def test_what_could_not_be_said_otherwise_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    monkeypatch.setattr(store, "PATIENCE", 0.01)
    with Owner(home):
        list_runs(home)
    assert "read from their spools" in caplog.text


def test_a_waiting_ingester_comes_before_polling_readers(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    poll = (
        "import sys\nfrom traces.home import Home\nfrom traces import store\n"
        "home = Home.resolve(sys.argv[1])\n"
        "print('up', flush=True)\n"
        "while True:\n"
        "    with store.reader(home, store.deadline_in()) as con:\n"
        "        store.rows_of(con, 'SELECT count(*) FROM span')\n"
    )
    command = [sys.executable, "-c", poll, str(home.root)]
    pollers = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(3)]
    for poller in pollers:
        assert poller.stdout is not None
        poller.stdout.readline()
    try:
        for number in range(3):
            run_id = record_run(home, f"run-{number}")
            assert ingest(home, patience=60).runs == (run_id,)
    finally:
        for poller in pollers:
            assert poller.poll() is None
            poller.kill()
            poller.communicate()


@pytest.mark.parametrize("records", [[header(v=99), start("1"), fin()]])
def test_a_newer_spool_is_named_and_left_alone(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    home = home_in(tmp_path)
    record_run(home)
    path = write_spool(home, records, OTHER)
    before = path.read_bytes()
    report = ingest(home)
    assert report.runs == (RUN,)
    assert [f"{OTHER}.jsonl was written by a newer version" in notice for notice in report.notices] == [True]
    said: list[str] = []
    assert [run.run_id for run in list_runs(home, warn=said.append)] == [RUN]
    assert said and all("newer version" in line for line in said)
    with pytest.raises(RecordError, match="newer version"):
        load_run(home, OTHER, warn=said.append)
    assert path.read_bytes() == before


def test_a_newer_store_is_named_and_left_alone(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    with duckdb.connect(str(home.store)) as con:
        con.execute("INSERT INTO migration VALUES (99, 'from the future')").fetchall()
    record_run(home, OTHER)
    newer = rf"newer version \(schema 99, this program knows {max(MIGRATIONS)}\)"
    for attempt in (lambda: ingest(home), lambda: list_runs(home), lambda: cost_report(home, [], [])):
        with pytest.raises(RecordError, match=newer):
            attempt()
    with duckdb.connect(str(home.store)) as con:
        assert con.execute("SELECT count(*) FROM run").fetchall() == [(1,)]


def test_a_file_of_something_else_is_named_and_left_alone(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with duckdb.connect(str(home.store)) as con:
        con.execute("CREATE TABLE mine (x INTEGER)").fetchall()
    record_run(home)
    with pytest.raises(RecordError, match="something else"):
        ingest(home)


def test_a_damaged_store_is_named_with_the_way_out(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    home.store.write_bytes(b"not a database" * 1000)
    with pytest.raises(RecordError, match="--rebuild"):
        list_runs(home)


def test_one_bad_spool_does_not_keep_the_others_out(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    (home.spool / "a-folder.jsonl").mkdir()
    record_run(home)
    report = ingest(home)
    assert report.runs == (RUN,)
    assert len(report.notices) == 1 and "a-folder" in report.notices[0]


def test_runs_that_share_a_transaction_are_in_whole_and_once_beside_a_bad_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = home_in(tmp_path), home_in(tmp_path / "one-by-one")
    for number in range(5):
        for each in (home, other):
            record_run(each, f"run-{number}", calls=number)
    write_spool(
        home, [header("run-2b", v=99), start("1"), fin()], "run-2b"
    )  # found bad after those before it
    report = ingest(home)
    assert report.runs == tuple(f"run-{number}" for number in range(5))
    assert len(report.notices) == 1 and "run-2b" in report.notices[0]
    monkeypatch.setattr(ingesting, "_TOGETHER", 1)
    ingest(other)
    there, expected = ({**dump(each), "migration": []} for each in (home, other))
    assert _steady(there) == _steady(expected)


def _steady(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[str]]:
    """Rows without what differs between two recordings of the same run."""
    return {
        table: sorted(re.sub(r"[0-9a-f]{32}|run-\d", "", repr(row)) for row in found)
        for table, found in rows.items()
    }


def _fill_the_disk(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """The transaction of this number, counted from 1, finds no room."""
    append, number = store.append_runs, 0

    def full(*args: Any) -> None:
        nonlocal number
        number += 1
        if number == at:
            raise duckdb.IOException("IO Error: Could not write: No space left on device")
        append(*args)

    monkeypatch.setattr(store, "append_runs", full)


@pytest.mark.parametrize("bound", ["_TOGETHER", "_TOGETHER_BYTES"])
def test_what_was_taken_in_before_the_disk_was_full_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    home = home_in(tmp_path)
    run_ids = [record_run(home, f"run-{number}") for number in range(5)]
    size = home.spool_file(run_ids[0]).stat().st_size
    monkeypatch.setattr(ingesting, bound, {"_TOGETHER": 2, "_TOGETHER_BYTES": 2 * size + size // 2}[bound])
    _fill_the_disk(monkeypatch, at=2)
    report = ingest(home)
    assert report.runs == tuple(run_ids[:2]) and "No space left" in report.notices[0]
    assert {row[0] for row in dump(home)["span"]} == set(run_ids[:2])
    assert ingest(home).runs == tuple(run_ids[2:])
    assert len(dump(home)["span"]) == 5 * 6


def test_runs_taken_in_one_by_one_before_the_disk_was_full_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    run_ids = [record_run(home, f"run-{number}") for number in range(3)]
    write_spool(home, [header("run-0b", v=99), start("1"), fin()], "run-0b")  # none share a transaction
    _fill_the_disk(monkeypatch, at=3)
    report = ingest(home)
    assert report.runs == tuple(run_ids[:2]) and "No space left" in report.notices[-1]
    assert {row[0] for row in dump(home)["run"]} == set(run_ids[:2])


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_who_is_killed_between_two_transactions_leaves_whole_runs(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    run_ids = [record_run(home, f"run-{number}") for number in range(6)]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(home.root)], cwd=ROOT)
    assert killed.returncode == -9
    assert {row[0] for row in dump(home)["run"]} == set(run_ids[:2])
    assert len(dump(home)["span"]) == 2 * 6
    assert ingest(home).runs == tuple(run_ids[2:])
    assert len(dump(home)["span"]) == 6 * 6 and len(dump(home)["spool_file"]) == 6


def test_a_store_whose_first_opening_was_killed_is_finished(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    duckdb.connect(str(home.store)).close()  # an empty file, no tables yet
    assert list_runs(home) == []
    record_run(home)
    assert [run.run_id for run in list_runs(home)] == [RUN]


def test_a_full_store_disk_is_said_and_the_run_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    record_run(home)

    def full(*_: object) -> None:
        raise duckdb.IOException("IO Error: Could not write: No space left on device")

    monkeypatch.setattr(store, "append_runs", full)
    said: list[str] = []
    assert [run.run_id for run in list_runs(home, warn=said.append)] == [RUN]
    assert said == ["The store cannot be written (IO Error: Could not write: No space left on device)."]
    assert dump(home)["span"] == []
    monkeypatch.undo()
    assert ingest(home).runs == (RUN,)


def test_a_query_that_ctrl_c_broke_off_is_an_interruption(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with pytest.raises(KeyboardInterrupt), store.reader(home, store.deadline_in()):
        raise RuntimeError("Query interrupted")  # as DuckDB says it
    with pytest.raises(RuntimeError, match="else"), store.reader(home, store.deadline_in()):
        raise RuntimeError("something else")
