"""`traces.instrument`: a program that tells its own steps gets a run that every reader reads."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import traces
from rlm_core import semconv as sc
from rlm_core.errors import InputError, RecordError
from tests.traces.records import RUN, Home, home_in
from traces.diff import diff
from traces.exporters import export_runs
from traces.imported import not_again
from traces.importers.importing import Imported, import_paths
from traces.instrumenting import Run
from traces.reading import RunView, SpoolRun, load_run
from traces.rows import SpanRow
from ui.tree import tree_lines

MODELS = {"root_model": "openai/gpt-5", "sub_model": "openai/gpt-5-mini"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_in(tmp_path)


def instrument(home: Home, question: str = "How many?", **more: Any) -> Any:
    return traces.instrument(question, home=home.root, **{**MODELS, **more})


def two_turns(run: Run, *, answer: object = "22") -> None:
    """A run with two turns, a batch, a call that fails and a child run."""
    messages: list[Any] = [("system", "be good"), {"role": "user", "content": "How many?"}]
    for turn in range(2):
        with run.iteration() as iteration:
            with iteration.root_call(messages) as call:
                call.reply("```\nask\n```", input_tokens=100, output_tokens=10, cached_read_tokens=40)
            messages.append(("assistant", "```\nask\n```"))
            with iteration.cell("replies = ask(prompts)") as cell:
                with cell.batch() as batch:
                    for number in range(3):
                        with batch.sub_call(f"item {number}") as call:
                            call.reply("3", input_tokens=5, output_tokens=1, cost_usd="0.25")
                with cell.sub_call("one more") as call:
                    call.failed("Timeout", "too slow")
                if turn:
                    with cell.run("inner?") as inner, inner.iteration() as below:
                        with below.root_call() as call:
                            call.reply("4")
                        inner.answer(4)
                cell.output("3 3 3\n", shown="3 ...")
    run.answer(answer)


def recorded(home: Home, **more: Any) -> RunView:
    with instrument(home, **more) as run:
        two_turns(run)
    return load_run(home, run.run_id)


def named(view: RunView, kind: str) -> list[SpanRow]:
    return [span for span in view.spans if span.kind == kind]


def test_the_run_stands_in_lists_as_what_it_is(home: Home) -> None:
    run = recorded(home, engine="toy 1.0").summary
    assert (run.question, run.answer, run.status, run.stop_reason) == ("How many?", "22", "ok", "final")
    assert (run.iterations, run.sub_calls, run.failed_sub_calls) == (2, 8, 2)
    assert (run.root_model, run.sub_model, run.imported_from) == (*MODELS.values(), "instrument")
    assert run.complete and run.problems == 0
    assert run.cost_usd is None and run.known_usd > Decimal("1.5")


def test_every_step_stands_in_its_place(home: Home) -> None:
    view = recorded(home)
    parents = {
        span.kind: view.by_id[span.parent_id].kind for span in view.spans if span.parent_id and not span.depth
    }
    assert parents == {
        "iteration": "run",
        "root_call": "iteration",
        "cell": "iteration",
        "batch": "cell",
        "sub_call": "cell",
    }
    assert [(span.iteration, span.cell) for span in named(view, "cell")] == [(0, 0), (1, 1)]
    calls = named(view, "sub_call")
    assert [span.call_index for span in calls] == [0, 1, 2, 3] * 2
    assert [span.attributes[sc.CALL_OCCURRENCE] for span in calls] == [0] * 4 + [1] * 4
    assert [span.phase for span in named(view, "cell")] == ["Decompose"] * 2
    assert named(view, "iteration")[0].phases == ["Decompose"]
    (child,) = [span for span in named(view, "run") if span.is_child_run]
    assert (child.depth, child.attributes[sc.RUN_PATH], child.iteration) == (1, "0.1", 1)
    roots = [span.attributes[sc.MESSAGES_PRIOR] for span in named(view, "root_call") if not span.depth]
    assert roots == [0, 2]


def test_numbers_are_those_that_were_told_and_no_others(home: Home) -> None:
    view = recorded(home)
    root, call = named(view, "root_call")[0], named(view, "sub_call")[0]
    assert root.tokens == {"input": 100, "output": 10, "total": 110} and root.cached_read == 40
    assert root.trusted["tokens"] == "reported" and root.trusted["cost"] == "derived"
    assert call.cost_usd == Decimal("0.25") and call.trusted["cost"] == "reported"
    failed = next(span for span in named(view, "sub_call") if span.status == "error")
    assert failed.tokens is None and failed.cost_usd is None and failed.trusted["tokens"] == "missing"
    assert failed.error_type == "Timeout" and failed.seconds is not None
    (batch, _) = named(view, "batch")
    assert (batch.attributes[sc.BATCH_SIZE], batch.attributes[sc.BATCH_FAILED]) == (3, 0)


def test_texts_are_there_whole(home: Home) -> None:
    view = recorded(home)
    cell = named(view, "cell")[0].attributes
    texts = {prefix: view.payload(str(cell[f"{prefix}.sha256"])) for prefix in (sc.CODE, sc.STDOUT)}
    assert texts == {sc.CODE: "replies = ask(prompts)", sc.STDOUT: "3 3 3\n"}
    assert view.payload(str(cell[f"{sc.STDOUT_SHOWN}.sha256"])) == "3 ..."
    sent = json.loads(named(view, "root_call")[1].attributes[sc.MESSAGES_ADDED])
    assert [(role, view.payload(text)) for role, text in sent] == [("assistant", "```\nask\n```")]


def test_an_exception_closes_every_step_as_failed_and_goes_on(home: Home) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        instrument(home) as run,
        run.iteration() as iteration,
        iteration.cell("1 / 0") as cell,
        cell.sub_call("p"),
    ):
        print(1 / 0)
    view = load_run(home, run.run_id)
    assert {span.kind: span.status for span in view.spans} == dict.fromkeys(
        ("run", "iteration", "cell", "sub_call"), "error"
    )
    assert {span.error_type for span in view.spans} == {"ZeroDivisionError"}
    assert (view.summary.status, view.summary.stop_reason, view.summary.answer) == ("error", "error", None)
    assert view.summary.complete


def test_a_program_that_is_broken_off_leaves_a_cancelled_run(home: Home) -> None:
    with pytest.raises(KeyboardInterrupt), instrument(home) as run, run.iteration():
        raise KeyboardInterrupt
    view = load_run(home, run.run_id)
    assert [span.status for span in view.spans] == ["cancelled"] * 2 and view.summary.status == "cancelled"


def test_code_that_failed_is_a_failed_cell_of_a_run_that_goes_on(home: Home) -> None:
    with instrument(home) as run, run.iteration() as iteration:
        with iteration.cell("1 / 0") as cell:
            cell.failed("ZeroDivisionError", "division by zero", "Traceback ...")
        run.answer({"n": 1})
    view = load_run(home, run.run_id)
    (cell_span,) = named(view, "cell")
    assert (cell_span.status, cell_span.attributes[sc.EXCEPTION_TYPE]) == ("error", "ZeroDivisionError")
    assert (view.summary.status, view.summary.answer) == ("ok", '{"n":1}')


def test_threads_and_coroutines_record_side_by_side(home: Home) -> None:
    async def ask(batch: Any, number: int) -> None:
        with batch.sub_call(f"item {number}") as call:
            await asyncio.sleep(0)
            call.reply(str(number), input_tokens=1, output_tokens=1)

    async def ask_all(batch: Any) -> None:
        await asyncio.gather(*(ask(batch, number) for number in range(20)))

    with instrument(home) as run, run.iteration() as iteration, iteration.cell("many()") as cell:
        with cell.batch() as first, ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: asyncio.run(ask(first, number)), range(20)))
        with cell.batch() as second:
            asyncio.run(ask_all(second))
    view = load_run(home, run.run_id)
    for batch in named(view, "batch"):
        calls = [span for span in view.spans if span.parent_id == batch.span_id]
        assert sorted(span.call_index or 0 for span in calls) == list(range(20))
        said = {
            view.payload(str(span.attributes[f"{sc.PROMPT}.sha256"])): view.payload(
                str(span.attributes[f"{sc.RESPONSE}.sha256"])
            )
            for span in calls
        }
        assert said == {f"item {number}": str(number) for number in range(20)}
    ordinals = [span.attributes[sc.CALL_ORDINAL] for span in named(view, "sub_call")]
    assert sorted(ordinals) == list(range(40)) and view.summary.problems == 0


def test_the_run_is_seen_while_it_goes_on(home: Home) -> None:
    with instrument(home) as run, run.iteration() as iteration, iteration.root_call([("user", "q")]):
        view = SpoolRun(home, run.run_id).poll()
        assert view.live and [span.status for span in view.spans] == ["running"] * 3
        assert view.summary.question == "How many?"


def test_equal_runs_align_call_by_call(home: Home) -> None:
    first, second = recorded(home), recorded(home)
    statuses = {row.status for row in diff(first, second).rows}
    assert statuses == {"same"}


def test_another_home_knows_that_another_engine_made_it(home: Home, tmp_path: Path) -> None:
    view = recorded(home, engine="toy 1.0")
    other, first, second = Home.resolve(tmp_path / "other"), tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    export_runs("jsonl", home, [view.run_id], first)
    (taken,) = import_paths(other, [first])
    assert isinstance(taken, Imported) and taken.engine == "toy 1.0"
    brought = load_run(other, taken.run_id)
    assert brought.summary == view.summary and brought.spans == view.spans
    assert "as its own program told it" in (not_again(brought.summary) or "")
    export_runs("jsonl", other, [taken.run_id], second)
    assert first.read_bytes() == second.read_bytes()
    (again,) = import_paths(other, [second])
    assert isinstance(again, Imported) and not again.new


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"input_tokens": 1}, "together"),
        ({"input_tokens": -1, "output_tokens": 1}, "no number of tokens"),
        ({"input_tokens": True, "output_tokens": 1}, "no number of tokens"),
        ({"cost_usd": "cheap"}, "no amount of dollars"),
        ({"cost_usd": float("nan")}, "no amount of dollars"),
        ({"cost_usd": -1}, "no amount of dollars"),
    ],
)
def test_what_is_no_number_is_refused(home: Home, numbers: dict[str, Any], words: str) -> None:
    with (
        instrument(home) as run,
        run.iteration() as iteration,
        iteration.root_call() as call,
        pytest.raises(InputError, match=words),
    ):
        call.reply("r", **numbers)


def test_a_run_id_is_used_once(home: Home) -> None:
    with instrument(home, run_id=RUN) as run:
        run.answer("1")
    with pytest.raises(RecordError, match="already in use"), instrument(home, run_id=RUN):
        pass


def test_a_record_that_cannot_be_written_is_said_and_stops_nothing(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    home.spool.rmdir()
    home.spool.write_text("no folder")
    with pytest.raises(InputError, match="home folder"), instrument(home):
        pass
    home.spool.unlink()
    home.create()
    with instrument(home, run_id=RUN) as run:
        home.spool_file(RUN).unlink()
        two_turns(run)
    assert "was removed meanwhile" in caplog.text


def test_spans_also_go_where_the_standard_variables_say(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc-only.invalid")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    view = recorded(home)
    assert view.summary.complete and "grpc" in caplog.text


def test_what_a_step_says_after_its_end_is_refused_and_not_lost_in_silence(home: Home) -> None:
    with instrument(home) as run:
        with run.iteration() as iteration, iteration.cell("x = 1") as cell, cell.sub_call("a") as call:
            call.reply("b")
        for late in (lambda: cell.output("1"), lambda: call.reply("c"), lambda: cell.failed("E", "late")):
            with pytest.raises(InputError, match="This step is over"):
                late()
        run.answer("1")
    with pytest.raises(InputError, match="This step is over"):
        run.answer("2")
    with pytest.raises(InputError, match="The run is over"):
        run.iteration()
    with pytest.raises(InputError, match="The run is over"):
        cell.sub_call("late")
    view = load_run(home, run.run_id)
    assert (view.summary.answer, view.summary.status, len(view.spans)) == ("1", "ok", 4)


def test_what_is_no_text_and_no_message_is_named(home: Home) -> None:
    with instrument(home) as run, run.iteration() as iteration:
        for wrong in ("hello", {"role": "user"}, [7], [("user",)], ["hello"]):
            with pytest.raises(InputError, match="message"):
                iteration.root_call(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="A text is needed as prompt, not NoneType"):
            iteration.sub_call(None)  # type: ignore[arg-type]
        with iteration.sub_call("a") as call, pytest.raises(InputError, match="as response, not NoneType"):
            call.reply(None)  # type: ignore[arg-type]
    assert [span.kind for span in load_run(home, run.run_id).spans] == ["run", "iteration", "sub_call"]


def test_messages_may_be_the_objects_of_a_client_and_calls_of_tools_are_kept(home: Home) -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [{"name": "look"}]}
    sent = [SimpleNamespace(role="user", content="Hi"), asked, {"role": "tool", "content": None}]
    with instrument(home) as run, run.iteration() as turn, turn.root_call(sent) as call:  # type: ignore[arg-type]
        call.reply("ok")
    view = load_run(home, run.run_id)
    (root,) = (span for span in view.spans if span.kind == "root_call")
    added = json.loads(str(root.attributes[sc.MESSAGES_ADDED]))
    texts = [(role, view.payload(digest)) for role, digest in added]
    assert [role for role, _ in texts] == ["user", "assistant", "tool"]
    assert (texts[0][1], texts[2][1]) == ("Hi", "")
    assert json.loads(str(texts[1][1]))["tool_calls"] == [{"name": "look"}]


def test_a_step_without_a_block_is_refused_before_anything_is_lost(home: Home) -> None:
    with instrument(home) as run:
        call, turn = run.sub_call("a"), run.iteration()
        for without in (lambda: call.reply("b"), lambda: turn.failed("E", "no"), turn.root_call):
            with pytest.raises(InputError, match="entered by `with`"):
                without()
        with call:
            call.reply("b")
    view = load_run(home, run.run_id)
    assert [(span.kind, span.status) for span in view.spans] == [
        ("run", "ok"), ("sub_call", "ok"), ("iteration", "lost"),
    ]  # fmt: skip


def test_a_step_is_entered_once(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    with instrument(home) as run:
        with run.sub_call("a") as call, pytest.raises(InputError, match="has begun already"), call:
            pass
        with pytest.raises(InputError, match="has ended already"), call:
            pass
    assert not caplog.records


def test_a_second_reply_or_output_is_refused_and_the_first_stays(home: Home) -> None:
    with instrument(home) as run, run.iteration() as turn, turn.cell("x") as cell:
        with cell.sub_call("a") as call:
            with pytest.raises(InputError, match="no amount"):
                call.reply("first", cost_usd="cheap")
            call.reply("first", input_tokens=1, output_tokens=1, cost_usd=1)
            with pytest.raises(InputError, match="its reply already"):
                call.reply("second", input_tokens=2, output_tokens=2, cost_usd=2)
        cell.output("one")
        with pytest.raises(InputError, match="its output already"):
            cell.output("two")
    view = load_run(home, run.run_id)
    (made,) = named(view, "sub_call")
    assert (made.preview, made.cost_usd) == ("first", Decimal(1))
    assert made.tokens == {"input": 1, "output": 1, "total": 2}


@pytest.mark.parametrize("engine", ["toy 1.0", None])
def test_the_version_on_record_is_that_of_the_engine(home: Home, engine: str | None) -> None:
    with instrument(home, engine=engine) as run:
        assert SpoolRun(home, run.run_id).poll().summary.engine_version == engine
    assert load_run(home, run.run_id).summary.engine_version == engine


def test_the_prompt_of_a_call_without_a_reply_does_not_pass_for_a_reply(home: Home) -> None:
    with instrument(home) as run:
        with run.sub_call("is it so?"):
            pass
        with run.sub_call("and this?") as call:
            call.reply("yes")
    shown = [line.text for line in tree_lines(load_run(home, run.run_id))]
    assert shown[1].endswith(" · asked: “is it so?”") and shown[2].endswith(" · “yes”")
