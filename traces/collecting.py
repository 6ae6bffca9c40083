"""Spans of other programs as they come, written as runs that can be watched.

Each trace is one run. Its spool stands in the order of arrival (`rlm_core.semconv.IMPORT_ORDER`): OTLP sends
a span when it ends, so those inside come first, and what a span is follows from those around it. Whatever
follows anew from what has come is written again: the last word on a span counts. A span is on disk when
`take` returns.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from rlm_core.pricing import PriceTable
from rlm_core.telemetry import as_json, sha256_text
from traces.folding import PLACED
from traces.home import Home, new_run_id
from traces.importers.foreign import ForeignRun
from traces.importers.placing import tidy
from traces.importers.writing import run_records
from traces.locks import FileLock
from traces.otlp.spans import OtlpSpan
from traces.otlp.trace_run import run_of_trace, settle
from traces.prices import price_table
from traces.spool import Record, SpoolWriter

QUIET: Final = 5.0  # seconds after its own span ended in which nothing more came: the run is closed
PATIENCE: Final = 900.0  # seconds in which nothing came to a run whose own span has not
MOST_SPANS: Final = 50_000  # of one run; what comes after them is a further run
MOST_OPEN: Final = 200  # runs at a time
_REMEMBERED: Final = 1_000  # closed traces whose spans are known when they are sent again
_SHARE: Final = 10  # of the time at most one tenth goes into arranging one trace anew
LATE: Final = "These spans came after the run of their trace was closed: it holds those before them."
FILE: Final = "rlmscope collect"  # where such a run comes from, in place of the name of a file


@dataclass(frozen=True, slots=True)
class Collected:
    """A run that was received: how many spans of its trace came, and whether its own span was among them."""

    run_id: str
    spans: int
    closed: bool


class Collector:
    """Takes spans from any thread; `tend` is called now and then, `close` at the end.

    `say` is told in one sentence when a run begins and when it is closed. `clock` gives seconds that never
    run backwards.
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
        self._lock = threading.RLock()
        self._open: dict[str, _Trace] = {}
        self._done: OrderedDict[str, set[str]] = OrderedDict()  # ids of spans by trace
        self._closed: list[Collected] = []

    def take(self, spans: Iterable[OtlpSpan]) -> None:
        """Write spans down. What was received before is passed over.

        Raises RecordError when they cannot be written; they may be sent again.
        """
        traces: dict[str, list[OtlpSpan]] = {}
        for span in spans:
            traces.setdefault(span.trace_id, []).append(span)
        with self._lock:
            for trace_id, group in traces.items():
                self._take(trace_id, group)

    def _take(self, trace_id: str, spans: list[OtlpSpan]) -> None:
        done = self._done.get(trace_id, set())
        fresh = [span for span in spans if span.span_id not in done]
        if not fresh:
            return
        trace = self._open.get(trace_id)
        if trace is None:
            trace = self._begun(trace_id, fresh, late=bool(done))
        trace.heard = self._clock()
        trace.take(fresh)
        if len(trace.spans) >= MOST_SPANS:
            self._end(trace)

    def _begun(self, trace_id: str, spans: list[OtlpSpan], *, late: bool) -> _Trace:
        if len(self._open) >= MOST_OPEN:
            self._end(min(self._open.values(), key=lambda trace: trace.heard))
        trace = _Trace(self._home, trace_id, spans, late, self._clock)
        self._open[trace_id] = trace
        more = ", with spans that came after the run of their trace was closed" if late else ""
        self._say(f"Run {trace.run_id} begins: {trace.engine}{more}.")
        return trace

    def tend(self) -> None:
        """Arrange what has come, and close the runs to which nothing more is expected."""
        with self._lock:
            now = self._clock()
            for trace in list(self._open.values()):
                trace.arrange_in_time()
                if now - trace.heard >= (self._quiet if trace.ended else self._patience):
                    self._end(trace)

    def close(self) -> list[Collected]:
        """Close all runs; returns every run that was received, in the order in which they were closed."""
        with self._lock:
            for trace in list(self._open.values()):
                self._end(trace)
            return list(self._closed)

    def _end(self, trace: _Trace) -> None:
        self._open.pop(trace.trace_id, None)
        self._done.setdefault(trace.trace_id, set()).update(trace.spans)
        self._done.move_to_end(trace.trace_id)
        while len(self._done) > _REMEMBERED:
            self._done.popitem(last=False)
        trace.close()
        self._closed.append(Collected(trace.run_id, len(trace.spans), trace.ended))
        spans = f"{len(trace.spans)} {'span' if len(trace.spans) == 1 else 'spans'}"
        unended = "" if trace.ended else "; its own span did not come, so it counts as interrupted"
        self._say(f"Run {trace.run_id} is closed: {spans}{unended}.")


class _Trace:
    """One trace while its spans come, and the spool of its run."""

    def __init__(
        self, home: Home, trace_id: str, spans: list[OtlpSpan], late: bool, clock: Callable[[], float]
    ) -> None:
        self.trace_id, self.run_id = trace_id, new_run_id()
        self.spans: dict[str, OtlpSpan] = {}
        self.ended = False  # whether the span of the run itself has come
        self.heard = 0.0
        self.engine = run_of_trace(trace_id, spans).engine
        self._late, self._clock = late, clock
        self._prices: PriceTable = price_table(home)
        self._started_ns = min((s.start_ns for s in spans if s.start_ns is not None), default=time.time_ns())
        self._lock_path = home.liveness_lock(self.run_id)
        self._alive = FileLock(self._lock_path)
        self._writer = _Diff(self._opened(home))
        self._dirty = False
        self._next = 0.0  # when the trace may be arranged again

    def _opened(self, home: Home) -> SpoolWriter:
        """Lock first, spool second, as for runs of this engine. Raises RecordError."""
        try:
            home.create()
            if not self._alive.try_acquire(exclusive_file=True):
                raise RecordError(f"The run id {self.run_id} is in use.")
            return SpoolWriter(home.spool_file(self.run_id))
        except OSError as error:
            self._alive.release()
            with suppress(OSError):
                self._lock_path.unlink(missing_ok=True)
            raise RecordError(
                f"Nothing can be recorded in {home.spool}: {error.strerror or error}."
            ) from error

    def take(self, spans: list[OtlpSpan]) -> None:
        """Write spans down: where they stand in the trace, or by themselves while arranging all of it would
        take too long. Raises RecordError when they do not stand in the file.
        """
        fresh: list[OtlpSpan] = []
        for span in spans:
            known = self.spans.get(span.span_id)
            if known is None or known.end_ns is None:
                self.spans[span.span_id] = span
                fresh.append(span)
        self._dirty = True
        if not self.arrange_in_time():
            alone = run_of_trace(self.trace_id, fresh)
            told = {span.span_id for span in fresh}
            self._write(alone, told)
        if self._writer.failed:
            self._writer.failed = False
            raise RecordError("The spans could not be written: the disk may be full.")

    def arrange_in_time(self) -> bool:
        """Write down what follows from all that has come, unless that was done too short a while ago."""
        began = self._clock()
        if began < self._next:
            return False
        if self._dirty:
            run = run_of_trace(self.trace_id, list(self.spans.values()))
            self.ended = run.closed
            self._write(run)
            self._dirty = self._writer.failed
            self._next = self._clock() + (self._clock() - began) * _SHARE
        return True

    def close(self) -> None:
        """Write the last word on everything, and give up the lock."""
        run = settle(run_of_trace(self.trace_id, list(self.spans.values())))
        self.ended = run.closed
        if self._late:
            run.missing.append(LATE)
        run.top.attributes[sc.IMPORT_MISSING] = as_json(run.missing)
        self._write(run)
        status = run.top.status if run.top.status in ("ok", "cancelled") else "error"
        self._writer.finish(status if run.closed else None)
        self._alive.release()
        with suppress(OSError):
            self._lock_path.unlink(missing_ok=True)

    def _write(self, run: ForeignRun, only: set[str] | None = None) -> None:
        """Write what is new in the records of a run; `only` of these spans, where it is a part of all."""
        for span in run.top.walk():
            tidy(span)
        models = {sc.ROOT_MODEL: run.root_model, sc.SUB_MODEL: run.sub_model}
        run.top.attributes |= {key: model for key, model in models.items() if model is not None}
        key = sha256_text(f"collected\n{self.run_id}")
        # all of them at first: what is worked out between two records would keep readers waiting
        first, *records = run_records(run, self.run_id, self._started_ns, key, FILE, self._prices)
        self._writer.begin(self._header(first))
        self._writer.update(records, only)

    def _header(self, first: Record) -> Record:
        facts = {**first["facts"], sc.IMPORT_ORDER: "arrival"}
        for known_later in (sc.IMPORT_MISSING, sc.ROOT_MODEL, sc.SUB_MODEL):
            facts.pop(known_later, None)
        mine = {"pid": os.getpid(), "host": socket.gethostname()}
        return {**first, **mine, "facts": facts}


class _Diff:
    """Writes of many records only those that say something new."""

    def __init__(self, writer: SpoolWriter) -> None:
        self._writer = writer
        self._begun = False
        self._texts: set[str] = set()
        self._starts: dict[str, Record] = {}
        self._ends: dict[str, Record] = {}
        self._last_ns = 0
        self.failed = False  # whether a record does not stand in the file

    def begin(self, header: Record) -> None:
        """Write the first record, once."""
        if not self._begun:
            self._begun = self._put(header)

    def update(self, records: Iterable[Record], only: set[str] | None) -> None:
        """Write what was not written so, in the order given; of spans only those, where any are given. Else
        what stands in the file and not among the records is taken back.
        """
        there: set[str] = set()
        for record in records:
            if record["kind"] == "b":
                self._text(record)
                continue
            there.add(record["span_id"])
            if only is not None and record["span_id"] not in only:
                continue
            if record["kind"] == "s":
                self._start(record)
            elif record["status"] != "running":
                self._end(record)
        for span_id in [] if only is not None else sorted(self._starts.keys() - there):
            if self._put({**_event(sc.EV_WITHDRAWN, span_id), "t": self._last_ns}):
                del self._starts[span_id]
                self._ends.pop(span_id, None)

    def _text(self, record: Record) -> None:
        if record["sha256"] not in self._texts and self._put(record):
            self._texts.add(record["sha256"])

    def _end(self, record: Record) -> None:
        if self._ends.get(record["span_id"]) != record and self._put(record):
            self._ends[record["span_id"]] = record

    def _start(self, record: Record) -> None:
        span_id = record["span_id"]
        known = self._starts.get(span_id)
        if known == record:
            return
        placed = None if known is None else _placed(known, record)
        if placed is not None:
            stands = self._put({**_event(sc.EV_PLACED, span_id), "t": record["t"], "a": placed})
        else:
            stands = self._put(record)
            self._ends.pop(span_id, None)  # facts of its end are said again with it
        if stands:
            self._starts[span_id] = record

    def finish(self, status: str | None) -> None:
        """Write the last record; without a status there is none."""
        self._writer.finish(self._last_ns, status)

    def _put(self, record: Record) -> bool:
        self._last_ns = max(self._last_ns, record.get("t", 0))
        stands = self._writer.write(record)
        self.failed |= not stands
        return stands


def _event(name: str, span_id: str) -> Record:
    return {"kind": "ev", "span_id": span_id, "name": name, "a": {}}


def _placed(known: Record, record: Record) -> Mapping[str, Any] | None:
    """What changed of a span, where that is only its place in the tree; None where more changed."""
    old, new = known["a"], record["a"]
    same = all(known[key] == record[key] for key in ("parent_id", "name", "t"))
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    whole = same and changed.keys() <= PLACED and old.keys() <= new.keys()
    return changed if whole else None
