"""The worker's end of the pipe: calls from any thread of a cell, answered by id."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from rlm_core import frames
from rlm_core.worker.interrupts import Interrupts

_CHECK_SECONDS: Final = 0.05  # how soon a thread that waits for another one's reading sees an interrupt
_POSIX: Final = os.name == "posix"  # elsewhere pipes have no select(), and interrupts are not sent either
_Messages = Iterable[dict[str, Any]]


class Channel:
    """Sends frames and waits for replies. One waiting thread reads for all of them.

    Belongs to the process it was made in: a forked child finds it closed, since two readers of one pipe would
    take each other's frames.
    """

    def __init__(self, reader: int, writer: int, interrupts: Interrupts) -> None:
        self._reader = reader
        self._writer = writer
        self._interrupts = interrupts
        self._write_lock = threading.Lock()
        self._state = threading.Condition()
        self._reading = False
        self._next_id = 0
        self._replies: dict[int, list[dict[str, Any]]] = {}  # by the id of a call that somebody waits for
        self._others: deque[dict[str, Any]] = deque()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._abandon)

    def send(self, messages: _Messages) -> None:
        """Write frames in one piece; raises `frames.FrameError` for one that would exceed a cap."""
        if self._writer < 0:
            raise RuntimeError("sub-calls can be made from threads of a cell, not from another process")
        with self._interrupts.shield(), self._write_lock:
            _make_blocking(self._writer)
            for message in messages:
                view = memoryview(frames.encode(message))
                while view:
                    view = view[os.write(self._writer, view) :]

    def ask(self, messages: Callable[[int], _Messages]) -> list[Any]:
        """Send what `messages` makes for a new call id; all items of the reply, in order. Blocks."""
        with self._interrupts.shield():
            with self._state:
                self._next_id += 1
                call = self._next_id
                replies = self._replies[call] = []
            try:
                self.send(messages(call))
                self._until(lambda: bool(replies) and bool(replies[-1]["last"]))
                return [item for frame in replies for item in frame["items"]]
            finally:
                with self._state:
                    del self._replies[call]

    def next(self) -> dict[str, Any]:
        """The next frame that is no reply; blocks."""
        self._until(lambda: bool(self._others))
        return self._others.popleft()

    def _until(self, ready: Callable[[], bool]) -> None:
        """Block until `ready`, reading frames unless another thread does."""
        while True:
            with self._state:
                while not ready() and self._reading:
                    self._state.wait(_CHECK_SECONDS if self._interrupts.can_strike() else None)
                    self._interrupts.check()
                if ready():
                    return
                self._reading = True
            frame: dict[str, Any] | None = None
            try:
                frame = self._read()
            finally:
                with self._state:
                    self._reading = False
                    if frame is not None:
                        self._sort(frame)
                    self._state.notify_all()

    def _read(self) -> dict[str, Any]:
        """Read one frame. An interrupt is let in only before its first byte, so that no frame is torn."""
        _make_blocking(self._reader)
        with self._interrupts.window():
            if _POSIX:
                select.select([self._reader], [], [])
        size = frames.body_size(self._exactly(frames.HEADER.size))
        return frames.decode(self._exactly(size))

    def _sort(self, frame: dict[str, Any]) -> None:
        if frame["t"] != "ret":
            self._others.append(frame)
        elif (waiting := self._replies.get(frame["id"])) is not None:
            waiting.append(frame)  # a reply that nobody waits for any more is dropped

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            block = os.read(self._reader, count - len(data))
            if not block:
                os._exit(0)  # the engine is gone; nothing is left to work for
            data += block
        return bytes(data)

    def _abandon(self) -> None:
        os.close(self._reader)
        os.close(self._writer)
        self._reader = self._writer = -1


def _make_blocking(pipe: int) -> None:
    """A cell can have made the pipe non-blocking."""
    if _POSIX:
        os.set_blocking(pipe, True)
