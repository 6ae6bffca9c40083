"""A run of this engine that went out as OTLP comes back as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from traces.collecting import Collector
from traces.exporters.otlp import export
from traces.home import Home
from traces.imported import import_facts
from traces.importers.importing import Imported, import_paths
from traces.importers.otlp import read
from traces.importers.source import Source
from traces.importers.writing import write_run
from traces.otlp.spans import from_json
from traces.reading import RunView, SpoolRun, list_runs, load_run
from traces.rows import SpanRow
from ui.web.samples import install_examples

FIXTURES = Path(__file__).parents[1] / "fixtures" / "logs"
#: What is about the record and not about the run.
OWN = {"run_id", "seq", "trust", "attributes"}


@pytest.mark.full
@pytest.mark.parametrize("how", ["imported", "collected"])
def test_an_exported_run_comes_back_with_its_tree_texts_tokens_and_costs(tmp_path: Path, how: str) -> None:
    home, other = (Home.resolve(tmp_path / name) for name in ("home", "other"))
    install_examples(home)
    for summary in list_runs(home, replays=True):
        out = tmp_path / f"{summary.run_id}.json"
        export(home, [summary.run_id], out)
        run_id = (imported if how == "imported" else collected)(other, out)
        same_run(load_run(home, summary.run_id), SpoolRun(other, run_id).poll())


@pytest.mark.parametrize("log", ["rlms/rlms_0.1.3.jsonl", "dspy/prediction.json", "otlp/openinference.json"])
def test_an_imported_run_comes_back_with_its_marks_and_with_what_it_lacks(tmp_path: Path, log: str) -> None:
    """A number that was derived or is missing does not become a reported one on its way."""
    home, other = (Home.resolve(tmp_path / name) for name in ("home", "other"))
    for number, run in enumerate(import_paths(home, [FIXTURES / log])):
        assert isinstance(run, Imported)
        out = tmp_path / f"{number}.json"
        export(home, [run.run_id], out)
        ours, back = (
            SpoolRun(*where).poll() for where in ((home, run.run_id), (other, imported(other, out)))
        )
        assert [marks_of(row) for row in back.spans] == [marks_of(row) for row in ours.spans]
        first, second = import_facts(ours), import_facts(back)
        assert first is not None and second is not None and set(first.missing) <= set(second.missing)
        assert (second.engine, second.problems) == (first.engine, first.problems)
        assert back.summary.question == ours.summary.question


def marks_of(row: SpanRow) -> tuple[Any, ...]:
    why = row.attributes.get(sc.TRUST_WHY)
    return row.kind, row.trusted, why, row.tokens, row.cost_usd, row.cost_status, row.seconds, row.start_told


def imported(home: Home, path: Path) -> str:
    (run,) = read(Source(path, path.name))
    return write_run(home, run, path.name, 0).run_id


def collected(home: Home, path: Path) -> str:
    collector = Collector(home)
    spans = sorted(from_json(path.read_bytes()).spans, key=lambda span: span.end_ns or 0)
    for start in range(0, len(spans), 50):
        collector.take(spans[start : start + 50])
    (done,) = collector.close()
    return done.run_id


def same_run(ours: RunView, back: RunView) -> None:
    assert back.summary.problems == 0 and len(back.spans) == len(ours.spans) > 100
    assert back.summary.untold_calls == 0
    for name in ("question", "answer", "status", "tokens", "known_usd", "iterations", "sub_calls", "demo"):
        assert getattr(back.summary, name) == getattr(ours.summary, name), name
    for row in ours.spans:
        other = back.by_id[row.span_id]
        assert other.own_tokens == row.own_tokens
        for name in set(row._fields) - OWN - ({"tokens"} if row.tokens is None else set()):
            assert getattr(other, name) == getattr(row, name), (row.span_id, name)
        hashes = {key: value for key, value in row.attributes.items() if key.endswith(".sha256")}
        assert {key: other.attributes.get(key) for key in hashes} == hashes
        assert back.payloads(list(hashes.values())) == ours.payloads(list(hashes.values()))
        assert other.attributes.get(sc.REQUEST_HASH) == row.attributes.get(sc.REQUEST_HASH)
