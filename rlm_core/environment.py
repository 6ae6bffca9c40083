"""The engine's side of a worker: starts it, runs cells in it, survives whatever it sends.

Every frame is untrusted. A frame that is not the protocol kills the worker and is reported as such; nothing a
worker says is believed about cost, time or counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from rlm_core import bubblewrap, frames
from rlm_core.errors import SandboxError, WorkerDied
from rlm_core.limits import Limits
from rlm_core.playback import PlaybackStopped
from rlm_core.sandbox import Level, SandboxReport, below, judged, refusal
from rlm_core.wire import CellReport, OpenCall, read_done
from rlm_core.worker.lock import LAYERS, Layer
from rlm_core.worker.surroundings import files_of
from rlm_core.worker_process import WorkerProcess
from rlm_core.worker_watch import Watch

START_SECONDS: Final = 60.0
MAX_OPEN_CALLS: Final = 2_000  # of one cell at the same time; threads of a cell may call in parallel
_NATIVE_CAP: Final = 64_000
_LAST_WORDS_SECONDS: Final = 0.5
_DOCUMENTS_PER_FRAME: Final = 500  # paths may have 4,096 bytes
_PLACES_PER_FRAME: Final = 200_000  # of pages
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
    """A persistent REPL over one corpus, in a process of its own.

    `level` None: locked in as far as this machine can; a level: exactly so far. `minimum`: the least that is
    accepted. What the worker found of its lock stands in `sandbox` once it has started. `without` are names
    of the REPL that code does not find; a call from a worker that was started without any is a violation.
    """

    documents: Sequence[dict[str, Any]]
    limits: Limits
    seed: int
    level: Level | None = None
    minimum: Level = "none"
    without: frozenset[str] = frozenset()
    sandbox: SandboxReport | None = None
    generation: int = -1
    known_names: frozenset[str] = frozenset()
    _worker: WorkerProcess | None = None
    _native: bytearray = field(default_factory=bytearray)
    _drain: asyncio.Task[None] | None = None
    _write_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _watch: Watch | None = None
    _idle: tuple[Watch, asyncio.Task[None]] | None = None  # between two cells
    _serving: set[asyncio.Task[None]] = field(default_factory=set)
    _failure: Exception | None = None
    _weight: int = 0  # of the slots of all calls that are not answered yet

    async def start(self) -> SandboxReport:
        """Start a worker in a fresh scratch folder; how far it is locked in.

        Raises `SandboxError` when none can be had, or none that is locked in as far as asked.
        """
        self.generation += 1
        bwrap = bubblewrap.program()
        bare = None if bwrap else bubblewrap.MISSING
        if bwrap and self.level in (None, "strict"):
            try:
                return await self._start(None)
            except SandboxError as error:
                bare = f"bubblewrap does not start here: {error}"
        if "strict" in (self.level, self.minimum):
            raise SandboxError(f"the sandbox level 'strict' cannot be had, because {bare}")
        return await self._start(bare or "the worker was to be started without bubblewrap")

    async def _start(self, bare: str | None) -> SandboxReport:
        """Start a worker, wrapped or (`bare`: for this reason) not."""
        self._native.clear()
        self._worker = await WorkerProcess.start(self.seed, files_of(self.documents), wrap=bare is None)
        self._drain = asyncio.create_task(self._drain_native(self._worker.process))
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._send(self._start_frame(self._worker))
                for block in batched_documents(self.documents):
                    await self._send({"t": "documents", "items": block})
                ready = await self._receive()
            self._worker.started()
        except SandboxError:
            await self.close()
            raise
        except (WorkerDied, TimeoutError):
            await self.close()
            said = self._native.decode("utf-8", "replace").strip().splitlines()
            why = said[-1].removeprefix("OSError: ") if said else "no answer"  # such as a file that changed
            raise SandboxError(f"no worker process could be started: {why}") from None
        self.known_names = frozenset(str(name) for name in ready.get("known", ()))
        self.sandbox = judged(ready["reached"], [*ready["layers"], *(() if bare else ("bwrap",))], bare)
        if below(self.sandbox.level, self.level or self.minimum):
            await self.close()
            raise SandboxError(refusal(self.sandbox, self.level or self.minimum))
        return self.sandbox

    @property
    def pid(self) -> int | None:
        """The number of the worker's own process on this side; None while there is none."""
        return self._worker.pid if self._worker is not None else None

    @property
    def native_output(self) -> str:
        """What C code printed since the last report (its first part), also when the worker died after it."""
        return self._native.decode("utf-8", "replace")

    async def run_cell(self, number: int, code: str, host: Host) -> CellReport:
        """Run one cell to its end; raises `WorkerDied` when the worker does not come back from it."""
        await self._end_idle()
        self._watch = self._new_watch()
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
            if isinstance(self._failure, PlaybackStopped):
                raise self._failure from None
            raise (self._watch.explain(death)) from None
        except frames.FrameError as error:  # the report itself is not what a worker sends
            raise self._violation(str(error)) from None
        finally:
            self._weight -= sum(call.weight for call in calls.values())
            self._watch.end()
            guard.cancel()
            await asyncio.wait([guard])  # awaited itself, its cancellation would hide one of the run
            if not guard.cancelled():
                guard.result()
            self._begin_idle()
        if self._failure is not None:
            raise self._failure
        report.cpu_seconds, report.wall_seconds = self._watch.cpu_seconds, self._watch.active_seconds
        report.interrupted_by = self._watch.reason
        report.native_output = self.native_output
        self._native.clear()
        return report

    def _new_watch(self, cpu_before: float | None = None) -> Watch:
        worker = self._worker
        assert worker is not None
        return Watch(
            worker.pid,
            worker.scratch,
            self.limits,
            self._exited,
            self._hang_up,
            kill=worker.kill,
            cpu_before=cpu_before,
        )

    def _begin_idle(self) -> None:
        if self._worker is not None and self._worker.exit_code() is None:
            watch = self._new_watch(self._watch.cpu_now if self._watch is not None else None)
            self._idle = watch, asyncio.create_task(watch.guard_idle())

    async def _end_idle(self) -> None:
        """The time between two cells is over; raises `WorkerDied` when the worker did not survive it."""
        idle, self._idle = self._idle, None
        if idle is None:
            return
        watch, task = idle
        task.cancel()
        await asyncio.wait([task])
        if watch.reason is not None:
            raise WorkerDied("limit", f"what an earlier cell left running went {watch.reason}")

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
        """End the worker and remove its scratch folder; a cancellation meanwhile counts when that is done."""
        ending = asyncio.ensure_future(self._end())
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _end(self) -> None:
        worker, self._worker = self._worker, None
        self.drop_calls()
        with contextlib.suppress(WorkerDied):
            await self._end_idle()
        await self.settle()
        if worker is not None:
            await worker.end()
        if self._drain is not None:
            await asyncio.gather(self._drain, return_exceptions=True)
        if worker is not None:
            await worker.remove_folder()

    def _take(self, frame: dict[str, Any], calls: dict[int, OpenCall], host: Host) -> None:
        """Handle one frame of a running cell; raises `WorkerDied("protocol")` for anything malformed."""
        try:
            if len(self._serving) >= MAX_OPEN_CALLS:
                raise frames.FrameError("too many calls at once")
            if frame["t"] == "budget":
                self._spawn(self._reply(int(frame["id"]), [host.budget()]))
            elif frame["t"] == "open":
                if self.without:
                    raise frames.FrameError("a sub-call in a run without sub-calls")
                call = OpenCall.read(frame)
                if call.id in calls or len(calls) >= MAX_OPEN_CALLS:
                    raise frames.FrameError("a call id is used twice, or too many calls are open")
                calls[call.id] = call
            elif frame["t"] == "items":
                call = calls[frame["id"]]
                before = call.weight
                try:
                    call.add(frame["items"])
                finally:  # what it took before a refusal counts, since it is given back with the call
                    self._weight += call.weight - before
                if self._weight > frames.MAX_BATCH:
                    raise frames.FrameError(f"open calls heavier than {frames.MAX_BATCH:,} bytes together")
            elif frame["t"] == "close":
                call = calls[frame["id"]].closed()
                self._spawn(self._serve(calls.pop(call.id), host))
            else:
                raise frames.FrameError(f"unknown frame type {frame['t'][:40]!r}")
        except (KeyError, TypeError, ValueError, OverflowError) as error:  # Infinity is a number in JSON
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
            if isinstance(error, PlaybackStopped):  # nobody wants to know what its code would do then
                self._kill()
            else:
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
        assert self._worker is not None
        self._kill()
        code = await self._worker.wait()
        if self._drain is not None:  # its last words; a program it left behind may keep the pipe open
            await asyncio.wait([self._drain], timeout=_LAST_WORDS_SECONDS)
        if code < 0:
            known = {number.value: number.name for number in signal.Signals}
            return f"the worker process was ended by signal {known.get(-code, -code)}"
        return f"the worker process exited with code {code}"

    @property
    def _process(self) -> asyncio.subprocess.Process | None:
        """What the engine started: the worker, or what it is wrapped in."""
        return self._worker.process if self._worker is not None else None

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
        if self._worker is not None and self._worker.exit_code() is None:
            self._worker.kill()

    async def _drain_native(self, process: asyncio.subprocess.Process) -> None:
        """Read what C code printed; only the first part is kept."""
        assert process.stderr is not None
        while block := await process.stderr.read(65536):
            room = _NATIVE_CAP - len(self._native)
            self._native += block[:room]

    def _start_frame(self, worker: WorkerProcess) -> dict[str, Any]:
        return {
            "t": "start",
            "scratch": worker.scratch,
            "targets": worker.targets(),
            "layers": layers_of(self.level),
            "seed": self.seed,
            "memory_bytes": self.limits.memory_bytes,
            "file_bytes": self.limits.scratch_bytes,
            "output_chars": self.limits.output_kept_chars,
            "documents": len(self.documents),
            "without": sorted(self.without),
        }


def batched_documents(documents: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """A document table in parts that fit a frame: a corpus may have a hundred thousand files."""
    block: list[dict[str, Any]] = []
    places = 0
    for document in documents:
        pages = len(document.get("pages", ()))
        if block and (len(block) == _DOCUMENTS_PER_FRAME or places + pages > _PLACES_PER_FRAME):
            yield block
            block, places = [], 0
        block.append(document)
        places += pages
    if block:
        yield block


def layers_of(level: Level | None) -> Sequence[Layer]:
    """The layers of the lock that belong to a level; None: all there are."""
    if level == "none":
        return ("limits",)
    return [layer for layer in LAYERS if level != "weak" or layer != "landlock"]


def try_out() -> SandboxReport:
    """What a worker over an empty corpus finds here. Blocks; works inside a running event loop, too.

    Raises `SandboxError` when no worker can be started.
    """

    async def attempt(path: str) -> SandboxReport:
        document = {"number": 0, "name": "", "path": path, "bytes": 0, "chars": 0}
        facts = {"ascii": True, "sha256": hashlib.sha256().hexdigest(), "mtime_ns": os.stat(path).st_mtime_ns}
        environment = Environment([{**document, **facts}], Limits(), 0)
        try:
            return await environment.start()
        finally:
            await environment.close()

    try:
        with tempfile.NamedTemporaryFile(prefix="rlmscope-") as nothing, ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, attempt(nothing.name)).result()
    except OSError as error:
        raise SandboxError(f"no worker process could be started: {error.strerror or error}") from None
