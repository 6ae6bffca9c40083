"""The Corpora page: the list, one corpus with its documents and texts, adding, renaming, removing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus, Progress
from tests.support.pages import (
    HOSTILE,
    badly_shown,
    corpora_page,
    problems,
    rows_with,
    shown,
    texts,
    use,
)
from traces.home import Home, new_run_id
from traces.locks import FileLock
from traces.recording import open_recording
from ui.web import additions, stored
from ui.web.additions import Addition, Files

PATIENCE = 60.0
RUN = "20270115T080000-00000001"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def mixed(tmp_path: Path, home: Home) -> Corpus:
    """Two texts, one with a remark, and two files that are not in it."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.txt").write_text("A good text.\n" * 1_000)
    (folder / "old.txt").write_bytes(b"caf\xe9\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7")
    (folder / "empty.txt").touch()
    return Corpus.add([folder], home.corpora, name="Mixed bag")


def opened(corpus: Corpus, **query: str) -> AppTest:
    return corpora_page(corpus=corpus.corpus_id, **query)


def until(page: AppTest, condition: Callable[[AppTest], bool]) -> AppTest:
    """Run the page again, as its fragments do in a browser, until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition(page):
        assert time.monotonic() < deadline, texts(page)
        time.sleep(0.05)
        page.run()
    return page


# -- the list


def test_an_empty_home_says_what_to_do() -> None:
    page = corpora_page()
    assert "There are no corpora yet. Add documents here, or ask about a sample on the Ask page." in texts(
        page
    )
    assert page.expander[0].proto.expanded


def test_the_list_has_a_row_for_each_corpus(mixed: Corpus, home: Home, tmp_path: Path) -> None:
    broken = Corpus.from_texts(["x"], home.corpora)
    (broken.folder / "manifest.json").write_text("{}")
    (tmp_path / "mixed" / "good.txt").write_text("changed")
    rows = {row["Id"]: row for row in rows_with(corpora_page(), "Name")}
    assert {**rows[mixed.corpus_id], "Added": ""} == {
        "Name": "Mixed bag", "Documents": "2", "Characters": "13,005", "Size": "13 KB",
        "Left out": "2", "Changed files": "1", "Added": "", "Id": mixed.corpus_id,
    }  # fmt: skip
    assert rows[broken.corpus_id]["Name"].startswith("(cannot be used: ")
    assert rows[broken.corpus_id]["Documents"] == "unknown"


def test_the_list_is_filtered_by_words(mixed: Corpus, home: Home) -> None:
    Corpus.from_texts(["x"], home.corpora, name="Other")
    page = corpora_page()
    page.text_input(key="corpora-filter").set_value("bag MIX").run()
    assert [row["Name"] for row in rows_with(page, "Name")] == ["Mixed bag"]
    assert "1 of 2 corpora" in [caption.value for caption in page.caption]
    page.text_input(key="corpora-filter").set_value("nothing like it").run()
    assert "No corpus fits this filter." in texts(page)


def test_filters_follow_the_address_of_a_step_back(mixed: Corpus) -> None:
    page = corpora_page()
    page.text_input(key="corpora-filter").set_value("nothing like it").run()
    assert "No corpus fits this filter." in texts(page)
    page.query_params["filter"] = "bag"  # as the browser has it after a step back
    assert [row["Name"] for row in rows_with(page.run(), "Name")] == ["Mixed bag"]
    assert page.text_input(key="corpora-filter").value == "bag"
    page = opened(mixed)
    page.toggle(key=f"documents-remarked-{mixed.corpus_id}").set_value(True).run()
    assert "remarks" in page.query_params and len(rows_with(page, "Document")) == 1
    del page.query_params["remarks"]
    assert len(rows_with(page.run(), "Document")) == 2


def test_many_files_are_only_looked_at_when_the_corpus_is_opened(
    mixed: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mixed" / "good.txt").unlink()
    monkeypatch.setattr(stored, "CHANGES_CHECKED", 1)
    (row,) = rows_with(corpora_page(), "Name")
    assert row["Changed files"] == "open to check"
    page = opened(mixed)
    assert any(text.startswith("good.txt: not where it was.") for text in texts(page))
    assert ":orange-badge[1 file gone]" in shown(page)


# -- one corpus


def test_a_corpus_shows_its_documents_and_the_text_of_one(mixed: Corpus) -> None:
    page = opened(mixed)
    assert rows_with(page, "Document") == [
        {
            "No": "0", "Document": "good.txt", "Kind": "text", "Characters": "13,000",
            "Remarks": "",
        },
        {
            "No": "1", "Document": "old.txt", "Kind": "text", "Characters": "5",
            "Remarks": "read as cp1252 (guessed)",
        },
    ]  # fmt: skip
    assert page.code[0].value == ("A good text.\n" * 1_000)[:5_000]
    assert "3 pieces; characters 1 to 5,000 of 13,000" in [caption.value for caption in page.caption]
    page.session_state[f"document-piece-{mixed.corpus_id}-0-0"] = 3
    assert len(page.run().code[0].value.strip()) == 3_000 - 1
    assert opened(mixed, document="1").code[0].value.strip() == "café"
    assert opened(mixed, document="99").code[0].value.strip() == "café"
    assert opened(mixed, document=HOSTILE).code[0].value.startswith("A good text.")


def test_documents_are_filtered(mixed: Corpus) -> None:
    page = opened(mixed)
    page.toggle(key=f"documents-remarked-{mixed.corpus_id}").set_value(True).run()
    assert [row["Document"] for row in rows_with(page, "Document")] == ["old.txt"]
    page.text_input(key=f"documents-filter-{mixed.corpus_id}").set_value("good").run()
    assert "No document fits this filter." in texts(page)


def test_what_was_left_out_is_listed_with_the_reason(mixed: Corpus) -> None:
    rows = rows_with(opened(mixed, show="Left out"), "File")
    assert [Path(row["File"]).name for row in rows] == ["broken.pdf", "empty.txt"]
    assert all(row["Why"] for row in rows)


def test_slides_are_chosen_by_number(tmp_path: Path, home: Home) -> None:
    from pptx import Presentation

    deck = Presentation()
    for word in ("first", "second", "third"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = f"The {word} slide"
    deck.save(str(tmp_path / "deck.pptx"))
    page = opened(Corpus.add([tmp_path / "deck.pptx"], home.corpora))
    (row,) = rows_with(page, "Document")
    assert row["Kind"] == "presentation, 3 slides"
    chosen = page.number_input[0]
    assert (chosen.label, chosen.value, chosen.max) == ("Slide, from 1 to 3", 1, 3)
    chosen.set_value(2).run()
    assert "The second slide" in page.code[0].value and "third" not in page.code[0].value
    assert page.query_params["section"] == "2"


def test_hundreds_of_documents_are_shown_fifty_at_a_time(home: Home) -> None:
    many = {f"notes/{number:04}.txt": "a note" for number in range(600)}
    page = opened(Corpus.from_texts(many, home.corpora), document="400")
    names = [row["Document"] for row in rows_with(page, "Document")]
    assert (len(names), names[0]) == (50, "notes/0400.txt")  # the page of the document in the address
    assert "401 to 450 of 600" in [caption.value for caption in page.caption]


def test_a_file_that_has_changed_is_said_and_its_text_is_not_shown(mixed: Corpus, tmp_path: Path) -> None:
    (tmp_path / "mixed" / "good.txt").write_text("another text")
    page = opened(mixed)
    assert ":orange-badge[1 file changed]" in shown(page)
    (sentence,) = problems(page)
    assert "has changed since" in sentence and not page.code


@pytest.mark.parametrize("ref", ["0123456789abcdef", "../../x", "a\0b", HOSTILE])
def test_an_unknown_corpus_is_one_sentence(ref: str) -> None:
    page = corpora_page(corpus=ref)
    (sentence,) = problems(page)
    assert sentence.startswith("There is no corpus ") and badly_shown(page, "HOSTILE") == []


def test_a_broken_corpus_is_said_and_can_be_removed(mixed: Corpus, home: Home) -> None:
    (mixed.folder / "manifest.json").write_text("{}")
    page = opened(mixed)
    (sentence,) = problems(page)
    assert "manifest" in sentence
    page.button(key="corpus-remove-button").click().run()
    page.button(key="corpus-remove-sure").click().run()
    assert Corpus.list(home.corpora) == []


def test_hostile_names_and_texts_stand_only_in_plain_elements(home: Home) -> None:
    corpus = Corpus.from_texts({HOSTILE: HOSTILE, "empty HOSTILE": ""}, home.corpora, name=HOSTILE)
    for page in (corpora_page(), opened(corpus), opened(corpus, show="Left out", name="HOSTILE")):
        assert "HOSTILE" in shown(page) and badly_shown(page, "HOSTILE") == []
        assert not any(mark in text for text in texts(page) for mark in "\x1b\u202e")


# -- ask, rename, remove


def test_ask_about_it_goes_to_the_form_with_it_chosen(mixed: Corpus, home: Home) -> None:
    Corpus.from_texts(["newer"], home.corpora)
    page = opened(mixed)
    page.button(key="corpus-ask-button").click().run()
    assert page.selectbox(key="ask-saved").value == mixed.corpus_id
    assert "Mixed bag · 2 documents, 13,005 characters" in page.selectbox(key="ask-saved").options[1]


def test_a_corpus_gets_another_name(mixed: Corpus) -> None:
    page = opened(mixed)
    page.text_input(key=f"corpus-name-{mixed.corpus_id}").set_value("Letters")
    page.button(key="corpus-rename").click().run()
    assert "Letters" in texts(page) and "Mixed bag" not in texts(page)
    page.text_input(key=f"corpus-name-{mixed.corpus_id}").set_value(" ")
    page.button(key="corpus-rename").click().run()
    (sentence,) = problems(page)
    assert sentence.startswith("The name of a corpus is empty") and "Letters" in texts(page)


def test_an_address_of_a_document_that_is_not_there_says_so(mixed: Corpus) -> None:
    words = "There is no document 99 in this corpus; this is document 1."
    assert words in texts(opened(mixed, document="99"))
    assert words not in texts(opened(mixed, document="1"))


def test_removing_asks_and_names_the_runs(mixed: Corpus, home: Home) -> None:
    record(home, mixed.corpus_id, close=True)
    page = opened(mixed, show="Runs")
    assert [row["Question"] for row in rows_with(page, "Question")] == ["Which?"]
    page.button(key="corpus-remove-button").click().run()
    assert any("1 recorded run used it." in text and RUN in text for text in texts(page))
    page.button(key="corpus-remove-keep").click().run()
    assert len(Corpus.list(home.corpora)) == 1
    page.button(key="corpus-remove-button").click().run()
    page.button(key="corpus-remove-sure").click().run()
    assert Corpus.list(home.corpora) == [] and "corpus" not in page.query_params
    assert ":green-badge[Removed]" in shown(page) and mixed.corpus_id in texts(page)


def test_a_corpus_of_a_run_at_work_stays(mixed: Corpus, home: Home) -> None:
    with record(home, mixed.corpus_id, close=False):
        page = opened(mixed)
        page.button(key="corpus-remove-button").click().run()
        page.button(key="corpus-remove-sure").click().run()
    (sentence,) = problems(page)
    assert f"run {RUN} is at work" in sentence.lower() or RUN in sentence
    assert len(Corpus.list(home.corpora)) == 1


def record(home: Home, corpus_id: str, *, close: bool) -> Any:
    """A run over a corpus, ended or at work."""
    recording = open_recording(home, RUN, {sc.CORPUS_ID: corpus_id})
    run = recording.recorder.start("run", sc.NAME_RUN, None, {sc.RUN_PATH: "0", sc.CORPUS_ID: corpus_id})
    run.text(sc.QUESTION, "Which?")
    if close:
        run.end("ok")
        recording.close("ok")
    return recording


# -- adding


def added(page: AppTest) -> bool:
    return ":green-badge[Added]" in shown(page)


def test_what_was_added_is_said_and_the_page_stays(tmp_path: Path, home: Home) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("text")
    page = corpora_page()
    page.get_by_key("corpora-source").set_value("Path").run()
    page.text_input(key="corpora-path-0").set_value(str(tmp_path / "docs"))
    page.text_input(key="corpora-name-0").set_value("My docs")
    until(page.button(key="corpora-add").click().run(), added)
    (info,) = Corpus.list(home.corpora)
    assert "My docs: 1 document, 4 characters." in texts(page) and "corpus" not in page.query_params
    assert additions.all_of(home) == []
    assert added(page.run())
    page.button(key=f"added-open-{info.corpus_id}").click().run()
    assert page.query_params["corpus"] == info.corpus_id
    page.button(key="corpora-all").click().run()
    assert "corpus" not in page.query_params
    page.button(key=f"added-dismiss-{info.corpus_id}").click().run()
    assert not added(page)


def test_uploads_with_a_broken_one_are_added(home: Home) -> None:
    page = corpora_page()
    files = [("a.txt", b"text"), ("bad.pdf", b"%PDF-1.7"), ("../![HOSTILE](x).txt", b"x")]
    page.file_uploader[0].set_value([(name, content, "text/plain") for name, content in files])
    until(page.button(key="corpora-add").click().run(), added)
    assert any(text.endswith(": 2 documents, 5 characters, 1 file left out.") for text in texts(page))
    assert badly_shown(page, "HOSTILE") == []
    (info,) = Corpus.list(home.corpora)
    page = corpora_page(corpus=info.corpus_id, show="Left out")
    assert [row["File"] for row in rows_with(page, "File")] == ["bad.pdf"]
    assert badly_shown(page, "HOSTILE") == []


@pytest.mark.parametrize(
    ("path", "encoding", "said"),
    [
        ("", "", "Choose files, or give the path of a file or folder."),
        ("/nowhere/at/all", "", "/nowhere/at/all does not exist"),
        (".", "klingon", "there is no text encoding 'klingon'"),
    ],
)
def test_what_cannot_be_added_is_one_sentence(path: str, encoding: str, said: str) -> None:
    page = corpora_page()
    page.get_by_key("corpora-source").set_value("Path").run()
    page.text_input(key="corpora-path-0").set_value(path)
    page.text_input(key="corpora-encoding-0").set_value(encoding)
    until(
        page.button(key="corpora-add").click().run(), lambda page: any(said in text for text in texts(page))
    )
    assert "corpus" not in page.query_params


def addition(home: Home, what: Addition) -> Files:
    files = Files(home, new_run_id())
    files.folder.mkdir(exist_ok=True)
    files.write(files.order, asdict(what))
    return files


def test_a_failed_addition_is_told_until_it_is_dismissed(home: Home) -> None:
    files = addition(home, Addition(["/data/![HOSTILE](x)"]))
    files.write(files.end, {"error": "![HOSTILE](y) is broken"})
    page = corpora_page()
    assert "/data/![HOSTILE](x): ![HOSTILE](y) is broken" in texts(page)
    assert badly_shown(page, "HOSTILE") == []
    page.button(key=f"dismiss-{files.order.stem}").click().run()
    assert "HOSTILE" not in shown(page)


def test_an_addition_at_work_is_a_bar_on_every_session(home: Home) -> None:
    files = addition(home, Addition(["/data/letters"], "Letters"))
    files.write(files.now, asdict(Progress(12, 2_000, 5_000, 10_000, "![HOSTILE](x).txt")))
    lock = FileLock(files.lock)
    assert lock.try_acquire()
    page = corpora_page()
    assert "Reading: 12 of 2,000 files" in shown(page)
    assert "![HOSTILE](x).txt" in texts(page) and badly_shown(page, "HOSTILE") == []
    page.button(key=f"reading-cancel-{files.order.stem}").click().run()
    assert files.cancel.exists()
    files.write(files.end, {"cancelled": ""})
    lock.release()
    assert "Reading" not in shown(page.run())
