"""Writes the store of the present schema to `stores/`: `python -m tests.traces.make_store`, once for each.

A committed store is never written again: it is what a program of its day left behind. It holds the run of the
first spool in `spools/` and one that is written here.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from rlm_core import semconv as sc
from tests.traces.records import OTHER, RUN, START_NS, body, end, fin, header, start, write_spool
from traces import store
from traces.home import Home
from traces.ingest import ingest
from traces.migrations import MIGRATIONS

FOLDER = Path(__file__).parent / "stores"
SPOOL = Path(__file__).parent / "spools" / "v1.jsonl"


def runs_of_the_fixture(home: Home) -> None:
    """The spools that every committed store was filled from. They never change either."""
    shutil.copy(SPOOL, home.spool_file(RUN))
    paid = {
        sc.COST_USD: "0.000000000000000001",
        sc.COST_STATUS: "priced",
        sc.COST_PRICE: '{"output_per_mtok":"2"}',
    }
    usage = {sc.USAGE_INPUT: 12, sc.USAGE_OUTPUT: 3, sc.USAGE_CACHE_READ: 4, sc.REQUEST_MODEL: "s"}
    text = body("¿Qué? 🙂")
    cites = {sc.PROMPT + ".sha256": text["sha256"], sc.CALL_INDEX: 0}
    event = {"kind": "ev", "span_id": "2", "name": sc.EV_NOTICE, "t": START_NS + 2, "a": {"text": "late"}}
    records = [header(OTHER), start("1", kind="run"), text, start("2", "1", a=cites), event]
    write_spool(home, [*records, end("2", a=usage | paid), end("1"), fin()], OTHER)


def main() -> None:
    """Fill a store and copy it in small blocks, so that the file is small."""
    target = FOLDER / f"v{max(MIGRATIONS)}.duckdb"
    if target.exists():
        sys.exit(f"{target.name} is there already and stays as it is.")
    with tempfile.TemporaryDirectory() as folder:
        home = Home.resolve(folder)
        runs_of_the_fixture(home)
        ingest(home)
        with store.writer(home.store, store.deadline_in()) as con:
            options = "STORAGE_VERSION 'v1.5.0', BLOCK_SIZE 16384"
            store.rows_of(con, f"ATTACH '{target}' AS fixture ({options})")
            store.rows_of(con, "COPY FROM DATABASE traces TO fixture")


if __name__ == "__main__":
    main()
