"""The Compare page: two runs side by side, and what is said when that is impossible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pages import HOSTILE, ask_page, badly_shown, problems, rows_of, shown, texts, use
from tests.support.recorded_runs import wide_run
from traces.home import Home
from traces.opinions import judge
from ui.web.text_lines import MOST_LINES, compared, pieces, side_by_side, unified

A, B = "20270115T080000-00000001", "20270115T080000-00000002"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def compare_page(**query: str) -> AppTest:
    page = ask_page().switch_page("pages/compare.py")
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception, page.exception
    return page


def figures(page: AppTest) -> dict[str, list[str]]:
    return {row["What"]: list(row.values())[1:] for row in rows_of(page, "compare-figures")}


def test_equal_answers_are_the_same_whatever_their_case(
    written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    written(A, script(question="How many?", answer="Seven."))
    written(B, script(question="how  many?", answer="seven", calls=[sub_call(), sub_call(error="timeout")]))
    page = compare_page(a=A, b=B)
    assert ":green-badge[Same answer]" in shown(page) and "Other question" not in shown(page)
    found = figures(page)
    assert found["Sub-calls"] == ["1", "2", "+1 (× 2.00)"] and found["Failed sub-calls"][:2] == ["0", "1"]
    assert found["Iterations"][2] == "same" and found["Stop reason"][0] == "final"
    assert found["Cost of the root model"] == ["$0.01", "$0.01", "same"]
    assert "All" in texts(page)[-1] and "on record are the same." in texts(page)[-1]


def test_different_answers_questions_and_settings_are_said(
    home: Home, written: Callable[..., Any], script: Any
) -> None:
    written(A, script(question="How many?", answer="Seven", model="openai/big"))
    written(B, script(question="Which?", answer="Eight", model="openai/huge"))
    judge(home, A, verdict="wrong", expected="eight")
    page = compare_page(a=A, b=B)
    assert "The runs do not ask the same." in texts(page) and ":orange-badge[Different answers]" in shown(
        page
    )
    assert "What a person expected of A, only B gives: eight" in texts(page)
    (row,) = [row for row in rows_of(page, "compare-settings") if row["Setting"] == "sub-model"]
    assert (row["A"], row["B"]) == ("openai/big", "openai/huge")


def test_what_is_not_known_is_not_compared(written: Callable[..., Any], script: Any, sub_call: Any) -> None:
    written(A, script(answer=None, calls=[sub_call(cost=None)]))
    written(B, script())
    page = compare_page(a=A, b=B)
    assert "An answer is missing." in texts(page)
    assert figures(page)["Cost"][::2] == ["at least $0.01", "unknown"]
    assert figures(page)["Cost of sub-calls"][0] == "unknown"


def test_the_other_run_can_be_chosen_and_the_sides_swapped(written: Callable[..., Any], script: Any) -> None:
    written(A, script(question="How many?"))
    written("20270115T080000-00000003", script(question="Which?"))
    written(B, script(question="How many?"))
    page = compare_page(a=A)
    (box,) = page.selectbox
    assert [option[-8:] for option in box.options] == [B[-8:], "00000003"]
    box.select_index(0).run()
    assert page.query_params["b"] in (B, [B]) and page.text[0].value == A
    next(button for button in page.button if button.label == "Swap").click().run()
    assert page.text[0].value == B
    next(button for button in page.button if button.label == "Another B").click().run()
    assert len(page.selectbox) == 1


def test_an_address_without_runs_or_with_unknown_ones_is_one_sentence(
    written: Callable[..., Any], script: Any
) -> None:
    assert texts(compare_page())[:2] == [
        "Choose two runs on the Runs page, or one here.",
        "There is no other run yet.",
    ]
    written(A, script())
    (sentence,) = problems(compare_page(a=A, b="nonsense"))
    assert sentence == "There is no run whose id begins with 'nonsense'."
    assert "This is the same run twice." in texts(compare_page(a=A, b=A))


def test_a_big_run_and_one_at_work_are_compared(home: Home, written: Callable[..., Any], script: Any) -> None:
    wide_run(home, 2_000)
    with written(B, script(answer=None), close=False):
        page = compare_page(a="20270115T080000-0000aaaa", b=B)
        assert "There is none (yet)." in texts(page) and figures(page)["Sub-calls"][0] == "987"


def test_hostile_answers_are_plain_text(written: Callable[..., Any], script: Any) -> None:
    for number, run_id in enumerate((A, B)):
        text = f"{HOSTILE}\n{number} {HOSTILE}"
        written(run_id, script(question=text, answer=text, model="openai/" + HOSTILE))
    page = compare_page(a=A, b=B)
    assert badly_shown(page, "HOSTILE") == [] and not any(mark in shown(page) for mark in "\x1b\u202e")
    (offered,) = compare_page(a=A).selectbox(key="compare-b-choice").options
    assert "HOSTILE" in offered and not any(mark in offered for mark in "\x1b\u202e")
    page.toggle(key="compare-diff-unified").set_value(True).run()
    assert badly_shown(page, "HOSTILE") == [] and any("-0 ![HOSTILE]" in code.value for code in page.code)


# -- the lines of two texts


def test_lines_that_belong_together_stand_in_one_row_with_their_words_marked() -> None:
    rows = side_by_side("one\ntwo apples\nthree", "one\ntwo pears\nthree\nfour")
    assert rows == [
        ([("one", "same")], [("one", "same")]),
        ([("two ", "same"), ("apples", "other")], [("two ", "same"), ("pears", "other")]),
        ([("three", "same")], [("three", "same")]),
        (None, [("four", "other")]),
    ]


def test_no_text_is_lost_in_a_comparison() -> None:
    a, b = "x\n\ny " * 40, "x\n\nz\n" * 50
    rows = side_by_side(a, b)
    for side, text in ((0, a), (1, b)):
        lines = ["".join(part for part, _ in row[side]) for row in rows if row[side] is not None]
        assert "\n".join(lines) == text


def test_equal_lines_far_from_what_differs_are_counted() -> None:
    a = "\n".join(f"line {n}" for n in range(100))
    rows = compared(a, a.replace("line 50", "line fifty")).folded(2)
    assert [row for row in rows if isinstance(row, int)] == [48, 47] and len(rows) == 7
    assert compared(a, a).folded() == [100]
    assert "-line 50\n+line fifty" in unified(a, a.replace("line 50", "line fifty"))
    assert unified(a, a) == ""


def test_a_difference_behind_thousands_of_equal_lines_is_found() -> None:
    common = "\n".join(f"line {n}" for n in range(3 * MOST_LINES))
    found = compared(f"{common}\nseven\nend", f"{common}\neight\nend")
    assert found.left_out == 0 and [
        row for row in found.folded() if row == ([("seven", "other")], [("eight", "other")])
    ]
    assert "-seven" in unified(f"{common}\nseven\nend", f"{common}\neight\nend")


def test_of_texts_that_differ_everywhere_the_rest_is_counted() -> None:
    a, b = ("\n".join(f"{word} {n}" for n in range(MOST_LINES + 5)) for word in ("one", "two"))
    assert compared(a, b).left_out == 5


def test_another_word_in_a_page_without_line_ends_marks_the_word() -> None:
    page = "The tenant pays the rent on the first of the month. " * 80
    other = f"{page[:2080]}Seven of them are late. {page[2080:]}"
    assert "".join(pieces(page)) == page and max(map(len, pieces("x" * 5_000))) <= 600
    rows = [row for row in compared(page, other).rows if row[0] != row[1]]
    assert rows == [(None, [("Seven of them are late. ", "other")])]


def test_letter_case_and_white_space_are_marked_apart_from_other_words() -> None:
    ((one, other),) = side_by_side("90 REFUNDS  AT ELM", "10 refunds AT elm")
    assert one == [("90", "other"), (" ", "same"), ("REFUNDS  ", "form"), ("AT ", "same"), ("ELM", "form")]
    assert [mark for _, mark in other] == ["other", "same", "form", "same", "form"]
