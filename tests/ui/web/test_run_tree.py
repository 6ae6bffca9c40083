"""The tree view of the Run page: panes, filters, orders and the search, all of them in the address."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from tests.support.pages import HOSTILE, badly_shown, problems, rows_of, texts, use
from tests.support.recorded_runs import WIDE, recording, sub_call, wide_run
from tests.support.run_pages import chosen, looked_at, named, press, run_page
from traces.home import Home
from traces.reading import load_run


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def at(**query: str | list[str]) -> AppTest:
    """The page of the wide run with more in its address."""
    page = run_page(WIDE)
    for name, value in query.items():
        page.query_params[name] = value
    return looked_at(page)


def told(page: AppTest) -> dict[str, Any]:
    """What the tree or the flame is told."""
    for element in page.get("bidi_component"):
        if element.proto.json and "pieces" in (data := json.loads(element.proto.json)):
            return dict(data)
    raise AssertionError("There is neither a tree nor a flame.")


def rows_seen(page: AppTest) -> list[str]:
    """Labels of the rows that travel to the browser."""
    pieces = [
        json.loads(element.proto.bytes) for element in page.get("bidi_component") if element.proto.bytes
    ]
    return [label for piece in pieces for label in piece["rows"]["label"]]


def field(page: AppTest) -> Any:
    """The field for what is looked for."""
    (found,) = (each for each in page.text_input if each.label == "Search in names and texts")
    return found


# -- filters


def test_a_filter_of_the_address_keeps_parents_and_counts_what_is_out(home: Home) -> None:
    wide_run(home, 206, batch=100)
    page = at(status=["error", "empty"])
    assert rows_seen(page)[:4] == [
        "run",
        "iteration 0 Decompose",
        "cell 0 Decompose",
        "3 of 100 x llm_query: 1 ok, 1 empty, 1 error",
    ]
    # the failed call (its one attempt is in its row), the empty one, the attempt that had to be made again
    assert told(page)["title"] == (
        "3 of 107 rows fit: 2 sub-calls, 1 attempt; 5 more stand above or around them; 99 filtered out"
    )
    assert "Filters (1)" in [popover.proto.popover.label for popover in page.get("popover")]
    assert told(press(page, "Clear filters"))["title"].startswith("206 spans")
    assert "status" not in page.query_params


def test_a_filter_that_is_set_is_in_the_address(home: Home) -> None:
    wide_run(home, 60)
    page = run_page(WIDE)
    (status,) = (each for each in page.multiselect if each.label == "Status")
    assert [option.partition(" (")[0] for option in status.options] == ["ok", "error", "suspect"]
    status.select("suspect")
    looked_at(page)
    assert page.query_params["status"] in ("suspect", ["suspect"])
    assert "llm_query 17" in rows_seen(page)
    (over,) = (each for each in page.number_input if each.label == "Cost over ($)")
    over.set_value(0.001)
    looked_at(page)
    assert page.query_params["over"] in ("0.001", ["0.001"])


def test_a_filter_by_cost_says_how_many_costs_are_unknown(home: Home) -> None:
    wide_run(home, 60)
    page = at(over="0.001")
    assert rows_seen(page) == ["run", "iteration 0 Decompose", "root call"]
    (sentence,) = (text for text in texts(page) if "unknown cost" in text)
    assert sentence.startswith("1 call of unknown cost may have cost more than that or less")


def test_where_nothing_fits_that_is_said_and_the_span_stays(home: Home) -> None:
    wide_run(home, 60)
    page = at(status="cancelled")
    assert "No span of this run fits the filters." in texts(page)
    assert "run" in texts(page)
    assert rows_seen(press(page, "Show all spans"))


def test_a_chosen_span_that_does_not_fit_is_shown_all_the_same(home: Home) -> None:
    view = load_run(home, wide_run(home, 60))
    for pane in ("tree", "flame", "table"):
        page = at(status="error", span=named(view, "root_call").span_id, pane=pane)
        assert "The span that is shown beside does not fit the filters." in texts(page)
        assert "root call" in texts(page)


def test_words_of_the_address_that_are_unknown_are_sentences(home: Home) -> None:
    wide_run(home, 60)
    page = at(
        status=HOSTILE, role="boss", depth="7", phase="x", model="y", over="lots", sort="size", pane="pie"
    )
    assert len(problems(page)) == 8
    assert "No span of this run has the depth “7”; it is left out." in problems(page)
    assert badly_shown(page, "HOSTILE") == []
    assert told(page)["title"].startswith("59 spans")
    page = at(view="nonsense")
    assert problems(page)[0] == "There is no view “nonsense” of a run; this is its tree."


def test_the_order_of_fan_outs_is_in_the_address(home: Home) -> None:
    wide_run(home, 60)
    page = run_page(WIDE)
    (order,) = (each for each in page.selectbox if each.label == "Order of fan-outs")
    order.set_value("cost")
    looked_at(page)
    assert page.query_params["sort"] in ("cost", ["cost"])
    assert rows_seen(page)[-1] == "llm_query 17"  # what is not known comes last


# -- panes


def test_a_choice_that_fast_clicks_left_empty_is_none(home: Home) -> None:
    wide_run(home, 60)
    page = at(pane="flame")
    page.get_by_key("run-pane").set_value(None).run()
    assert "pane" not in page.query_params and not problems(page)


def test_the_flame_shows_the_same_rows_and_knows_the_chosen_span(home: Home) -> None:
    view = load_run(home, wide_run(home, 60))
    cell = named(view, "cell").span_id
    tree, flame = at(span=cell), at(span=cell, pane="flame")
    assert rows_seen(tree) == rows_seen(flame)
    assert told(flame)["key"] == told(tree)["key"] == cell
    assert told(flame)["seconds"] > 0


# -- search


def test_the_hits_of_a_search_with_next_and_previous(home: Home) -> None:
    view = load_run(home, wide_run(home, 60))
    calls = [span.span_id for span in view.spans if span.kind == "sub_call"]
    page = at(q="Order 1")
    assert "10 spans hold it, in 10 places" in texts(page)  # 1, and 10 to 19 without the failed 17
    first, *_ = rows_of(page, "run-hit-rows")
    assert first == {"Span": "llm_query 1", "Place": "response", "Passage": "yes: “refund of order 1”"}
    press(page, "Next hit")
    assert chosen(page) == calls[1]
    assert rows_of(page, "run-hit-rows")[0]["Span"] == "▸ llm_query 1"
    press(page, "Next hit")
    assert chosen(page) == calls[10]
    press(page, "Previous hit")
    press(page, "Previous hit")
    assert chosen(page) == calls[19]  # before the first comes the last


def test_a_search_by_regular_expression(home: Home) -> None:
    wide_run(home, 60)
    page = at(q=r"order 1[0-2]\b", regex="1")
    assert [row["Span"] for row in rows_of(page, "run-hit-rows")] == [f"llm_query {n}" for n in (10, 11, 12)]
    (sentence,) = problems(at(q="(", regex="1"))
    assert sentence.startswith("“(” is no regular expression: ")
    assert "No span holds that." in texts(at(q="nowhere"))


def test_a_search_that_is_typed_is_in_the_address(home: Home) -> None:
    wide_run(home, 60)
    page = run_page(WIDE)
    field(page).set_value("seventeen")
    looked_at(page)
    assert page.query_params["q"] in ("seventeen", ["seventeen"])
    assert rows_of(page, "run-hit-rows")[0]["Place"] == "answer"
    field(page).set_value("")
    looked_at(page)
    assert "q" not in page.query_params


def test_a_search_goes_on_in_a_run_that_grows(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        sub_call(made.recorder, run, 0, {sc.CALL_INDEX: 0})
        page = at(q="refund of")
        assert "1 span holds it, in 1 place" in texts(page)
        sub_call(made.recorder, run, 1, {sc.CALL_INDEX: 1})
        assert "2 spans hold it, in 2 places" in texts(looked_at(page))


def test_many_hits_come_in_pages_around_the_chosen_one(home: Home) -> None:
    view = load_run(home, wide_run(home, 300))
    calls = [span.span_id for span in view.spans if span.kind == "sub_call"]
    page = at(q="refund of order", span=calls[80])
    assert "51 to 100 of" in "".join(caption.value for caption in page.caption)
    assert "▸ llm_query 80" in [row["Span"] for row in rows_of(page, "run-hit-rows")]


# -- text that nobody vouches for


def test_hostile_words_in_filters_and_hits_stand_as_they_are(home: Home) -> None:
    facts: dict[str, Any] = {sc.REQUEST_MODEL: HOSTILE, sc.PHASE: HOSTILE}
    with recording(home) as made:
        run = made.recorder.start("run", HOSTILE, None, {})
        for number in range(2):
            call = made.recorder.start("sub_call", HOSTILE, run, {**facts, sc.PHASE: HOSTILE * number})
            call.text(sc.PROMPT, HOSTILE)
            call.end()
    for pane in ("tree", "flame", "table"):
        page = at(q="HOSTILE", model=[HOSTILE], pane=pane)
        assert set(badly_shown(page, "HOSTILE")) <= {"bidi_component", "multiselect"}
        assert rows_of(page, "run-hit-rows")
