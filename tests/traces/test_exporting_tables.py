"""Parquet and CSV of runs, read back by the programs that they are for."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from rlm_core.telemetry import sha256_text
from tests.traces.records import OTHER, RUN, START_NS, Home, fill_run, home_in, record_run, recording
from traces import opinions
from traces.exporters import export_runs, parquet
from traces.exporters.csv import COLUMNS
from traces.exporters.files import ExportDone
from traces.exporters.redaction import Redactor
from traces.exporters.secrets import redacted
from traces.reading import load_run

KEY = "sk-proj-0123456789abcdefghijklmn"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_in(tmp_path)


@pytest.fixture
def keyed(home: Home) -> Home:
    """A home with a run in which a key stands in a prompt (cut off in its preview), an error, an event, an
    answer, and the words of a person."""
    with recording(home) as made:
        recorder = made.recorder
        run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, sc.RUN_PATH: "0"})
        run.text(sc.QUESTION, "=2+2?")
        call = recorder.start("sub_call", "chat s", run, {sc.REQUEST_MODEL: "s", sc.RUN_PATH: "0"})
        prompt = "x" * 190 + f" {KEY} tells"
        call.text(sc.PROMPT, prompt)
        call.set({sc.OI_INPUT: f"{'x' * 190} {KEY[:9]}"})
        call.event(sc.EV_NOTICE, {"said": f"password: {KEY}", "names": sha256_text(prompt)})
        call.fail("AuthError", f"the key {KEY} is refused")
        run.text(sc.ANSWER, f"it is {KEY}")
        run.end("ok", {sc.STOP_REASON: "final"})
    opinions.judge(home, RUN, verdict="wrong", expected=KEY, note=f"he gave {KEY} away")
    opinions.tag(home, RUN, ["leaks"])
    return home


def export(home: Home, form: str, out: Path, *run_ids: str) -> ExportDone:
    return export_runs(form, home, run_ids or (RUN,), out)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pd.read_parquet(folder / f"{table}.parquet").to_dict("records")
    return found


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_parquet_has_a_file_per_table_and_duckdb_reads_its_types(home: Home, tmp_path: Path) -> None:
    record_run(home, calls=3, cost="0.000000000000000001")
    done = export(home, "parquet", tmp_path / "p")
    assert done.path == tmp_path / "p" and (done.redacted, done.notes) == (0, ())
    assert sorted(file.stem for file in done.path.iterdir()) == sorted(parquet.TABLES)
    with duckdb.connect() as con:
        spans = f"FROM '{done.path / 'span.parquet'}'"
        types = dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {spans})").fetchall())
        costs = con.execute(f"SELECT cost_usd {spans} WHERE kind = 'sub_call'").fetchall()
        began = con.execute(f"SELECT min(start)::TIMESTAMP::VARCHAR {spans}").fetchall()
    assert types["cost_usd"] == "DECIMAL(38,18)" and types["input_tokens"] == "BIGINT"
    assert types["start"].startswith("TIMESTAMP") and types["orphan"] == "BOOLEAN"
    assert costs == [(Decimal("0.000000000000000001"),)] * 3
    assert began == [(str(pd.Timestamp(START_NS + 1000, unit="ns").floor("us")),)]


def test_parquet_holds_all_that_readers_see_of_a_run(home: Home, tmp_path: Path) -> None:
    record_run(home)
    view = load_run(home, RUN)
    folder = export(home, "parquet", tmp_path / "p").path
    spans = rows(folder, "span")
    assert [row["span_id"] for row in spans] == [span.span_id for span in view.spans]
    assert [json.loads(row["attributes"]) for row in spans] == [dict(span.attributes) for span in view.spans]
    texts = {row["sha256"]: row["text"] for row in rows(folder, "payload")}
    cited = [
        value for span in view.spans for key, value in span.attributes.items() if key.endswith(".sha256")
    ]
    assert cited and texts == view.payloads(cited)
    (run,) = rows(folder, "run")
    assert (run["run_id"], run["answer"], run["known_usd"]) == (RUN, "42", view.summary.known_usd)
    assert rows(folder, "opinion") == [] and list(run["tags"]) == []


def test_no_key_leaves_in_any_column(keyed: Home, tmp_path: Path) -> None:
    done = export(keyed, "parquet", tmp_path / "p")
    tables = {name: rows(done.path, name) for name in parquet.TABLES}
    assert done.redacted > 0 and KEY[:9] not in repr(tables)
    (payload,) = [row for row in tables["payload"] if "tells" in row["text"]]
    assert payload["text"] == f"{'x' * 190} [redacted] tells"
    assert payload["sha256"] == sha256_text(payload["text"])
    call = json.loads(tables["span"][1]["attributes"])
    assert call[f"{sc.PROMPT}.sha256"] == payload["sha256"]
    (event,) = tables["span_event"]
    assert json.loads(event["attributes"])["names"] == payload["sha256"]
    (opinion,) = tables["opinion"]
    assert (opinion["verdict"], opinion["note"]) == ("wrong", "he gave [redacted] away")
    assert list(tables["run"][0]["tags"]) == ["leaks"]


def test_texts_that_differ_in_a_key_only_are_one_afterwards(home: Home, tmp_path: Path) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        run.text(sc.QUESTION, f"use {KEY}")
        run.text(sc.ANSWER, f"use {KEY}x")
        run.end()
    done = export(home, "parquet", tmp_path / "p")
    (payload,) = rows(done.path, "payload")
    (span,) = rows(done.path, "span")
    facts = json.loads(span["attributes"])
    assert facts[f"{sc.QUESTION}.sha256"] == facts[f"{sc.ANSWER}.sha256"] == payload["sha256"]


@pytest.mark.parametrize("quote", ['"', "'", '\\"', '\\\\\\"', ""])
def test_a_named_key_is_found_however_deep_its_quotes_are_escaped(quote: str) -> None:
    value = "0123456789abcdef0123"
    clean, places = redacted(f"{{{quote}api_key{quote}: {quote}{value}{quote}}}")
    assert value not in clean and places == 1 and "api_key" in clean


@pytest.mark.parametrize("before", ["", '"', "\n", "\t", "\u201c", "\u00e9"])
def test_a_key_is_found_behind_escapes_of_json(before: str) -> None:
    clean, places = redacted(json.dumps([f"it is{before} {KEY}", f"{before}{KEY}"]))
    assert (KEY[3:] in clean, places) == (False, 2)


@pytest.mark.parametrize("key", [KEY, "ghp_" + "a1B2c3" * 6, "AIzaSy" + "b2C4" * 8, "npm_" + "x9Y" * 12])
def test_of_a_key_that_is_cut_off_no_part_is_left_that_is_of_use(key: str) -> None:
    for kept in range(8, len(key) + 1):
        preview = f"{'x' * (199 - kept)} {key[:kept]}"
        assert key[:8] not in Redactor().text(preview), kept
        row = json.dumps([{"preview": preview, "size": 300}], separators=(",", ":"))
        assert key[:8] not in redacted(row)[0], kept
        middle = Redactor().text(f"['{'x' * (90 - kept)} {key[:kept]}...{key[kept:]} {'y' * 60}']")
        assert key[:12] not in middle and key[-16:] not in middle, kept


def test_words_that_begin_as_keys_do_stay() -> None:
    text = "sk-learn..., hf_transformers_model, npm_config_cache, risk-2024-assessment-final-1, ASIAPACIFIC"
    assert redacted(text) == (text, 0)


def test_what_no_column_can_hold_is_said_and_no_failure(home: Home, tmp_path: Path) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, sc.PREVIEW: "half \ud800"})
        run.text(sc.QUESTION, "all of \udcff it")
        run.end()
    folder = export(home, "parquet", tmp_path / "p").path
    assert rows(folder, "span")[0]["preview"] == "half \\ud800"
    assert cells(export(home, "csv", tmp_path / "c.csv").path) == []


def test_many_runs_of_many_rows_are_written_in_parts(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_ROWS", 3)
    for run_id in (RUN, OTHER):
        record_run(home, run_id, calls=5)
    folder = export(home, "parquet", tmp_path / "p", OTHER, RUN).path
    spans = pd.read_parquet(folder / "span.parquet")
    assert list(spans["run_id"].unique()) == [OTHER, RUN]
    assert list(spans["seq"]) == [
        span.seq for run_id in (OTHER, RUN) for span in load_run(home, run_id).spans
    ]


def test_a_row_of_the_csv_file_is_a_call_with_all_of_its_texts(home: Home, tmp_path: Path) -> None:
    record_run(home, cost="0.00000012")
    found = cells(export(home, "csv", tmp_path / "c.csv").path)
    assert [tuple(row) for row in found] == [COLUMNS] * 3
    assert [row["kind"] for row in found] == ["root_call", "sub_call", "sub_call"]
    last = found[-1]
    assert (last["prompt"], last["response"]) == ("prompt 1", "response 1")
    assert (last["input_tokens"], last["output_tokens"], last["cost_usd"]) == ("7", "3", "0.00000012")
    assert (last["cached_read_tokens"], last["tokens_trust"]) == ("", "")
    began = pd.Timestamp(last["start"])
    assert began.tz is not None and began.year == 2023
    for reader in (pd.read_csv, lambda path: duckdb.sql(f"FROM read_csv('{path}')").df()):
        assert list(reader(str(tmp_path / "c.csv"))["run_id"]) == [RUN] * 3


def test_the_prompt_of_a_root_call_is_what_is_new_in_its_messages(home: Home, tmp_path: Path) -> None:
    with recording(home) as made:
        recorder = made.recorder
        texts = {text: recorder.payload(text) for text in ("be good", "how many?", "and now?")}
        run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, sc.RUN_PATH: "0"})
        for prior, new in ((0, [("system", "be good"), ("user", "how many?")]), (3, [("user", "and now?")])):
            added = json.dumps([[role, texts[text]] for role, text in new])
            facts = {sc.MESSAGES_PRIOR: prior, sc.MESSAGES_ADDED: added, sc.RUN_PATH: "0"}
            recorder.start("root_call", "chat r", run, facts).end()
        run.end()
    first, second = cells(export(home, "csv", tmp_path / "c.csv").path)
    assert (first["messages_before"], first["prompt"]) == ("0", "[system]\nbe good\n\n[user]\nhow many?")
    assert (second["messages_before"], second["prompt"]) == ("3", "[user]\nand now?")


@pytest.fixture
def hostile() -> Iterator[list[str]]:
    yield ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", '";=1', "a\x00b"]


def test_no_cell_is_a_formula_and_no_text_leaves_its_cell(
    home: Home, tmp_path: Path, hostile: list[str]
) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        for text in hostile:
            call = made.recorder.start("sub_call", text, run, {sc.REQUEST_MODEL: text})
            call.text(sc.PROMPT, text)
            call.text(sc.RESPONSE, text)
            call.end()
        run.end()
    found = cells(export(home, "csv", tmp_path / "c.csv").path)
    assert [row["prompt"].removeprefix("'") for row in found] == hostile
    values = [value for row in found for value in row.values()]
    assert not [value for value in values if value[:1] in tuple("=+-@\t\r\n＝")]


def test_a_run_that_goes_on_is_written_as_far_as_it_is_and_said(home: Home, tmp_path: Path) -> None:
    made = recording(home)
    fill_run(made)
    for form, out in (("csv", tmp_path / "c.csv"), ("parquet", tmp_path / "p")):
        done = export(home, form, out)
        assert done.notes == (f"{RUN} still goes on: what is on record so far was written.",)
    made.close("ok")
    assert len(cells(tmp_path / "c.csv")) == 3 and len(rows(tmp_path / "p", "span")) == 6


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_place_is_new_or_nothing_is_written(home: Home, tmp_path: Path, form: str) -> None:
    record_run(home)
    taken, nowhere = tmp_path / "mine", tmp_path / "no" / "where"
    taken.write_text("mine")
    for out, words in ((taken, "exists already"), (nowhere, "cannot be written")):
        with pytest.raises(InputError, match=words):
            export(home, form, out)
    with pytest.raises(InputError, match="There is no run"):
        export(home, form, tmp_path / "new", RUN, "20200101T000000-00000000")
    assert taken.read_text() == "mine" and sorted(path.name for path in tmp_path.iterdir()) == [
        "home",
        "mine",
    ]


def test_files_of_an_export_are_for_their_owner_only(home: Home, tmp_path: Path) -> None:
    record_run(home)
    file, folder = export(home, "csv", tmp_path / "c.csv").path, export(home, "parquet", tmp_path / "p").path
    assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
