"""Runs whose root summed up its turns, played again: the summaries of the record stand where they stood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, Request
from rlm_core import semconv as sc
from rlm_core.options import Options
from rlm_core.prompts import is_summary_request, turns_so_far
from tests.support.dead_runs import died_at, go_on, records
from tests.support.replays import span_of
from tests.traces.records import home_in
from traces.home import Home
from traces.program import read_program
from traces.reading import RunView, load_run, span_detail
from traces.recording import open_recording
from traces.replay import Replayer
from traces.trial import Budget, Patch, Target

TURNS = 6
AGAIN = "20260102T000000-0000cccc"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_in(tmp_path)


def talk(request: Request) -> str:
    """What the root says: it prints much, asks once, and types the reply that it was shown last."""
    if is_summary_request(request.messages):
        return "The reply is in r."
    turn = turns_so_far(request.messages)
    if turn == 0:
        return "```repl\nr = llm_query('How many?')\nprint(r + 'x' * 2_000)\n```"
    if turn < TURNS:
        return f"```repl\nprint(r + ' {turn} ' + 'x' * 2_000)\n```"
    return "```repl\nFINAL(r)\n```"


def summed(home: Home) -> RunView:
    """A recorded run with summaries."""

    def answer(request: Request) -> str:
        return "7" if request.role == "sub" else talk(request)

    run_id = "20260101T000000-0000aaaa"
    with (
        open_recording(home, run_id, {}) as recording,
        RLM(
            "openai/root", "openai/sub", handler=FunctionLMHandler(answer), corpora=home.corpora,
            options=Options(root_window=2_500),
        ) as rlm,
    ):  # fmt: skip
        rlm.ask("how many?", {"a.txt": "alpha"}, recorder=recording.recorder, run_id=run_id)
        recording.close("ok")
    return load_run(home, run_id)


def sent(view: RunView) -> list[tuple[bool, Any, list[str]]]:
    """The root calls: whether each sums up, how many turns, and who says what it was sent."""
    calls = [span for span in view.spans if span.kind == "root_call"]
    return [
        (
            call.attributes.get(sc.COMPACTED) is True,
            call.attributes.get(sc.COMPACTED_TURNS),
            [message["role"] for message in span_detail(view, call)["messages"]],
        )
        for call in calls
    ]


def test_a_replay_sums_up_where_its_record_does_and_asks_nobody(home: Home) -> None:
    view = summed(home)
    assert any(sums for sums, *_ in sent(view))
    with Replayer(home, view) as replayer, open_recording(home, AGAIN, {}) as recording:
        assert replayer.check().status == "replayable"
        trial = replayer.trial([], target=Target("7"), recorder=recording.recorder, run_id=AGAIN)
        recording.close("ok")
    assert (trial.answer, trial.live_calls, trial.misses) == ("7", 0, 0)
    again = load_run(home, AGAIN)
    assert sent(again) == sent(view)
    served = {s.attributes.get(sc.SERVED_FROM) for s in again.spans if s.kind == "root_call"}
    assert served == {"record"} and not [s for s in again.spans if s.kind == "attempt"]


def test_a_root_that_is_asked_anew_sums_up_by_itself_and_each_call_is_counted(home: Home) -> None:
    view, asked = summed(home), list[Request]()

    def root(request: Request) -> str:
        asked.append(request)
        return talk(request)

    handler = FunctionLMHandler(root)
    with Replayer(home, view, handler=handler, budget=Budget(live_calls=20)) as replayer:
        trial = replayer.trial([Patch(span_of(view, "sub_call"), "8")], mode="reask", target=Target("8"))
    assert (trial.outcome, trial.answer) == ("fixed", "8")
    assert any(is_summary_request(request.messages) for request in asked)
    assert trial.live_calls == len(asked)


def test_a_summary_is_no_turn_of_the_program(home: Home) -> None:
    program = read_program(summed(home))
    assert sorted(turn for _, turn in program.turns) == list(range(TURNS + 1))
    assert "The reply is in r." not in [turn.text for turn in program.turns.values()]
    assert program.summaries and all(one.turns >= 1 for one in program.summaries.values())


@pytest.mark.parametrize("part", [0.85, 0.95])
def test_a_run_that_died_goes_on_with_the_summaries_it_had(home: Home, tmp_path: Path, part: float) -> None:
    view, asked = summed(home), list[Request]()
    kept = int(part * records(home, view.run_id))
    dead = died_at(home, view.run_id, kept, tmp_path / "dead")
    had = read_program(load_run(dead, view.run_id)).summaries
    assert had

    def model(request: Request) -> str:
        asked.append(request)
        return "7" if request.role == "sub" else talk(request)

    answer, again, _ = go_on(dead, load_run(dead, view.run_id), model, AGAIN)
    assert (answer.text, answer.stop_reason) == ("7", "final")
    summaries = [request for request in asked if is_summary_request(request.messages)]
    assert len(had) + len(summaries) == sum(sums for sums, *_ in sent(view))
    assert sent(again) == sent(view)
