"""What ui/docs/schema.md says is held against a real store: every column, every query, how to open it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import ROOT
from tests.support.recorded_runs import wide_run
from traces import store
from traces.home import Home
from traces.ingest import ingest

PAGE = (ROOT / "ui" / "docs" / "schema.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.S | re.M)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A store with a run of many calls, some of which failed or came back empty."""
    home = Home.resolve(tmp_path_factory.mktemp("schema"))
    wide_run(home, 300)
    ingest(home)
    return home


def documented() -> Iterator[tuple[str, str, str]]:
    """Table, column and type of every row of every table on the page."""
    for heading, section in re.findall(r"^## ([^\n:]*):[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M):
        tables = re.split(r"^\| column \|.*\n\|---.*\n", section, flags=re.M)[1:]
        for name, rows in zip(heading.split(" and "), tables, strict=True):
            for row in re.findall(r"^\| (\w+) \| ([^|]+) \|[^|]*\| [^|]+ \|$", rows, re.M):
                yield (name, *row)


def test_every_column_is_documented_with_its_type(home: Home) -> None:
    columns = """SELECT table_name, column_name, data_type FROM duckdb_columns()
        WHERE database_name = current_database()"""
    with store.reader(home, store.deadline_in()) as con:
        assert con is not None
        real = store.rows_of(con, columns)
    assert sorted(documented()) == sorted(real)


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_every_query_finds_something(home: Home, query: str) -> None:
    with store.reader(home, store.deadline_in()) as con:
        assert con is not None
        assert store.rows_of(con, query)


def test_the_program_that_opens_the_store_does(home: Home, tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)
    before = home.store.stat().st_mtime_ns
    done = subprocess.run(
        [sys.executable, "-c", code], env={"RLMSCOPE_HOME": str(home.root)},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Which documents mention a refund?" in done.stdout
    assert home.store.stat().st_mtime_ns == before
