"""The events of a run: complete, in order, bounded, the same whether or not the run is recorded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, Answer, Completion, EventStream, FunctionLMHandler, Limits, Options, Request
from rlm_core import events as ev
from rlm_core.background_loop import Work
from rlm_core.errors import ConfigError, InputError, ModelError
from rlm_core.lm_handler import ToolCall
from rlm_core.tools import tool
from tests.support.scripted import FAST, Script, cell, run
from traces.home import Home, new_run_id
from traces.reading import load_run
from traces.recording import open_recording

TREE = (
    cell("replies = llm_batch(['one', 'two' * 3000])\nprint(replies)\nprint(rlm_query('below?', 'a part'))"),
    cell("FINAL('leaf')"),
    cell("FINAL('done')"),
)


def made(handler: Any, **options: Any) -> RLM:
    options.setdefault("retries", FAST)
    return RLM("test/root", "test/sub", handler=FunctionLMHandler(handler), **options)


async def taken(stream: EventStream) -> list[ev.Event]:
    return [event async for event in stream]


def followed(handler: Any, **options: Any) -> list[ev.Event]:
    """All events of one run."""

    async def follow() -> list[ev.Event]:
        async with made(handler, **options) as rlm:
            return await taken(rlm.astream("what?", "the corpus"))

    return asyncio.run(follow())


def of(events: list[ev.Event], kind: type[ev.Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_every_step_begins_and_ends_inside_the_one_around_it() -> None:
    events = followed(Script(TREE))
    assert isinstance(events[0], ev.RunStarted) and isinstance(events[-1], ev.Answered)
    assert events[-1].answer.text == "done" and {event.run_id for event in events} == {events[0].run_id}
    assert [event.seconds for event in events] == sorted(event.seconds for event in events)
    around: list[str | None] = [None]
    steps = [event for event in events if isinstance(event, ev.SpanEvent)]
    calls = (ev.SubCallStarted, ev.SubCallEnded)  # those of a batch overlap
    for event in (step for step in steps if not isinstance(step, calls)):
        if isinstance(event, ev.EndEvent):
            assert around.pop() == event.span_id
        assert event.parent_id == around[-1]
        if not isinstance(event, ev.EndEvent):
            around.append(event.span_id)
    assert around == [None]
    (first, _, _) = of(events, ev.CellStarted)
    assert {event.parent_id for event in steps if isinstance(event, calls)} == {first.span_id}
    assert len({event.span_id for event in steps}) * 2 == len(steps)


def test_events_say_what_was_asked_and_what_came() -> None:
    events = followed(Script(TREE))
    asked, replied = of(events, ev.SubCallStarted), of(events, ev.SubCallEnded)
    assert [event.model for event in asked] == ["test/sub"] * 2 and {event.line for event in asked} == {1}
    assert asked[0].prompt == "one"
    assert asked[1].prompt.startswith("twotwo") and asked[1].prompt.endswith(
        "[the first 4,000 of 9,000 characters]"
    )
    assert sorted(event.reply for event in replied) == ["seen 3", "seen 9000"]
    assert {(e.status, e.error, e.served_from, e.cost_usd) for e in replied} == {("ok", None, "model", None)}
    top, child = of(events, ev.RunStarted)
    assert (top.question, top.depth, top.path, top.parent_id) == ("what?", 0, "0", None)
    assert (child.question, child.depth, child.root_model) == ("below?", 1, "test/root")
    assert [event.answer for event in of(events, ev.RunEnded)] == ["leaf", "done"]
    cells = of(events, ev.CellEnded)
    assert cells[1].output == "['seen 3', 'seen 9000']\nleaf" and cells[0].path == child.path
    assert [event.code for event in of(events, ev.CellStarted)][1:] == ["FINAL('leaf')", "FINAL('done')"]


def test_failures_and_tools_have_their_events() -> None:
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    tries = iter([ModelError("server", "down", retryable=True)])

    def answer(request: Request) -> Any:
        if request.role == "root":
            return (
                cell("print(llm_query('x'))\nraise ValueError('no')")
                if len(request.messages) < 3
                else cell("FINAL(1)")
            )
        if (error := next(tries, None)) is not None:
            raise error
        if request.messages[-1].role == "tool":
            return f"it is {request.messages[-1].content}"
        return Completion(None, "tool_calls", tool_calls=(ToolCall("1", "double", '{"number": 4}'),))

    events = followed(answer, options=Options(tools=(tool(double),)))
    (failed,) = of(events, ev.AttemptFailed)
    (call,) = of(events, ev.SubCallEnded)
    assert (failed.kind, failed.number, failed.error) == ("server", 0, "down")
    assert failed.parent_id == call.span_id and call.reply == "it is 8"
    (begun,), (ended,) = of(events, ev.ToolStarted), of(events, ev.ToolEnded)
    assert (begun.name, begun.arguments, ended.result) == ("double", '{"number": 4}', "8")
    assert begun.parent_id == ended.parent_id == call.span_id
    broken = of(events, ev.CellEnded)[0]
    assert broken.status == "error" and "ValueError: no" in broken.output


def test_events_are_the_spans_of_the_record(tmp_path: Path) -> None:
    home = Home(tmp_path)
    events: list[ev.Event] = []
    with open_recording(home, new_run_id(), {}) as recording:
        run(Script(TREE), run_id=recording.run_id, recorder=recording.recorder, events=events.append)
    spans = {span.span_id: span for span in load_run(home, recording.run_id).spans}
    told = {event.span_id: event for event in events if isinstance(event, ev.EndEvent)}
    assert told.keys() == {s for s, span in spans.items() if span.kind not in ("batch", "attempt")}
    assert all(event.status == spans[event.span_id].status for event in told.values())


def test_who_does_not_take_events_holds_up_nothing_and_is_told_how_many_are_gone() -> None:
    async def late() -> tuple[Answer, list[ev.Event]]:
        async with made(Script(TREE)) as rlm:
            stream = rlm.astream("what?", "the corpus", capacity=3)
            answer = await stream.answer()
            return answer, await taken(stream)

    answer, events = asyncio.run(late())
    whole = len(followed(Script(TREE)))
    names = [type(event).__name__ for event in events]
    assert names == ["RunStarted", "IterationStarted", "RootCallStarted", "Missed", "Answered"]
    assert of(events, ev.Missed)[0].count == whole - 4 and events[-1].answer is answer  # type: ignore[attr-defined]


def test_missed_events_are_counted_where_they_are_missing() -> None:
    async def follow() -> list[ev.Event]:
        work: Work[Answer] = Work(asyncio.get_running_loop(), None)
        puts: list[Callable[[ev.Event], None]] = []

        def begin(put: Callable[[ev.Event], None]) -> Work[Answer]:
            puts.append(put)
            return work

        stream = EventStream("r", begin, 2)
        for second in range(5):
            puts[0](ev.Event(run_id="r", seconds=second))
        events = [await anext(stream)]
        puts[0](ev.Event(run_id="r", seconds=5))
        work.future.set_result(Answer("r", "1", 1, "final", seconds=6))
        return [*events, *await taken(stream)]

    events = asyncio.run(follow())
    assert [event.seconds for event in events] == [0, 1, 5, 5, 6]
    assert [event.count for event in of(events, ev.Missed)] == [3] and isinstance(events[2], ev.Missed)


@pytest.mark.parametrize("question", ["", "  \n"])
def test_what_ask_raises_the_iteration_raises_once(question: str) -> None:
    async def follow() -> list[ev.Event]:
        async with made(Script([])) as rlm:
            stream = rlm.astream(question, "x")
            with pytest.raises(InputError, match="the question is empty"):
                await taken(stream)
            return await taken(stream)

    assert asyncio.run(follow()) == []


def test_a_stream_needs_room_for_an_event() -> None:
    with made(Script([])) as rlm, pytest.raises(ConfigError, match="at least 1 event, not 0"):
        rlm.astream("what?", "x", capacity=0)


def test_a_function_that_fails_is_called_no_more_and_the_answer_says_so() -> None:
    seen: Counter[str] = Counter()

    def told(event: ev.Event) -> None:
        seen[type(event).__name__] += 1
        if isinstance(event, ev.CellStarted):
            raise KeyError("mine")

    answer = run(Script([cell("FINAL(1)")]), events=told)
    assert answer.text == "1" and seen["CellStarted"] == 1 and "CellEnded" not in seen
    assert "failed with KeyError: 'mine'" in answer.notices[-1]


def test_many_runs_in_one_loop_keep_their_events_apart() -> None:
    def answer(request: Request) -> Awaitable[str] | str:
        return cell("FINAL(llm_query(context))") if request.role == "root" else f"<{request.prompt}>"

    async def follow() -> list[list[ev.Event]]:
        async with made(answer, limits=Limits(max_workers=2)) as rlm:
            return await asyncio.gather(*(taken(rlm.astream("what?", f"text {n}")) for n in range(4)))

    runs = asyncio.run(follow())
    assert [events[-1].answer.text for events in runs] == [f"<text {n}>" for n in range(4)]  # type: ignore[attr-defined]
    assert len({event.run_id for events in runs for event in events}) == 4
    assert [len({event.run_id for event in events}) for events in runs] == [1] * 4


def test_one_rlm_is_followed_from_the_loops_of_several_threads() -> None:
    async def last(rlm: RLM, text: str) -> ev.Event:
        return (await taken(rlm.astream("what?", text)))[-1]

    with made(lambda _: cell("FINAL(context)")) as rlm, ThreadPoolExecutor(2) as threads:
        ends = list(threads.map(lambda text: asyncio.run(last(rlm, text)), ("one", "two")))
    assert [end.answer.text for end in of(ends, ev.Answered)] == ["one", "two"]
