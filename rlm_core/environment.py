"""The engine's side of a worker: starts it, runs cells in it, survives whatever it sends.

Every frame is untrusted. A frame that is not the protocol kills the worker and is reported as such; nothing a
worker says is believed about cost, time or counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from rlm_core import frames
from rlm_core.errors import SandboxError, WorkerDied
from rlm_core.limits import Limits
from rlm_core.sandbox import worker_command, worker_environment
from rlm_core.wire import CellReport, OpenCall, read_done
from rlm_core.worker_watch import Watch, kill_group

START_SECONDS: Final = 60.0
MAX_OPEN_CALLS: Final = 2_000  # of one cell at the same time; threads of a cell may call in parallel
_NATIVE_CAP: Final = 64_000
_DOCUMENTS_PER_FRAME: Final = 500  # paths may have 4,096 bytes
_REPLY_FILL: Final = frames.MAX_FRAME // 2


class Host(Protocol):
    """Who answers the calls of a cell."""

    async def sub_calls(self, call: OpenCall) -> list[dict[str, Any]]:
        """One reply per slot, in order: `{"ok": text}` or `{"err": kind, "msg": text}`; never raises for one
        slot.
        """
        ...

    def budget(self) -> dict[str, Any]:
        """What `budget()` shows."""
        ...


@dataclass
class Environment:
    """A persistent REPL over one corpus, in a process of its own."""

    documents: Sequence[dict[str, Any]]
    limits: Limits
    seed: int
    generation: int = -1
    known_names: frozenset[str] = frozenset()
    _process: asyncio.subprocess.Process | None = None
    _scratch: str = ""
    _native: bytearray = field(default_factory=bytearray)
    _drain: asyncio.Task[None] | None = None
    _write_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _watch: Watch | None = None
    _serving: set[asyncio.Task[None]] = field(default_factory=set)
    _failure: Exception | None = None
    _weight: int = 0  # of the slots of all calls that are not answered yet

    async def start(self) -> None:
        """Start a worker in a fresh scratch folder; raises `SandboxError` when none can be had."""
        self.generation += 1
        self._scratch = tempfile.mkdtemp(prefix="rlmscope-")
        self._process = await asyncio.create_subprocess_exec(
            *worker_command(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=worker_environment(self._scratch, self.seed),
            cwd=self._scratch,
            start_new_session=True,
            limit=1 << 20,
        )
        self._drain = asyncio.create_task(self._drain_native())
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._send(self._start_frame())
                for block in batched_documents(self.documents):
                    await self._send({"t": "documents", "items": block})
                ready = await self._receive()
        except (WorkerDied, TimeoutError):
            await self.close()
            said = self._native.decode("utf-8", "replace").strip().splitlines()
            raise SandboxError(
                f"no worker process could be started: {said[-1] if said else 'no answer'}"
            ) from None
        self.known_names = frozenset(str(name) for name in ready.get("known", ()))

    async def run_cell(self, number: int, code: str, host: Host) -> CellReport:
        """Run one cell to its end; raises `WorkerDied` when the worker does not come back from it."""
        assert self._process is not None
        self._native.clear()
        self._watch = Watch(self._process.pid, self._scratch, self.limits, self._exited, self._hang_up)
        guard = asyncio.create_task(self._watch.guard())
        calls: dict[int, OpenCall] = {}
        self._failure = None
        try:
            await self._send({"t": "cell", "n": number, "code": code})
            while True:
                frame = await self._receive(self._watch)
                if frame["t"] == "done":
                    report = read_done(frame, number)
                    break
                self._take(frame, calls, host)
        except WorkerDied as death:
            raise (self._watch.explain(death)) from None
        except frames.FrameError as error:  # the report itself is not what a worker sends
            raise self._violation(str(error)) from None
        finally:
            self._weight -= sum(call.weight for call in calls.values())
            self._watch.end()
            guard.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await guard
        if self._failure is not None:
            raise self._failure
        report.cpu_seconds, report.wall_seconds = self._watch.cpu_seconds, self._watch.active_seconds
        report.interrupted_by = self._watch.reason
        report.native_output = self._native.decode("utf-8", "replace")
        return report

    def interrupt(self, reason: str) -> None:
        """Stop the running cell (Ctrl-C, then kill after the grace time)."""
        if self._watch is not None:
            self._watch.interrupt(reason)

    async def settle(self) -> None:
        """Wait until every call that the worker opened has been answered or dropped."""
        while self._serving:
            await asyncio.gather(*self._serving, return_exceptions=True)

    def drop_calls(self) -> None:
        """Cancel every call that is still under way; `settle` then waits for their ends."""
        for task in list(self._serving):
            task.cancel()

    async def close(self) -> None:
        """End the worker and remove its scratch folder."""
        process, self._process = self._process, None
        self.drop_calls()
        await self.settle()
        if process is not None:
            await _end(process)
        if self._drain is not None:
            await asyncio.gather(self._drain, return_exceptions=True)
        if self._scratch:
            await asyncio.to_thread(shutil.rmtree, self._scratch, True)
            self._scratch = ""

    def _take(self, frame: dict[str, Any], calls: dict[int, OpenCall], host: Host) -> None:
        """Handle one frame of a running cell; raises `WorkerDied("protocol")` for anything malformed."""
        try:
            if len(self._serving) >= MAX_OPEN_CALLS:
                raise frames.FrameError("too many calls at once")
            if frame["t"] == "budget":
                self._spawn(self._reply(int(frame["id"]), [host.budget()]))
            elif frame["t"] == "open":
                call = OpenCall.read(frame)
                if call.id in calls or len(calls) >= MAX_OPEN_CALLS:
                    raise frames.FrameError("a call id is used twice, or too many calls are open")
                calls[call.id] = call
            elif frame["t"] == "items":
                call = calls[frame["id"]]
                before = call.weight
                call.add(frame["items"])
                self._weight += call.weight - before
                if self._weight > frames.MAX_BATCH:
                    raise frames.FrameError(f"open calls heavier than {frames.MAX_BATCH:,} bytes together")
            elif frame["t"] == "close":
                self._spawn(self._serve(calls.pop(frame["id"]).closed(), host))
            else:
                raise frames.FrameError(f"unknown frame type {frame['t'][:40]!r}")
        except (KeyError, TypeError, ValueError) as error:
            raise self._violation(str(error)) from None

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, call: OpenCall, host: Host) -> None:
        watch = self._watch
        if watch is not None:
            watch.pause()
        try:
            replies = await host.sub_calls(call)
        except Exception as error:  # a defect of ours: end the cell and let run_cell raise it
            self._failure = error
            replies = [{"err": "engine", "msg": "the engine failed"}] * call.size
            self.interrupt("a failure of the engine")
        finally:
            if watch is not None:
                watch.resume()
            self._weight -= call.weight
        await self._reply(call.id, replies)

    async def _reply(self, call: int, items: list[dict[str, Any]]) -> None:
        """Send a reply in as many frames as it needs."""
        block: list[dict[str, Any]] = []
        filled = 0
        with contextlib.suppress(WorkerDied):  # a worker that died meanwhile is seen by its reader
            for item in items:
                size = len(frames.encode_body(item))
                if size > frames.MAX_FRAME - 4096:
                    item, size = (
                        {"err": "too_large", "msg": f"the reply has {size:,} bytes, too many for a cell"},
                        100,
                    )
                if block and filled + size > _REPLY_FILL:
                    await self._send({"t": "ret", "id": call, "items": block, "last": False})
                    block, filled = [], 0
                block.append(item)
                filled += size
            await self._send({"t": "ret", "id": call, "items": block, "last": True})

    async def _send(self, message: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            raise WorkerDied("closed", "the worker is closed")
        async with self._write_lock:
            try:
                process.stdin.write(frames.encode(message))
                await process.stdin.drain()
            except (ConnectionError, RuntimeError):
                raise WorkerDied("pipe", "the worker closed its pipe") from None

    async def _receive(self, watch: Watch | None = None) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        reader = self._process.stdout
        try:
            size = frames.body_size(await reader.readexactly(frames.HEADER.size))
            if watch is not None:
                watch.frame_begins()
            body = await reader.readexactly(size)
            if watch is not None:
                watch.frame_ends()
            return frames.decode(body)
        except asyncio.IncompleteReadError:
            raise WorkerDied("exit", await self._how_it_ended()) from None
        except frames.FrameError as error:
            raise self._violation(str(error)) from None

    def _violation(self, what: str) -> WorkerDied:
        self._kill()
        return WorkerDied("protocol", f"the worker broke the protocol and was ended: {what}")

    async def _how_it_ended(self) -> str:
        assert self._process is not None
        self._kill()
        code = await exit_code(self._process)
        if code < 0:
            known = {number.value: number.name for number in signal.Signals}
            return f"the worker process was ended by signal {known.get(-code, -code)}"
        return f"the worker process exited with code {code}"

    def _exited(self) -> bool:
        return self._process is not None and self._process.returncode is not None

    def _hang_up(self) -> None:
        """The process is gone; a program it left behind must not keep the engine waiting for its pipe."""
        if (
            self._process is not None
            and self._process.stdout is not None
            and not self._process.stdout.at_eof()
        ):
            self._process.stdout.feed_eof()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            kill_group(self._process.pid)

    async def _drain_native(self) -> None:
        """Read what C code printed; only the first part is kept."""
        assert self._process is not None and self._process.stderr is not None
        while block := await self._process.stderr.read(65536):
            room = _NATIVE_CAP - len(self._native)
            self._native += block[:room]

    def _start_frame(self) -> dict[str, Any]:
        return {
            "t": "start",
            "scratch": self._scratch,
            "seed": self.seed,
            "memory_bytes": self.limits.memory_bytes,
            "file_bytes": self.limits.scratch_bytes,
            "output_chars": self.limits.output_kept_chars,
            "documents": len(self.documents),
        }


def batched_documents(documents: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """A document table in parts that fit a frame: a corpus may have a hundred thousand files."""
    for start in range(0, len(documents), _DOCUMENTS_PER_FRAME):
        yield list(documents[start : start + _DOCUMENTS_PER_FRAME])


async def exit_code(process: asyncio.subprocess.Process) -> int:
    """Wait for the process itself. `Process.wait` also waits for its pipes, which others may hold open."""
    while process.returncode is None:
        await asyncio.sleep(0.002)
    return process.returncode


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close the pipe, which ends an idle worker; kill what does not leave."""
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            await exit_code(process)
    kill_group(process.pid)  # also what the worker may have left running
    await exit_code(process)
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
