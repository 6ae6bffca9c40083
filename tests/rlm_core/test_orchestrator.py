"""The loop as a whole: endings, failures, children, and their record."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, Limits, ModelError, Request, Usage
from rlm_core import semconv as sc
from rlm_core.errors import ConfigError, InputError, SandboxError
from rlm_core.options import Options
from rlm_core.progress import Progress
from rlm_core.sandbox import probe
from tests.support.played_cells import Played, kinds, of_kind
from tests.support.scripted import FAST, Script, cell, completion, play, run
from traces.reading import span_detail


@pytest.fixture
def recorded(tmp_path: Path) -> Played:
    return Played(tmp_path)


# -- the record of an ordinary run


def test_every_span_closes_before_its_parent_and_has_a_status(recorded: Played) -> None:
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


def test_phases_follow_the_rules(recorded: Played) -> None:
    _, view, _ = recorded.play(
        "x = len(context)", "r = llm_query('a')", "n = len(r)", "m = n + 1", "y = x", "FINAL(m)"
    )
    phases = [span.phase for span in of_kind(view, "cell")]
    assert phases == ["Explore", "Decompose", "Aggregate", "Aggregate", "Explore", "Terminate"]


def test_identity_of_calls(recorded: Played) -> None:
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


def test_root_messages_are_stored_as_deltas_and_read_back_whole(recorded: Played) -> None:
    _, view, script = recorded.play("print(1)", "print(2)", "FINAL(3)")
    calls = of_kind(view, "root_call")
    assert [call.attributes[sc.MESSAGES_PRIOR] for call in calls] == [0, 2, 4]
    for call, request in zip(calls, script.root_requests, strict=True):
        stored = [(m["role"], m["content"]) for m in span_detail(view, call)["messages"]]
        assert stored == [(m.role, m.content) for m in request.messages]


def test_the_run_span_says_what_replay_will_need(recorded: Played) -> None:
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


def test_what_budget_says_is_recorded_because_code_can_act_on_it(recorded: Played) -> None:
    answer, view, _ = recorded.play("b = budget()\nllm_query('x')\nFINAL(b['calls'] - budget()['calls'])")
    assert answer.value == 1
    events = view.events(of_kind(view, "cell")[0].span_id)
    assert [event["name"] for event in events] == [sc.EV_HOST_REPLY, sc.EV_HOST_REPLY]


def test_variables_and_names_of_a_cell(recorded: Played) -> None:
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


# -- failures of models and handlers


def test_each_try_is_an_attempt_span_and_the_last_error_is_the_calls(recorded: Played) -> None:
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


def test_unknown_prices_are_unknown_and_reported_usage_is_kept(recorded: Played) -> None:
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


# -- child runs


def child_script(request: Request) -> str:
    """The same root model for both levels: the child is known by its question."""
    question = request.messages[1].content
    if "count the words" in question:
        return cell("FINAL(len(context.split()))")
    return cell("FINAL(rlm_query_batched(['count the words'] * 2, ['one two', ['three', 'four five six']]))")


def test_child_runs_are_subtrees_with_their_own_corpus(recorded: Played) -> None:
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


def test_progress_counts_calls_that_no_model_is_asked() -> None:
    seen: list[tuple[int, int]] = []

    def watch(progress: Progress) -> None:
        seen.append((progress.calls_done, progress.calls_failed))

    limits, options = Limits(max_prompt_chars=10), Options(cache=True)
    turned_away, known = "llm_query('x' * 11)", "llm_batch(['a', 'a'])"
    play(turned_away, known, "FINAL(1)", limits=limits, options=options, on_event=watch)
    assert seen[-1] == (3, 1) and all(failed <= done for done, failed in seen)


def test_progress_counts_calls_that_a_limit_refused_by_themselves_as_the_answer_does() -> None:
    seen: list[tuple[int, int, int]] = []

    def watch(progress: Progress) -> None:
        seen.append((progress.calls_done, progress.calls_failed, progress.calls_refused))

    code = "llm_batch(['a', 'b', 'c'])\nFINAL(1)"
    answer, _ = play(code, limits=Limits(max_calls=1), on_event=watch)
    assert seen[-1] == (answer.sub_calls, answer.failed_sub_calls, answer.refused_sub_calls) == (1, 0, 2)
    assert all(min(counts) >= 0 for counts in seen)


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


def test_a_cell_that_asks_for_its_budget_for_ever_is_stopped(recorded: Played) -> None:
    answer, view, script = recorded.play("while True: budget()", "FINAL('done')")
    assert answer.text == "done"
    assert "budget() was called 1,000 times" in script.outputs[0]
    assert len(view.events(of_kind(view, "cell")[0].span_id)) < 50_000
