"""What a cell prints: kept up to a cap (head and tail), counted in full."""

from __future__ import annotations

import io
import threading
from collections import deque


class CappedOutput(io.TextIOBase):
    """A text stream that keeps the first and the last half of `cap` characters and counts all of them."""

    def __init__(self, cap: int) -> None:
        self._half = max(1, cap // 2)
        self._lock = threading.Lock()
        self.start()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base class has a plain attribute
        """What programs ask a terminal for."""
        return "utf-8"

    def start(self) -> None:
        """Forget everything; a new cell begins."""
        with self._lock:
            self._head: list[str] = []
            self._head_chars = 0
            self._tail: deque[str] = deque()
            self._tail_chars = 0
            self._true_chars = 0

    def writable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Does nothing: the stream serves the next cells too."""

    def write(self, text: str) -> int:
        """Keep what fits, count everything."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        text = str.__str__(text)  # of a subclass only the text, none of its methods
        if text:
            with self._lock:
                self._true_chars += len(text)
                self._keep(text)
        return len(text)

    def _keep(self, text: str) -> None:
        room = self._half - self._head_chars
        if room > 0:
            self._head.append(text[:room])
            self._head_chars += min(room, len(text))
            text = text[room:]
        if text:
            self._tail.append(text[-self._half :])
            self._tail_chars += len(self._tail[-1])
            while self._tail_chars - len(self._tail[0]) >= self._half:
                self._tail_chars -= len(self._tail.popleft())

    def report(self) -> tuple[str, int]:
        """What was kept, with a line that says how much was not, and the number of all characters."""
        with self._lock:
            head, tail = "".join(self._head), "".join(self._tail)[-self._half :]
            dropped = self._true_chars - len(head) - len(tail)
            if dropped <= 0:
                return head + tail, self._true_chars
            said = f"\n[... {dropped:,} of {self._true_chars:,} characters were not kept ...]\n"
            return head + said + tail, self._true_chars
