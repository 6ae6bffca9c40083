"""LiteLLM in event loops and threads: side by side, cancelled, silent, and while it is imported."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_core.errors import ModelError
from rlm_core.litellm_handler import LiteLLMHandler
from rlm_core.lm_handler import Completion, Message
from tests.support.litellm_calls import MESSAGES, ask, request
from tests.support.loopback import Fault, Loopback, Script, echo


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    """No test here is about how long LiteLLM takes to be imported, which on a busy machine is a minute."""
    asyncio.run(LiteLLMHandler().prepare())


def both(first: Callable[[], object], second: Callable[[], object]) -> None:
    threads = [threading.Thread(target=job) for job in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(250)
        assert not thread.is_alive()


def gather(handler: LiteLLMHandler, prompts: list[str]) -> Awaitable[list[Completion]]:
    return asyncio.gather(*(handler.complete(request(messages=(Message("user", p),))) for p in prompts))


def test_loops_in_two_threads_at_once(server: Loopback) -> None:
    server.use(Script(latency=0.01))
    shared = LiteLLMHandler(8)
    results: dict[str, list[str | None]] = {}

    def job(name: str) -> None:
        async def scenario() -> None:
            try:
                for turn in range(3):
                    done = await gather(shared, [f"{name} {turn} {i}" for i in range(8)])
                    results.setdefault(name, []).extend(c.text for c in done)
            finally:
                await shared.aclose()

        asyncio.run(scenario())

    both(lambda: job("a"), lambda: job("b"))
    for name in ("a", "b"):
        assert results[name] == [echo(f"{name} {turn} {i}") for turn in range(3) for i in range(8)]


def test_calls_run_side_by_side_and_answers_are_not_mixed_up(server: Loopback) -> None:
    faults = [Fault("500", contains="p7", times=None), Fault("reset", contains="p13", times=None)]
    server.use(Script(latency=0.02, faults=faults))

    async def scenario() -> list[Completion | BaseException]:
        handler = LiteLLMHandler(20)
        calls = (handler.complete(request(messages=(Message("user", f"p{i}"),))) for i in range(20))
        try:
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await handler.aclose()

    done = asyncio.run(scenario())
    for i, each in enumerate(done):
        if i in (7, 13):
            assert isinstance(each, ModelError) and each.kind == ("server" if i == 7 else "connection")
        else:
            assert isinstance(each, Completion) and each.text == echo(f"p{i}")
    assert server.peak > 1


def test_two_handlers_on_one_loop_closing_one_leaves_the_other(server: Loopback) -> None:
    async def scenario() -> list[str | None]:
        one, two = LiteLLMHandler(), LiteLLMHandler()
        texts = [(await one.complete(request())).text, (await two.complete(request())).text]
        await one.aclose()
        texts.append((await two.complete(request())).text)
        await two.aclose()
        await two.aclose()
        again = LiteLLMHandler()
        texts.append((await again.complete(request())).text)
        await again.aclose()
        return texts

    assert asyncio.run(scenario()) == [echo(MESSAGES[1].content)] * 4


def test_one_connection_serves_one_call_after_the_other_whatever_their_timeouts(server: Loopback) -> None:
    ask(*(request(timeout=seconds) for seconds in (17.0, 18.5, 20.0, 31.9)))
    assert len(server.requests) == 4 and server.connections == 1


def test_cancelling_a_call_ends_it_and_the_connection(server: Loopback) -> None:
    server.use(Script(faults=[Fault("slow", ordinal=0)]))

    async def scenario() -> None:
        handler = LiteLLMHandler()
        call = asyncio.create_task(handler.complete(request()))
        while not server.requests:
            await asyncio.sleep(0.005)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while not server.responses:
            await asyncio.sleep(0.005)
        await handler.aclose()

    asyncio.run(asyncio.wait_for(scenario(), 250))
    assert server.responses[0]["event"] == "gone"


def test_nothing_is_left_on_the_loop_and_nothing_is_printed(
    server: Loopback, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    server.use(Script(faults=[Fault("500", ordinal=1), Fault("401", ordinal=2)]))

    async def scenario() -> set[asyncio.Task[Any]]:
        handler = LiteLLMHandler()
        for _ in range(4):
            try:
                await handler.complete(request())
            except ModelError:
                continue
        await handler.aclose()
        return asyncio.all_tasks() - {asyncio.current_task()}

    gc.collect()  # what other tests left, which may speak when it goes
    capfd.readouterr()
    caplog.clear()
    left = asyncio.run(scenario())
    gc.collect()
    printed = capfd.readouterr()
    assert not left and (printed.out, printed.err) == ("", "")
    assert not [r for r in caplog.records if "litellm" in r.name.lower() or "Unclosed" in r.getMessage()]


PROGRAM = """
import asyncio, sys
assert "litellm" not in sys.modules
from rlm_core.litellm_handler import LiteLLMHandler
from rlm_core.lm_handler import Message, Request
assert "litellm" not in sys.modules, "imported at its first use, not before"

async def ticks(stop):
    count = 0
    while not stop.is_set():
        await asyncio.sleep(0.01)
        count += 1
    return count

async def main():
    handler = LiteLLMHandler()
    stop = asyncio.Event()
    count = asyncio.create_task(ticks(stop))
    await handler.prepare()
    stop.set()
    assert await count > 3, 'the loop goes on during the import'
    request = Request("openai/sub-x", (Message("user", "hello"),), "sub")
    print((await handler.complete(request)).text)
    await handler.aclose()

asyncio.run(main())
import litellm
assert not litellm.success_callback and not litellm.callbacks
"""


def test_a_process_of_its_own_prints_nothing_and_reads_no_env_file(
    server: Loopback, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://127.0.0.1:9/v1\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM_")}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", PROGRAM],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=250, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, echo("hello") + "\n"), done.stderr
    assert done.stderr == ""


def test_who_gives_up_while_litellm_is_imported_does_not_wait_for_the_import(tmp_path: Path) -> None:
    (tmp_path / "litellm.py").write_text("import time\ntime.sleep(600)\n")
    code = (
        "import asyncio\n"
        "from rlm_core.litellm_handler import LiteLLMHandler\n"
        "async def scenario():\n"
        "    handler = LiteLLMHandler(4)\n"
        "    waiting = asyncio.create_task(handler.prepare())\n"
        "    await asyncio.sleep(0.1)\n"
        "    waiting.cancel()\n"
        "    await asyncio.gather(waiting, return_exceptions=True)\n"
        "    await handler.aclose()\n"
        "asyncio.run(scenario())\n"
        "print('ended')\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=250, env={"PYTHONPATH": path}
    )
    assert (done.stdout, done.stderr, done.returncode) == ("ended\n", "", 0)
