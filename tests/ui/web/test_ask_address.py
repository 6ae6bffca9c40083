"""The address of the Ask page says what the form is on; what a run will probably take; ways back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core.corpus import Corpus
from rlm_core.limits import Limits
from tests.support.pages import HOSTILE, ask_page, badly_shown, problems, rows_of, shown, texts, use
from traces.home import Home, new_run_id
from traces.locks import FileLock
from traces.prices import set_price
from ui.web import additions, expected
from ui.web.additions import Addition, Files
from ui.web.settings import Settings, save_settings

RUN = "20270115T080000-00000001"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)
    expected._past.clear()  # type: ignore[attr-defined]


@pytest.fixture
def corpus(home: Home) -> Corpus:
    return Corpus.from_texts({"a.txt": "\n\n  First line.\nSecond.", "b.txt": "x" * 3_996}, home.corpora)


def opened(**query: str) -> AppTest:
    page = ask_page(**query).run()
    assert not page.exception, page.exception
    return page


# -- what the form is on


def test_an_address_puts_the_form_on_a_corpus_and_a_question(corpus: Corpus) -> None:
    page = opened(**{"corpus": corpus.corpus_id, "ask-question": "How many?"})
    assert page.selectbox(key="ask-saved").value == corpus.corpus_id
    assert page.text_area(key="ask-question").value == "How many?"
    page.get_by_key("ask-source").set_value("sample").run()
    assert "corpus" not in page.query_params
    page.selectbox(key="ask-sample").select("tickets").run()
    assert page.query_params["sample"] == "tickets"
    assert opened(sample="tickets").selectbox(key="ask-sample").value == "tickets"


@pytest.mark.parametrize("name", ["corpus", "sample", "reading"])
@pytest.mark.parametrize("value", ["zzz", HOSTILE, "../../x", "20270115T080000-00000009"])
def test_what_an_address_names_and_is_not_there_is_one_sentence(name: str, value: str) -> None:
    page = opened(**{name: value})
    (sentence,) = problems(page)
    assert "no" in sentence and badly_shown(page, "HOSTILE") == []


def test_a_question_of_an_address_shows_its_marks(corpus: Corpus) -> None:
    page = opened(**{"ask-question": "a\u202eb"})
    assert page.text_area(key="ask-question").value == "a\\u202eb"


def reading(home: Home, *paths: str) -> tuple[Files, FileLock]:
    """An addition at work."""
    files = Files(home, new_run_id())
    files.folder.mkdir(exist_ok=True)
    lock = FileLock(files.lock)
    assert lock.try_acquire()
    files.write(files.order, asdict(Addition(list(paths))))
    return files, lock


def test_a_reload_goes_on_with_uploads_that_are_being_read(home: Home, corpus: Corpus) -> None:
    files, lock = reading(home, str(home.root / "uploads" / "t" / "a.txt"))
    query = {"reading": files.order.stem, "ask-question": "How many?"}
    page = opened(**query)
    assert "Looking for files" in shown(page) and page.query_params["reading"] == files.order.stem
    assert page.text_area(key="ask-question").value == "How many?"
    files.write(files.end, {"corpus_id": corpus.corpus_id})
    lock.release()
    page.run()
    assert page.query_params["corpus"] == corpus.corpus_id and "reading" not in page.query_params
    assert [row["Document"] for row in rows_of(page, "corpus-preview")] == ["a.txt", "b.txt"]
    assert any(c.value.startswith("Uploaded before this page was loaded anew") for c in page.caption)


def test_a_reload_goes_on_with_a_path_that_is_being_read(home: Home) -> None:
    files, lock = reading(home, "/data/letters")
    page = opened(reading=files.order.stem)
    assert page.text_input(key="ask-path").value == "/data/letters" and "Looking for files" in shown(page)
    lock.release()


# -- preview, past and price


def test_the_preview_tells_documents_sizes_and_first_lines(corpus: Corpus) -> None:
    first, second = rows_of(opened(corpus=corpus.corpus_id), "corpus-preview")
    assert (first["Document"], first["Characters"], first["Begins with"]) == ("a.txt", "23", "First line.")
    assert second["Begins with"] == "x" * 120 + "…"


def test_reading_everything_once_is_priced_by_the_sub_model(home: Home, corpus: Corpus) -> None:
    from decimal import Decimal

    set_price(home, "test/sub", {"input": Decimal(2), "output": Decimal(8)})
    page = opened(corpus=corpus.corpus_id)
    page.text_input(key="ask-sub").set_value("test/sub").run()
    (words,) = [text for text in texts(page) if text.startswith("Read in full by test/sub")]
    assert "about 1,000 tokens (at 4 characters each): $0.002 for the input" in words
    page.text_input(key="ask-sub").set_value("openai/nobody-knows-this").run()
    assert any("The price of openai/nobody-knows-this is unknown" in text for text in texts(page))


def test_without_a_past_there_is_no_estimate_and_that_is_said(corpus: Corpus) -> None:
    assert any(
        text.startswith("No finished run of these models") for text in texts(opened(corpus=corpus.corpus_id))
    )


def test_the_settings_of_the_home_are_where_the_form_begins(home: Home, corpus: Corpus) -> None:
    limits = {"max_iterations": 7, "max_cost_usd": "0.50", "max_tokens": 9_000}
    save_settings(home, Settings("openai/big", "openai/small", limits))
    page = opened(corpus=corpus.corpus_id)
    assert [page.text_input(key=f"ask-{n}").value for n in ("root", "sub", "cost")] == [
        "openai/big", "openai/small", "0.50",
    ]  # fmt: skip
    assert [page.number_input(key=f"ask-max_{n}").value for n in ("iterations", "tokens", "calls")] == [
        7, 9_000, Limits().max_calls,
    ]  # fmt: skip


def test_settings_that_cannot_be_read_are_one_sentence(home: Home) -> None:
    home.settings.write_text("root = 7")
    (sentence,) = problems(opened())
    assert "settings.toml" in sentence


# -- ways back


def test_going_back_to_an_address_without_a_run_leaves_the_run(written: Callable[..., Any]) -> None:
    written(RUN)
    page = opened(run=RUN)
    del page.query_params["run"]
    page.run()
    assert "run" not in page.query_params and "##### Last runs" in shown(page)


# -- additions that were stopped


def test_a_cancelled_addition_says_so_and_while_it_stops_too(home: Home, tmp_path: Path) -> None:
    files, lock = reading(home, "/data/letters")
    page = opened(reading=files.order.stem)
    page.button(key=f"reading-cancel-{files.order.stem}").click().run()
    assert "Stopping: nothing of it will be kept." in texts(page)
    files.write(files.end, {"cancelled": ""})
    lock.release()
    assert "The reading was cancelled: nothing was added." in problems(page.run())
    corpora = ask_page().run().switch_page("pages/corpora.py").run()
    assert ":gray-badge[Cancelled]" in shown(corpora)
    corpora.button(key=f"dismiss-{files.order.stem}").click().run()
    assert additions.all_of(home) == []


def test_drafts_of_a_killed_addition_are_forgotten_with_it(home: Home) -> None:
    files, lock = reading(home, "/data/letters")
    files.now.with_suffix(".now-4711").write_text("{}")
    lock.release()
    additions.forget(home, files.order.stem)
    assert list(files.folder.iterdir()) == []
