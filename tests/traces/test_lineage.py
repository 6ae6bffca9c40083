"""From a reply to the answer: candidate edges by names and values, proven edges by trials."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core import Request
from rlm_core.normalise import normalise
from tests.support.recorded_runs import wide_run
from tests.support.replays import recorded, span_of
from traces.home import Home
from traces.lineage import ANSWER, BASES, Edge, Lineage, lineage, perturbed
from traces.perturb import perturbed_text
from traces.reading import load_run
from traces.replay import Replayer
from traces.replies import form
from traces.view import RunView

ASK = "notes = llm_batch([f'item {n}: how many crates?' for n in range(4)])"
SUM_UP = "line = llm_query('Which is the largest?\\n' + '\\n'.join(notes))"
TELL = "best = int(line.split()[0])\nprint('best', best)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return Home.resolve(tmp_path / "home")


def sub(request: Request) -> str:
    """7101 crates of item 1 and so on; the largest of those in a prompt."""
    if request.prompt.startswith("item"):
        return f"7{request.prompt[5]}01 crates"
    return max(line for line in request.prompt.splitlines() if line[0].isdigit())


@pytest.fixture
def view(home: Home) -> RunView:
    """Four notes, a summary of them, the answer from it, and a call that nothing reads."""
    return recorded(
        home, "aside = llm_query('item 0, once more')", ASK, SUM_UP, TELL, "FINAL_VAR('best')", sub=sub
    )


def test_candidate_edges_lead_from_a_note_over_the_summary_and_the_cells_to_the_answer(view: RunView) -> None:
    found = lineage(view)
    note, summary = span_of(view, "sub_call", 4), span_of(view, "sub_call", 5)
    assert Edge(note, summary, "said in", values=("7301", "crates")) in found.edges
    assert not any(edge.proven for edge in found.edges)
    assert [edge.target for edge in found.path(summary)][-1] == ANSWER
    assert {edge.basis for edge in found.edges} <= BASES.keys()
    assert found.to_json()["edges"][0].keys() == {"source", "target", "basis", "proven", "values"}


def test_a_call_that_nothing_behind_the_answer_read_has_no_way_to_it(view: RunView) -> None:
    assert lineage(view).path(span_of(view, "sub_call", 0)) == ()


def test_a_changed_reply_proves_what_depends_on_it_and_what_does_not(home: Home, view: RunView) -> None:
    note, summary, aside = (span_of(view, "sub_call", number) for number in (4, 5, 0))
    with Replayer(home, view) as replayer:
        proven = perturbed(replayer, view, [note, summary, aside])
    assert {edge.target for edge in proven if edge.source == note} == {summary}
    assert ANSWER in {edge.target for edge in proven if edge.source == summary}
    assert not [edge for edge in proven if edge.source == aside]
    path = lineage(view).with_edges(proven).path(note)
    assert [edge.source for edge in path] == [note, summary] and all(edge.proven for edge in path)


def test_the_edges_of_very_large_runs_are_those_of_cells(home: Home) -> None:
    found = lineage(load_run(home, wide_run(home, 6_000)))
    assert not found.whole and all(edge.target == ANSWER for edge in found.edges if edge.basis == "said in")


def test_edges_in_a_circle_have_an_end() -> None:
    circle = Lineage((Edge("a", "b", "read by"), Edge("b", "a", "read by")))
    assert circle.path("a") == () and circle.with_edges([Edge("b", ANSWER, "changed", True)]).path("a") != ()


@given(st.text(), st.lists(st.text(), max_size=3))
def test_a_changed_reply_says_something_else_whatever_it_was(text: str, siblings: list[str]) -> None:
    assert normalise(perturbed_text(text, siblings)) != normalise(text)


@pytest.mark.parametrize(
    "text", ["42", "EUR 1,200.50", '{"fee": 17, "due": "2026-01-31"}', "billing", "[1, 2]"]
)
def test_a_changed_reply_keeps_its_form(text: str) -> None:
    assert form(perturbed_text(text, ["login", "a sentence of its own."])) == form(text)
