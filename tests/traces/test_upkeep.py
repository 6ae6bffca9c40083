"""Building the store anew, and deleting runs for good."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlm_core.errors import InputError, RecordError
from tests.traces.records import (
    OTHER,
    ROOT,
    RUN,
    body,
    dump,
    fill_run,
    header,
    home_in,
    record_run,
    recording,
    start,
    write_spool,
)
from traces import store, user_log
from traces.home import Home
from traces.ingest import ingest
from traces.locks import FileLock
from traces.reading import list_runs, load_run
from traces.upkeep import delete_run, rebuild


def some_runs(home: Home) -> list[str]:
    record_run(home, "a", calls=3)
    write_spool(home, [header("b"), start("1"), body("x \ud800"), {"kind": "nonsense"}], "b")
    record_run(home, "c", cost="0.000000000000000001", status="error")
    return ["a", "b", "c"]


def test_a_rebuilt_store_is_equal_row_by_row(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    some_runs(home)
    ingest(home)
    before = dump(home)
    assert rebuild(home).runs == ("a", "b", "c")
    assert dump(home) == before
    assert sorted(path.name for path in home.root.glob("*.duckdb*")) == ["traces.duckdb"]


def test_a_rebuild_without_a_store_makes_one(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    assert rebuild(home).runs == ()
    some_runs(home)
    assert rebuild(home).runs == ("a", "b", "c")
    assert len(list_runs(home)) == 3


def test_a_damaged_store_is_replaced_and_kept_aside(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    some_runs(home)
    home.store.write_bytes(b"damaged" * 1000)
    assert rebuild(home).runs == ("a", "b", "c")
    assert len(list_runs(home)) == 3
    assert (home.root / "traces.unreadable.duckdb").read_bytes().startswith(b"damaged")


def test_what_a_killed_writer_left_in_its_log_does_not_reach_the_new_store(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    some_runs(home)
    ingest(home)
    before = dump(home)
    code = (
        "import sys, os, duckdb\ncon = duckdb.connect(sys.argv[1])\n"
        "con.execute(\"INSERT INTO run (run_id) VALUES ('ghost')\").fetchall()\nos._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, home.store], check=False, cwd=ROOT)
    assert home.store.with_name("traces.duckdb.wal").exists()
    rebuild(home)
    assert dump(home) == before


def test_a_rebuild_that_would_lose_runs_is_refused(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    some_runs(home)
    ingest(home)
    home.spool_file("a").unlink()
    with pytest.raises(RecordError, match=r"1 stored runs are gone \(a\)"):
        rebuild(home)
    assert len(list_runs(home)) == 3
    delete_run(home, "a")
    assert rebuild(home).runs == ("b", "c")


def test_a_rebuild_of_a_home_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    home.rebuild_lock.mkdir()
    with pytest.raises(RecordError, match="cannot be written"):
        rebuild(home)


def test_only_one_rebuild_at_a_time(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    lock = FileLock(home.rebuild_lock)
    assert lock.try_acquire()
    with pytest.raises(RecordError, match="Another process is rebuilding"):
        rebuild(home)


def test_a_store_that_stays_in_use_is_not_replaced(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    some_runs(home)
    ingest(home)
    lock = FileLock(home.ingest_lock)
    assert lock.try_acquire()
    with pytest.raises(store.StoreBusy):
        rebuild(home, patience=0.01)
    lock.release()
    assert len(list_runs(home)) == 3


@pytest.mark.parametrize("stored", [True, False])
def test_a_deleted_run_never_comes_back(tmp_path: Path, stored: bool) -> None:
    home = home_in(tmp_path)
    record_run(home)
    record_run(home, OTHER)
    if stored:
        ingest(home)
    spool = home.spool_file(RUN).read_bytes()
    delete_run(home, RUN)
    assert not home.spool_file(RUN).exists()
    home.spool_file(RUN).write_bytes(spool)  # from a backup, say
    for step in (ingest, rebuild):
        step(home)
        assert [run.run_id for run in list_runs(home)] == [OTHER]
        assert all(RUN not in str(rows) for rows in dump(home).values())
    with pytest.raises(InputError, match="no run"):
        load_run(home, RUN)


def test_an_interrupted_deletion_is_finished_by_the_next_reader(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    user_log.append(home, user_log.DELETED, {"run_id": RUN})
    assert list_runs(home) == []
    assert not home.spool_file(RUN).exists()
    assert dump(home)["run"] == []


def test_a_deletion_while_the_store_is_in_use_hides_the_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    monkeypatch.setattr(store, "PATIENCE", 0.01)
    lock = FileLock(home.ingest_lock)
    assert lock.try_acquire()
    said: list[str] = []
    assert delete_run(home, RUN).notices
    assert list_runs(home, warn=said.append) == [] and said
    lock.release()
    assert list_runs(home) == [] and not home.spool_file(RUN).exists()


def test_a_running_run_is_not_deleted(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        fill_run(made)
        with pytest.raises(InputError, match="still going on"):
            delete_run(home, RUN)
    assert [run.run_id for run in list_runs(home)] == [RUN]


@pytest.mark.parametrize("run_id", ["nothing", "../../etc", ""])
def test_deleting_what_is_not_there_is_an_error(tmp_path: Path, run_id: str) -> None:
    home = home_in(tmp_path)
    with pytest.raises(InputError, match="no run"):
        delete_run(home, run_id)
    assert not home.user_log.exists()


def test_a_torn_line_in_the_user_log_costs_only_itself(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    user_log.append(home, user_log.DELETED, {"run_id": "a"})
    with home.user_log.open("ab") as file:
        file.write(b'{"kind":"tombstone","run_i')
    user_log.append(home, "verdict", {"run_id": "b"})
    user_log.append(home, user_log.DELETED, {"run_id": "c"})
    with home.user_log.open("ab") as file:
        file.write(b'[1]\n{"kind":"tombstone","run_id":7}\n\xff\n')
    assert user_log.deleted_runs(home) == {"a", "c"}
    assert [record["kind"] for record in user_log.records(home)].count("verdict") == 1
    if os.name != "nt":
        assert home.user_log.stat().st_mode & 0o777 == 0o600


def test_a_user_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    home.user_log.mkdir()
    with pytest.raises(RecordError, match="user.jsonl"):
        delete_run(home, RUN)
    assert home.spool_file(RUN).exists()
