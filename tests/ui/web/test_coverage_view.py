"""The view `coverage` of the Run page: figures, strips, the parts of a document and what read them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.telemetry import as_json
from sample_data.generators.examples import BROKEN
from tests.support.command import ROOT
from tests.support.pages import (
    HOSTILE,
    ask_page,
    badly_shown,
    elements,
    open_row,
    problems,
    rows_of,
    texts,
    use,
)
from tests.support.patchy_run import PATCHY, patchy_run
from tests.support.recorded_runs import WIDE, recording
from tests.support.run_pages import facts, looked_at
from traces.coverage import HOWS, Part, coverage
from traces.home import Home
from traces.reading import load_run
from ui.figures import size
from ui.web.strips_view import MOST, coarse

RANK = {how: place for place, how in enumerate((*HOWS, "never"))}


@pytest.fixture(scope="module")
def patchy(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("patchy") / "home")
    home.create()
    patchy_run(home)
    return home


@pytest.fixture
def home(patchy: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    return use(patchy, monkeypatch)


def coverage_page(run: str = PATCHY, **query: str) -> AppTest:
    page = ask_page().switch_page("pages/run.py")
    for name, value in {"run": run, "view": "coverage", **query}.items():
        page.query_params[name] = value
    return looked_at(page)


def strips(page: AppTest) -> list[dict[str, Any]]:
    """The rows of the strips on the page."""
    protos = (getattr(element, "proto", None) for element in elements(page))
    drawn = (one for one in protos if getattr(one, "component_name", "") == "rlmscope.strips")
    return [row for one in drawn for row in json.loads(one.json)["rows"]]


def asked(page: AppTest, name: str) -> str | None:
    """What stands in the address under a name."""
    value = page.query_params.get(name)
    return value[0] if isinstance(value, list) else value


def number_of(home: Home, name: str) -> str:
    found = coverage(load_run(home, PATCHY))
    return str(next(one.number for one in found.documents if one.name == name))


def test_the_figures_are_those_of_the_record(home: Home) -> None:
    found, shown = coverage(load_run(home, PATCHY)), facts(coverage_page())
    assert shown["Read by a model"] == f"{found.read_share:.0%}"
    assert shown["Documents"] == f"{len(found.documents)}"
    assert shown["Sent to sub-calls"].endswith(f"({size(found.sizes['sent'])})")


def test_what_went_only_to_calls_that_failed_is_told_apart_from_what_was_read(home: Home) -> None:
    shutil.copy(ROOT / "sample_data" / "examples" / f"{BROKEN}.jsonl", home.spool)
    page = coverage_page(BROKEN, docs="unanswered")
    shown = facts(page)
    assert shown["Read by a model"] == ">99%" and shown["Sent, never answered"].startswith("<1%")
    assert len(strips(page)) == 2 and all(row["cells"][0] == "0%" for row in strips(page))
    assert {part[2] for row in strips(page) for part in row["parts"]} <= {"unanswered", "shown"}
    number = next(row["key"] for row in strips(page) if row["cells"][2] == "100%")
    captions = [caption.value for caption in coverage_page(BROKEN, document=number).caption]
    assert any("read this document, 1 call that got it failed; " in caption for caption in captions)
    assert "Sent, never answered" not in facts(coverage_page())


def test_documents_stand_least_read_first_a_page_at_a_time(home: Home) -> None:
    page = coverage_page()
    found = coverage(load_run(home, PATCHY))
    assert [row["name"] for row in strips(page)] == [one.name for one in found.least_first[:50]]
    assert strips(page)[0]["cells"] == ["0%", "0%", "0%", "100%"]
    assert any(f"1 to 50 of {len(found.documents)}" in caption.value for caption in page.caption)


def test_the_lists_of_what_was_missed_and_words_of_a_name_are_in_the_address(home: Home) -> None:
    page = coverage_page(docs="untouched", name="es .")
    assert {row["name"] for row in strips(page)} == {"slides.pptx", "rates.csv", "minutes.docx"}
    assert any(caption.value.startswith("3 of ") for caption in page.caption)
    page.text_input(key=f"coverage-words-{PATCHY}").set_value("RATES")
    assert len(strips(looked_at(page))) == 1 and asked(page, "name") == "RATES"
    assert texts(coverage_page(name="no such words"))[-2] == "No document fits this filter."


def test_a_part_shows_its_text_and_the_spans_that_read_it(home: Home) -> None:
    number = number_of(home, "long_text.txt")
    page = coverage_page(document=number)
    parts = rows_of(page, f"coverage-parts-{number}")
    assert parts[1] == {"Bytes": "20,000 to 21,500", "Size": "1.5 KB", "Fate": "sent to a sub-call"}
    open_row(page, f"coverage-parts-{number}", 1)
    assert (asked(page, "from"), asked(page, "to")) == ("20000", "21500")
    read = rows_of(page, f"coverage-readings-{number}")
    assert [row["Read as"] for row in read] == ["given to code", "sent to a sub-call"]
    assert read[1]["Span"].startswith("llm_query")
    (link,) = (e for e in elements(page) if e.type == "page_link" and "Open the document" in e.proto.label)
    assert "from=20000" in link.proto.query_string
    corpus = Corpus.load(home.corpora, coverage(load_run(home, PATCHY)).corpus_id or "")
    protos = (getattr(element, "proto", None) for element in elements(page))
    (shown,) = (one for one in protos if getattr(one, "component_name", "") == "rlmscope.passage")
    assert json.loads(shown.json)["passage"] == corpus.text(int(number), 20_000, 21_500)


def test_a_reader_leads_to_its_span(home: Home) -> None:
    number = number_of(home, "contract.pdf")
    page = coverage_page(document=number)
    assert rows_of(page, f"coverage-parts-{number}")[0]["Place"] == "page 1"
    open_row(page, f"coverage-readings-{number}", 1)
    assert "span" in page.query_params and asked(page, "view") in (None, "tree")


def test_what_the_address_asks_for_and_is_not_there_is_one_sentence(home: Home) -> None:
    (sentence,) = problems(coverage_page(document="999"))
    assert sentence.startswith("There is no document “999” in this run: they are 0 to ")
    assert problems(coverage_page(docs="none")) == [
        "There is no list “none” of documents; these are all of them."
    ]
    (sentence,) = problems(coverage_page(**{"document": "0", "from": "5", "to": "x"}))
    assert sentence == "There is no part “5 to x” of this document."


def test_a_run_whose_corpus_is_gone_keeps_its_coverage_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = use(hostile_home(tmp_path), monkeypatch)
    page = coverage_page(WIDE, document="0", **{"from": "0", "to": "40"})
    assert "The corpus of this run is not here (any more), so that the text cannot be shown." in texts(page)
    assert badly_shown(page, "HOSTILE") == [] and len(strips(page)) == 2
    assert any("was not searched for" in text for text in texts(page))
    assert home.corpora.is_dir()


def hostile_home(folder: Path) -> Home:
    """A run whose documents and sections have hostile names."""
    home = Home(folder / "home")
    home.create()
    table = {"documents": [{"name": HOSTILE, "bytes": 40, "sections": [[HOSTILE, HOSTILE, 0, 40]]}] * 2}
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, sc.CORPUS_ID: HOSTILE})
        run.text(sc.CORPUS, json.dumps(table))
        cell = made.recorder.start("cell", HOSTILE, run, {sc.DEPTH: 0})
        call = made.recorder.start("sub_call", HOSTILE, cell, {sc.DEPTH: 0})
        call.end("ok", {sc.SOURCE_RANGES: as_json({"how": HOSTILE, "ranges": [[0, 0, 40]], "why": HOSTILE})})
        cell.end("ok")
        run.end("ok")
        made.close("ok")
    return home


def test_a_run_without_a_corpus_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = use(Home(tmp_path / "home"), monkeypatch)
    home.create()
    with recording(home) as made:
        made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0}).end("ok")
        made.close("ok")
    page = coverage_page(WIDE)
    assert "The record does not say which documents this run was asked over." in texts(page)
    assert facts(page)["Read by a model"] == "unknown" and strips(page) == []


FATES = st.lists(st.tuples(st.integers(1, 50), st.sampled_from(sorted(RANK))), min_size=1, max_size=700)


@given(FATES, st.integers(1, MOST))
def test_a_strip_in_steps_covers_all_and_loses_nothing_that_was_read(
    fates: list[tuple[int, str]], steps: int
) -> None:
    parts: list[Part] = []
    for length, how in fates:
        start = parts[-1].end if parts else 0
        parts.append(Part(start, start + length, how))
    drawn = coarse(parts, min(steps, parts[-1].end))
    assert drawn[0].start == 0 and drawn[-1].end == parts[-1].end and len(drawn) <= steps
    assert all(one.end == other.start for one, other in zip(drawn, drawn[1:], strict=False))
    for part in parts:
        over = [one for one in drawn if one.start < part.end and one.end > part.start]
        assert min(RANK[one.how] for one in over) <= RANK[part.how]
