"""The root's window: what happens when its messages no longer fit, and what is on record of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_core import Limits, ModelError, Request, Usage
from rlm_core import semconv as sc
from rlm_core.history import History, tokens_of
from rlm_core.lm_handler import Message, estimate_tokens
from rlm_core.options import Options
from rlm_core.prompts import is_final_request, is_summary_request, parse_question, turns_so_far
from tests.support.scripted import cell, completion, run
from traces.diff import diff
from traces.home import Home
from traces.reading import load_run, span_detail
from traces.recording import open_recording
from traces.steps import Replay

SUMMARY = "Found so far: total holds the sum."
PRINTED = 2_000  # characters that each cell prints


def window_for(turns: float, opening: int = 500) -> int:
    """Tokens that hold the opening (in few words, as a small window has it) and so many turns of a talk."""
    return opening + int(turns * PRINTED / 4)


class Talk:
    """A root that prints much, turn after turn, and says what it is asked to sum up."""

    def __init__(self, turns: int, summary: Any = SUMMARY) -> None:
        self.turns, self.summary = turns, summary
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Any:
        self.requests.append(request)
        if is_final_request(request.messages):
            return "a forced answer"
        if is_summary_request(request.messages):
            return self.summary(request) if callable(self.summary) else self.summary
        turn = turns_so_far(request.messages)
        if turn < self.turns:
            return cell(f"n{turn} = {turn}\nprint('t{turn} ' + 'x' * {PRINTED})")
        return cell(f"FINAL(sum([{', '.join(f'n{n}' for n in range(turn))}]))")

    @property
    def summed(self) -> list[Request]:
        return [request for request in self.requests if is_summary_request(request.messages)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def played(
    home: Home, talk: Talk, run_id: str = "20260101T000000-0000000a", **options: Any
) -> tuple[Any, Any]:
    """A run of a talk: its answer and its record."""
    script: Any = talk
    with open_recording(home, run_id, {}) as recording:
        answer = run(script, recorder=recording.recorder, run_id=run_id, **options)
    assert recording.problems == 0
    return answer, load_run(home, run_id)


def root_calls(view: Any) -> list[Any]:
    return [span for span in view.spans if span.kind == "root_call"]


def test_older_turns_give_way_to_a_summary_and_variables_stay(home: Home) -> None:
    talk = Talk(6)
    answer, view = played(home, talk, options=Options(root_window=window_for(4)))
    assert (answer.text, answer.stop_reason) == ("15", "final")
    assert talk.summed
    last = talk.requests[-1].messages
    assert parse_question(last) == "what?"
    assert SUMMARY in last[1].content
    assert "t0 " not in "".join(m.content for m in last)  # summed up
    assert "t5 " in last[-1].content  # as it was
    assert [m.role for m in last][2:] == ["assistant", "user"] * ((len(last) - 2) // 2)
    assert max(tokens_of(request.messages) for request in talk.requests) <= window_for(4) + 200


def test_the_record_says_which_call_summed_up_and_gives_back_what_each_was_sent(home: Home) -> None:
    talk = Talk(6)
    _, view = played(home, talk, options=Options(root_window=window_for(4)))
    calls = root_calls(view)
    assert len(calls) == len(talk.requests)
    for call, request in zip(calls, talk.requests, strict=True):
        assert bool(call.attributes.get(sc.COMPACTED)) == is_summary_request(request.messages)
        detail = span_detail(view, call)
        stored = [(m["role"], m["content"]) for m in detail["messages"]]
        assert stored == [(m.role, m.content) for m in request.messages]
        assert detail["messages_complete"]
    summed = [call for call in calls if call.attributes.get(sc.COMPACTED)]
    assert summed[0].attributes[sc.COMPACTED_TURNS] >= 1
    assert view.summary.iterations == 7  # a summary is no turn
    steps = [step for top in Replay(view).runs() for step in Replay(view).steps(top)]
    turns = [step.root_call for step in steps if step.root_call is not None]
    assert len(turns) == len(steps) and not any(call.attributes.get(sc.COMPACTED) for call in turns)
    assert all(step.cell is not None for step in steps)


def test_without_a_known_window_nothing_is_summed_up(home: Home) -> None:
    talk = Talk(6)
    answer, _ = played(home, talk)
    assert answer.text == "15" and not talk.summed


class Narrow(Talk):
    """A model with a window that nobody knows: longer requests are refused."""

    most = window_for(4, opening=750)

    def __call__(self, request: Request) -> Any:
        if tokens_of(request.messages) > self.most:
            self.requests.append(request)
            raise ModelError("context_window", "longer than the context window")
        return super().__call__(request)


def test_a_provider_that_says_too_long_is_asked_again_with_a_summary_and_not_told_twice(home: Home) -> None:
    talk = Narrow(9)
    answer, view = played(home, talk)
    assert (answer.text, answer.stop_reason) == ("36", "final")
    refused = [call for call in root_calls(view) if call.status == "error"]
    assert [call.error_type for call in refused] == ["context_window"]  # what fitted once is remembered
    assert len(talk.summed) >= 2


def test_a_provider_that_refuses_even_the_opening_ends_the_run(home: Home) -> None:
    class Tiny(Narrow):
        most = 10

    answer, _ = played(home, talk := Tiny(3))
    assert answer.stop_reason == "error" and "context window" in str(answer.error)
    assert len(talk.requests) == 1


def test_a_window_that_no_summary_helps_is_an_error_not_a_loop(home: Home) -> None:
    talk = Talk(6)
    answer, _ = played(home, talk, options=Options(root_window=window_for(0.5)))
    assert answer.stop_reason == "error"
    assert "root_window is" in str(answer.error)
    assert len(talk.requests) == 1  # the opening fitted, the first turn did not


def test_summaries_come_at_most_once_a_turn_whatever_the_root_prints(home: Home) -> None:
    talk = Talk(12, summary=lambda _: "y" * 100_000)
    answer, _ = played(home, talk, options=Options(root_window=window_for(8)))
    assert answer.stop_reason == "final"
    assert len(talk.summed) <= 4 < 12


def test_an_empty_summary_ends_the_run_in_words(home: Home) -> None:
    answer, view = played(home, Talk(6, summary=" "), options=Options(root_window=window_for(3)))
    assert answer.stop_reason == "error" and "summary" in str(answer.error)
    assert view.summary.stop_reason == "error"


def test_a_forced_answer_leaves_the_oldest_turns_out_and_says_so(home: Home) -> None:
    class Refusing(Narrow):
        most = window_for(3.5, opening=750)

        def __call__(self, request: Request) -> Any:
            if is_summary_request(request.messages):
                raise AssertionError("nothing is summed up after a limit")
            return super().__call__(request)

    talk = Refusing(20)
    answer, _ = played(home, talk, limits=Limits(max_iterations=4))
    assert (answer.text, answer.forced) == ("a forced answer", True)
    last = talk.requests[-1].messages
    assert "oldest turns are left out" in last[-1].content and "t3 " in last[-2].content


def test_the_window_counts_as_the_provider_counts(home: Home) -> None:
    """A tokenizer that makes three times as many tokens as four characters a token fills it sooner."""

    class Dense(Talk):
        def __call__(self, request: Request) -> Any:
            reply = super().__call__(request)
            return completion(reply, usage=Usage(input=3 * tokens_of(request.messages), output=5))

    plain, dense = Talk(6), Dense(6)
    played(home, plain, options=Options(root_window=3 * window_for(3)))
    played(home, dense, "20260101T000000-0000000b", options=Options(root_window=3 * window_for(3)))
    assert not plain.summed and dense.summed


def test_the_same_talk_is_summed_up_at_the_same_places(home: Home) -> None:
    views = [
        played(home, Talk(8), f"20260101T000000-0000000{n}", options=Options(root_window=window_for(4)))[1]
        for n in "ab"
    ]
    a, b = ([(c.iteration, c.attributes.get(sc.COMPACTED_TURNS)) for c in root_calls(view)] for view in views)
    assert a == b
    assert diff(*views).plan is None


def test_what_stays_fits_the_wish_and_the_last_turn_always_does() -> None:
    history = History((Message("system", "s"), Message("user", "q")))
    for n in range(5):
        history.add(Message("assistant", f"a{n}"), Message("user", "u" * 400))
    each = tokens_of((history.turns[0].said, history.turns[0].shown))
    assert [history.oldest_beyond(each * k) for k in (0, 1, 2.5, 5, 9)] == [4, 4, 3, 0, 0]
    history.fold(3, "the first three")
    history.fold(1, "the first four")
    assert (history.folded, len(history.turns), turns_so_far(history.messages)) == (4, 1, 5)
    assert "first three" not in history.head[1].content and "the first four" in history.head[1].content


def test_estimates_are_by_characters() -> None:
    assert tokens_of([Message("user", "x" * 40)]) == estimate_tokens("x" * 40) + 4
