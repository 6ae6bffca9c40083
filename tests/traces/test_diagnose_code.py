"""Diagnosing wrong answers: faults in code, and what a budget that ends leaves said."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rlm_core import Request
from rlm_core.errors import InputError
from rlm_core.prompts import last_output
from tests.support.replays import live, recorded, span_of
from traces.culprits import Answer, OutOfBudget, minimal
from traces.diagnose import diagnose
from traces.home import Home
from traces.replay import Replayer
from traces.trial import Budget, Patch, Target
from traces.view import RunView

GOOD = "20260101T000000-0000bbbb"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return Home.resolve(tmp_path / "home")


def test_cells_that_are_wrong_one_after_the_other_are_found_together(home: Home) -> None:
    first = "x = [int(reply) for reply in llm_batch(['a', 'b', 'c'])]\nprint('ready')"
    wrong = (first, "total = sum(x[:2])\nprint(total)", "total = total * 10\nprint(total)")
    right = (first, "total = sum(x)\nprint(total)", "total = total * 100\nprint(total)")
    bad = recorded(home, *wrong, "FINAL_VAR('total')", sub=lambda _: "3")
    good = recorded(home, *right, "FINAL_VAR('total')", sub=lambda _: "3", run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, found.proven) == ("cell", "fixed", True)
    assert {culprit.span_id for culprit in found.culprits} == {span_of(bad, "cell", n) for n in (1, 2)}


def test_an_answer_that_the_good_root_typed_is_no_culprit_and_no_other_plan(home: Home) -> None:
    cell = "color = llm_query('what color?')\nprint(len(color))"
    bad = recorded(home, cell, "FINAL('it is red')", sub=lambda _: "red")
    good = recorded(home, cell, "FINAL('it is blue')", sub=lambda _: "blue", run_id=GOOD)
    found = diagnose(home, bad, good=good, target=Target("green"))
    assert found.verdict != "plan_diverged" and not found.proven
    assert span_of(bad, "cell", 1) not in {culprit.span_id for culprit in found.culprits}


def test_a_text_that_makes_it_right_counts_though_the_budget_ends_before_all_were_tried(home: Home) -> None:
    names = ("north", "south", "east", "west", "center", "coast")
    cell = (
        f"names = {names!r}\n"
        "replies = llm_batch([f'Refunds at {n}:\\nThe total is {1200 + 10 * i} euros.' for i, n in "
        "enumerate(names)])\ntotal = sum(int(reply) for reply in replies)\nFINAL_VAR('total')"
    )

    def reply(request: Request) -> str:
        number = request.prompt.rsplit("is ", 1)[1].split()[0]
        return {"1200": "1300", "1210": "1910"}.get(number, number)

    view = recorded(home, cell, sub=reply)
    whole, part = (
        diagnose(home, view, target=Target("8050"), budget=Budget(replays=replays)) for replays in (200, 1)
    )
    assert whole.outcome == part.outcome == "fixed" and "could not be tried" not in whole.words
    assert whole.culprits == part.culprits and len(whole.trials) == 2
    assert not part.proven and "1 proposed text for others could not be tried" in part.words


@pytest.mark.parametrize(
    ("wrong_count", "count"),
    [("940", "490"), ("9", "4"), ("1,940", "1,490"), ("12.50", "21.50"), ("007", "003")],
)
def test_code_into_which_a_root_copied_what_a_wrong_reply_said_is_not_called_the_culprit(
    home: Home, wrong_count: str, count: str
) -> None:
    ask = "replies = llm_batch([f'item {n}: how many?' for n in range(3)])\nprint(replies)"

    def copies(request: Request) -> str:
        written = re.findall(r"'([\d.,]+)'", last_output(request.messages))
        numbers = ", ".join(one.replace(",", "").lstrip("0") for one in written)
        return f"total = sum([{numbers}])\nprint(total)"

    def says(wrong: bool) -> Callable[[Request], str]:
        return lambda request: wrong_count if wrong and "item 1" in request.prompt else count

    bad = recorded(home, ask, copies, "FINAL_VAR('total')", sub=says(True))
    good = recorded(home, ask, copies, "FINAL_VAR('total')", sub=says(False), run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, found.proven) == ("sub_call", "reached_root", False)
    assert [culprit.span_id for culprit in found.culprits] == [span_of(bad, "sub_call", 1)]
    assert "only asking the root again can tell" in found.words


def test_a_digit_of_the_code_that_stands_in_an_output_by_chance_is_not_called_copied(home: Home) -> None:
    ask = "print(llm_query('how sure?'))\nx = [3, 4, 5]"
    bad = recorded(
        home, ask, "total = sum(x[:2])\nprint(total)", "FINAL_VAR('total')", sub=lambda _: "2 of 9"
    )
    good = recorded(
        home, ask, "total = sum(x[:3])\nprint(total)", "FINAL_VAR('total')", sub=lambda _: "all", run_id=GOOD
    )
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, found.proven) == ("cell", "fixed", True)


@pytest.mark.parametrize("number", ["{}", "0x" + "f" * 4000 + " and {}"])
def test_what_a_root_wrote_before_it_was_shown_the_same_is_not_called_copied(home: Home, number: str) -> None:
    def both(request: Request) -> str:
        told = "940" if "one" in last_output(request.messages) else "490"
        code = f"total = 2 * ({number.format(told)})\nprint(total)"
        return f"```repl\nprint(llm_query('b'))\n```\n```repl\n{code}\n```\nThat is it."

    def says(first: str, second: str) -> Callable[[Request], str]:
        return lambda request: first if request.prompt == "a" else second

    codes = ("print(llm_query('a'))", both, "FINAL_VAR('total')")
    bad = recorded(home, *codes, sub=says("one", "940"))
    good = recorded(home, *codes, sub=says("two", "490"), run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, found.proven) == ("cell", "fixed", True)
    assert [culprit.span_id for culprit in found.culprits] == [span_of(bad, "cell", 2)]


CHOSEN = (
    "name = llm_query('which document?')\nchosen = [d for d in documents if d.name == name]\n"
    "FINAL(rlm_query('child: count', chosen))"
)
CHILD = "FINAL(llm_query('how many?', documents[0]))"


def chooses(name: str) -> Callable[[Request], str]:
    return lambda request: name if "which" in request.prompt else "5" if "beta" in request.prompt else "2"


def test_the_good_run_lends_the_answer_of_a_child_run_whose_inputs_the_bad_one_never_had(home: Home) -> None:
    bad = recorded(home, CHOSEN, children=[CHILD], sub=chooses("a.txt"))
    good = recorded(home, CHOSEN, children=[CHILD], sub=chooses("b.txt"), run_id=GOOD)
    assert (bad.summary.answer, good.summary.answer) == ("2", "5")
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, found.proven) == ("sub_call", "fixed", True)
    assert [culprit.span_id for culprit in found.culprits] == [span_of(bad, "sub_call", depth=0)]


def test_no_child_run_is_lent_by_a_run_over_other_documents(home: Home) -> None:
    bad = recorded(home, CHOSEN, children=[CHILD], sub=chooses("a.txt"))
    corpus = {"a.txt": "alpha", "b.txt": "gama"}
    good = recorded(home, CHOSEN, children=[CHILD], sub=chooses("b.txt"), run_id=GOOD, corpus=corpus)
    found = diagnose(home, bad, good=good, target=Target("5"))
    assert (found.verdict, found.outcome) == ("undecided", "undecided")
    assert "holds no child run with the inputs it has now" in found.words


def test_what_other_seeds_would_need_a_model_for_is_not_called_wrong(home: Home) -> None:
    bad = recorded(home, CHOSEN, children=[CHILD], sub=chooses("a.txt"))
    patch = Patch(span_of(bad, "sub_call", depth=0), "b.txt")
    asked = live(CHILD, chooses("b.txt"))
    found = diagnose(
        home,
        bad,
        patches=[patch],
        target=Target("5"),
        budget=Budget(live_calls=5),
        replayer=partial(Replayer, handler=asked),
    )
    assert (found.verdict, found.outcome, found.proven) == ("sub_call", "fixed", False)
    assert [one for one in found.warnings if "cannot be told without asking a model again" in one]
    assert not [one for one in found.warnings if "do not make the answer right" in one]


def test_a_text_for_a_span_of_another_run_is_refused(home: Home) -> None:
    view = recorded(home, "FINAL(llm_query('a'))", sub=lambda _: "3")
    with pytest.raises(InputError, match="is no span of run"):
        diagnose(home, view, patches=[Patch("ffff", "4")], target=Target("4"))


@pytest.mark.parametrize("tests", range(1, 8))
def test_one_culprit_alone_is_minimal_whenever_the_budget_ends(tests: int) -> None:
    made = []

    def test(chosen: Sequence[int]) -> Answer:
        if len(made) == tests:
            raise OutOfBudget
        made.append(chosen)
        return "yes" if 2 in chosen else "no"

    found = minimal(range(8), test)
    assert (found.ended == "minimal") == (found.members == (2,))


def test_a_text_that_makes_it_right_with_some_seeds_only_proves_nothing(home: Home) -> None:
    cell = "names = set(llm_query('which?').split())\nFINAL(next(iter(names)))"
    bad = recorded(home, cell, sub=lambda _: "red")
    good = recorded(home, cell, sub=lambda _: " ".join(f"color{n}" for n in range(64)), run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, found.proven) == ("sub_call", "fixed", False)
    assert any("other hash and random seeds" in one for one in found.warnings)


def test_what_a_model_was_asked_for_is_among_what_a_replay_assumes(home: Home) -> None:
    cell = "FINAL(llm_query('twice ' + llm_query('a')))"
    view = recorded(home, cell, sub=lambda request: "3" if request.prompt == "a" else "six")
    handler = live(sub=lambda _: "eight")
    with Replayer(home, view, handler=handler, budget=Budget(live_calls=1)) as replayer:
        patch = Patch(span_of(view, "sub_call"), "4")
        trials = [replayer.trial([patch], mode="recompute", target=Target("eight")) for _ in range(2)]
    assert [(trial.outcome, trial.live_calls) for trial in trials] == [("fixed", 1), ("fixed", 0)]
    assert all("was asked 1 prompt that the record lacks" in " ".join(one.assumed) for one in trials)


def test_the_answer_to_another_question_is_no_measure_unless_the_right_one_is_given(home: Home) -> None:
    bad = recorded(home, "FINAL(llm_query('a'))", sub=lambda _: "3")
    good = recorded(home, "FINAL(llm_query('a'))", sub=lambda _: "4", run_id=GOOD)
    other = RunView(replace(good.summary, question="how much?"), good.spans, False, good._source)
    with pytest.raises(InputError, match="was asked another question"):
        diagnose(home, bad, good=other)
    assert diagnose(home, bad, good=other, target=Target("4")).outcome == "fixed"
