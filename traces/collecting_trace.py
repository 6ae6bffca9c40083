"""One trace while its spans come from any thread, and the spool of its run.

The spool stands in the order of arrival (`rlm_core.semconv.IMPORT_ORDER`): OTLP sends a span when it ends, so
those inside come first, and what a span is follows from those around it. Whatever follows anew from what has
come is written again: the last word on a span counts.

Working out a long trace takes seconds. That is done by one thread at a time, of a copy, and what came
meanwhile is not touched; the file is held for a moment at a time, so nobody who brings spans waits for it.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from rlm_core.pricing import PriceTable
from rlm_core.telemetry import as_json, sha256_text
from traces.folding import PLACED
from traces.home import Home, new_run_id
from traces.importers.foreign import ForeignRun
from traces.importers.placing import Codes, tidy
from traces.importers.writing import run_records
from traces.locks import FileLock
from traces.otlp.refusals import Refusals
from traces.otlp.spans import OtlpSpan
from traces.otlp.trace_run import engine_of, run_of_trace, settle
from traces.prices import price_table
from traces.spool import Record, SpoolWriter

_SMALL: Final = 300  # spans of a trace that is arranged at once by who brings one
_PART: Final = 300  # spans or records that are written while others wait
_PAUSE: Final = 0.001  # seconds between two parts, in which the others come first
_SHARE: Final = 10  # of the time at most one tenth goes into arranging one trace anew
_LAST_PAUSE: Final = 1.0  # seconds after which a small trace is arranged anew, whatever it took before
LATE: Final = "These spans came after the run of their trace was closed: it holds those before them."
FILE: Final = "rlmscope collect"  # where such a run comes from, in place of the name of a file


class CollectedTrace:
    """One trace while its spans come, and the spool of its run. `ended`: the span of the run itself has come.
    `heard` is when something last came, `chars` how long the texts are that are held, `refused` what of it
    cannot be used.

    Raises RecordError when the spool cannot be made.
    """

    def __init__(
        self, home: Home, trace_id: str, spans: list[OtlpSpan], late: bool, clock: Callable[[], float]
    ) -> None:
        self.trace_id, self.run_id = trace_id, new_run_id()
        self.spans: dict[str, OtlpSpan] = {}
        self.chars = 0
        self.ended = False
        self.heard = 0.0
        self.refused = Refusals()
        self.engine = engine_of(spans)
        self._late, self._clock = late, clock
        self._prices: PriceTable = price_table(home)
        self._codes: Codes = {}
        self._started_ns = min((s.start_ns for s in spans if s.start_ns is not None), default=time.time_ns())
        self._lock_path = home.liveness_lock(self.run_id)
        self._alive = FileLock(self._lock_path)
        self._diff = _Diff(self._opened(home))
        self._state = threading.Condition()  # guards what follows, and the file
        self._unwritten: set[str] = set()  # spans that came and may not stand in the file
        self._since: set[str] = set()  # spans that came since what is being arranged was copied
        self._dirty = False
        self._sealed = False
        self._takers = 0
        self._arranging = threading.Lock()
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

    def take(self, spans: list[OtlpSpan]) -> bool:
        """Write spans down: where they stand in the trace, or by themselves while arranging all of it would
        take too long. False when the run takes nothing more. Raises RecordError when they do not stand in
        the file.
        """
        with self._state:
            if self._sealed:
                return False
            self._takers += 1
            fresh = [span for span in spans if self._is_news(span)]
        try:
            if fresh and not (len(self.spans) <= _SMALL and self.arrange()):
                self._write_alone(fresh)
            return True
        finally:
            with self._state:
                self._takers -= 1
                self._state.notify_all()

    def refuse(self, refused: Refusals) -> bool:
        """Keep what is wrong with spans of this trace; False when the run takes nothing more."""
        with self._state:
            if self._sealed and refused.count:
                return False
            self.refused.merge(refused)
            self._dirty |= refused.count > 0
            return True

    def _is_news(self, span: OtlpSpan) -> bool:
        known = self.spans.get(span.span_id)
        if known is not None and known.ended:
            return span.span_id in self._unwritten
        self.spans[span.span_id] = span
        self.chars += span.chars
        self._unwritten.add(span.span_id)
        self._since.add(span.span_id)
        self._dirty = True
        return True

    def _write_alone(self, spans: list[OtlpSpan]) -> None:
        """Write spans as if they were all of the trace, a part at a time."""
        for start in range(0, len(spans), _PART):
            part = spans[start : start + _PART]
            told = {span.span_id for span in part}
            records = [self._below_its_own(r) for r in self._records(run_of_trace(self.trace_id, part))]
            if not self._put(records, told.__contains__):
                raise RecordError("The spans could not be written: the disk may be full.")
            with self._state:
                self._unwritten -= told
                self._dirty = True  # what they are in the trace is to be written again

    def _below_its_own(self, record: Record) -> Record:
        """The start of a span that came, below a parent that stands in the file, else below the one it named
        itself: what was only made for a part of the trace is not written.
        """
        span = self.spans.get(record.get("span_id", "")) if record["kind"] == "s" else None
        if span is None or record["parent_id"] in self._diff.starts:
            return record
        return {**record, "parent_id": span.parent_id}

    def arrange(self, *, now: bool = False) -> bool:
        """Write down what follows from all that has come. False where another thread does that, or it was
        done too short a while ago and need not be done `now`. `now` nothing is written of a run whose own
        span has come: it is to be closed. Raises RecordError when it does not stand in the file.
        """
        if not self._arranging.acquire(blocking=False):
            return False
        try:
            began = self._clock()
            if began < self._next and not now:
                return False
            with self._state:
                if not self._dirty:
                    return True
                spans, there = self._copied()
            run = run_of_trace(self.trace_id, spans)
            self.ended = run.closed
            if now and run.closed:  # nothing more is expected: all of it is said once, by the last word
                with self._state:
                    self._dirty = True
                return True
            self._write(run, there)
            pause = (self._clock() - began) * _SHARE
            self._next = self._clock() + (min(pause, _LAST_PAUSE) if len(spans) <= _SMALL else pause)
            return True
        finally:
            self._arranging.release()

    def _copied(self) -> tuple[list[OtlpSpan], frozenset[str]]:
        """All spans, and the ids of those that stand in the file; what comes from now on is news."""
        self._since.clear()
        self._dirty = False
        return list(self.spans.values()), frozenset(self._diff.starts)

    def _write(self, run: ForeignRun, there: Collection[str]) -> None:
        """Write a whole run, and take back what was `there` and is none of it."""
        records = self._records(run)
        known = {record["span_id"] for record in records if record["kind"] == "s"}
        withdrawn = [_event(sc.EV_WITHDRAWN, span_id) for span_id in sorted(set(there) - known)]
        stand = self._put([*records, *withdrawn], lambda span_id: span_id not in self._since)
        with self._state:
            if stand:
                self._unwritten &= self._since
            else:
                self._dirty = True
        if not stand:
            raise RecordError("The spans could not be written: the disk may be full.")

    def seal(self) -> Collection[str]:
        """Take nothing more; the ids of the spans that came."""
        with self._state:
            self._sealed = True
            return self.spans.keys()

    def close(self) -> None:
        """Write the last word on everything, and give up the lock. Where that fails, as for no reason it
        should, the run counts as interrupted.
        """
        self.seal()
        with self._state:
            self._state.wait_for(lambda: not self._takers)
        status = None
        try:
            with self._arranging:
                status = self._last_word()
        finally:
            self._diff.finish(status)
            self._alive.release()
            with suppress(OSError):
                self._lock_path.unlink(missing_ok=True)

    def _last_word(self) -> str | None:
        """Write the run as it is in the end; its status, None where its own span did not come."""
        with self._state:
            spans, there = self._copied()
        run = settle(run_of_trace(self.trace_id, spans))
        self.ended = run.closed
        if self._late:
            run.missing.append(LATE)
        run.top.attributes[sc.IMPORT_MISSING] = as_json(run.missing)
        with suppress(RecordError):  # the spool counts what it lacks
            self._write(run, there)
        if not run.closed:
            return None
        return run.top.status if run.top.status in ("ok", "cancelled") else "error"

    def _records(self, run: ForeignRun) -> list[Record]:
        """The records of a run, all of them at once: what is worked out between two of them would keep
        readers waiting.
        """
        for span in run.top.walk():
            tidy(span)
        with self._state:
            problems = [*run.problems, *self.refused.sentences()]
        if problems:
            run.top.attributes[sc.IMPORT_PROBLEMS] = as_json(problems)
        models = {sc.ROOT_MODEL: run.root_model, sc.SUB_MODEL: run.sub_model}
        run.top.attributes |= {key: model for key, model in models.items() if model is not None}
        key = sha256_text(f"collected\n{self.run_id}")
        header, *records = run_records(
            run, self.run_id, self._started_ns, key, FILE, self._prices, self._codes
        )
        with self._state:
            self._diff.begin(self._header(header))
        return records

    def _put(self, records: list[Record], wanted: Callable[[str], bool]) -> bool:
        """Write what is new in these records of spans that are wanted, and all texts; whether all stand."""
        stand = True
        for start in range(0, len(records), _PART):
            if start:
                time.sleep(_PAUSE)
            with self._state:
                for record in records[start : start + _PART]:
                    if record["kind"] == "b" or wanted(record["span_id"]):
                        stand &= self._diff.put(record)
        return stand and self._diff.begun

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
        self.begun = False  # whether the first record stands in the file
        self._texts: set[str] = set()
        self.starts: dict[str, Record] = {}  # of the spans that stand in the file
        self._ends: dict[str, Record] = {}
        self._last_ns = 0

    def begin(self, header: Record) -> None:
        """Write the first record, once."""
        if not self.begun:
            self.begun = self._put(header)

    def put(self, record: Record) -> bool:
        """Write a record unless it stands there; an end of a span that runs is none. Whether it stands."""
        kind = record["kind"]
        if kind == "b":
            return self._text(record)
        if kind == "s":
            return self._start(record)
        if kind == "ev":
            return self._withdraw(record)
        return record["status"] == "running" or self._end(record)

    def _text(self, record: Record) -> bool:
        if record["sha256"] in self._texts:
            return True
        if stands := self._put(record):
            self._texts.add(record["sha256"])
        return stands

    def _end(self, record: Record) -> bool:
        span_id = record["span_id"]
        known = self._ends.get(span_id)
        if known == record:
            return True
        less = known is not None and known["a"].keys() - record["a"].keys()
        if less and not self._put(self.starts[span_id]):  # only a start takes facts away
            return False
        if stands := self._put(record):
            self._ends[span_id] = record
        return stands

    def _withdraw(self, record: Record) -> bool:
        if stands := self._put({**record, "t": self._last_ns}):
            self.starts.pop(record["span_id"], None)
            self._ends.pop(record["span_id"], None)
        return stands

    def _start(self, record: Record) -> bool:
        span_id = record["span_id"]
        known = self.starts.get(span_id)
        if known == record:
            return True
        placed = None if known is None else _placed(known, record)
        if placed is not None:
            stands = self._put({**_event(sc.EV_PLACED, span_id), "t": record["t"], "a": placed})
        else:
            stands = self._put(record)
            self._ends.pop(span_id, None)  # facts of its end are said again with it
        if stands:
            self.starts[span_id] = record
        return stands

    def finish(self, status: str | None) -> None:
        """Write the last record; without a status there is none."""
        self._writer.finish(self._last_ns, status)

    def _put(self, record: Record) -> bool:
        self._last_ns = max(self._last_ns, record.get("t", 0))
        return self._writer.write(record)


def _event(name: str, span_id: str) -> Record:
    return {"kind": "ev", "span_id": span_id, "name": name, "a": {}}


def _placed(known: Record, record: Record) -> Mapping[str, Any] | None:
    """What changed of a span, where that is only its place in the tree; None where more changed."""
    old, new = known["a"], record["a"]
    same = all(known[key] == record[key] for key in ("parent_id", "name", "t"))
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    whole = same and changed.keys() <= PLACED and old.keys() <= new.keys()
    return changed if whole else None
