"""What the tests of the record share: fixed ids and times, small runs, spools written by hand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace.id_generator import IdGenerator

from rlm_core import semconv as sc
from rlm_core.telemetry import sha256_text
from traces.home import Home
from traces.recording import Recording, open_recording

ROOT = Path(__file__).parent.parent.parent
RUN = "20260102T030405-0000abcd"
OTHER = "20260102T030406-0000abce"
START_NS = 1_700_000_000_000_000_000


class Counted(IdGenerator):
    """Ids 1, 2, 3, ... so that a whole tree can be written down."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def generate_span_id(self) -> int:
        return next(self._next)

    def generate_trace_id(self) -> int:
        return 0xABC


def ticking(step: int = 1000) -> Callable[[], int]:
    """A clock that moves by `step` nanoseconds whenever it is read."""
    times = itertools.count(START_NS, step)
    return lambda: next(times)


def home_in(folder: Path) -> Home:
    return Home.resolve(folder / "home")


def recording(home: Home, run_id: str = RUN, facts: Mapping[str, Any] | None = None) -> Recording:
    """A recording with fixed ids and times."""
    return open_recording(home, run_id, facts or {}, id_generator=Counted(), clock=ticking())


def record_run(
    home: Home,
    run_id: str = RUN,
    *,
    calls: int = 2,
    status: str = "ok",
    answer: str = "42",
    cost: str = "0.5",
) -> str:
    """A small closed run: one iteration with a root call and a cell with sub-calls; returns its id."""
    with recording(home, run_id) as made:
        fill_run(made, calls=calls, answer=answer, cost=cost)
        made.close(status)
    return run_id


def fill_run(made: Recording, *, calls: int = 2, answer: str = "42", cost: str = "0.5") -> None:
    recorder = made.recorder
    run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, sc.ROOT_MODEL: "r", sc.SUB_MODEL: "s"})
    run.text(sc.QUESTION, "How many?")
    iteration = recorder.start("iteration", sc.NAME_ITERATION, run, {sc.ITERATION: 0})
    root = recorder.start("root_call", "chat r", iteration, {sc.REQUEST_MODEL: "r"})
    root.end("ok", {sc.USAGE_INPUT: 100, sc.USAGE_OUTPUT: 10, sc.COST_USD: "1", sc.COST_STATUS: "priced"})
    cell = recorder.start("cell", sc.NAME_CELL, iteration, {sc.CELL: 0})
    for index in range(calls):
        call = recorder.start("sub_call", "chat s", cell, {sc.REQUEST_MODEL: "s", sc.CALL_INDEX: index})
        call.text(sc.PROMPT, f"prompt {index}")
        call.text(sc.RESPONSE, f"response {index}")
        call.end("ok", {sc.USAGE_INPUT: 7, sc.USAGE_OUTPUT: 3, sc.COST_USD: cost, sc.COST_STATUS: "priced"})
    cell.end()
    iteration.end()
    run.text(sc.ANSWER, answer)
    run.end("ok", {sc.STOP_REASON: "final"})


# -- spools by hand


def header(run_id: str = RUN, **changes: Any) -> dict[str, Any]:
    base = {"format": "rlmscope-spool", "v": 1, "kind": "run", "run_id": run_id, "trace_id": "t"}
    process = {"started_ns": START_NS, "pid": 1, "host": "h", "engine_version": "0", "facts": {}}
    return base | process | changes


def start(
    span_id: str, parent_id: str | None = None, kind: str = "sub_call", **changes: Any
) -> dict[str, Any]:
    base = {"kind": "s", "span_id": span_id, "parent_id": parent_id, "span_kind": kind, "name": kind}
    return {**base, "t": START_NS + 1, "a": {}} | changes


def end(span_id: str, **changes: Any) -> dict[str, Any]:
    return {"kind": "e", "span_id": span_id, "t": START_NS + 2, "status": "ok", "a": {}} | changes


def body(text: str, **changes: Any) -> dict[str, Any]:
    return {"kind": "b", "sha256": sha256_text(text), "text": text} | changes


def fin(**changes: Any) -> dict[str, Any]:
    return {"kind": "fin", "t": START_NS + 9, "status": "ok", "counts": {}, "problems": 0} | changes


def numbered(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records with their `seq`, unless one brings its own."""
    return [{"seq": seq, **record} for seq, record in enumerate(records)]


def lines(records: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in numbered(records))


def write_spool(home: Home, records: Iterable[dict[str, Any]], run_id: str = RUN) -> Path:
    """A spool whose process is gone."""
    path = home.spool_file(run_id)
    path.write_bytes(lines(records))
    return path


def dump(home: Home) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of the store, in a fixed order."""
    import time

    from traces import store

    with store.reader(home, time.monotonic() + 5) as con:
        assert con is not None
        tables = [name for (name,) in store.rows_of(con, "SELECT table_name FROM duckdb_tables() ORDER BY 1")]
        return {table: sorted(store.rows_of(con, f"SELECT * FROM {table}"), key=repr) for table in tables}
