"""The loop at its limits: turns, budgets, time, cancellation, and workers that die."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, Limits, Request, Usage
from rlm_core import semconv as sc
from rlm_core.options import Options
from tests.support.played_cells import Played, of_kind
from tests.support.scripted import Script, cell, completion, play, run
from traces.reading import load_run
from traces.recording import open_recording


@pytest.fixture
def recorded(tmp_path: Path) -> Played:
    return Played(tmp_path)


# -- limits


def test_an_answer_after_the_last_turn_is_forced_and_marked() -> None:
    script = Script([cell("print(1)"), "It is 12."])
    answer = run(script, limits=Limits(max_iterations=1))
    assert (answer.text, answer.stop_reason, answer.forced) == ("It is 12.", "max_iterations", True)
    assert script.root_requests[-1].messages[-1].role == "user"


@pytest.mark.parametrize("reply", [cell("FINAL('code')"), "", None])
def test_a_forced_reply_without_plain_text_is_no_answer(reply: str | None) -> None:
    answer = run(Script([cell("print('leftover')"), reply]), limits=Limits(max_iterations=1))
    assert (answer.text, answer.stop_reason, answer.forced) == (None, "max_iterations", False)
    assert answer.error == "the limit of turns is reached; the forced reply held no plain text"


def test_calls_over_the_limit_are_typed_refusals_with_spans(recorded: Played) -> None:
    answer, view, script = recorded.play(
        "r = llm_batch(['a', 'b', 'c', 'd'])\nFINAL([getattr(x, 'kind', x) for x in r])",
        limits=Limits(max_calls=2),
    )
    assert answer.value == ["seen 1", "seen 1", "budget", "budget"]
    assert len(script.sub_requests) == 2
    calls = of_kind(view, "sub_call")
    assert [call.status for call in calls] == ["ok", "ok", "error", "error"]
    # nothing was asked, so nothing is billed: the record sums up to what the run says of itself
    assert [(call.cost_usd, call.cost_status) for call in calls[2:]] == [(0, "free")] * 2
    summary = view.summary
    assert (summary.cost_usd, summary.cost_status) == (answer.cost_usd, answer.cost_status)


@pytest.mark.parametrize(
    ("code", "options", "counts"),
    [
        ("llm_batch(['a', 'b', 'c', 'd'])", {"limits": Limits(max_calls=1)}, (1, 0, 3)),
        ("llm_batch(['a'] * 4)", {"limits": Limits(max_calls=1), "options": Options(cache=True)}, (1, 0, 3)),
        ("rlm_query('a')\nllm_query('b')", {"limits": Limits(max_depth=0)}, (1, 0, 1)),
        ("llm_query('a', model='other/one')\nllm_query('b')", {}, (2, 1, 0)),
    ],
    ids=["calls", "cached calls", "depth", "no limit"],
)
def test_a_run_tells_calls_that_a_limit_refused_from_those_it_made(
    recorded: Played, code: str, options: dict[str, Any], counts: tuple[int, ...]
) -> None:
    answer, view, _ = recorded.play(f"{code}\nFINAL(1)", **options)
    assert (answer.sub_calls, answer.failed_sub_calls, answer.refused_sub_calls) == counts
    told = view.summary
    assert (told.sub_calls, told.failed_sub_calls, told.refused_sub_calls) == counts, "as its record does"


def test_refused_calls_cannot_spin_a_cell_and_end_the_run() -> None:
    spin = "while True:\n    llm_query('x')"
    script = Script([cell(spin), cell(spin), "Best guess: 3."])
    answer = run(script, limits=Limits(max_calls=1))
    assert (answer.stop_reason, answer.forced, answer.text) == ("budget", True, "Best guess: 3.")
    assert len(script.sub_requests) == 1
    assert "8 or more sub-calls refused by the budget" in script.outputs[0]


def test_a_token_budget_stops_the_run_and_leaves_room_for_the_forced_answer() -> None:
    script = Script(
        [
            completion(cell("r = llm_batch(['x' * 40] * 50)\nprint(sum(not x for x in r))")),
            completion(cell("1")),
            "So: 7.",
        ],
        sub=lambda _: completion("y", usage=Usage(input=10, output=100)),
    )
    answer = run(
        script, limits=Limits(max_tokens=4000, concurrency=2, max_tokens_root=500, max_tokens_sub=100)
    )
    assert answer.stop_reason in ("budget", "final") and len(script.sub_requests) < 50
    assert answer.tokens["total"] <= 4000 + 2 * 110


def test_a_run_out_of_time_is_stopped_and_asked_once_more() -> None:
    def first(request: Request) -> str:  # a slow machine may come to it only when time is over
        return cell("import time\ntime.sleep(60)") if len(request.messages) == 2 else "Not finished."

    answer = run(Script([first, "Not finished."]), limits=Limits(max_seconds=0.5))
    assert (answer.stop_reason, answer.forced, answer.text) == ("timeout", True, "Not finished.")
    assert answer.seconds < 30


@pytest.mark.parametrize("seconds", [0.0, 0.002])
def test_a_run_whose_time_is_over_while_its_worker_starts_ends_all_the_same(seconds: float) -> None:
    answer = run(Script(["Not begun."]), limits=Limits(max_seconds=seconds))
    assert (answer.stop_reason, answer.forced, answer.text) == ("timeout", True, "Not begun.")


def test_wall_time_of_a_cell_pauses_while_sub_calls_are_outstanding(recorded: Played) -> None:
    def slow(_: Request) -> str:
        time.sleep(1.8)
        return "late"

    answer, view, _ = recorded.play("FINAL(llm_query('x'))", sub=slow, limits=Limits(cell_seconds=1.5))
    assert answer.text == "late"
    assert of_kind(view, "cell")[0].attributes[sc.CELL_WALL] < 1.5


@pytest.mark.parametrize("cache", [False, True], ids=["each asks", "two wait for an equal one"])
def test_cancel_from_another_thread_closes_and_counts_every_span(recorded: Played, cache: bool) -> None:
    asked, late = threading.Event(), threading.Event()

    def hang(_: Request) -> str:
        asked.set()
        late.wait(60)
        return "too late"

    def stop(rlm: RLM) -> None:
        asked.wait(60)
        rlm.cancel()
        time.sleep(1.0)
        late.set()

    batch, options = ["a"] * 3 if cache else ["a", "b", "c"], Options(cache=cache)
    script = Script([cell(f"llm_batch({batch})")], hang)
    with open_recording(recorded.home, "20260101T000000-0000000b", {}) as recording:
        handler = FunctionLMHandler(script, concurrency=2)
        with RLM("t/r", "t/s", handler=handler, limits=Limits(concurrency=2), options=options) as rlm:
            threading.Thread(target=stop, args=(rlm,)).start()
            answer = rlm.ask("q", "c", recorder=recording.recorder, run_id=recording.run_id)
    assert (answer.stop_reason, answer.text) == ("cancelled", None)
    view = load_run(recorded.home, recording.run_id)
    assert {span.status for span in view.spans} <= {"ok", "cancelled"}
    assert all(span.end_ns for span in view.spans)
    assert of_kind(view, "run")[0].status == "cancelled"
    run, calls = view.summary, of_kind(view, "sub_call")
    assert (answer.sub_calls, answer.failed_sub_calls) == (run.sub_calls, run.failed_sub_calls)
    assert (run.sub_calls, run.failed_sub_calls) == (len(calls), len(calls))
    asked = {span.parent_id for span in of_kind(view, "attempt")}
    assert {call.cost_status for call in calls if call.span_id not in asked} <= {"free"}, "nothing was sent"
    assert not cache or len(asked & {call.span_id for call in calls}) == 1


# -- workers that die


def test_a_lost_worker_comes_back_with_its_state_and_no_new_call(recorded: Played) -> None:
    answer, view, script = recorded.play(
        "a = llm_batch(['x', 'y'])\ndef f(n): return n + 1",
        "b = budget()['calls']\n1 / 0",
        "gone = llm_query('paid')\nimport os\nos._exit(3)",
        "FINAL([a, f(1), b, llm_query('paid'), 'gone' in dir()])",
    )
    assert answer.value == [["seen 1", "seen 1"], 2, 4998, "seen 4", False]
    assert [request.prompt for request in script.sub_requests] == ["x", "y", "paid"]
    assert answer.notices == (
        "the worker was lost in cell 2 and rebuilt: the worker process exited with code 3",
    )
    lost = of_kind(view, "cell")[2]
    assert lost.status == "error" and json.loads(lost.attributes[sc.LOST_NAMES]) == ["gone", "os"]
    assert "exited with code 3" in script.outputs[2] and "lost: gone, os" in script.outputs[2]
    assert [event["name"] for event in view.events(lost.span_id)] == [sc.EV_WORKER_DIED, sc.EV_REBUILT]
    again = [call for call in of_kind(view, "sub_call") if call.attributes[sc.SERVED_FROM] == "record"]
    assert len(again) == 1 and again[0].cost_usd == 0


def test_a_cell_that_ignores_its_interrupt_is_ended_and_the_run_goes_on() -> None:
    answer, script = play(
        "x = 1",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "FINAL(x)",
        limits=Limits(cell_cpu_seconds=0.3),
    )
    assert answer.text == "1"
    assert "had to be ended" in script.outputs[1]


def test_a_stray_thread_that_keeps_calling_gets_no_answers_between_cells() -> None:
    answer, script = play(
        "import threading, time\nseen = []\ndef go():\n    for _ in range(50):\n"
        "        seen.append(bool(llm_query('s')))\n        time.sleep(0.01)\n"
        "threading.Thread(target=go, daemon=True).start()",
        "import time\ntime.sleep(0.3)\nFINAL(len(seen) > 0)",
    )
    assert answer.value is True
