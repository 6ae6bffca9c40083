"""Where a run is, while it works: a live line on a terminal, a few plain lines elsewhere, on stderr."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from traces.refused import refused_words
from ui.common import say
from ui.figures import UNKNOWN, duration, least
from ui.visible import fit, line

if TYPE_CHECKING:
    from rlm_core.progress import Progress

QUIET_SECONDS: Final = 15.0  # off a terminal: at most one line in that time within an iteration
_REFRESH: Final = 6.0  # pictures a second


def progress_text(now: Progress, seconds: float) -> str:
    """One line that says where a run is, safe to print."""
    where = f"iteration {now.iteration} (at most {now.max_iterations}): {line(now.phase)}"
    if now.phase == "running a cell":
        where += f" (cell {now.cell})"
    if now.depth:
        where += f", child run at depth {now.depth}"
    calls = f"sub-calls {now.calls_done - now.calls_failed:,} done"
    calls += f", {now.calls_running:,} running, {now.calls_failed:,} failed{refused_words(now.calls_refused)}"
    cost = least(now.cost_usd if now.cost_known else None, None, now.cost_usd)
    cost = f"cost {UNKNOWN}" if cost == UNKNOWN else cost
    return f"{where} · {calls} · {now.tokens:,} tokens · {cost} · {duration(seconds)}"


class ProgressLine:
    """Shows the progress while a `with` block runs. `update` may be called from any thread, never raises."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._said_at = clock()
        self._said_iteration: int | None = None
        self._text: Callable[[], str] = lambda: "starting"
        self._lock = threading.Lock()
        self._live: Any = None

    def __enter__(self) -> ProgressLine:
        if on_terminal():
            self._live = _live(self._picture)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the live line away and give the cursor back; safe to call twice."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def update(self, now: Progress) -> None:
        """Take a new state in; off a terminal, say it when an iteration begins or after a long silence."""
        with self._lock:
            self._text = lambda: progress_text(now, self._clock() - self._began)
            if self._live is not None:
                return
            moment = self._clock()
            begun = now.depth == 0 and now.iteration != self._said_iteration
            if begun or moment - self._said_at >= QUIET_SECONDS:
                self._said_at, self._said_iteration = moment, now.iteration
                say(self._text())

    def _picture(self) -> Any:
        from rich.text import Text

        width = self._live.console.width if self._live is not None else 80
        return Text(fit(self._text(), width), no_wrap=True, overflow="ellipsis")


def on_terminal() -> bool:
    """Whether stderr is a terminal that can redraw a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def live_options() -> dict[str, Any]:
    """Options of a live display of rich on stderr that leaves nothing behind, and stdout alone."""
    from rich.console import Console

    return {
        "console": Console(stderr=True, highlight=False, markup=False, emoji=False),
        "transient": True,
        "redirect_stdout": False,  # redirecting would send the JSON document through rich
        "redirect_stderr": False,
    }


def _live(picture: Callable[[], Any]) -> Any:
    from rich.live import Live

    return Live(get_renderable=picture, refresh_per_second=_REFRESH, **live_options())
