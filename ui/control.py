"""Stopping a run from another process: a file that asks for it, which the run's process looks for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from traces.home import Home

PERIOD: Final = 0.25  # seconds between two looks


def cancel_file(home: Home, run_id: str) -> Path:
    """The file whose existence asks a run to stop. Raises InputError for what is no run id."""
    return home.root / "control" / f"{home.spool_file(run_id).stem}.cancel"


def ask_to_stop(home: Home, run_id: str) -> None:
    """Ask the process of a run, whoever started it, to stop. Raises InputError, OSError."""
    path = cancel_file(home, run_id)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


class StopWatch:
    """Calls `stop`, once, when somebody asked the run to stop during a `with` block; removes the file."""

    def __init__(self, path: Path, stop: Callable[[], None]) -> None:
        self._path = path
        self._stop = stop
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rlm-control", daemon=True)

    def __enter__(self) -> StopWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _watch(self) -> None:
        while not self._path.exists():
            if self._ended.wait(PERIOD):
                return
        self._stop()
