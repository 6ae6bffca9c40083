"""Every format ever written can be read: one spool of each stands in `spools/` for ever."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from rlm_core.errors import RecordError
from rlm_core.semconv import RECORD_VERSION
from tests.traces.records import RUN, body, home_in, record_run
from traces import migrations
from traces.ingest import ingest
from traces.reading import list_runs, load_run, span_detail
from traces.spool import UPCASTERS

SPOOLS = Path(__file__).parent / "spools"


def test_each_format_has_a_spool_and_each_earlier_one_a_way_up() -> None:
    versions = range(1, RECORD_VERSION + 1)
    assert sorted(path.name for path in SPOOLS.iterdir()) == [f"v{version}.jsonl" for version in versions]
    assert sorted(UPCASTERS) == list(versions[:-1])


@pytest.mark.parametrize("version", range(1, RECORD_VERSION + 1))
def test_a_spool_of_each_format_reads_as_on_its_first_day(tmp_path: Path, version: int) -> None:
    home = home_in(tmp_path)
    shutil.copy(SPOOLS / f"v{version}.jsonl", home.spool_file(RUN))
    view = load_run(home, RUN)
    run = view.summary
    assert (run.question, run.answer, run.status, run.problems) == ("¿Cuántos?", "none", "ok", 1)
    assert (run.corpus_id, run.sandbox, run.root_model, run.sub_model) == ("c0ffee", "none", "r", "s")
    assert (run.tokens["total"], run.cost_usd, run.cost_status) == (110, None, "partial")
    assert [(s.kind, s.status, s.depth, s.iteration, s.cell, s.call_index) for s in view.spans] == [
        ("run", "ok", 0, None, None, None),
        ("iteration", "ok", 0, 0, None, None),
        ("root_call", "ok", 0, 0, None, None),
        ("cell", "ok", 0, 0, 0, None),
        ("sub_call", "error", 0, 0, 0, 0),
        ("attempt", "error", 0, 0, 0, None),
    ]
    prompt = view.payload(body("lone \ud800, pair \ud83d\ude00")["sha256"])
    assert prompt == "lone \\ud800, pair \\ud83d\\ude00"
    assert span_detail(view, view.spans[2])["messages"][0]["content"] == "Begin."


LATER = max(migrations.MIGRATIONS) + 1


def test_migrations_are_numbered_without_gaps() -> None:
    assert list(migrations.MIGRATIONS) == list(range(1, len(migrations.MIGRATIONS) + 1))


def test_an_older_store_is_brought_up_to_date_by_the_first_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)

    def add_column(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("ALTER TABLE run ADD COLUMN added VARCHAR DEFAULT 'here'").fetchall()

    monkeypatch.setitem(migrations.MIGRATIONS, LATER, ("a later step", add_column))
    assert [run.run_id for run in list_runs(home)] == [RUN]
    with duckdb.connect(str(home.store)) as con:
        assert con.execute("SELECT added FROM run").fetchall() == [("here",)]
        steps = con.execute("SELECT * FROM migration ORDER BY number").fetchall()
        assert (steps[0], steps[-1]) == ((1, "first schema"), (LATER, "a later step"))
    monkeypatch.delitem(migrations.MIGRATIONS, LATER)
    with pytest.raises(RecordError, match="newer version"):
        list_runs(home)


def test_a_step_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    record_run(home)
    ingest(home)

    def fail(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("DROP TABLE payload").fetchall()
        con.execute("SELECT * FROM no_such_table").fetchall()

    monkeypatch.setitem(migrations.MIGRATIONS, LATER, ("a bad step", fail))
    with pytest.raises(RecordError, match="cannot be read"):
        list_runs(home)
    monkeypatch.delitem(migrations.MIGRATIONS, LATER)
    assert load_run(home, RUN).payload(body("prompt 0")["sha256"]) == "prompt 0"
