"""Imported runs on every page: what is not told is unknown, what cannot be done is switched off, and why."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from tests.support.command import ROOT
from tests.support.foreign_runs import NO_ROOT, UNREADABLE, WRONG, no_times, some_times, write_foreign
from tests.support.pages import ask_page, problems, rows_of, rows_with, runs_page, shown, texts, use
from tests.support.run_pages import facts, looked_at, named, run_page
from traces.cost import cost_report
from traces.exporters.own import export
from traces.home import Home
from traces.importers.foreign import ForeignRun, ForeignSpan
from traces.importers.importing import import_paths
from traces.opinions import Opinions
from traces.reading import RunView, list_runs, load_run
from traces.subtotals import below
from ui.cli import cli
from ui.web import spend_groups
from ui.web.csv_file import csv_text
from ui.web.runs_table import in_order

LOGS = ROOT / "tests" / "fixtures" / "logs" / "samples"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def view(home: Home) -> RunView:
    """A run of which some numbers are told."""
    return load_run(home, write_foreign(home, some_times()).run_id)


@pytest.fixture
def untimed(home: Home) -> RunView:
    """A run of which no time is told."""
    return load_run(home, write_foreign(home, no_times()).run_id)


def page_of(path: str, **query: str) -> AppTest:
    page = ask_page().switch_page(f"pages/{path}.py")
    for name, value in query.items():
        page.query_params[name] = value
    return looked_at(page)


def badges(page: AppTest) -> str:
    return "\n".join(element.value for element in page.markdown)


# -- the Run page


def test_the_head_says_where_it_comes_from_what_is_missing_and_what_cannot_be_done(view: RunView) -> None:
    page = run_page(view.run_id)
    assert ":blue-badge[imported: rlms]" in badges(page)
    said = "\n".join(texts(page))
    assert "Made by rlms 0.1.3, read from log.jsonl. It cannot be played again." in said
    assert f"· {NO_ROOT}" in said and f"· {UNREADABLE}" in said
    assert "Switched off: twins, tests of other replies or code, proofs, resuming." in said
    assert ":orange-badge[1 part unreadable]" in badges(page)
    told = facts(page)
    assert told["Started"] == "2026-05-28 20:26:40 UTC (derived)"
    assert told["Tokens below"] == "at least 20 in, 6 out"
    assert not [button for button in page.button if "Resume" in button.label]


def test_every_number_of_a_span_has_its_mark(view: RunView) -> None:
    first = [span for span in view.spans if span.kind == "sub_call"]
    told = facts(run_page(view.run_id, first[0].span_id))
    assert (told["Tokens in"], told["Tokens out"]) == ("10 (reported)", "3 (reported)")
    assert told["Began after"] == "unknown (not in the record)"
    page = run_page(view.run_id, first[2].span_id)
    told = facts(page)
    assert "known to be wrong" in "\n".join(texts(page)) and WRONG in "\n".join(texts(page))
    assert "0" not in (told["Tokens"], told["Time"])


def test_another_reply_cannot_be_tested_and_why_stands_there(view: RunView) -> None:
    page = run_page(view.run_id, named(view, "sub_call").span_id)
    assert not [one for one in page.get("page_link") if "Test this sub-answer" in one.proto.label]
    why = "Test this sub-answer: not for a run of another engine, which cannot be played again."
    assert why in [caption.value for caption in page.caption]


def test_what_has_no_times_has_no_time_line(untimed: RunView) -> None:
    page = run_page(untimed.run_id)
    page.query_params["pane"] = "flame"
    looked_at(page)
    assert "When they took place is not in the record, so there is no time line" in "\n".join(texts(page))


def test_what_has_some_times_has_bars_for_those(view: RunView) -> None:
    page = run_page(view.run_id)
    page.query_params["pane"] = "flame"
    looked_at(page)
    assert "took place is not in the record: these have no bar." in "\n".join(texts(page))


@pytest.mark.parametrize("name", ["tree", "overview", "steps", "coverage", "findings"])
def test_no_view_of_a_run_shows_0_for_what_is_not_told(untimed: RunView, name: str) -> None:
    page = page_of("run", run=untimed.run_id, view=name)
    assert problems(page) == []
    for text in ("0 in, 0 out", "0 ms", "$0"):
        assert text not in "\n".join(texts(page)), text


def test_a_limit_that_is_not_recorded_is_not_said_to_have_been_kept(untimed: RunView) -> None:
    said = "\n".join(texts(page_of("run", run=untimed.run_id, view="overview")))
    assert "Whether a limit ended the run is not recorded." in said


def test_coverage_without_documents_has_no_figures(untimed: RunView) -> None:
    page = page_of("run", run=untimed.run_id, view="coverage")
    assert "The record does not say which documents this run was asked over." in "\n".join(texts(page))
    assert "Read by a model" not in facts(page)


@pytest.mark.full  # a run is really asked
def test_a_run_of_ours_says_which_corpus_it_needs(home: Home, tmp_path: Path) -> None:
    document = tmp_path / "a.txt"
    document.write_text("a text")
    other = Home.resolve(tmp_path / "other")
    asked = CliRunner().invoke(cli, ["ask", "How many?", str(document), "--json", "--home", str(other.root)])
    run_id, out = json.loads(asked.stdout)["run_id"], tmp_path / "run.jsonl"
    export(other, [run_id], out)
    import_paths(home, [out])
    corpus_id = load_run(home, run_id).summary.corpus_id
    said = "\n".join(texts(run_page(run_id)))
    assert f"Its corpus {corpus_id} is not in this home: until it is added" in said


# -- other pages


def test_diagnosing_offers_only_what_needs_no_replay(view: RunView) -> None:
    page = page_of("diagnose", run=view.run_id)
    assert ":orange-badge[cannot be replayed]" in badges(page)
    off = [one for one in page.button if one.label in ("Test this sub-answer", "Find minimal cause")]
    assert [one.disabled for one in off] == [True, True]
    assert "Make a twin" not in [one.label for one in page.button]
    assert sum("This run was read from a record of rlms" in text for text in texts(page)) == 2


def test_two_imported_runs_are_compared_without_offering_a_twin(view: RunView, untimed: RunView) -> None:
    page = page_of("compare", a=view.run_id, b=untimed.run_id)
    assert problems(page) == []
    assert not [one for one in page.button if "twin" in one.label or "cause" in one.label]
    rows = {next(iter(row.values())): [*row.values()][1:] for row in rows_of(page, "compare-figures")}
    assert rows["Time"] == ["unknown", "unknown", "unknown"]
    assert rows["Tokens in"] == ["≥ 20", "unknown", "unknown"]


def test_the_list_names_the_format_filters_by_it_and_knows_no_time_that_is_not_told(
    view: RunView, untimed: RunView
) -> None:
    rows = {row["Tags"]: row for row in rows_of(runs_page(), "runs-table")}
    assert set(rows) == {"imported: rlms", "imported: dspy"}
    assert (rows["imported: dspy"]["Time"], rows["imported: dspy"]["Started"]) == ("unknown", "unknown")
    assert len(rows_of(runs_page(kind="imported"), "runs-table")) == 2
    assert len(rows_of(runs_page(q="dspy"), "runs-table")) == 1


def test_spend_says_how_many_calls_are_derived_or_not_told(view: RunView) -> None:
    said = "\n".join(texts(page_of("spend")))
    assert "Tokens of 4 of 6 calls are not in the record: sums of them are a lower bound." in said
    assert "Tokens or cost of 2 of 6 calls are derived, not reported." in said
    assert "6 calls; at least 20 in, 6 out" in said
    assert "root unknown, sub at least $0.000017" in said and "$0," not in said


def test_side_by_side_names_the_engine_and_not_a_strategy_of_ours(view: RunView, untimed: RunView) -> None:
    page = page_of("strategies", runs=f"{view.run_id},{untimed.run_id}")
    rows = rows_of(page, "strategies-rows")
    assert [(row["Strategy"], row["Tokens"], row["Time"]) for row in rows] == [
        ("rlms", "≥ 26", "unknown"),
        ("dspy", "unknown", "unknown"),
    ]


# -- taking runs in


def upload(page: AppTest, *files: tuple[str, bytes]) -> AppTest:
    page.get_by_key("runs-import-button").click()
    looked_at(page)
    page.file_uploader[0].set_value([(name, content, "application/json") for name, content in files])
    looked_at(page)
    page.get_by_key("runs-import-start").click()
    return looked_at(page)


def test_records_are_uploaded_and_what_was_no_record_is_said(home: Home) -> None:
    log = LOGS / "official_rlms_0.1.3.jsonl"
    page = upload(runs_page(), (log.name, log.read_bytes()), ("notes.txt", b"hello"))
    (run,) = list_runs(home)
    said = "\n".join(texts(page))
    assert "1 new run." in said and log.name in said
    assert any(text.startswith("notes.txt: ") for text in problems(page))
    (link,) = (one for one in page.get("page_link") if one.proto.label == ":blue[Open]")
    assert run.run_id in link.proto.query_string
    assert len(rows_of(page, "runs-table")) == 1


def test_an_upload_of_what_is_here_already_adds_nothing(home: Home) -> None:
    log = LOGS / "official_rlms_0.1.3.jsonl"
    for _ in range(2):
        page = upload(runs_page(), (log.name, log.read_bytes()))
    assert len(list_runs(home)) == 1
    assert "0 new runs, 1 was here already." in "\n".join(texts(page))


def test_an_empty_home_says_that_runs_can_be_imported() -> None:
    assert "Runs of other engines can be read from their logs" in shown(runs_page())


# -- what a record leaves out


@pytest.fixture
def silent(home: Home) -> RunView:
    """A run that holds no call at all, as records that were kept without texts."""
    top = ForeignSpan("run", texts={sc.QUESTION: "How many?", sc.ANSWER: "8"})
    return load_run(home, write_foreign(home, ForeignRun("droste", "droste", "no calls", top)).run_id)


def test_a_run_without_any_call_on_record_did_not_cost_nothing(silent: RunView, home: Home) -> None:
    run = silent.summary
    assert (run.cost_usd, run.cost_status, run.untold_calls, run.has_gaps) == (None, "unknown", 1, True)
    assert (run.complete, run.problems) == (True, 0)
    told = facts(run_page(silent.run_id))
    assert (told["Tokens"], told["Cost"], told["Sub-calls"]) == ("unknown", "unknown", "none on record")
    under = below(silent, silent.spans[0])
    assert under is not None and (under["cost_usd"], under["untold_calls"]) == (None, 1)
    report = cost_report(home, [], ["model"])
    assert (report["total_usd"], report["runs_with_gaps"]) == (None, 1)


def test_lists_of_runs_do_not_count_0_sub_calls_where_none_is_on_record(
    silent: RunView, untimed: RunView
) -> None:
    rows = {row["Answer"]: (row["Sub-calls"], row["Failed"]) for row in rows_with(runs_page(), "Sub-calls")}
    assert rows == {"8": ("?", "?"), "7": ("1", "0")}
    runs = [untimed.summary, silent.summary]
    for descending in (True, False):
        for column in ("Sub-calls", "Failed"):
            assert in_order(reversed(runs), column, descending, Opinions()) == runs


def test_a_record_that_is_unreadable_in_part_is_not_complete(view: RunView) -> None:
    assert (view.summary.problems, view.summary.complete) == (1, False)


def test_the_overview_does_not_say_that_nothing_was_asked_or_cost(silent: RunView) -> None:
    page = page_of("run", run=silent.run_id, view="overview")
    said = "\n".join(texts(page))
    assert said.count("No sub-call is on record.") == 2 and "No call of a model is on record." in said
    assert "has been" not in said
    (free,) = (one.value for one in page.caption if one.value.startswith("Without a limit"))
    assert [word for word in free.split(": ")[1].split(", ") if "unknown" not in word] == []


def test_calls_of_which_nothing_is_told_are_not_the_dearest(untimed: RunView) -> None:
    page = page_of("run", run=untimed.run_id, view="overview")
    said = "\n".join(texts(page))
    assert "What calls cost, and how many tokens they took, is not in the record." in said
    assert not rows_of(page, "dearest")


def test_the_csv_of_spend_is_empty_where_nothing_is_told(
    view: RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(
        spend_groups, "csv_button", lambda columns, rows, **_: given.append(csv_text(columns, rows))
    )
    page_of("spend")
    rows = {row["role"]: row for row in csv.DictReader(io.StringIO(given[-1]))}
    names = ("calls", "tokens_in", "tokens_out", "untold_calls", "derived_calls")
    assert [rows["root"][name] for name in names] == ["2", "", "", "2", "0"]
    assert [rows["sub"][name] for name in names] == ["4", "20", "6", "2", "2"]
