"""`rlmscope lineage`: the ways of calls to the answer, and what replays prove of them, as text and JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlm_core.errors import RunCancelled
from tests.support.replays import recorded, span_of
from traces.diagnosis_log import ask_to_stop, diagnoses
from traces.home import Home
from traces.lineage import ANSWER
from traces.replay import Replayer
from traces.view import RunView

Call = Callable[..., Any]
RUN = "20260101T000000-0000aaaa"
ASK = "notes = llm_batch([f'item {n}: how many crates?' for n in range(3)])"
TELL = "best = max(notes)\nprint('best', best)"


def three_notes(home: Home, *more: str) -> RunView:
    """A call that nothing reads, three notes, and the largest of them as the answer."""
    cells = ("aside = llm_query('once more')", ASK, *more, TELL, "FINAL_VAR('best')")
    return recorded(home, *cells, sub=lambda request: f"7{request.prompt[5]}01 crates")


def test_candidates_are_told_without_a_replay(call: Call, home: Home) -> None:
    view = three_notes(home)
    said = call("lineage", RUN, "--json").json
    notes = [span_of(view, "sub_call", number) for number in (1, 2, 3)]
    assert set(said["paths"]) == set(notes) and all(said["paths"].values())
    assert not any(edge["proven"] for edge in said["edges"])
    assert (said["replays"], said["live_calls"], said["cost_usd"], said["tried"]) == (0, 0, "0", [])
    assert said["whole"] is True and said["replayability"] is None and diagnoses(home) == []


def test_a_proof_asks_no_model_and_is_known_ever_after(call: Call, home: Home) -> None:
    view = three_notes(home)
    aside, largest, small = (span_of(view, "sub_call", number) for number in (0, 3, 1))
    said = call("lineage", RUN, largest[:8], small, aside, "--prove", "--json").json
    proven = {(edge["source"], edge["target"]) for edge in said["edges"] if edge["proven"]}
    assert (largest, ANSWER) in proven and {source for source, _ in proven} == {largest}
    assert (said["replays"], said["live_calls"], said["cost_usd"]) == (3, 0, "0")
    assert said["tried"] == [largest, small, aside] and said["not_tried"] == []
    assert said["paths"][aside] == [] and said["replayability"]["replayable"] is True
    again = call("lineage", RUN, "--json").json
    assert {(edge["source"], edge["target"]) for edge in again["edges"] if edge["proven"]} == proven
    (kept,) = diagnoses(home, RUN)
    assert (kept.task, kept.status, kept.mode, len(kept.trials)) == ("prove", "done", "frozen", 3)


def test_the_text_says_ways_together_and_what_a_limit_left_open(call: Call, home: Home) -> None:
    view = three_notes(home)
    largest = span_of(view, "sub_call", 3)
    before = call("lineage", RUN).out
    assert before.startswith(
        "3 of 4 calls may have come into the answer “7201 crates”; that it does is proven for none.\n"
    )
    done = call("lineage", RUN, "--prove", "--max-replays", "1")
    assert done.code == 0 and "that it depends on them is proven for 1.\n" in done.out
    assert f"\nsub-call 2 of cell 1 · {largest}\n" in done.out
    assert "  proven    → the answer, because " in done.out
    assert "\n1 replay with one reply changed, all others as recorded: " in done.out
    assert "\n2 calls not tried: beyond --max-replays" in done.out
    aside = span_of(view, "sub_call", 0)
    assert call("lineage", RUN, aside).out.endswith("  no way to the answer is known\n")


def test_a_run_that_cannot_be_replayed_says_why_and_proves_nothing(call: Call, home: Home) -> None:
    three_notes(home, "import time\nprint(time.time_ns())")
    done = call("lineage", RUN, "--prove")
    assert done.code == 0 and "\nNothing can be proven: " in done.out and "time" in done.out
    said = call("lineage", RUN, "--prove", "--json").json
    assert said["replayability"]["replayable"] is False and said["replays"] == 0
    assert not any(edge["proven"] for edge in said["edges"]) and len(said["not_tried"]) == 3


def test_a_run_whose_corpus_is_gone_says_so(call: Call, home: Home) -> None:
    three_notes(home)
    home.corpora.rename(home.root / "elsewhere")
    done = call("lineage", RUN, "--prove")
    assert done.code == 0 and "corpus is not there as it was" in done.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--max-replays", "3"), "--max-replays limits the replays of --prove"),
        (("nothing",), "no span"),
        (("CELL",), "only their replies have a lineage"),
        (("--prove", "--max-replays", "0"), "--max-replays"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    call: Call, home: Home, words: tuple[str, ...], sentence: str
) -> None:
    view = three_notes(home)
    given = [span_of(view, "cell") if word == "CELL" else word for word in words]
    done = call("lineage", RUN, *given)
    assert done.code == 2 and sentence in done.err


def test_a_proof_that_was_cancelled_says_so(call: Call, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    three_notes(home)

    def stopped(_self: Replayer) -> None:
        ask_to_stop(home, diagnoses(home, RUN)[0].diagnosis_id)
        raise RunCancelled("the replay was cancelled")

    monkeypatch.setattr(Replayer, "check", stopped)
    done = call("lineage", RUN, "--prove")
    assert done.code != 0 and "the replay was cancelled" in done.err
    assert [state.status for state in diagnoses(home, RUN)] == ["cancelled"]
