"""The process of a worker and what was made for it: scratch folder, pipes, and what its self-test tries."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final

from rlm_core import bubblewrap
from rlm_core.errors import SandboxError
from rlm_core.sandbox import worker_command, worker_environment
from rlm_core.worker_watch import kill_group

_READ_AHEAD: Final = 1 << 20
_LEAVE_SECONDS: Final = 0.5


@dataclass
class WorkerProcess:
    """A started worker. `pid` is its own number, also where a wrapper stands between it and the engine."""

    process: asyncio.subprocess.Process
    folder: str
    wrapped: bool
    pid: int
    _info: int | None = None
    _listener: socket.socket | None = None

    @property
    def scratch(self) -> str:
        """The only folder the worker may write to."""
        return os.path.join(self.folder, "scratch")

    @classmethod
    async def start(cls, seed: int, readable: Iterable[str], wrap: bool) -> WorkerProcess:
        """Start a worker in a fresh scratch folder. Raises `SandboxError` when one cannot be had."""
        try:
            return await cls._start(tempfile.mkdtemp(prefix="rlmscope-"), seed, readable, wrap)
        except OSError as error:
            raise SandboxError(f"no worker process could be started: {error.strerror or error}") from None

    @classmethod
    async def _start(cls, folder: str, seed: int, readable: Iterable[str], wrap: bool) -> WorkerProcess:
        info: list[int] = []
        try:
            scratch = os.path.join(folder, "scratch")
            os.mkdir(scratch)
            with open(os.path.join(folder, "canary"), "x") as canary:
                canary.write("A worker must not be able to read this.\n")
            command = worker_command(0 if wrap else None)
            if wrap:
                info += os.pipe()
                command = bubblewrap.wrapped(command, scratch, readable, info[1])
            starting = asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=worker_environment(scratch, seed),
                cwd=scratch,
                start_new_session=True,
                limit=_READ_AHEAD,
                pass_fds=info[1:],
            )
            process = await _started(starting)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            for end in info[:1]:
                os.close(end)
            raise
        finally:
            for end in info[1:]:
                os.close(end)
        return cls(process, folder, wrap, process.pid, info[0] if info else None)

    def targets(self) -> dict[str, Any]:
        """What the self-test of the worker tries to reach; it listens until `started`."""
        port = None
        with contextlib.suppress(OSError):
            self._listener = socket.create_server(("127.0.0.1", 0))
            port = self._listener.getsockname()[1]
        canary = os.path.join(self.folder, "canary")
        return {"canary": canary, "beside": canary + "-2", "parent": os.getpid(), "port": port}

    def started(self) -> None:
        """The worker runs and its self-test is over. Raises `SandboxError` when its number is not known."""
        self._close_listener()
        if self._info is None:
            return
        info, self._info = self._info, None
        with open(info, "rb", buffering=0) as pipe:
            found = bubblewrap.worker_pid(pipe.read(4096))
        if found is None:
            raise SandboxError("bubblewrap does not say which process it started; update it")
        self.pid = found

    def exit_code(self) -> int | None:
        """How the worker ended, None while it runs: a negative number is a signal, as for `subprocess`."""
        code = self.process.returncode
        if self.wrapped and code is not None and code > 128:
            return 128 - code  # bubblewrap says it as a shell does
        return code

    def kill(self) -> None:
        """SIGKILL the worker and whatever is in its process group, a wrapper too."""
        kill_group(self.process.pid)

    async def end(self) -> None:
        """Close the pipe, which ends an idle worker, kill what does not leave, remove what was made."""
        self._close_listener()
        if self._info is not None:
            os.close(self._info)
            self._info = None
        if self.process.stdin is not None:
            self.process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self.wait()
        self.kill()  # also what the worker may have left running
        await self.wait()
        transport = getattr(self.process, "_transport", None)
        if transport is not None:
            transport.close()

    async def wait(self) -> int:
        """Wait for the process itself; `Process.wait` also waits for its pipes, which others may hold."""
        while (code := self.exit_code()) is None:
            await asyncio.sleep(0.002)
        return code

    async def remove_folder(self) -> None:
        """Remove the scratch folder and what lies beside it."""
        await asyncio.to_thread(shutil.rmtree, self.folder, True)

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None


async def _started(starting: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """The process when it runs. A cancellation meanwhile counts only then: asyncio can wait without end for a
    process whose start is cancelled half way (seen in Python 3.11).
    """
    start = asyncio.ensure_future(starting)
    cancelled: asyncio.CancelledError | None = None
    while not start.done():
        try:
            await asyncio.wait([start])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return start.result()
    with contextlib.suppress(OSError):
        process = start.result()
        kill_group(process.pid)
        while process.returncode is None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.002)
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()
    raise cancelled
