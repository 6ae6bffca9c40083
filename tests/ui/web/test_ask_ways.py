"""The Ask page: how a run is to go about its question, repeats beside the form, orders of several runs."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError
from tests.support.command import ROOT
from tests.support.pages import ask_page, open_row, problems, rows_of, texts, use
from tests.support.way_runs import asked_by
from traces.home import Home
from traces.reading import load_run
from ui.web import launch
from ui.web.order import Order, StartFiles, orders, series_ids

RUNS = series_ids("20270115T080000-00000001", 3)
SCHEMA = '{"type": "object"}'


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[launch.Order]:
    """The orders of this test; nothing is really started."""
    found: list[launch.Order] = []

    def start(_home: Home, order: launch.Order, _ticket: str) -> str:
        found.append(order)
        return RUNS[0]

    monkeypatch.setattr(launch, "start_run", start)
    return found


@pytest.fixture
def page(home: Home) -> AppTest:
    """The page with a corpus chosen and a question put."""
    corpus = Corpus.from_texts({"a.txt": "a b"}, home.corpora).corpus_id
    page = ask_page().run()
    page.get_by_key("ask-source").set_value("saved").run()
    page.selectbox(key="ask-saved").select(corpus)
    page.text_area(key="ask-question").set_value("How many?")
    return page


def press_start(page: AppTest) -> AppTest:
    return page.button(key="ask-start").click().run()


def test_the_order_says_how_to_go_about_the_question(page: AppTest, started: list[launch.Order]) -> None:
    page.selectbox(key="ask-strategy").select("retrieve+rlm").run()
    page.number_input(key="ask-passages").set_value(4)
    page.number_input(key="ask-repeat").set_value(3)
    page.number_input(key="ask-root-window").set_value(9000)
    page.multiselect(key="ask-tools").set_value(["calculate"])
    page.checkbox(key="ask-cache").check()
    page.text_area(key="ask-at").set_value("1:root=openai/small\n\n2:sub=openai/tiny")
    page.text_area(key="ask-schema").set_value(SCHEMA)
    press_start(page)
    (order,) = started
    assert order.way == {
        "strategy": "retrieve+rlm",
        "cache": True,
        "root_window": 9000,
        "passages": 4,
        "tools": ["calculate"],
        "at": ["1:root=openai/small", "2:sub=openai/tiny"],
        "schema": SCHEMA,
    }
    assert order.further == (order.way, order.way)


def test_what_is_not_usual_is_said_beside_the_folded_fields(page: AppTest) -> None:
    page.selectbox(key="ask-strategy").select("direct")
    page.number_input(key="ask-repeat").set_value(2).run()
    said = [caption.value for caption in page.caption]
    assert "More options: strategy direct, asked 2 times." in said


def test_tools_are_offered_where_a_sub_model_is_asked(page: AppTest) -> None:
    page.multiselect(key="ask-tools").set_value(["calculate"])
    page.selectbox(key="ask-strategy").select("direct").run()
    assert not [field for field in page.multiselect if field.key == "ask-tools"]


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("ask-schema", "answer.json", "The schema must be a JSON object, beginning with {."),
        ("ask-schema", "{", "The schema is not JSON: "),
        ("ask-at", "small", "--at 'small' names no depth; "),
    ],
)
def test_what_cannot_be_is_said_and_nothing_starts(
    page: AppTest, started: list[launch.Order], field: str, value: str, sentence: str
) -> None:
    page.text_area(key=field).set_value(value)
    press_start(page)
    assert started == [] and [found for found in problems(page) if found.startswith(sentence)]


def test_repeats_stand_beside_the_form_with_how_far_they_agree(home: Home) -> None:
    for run_id, answer in zip(RUNS, ("four", "Four.", "five"), strict=True):
        asked_by(home, run_id, None, answer)
    page = ask_page(run=RUNS[1], series=",".join(RUNS)).run()
    listed = [(row["Run"], row["Answer"]) for row in rows_of(page, "ask-series-rows")]
    assert listed == [("1", "four"), ("2 (below)", "Four."), ("3", "five")]
    assert {"2 of 3 finished runs agree.", "2 × four", "1 × five"} <= set(texts(page))
    assert open_row(page, "ask-series-rows", 2).query_params["run"] in (RUNS[2], [RUNS[2]])


def test_repeats_are_remembered_from_their_start(
    page: AppTest, started: list[launch.Order], home: Home
) -> None:
    page.number_input(key="ask-repeat").set_value(3)
    asked_by(home, RUNS[0], None, "four")
    press_start(page)
    assert [row["Status"] for row in rows_of(page, "ask-series-rows")] == ["ok", "not started", "not started"]
    page.button(key="ask-close").click().run()
    assert rows_of(page, "ask-series-rows") == [] and "series" not in page.query_params


def test_an_order_of_several_runs_gives_each_its_id_and_way(home: Home) -> None:
    order = Order(
        "How many?", "c", "demo/root", "demo/sub", further=({"strategy": "direct"}, {"cache": True})
    )
    made = orders(home, order, RUNS[0])
    assert [one.run_id for one in made] == list(RUNS)
    options = [one.options for one in made]
    assert [one and (one.strategy, one.cache) for one in options] == [
        ("rlm", False),
        ("direct", False),
        ("rlm", True),
    ]


def test_an_order_that_another_version_wrote_is_refused_in_a_sentence(home: Home) -> None:
    order = Order("How many?", "c", "demo/root", "demo/sub", way={"magic": 1})
    with pytest.raises(InputError, match="in a way that is not known here"):
        orders(home, order, RUNS[0])


# -- resuming


@pytest.fixture
def dead(home: Home) -> str:
    """A run that ended without an answer."""
    return asked_by(home, RUNS[0], None, None)


def run_page(run_id: str) -> AppTest:
    page = ask_page().switch_page("pages/run.py")
    page.query_params["run"] = run_id
    return page.run()


def test_a_dead_run_is_resumed_with_the_limits_that_were_changed(
    dead: str, started: list[launch.Order]
) -> None:
    page = run_page(dead)
    page.number_input(key=f"resume-max_calls-{dead}").set_value(77)
    page.number_input(key=f"resume-max_tool_calls-{dead}").set_value(5)
    page.number_input(key=f"resume-root_window-{dead}").set_value(64_000)
    page.text_input(key=f"resume-cost-{dead}").set_value("0.50")
    page.button(key=f"resume-start-{dead}").click().run()
    (order,) = started
    assert order.resume_of == dead
    given = {name: value for name, value in order.limits.items() if value is not None}
    assert given == {"max_calls": 77, "max_tool_calls": 5, "max_cost_usd": "0.50"}
    assert order.way == {"root_window": 64_000}


def test_why_a_run_cannot_be_resumed_is_said(dead: str) -> None:
    page = run_page(dead)
    page.button(key=f"resume-start-{dead}").click().run()
    (sentence,) = problems(page)
    assert sentence and "Traceback" not in sentence
    page.text_input(key=f"resume-cost-{dead}").set_value("a lot")
    page.button(key=f"resume-start-{dead}").click().run()
    assert problems(page) == ["'a lot' is not an amount in dollars, like 0.50."]


def test_a_run_with_an_answer_is_not_to_be_resumed(home: Home) -> None:
    run_id = asked_by(home, RUNS[0], None, "four")
    assert not [field for field in run_page(run_id).button if field.key == f"resume-start-{run_id}"]


@pytest.mark.full
def test_a_process_goes_on_where_a_limit_stopped_a_run(home: Home) -> None:
    from tests.ui.web.test_launch import wait_for

    corpus = Corpus.add([ROOT / "sample_data" / "tickets"], home.corpora)
    question = "How many tickets are about billing?"
    order = Order(question, corpus.corpus_id, "demo/root", "demo/sub", {"max_calls": 50})
    dead = launch.start_run(home, order, launch.new_ticket())
    wait_for(lambda: not StartFiles(home, dead).request.exists())
    page = run_page(dead)
    page.number_input(key=f"resume-max_calls-{dead}").set_value(500)
    page.button(key=f"resume-start-{dead}").click().run()
    named = page.query_params["run"]
    again = named if isinstance(named, str) else named[0]
    wait_for(lambda: not StartFiles(home, again).request.exists())
    run = load_run(home, again).summary
    assert (run.resumed_from, run.stop_reason) == (dead, "final")
