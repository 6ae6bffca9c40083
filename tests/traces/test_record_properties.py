"""What holds for any spool whatever: sensible ones, damaged ones and hostile ones."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core import semconv as sc
from rlm_core.semconv import KINDS
from rlm_core.telemetry import sha256_text
from tests.traces.records import RUN, START_NS, dump, header, home_in, numbered
from traces.cost import KEYS
from traces.home import Home
from traces.ingest import IngestReport, ingest
from traces.locks import FileLock
from traces.reading import RunView, SpoolRun, build_tree, cost_report, list_runs, load_run, span_detail
from traces.tree import Group, walk
from traces.upkeep import rebuild

# every look makes a store, which costs a tenth of a second
LOOKS = 100 if os.environ.get("RLMSCOPE_FULL") == "1" else 16
odd_texts = ["", "\x00", "\ud800", "\ud83d\ude00", "a" * 300, "é"]
texts = st.one_of(st.text(max_size=8), st.sampled_from(odd_texts))
junk = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(min_value=-(10**30), max_value=10**30),
        st.floats(),
        texts,
        st.sampled_from([10**400, 2**63, -1, "1E+999", "NaN", "[" * 2000, '{"input_per_mtok":"1"}']),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
ids = st.sampled_from(["1", "2", "3", "4"])
times = st.integers(START_NS, START_NS + 100)
amounts = st.sampled_from(["0", "0.1", "0.000000000000000001", "12", "1E-19", "x"])
keys = st.sampled_from(
    [value for name, value in vars(sc).items() if name.isupper() and isinstance(value, str)]
)
likely = st.fixed_dictionaries(
    {},
    optional={
        sc.DEPTH: st.integers(0, 3),
        sc.ITERATION: st.integers(0, 3),
        sc.CELL: st.integers(0, 3),
        sc.REQUEST_MODEL: st.sampled_from(["a", "b"]),
        sc.USAGE_INPUT: st.integers(0, 1000),
        sc.USAGE_OUTPUT: st.integers(0, 1000),
        sc.USAGE_CACHE_READ: st.integers(0, 2000),
        sc.COST_USD: amounts,
        sc.COST_STATUS: st.sampled_from(["priced", "free", "unknown", "demo", "odd"]),
        sc.COST_PRICE: st.sampled_from(
            ['{"input_per_mtok":"1","output_per_mtok":"2","cached_read_per_mtok":"0.1"}', "{}", "x"]
        ),
        sc.QUESTION + ".sha256": st.sampled_from([sha256_text("a"), sha256_text("b"), "c"]),
        sc.MESSAGES_PRIOR: st.integers(-1, 2),
        sc.MESSAGES_ADDED: st.sampled_from(["[]", '[["user","x"]]', "x"]),
    },
)
attributes = likely | st.dictionaries(keys | texts, junk, max_size=4) | junk
bodies = st.sampled_from(["a", "b", "\ud800", "\x00"])
records = st.one_of(
    st.builds(
        lambda i, p, k, t, a: {
            "kind": "s", "span_id": i, "parent_id": p, "span_kind": k, "name": "n", "t": t, "a": a
        },
        ids, st.none() | ids, st.sampled_from(KINDS), times, attributes,
    ),
    st.builds(
        lambda i, t, s, a: {"kind": "e", "span_id": i, "t": t, "status": s, "a": a},
        ids, times, st.sampled_from(["ok", "error", "cancelled"]), attributes,
    ),
    st.builds(lambda i, t, a: {"kind": "ev", "span_id": i, "name": "n", "t": t, "a": a}, ids, times,
    attributes), bodies.map(lambda text: {"kind": "b", "sha256": sha256_text(text), "text": text}),
    st.sampled_from([header(), {"kind": "fin", "t": START_NS, "status": "ok", "counts": {}, "problems": 1}]),
    st.dictionaries(
        st.sampled_from(["kind", "span_id", "parent_id", "span_kind", "name", "t", "a", "status", "seq",
        "text"]), junk | st.sampled_from(["s", "e", "ev", "b", "run", "fin"]), max_size=8,
    ),
)  # fmt: skip
heads = st.sampled_from([header(), header(v=None), header(run_id="other"), {"kind": "nothing"}])
raw_lines = st.binary(max_size=20)


@st.composite
def spools(draw: st.DrawFn) -> bytes:
    """The bytes of a spool: records in some order, with garbage between them now and then."""
    chosen = [draw(heads), *draw(st.lists(records, max_size=12))]
    written = [json.dumps(record).encode("utf-8", "surrogatepass") for record in numbered(chosen)]
    for place, garbage in draw(st.lists(st.tuples(st.integers(0, 12), raw_lines), max_size=2)):
        written.insert(place, garbage)
    return b"\n".join(written) + draw(st.sampled_from([b"\n", b"", b'\n{"seq":99,']))


@contextmanager
def a_home(content: bytes) -> Iterator[Home]:
    with TemporaryDirectory() as folder:
        home = home_in(Path(folder))
        home.spool_file(RUN).write_bytes(content)
        yield home


def everything(view: RunView) -> dict[str, Any]:
    """All that any reader can see of a run."""
    hashes = [sha256_text(text) for text in ("a", "b", "\ud800", "\x00", "c")]
    return {
        "summary": view.summary.to_json(),
        "spans": [(span.to_json(), dict(span.attributes)) for span in view.spans],
        "details": [span_detail(view, span) for span in view.spans],
        "payloads": view.payloads(hashes),
        "events": [view.events(str(number)) for number in range(6)],
    }


@settings(max_examples=LOOKS)
@given(spools())
def test_the_store_says_what_the_spool_says(content: bytes) -> None:
    with a_home(content) as home:
        spooled = everything(SpoolRun(home, RUN).poll())
        assert ingest(home) == IngestReport(runs=(RUN,))
        assert everything(load_run(home, RUN)) == spooled
        assert [run.to_json() for run in list_runs(home)] == [spooled["summary"]]
        json.dumps(spooled, allow_nan=False, ensure_ascii=False).encode("utf-8")


@settings(max_examples=LOOKS // 2)
@given(spools())
def test_twice_is_once_and_a_rebuild_is_equal(content: bytes) -> None:
    with a_home(content) as home:
        ingest(home)
        once = dump(home)
        assert ingest(home).runs == ()
        assert dump(home) == once
        rebuild(home)
        assert dump(home) == once


@settings(max_examples=LOOKS // 2)
@given(spools(), st.sampled_from(KEYS), st.sampled_from(KEYS))
def test_spend_adds_up_however_it_is_grouped(content: bytes, first: str, second: str) -> None:
    with a_home(content) as home:
        run = load_run(home, RUN).summary.to_json()
        report = cost_report(home, [], [first, second])
        assert report["total_usd"] == run["cost_usd"] and report["known_usd"] == run["known_usd"]
        assert report["tokens"] == run["tokens"]
        assert sum(row["tokens"]["total"] for row in report["rows"]) == run["tokens"]["total"]
        unknown = any(row["cost_usd"] is None for row in report["rows"])
        assert (report["total_usd"] is None) == (unknown or report["runs_with_gaps"] == 1)
        assert report["runs_with_gaps"] == (run["problems"] > 0 and not run["demo"])


@given(spools(), st.data())
def test_every_prefix_can_be_read_and_reading_goes_on_from_there(content: bytes, data: st.DataObject) -> None:
    with a_home(b"") as home:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=4)))
        growing, alive = SpoolRun(home, RUN), FileLock(home.liveness_lock(RUN))
        assert alive.try_acquire()
        for cut in cuts:
            home.spool_file(RUN).write_bytes(content[:cut])
            assert everything(growing.poll()) == everything(SpoolRun(home, RUN).poll())
        home.spool_file(RUN).write_bytes(content)
        alive.release()
        assert everything(growing.poll()) == everything(SpoolRun(home, RUN).poll())


@given(spools())
def test_every_span_stands_in_the_tree_once(content: bytes) -> None:
    with a_home(content) as home:
        spans = SpoolRun(home, RUN).poll().spans
        for group_from in (0, 2):
            tops = build_tree(spans, group_from=group_from)
            shown = [item.span.span_id for _, item in walk(tops) if not isinstance(item, Group)]
            assert sorted(shown) == sorted(span.span_id for span in spans)
            assert sum(top.totals.spans for top in tops) == len(spans)
