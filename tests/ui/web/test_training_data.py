"""Training data out of runs that are chosen on the Runs page."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pages import problems, runs_page, texts, use
from tests.support.replays import recorded
from tests.support.way_runs import asked_by
from traces.home import Home
from traces.opinions import judge

WRONG = "20270115T080000-00000001"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def made_of(*run_ids: str) -> AppTest:
    """The page once data of these runs was made."""
    page = runs_page(chosen=",".join(run_ids))
    page.button(key="runs-training-button").click().run()
    return page.button(key="runs-training-make").click().run()


def test_right_runs_are_packed_with_their_card_and_others_named(home: Home) -> None:
    view = recorded(home, "x = 7", "FINAL(x)", sub=lambda _: "")
    judge(home, view.run_id, verdict="right")
    asked_by(home, WRONG, None, "four")
    page = made_of(view.run_id, WRONG)
    assert any(text.startswith("1 example of 1 run: trajectories 1; ") for text in texts(page))
    assert f"{WRONG}: nobody said whether it is right" in texts(page)
    with zipfile.ZipFile(io.BytesIO(page.session_state["runs-training-made"].data)) as packed:
        assert packed.namelist() == ["training.jsonl", "training.card.md"]
        (line,) = packed.read("training.jsonl").splitlines()
    assert json.loads(line)["messages"][-1]["role"] == "assistant"
    assert "Training data" not in " ".join(
        block.value for block in page.button(key="runs-training-close").click().run().markdown
    )


def test_runs_without_an_example_make_no_file(home: Home) -> None:
    asked_by(home, WRONG, None, "four")
    page = made_of(WRONG)
    assert "Nothing was made: none of 1 run holds an example." in texts(page) and problems(page) == []
    assert page.session_state["runs-training-made"].data is None
