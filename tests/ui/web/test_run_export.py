"""Runs as files out of the app: from the head of the Run page, and of runs chosen on the Runs page."""

from __future__ import annotations

import io
import zipfile

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pages import problems, runs_page, texts, use
from tests.support.recorded_runs import WIDE, wide_run
from tests.support.run_pages import run_page
from tests.support.way_runs import asked_by
from traces.exporters import FORMATS
from traces.home import Home
from ui.web import run_export

RUN, OTHER = "20270115T080000-00000001", "20270115T080000-00000002"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def pressed(page: AppTest, key: str) -> AppTest:
    """The page after a button was pressed."""
    page.button(key=key).click().run()
    assert not page.exception, page.exception
    return page


def test_each_format_has_a_button_that_makes_its_file(home: Home) -> None:
    page = run_page(wide_run(home, 20))
    shown = {markdown.value for markdown in page.markdown}
    assert {form.words for form in FORMATS.values()} <= shown
    made = pressed(page, "run-export-html").session_state["export-made"]
    assert made.name == f"{WIDE}.html" and b"Seventeen documents." in made.data
    assert any(text.startswith(f"{WIDE}.html, ") for text in texts(page))
    made = pressed(page, "run-export-csv").session_state["export-made"]
    assert made.name == f"{WIDE}.csv" and b"refund of order 1" in made.data


def test_the_button_of_another_format_is_another_one(home: Home) -> None:
    def download(page: AppTest) -> str:
        (button,) = page.download_button
        return str(button.id)

    page = pressed(run_page(wide_run(home, 20)), "run-export-html")
    first = download(page)
    assert download(pressed(page, "run-export-csv")) != first
    assert download(pressed(page, "run-export-html")) == first


def test_files_of_different_formats_have_different_names(home: Home) -> None:
    page = run_page(wide_run(home, 20))
    made = [pressed(page, f"run-export-{form}").session_state["export-made"].name for form in FORMATS]
    assert len(set(made)) == len(FORMATS)
    assert {f"{WIDE}.jsonl", f"{WIDE}.rlms.jsonl"} <= set(made)


def test_a_folder_is_packed(home: Home) -> None:
    made = pressed(run_page(wide_run(home, 20)), "run-export-parquet").session_state["export-made"]
    assert made.name == f"{WIDE}-parquet.zip"
    with zipfile.ZipFile(io.BytesIO(made.data)) as packed:
        assert {"run.parquet", "span.parquet"} <= set(packed.namelist())


def test_chosen_runs_leave_together(home: Home) -> None:
    for run_id in (RUN, OTHER):
        asked_by(home, run_id, None, "four")
    page = pressed(runs_page(chosen=f"{RUN},{OTHER}"), "runs-export-button")
    assert "**Export of 2 runs**" in [markdown.value for markdown in page.markdown]
    made = pressed(page, "runs-export-html").session_state["export-made"]
    with zipfile.ZipFile(io.BytesIO(made.data)) as packed:
        assert sorted(packed.namelist()) == [f"{RUN}.html", f"{OTHER}.html"]
    page = pressed(page, "runs-export-close")
    assert "export-made" not in page.session_state and problems(page) == []


def test_what_is_too_large_to_be_made_here_names_the_command(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_export, "_MOST_BYTES", 1_000)
    page = pressed(run_page(wide_run(home, 20)), "run-export-html")
    (said,) = problems(page)
    assert said.startswith("The record has ") and said.endswith(
        f"rlmscope export {WIDE} --format html --out PATH."
    )
    assert "export-made" not in page.session_state


def test_a_file_of_another_run_is_not_offered(home: Home) -> None:
    page = pressed(run_page(wide_run(home, 20)), "run-export-html")
    asked_by(home, RUN, None, "four")
    page.query_params["run"] = RUN
    page.run()
    assert not any(".html, " in text for text in texts(page))
