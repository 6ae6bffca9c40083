"""Spans of other programs as they come, written as runs that can be watched.

Each trace is one run (`collecting_trace`). A span is on disk when `take` returns, which waits for no other
trace and not for a whole one to be worked out: that is done by `tend`, and of small traces at once.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rlm_core.errors import RecordError
from traces.collecting_trace import CollectedTrace
from traces.home import Home
from traces.otlp.refusals import Refusals
from traces.otlp.spans import OtlpSpan, RefusedSpan

QUIET: Final = 5.0  # seconds after its own span ended in which nothing more came: the run is closed
PATIENCE: Final = 900.0  # seconds in which nothing came to a run whose own span has not
MOST_SPANS: Final = 50_000  # of one run; what comes after them is a further run
MOST_CHARS: Final = 500_000_000  # of the texts of one run, likewise: they are held while it is open
MOST_OPEN: Final = 200  # runs at a time
MOST_SPANS_HELD: Final = 200_000  # of all runs that are not closed: more are to be sent again later
MOST_CHARS_HELD: Final = 1_000_000_000  # of their texts, likewise
RETRY_SECONDS: Final = 5  # until then room is made, as a rule
_ROOM: Final = 0.75  # of both the most that is held when room was made: one who sends a lot takes it at once
_MOST_FULL: Final = 50  # runs that wait for their last word, before who begins further ones waits too
_REMEMBERED: Final = 1_000_000  # spans of closed traces that are known when they are sent again
_MOST_REFUSED: Final = 1_000  # traces without a run of which it is known what was refused


class Overfull(RecordError):
    """The runs that are not closed hold as much as may be held: the spans are to be sent again later."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A run that was received: how many spans of its trace came, whether its own span was among them, and how
    many that came could not be used.
    """

    run_id: str
    spans: int
    closed: bool
    refused: int = 0


class Collector:
    """Takes spans from any thread; `tend` is called now and then, `close` at the end.

    `say` is told in one sentence when a run begins, when it is closed, and when too much is held. `clock`
    gives seconds that never run backwards.
    """

    def __init__(
        self,
        home: Home,
        *,
        quiet: float = QUIET,
        patience: float = PATIENCE,
        say: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home, self._quiet, self._patience = home, quiet, patience
        self._say, self._clock = say, clock
        self._lock = threading.RLock()  # of which traces there are; it is never held for long
        self._open: dict[str, CollectedTrace] = {}
        self._full: deque[CollectedTrace] = deque()  # to which nothing is added, and which are not closed yet
        self._finishing = threading.Lock()
        self._done: OrderedDict[str, dict[str, None]] = OrderedDict()  # ids of spans by trace, oldest first
        self._remembered = 0  # how many these are
        self._closed: list[Collected] = []
        self._refusing = False
        self._refused: OrderedDict[str, Refusals] = OrderedDict()  # by trace, of traces without an open run

    def take(self, spans: Iterable[OtlpSpan], refused: Iterable[RefusedSpan] = ()) -> None:
        """Write spans down, and of those that cannot be used why. What was received before is passed over.

        Raises RecordError when they cannot be written, Overfull when too much is held; they may be sent
        again.
        """
        self._refuse_too_much()
        traces: dict[str, list[OtlpSpan]] = {}
        for span in spans:
            traces.setdefault(span.trace_id, []).append(span)
        unusable: dict[str, list[RefusedSpan]] = {}
        for each in refused:
            if each.trace_id is not None:
                unusable.setdefault(each.trace_id, []).append(each)
        for trace_id, group in traces.items():
            while not self._take(trace_id, group):  # its run was ended meanwhile: there is a further one
                pass
        for trace_id, bad in unusable.items():  # when all else is safe: nothing of this is sent again
            self._refuse(trace_id, bad)
        if len(self._full) > _MOST_FULL:
            self._finish()

    def _refuse_too_much(self) -> None:
        with self._lock:
            before, self._refusing = self._refusing, self._is_overfull()
        if not self._refusing:
            return
        if not before:
            self._say(
                f"The open runs hold more than {MOST_SPANS_HELD:,} spans or {MOST_CHARS_HELD:,} characters: "
                "spans are refused until some are closed, and their senders are told to try again."
            )
        raise Overfull(f"Too many spans are held: send these again in {RETRY_SECONDS} seconds.")

    def _is_overfull(self) -> bool:
        return _share([*self._open.values(), *self._full]) >= 1

    def _make_room(self) -> None:
        """End the runs to which nothing came for longest: who sends more of one begins a further one."""
        with self._lock:
            if self._full or not self._is_overfull():
                return
            while _share(self._open.values()) > _ROOM:
                self._end(min(self._open.values(), key=lambda trace: trace.heard))

    def _take(self, trace_id: str, spans: list[OtlpSpan]) -> bool:
        with self._lock:
            done = self._done.get(trace_id, {})
            fresh = [span for span in spans if span.span_id not in done]
            if not fresh:
                return True
            trace = self._open.get(trace_id)
            if trace is None:
                trace = self._begun(trace_id, fresh, late=bool(done))
            trace.heard = self._clock()
        if not trace.take(fresh):
            return False
        if len(trace.spans) >= MOST_SPANS or trace.chars >= MOST_CHARS:
            self._end(trace)
        return True

    def _begun(self, trace_id: str, spans: list[OtlpSpan], *, late: bool) -> CollectedTrace:
        if len(self._open) >= MOST_OPEN:
            self._end(min(self._open.values(), key=lambda trace: trace.heard))
        trace = CollectedTrace(self._home, trace_id, spans, late, self._clock)
        trace.refuse(self._refused.pop(trace_id, Refusals()))
        self._open[trace_id] = trace
        more = ", with spans that came after the run of their trace was closed" if late else ""
        self._say(f"Run {trace.run_id} begins: {trace.engine}{more}.")
        return trace

    def _refuse(self, trace_id: str, bad: list[RefusedSpan]) -> None:
        """Say in the run of a trace what of it cannot be used; without one that is kept until one begins."""
        with self._lock:
            trace = self._open.get(trace_id)
            if trace is not None and trace.refuse(Refusals(bad)):
                trace.heard = self._clock()
                return
            self._refused.setdefault(trace_id, Refusals()).add(bad)
            if len(self._refused) > _MOST_REFUSED:
                self._refused.popitem(last=False)

    def tend(self) -> None:
        """Arrange what has come, and close the runs to which nothing more is expected, also to make room."""
        self._make_room()
        with self._lock:
            traces = list(self._open.values())
        for trace in traces:
            try:
                trace.arrange(now=self._clock() - trace.heard >= self._quiet)
            except RecordError:
                pass  # what does not stand is written at the next chance
            except Exception as error:  # one trace must not end the others
                self._say(
                    f"Run {trace.run_id} cannot be arranged, by an error of this program: {error!r}"[:500]
                )
            with self._lock:
                if self._clock() - trace.heard >= (self._quiet if trace.ended else self._patience):
                    self._end(trace)
            self._finish()
        self._finish()

    def close(self) -> list[Collected]:
        """Close all runs; returns every run that was received, in the order in which they were closed."""
        with self._lock:
            for trace in list(self._open.values()):
                self._end(trace)
        self._finish()
        return list(self._closed)

    def _end(self, trace: CollectedTrace) -> None:
        """Let nothing more into a run. The last word on it is written by `_finish`, which may take long."""
        with self._lock:
            if self._open.get(trace.trace_id) is not trace:
                return
            del self._open[trace.trace_id]
            self._remember(trace.trace_id, trace.seal())
            self._full.append(trace)

    def _remember(self, trace_id: str, span_ids: Collection[str]) -> None:
        known = self._done.setdefault(trace_id, {})
        before = len(known)
        known.update(dict.fromkeys(span_ids))
        self._remembered += len(known) - before
        self._done.move_to_end(trace_id)
        while self._remembered > _REMEMBERED:  # one trace alone may go on for ever
            oldest, ids = next(iter(self._done.items()))
            forgotten = list(islice(ids, self._remembered - _REMEMBERED))
            for span_id in forgotten:
                del ids[span_id]
            self._remembered -= len(forgotten)
            if not ids:
                del self._done[oldest]

    def _finish(self) -> None:
        with self._finishing:
            while self._full:
                trace = self._full[0]
                try:
                    trace.close()
                except Exception as error:  # as in `tend`
                    self._say(
                        f"Run {trace.run_id} cannot be closed, by an error of this program: {error!r}"[:500]
                    )
                with self._lock:  # until now it was held
                    self._full.popleft()
                refused = trace.refused.count
                self._closed.append(Collected(trace.run_id, len(trace.spans), trace.ended, refused))
                spans = f"{len(trace.spans)} {'span' if len(trace.spans) == 1 else 'spans'}"
                unended = "" if trace.ended else "; its own span did not come, so it counts as interrupted"
                unusable = f", {refused:,} more could not be used" if refused else ""
                self._say(f"Run {trace.run_id} is closed: {spans}{unusable}{unended}.")


def _share(traces: Collection[CollectedTrace]) -> float:
    """How much traces hold of what may be held: 1 is all of it."""
    spans, chars = sum(len(trace.spans) for trace in traces), sum(trace.chars for trace in traces)
    return max(spans / MOST_SPANS_HELD, chars / MOST_CHARS_HELD)
