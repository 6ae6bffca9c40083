"""The view of the steps of a run: what it shows of each, the ways between them, its address."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from tests.support.pages import HOSTILE, badly_shown, open_row, problems, rows_of, shown, texts, use
from tests.support.recorded_runs import recording
from tests.support.run_pages import chosen, looked_at, named, press, run_page
from tests.support.step_runs import NESTED, cell, fill_nested, many_steps, nested_run, turn
from traces.home import Home
from traces.reading import load_run


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def steps_page(run: str, **query: str) -> AppTest:
    """The steps as a new session meets them."""
    page = run_page(run)
    page.query_params["view"] = "steps"
    for name, value in query.items():
        page.query_params[name] = value
    return looked_at(page)


def address(page: AppTest, name: str) -> str:
    """A value of the address."""
    found = page.query_params[name]
    return found[0] if isinstance(found, list) else str(found)


def title(page: AppTest) -> str:
    """Which step is shown."""
    return next(text for text in texts(page) if text.startswith("Step "))


def test_a_step_shows_what_the_root_was_told_and_what_the_cell_did(home: Home) -> None:
    page = steps_page(nested_run(home), step="4")
    assert title(page) == "Step 4: iteration 2, cell 3"
    assert [box.label for box in page.expander[:2]] == ["assistant, 9 characters", "user, 26 characters"]
    codes = [code.value for code in page.code]
    assert {"# Output\nZeroDivisionError", "Reply 2.", "total = 42\nFINAL_VAR('total')", "42 tickets"} <= set(
        codes
    )
    assert "This cell set the answer:" in [caption.value for caption in page.caption]
    assert rows_of(page, "step-variables") == [
        {"Variable": "total", "Change": "changed", "Type": "int", "Size": "", "Before": "1", "After": "42",
         "Set in step": "4"}
    ]  # fmt: skip


def test_variables_that_stayed_are_counted_and_shown_on_request(home: Home) -> None:
    page = steps_page(nested_run(home), step="3")
    assert [(row["Variable"], row["Change"]) for row in rows_of(page, "step-variables")] == [
        ("labels", "deleted")
    ]
    next(each for each in page.toggle if each.label == "Also those it left as they were (2)").set_value(True)
    rows = rows_of(looked_at(page), "step-variables")
    assert [(row["Variable"], row["Change"], row["Set in step"]) for row in rows] == [
        ("labels", "deleted", "3"), ("total", "same", "1"), ("parts", "same", "2"),
    ]  # fmt: skip


def test_from_step_to_step(home: Home) -> None:
    page = steps_page(nested_run(home))
    walked = [title(page)]
    for label in (
        "Next step",
        "Next iteration",
        "Previous step",
        "Previous iteration",
        "Next failed step (1)",
    ):
        walked.append(title(press(page, label)))
    assert [words.partition(":")[0] for words in walked] == [
        "Step 1", "Step 2", "Step 4", "Step 3", "Step 1", "Step 3",
    ]  # fmt: skip
    assert address(page, "step") == "3"
    assert "ZeroDivisionError: division by zero." in problems(page)
    page.number_input(key="step-number").set_value(2)
    assert title(looked_at(page)).startswith("Step 2")
    page.slider(key="step-slider").set_value(4)
    assert title(looked_at(page)).startswith("Step 4")
    assert address(page, "step") == "4"
    assert [button.label for button in page.button if button.disabled and "step" in button.label] == [
        "Next step"
    ]


def test_into_a_child_run_and_back(home: Home) -> None:
    view = load_run(home, nested_run(home))
    page = press(steps_page(NESTED, step="2"), "Step into rlm_query 1, depth 1")
    child = named(view, "run", 2)
    assert address(page, "child") == child.span_id
    assert title(page) == "Step 1: iteration 0, cell 0"
    assert "Part 1, turn 0." in [code.value for code in page.code]
    assert "seen_1 = 1" in [code.value for code in press(page, "Next step").code]
    assert title(press(page, "Back to the step that asked it")) == "Step 2: iteration 1, cell 1"
    assert "child" not in page.query_params
    page.selectbox(key="step-run").set_value(child.span_id)
    assert "Part 1, turn 0." in [code.value for code in looked_at(page).code]


def test_between_the_tree_and_the_steps(home: Home) -> None:
    view = load_run(home, nested_run(home))
    inner = named(view, "cell", 4)  # of the second child run
    page = press(run_page(NESTED, inner.span_id), "Show in the steps")
    assert address(page, "child") == named(view, "run", 2).span_id
    page = press(page, "Show in the tree")
    assert chosen(page) == inner.span_id and "view" not in page.query_params
    assert title(press(run_page(NESTED), "Show in the steps")).startswith("Step 1:")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"step": "0"}, "There is no step “0” here: the steps are 1 to 4."),
        ({"step": "99"}, "There is no step “99” here"),
        ({"step": "٣"}, "There is no step “٣” here"),
        ({"step": HOSTILE}, "There is no step “"),
        ({"child": "0123456789abcdef"}, "0123456789abcdef"),
    ],
)
def test_an_address_that_leads_nowhere_is_said(home: Home, query: dict[str, str], said: str) -> None:
    page = steps_page(nested_run(home), **query)
    assert any(said in sentence for sentence in problems(page))
    assert title(page).startswith("Step 1:")
    assert badly_shown(page, "HOSTILE") == []


def test_a_span_that_is_no_child_run_is_said_to_be_none(home: Home) -> None:
    view = load_run(home, nested_run(home))
    page = steps_page(NESTED, child=named(view, "root_call").span_id)
    assert any("is no child run with steps" in sentence for sentence in problems(page))


def test_a_run_of_one_step_needs_no_slider(home: Home) -> None:
    page = steps_page(many_steps(home, steps=1))
    assert title(page) == "Step 1: iteration 0, cell 0"
    assert not page.slider and "There is one step." in [caption.value for caption in page.caption]


def test_very_many_steps_are_listed_by_the_hundred(home: Home) -> None:
    page = steps_page(many_steps(home, steps=250), step="150")
    assert rows_of(page, "step-list") == []
    page.session_state["step-outline"] = True
    rows = rows_of(looked_at(page), "step-list")
    assert [row["Step"] for row in rows] == [str(n) if n != 150 else "150 (shown)" for n in range(101, 201)]
    assert [row["Step"] for row in rows if row["Outcome"] == "error"] == ["151"]
    assert title(open_row(page, "step-list", 5)) == "Step 106: iteration 105, cell 105"


def test_a_run_without_iterations(home: Home) -> None:
    with recording(home) as made:
        made.recorder.start("run", sc.NAME_RUN, None, {}).end()
        made.close("ok")
    assert "This run recorded no iterations." in texts(steps_page(made.run_id))


def test_a_run_that_goes_on_is_followed_until_a_step_is_chosen(home: Home) -> None:
    with recording(home, NESTED) as made:
        run = fill_nested(made)
        page = steps_page(NESTED)
        assert title(page).startswith("Step 4:")
        assert "The newest step is shown, as it comes." in [caption.value for caption in page.caption]
        later = turn(made.recorder, run, 3, 6, [("user", "Go on.")])
        assert title(looked_at(page)) == "Step 5: iteration 3"
        assert "(no cell yet)" in [caption.value for caption in page.caption]
        cell(made.recorder, later, 4, "x = 1")
        assert title(looked_at(page)) == "Step 5: iteration 3, cell 4"
        assert title(press(page, "Previous step")).startswith("Step 4:")
        turn(made.recorder, run, 4, 8, [])
        assert title(looked_at(page)).startswith("Step 4:")
        assert title(press(page, "Follow the newest")).startswith("Step 6:")
        run.end()
        made.close("ok")


def test_what_the_record_lacks_is_said(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        iteration = made.recorder.start("iteration", sc.NAME_ITERATION, run, {sc.ITERATION: 0})
        root = made.recorder.start("root_call", "chat r", iteration, {sc.MESSAGES_ADDED: "{"})
        root.end("ok", {sc.RESPONSE + ".sha256": "0" * 64})
        one = made.recorder.start("cell", sc.NAME_CELL, iteration, {sc.CELL: 0})
        one.end("ok", {sc.VARIABLES + ".sha256": "0" * 64})
        forced = made.recorder.start("iteration", sc.NAME_ITERATION, run, {sc.FORCED: True})
        for span in (forced, iteration, run):
            span.end()
        made.close("ok")
    said = texts(steps_page(made.run_id))
    assert "What the root was sent is not in the record." in said
    assert "This cell reported no variables: what it changed is not on record." in said
    assert said.count("This text is not in the record.") == 2  # reply and code
    said = texts(steps_page(made.run_id, step="2"))
    assert "No root call of this step is on record." in said
    assert any(text.startswith("A limit was reached: the root was asked") for text in said)


def test_hostile_texts_are_text(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", HOSTILE, None, {sc.ANSWER_CELL: 0})
        run.text(sc.ANSWER, HOSTILE)
        iteration = turn(made.recorder, run, 0, 0, [(HOSTILE, HOSTILE), ("user", HOSTILE)])
        rows = [{"name": HOSTILE, "change": "new", "type": HOSTILE, "preview": HOSTILE, "size": 1}]
        one = cell(made.recorder, iteration, 0, HOSTILE, rows)
        one.set({sc.PHASE: HOSTILE})
        child = made.recorder.start("run", HOSTILE, one, {sc.DEPTH: 1})
        child.text(sc.QUESTION, HOSTILE)
        turn(made.recorder, child, 0, 0, [])
        made.recorder.start("tool", HOSTILE, one, {}).fail(HOSTILE, HOSTILE)
        one.fail(HOSTILE, HOSTILE)
    page = steps_page(made.run_id)
    page.session_state["step-outline"] = True
    looked_at(page)
    assert "HOSTILE" in shown(page)
    assert badly_shown(page, "HOSTILE") == []


def test_many_steps_are_walked_by_number(home: Home) -> None:
    page = steps_page(many_steps(home, steps=120))
    page.number_input(key="step-number").set_value(100)
    assert title(looked_at(page)) == "Step 100: iteration 99, cell 99"
    assert rows_of(page, "step-variables")[0]["Before"] == "98"
