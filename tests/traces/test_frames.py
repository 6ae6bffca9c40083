"""`traces.open_store`: the record of a home in data frames."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

import traces
from rlm_core import semconv as sc
from rlm_core.errors import InputError, RecordError
from rlm_core.telemetry import as_json
from tests.traces.records import OTHER, ROOT, RUN, START_NS, Home, fill_run, home_in, record_run, recording
from traces import opinions
from traces.frames import OpenStore
from traces.importers.foreign import ForeignRun, ForeignSpan, TokenUse, reported
from traces.importers.writing import write_run


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_in(tmp_path)


@pytest.fixture
def store(home: Home) -> OpenStore:
    """Two closed runs; of one a person said something."""
    record_run(home, calls=2, cost="0.1")
    record_run(home, OTHER, calls=1, cost="0.2", answer="43")
    opinions.judge(home, OTHER, verdict="right", expected="43")
    opinions.tag(home, OTHER, ["good"])
    return traces.open_store(home.root)


def test_runs_are_rows_with_what_people_said_of_them(store: OpenStore) -> None:
    runs = store.runs().set_index("run_id")
    assert list(runs["answer"]) == ["43", "42"] and list(runs.loc[OTHER, "tags"]) == ["good"]
    assert runs.loc[OTHER, "verdict"] == "right" and pd.isna(runs.loc[RUN, "verdict"])
    assert runs.loc[RUN, "cost_usd"] == Decimal("1.2") and runs["usd"].sum() == pytest.approx(2.4)
    assert runs.loc[RUN, "start"] == pd.Timestamp(START_NS, unit="ns", tz="UTC")


def test_spans_and_calls_have_the_types_that_calculating_needs(store: OpenStore) -> None:
    spans, calls = store.spans(), store.calls()
    assert list(spans["run_id"].unique()) == [RUN, OTHER]
    assert str(calls["input_tokens"].dtype) == str(spans["seq"].dtype) == "Int64"
    assert str(calls["start"].dtype) == "datetime64[ns, UTC]" and str(spans["orphan"].dtype) == "boolean"
    sums = calls.groupby(["run_id", "kind"])["usd"].sum()
    assert sums[RUN, "sub_call"] == pytest.approx(0.2) and sums[OTHER, "root_call"] == 1
    assert sum(calls["cost_usd"], Decimal(0)) == Decimal("2.4")
    assert calls["input_tokens"].sum() == 2 * 100 + 3 * 7


def test_unknown_is_missing_and_no_zero(home: Home) -> None:
    marks = as_json({"tokens": "missing", "cost": "missing", "start": "missing", "seconds": "missing"})
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        made.recorder.start("sub_call", "chat s", run, {sc.TRUST: marks}).end()
        run.end()
    (call,) = traces.open_store(home.root).calls("last").to_dict("records")
    for name in ("input_tokens", "output_tokens", "cost_usd", "usd", "start", "seconds", "model"):
        assert pd.isna(call[name]), name
    assert (call["tokens_trust"], call["start_trust"], call["status"]) == ("missing", "missing", "ok")


def test_tokens_and_iterations_of_which_nothing_is_told_are_missing_and_told_zeros_stay(home: Home) -> None:
    silent, told = ForeignSpan("root_call", texts={sc.RESPONSE: "4"}), reported(TokenUse(7, 2))
    for key, below in (
        ("silent", [silent]),
        ("partly", [silent, ForeignSpan("root_call", tokens=told)]),
        (
            "turns",
            [ForeignSpan("iteration", children=[ForeignSpan("root_call", tokens=reported(TokenUse(9, 0)))])],
        ),
    ):
        top = ForeignSpan("run", texts={sc.QUESTION: key}, children=below)
        write_run(home, ForeignRun("droste", "droste", key, top), "x.jsonl", 1_000)
    runs = traces.open_store(home.root).runs().set_index("question")
    counts = runs[["input_tokens", "output_tokens", "iterations", "untold_calls"]]
    assert [None if pd.isna(one) else one for one in counts.loc["silent"]] == [None, None, None, 1]
    assert [None if pd.isna(one) else one for one in counts.loc["partly"]] == [7, 2, None, 1]
    assert list(counts.loc["turns"]) == [9, 0, 1, 0]


def test_texts_come_when_asked_for(store: OpenStore) -> None:
    assert "prompt" not in store.calls()
    calls = store.calls([RUN], texts=True)
    assert list(calls["response"].dropna()) == ["response 0", "response 1"]
    assert list(calls["prompt"].dropna()) == ["prompt 0", "prompt 1"]
    view = store.run(RUN)
    named = view.spans[0].attributes[f"{sc.QUESTION}.sha256"]
    assert store.text(RUN, named) == "How many?" and store.text(RUN, "0" * 64) is None


def test_a_run_that_goes_on_is_read_as_far_as_it_is(store: OpenStore, home: Home) -> None:
    later = "20260102T030407-0000abcf"
    made = recording(home, later)
    fill_run(made)
    assert list(store.runs()["status"]) == ["running", "ok", "ok"]
    assert len(store.calls(later)) == 3 and set(store.spans("last")["run_id"]) == {later}
    made.close("ok")
    assert list(store.runs()["status"]) == ["ok"] * 3


def test_sql_answers_and_changes_nothing(store: OpenStore, home: Home) -> None:
    sql = "SELECT kind, count(*) AS n FROM span WHERE run_id = ? GROUP BY kind ORDER BY n DESC LIMIT 1"
    assert store.sql(sql, [RUN]).to_dict("records") == [{"kind": "sub_call", "n": 2}]
    for query in ("DELETE FROM run", "SELECT 1; SELECT 2", "SET threads = 1", f"ATTACH '{home.store}'", ""):
        with pytest.raises(InputError, match="one SELECT"):
            store.sql(query)
    for query in (
        "SELEC",
        "SELECT nothing FROM run",
        "SELECT ?",
        "WITH x AS (DELETE FROM run RETURNING 1) FROM x",
    ):
        with pytest.raises(InputError, match="SQL|answered"):
            store.sql(query)
    assert len(store.runs()) == 2


@pytest.mark.parametrize("of", ["store", "empty"])
def test_sql_reaches_no_file_no_setting_and_no_variable(
    store: OpenStore, home: Home, tmp_path: Path, of: str
) -> None:
    asked = store if of == "store" else traces.open_store(Home.resolve(tmp_path / "empty").root)
    beside, packed = tmp_path / "secrets.csv", tmp_path / "secrets.parquet"
    beside.write_text("word\nsesame\n")
    secrets = pd.DataFrame({"word": ["sesame"]})
    secrets.to_parquet(packed)
    assert len(asked.sql("FROM run")) == (2 if of == "store" else 0)
    before = sorted(tmp_path.rglob("*"))
    for query in (
        f"FROM read_csv('{beside}')",
        f"FROM '{packed}'",
        f"FROM read_text('{beside}')",
        f"FROM glob('{tmp_path}/*')",
        f"FROM read_blob('{home.store}')",
        f"FROM read_duckdb('{home.store}')",
        f"FROM read_blob('{asked.home.store}.tmp/x')",
        f"FROM enable_logging('QueryLog', storage='file', storage_path='{tmp_path}/log')",
        "FROM enable_profiling()",
        "FROM read_text('http://127.0.0.1:9/')",
        "FROM secrets",
        "FROM tables",
        f"FROM query($$COPY (SELECT 1) TO '{tmp_path}/out.csv'$$)",
        "SELECT getenv('HOME')",
    ):
        with pytest.raises(InputError, match="answered"):
            asked.sql(query)
    assert sorted(tmp_path.rglob("*")) == before
    assert len(asked.runs()) == (2 if of == "store" else 0)


def test_what_is_not_there_is_said(store: OpenStore, home: Home, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no run"):
        store.spans("nosuch")
    with pytest.raises(InputError, match="There is no folder"):
        traces.open_store(tmp_path / "nosuch")
    assert not (tmp_path / "nosuch").exists()
    empty = traces.open_store(Home.resolve(tmp_path / "empty").root)
    assert empty.sql("SELECT * FROM run").empty
    assert empty.runs().empty and empty.spans().empty and "usd" in empty.calls()
    with pytest.raises(InputError, match="no runs yet"):
        empty.run()


def test_a_closed_store_reads_nothing(store: OpenStore, home: Home) -> None:
    with traces.open_store(home.root) as second:
        assert len(second.runs()) == 2
    with pytest.raises(RecordError, match="was closed"):
        second.runs()
    assert len(store.runs()) == 2


def test_without_a_folder_the_home_is_that_of_the_commands(
    store: OpenStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    assert traces.open_store().home == home
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = traces.nosuch


def test_naming_the_package_loads_nothing_heavy() -> None:
    heavy = "{'duckdb', 'pandas', 'pyarrow', 'opentelemetry.sdk'}"
    code = f"import sys, traces; print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_store_says_which_record_it_is_until_it_is_closed(home: Home) -> None:
    with traces.open_store(home.root) as store:
        assert repr(store) == f"<record of {home.root}>"
    assert repr(store) == "<record that was closed>"
