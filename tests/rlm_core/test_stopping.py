"""Runs that are stopped from outside end in order, with a closed record, whoever stops them and when."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, Answer, FunctionLMHandler, Request
from rlm_core import events as ev
from rlm_core.errors import ConfigError, RunCancelled
from rlm_core.lm_handler import Message
from rlm_core.worker_watch import Watch
from tests.support.scripted import FAST, cell
from traces.home import Home, new_run_id
from traces.reading import list_runs, load_run
from traces.recording import open_recording


class Slow:
    """A root that asks one sub-call, which takes for ever; `asked` is set when it is asked."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def __call__(self, request: Request) -> str:
        if request.role == "root":
            return cell("FINAL(llm_query('x'))")
        self.asked.set()
        await asyncio.sleep(600)
        raise AssertionError


def made(handler: Any) -> RLM:
    async def answer(request: Request) -> str:  # a function: the handler looks whether it is async
        reply = await handler(request)
        assert isinstance(reply, str)
        return reply

    return RLM("test/root", "test/sub", handler=FunctionLMHandler(answer), retries=FAST)


async def until_asked(slow: Slow) -> None:
    await asyncio.to_thread(slow.asked.wait, 60)


def statuses(home: Home, run_id: str) -> set[str]:
    return {span.status for span in load_run(home, run_id).spans}


def test_cancelling_the_task_that_waits_leaves_a_closed_record(tmp_path: Path) -> None:
    home, slow = Home(tmp_path), Slow()

    async def ask() -> str:
        async with made(slow) as rlm:
            with open_recording(home, new_run_id(), {}) as recording:
                known = {"run_id": recording.run_id, "recorder": recording.recorder}
                task = asyncio.create_task(rlm.aask("q", "c", **known))  # type: ignore[arg-type]
                await until_asked(slow)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            return recording.run_id

    run_id = asyncio.run(ask())
    assert [run.status for run in list_runs(home)] == ["cancelled"]
    assert statuses(home, run_id) == {"ok", "cancelled"}


def test_a_time_limit_of_the_caller_cancels_too() -> None:
    slow = Slow()

    async def ask() -> None:
        async with made(slow) as rlm:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(None) as limit:
                    waiting = asyncio.create_task(until_asked(slow))
                    waiting.add_done_callback(lambda _: limit.reschedule(0))
                    await rlm.aask("q", "c")
            assert not rlm._running

    asyncio.run(ask())


async def _by_handle(stream: Any) -> None:
    stream.cancel()


async def _by_thread(stream: Any) -> None:
    await asyncio.to_thread(stream.cancel)


@pytest.mark.parametrize("cancel", [_by_handle, _by_thread])
def test_a_stream_that_is_cancelled_still_tells_how_it_ends(cancel: Callable[..., Any]) -> None:
    async def follow() -> list[ev.Event]:
        events = []
        async with made(Slow()) as rlm:
            stream = rlm.astream("q", "c")
            async for event in stream:
                events.append(event)
                if isinstance(event, ev.SubCallStarted):
                    await cancel(stream)
            await stream.aclose()  # what is over stays as it is
        return events

    events = asyncio.run(follow())
    last = events[-1]
    assert isinstance(last, ev.Answered) and last.answer.stop_reason == "cancelled"
    ends = {type(event): event.status for event in events if isinstance(event, ev.EndEvent)}
    assert ends[ev.SubCallEnded] == ends[ev.CellEnded] == ends[ev.RunEnded] == "cancelled"


async def _leave(rlm: RLM) -> None:
    async with rlm.astream("q", "c") as stream:
        async for event in stream:
            if isinstance(event, ev.SubCallStarted):
                break


async def _drop(rlm: RLM) -> None:
    async for event in rlm.astream("q", "c"):
        if isinstance(event, ev.SubCallStarted):
            break


async def _cancel_the_follower(rlm: RLM) -> None:
    slow = asyncio.Event()

    async def follow() -> None:
        async for event in rlm.astream("q", "c"):
            if isinstance(event, ev.SubCallStarted):
                slow.set()

    task = asyncio.create_task(follow())
    await slow.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("stop", [_leave, _drop, _cancel_the_follower])
def test_a_run_that_nobody_follows_any_more_ends(stop: Callable[[RLM], Any]) -> None:
    async def follow() -> None:
        async with made(Slow()) as rlm:
            await stop(rlm)
            deadline = time.monotonic() + 60
            while rlm._running:
                assert time.monotonic() < deadline, "the run goes on"
                await asyncio.sleep(0.01)

    asyncio.run(follow())


def test_a_run_that_is_cancelled_before_it_begins_is_an_answer_too() -> None:
    ready = threading.Event()

    class Preparing(FunctionLMHandler):
        async def prepare(self) -> None:
            ready.set()
            await asyncio.sleep(600)

    found: list[Answer] = []
    with RLM("test/root", "test/sub", handler=Preparing(lambda _: "")) as rlm:
        asking = threading.Thread(target=lambda: found.append(rlm.ask("q", "c")))
        asking.start()
        assert ready.wait(60)
        rlm.cancel()
        asking.join(60)
    assert [(answer.stop_reason, answer.text, answer.cost_usd) for answer in found] == [
        ("cancelled", None, 0)
    ]


def test_a_run_that_was_begun_just_now_is_cancelled_and_a_later_one_is_not() -> None:
    held, go_on = threading.Event(), threading.Event()

    async def answer(_: Request) -> str:
        return cell("FINAL(1)")

    def hold(_: object) -> None:  # on the engine's thread: what comes meanwhile happens in one turn
        held.set()
        assert go_on.wait(60)

    with made(answer) as rlm:
        rlm.cancel()
        asking = threading.Thread(target=lambda: rlm.ask("q", "c", on_event=hold))
        asking.start()
        assert held.wait(60)
        stream = rlm.astream("q", "c")
        rlm.cancel()
        later = rlm.astream("q", "c")
        go_on.set()
        ends = [asyncio.run(run.answer()).stop_reason for run in (stream, later)]
        asking.join(60)
    assert ends == ["cancelled", "final"]


def test_closing_lets_a_worker_start_that_is_half_way_and_ends_it_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, starting, broken_off = asyncio.create_subprocess_exec, threading.Event(), list[bool]()

    async def slowly(*command: Any, **options: Any) -> asyncio.subprocess.Process:
        if threading.current_thread().name == "rlm-engine":  # not the one that tries the sandbox
            starting.set()
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:  # from a moment on asyncio would wait for its end for ever
            broken_off.append(True)
            raise
        return await start(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    rlm = made(Slow())
    stream = rlm.astream("q", "c")
    assert starting.wait(60)
    rlm.close()
    assert asyncio.run(stream.answer()).stop_reason == "cancelled"
    assert not broken_off


def test_interrupting_ask_ends_the_run_before_the_interrupt_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    calls = 0

    def wait(futures: Any, timeout: float | None = None) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            assert slow.asked.wait(60)
            raise KeyboardInterrupt
        futures[0].exception(60)  # as `wait`, and fails where the run goes on

    monkeypatch.setattr("rlm_core.background_loop.wait", wait)
    with made(slow) as rlm:
        with pytest.raises(KeyboardInterrupt):
            rlm.ask("q", "c")
        assert not rlm._running and calls == 2


def test_waiting_on_the_engines_own_thread_is_refused() -> None:
    async def answer(request: Request) -> str:
        if request.role == "root":
            return cell("FINAL(llm_query('x'))")
        with pytest.raises(ConfigError, match="await aask there"):
            rlm.ask("q", "c")
        return "refused"

    with made(answer) as rlm:
        assert rlm.ask("q", "c").text == "refused"


def test_a_single_call_that_is_cut_off_by_closing_says_so() -> None:
    slow = Slow()
    rlm = made(slow)
    closing = threading.Thread(target=lambda: (slow.asked.wait(60), rlm.close()))
    closing.start()
    with pytest.raises(RunCancelled, match="closed before this had ended"):
        rlm.complete(Request("test/sub", (Message("user", "x"),), "sub"))
    closing.join(60)


def test_a_wish_to_stop_that_comes_as_a_cell_ends_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    end = Watch.end

    def ending(watch: Watch) -> None:
        end(watch)
        rlm.cancel()

    monkeypatch.setattr(Watch, "end", ending)
    turns = iter([cell("x = 1"), cell("FINAL('went on')")])
    with RLM("test/root", "test/sub", handler=FunctionLMHandler(lambda _: next(turns))) as rlm:
        assert rlm.ask("q", "c").stop_reason == "cancelled"
