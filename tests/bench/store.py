"""What the record costs at scale: a store of a million spans, a very large run, a large text, a long history.

The million spans are copies, made with SQL, of two runs that were recorded and taken in as any other.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlm_core import RLM, FunctionLMHandler, Limits
from rlm_core import semconv as sc
from rlm_core.telemetry import as_json
from tests.bench.rows import Row, cpu
from tests.support.recorded_runs import recording, wide_run
from traces import spend, store
from traces.calls import Spans, spans_of_runs
from traces.cost import report_of
from traces.home import Home
from traces.ingest import ingest
from traces.pruning import plan
from traces.reading import build_tree, cost_report, list_runs, load_run, span_detail
from traces.recording import open_recording
from traces.what_if import what_if

REPEATS = 7
SPANS = 1_000_000
SMALL, LARGE, HUGE, LONG = (f"20270115T080000-0000{letters}" for letters in ("aa01", "aa02", "aa03", "aa04"))
TEXT = 5_000_000
TURNS = 30


def store_figures() -> list[Row]:
    """All rows of this part; takes a minute and a gigabyte in the folder for temporary files."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return [
            *_million(Home.resolve(place / "million")),
            *_very_large_run(Home.resolve(place / "huge")),
            *_large_text(Home.resolve(place / "text")),
            *_long_history(Home.resolve(place / "history")),
            *_bytes_per_iteration(place),
        ]


def _ms(work: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """CPU milliseconds of each of some repeats, after one that does not count."""
    work()
    values = []
    for _ in range(repeats):
        used = cpu()
        work()
        values.append((cpu() - used) * 1000)
    return values


def _million(home: Home) -> list[Row]:
    wide_run(home, 200, SMALL)
    wide_run(home, 10_000, LARGE)
    ingest(home)
    with store.writer(home.store, store.deadline_in()) as con:
        (spans,) = store.rows_of(con, "SELECT count(*) FROM span")[0]
        (each,) = store.rows_of(con, "SELECT count(*) FROM span WHERE run_id = ?", [SMALL])[0]
        for table in store.TABLES:
            # distinct texts, as those of different runs are; their hashes are never looked at here
            text = ", text || ' of run ' || n AS text" if table == "payload" else ""
            copied = f"rows.* REPLACE (printf('20260101T000000-%08x', n) AS run_id{text})"
            copies = f"range(1, {(SPANS - spans) // each + 2}) AS copies(n)"
            source = f"{table} AS rows, {copies} WHERE run_id = '{SMALL}' ORDER BY n"
            store.rows_of(con, f"INSERT INTO {table} SELECT {copied} FROM {source}")
        (spans,) = store.rows_of(con, "SELECT count(*) FROM span")[0]
        con.checkpoint()
    large = load_run(home, LARGE)
    where = f"store of {spans:,} spans"
    size = home.store.stat().st_size / spans
    small = len(load_run(home, SMALL).spans)
    return [
        (f"{where}: one run of {small} spans, store opened and closed", "ms CPU",
         _ms(lambda: load_run(home, SMALL)), 20),
        (f"{where}: one run of {len(large.spans):,} spans", "ms CPU", _ms(lambda: load_run(home, LARGE)), 50),
        ("  the same folded into its tree, with all totals", "ms CPU",
         _ms(lambda: build_tree(large.spans)), None),
        (f"{where}: cost by model", "ms CPU", _ms(lambda: cost_report(home, [], ["model"])), 50),
        *_spend(home, where),
        (f"{where}: the newest 50 runs", "ms CPU", _ms(lambda: list_runs(home, 50)), None),
        (f"{where}: what a pruning would remove", "s CPU",
         [value / 1000 for value in _ms(lambda: plan(home), 1)], None),
        (f"{where}: bytes of the file per span, texts included", "bytes", [size], None),
    ]  # fmt: skip


def _spend(home: Home, where: str) -> list[Row]:
    """What the Spend page asks of all runs: at its first look, in its views, and with another model."""
    runs = list_runs(home)

    def asked(what: Callable[[Spans], Any]) -> Callable[[], Any]:
        def answer() -> Any:
            with spans_of_runs(home, [run.run_id for run in runs], None) as spans:
                return what(spans)

        return answer

    keys, other = ("corpus", "day"), {"sub": "openai/gpt-5-mini"}
    return [
        (f"{where}: Spend, all runs listed", "ms CPU", _ms(lambda: list_runs(home), 3), None),
        ("  its four figures", "ms CPU", _ms(asked(spend.totals), 3), None),
        ("  by corpus and day", "ms CPU", _ms(asked(lambda spans: report_of(spans, keys)), 3), None),
        ("  percentiles, tail and the dearest sub-calls", "ms CPU",
         _ms(asked(lambda spans: (spend.tails(spans), spend.dearest(spans))), 3), None),
        ("  every limit", "ms CPU", _ms(asked(spend.budgets), 3), None),
        ("  every sub-call priced with another model", "s CPU",
         [value / 1000 for value in _ms(lambda: what_if(home, [], ["role"], other), 3)], None),
    ]  # fmt: skip


def _very_large_run(home: Home) -> list[Row]:
    used = cpu()
    wide_run(home, 30_000, HUGE)
    recorded = cpu() - used
    used = cpu()
    ingest(home)
    taken = cpu() - used
    opened = _ms(lambda: build_tree(load_run(home, HUGE).spans), 3)
    spans = len(load_run(home, HUGE).spans)
    return [
        (f"a run of {spans:,} spans: recorded, per span", "ms CPU", [recorded / spans * 1000], None),
        ("  taken in, per span", "ms CPU", [taken / spans * 1000], None),
        ("  opened and folded into its tree", "ms CPU", opened, None),
    ]


def _large_text(home: Home) -> list[Row]:
    """A cell that printed five megabytes, from the recorder to the reader."""
    text = _text(TEXT)
    used = cpu()
    with recording(home, LARGE) as made:
        cell = made.recorder.start("cell", sc.NAME_CELL, None, {sc.CELL: 0})
        cell.text(sc.STDOUT, text)
        cell.end()
    recorded = (cpu() - used) * 1000
    used = cpu()
    ingest(home)
    taken = (cpu() - used) * 1000

    def read() -> str:
        view = load_run(home, LARGE)
        return str(span_detail(view, view.spans[0])["stdout"])

    assert read() == text
    return [
        (f"a text of {len(text) / 1e6:.0f} MB: recorded", "ms CPU", [recorded], None),
        ("  taken in", "ms CPU", [taken], None),
        ("  read back", "ms CPU", _ms(read, 3), None),
    ]


def _text(size: int) -> str:
    lines = (f"{number * 7919 % 999_983:06} of the needle works\n" for number in range(size // 26))
    return "".join(lines)


def _long_history(home: Home) -> list[Row]:
    """A root that was sent 300 messages, each call all those before it."""
    times = itertools.count(1_800_000_000_000_000_000, 1000)
    with open_recording(home, LONG, {}, clock=lambda: next(times)) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        sizes = []
        for turn in range(150):
            before = made.spool_path.stat().st_size
            hashes = [made.recorder.payload(f"{turn} {role} " * 100) for role in ("user", "assistant")]
            added = as_json([["user", hashes[0]], ["assistant", hashes[1]]])
            facts = {sc.RUN_PATH: "0", sc.MESSAGES_PRIOR: 2 * turn, sc.MESSAGES_ADDED: added}
            made.recorder.start("root_call", "chat r", run, facts).end()
            sizes.append(made.spool_path.stat().st_size - before)
        run.end()
    ingest(home)

    def read() -> int:
        view = load_run(home, LONG)
        return len(span_detail(view, view.spans[-1])["messages"])

    assert read() == 300
    growth = statistics.median(sizes[-50:]) / statistics.median(sizes[:50])
    return [
        ("a history of 300 messages: all those of the last root call, read back", "ms CPU", _ms(read), None),
        ("  spool bytes of the last 50 root calls / of the first 50", "x", [growth], 1.1),
    ]


def _bytes_per_iteration(place: Path) -> list[Row]:
    """Bytes of the spool per tiny iteration, by the number of the iteration and the size of the corpus."""
    small, large = (iteration_bytes(place / str(size), TURNS, "x" * size) for size in (1_000, 4_000_000))
    early, late = statistics.median(small[1 : TURNS // 3]), statistics.median(small[-TURNS // 3 : -1])
    ratio = statistics.median(large[1:-1]) / statistics.median(small[1:-1])
    return [
        ("spool bytes of a tiny iteration", "bytes", [float(size) for size in small[1:-1]], None),
        ("  the last third of 30 / the first third", "x", [late / early], 1.1),
        ("  over a corpus of 4 MB / of 1 KB", "x", [ratio], 1.1),
    ]


def iteration_bytes(place: Path, turns: int, corpus: str) -> list[int]:
    """Bytes by which the spool of a real run grew from each request to the root to the next one."""
    home, sizes = Home.resolve(place), []
    with open_recording(home, "20260101T000000-00000001", {}) as made:

        def model(request: Any) -> str:
            sizes.append(made.spool_path.stat().st_size)
            code = "FINAL(1)" if len(sizes) == turns else f"print({1000 + len(sizes)})"
            return f"```repl\n{code}\n```"

        handler, limits = FunctionLMHandler(model), Limits(max_iterations=turns)
        with RLM("bench/root", "bench/sub", handler=handler, limits=limits) as rlm:
            rlm.ask("What?", corpus, recorder=made.recorder)
    return [after - before for before, after in itertools.pairwise(sizes)]
