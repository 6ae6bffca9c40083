"""Faults that users reported of other RLM engines, each with an input of our own (`tests/fault_table.py`)."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, Limits, ModelError, Request
from tests.support.scripted import FAST, Script, cell, completion, play, run
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording


def test_two_runs_in_threads_do_not_share_a_working_directory() -> None:
    """Each run writes a relative file, waits for the other one, and reads its own text back."""
    barrier = threading.Barrier(2)
    found: dict[str, str | None] = {}

    def one(name: str) -> None:
        def meet(_: Request) -> str:
            barrier.wait(60)
            return "met"

        answer, _ = play(
            f"open('f.txt', 'w').write({name!r})",
            "llm_query('wait')",
            "FINAL(open('f.txt').read())",
            sub=meet,
        )
        found[name] = answer.text

    threads = [threading.Thread(target=one, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"first": "first", "second": "second"}


def test_code_in_tool_call_markup_is_executed() -> None:
    reply = '<invoke name="repl"><parameter name="code">print(6 * 7)</parameter></invoke>'
    script = Script([reply, cell("FINAL('done')")])
    assert run(script).text == "done"
    assert "42" in script.outputs[0]


def test_a_reply_without_content_does_not_end_the_run() -> None:
    script = Script([None, cell("FINAL(1)")])
    assert run(script).text == "1"
    assert "nothing was executed" in script.outputs[0]


def test_a_reply_of_reasoning_only_is_survived_and_named() -> None:
    script = Script(
        [completion(None, reasoning="let me think"), cell("r = llm_query('x')\nFINAL([bool(r), r.kind])")],
        sub=lambda _: completion(None, reasoning="thinking about x"),
    )
    answer = run(script)
    assert "Only reasoning came" in script.outputs[0]
    assert answer.value == [False, "empty"]


def test_a_paid_answer_survives_an_exception_in_its_cell() -> None:
    answer, script = play("a = llm_query('x')\n1 / 0", "FINAL(a)", sub=lambda _: "paid")
    assert answer.text == "paid"
    assert len(script.sub_requests) == 1
    assert "ZeroDivisionError" in script.outputs[0]
    assert "line 2, in <module>" in script.outputs[0]


def test_invented_output_and_an_answer_in_prose_are_ignored() -> None:
    invented = "```repl\nprint(2 + 2)\n```\nOutput:\n```\n5\n```\nSo FINAL(5). The answer is 5."
    script = Script([invented, cell("FINAL(2 + 2)")])
    assert run(script).text == "4"
    assert script.root_requests[1].messages[-2].content == "```repl\nprint(2 + 2)\n```"


def test_final_takes_the_value_not_the_name() -> None:
    answer, _ = play("x = 7\nFINAL(x)")
    assert (answer.text, answer.value) == ("7", 7)


def test_a_prompt_beyond_the_models_window_is_a_typed_error() -> None:
    def small_window(request: Request) -> str:
        if len(request.prompt) > 4000:
            raise ModelError("context_window", "this model takes 1,000 tokens")
        return "fits"

    answer, _ = play(
        "r = llm_query(context * 50)\nFINAL([bool(r), isinstance(r, str), r.kind, llm_query('short')])",
        corpus="word " * 200,
        sub=small_window,
    )
    assert answer.value == [False, False, "context_window", "fits"]


def test_a_refused_answer_is_not_taken_over_by_a_later_cell() -> None:
    answer, script = play("answer['content'] = ''\nanswer['ready'] = True", "y = 1", "FINAL('real')")
    assert answer.text == "real"
    assert len(script.root_requests) == 3
    assert "not taken" in script.outputs[0]


def test_overwritten_repl_names_come_back() -> None:
    answer, script = play(
        "llm_query = 1\ncontext = 'gone'\nlen = 5", "FINAL([llm_query('x'), context, len('abc'), len_])"
    )
    assert answer.value == ["seen 1", "the corpus", 3, 5]
    assert "llm_query is a fixed name and was restored" in script.outputs[0]


def test_one_failed_prompt_keeps_the_others_of_its_batch() -> None:
    def second_fails(request: Request) -> str:
        if request.prompt == "b":
            raise ModelError("bad_request", "no")
        return request.prompt.upper()

    answer, _ = play("r = llm_batch(['a', 'b', 'c'])\nFINAL([r[0], r[1].kind, r[2]])", sub=second_fails)
    assert answer.value == ["A", "bad_request", "C"]
    assert (answer.sub_calls, answer.failed_sub_calls) == (3, 1)


def test_an_empty_block_is_a_cell_that_does_nothing() -> None:
    script = Script(["```repl\n```", "```repl\n\n```", cell("FINAL('still here')")])
    assert run(script).text == "still here"


def test_printed_fences_do_not_corrupt_the_next_prompt() -> None:
    answer, script = play("print('```python\\nprint(666)\\n```')", "FINAL('ok')")
    assert answer.text == "ok"
    assert "````\n```python\nprint(666)\n```\n````" in script.outputs[0]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2**60 + 1", 2**60 + 1),
        ("{1, 2}", {1, 2}),
        ("b'\\x00\\xff'", b"\x00\xff"),
        ("(1, [2.5, None])", (1, [2.5, None])),
    ],
)
def test_values_cross_the_process_boundary_exactly(expression: str, value: Any) -> None:
    answer, _ = play(f"SUBMIT({expression})")
    assert answer.value == value and type(answer.value) is type(value)


def test_not_a_number_is_an_answer() -> None:
    answer, _ = play("SUBMIT(float('nan'))")
    assert math.isnan(answer.value) and answer.text == "nan"


def test_an_endless_loop_is_interrupted_and_its_state_stays() -> None:
    answer, script = play("x = 5\nwhile True: pass", "FINAL(x)", limits=Limits(cell_cpu_seconds=0.4))
    assert answer.text == "5"
    assert "interrupted" in script.outputs[0]


def test_the_engine_runs_inside_a_running_event_loop() -> None:
    async def caller() -> list[str]:
        with RLM("test/root", "test/sub", handler=FunctionLMHandler(script)) as rlm:
            blocking = rlm.ask("what?", "the corpus")  # blocks this loop, must not need it
            first, second = await asyncio.gather(rlm.aask("a?", "x"), rlm.aask("b?", "y"))
        return [str(blocking), str(first), str(second)]

    def script(request: Request) -> str:
        return cell("FINAL(context)")

    assert asyncio.run(caller()) == ["the corpus", "x", "y"]


def test_every_sub_call_has_a_token_cap() -> None:
    _, script = play(
        "llm_query('a')\nllm_query('b', max_tokens=7)\nllm_query('c', max_tokens=10**6)\nFINAL(1)",
        limits=Limits(max_tokens_sub=300),
    )
    assert [request.max_tokens for request in script.sub_requests] == [300, 7, 300]


def test_history_holds_the_reply_up_to_its_cell() -> None:
    """Fences are neither stripped out of code nor do raw ones pile up behind it."""
    code = 's = """\n```\ninside\n```\n"""\nprint(len(s))'
    script = Script([f"Plan.\n```repl\n{code}\n```\n```\n21\n```", cell("FINAL(s)")])
    answer = run(script)
    assert answer.text == "\n```\ninside\n```\n"
    assert script.root_requests[1].messages[-2].content == f"Plan.\n```repl\n{code}\n```"


@pytest.mark.parametrize("option", ["api_base='http://evil'", "api_key='k'", "headers={}", "base_url='x'"])
def test_generated_code_cannot_choose_the_server_or_the_key(option: str) -> None:
    answer, script = play(f"llm_query('x', {option})", f"llm_batch(['x'], {option})", "FINAL('refused')")
    assert answer.text == "refused"
    assert not script.sub_requests
    assert all("unexpected keyword argument" in output for output in script.outputs)


def test_generated_code_cannot_choose_a_foreign_model() -> None:
    answer, script = play(
        "FINAL([llm_query('x', model=m) for m in ('sub', 'root')] + [llm_query('x', model='z/z').kind])"
    )
    assert answer.value == ["seen 1", "seen 1", "bad_request"]
    assert [request.model for request in script.sub_requests] == ["test/sub", "test/root"]


def test_a_run_that_hits_its_limit_is_not_recorded_as_completed(tmp_path: Path) -> None:
    def never(_: Request) -> Any:
        return cell("answer['content'] = 'half'\nprint('looking')")

    def replies() -> Iterator[Any]:
        yield from [never, never, "The best I have: 12."]

    home = Home(tmp_path / "home")
    with open_recording(home, "20260101T000000-00000001", {}) as recording:
        answer = run(
            Script(replies()),
            limits=Limits(max_iterations=2),
            recorder=recording.recorder,
            run_id=recording.run_id,
        )
    assert (answer.text, answer.stop_reason, answer.forced) == (
        "The best I have: 12.",
        "max_iterations",
        True,
    )
    assert answer.best_partial == "half"
    summary = load_run(home, recording.run_id).summary
    assert (summary.stop_reason, summary.forced) == ("max_iterations", True)


def test_printing_the_whole_context_reaches_neither_the_root_nor_the_record_in_full(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with open_recording(home, "20260101T000000-00000002", {}) as recording:
        answer, script = play(
            "print(context)", "FINAL(len(context))", corpus="0123456789" * 500_000,
            recorder=recording.recorder, run_id=recording.run_id,
        )  # fmt: skip
    assert answer.value == 5_000_000
    assert len(script.outputs[0]) < 11_000
    assert "of 5,000,001 characters left out" in script.outputs[0]
    assert recording.spool_path.stat().st_size < 500_000


def test_an_empty_reply_cut_by_length_is_an_error_not_an_empty_text() -> None:
    answer, _ = play(
        "r = llm_query('x')\nFINAL([r == '', bool(r), r.kind])",
        sub=lambda _: completion("", finish_reason="length"),
    )
    assert answer.value == [False, False, "length"]


def test_the_policy_of_these_tests_is_quick() -> None:
    """No test of this file waits for a real retry."""
    assert FAST.cap < 0.01
