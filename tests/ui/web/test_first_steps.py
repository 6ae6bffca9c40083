"""The way of a newcomer: an invitation while there are only the examples, and a guide in six steps."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pages import HOSTILE, ask_page, badly_shown, problems, shown, use
from traces.home import Home
from traces.reading import load_run
from traces.upkeep import delete_run
from ui.web import first_steps
from ui.web.samples import install_examples

BROKEN = first_steps.BROKEN
RIGHT = "20260105T090000-0000e001"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    install_examples(use(home, monkeypatch))


def invited(page: AppTest) -> bool:
    return any(button.key == "first-steps-show" for button in page.run().button)


def run_page(run_id: str = BROKEN, **query: str) -> AppTest:
    page = ask_page().switch_page("pages/run.py")
    for name, value in {"run": run_id, **query}.items():
        page.query_params[name] = value
    return page.run()


def words(page: AppTest) -> str:
    """What the guide says."""
    assert not page.exception, page.exception
    place = next(n for n, e in enumerate(page.main) if " of 6)" in str(getattr(e, "value", "")))
    return next(e.value for e in list(page.main)[place:] if e.type == "text")


def test_the_invitation_leads_to_the_broken_example_and_can_be_declined(home: Home) -> None:
    page = ask_page()
    assert invited(page)
    page.button(key="first-steps-close").click()
    assert not invited(page) and not invited(ask_page())


@pytest.mark.parametrize("change", ["a run", "no example"])
def test_who_has_runs_or_no_examples_is_not_invited(change: str, home: Home) -> None:
    if change == "a run":
        (home.spool / "20270115T080000-00000001.jsonl").touch()
    else:
        delete_run(home, BROKEN)
    assert not invited(ask_page())


def test_each_step_is_an_address_and_shows_what_it_is_about(home: Home) -> None:
    view = load_run(home, BROKEN)
    kinds, said = [], []
    page = run_page(guide="1")
    for step in range(1, 7):
        assert page.query_params["guide"] == str(step) and f"({step} of 6)" in shown(page)
        kinds.append(view.by_id[page.query_params["span"]].kind)
        said.append(words(page))
        if step < 6:
            page.button(key="guide-next").click().run()
    assert kinds == ["run", "cell", "batch", "sub_call", "sub_call", "run"]
    assert page.query_params["view"] == "overview"
    _say_what_the_record_says(home, said)
    fresh = run_page(guide="4")  # as a link leads there
    assert words(fresh) == said[3] and view.by_id[fresh.query_params["span"]].status == "error"
    page.button(key="guide-back").click().run()
    assert page.query_params["guide"] == "5" and "view" not in page.query_params
    page.button(key="guide-close").click().run()
    assert "guide" not in page.query_params and "of 5)" not in shown(page)


def _say_what_the_record_says(home: Home, said: list[str]) -> None:
    broken, right = load_run(home, BROKEN).summary, load_run(home, RIGHT).summary
    assert broken.answer != right.answer
    assert f"answered {broken.answer}, which is wrong. The right one is {right.answer}" in said[0]
    assert f"{broken.sub_calls} sub-calls" in said[2]
    assert "In the other example this call was answered “billing”" in said[3]
    assert f"it says {broken.answer} and not {right.answer}" in said[3]
    assert f"the other example, which ran the same code and found {right.answer}" in said[4]


def test_without_the_other_example_the_guide_says_less(home: Home) -> None:
    delete_run(home, RIGHT)
    assert "other example" not in words(run_page(guide="4"))


def test_a_span_that_was_chosen_meanwhile_stays(home: Home) -> None:
    last = load_run(home, BROKEN).spans[-1].span_id
    page = run_page(guide="2", span=last)
    assert page.query_params["span"] == last and "(2 of 6)" in shown(page)


def test_a_step_that_is_none_or_another_run_is_one_sentence(home: Home) -> None:
    page = run_page(guide="9" + HOSTILE)
    assert "The guide has steps 1 to 6" in problems(page)[0] and "(1 of 6)" in shown(page)
    assert not badly_shown(page, "HOSTILE")
    page = run_page(RIGHT, guide="2")
    assert problems(page) == ["The guide explains the broken example, and this is another run."]
    page.button(key="guide-close").click().run()
    assert not problems(page)
