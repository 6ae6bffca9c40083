"""A backup is a home that is equal to the original; making one harms nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlm_core.errors import InputError, RecordError
from tests.traces.records import OTHER, RUN, body, dump, fill_run, home_in, record_run, recording
from traces import backup as backups
from traces import store, user_log
from traces.backup import backup
from traces.home import Home
from traces.ingest import ingest
from traces.locks import FileLock
from traces.reading import list_runs, load_run
from traces.upkeep import delete_run, rebuild


def test_a_backup_reads_like_the_original_and_can_be_rebuilt(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    record_run(home, OTHER, status="error")
    record_run(home, "deleted")
    delete_run(home, "deleted")
    user_log.append(home, "verdict", {"run_id": RUN})
    made = backup(home, tmp_path / "copy")
    copy = Home(made.path)
    assert dump(copy) == dump(home) and made.rows["run"] == 2 and made.spools == 2
    assert list_runs(copy) == list_runs(home)
    assert load_run(copy, RUN).payload(body("prompt 0")["sha256"]) == "prompt 0"
    assert copy.user_log.read_bytes() == home.user_log.read_bytes()
    rebuild(copy)
    assert dump(copy) == dump(home)
    assert sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name) == ["copy"]


def test_restoring_is_copying_the_folder_back(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    backup(home, tmp_path / "copy")
    before = dump(home)
    shutil.rmtree(home.root)
    shutil.copytree(tmp_path / "copy", home.root)
    assert dump(home) == before and [run.run_id for run in list_runs(home)] == [RUN]
    record_run(home, OTHER)
    assert len(list_runs(home)) == 2


def test_a_run_that_goes_on_is_copied_up_to_its_last_whole_line(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        fill_run(made)
        with home.spool_file(RUN).open("ab") as file:
            file.write(b'{"seq":99,"kind":"s","torn')
        done = backup(home, tmp_path / "copy")
        assert done.running == (RUN,)
    (run,) = list_runs(Home(done.path))
    assert (run.status, run.answer, run.problems) == ("interrupted", "42", 0)


@pytest.mark.parametrize("place", ["home", "home/inside", "copy", "nowhere/copy"])
def test_a_bad_place_is_refused_and_nothing_is_touched(tmp_path: Path, place: str) -> None:
    home = home_in(tmp_path)
    record_run(home)
    (tmp_path / "copy").write_text("mine")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InputError):
        backup(home, tmp_path / place)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "copy").read_text() == "mine"


def test_a_copy_that_is_not_equal_is_no_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_in(tmp_path)
    record_run(home)
    copy_store = backups._copy_store

    def lossy(con: store.DuckDBPyConnection, target: Path) -> None:
        copy_store(con, target)
        store.rows_of(con, f"ATTACH '{target}' AS x")
        store.rows_of(con, "UPDATE x.span SET status = 'error' WHERE kind = 'cell'")
        store.rows_of(con, "DETACH x")

    monkeypatch.setattr(backups, "_copy_store", lossy)
    with pytest.raises(RecordError, match="not equal"):
        backup(home, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []


def test_a_store_in_use_makes_no_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)
    monkeypatch.setattr(store, "PATIENCE", 0.01)
    lock = FileLock(home.ingest_lock)
    assert lock.try_acquire()
    with pytest.raises(store.StoreBusy):
        backup(home, tmp_path / "copy")
    lock.release()
    assert not (tmp_path / "copy").exists()


def test_a_full_disk_leaves_no_half_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_in(tmp_path)
    record_run(home)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backups.shutil, "copyfile", full)
    with pytest.raises(RecordError, match="No space left"):
        backup(home, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []
