"""The Strategies page: one order for several strategies, and the table of their runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from tests.support.pages import (
    HOSTILE,
    ask_page,
    badly_shown,
    choose_rows,
    open_row,
    problems,
    rows_of,
    runs_page,
    shown,
    texts,
    use,
)
from tests.support.way_runs import asked_by
from traces.home import Home
from traces.locks import FileLock
from ui.web import launch
from ui.web.order import StartFiles

FIRST, SECOND, THIRD = (f"20270115T080000-0000000{n}" for n in (1, 2, 3))


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def strategies_page(**query: str) -> AppTest:
    """The page as a new session meets it at an address."""
    page = ask_page().switch_page("pages/strategies.py")
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def table(page: AppTest) -> list[dict[str, str]]:
    return rows_of(page, "strategies-rows")


def filled(home: Home) -> AppTest:
    corpus = Corpus.from_texts({"a.txt": "a b"}, home.corpora).corpus_id
    page = strategies_page()
    page.get_by_key("ask-source").set_value("saved").run()
    page.selectbox(key="ask-saved").select(corpus)
    return page


def test_one_order_holds_the_strategies_in_their_order(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[launch.Order] = []

    def start(_home: Home, order: launch.Order, _ticket: str) -> str:
        started.append(order)
        return FIRST

    monkeypatch.setattr(launch, "start_run", start)
    page = filled(home)
    page.text_area(key="ask-question").set_value("How many?")
    page.multiselect(key="strategies-chosen").set_value(["direct", "rlm", "retrieve"])
    page.number_input(key="ask-passages").set_value(3)
    page.text_input(key="strategies-expected").set_value("four")
    page.button(key="strategies-start").click().run()
    (order,) = started
    ways = [dict(order.way), *map(dict, order.further)]
    assert ways == [
        {"strategy": "direct", "passages": 3},
        {"passages": 3},
        {"strategy": "retrieve", "passages": 3},
    ]
    named = page.query_params["runs"]
    assert named in (f"{FIRST},{SECOND},{THIRD}", [f"{FIRST},{SECOND},{THIRD}"])
    assert page.query_params["expected"] in ("four", ["four"])


def test_nothing_starts_without_a_strategy_or_a_question(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "start_run", lambda *_: pytest.fail("it was started"))
    page = filled(home)
    page.multiselect(key="strategies-chosen").set_value([])
    page.button(key="strategies-start").click().run()
    assert sorted(problems(page)) == ["No strategy is chosen.", "The question is empty."]


def test_each_strategy_is_a_row_that_says_whether_it_is_right(home: Home) -> None:
    asked_by(home, FIRST, None, "four")
    asked_by(home, SECOND, "retrieve", HOSTILE)
    asked_by(home, THIRD, "direct", None, **{sc.FITS: False, sc.ERROR_MESSAGE: f"does not fit: {HOSTILE}"})
    page = strategies_page(runs=f"{FIRST},{SECOND},{THIRD}", expected="Four.", match="normalised")
    assert [(row["Strategy"], row["Right"], row["Status"]) for row in table(page)] == [
        ("rlm", "right", "ok"),
        ("retrieve", "wrong", "ok"),
        ("direct", "", "does not fit"),
    ]
    assert any(text.startswith("does not fit: ![HOSTILE]") for text in texts(page))
    assert badly_shown(page, "HOSTILE") == []


def test_answers_of_the_demo_model_are_never_called_right(home: Home) -> None:
    asked_by(home, FIRST, "rlm", "four", **{sc.DEMO: True})
    page = strategies_page(runs=FIRST, expected="four")
    assert [row["Right"] for row in table(page)] == [""]
    said = next(text for text in texts(page) if text.startswith("The demo model answered, no language model"))
    assert said.endswith("none is called right or wrong.")


def test_rows_lead_to_the_run_and_two_of_them_to_the_comparison(home: Home) -> None:
    for run_id, strategy in ((FIRST, "rlm"), (SECOND, "direct")):
        asked_by(home, run_id, strategy, "four")
    page = strategies_page(runs=f"{FIRST},{SECOND}")
    assert "Compare the two" in shown(choose_rows(page, "strategies-rows", 0, 1))
    assert open_row(page, "strategies-rows", 1).query_params["run"] in (SECOND, [SECOND])


def test_runs_that_are_still_to_come_wait_and_bear_their_strategy(home: Home) -> None:
    files = StartFiles(home, FIRST)
    files.request.parent.mkdir()
    files.write_order(launch.Order("How many?", "c", "r", "s", way={}, further=({"strategy": "direct"},)))
    lock = FileLock(files.lock)
    assert lock.try_acquire()
    page = strategies_page(runs=f"{FIRST},{SECOND}")
    waiting = [(row["Strategy"], row["Status"]) for row in table(page)]
    lock.release()
    files.leave_error("there is no corpus c")
    ended = strategies_page(runs=f"{FIRST},{SECOND}")
    assert waiting == [("rlm", "waiting"), ("direct", "waiting")]
    assert [row["Status"] for row in table(ended)] == ["not started"] * 2
    assert problems(ended) == ["There is no corpus c."]


def test_chosen_runs_of_the_list_can_be_put_side_by_side(home: Home) -> None:
    for run_id, strategy in ((FIRST, "rlm"), (SECOND, "direct")):
        asked_by(home, run_id, strategy, "four")
    page = runs_page(chosen=f"{FIRST},{SECOND}")
    page.button(key="runs-several-button").click().run()
    assert [row["Strategy"] for row in table(page)] == ["rlm", "direct"]


@pytest.mark.full
def test_a_process_carries_them_out_in_turn(home: Home, tmp_path: Path) -> None:
    from tests.ui.web.test_launch import wait_for

    corpus = Corpus.from_texts({"a.txt": "a b", "b.txt": "c d"}, home.corpora).corpus_id
    further = ({"strategy": "retrieve"}, {"strategy": "direct"})
    order = launch.Order("How many documents mention a?", corpus, "demo/root", "demo/sub", further=further)
    ticket = launch.start_run(home, order, launch.new_ticket())
    ids = launch.series_ids(ticket, 3)
    wait_for(lambda: not StartFiles(home, ticket).request.exists())
    page = strategies_page(runs=",".join(ids))
    assert [(row["Strategy"], row["Status"]) for row in table(page)] == [
        ("rlm", "ok"),
        ("retrieve", "ok"),
        ("direct", "ok"),
    ]
