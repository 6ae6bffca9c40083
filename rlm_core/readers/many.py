"""Many files: small texts at once, in this thread; the rest in a few threads that wait for children.

Results come in the order of the files, whatever is ready first: so ids and manifests are the same every time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final

from rlm_core.add_progress import Progress, Watcher
from rlm_core.readers.dispatch import FileReader, Taken
from rlm_core.walk import Found, Problem

_MOST_AT_ONCE: Final = 4
_REPORT_SECONDS: Final = 0.05
_AT_ONCE_BYTES: Final = 4 << 20  # a text of this size is read in the time a thread takes to start


Items = list[Taken | Problem]


class _Stopped(Exception):
    """The add has ended while a thread was reading."""


@dataclass(slots=True)
class _Count:
    """What has been done so far; any thread adds to it, the thread that adds the corpus reports it."""

    watcher: Watcher | None
    total_files: int
    total_bytes: int
    files: int = 0
    size: int = 0
    name: str = ""
    stopped: bool = False
    _reported: float = 0.0
    _parts: dict[int, int] = field(default_factory=dict)  # thread -> bytes of the file it is reading
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tick(self, count: int) -> None:
        """So many bytes more have been read; raises in every reading thread once the add has ended."""
        if self.stopped:
            raise _Stopped
        if count:
            with self._lock:
                thread = threading.get_ident()
                self._parts[thread] = self._parts.get(thread, 0) + count

    def done(self, name: str, size: int) -> None:
        """A file of this size has been read in this thread."""
        with self._lock:
            self._parts.pop(threading.get_ident(), None)
            self.files += 1
            self.size += size
            self.name = name

    def report(self, last: bool = False) -> None:
        if self.watcher is None:
            return
        now = time.monotonic()
        if last or now - self._reported >= _REPORT_SECONDS:
            self._reported = now
            with self._lock:
                size = min(self.size + sum(self._parts.values()), self.total_bytes)
                progress = Progress(self.files, self.total_files, size, self.total_bytes, self.name)
            self.watcher(progress)


def read_all(found: Sequence[Found], reader: FileReader, watcher: Watcher | None) -> Iterator[Items]:
    """What every file becomes, in order. `watcher` is called in this thread; what it raises ends everything.

    Raises `CorpusError` when a text cannot be stored.
    """
    sizes = [_size(file.path) for file in found]
    count = _Count(watcher, len(found), sum(sizes))
    workers = min(_MOST_AT_ONCE, os.cpu_count() or 1)
    reader.tick = count.tick
    results: list[Items | Future[Items]] = []
    with ThreadPoolExecutor(workers, "reader") as pool:

        def read(file: Found, size: int) -> Items:
            count.tick(0)
            items = reader.read(file)
            count.done(file.name, size)
            return items

        try:
            for file, size in zip(found, sizes, strict=True):
                items = reader.read_text(file) if size <= _AT_ONCE_BYTES else None
                if items is None:
                    results.append(pool.submit(read, file, size))
                else:
                    results.append(items)
                    count.done(file.name, size)
                count.report()
            for result in results:
                yield result if isinstance(result, list) else _wait(result, count)
            count.report(last=True)
        finally:
            count.stopped = True
            pool.shutdown(cancel_futures=True)


def _wait(future: Future[Items], count: _Count) -> Items:
    while not wait([future], _REPORT_SECONDS).done:
        count.report()
    return future.result()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0  # the reader says what is wrong with it
