"""Stores of every schema so far open, are brought up to date and read the same; newer ones are left alone."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from tests.traces.make_store import FOLDER, runs_of_the_fixture
from tests.traces.records import (
    OTHER,
    ROOT,
    RUN,
    body,
    dump,
    end,
    fin,
    header,
    home_in,
    record_run,
    start,
    write_spool,
)
from traces.backup import backup
from traces.home import Home
from traces.ingest import ingest
from traces.migrations import MIGRATIONS
from traces.pruning import plan
from traces.reading import list_runs, load_run
from traces.upkeep import delete_run, rebuild

FOREIGN = {sc.IMPORT_FORMAT: "otlp"}
KILLED_STEP = """
import os, sys
from pathlib import Path
from traces import migrations
from traces.home import Home
from traces.ingest import take_in_all
from traces.store import deadline_in
def step(con):
    con.execute("ALTER TABLE run ADD COLUMN added VARCHAR").fetchall()
    con.execute("DELETE FROM payload").fetchall()
    os._exit(9)
migrations.MIGRATIONS[max(migrations.MIGRATIONS) + 1] = ("killed", step)
take_in_all(Home(Path(sys.argv[1])), deadline_in())
"""


def home_with(folder: Path, schema: int) -> Home:
    home = home_in(folder)
    shutil.copy(FOLDER / f"v{schema}.duckdb", home.store)
    runs_of_the_fixture(home)
    return home


def test_every_schema_has_a_store() -> None:
    expected = [f"v{number}.duckdb" for number in MIGRATIONS]
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(expected)


@pytest.mark.parametrize("schema", list(MIGRATIONS))
def test_a_store_of_each_schema_reads_as_one_that_is_made_today(tmp_path: Path, schema: int) -> None:
    old, fresh = home_with(tmp_path / "old", schema), home_in(tmp_path / "fresh")
    runs_of_the_fixture(fresh)
    ingest(fresh)
    assert ingest(old).runs == ()  # nothing to be taken in: what is compared is what the file held
    runs = list_runs(old)
    assert runs == list_runs(fresh) and len(runs) == 2
    assert dump(old) == dump(fresh)
    for run in runs:
        one, other = load_run(old, run.run_id), load_run(fresh, run.run_id)
        assert one.spans == other.spans
        hashes = {v for span in one.spans for k, v in span.attributes.items() if k.endswith(".sha256")}
        assert one.payloads(hashes) == other.payloads(hashes) and hashes


@pytest.mark.parametrize("schema", list(MIGRATIONS))
def test_a_store_of_each_schema_is_enough_without_its_spools(tmp_path: Path, schema: int) -> None:
    home = home_in(tmp_path)
    shutil.copy(FOLDER / f"v{schema}.duckdb", home.store)
    assert [run.run_id for run in list_runs(home)] == [OTHER, RUN]
    assert load_run(home, OTHER).payload(body("¿Qué? 🙂")["sha256"]) == "¿Qué? 🙂"


def test_runs_of_other_engines_are_read_again_where_their_spools_are_kept(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    kept, alone = (write_spool(home, [header(run_id, facts=FOREIGN), start("1", kind="run"), end("1"), fin()],
                               run_id) for run_id in (RUN, OTHER))  # fmt: skip
    own = record_run(home, "own")
    ingest(home)
    today = list_runs(home)
    with duckdb.connect(str(home.store)) as con:
        con.execute("UPDATE run SET seconds = 3608").fetchall()
        con.execute("DELETE FROM migration WHERE number >= 8").fetchall()
    alone.unlink()
    assert ingest(home).runs == (RUN,) and kept.exists()
    now = {run.run_id: run for run in list_runs(home)}
    assert now[RUN] in today and now[own].seconds == now[OTHER].seconds == 3608
    assert ingest(home).runs == ()


def newer_store(home: Home) -> None:
    with duckdb.connect(str(home.store)) as con:
        con.execute("CREATE TABLE tomorrow (x INTEGER)").fetchall()
        con.execute("INSERT INTO migration VALUES (999, 'from the future')").fetchall()


@pytest.mark.parametrize(
    "look",
    [
        list_runs,
        ingest,
        rebuild,
        plan,
        lambda home: load_run(home, RUN),
        lambda home: delete_run(home, RUN),
        lambda home: backup(home, home.root.parent / "copy"),
    ],
    ids=["list", "ingest", "rebuild", "prune", "load", "delete", "backup"],
)
def test_a_newer_store_is_left_alone_and_that_is_said(tmp_path: Path, look: Callable[[Home], object]) -> None:
    home = home_with(tmp_path, max(MIGRATIONS))
    newer_store(home)
    record_run(home, "waiting")
    before = _digests(home)
    with pytest.raises(RecordError, match=r"newer version \(schema 999"):
        look(home)
    assert _digests(home) == before
    assert not (tmp_path / "copy").exists()


def _digests(home: Home) -> dict[str, str]:
    files = [path for path in home.root.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_newer_spool_is_left_alone_and_that_is_said(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    newer = write_spool(home, [header(OTHER, v=sc.RECORD_VERSION + 1), {"kind": "new", "x": 1}], OTHER)
    before = newer.read_bytes()
    said: list[str] = []
    assert [run.run_id for run in list_runs(home, warn=said.append)] == [RUN]
    assert said and all("newer version" in text for text in said)
    for step in (ingest, rebuild):
        assert "newer version" in " ".join(step(home).notices)
    with pytest.raises(RecordError, match="newer version"):
        load_run(home, OTHER, warn=said.append)
    copied = Home(backup(home, tmp_path / "copy").path)
    assert newer.read_bytes() == copied.spool_file(OTHER).read_bytes() == before
    assert all(OTHER not in str(rows) for rows in dump(home).values())


def test_a_migration_that_is_killed_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    home = home_with(tmp_path, max(MIGRATIONS))
    whole = dump(home)
    killed = [sys.executable, "-c", KILLED_STEP, str(home.root)]
    assert subprocess.run(killed, check=False, cwd=ROOT).returncode == 9
    assert dump(home) == whole
    assert len(list_runs(home)) == 2
