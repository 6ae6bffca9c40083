"""What a pruning removes and what it leaves alone; deletions that are killed half-way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlm_core.telemetry import sha256_text
from tests.traces.records import (
    OTHER,
    ROOT,
    RUN,
    START_NS,
    body,
    dump,
    end,
    fin,
    header,
    home_in,
    record_run,
    recording,
    start,
    write_spool,
)
from traces import user_log
from traces.home import Home
from traces.ingest import ingest
from traces.locks import FileLock
from traces.pruning import plan, prune
from traces.reading import list_runs, load_run
from traces.upkeep import delete_runs, rebuild

DAY = 86400.0
NOW = START_NS / 1e9 + 10 * DAY  # ten days after the runs that the helpers record
KILLED = """
import os, sys
from pathlib import Path
from traces import ingest, store, user_log
from traces.home import Home
from traces.upkeep import delete_run
step = sys.argv[1]
place = {"tombstone": (ingest, "ingest"), "middle": (store, "erase"), "rows": (Path, "unlink")}
real = place[step][0].__dict__[place[step][1]]
def die(*args, **kwargs):
    if step == "middle":
        real(*args, **kwargs)
    os._exit(9)
setattr(*place[step], die)
delete_run(Home(Path(sys.argv[2])), sys.argv[3])
"""


@pytest.mark.parametrize("step", ["tombstone", "middle", "rows"])
def test_a_deletion_that_is_killed_between_its_steps_is_finished_by_the_next_ingest(
    tmp_path: Path, step: str
) -> None:
    home = home_in(tmp_path)
    record_run(home)
    record_run(home, OTHER)
    ingest(home)
    killed = [sys.executable, "-c", KILLED, step, str(home.root), RUN]
    assert subprocess.run(killed, check=False, cwd=ROOT).returncode == 9
    assert home.spool_file(RUN).exists()
    ingest(home)
    assert not home.spool_file(RUN).exists()
    assert all(RUN not in str(rows) for rows in dump(home).values())
    rebuild(home)
    assert [run.run_id for run in list_runs(home)] == [OTHER]


def test_what_people_said_survives_deletions_and_rebuilds(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    record_run(home, OTHER)
    user_log.append(home, "verdict", {"run_id": OTHER, "verdict": "wrong"})
    user_log.append(home, "note", {"run_id": OTHER, "text": "look at call 3"})
    user_log.append(home, "price", {"model": "m", "input_per_mtok": "1"})
    before = home.user_log.read_bytes()
    delete_runs(home, [RUN])
    rebuild(home)
    after = home.user_log.read_bytes()
    assert after.startswith(before)
    assert [json.loads(text)["kind"] for text in after.split(b"\n") if text] == [
        "verdict", "note", "price", "tombstone",
    ]  # fmt: skip


def test_one_refused_run_keeps_all_others(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    with pytest.raises(Exception, match="no run"):
        delete_runs(home, [RUN, "nothing"])
    assert not home.user_log.exists() and len(list_runs(home)) == 1


def test_only_runs_that_are_older_go(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    write_spool(home, [header(OTHER, started_ns=int((NOW - DAY) * 1e9)), fin()], OTHER)
    assert plan(home, now=NOW).empty
    found = plan(home, 2 * DAY, now=NOW)
    assert [run.run_id for run in found.runs] == [RUN]
    assert found.run_bytes == home.spool_file(RUN).stat().st_size
    assert len(plan(home, DAY, now=NOW).runs) == 2
    assert len(list_runs(home)) == 2  # a plan changes nothing
    assert prune(home, found) == ()
    assert [run.run_id for run in list_runs(home)] == [OTHER]
    rebuild(home)
    assert [run.run_id for run in list_runs(home)] == [OTHER]


def test_running_runs_examples_and_undated_ones_stay(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_spool(home, [header("example", facts={"rlm.example": True}), fin()], "example")
    write_spool(home, [header("torn") | {"kind": "nonsense"}], "torn")
    with recording(home):
        found = plan(home, DAY, now=NOW)
    assert (found.runs, found.kept) == ((), {"running": 1, "example": 1, "undated": 1})


def test_runs_with_a_verdict_stay_when_that_is_asked_for(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    record_run(home, OTHER)
    user_log.append(home, "verdict", {"run_id": RUN, "verdict": "right"})
    found = plan(home, DAY, keep_verdicts=True, now=NOW)
    assert ([run.run_id for run in found.runs], found.kept) == ([OTHER], {"verdict": 1})
    assert len(plan(home, DAY, now=NOW).runs) == 2


def spool_with_uncited(home: Home) -> dict[str, str]:
    """A closed run with texts that a span, an event, the header or a text cites, and two uncited ones."""
    names = ("prompt", "event", "fact", "listed", "gone 1", "gone \ud800")
    hashes = {name: sha256_text(name) for name in names}
    table = json.dumps([hashes["listed"]])
    hashes[table] = sha256_text(table)
    texts = [body(name) for name in hashes]
    cites = {"rlm.prompt.sha256": hashes["prompt"], "rlm.corpus.sha256": hashes[table]}
    event = {"kind": "ev", "span_id": "1", "name": "n", "t": START_NS + 1, "a": {"x": hashes["event"]}}
    first = header(facts={"f": hashes["fact"]})
    write_spool(home, [first, *texts, start("1", a=cites), event, end("1"), fin()])
    return hashes


def test_texts_that_nothing_cites_leave_store_and_spool_and_nothing_else_changes(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    hashes = spool_with_uncited(home)
    record_run(home, OTHER)
    ingest(home)
    before, whole = dump(home), load_run(home, RUN)
    found = plan(home)
    gone = {hashes["gone 1"], hashes["gone \ud800"]}
    assert found.payloads == {RUN: gone} and found.payload_bytes > 0
    assert prune(home, found) == ()
    spool = home.spool_file(RUN).read_text()
    assert "gone" not in spool and hashes["gone 1"] not in spool
    view = load_run(home, RUN)
    assert view.summary == whole.summary and view.spans == whole.spans
    kept = set(hashes.values()) - gone
    assert view.payloads(hashes.values()) == whole.payloads(kept)
    after = dump(home)
    for table in ("run", "span", "span_event"):
        assert after[table] == before[table]
    assert plan(home).empty
    rebuild(home)
    assert dump(home) == after


def test_a_sweep_leaves_a_run_alone_that_goes_on(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        made.recorder.payload("not cited yet")
        assert plan(home).empty


def left_over(home: Home) -> list[Path]:
    stores = ("traces.rebuild.duckdb", "traces.rebuild.duckdb.wal", "traces.duckdb.new")
    files = [home.root / name for name in stores]
    files += [home.spool / name for name in (".example-abc", ".sweep-abc-1", f"{RUN}.lock")]
    for path in files:
        path.write_bytes(b"12345")
        os.utime(path, (NOW - 7200, NOW - 7200))
    folders = [home.corpora / ".adding-0123", home.root / "traces.rebuild.duckdb.tmp"]
    for folder in folders:
        folder.mkdir()
        (folder / "text").write_bytes(b"12345")
    return [*files, *folders]


def test_files_that_killed_processes_left_go(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home, OTHER)
    ingest(home)
    files = left_over(home)
    others = [home.root / "mine.txt", home.root / "traces.unreadable.duckdb", home.spool / "notes.txt"]
    for path in others:
        path.write_text("kept")
    found = plan(home, now=NOW)
    assert sorted(found.files) == sorted(files) and found.file_bytes == 5 * len(files)
    assert prune(home, found) == ()
    assert not any(path.exists() for path in files) and all(path.exists() for path in others)
    assert len(list_runs(home)) == 1


def test_files_whose_lock_is_held_or_that_are_new_stay(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for path in left_over(home):
        os.utime(path)
    locks = [FileLock(home.rebuild_lock), FileLock(home.corpora / ".adding-0123.lock")]
    assert all(lock.try_acquire() for lock in locks)
    now = (home.spool / ".sweep-abc-1").stat().st_mtime + 60
    assert plan(home, now=now).files == ()
    alive = FileLock(home.liveness_lock(RUN))
    assert alive.try_acquire()
    later = [path.name for path in plan(home, now=now + 7200).files]
    assert later == [".example-abc", ".sweep-abc-1", "traces.duckdb.new"]
