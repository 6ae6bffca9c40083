"""The loop as a whole: limits, endings, failures, children, lost workers, and their record."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, Limits, ModelError, Request, Usage
from rlm_core import semconv as sc
from rlm_core.errors import ConfigError, InputError, SandboxError
from rlm_core.progress import Progress
from rlm_core.sandbox import probe
from tests.support.scripted import FAST, Script, cell, completion, play, run
from traces.home import Home
from traces.reading import load_run, span_detail
from traces.recording import open_recording


class Recorded:
    """Plays cells into a record and reads it back."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "home")

    def play(self, *codes: str, **options: Any) -> tuple[Any, Any, Script]:
        script = Script(
            [cell(code) for code in codes], options.pop("sub", None) or (lambda r: f"seen {len(r.prompt)}")
        )
        return *self.run(script, **options), script

    def run(self, script: Script, **options: Any) -> tuple[Any, Any]:
        with open_recording(self.home, "20260101T000000-0000000a", {}) as recording:
            answer = run(script, recorder=recording.recorder, run_id=recording.run_id, **options)
        assert recording.problems == 0
        return answer, load_run(self.home, recording.run_id)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def kinds(view: Any) -> Counter[str]:
    return Counter(span.kind for span in view.spans)


def of_kind(view: Any, kind: str) -> list[Any]:
    return [span for span in view.spans if span.kind == kind]


# -- the record of an ordinary run


def test_every_span_closes_before_its_parent_and_has_a_status(recorded: Recorded) -> None:
    _, view, _ = recorded.play(
        "print(context)", "r = llm_batch(['a', 'b', 'c'])\nq = llm_query('d')", "FINAL(len(r))"
    )
    assert kinds(view) == {
        "run": 1, "iteration": 3, "root_call": 3, "cell": 3, "batch": 1, "sub_call": 4, "attempt": 7,
    }  # fmt: skip
    by_id = {span.span_id: span for span in view.spans}
    for span in view.spans:
        assert span.status == "ok"
        if span.parent_id is not None:
            parent = by_id[span.parent_id]
            assert parent.start_ns <= span.start_ns <= span.end_ns <= parent.end_ns
    parents = {span.kind: by_id[span.parent_id].kind for span in view.spans if span.parent_id}
    assert parents["iteration"] == "run" and parents["cell"] == "iteration" and parents["batch"] == "cell"


def test_phases_follow_the_rules(recorded: Recorded) -> None:
    _, view, _ = recorded.play(
        "x = len(context)", "r = llm_query('a')", "n = len(r)", "m = n + 1", "y = x", "FINAL(m)"
    )
    phases = [span.phase for span in of_kind(view, "cell")]
    assert phases == ["Explore", "Decompose", "Aggregate", "Aggregate", "Explore", "Terminate"]


def test_identity_of_calls(recorded: Recorded) -> None:
    _, view, _ = recorded.play(
        "a = llm_query('Page 1?', context[4:10])\n\n"
        "b = llm_batch(['Page 2?', 'same', 'same'], [context[0:3], '', ''])",
        "FINAL(1)",
    )
    calls = of_kind(view, "sub_call")
    facts = [call.attributes for call in calls]
    assert [call.call_index for call in calls] == [0, 0, 1, 2]  # in a batch: the slot
    assert [f[sc.CALL_LINE] for f in facts] == [1, 3, 3, 3]
    assert [f[sc.CALL_OCCURRENCE] for f in facts] == [0, 0, 0, 1]
    assert facts[0][sc.TEMPLATE_HASH] == facts[1][sc.TEMPLATE_HASH] != facts[2][sc.TEMPLATE_HASH]
    assert facts[0][sc.PROMPT_HASH] != facts[1][sc.PROMPT_HASH]
    assert facts[2][sc.REQUEST_HASH] == facts[3][sc.REQUEST_HASH] != facts[2][sc.PROMPT_HASH]
    ranges = [json.loads(f[sc.SOURCE_RANGES]) for f in facts[:3]]
    assert ranges[0] == {"how": "reference", "ranges": [[0, 4, 10]], "places": [None]}
    assert ranges[2] == {"how": "none", "ranges": [], "places": []}
    assert span_detail(view, calls[0])["prompt"] == "Page 1?\n\ncorpus"


def test_root_messages_are_stored_as_deltas_and_read_back_whole(recorded: Recorded) -> None:
    _, view, script = recorded.play("print(1)", "print(2)", "FINAL(3)")
    calls = of_kind(view, "root_call")
    assert [call.attributes[sc.MESSAGES_PRIOR] for call in calls] == [0, 2, 4]
    for call, request in zip(calls, script.root_requests, strict=True):
        stored = [(m["role"], m["content"]) for m in span_detail(view, call)["messages"]]
        assert stored == [(m.role, m.content) for m in request.messages]


def test_the_run_span_says_what_replay_will_need(recorded: Recorded) -> None:
    _, view, _ = recorded.play("FINAL(42)", seed=7)
    facts = of_kind(view, "run")[0].attributes
    assert json.loads(facts[sc.SEEDS])["python_hash"] == 7
    assert json.loads(facts[sc.LIMITS])["max_iterations"] == 30
    assert json.loads(facts[sc.VERSIONS])["rlmscope"]
    assert facts[sc.SANDBOX] == probe().level and facts[sc.PROMPTS_VERSION]
    assert json.loads(facts[sc.SANDBOX_LAYERS]) == list(probe().layers)
    assert facts[sc.ANSWER_VIA] == "FINAL"
    manifest = json.loads(view.payload(facts[sc.CORPUS + ".sha256"]))
    assert manifest["documents"][0]["sha256"]


def test_what_budget_says_is_recorded_because_code_can_act_on_it(recorded: Recorded) -> None:
    answer, view, _ = recorded.play("b = budget()\nllm_query('x')\nFINAL(b['calls'] - budget()['calls'])")
    assert answer.value == 1
    events = view.events(of_kind(view, "cell")[0].span_id)
    assert [event["name"] for event in events] == [sc.EV_HOST_REPLY, sc.EV_HOST_REPLY]


def test_variables_and_names_of_a_cell(recorded: Recorded) -> None:
    _, view, _ = recorded.play("x = 1\ny = [context]", "x = 2\ndel y\nFINAL(x)")
    first, second = (span_detail(view, span) for span in of_kind(view, "cell"))
    assert {row["name"]: row["change"] for row in first["variables"]} == {"x": "new", "y": "new"}
    assert {row["name"]: row["change"] for row in second["variables"]} == {"x": "changed", "y": "deleted"}
    assert first["names_read"] == ["context"] and first["names_written"] == ["x", "y"]


# -- answers


@pytest.mark.parametrize(
    ("code", "mark"),
    [
        ("FINAL('')", "empty"),
        ("FINAL(None)", "empty"),
        ("answer['content'] = '  '; answer['ready'] = True", "empty"),
        ("FINAL('Error: rate limit')", "error_text"),
        ("FINAL(llm_query('x'))", "error_text"),
    ],
)
def test_a_doubtful_answer_is_refused_once_then_marked(code: str, mark: str) -> None:
    def fails(_: Request) -> Any:
        raise ModelError("bad_request", "no")

    answer, script = play(code, code, sub=fails)
    assert answer.mark == mark and answer.stop_reason == "final"
    assert "The answer was not taken" in script.outputs[0]


@pytest.mark.parametrize(
    "code",
    [
        "FINAL(5)\nraise ValueError('after')",
        "FINAL_VAR('nowhere')",
        "import traceback\ntry: 1/0\nexcept Exception: FINAL(traceback.format_exc())",
        "class Bad:\n    def __repr__(self): raise ValueError\nFINAL(Bad())",
    ],
)
def test_what_can_never_be_an_answer(code: str) -> None:
    answer, script = play(code, code, code, "FINAL('good')")
    assert answer.text == "good"
    assert sum("The answer was not taken" in output for output in script.outputs) == 3


def test_the_answer_is_read_at_the_end_of_the_cell() -> None:
    answer, _ = play("answer['ready'] = True\nanswer['content'] = 'late'")
    assert answer.text == "late"
    answer, _ = play("x = 1\nFINAL_VAR('x')\nx = 2")
    assert answer.value == 2


def test_confidence_and_note_travel_with_the_answer() -> None:
    answer, _ = play(
        "answer = {'content': 4, 'ready': True, 'confidence': 'low', 'note': 'low confidence: 1 of 5'}"
    )
    assert (answer.text, answer.confidence, answer.note) == ("4", "low", "low confidence: 1 of 5")


def test_blocks_after_the_answer_are_not_executed() -> None:
    script = Script([cell("FINAL('first')") + "\n" + cell("llm_query('second')\nFINAL('second')")])
    assert run(script).text == "first"
    assert not script.sub_requests


def test_truncated_replies_are_never_executed() -> None:
    script = Script([completion(cell("FINAL('cut')"), finish_reason="length"), cell("FINAL('whole')")])
    assert run(script).text == "whole"
    assert "cut off" in script.outputs[0]


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


def test_calls_over_the_limit_are_typed_refusals_with_spans(recorded: Recorded) -> None:
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


def test_refused_calls_cannot_spin_a_cell_and_end_the_run() -> None:
    spin = "while True:\n    llm_query('x')"
    script = Script([cell(spin), cell(spin), "Best guess: 3."])
    answer = run(script, limits=Limits(max_calls=1))
    assert (answer.stop_reason, answer.forced, answer.text) == ("budget", True, "Best guess: 3.")
    assert len(script.sub_requests) == 1
    assert "refused by the budget" in script.outputs[0]


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
    script = Script([cell("import time\ntime.sleep(60)"), "Not finished."])
    answer = run(script, limits=Limits(max_seconds=0.5))
    assert (answer.stop_reason, answer.forced, answer.text) == ("timeout", True, "Not finished.")
    assert answer.seconds < 30


@pytest.mark.parametrize("seconds", [0.0, 0.002])
def test_a_run_whose_time_is_over_while_its_worker_starts_ends_all_the_same(seconds: float) -> None:
    answer = run(Script(["Not begun."]), limits=Limits(max_seconds=seconds))
    assert (answer.stop_reason, answer.forced, answer.text) == ("timeout", True, "Not begun.")


def test_wall_time_of_a_cell_pauses_while_sub_calls_are_outstanding(recorded: Recorded) -> None:
    def slow(_: Request) -> str:
        time.sleep(0.8)
        return "late"

    answer, view, _ = recorded.play("FINAL(llm_query('x'))", sub=slow, limits=Limits(cell_seconds=0.4))
    assert answer.text == "late"
    assert of_kind(view, "cell")[0].attributes[sc.CELL_WALL] < 0.4


def test_cancel_from_another_thread_closes_every_span(recorded: Recorded) -> None:
    asked = threading.Event()

    def hang(_: Request) -> str:
        asked.set()
        time.sleep(1.0)
        return "too late"

    script = Script([cell("llm_batch(['a', 'b', 'c'])")], hang)
    with open_recording(recorded.home, "20260101T000000-0000000b", {}) as recording:
        handler = FunctionLMHandler(script, concurrency=2)
        with RLM("t/r", "t/s", handler=handler, limits=Limits(concurrency=2)) as rlm:
            threading.Thread(target=lambda: (asked.wait(20), rlm.cancel())).start()
            answer = rlm.ask("q", "c", recorder=recording.recorder, run_id=recording.run_id)
    assert (answer.stop_reason, answer.text) == ("cancelled", None)
    view = load_run(recorded.home, recording.run_id)
    assert {span.status for span in view.spans} <= {"ok", "cancelled"}
    assert all(span.end_ns for span in view.spans)
    assert of_kind(view, "run")[0].status == "cancelled"


# -- failures of models and handlers


def test_each_try_is_an_attempt_span_and_the_last_error_is_the_calls(recorded: Recorded) -> None:
    tries: Counter[str] = Counter()

    def flaky(request: Request) -> str:
        tries[request.prompt] += 1
        if request.prompt == "dead" or tries[request.prompt] < 2:
            raise ModelError("server", "HTTP 500", retryable=True, status=500)
        return "fine"

    answer, view, _ = recorded.play("FINAL([bool(x) for x in llm_batch(['once', 'dead'])])", sub=flaky)
    assert answer.value == [True, False]
    once, dead = of_kind(view, "sub_call")
    attempts = [
        [a.status for a in of_kind(view, "attempt") if a.parent_id == call.span_id] for call in (once, dead)
    ]
    assert attempts == [["error", "ok"], ["error"] * FAST.max_tries]
    assert dead.status == "error" and dead.attributes[sc.ERROR_TYPE] == "server"


def test_a_root_that_fails_for_good_ends_the_run_with_its_reason() -> None:
    def dead(_: Request) -> Any:
        raise ModelError("auth", "the key is not accepted", status=401)

    answer = run(Script([dead]))
    assert (answer.stop_reason, answer.text) == ("error", None)
    assert answer.error is not None and "the key is not accepted" in answer.error


@pytest.mark.parametrize("error", [ValueError("boom"), StopIteration("odd"), KeyError("x")])
def test_a_defect_of_a_handler_is_a_typed_failure_not_a_hang(error: Exception) -> None:
    answer, _ = play("FINAL(llm_query('x').kind)", sub=lambda _: error)
    assert answer.text == "unknown"


def test_unknown_prices_are_unknown_and_reported_usage_is_kept(recorded: Recorded) -> None:
    script = Script(
        [completion(cell("FINAL(llm_query('x'))"), usage=Usage(input=100, output=20))],
        lambda _: completion("y", usage=Usage(input=7, output=3, reasoning=2)),
    )
    answer, view = recorded.run(script)
    assert answer.tokens == {"input": 107, "output": 23, "total": 130}
    assert (answer.cost_usd, answer.cost_status) == (None, "unknown")
    assert view.summary.cost_usd is None and view.summary.tokens["total"] == 130


def test_a_priced_model_adds_up() -> None:
    script = Script(
        [completion(cell("FINAL(llm_query('x'))"), usage=Usage(input=1_000_000, output=0))],
        lambda _: completion("y", usage=Usage(input=0, output=1_000_000)),
    )
    with RLM(
        "openai/gpt-5-mini", "openai/gpt-5-mini", handler=FunctionLMHandler(script), retries=FAST
    ) as rlm:
        answer = rlm.ask("q", "c")
    assert (answer.cost_usd, answer.cost_status) == (Decimal("2.25"), "priced")


# -- workers that die


def test_a_lost_worker_comes_back_with_its_state_and_no_new_call(recorded: Recorded) -> None:
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
        limits=Limits(cell_seconds=0.3),
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


# -- child runs


def child_script(request: Request) -> str:
    """The same root model for both levels: the child is known by its question."""
    question = request.messages[1].content
    if "count the words" in question:
        return cell("FINAL(len(context.split()))")
    return cell("FINAL(rlm_query_batched(['count the words'] * 2, ['one two', ['three', 'four five six']]))")


def test_child_runs_are_subtrees_with_their_own_corpus(recorded: Recorded) -> None:
    def root(request: Request) -> str:
        if "count the words" in request.messages[1].content:
            return cell("FINAL(sum(len(d.split()) for d in documents))")
        return child_script(request)

    answer, view = recorded.run(Script([root] * 3))
    assert answer.value == ["2", "4"]
    runs = of_kind(view, "run")
    assert [(span.depth, span.attributes[sc.RUN_PATH]) for span in runs] == [(0, "0"), (1, "0.1"), (1, "0.2")]
    assert kinds(view)["root_call"] == 3


def test_depth_is_a_limit_and_a_refusal_is_typed() -> None:
    answer, _ = play("FINAL(rlm_query('deeper').kind)", limits=Limits(max_depth=0))
    assert answer.text == "depth"


def test_parents_waiting_for_children_never_hold_a_place() -> None:
    """Width 4 at concurrency 2 and one worker a level: a semaphore held by waiting parents would deadlock."""

    def root(request: Request) -> str:
        if "leaf" in request.messages[1].content:
            return cell("FINAL(sum(bool(x) for x in llm_batch(['a', 'b'])))")
        return cell("FINAL(rlm_query_batched(['leaf'] * 4))")

    answer = run(Script([root] * 5), limits=Limits(concurrency=2, max_workers=1))
    assert answer.value == ["2"] * 4


# -- refusals at the door


def test_bad_settings_are_one_sentence() -> None:
    with pytest.raises(ConfigError, match="max_iterations must be at least 1"):
        RLM(limits=Limits(max_iterations=0))
    with pytest.raises(SandboxError, match="unknown sandbox level 'total'"):
        RLM(sandbox="total")
    with RLM() as rlm, pytest.raises(InputError, match="the question is empty"):
        rlm.ask("  ", "corpus")


def test_progress_counts_calls_while_they_run() -> None:
    seen: list[tuple[str, int, int]] = []

    def watch(progress: Progress) -> None:
        seen.append((progress.phase, progress.calls_done, progress.calls_running))

    play("llm_batch(['a', 'b'])\nFINAL(1)", on_event=watch)
    assert ("running a cell", 0, 2) in seen
    assert seen[-1][1:] == (2, 0)


def test_the_literatures_two_programs_run_as_written() -> None:
    answer, script = play(
        'summaries = llm_batch([f"Summarise in 2 lines: {doc}" for doc in documents])',
        'themes = llm_call("Group these by theme:", summaries)',
        "FINAL(themes)",
        corpus={"a": "Text about frogs.", "b": "Text about ponds."},
    )
    assert [request.prompt for request in script.sub_requests] == [
        "Summarise in 2 lines: Text about frogs.",
        "Summarise in 2 lines: Text about ponds.",
        "Group these by theme:\n\nseen 39\n\nseen 39",
    ]
    assert answer.text == "seen 39"


def test_a_corpus_of_more_documents_than_a_frame_holds() -> None:
    answer, _ = play(
        "FINAL([len(documents), documents[-1], documents['text-1301'].name])",
        corpus=["same"] * 1300 + ["last"],
    )
    assert answer.value == [1301, "last", "text-1301"]


def test_a_cell_that_asks_for_its_budget_for_ever_is_stopped(recorded: Recorded) -> None:
    answer, view, script = recorded.play("while True: budget()", "FINAL('done')")
    assert answer.text == "done"
    assert "budget() was called 1,000 times" in script.outputs[0]
    assert len(view.events(of_kind(view, "cell")[0].span_id)) < 50_000
