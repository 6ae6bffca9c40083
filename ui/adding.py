"""Reading files into a corpus from the command line: how far it has come, on stderr, and a clean Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import RLMScopeError
from ui.common import say
from ui.figures import counted, size
from ui.progress import live_options, on_terminal
from ui.visible import line

if TYPE_CHECKING:
    from rlm_core.corpus import Corpus, Progress
    from traces.home import Home

QUIET_SECONDS: Final = 5.0  # off a terminal: between two lines, and before the first
_FILE_BYTES: Final = 1 << 16  # opening and checking a file takes about as long as reading so much
_BAR: Final = 24  # columns


def add_corpus(
    home: Home, paths: Sequence[Path], *, name: str | None = None, encoding: str | None = None
) -> Corpus:
    """Read files and folders into a corpus of the home, showing how far that is.

    Raises CorpusError as `Corpus.add`; RLMScopeError, and nothing is left behind, when a signal stops it.
    """
    from rlm_core.corpus import Corpus

    try:
        with _interruptible(), AddProgress() as shown:
            return Corpus.add(paths, home.corpora, name=name, encoding=encoding, progress=shown.update)
    except KeyboardInterrupt:
        raise RLMScopeError("cancelled: nothing was added, nothing is left behind") from None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Every wish to stop is a KeyboardInterrupt, as Ctrl-C is: half a corpus must not stay on disk."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wishes = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in wishes}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:  # nohup ignores one on purpose
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def fraction(now: Progress) -> float:
    """How much is done, from 0 to 1: by bytes and by files, as both take their time."""
    total = now.total_bytes + _FILE_BYTES * now.total_files
    done = now.done_bytes + _FILE_BYTES * now.done_files
    return min(done / total, 1.0) if total else 0.0


def progress_text(now: Progress) -> str:
    """Files and bytes in words, without the name of the file."""
    files = f"{now.done_files:,} of {counted(now.total_files, 'file')}"
    return f"{files} · {size(now.done_bytes)} of {size(now.total_bytes)}"


class AddProgress:
    """A bar on a terminal while a `with` block runs, a line now and then elsewhere."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at = clock()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> AddProgress:
        if on_terminal():
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task("", total=None, text="looking for files")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, now: Progress) -> None:
        """Show that so much is done; the name of the file may be anything."""
        if self._bar is not None:
            text = f"{progress_text(now)} · {line(now.name)}"
            self._bar.update(self._task, total=1.0, completed=fraction(now), text=text)
        elif self._clock() - self._said_at >= QUIET_SECONDS:
            self._said_at = self._clock()
            say(f"reading: {progress_text(now)}")


def _bar() -> Any:
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    words = TextColumn(
        "{task.fields[text]}",
        markup=False,
        table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
    )
    return Progress(BarColumn(_BAR), words, expand=True, **live_options())
