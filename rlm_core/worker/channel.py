"""The worker's end of the pipe: calls from any thread of a cell, answered by id."""

from __future__ import annotations

import os
import select
import threading
from typing import Any

from rlm_core import frames


class Channel:
    """Sends frames and waits for replies. One waiting thread reads for all of them."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader = reader
        self._writer = writer
        self._write_lock = threading.Lock()
        self._state = threading.Condition()
        self._reading = False
        self._next_id = 0
        self._waiting: set[int] = set()
        self._replies: dict[int, list[dict[str, Any]]] = {}
        self.interruptible = True
        self.interrupt_pending = False

    def send(self, message: dict[str, Any]) -> None:
        """Write one frame; raises `frames.FrameError` before a cap would be exceeded."""
        data = frames.encode(message)
        with self._write_lock, self._uninterrupted():
            view = memoryview(data)
            while view:
                view = view[os.write(self._writer, view) :]

    def read(self) -> dict[str, Any]:
        """Read one frame. A Ctrl-C arrives only before its first byte, so that no frame is torn."""
        os.set_blocking(self._reader, True)
        select.select([self._reader], [], [])
        with self._uninterrupted():
            size = frames.body_size(self._exactly(frames.HEADER.size))
            return frames.decode(self._exactly(size))

    def open(self) -> int:
        """A new call id that replies may be addressed to."""
        with self._state:
            self._next_id += 1
            self._waiting.add(self._next_id)
            self._replies[self._next_id] = []
            return self._next_id

    def collect(self, call: int) -> list[Any]:
        """All items of a call's reply, in order; blocks until its last frame came."""
        try:
            while True:
                with self._state:
                    while not self._complete(call) and self._reading:
                        self._state.wait()
                    if self._complete(call):
                        return [item for frame in self._replies[call] for item in frame["items"]]
                    self._reading = True
                self._read_for_all()
        finally:
            with self._state:
                self._waiting.discard(call)
                self._replies.pop(call, None)

    def _read_for_all(self) -> None:
        frame: dict[str, Any] | None = None
        try:
            frame = self.read()
        finally:
            with self._state:
                self._reading = False
                if frame is not None and frame.get("id") in self._waiting:
                    self._replies[frame["id"]].append(frame)
                self._state.notify_all()

    def _complete(self, call: int) -> bool:
        got = self._replies[call]
        return bool(got) and bool(got[-1]["last"])

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            block = os.read(self._reader, count - len(data))
            if not block:
                os._exit(0)  # the engine is gone; nothing is left to work for
            data += block
        return data

    def _uninterrupted(self) -> _Uninterrupted:
        return _Uninterrupted(self)


class _Uninterrupted:
    """Defers Ctrl-C while a frame is on the wire; raises it afterwards."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __enter__(self) -> None:
        self._was = self._channel.interruptible
        self._channel.interruptible = False

    def __exit__(self, *_: object) -> None:
        self._channel.interruptible = self._was
        if self._was and self._channel.interrupt_pending:
            self._channel.interrupt_pending = False
            raise KeyboardInterrupt
