"""Texts to try in the place of a suspicious reply: from the prompt, the siblings, the expected answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.traces.records import home_in
from tests.traces.test_suspects import run_with
from traces.home import Home
from traces.proposals import MOST, Proposal, proposals
from traces.trial import Target
from traces.view import RunView


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return home_in(tmp_path)


def proposed(view: RunView, number: int, target: Target | None = None) -> Sequence[Proposal]:
    """The texts for the call of that number."""
    calls = [span.span_id for span in view.spans if span.kind == "sub_call"]
    return proposals(view, calls[number], target)


def fees(reply: str) -> list[tuple[str, str]]:
    """Eleven contracts with a fee each, the last of which is read like this."""
    calls = [
        (
            f"What is the fee?\nContract {n} of 20{n}: a fee of EUR {n},500, for {n * 7} days.",
            f"EUR {n},500 a year",
        )
        for n in range(21, 32)
    ]
    return [*calls[:-1], (calls[-1][0], reply)]


@pytest.mark.parametrize(
    "reply", ["", "I cannot help with this.", "a fee of", "EUR 37,500 a year", "thirty-one"]
)
def test_the_number_that_siblings_read_at_this_place_of_the_prompt_is_proposed_first(
    home: Home, reply: str
) -> None:
    first = proposed(run_with(home, fees(reply)), 10)[0]
    assert (first.text, first.origin) == ("EUR 31,500 a year", "source")
    assert first.words


def test_the_labels_of_the_siblings_are_proposed_the_commonest_first(home: Home) -> None:
    calls = [(f"Ticket {n}. Labels: billing, login, bug", "login" if n % 3 else "billing") for n in range(12)]
    view = run_with(home, [*calls, ("Ticket 99. Labels: billing, login, bug", "I cannot tell")])
    assert [(one.text, one.origin) for one in proposed(view, 12)] == [
        ("login", "sibling"),
        ("billing", "sibling"),
    ]


def test_the_expected_answer_is_proposed_only_where_it_stands_in_the_prompt(home: Home) -> None:
    calls = [
        (f"Who leads plant {n}? {name} Weber does.", f"{name} Weber") for n, name in enumerate(("Ana", "Eva"))
    ]
    view = run_with(home, [*calls, ("Who leads plant 2? Rosa Weber, not Ida Klein.", "Ida Klein")])
    assert [one.text for one in proposed(view, 2, Target("Rosa Weber"))] == ["Rosa Weber"]
    assert proposed(view, 0, Target("Rosa Weber")) == ()


def test_the_reply_itself_is_never_proposed_and_proposals_are_few(home: Home) -> None:
    labels = [(f"Text {n}", f"label{chr(97 + n)}") for n in range(20)]
    found = proposed(run_with(home, labels), 3)
    assert len(found) == MOST and "labeld" not in [one.text for one in found]


def test_there_is_nothing_to_propose_for_what_is_no_sub_call(home: Home) -> None:
    view = run_with(home, fees(""))
    assert proposals(view, view.spans[0].span_id) == () and proposals(view, "nothing") == ()
