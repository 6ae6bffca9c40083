"""Recording one run: OpenTelemetry spans, payloads and events, each in the spool before the work goes on.

The tracer provider is private and independent of `OTEL_*` variables and of the surrounding application. What
was recorded survives the death of the process; a power cut may lose the last seconds unless `fsync` is on.
A copy of the spans is sent where the standard variables name a place for it (`traces.sending`).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Tracer

import rlm_core
from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from rlm_core.telemetry import Attribute, Recorder, Sink, monotonic_clock
from traces.home import Home
from traces.locks import FileLock
from traces.sending import open_sender
from traces.spool import FORMAT, SpoolWriter
from traces.user_log import deleted_runs

if TYPE_CHECKING:
    from traces.sending_spans import SpanSender

_UNLIMITED = SpanLimits.UNSET
_LIMITS = SpanLimits(
    max_attributes=_UNLIMITED,
    max_span_attributes=1024,
    max_span_attribute_length=_UNLIMITED,
    max_attribute_length=_UNLIMITED,
    max_events=128,
    max_links=128,
    max_event_attributes=128,
    max_link_attributes=128,
)


class SpoolSpanProcessor(SpanProcessor):
    """Writes a record when a span starts and one when it ends. Never raises."""

    def __init__(self, writer: SpoolWriter) -> None:
        self._writer = writer
        self._started: dict[int, Mapping[str, Any]] = {}  # attributes of open spans as they were written
        self._known: set[int] = set()
        self.run_status: str | None = None  # of the run, once it has ended
        self.run_ended_ns: int | None = None

    def on_start(self, span: Span, parent_context: object = None) -> None:
        """Record a span with the attributes it was created with."""
        context = span.get_span_context()
        assert context is not None  # the SDK gives every span of a tracer one
        parent = span.parent
        # an application's own active span is no part of the run: its children would hang on a parent nobody
        # recorded
        parent_id = parent.span_id if parent is not None and parent.span_id in self._known else None
        attributes = dict(span.attributes or {})
        self._known.add(context.span_id)
        self._started[context.span_id] = attributes
        self._writer.write(
            {
                "kind": "s",
                "span_id": format(context.span_id, "016x"),
                "parent_id": None if parent_id is None else format(parent_id, "016x"),
                "span_kind": attributes.get(sc.KIND),
                "name": span.name,
                "t": span.start_time,
                "a": attributes,
            }
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Record the end of a span with what was set since its start."""
        context = span.get_span_context()
        assert context is not None
        before = self._started.pop(context.span_id, {})
        attributes = dict(span.attributes or {})
        status = attributes.pop(sc.STATUS, "ok" if span.status.is_ok else "error")
        if before.get(sc.KIND) == "run" and before.get(sc.RUN_PATH) == "0":
            self.run_status, self.run_ended_ns = str(status), span.end_time
        changed = {
            key: value for key, value in attributes.items() if key not in before or before[key] != value
        }
        self._writer.write(
            {
                "kind": "e",
                "span_id": format(context.span_id, "016x"),
                "t": span.end_time,
                "status": status,
                "a": changed,
            }
        )


class _SpoolSink:
    """Payloads and events of `rlm_core.telemetry.Sink`."""

    def __init__(self, writer: SpoolWriter, sender: SpanSender | None) -> None:
        self._writer = writer
        self._sender = sender

    def payload(self, sha256: str, text: str) -> None:
        self._writer.write({"kind": "b", "sha256": sha256, "text": text})

    def event(self, span_id: str, name: str, time_ns: int, attributes: Mapping[str, Attribute]) -> None:
        self._writer.write(
            {"kind": "ev", "span_id": span_id, "name": name, "t": time_ns, "a": dict(attributes)}
        )
        if self._sender is not None:
            self._sender.event(span_id, name, time_ns, attributes)


class _OneTrace(IdGenerator):
    """Ids of a given generator, with one trace id for the whole run."""

    def __init__(self, ids: IdGenerator) -> None:
        self._ids = ids
        self.trace_id = ids.generate_trace_id()

    def generate_span_id(self) -> int:
        return self._ids.generate_span_id()

    def generate_trace_id(self) -> int:
        return self.trace_id


class Recording:
    """The record of one run while it is made. A context manager: leaving it closes the record, with the
    status that the run ended with.

    `recorder` is what the engine writes to; `problems` counts records that could not be written so far.
    `unwritable` is one sentence about why there is no record at all, None where there is one. `unsent` is one
    about spans that could not be sent to another program; the record is whole without that.
    """

    def __init__(
        self,
        home: Home,
        run_id: str,
        recorder: Recorder,
        writer: SpoolWriter,
        alive: FileLock,
        spans: SpoolSpanProcessor,
        started_ns: int,
        unwritable: str | None = None,
        sender: SpanSender | None = None,
        unsent: str | None = None,
    ) -> None:
        self.run_id = run_id
        self.unwritable = unwritable
        self.unsent = unsent
        self._sender = sender
        self.recorder = recorder
        self.spool_path = home.spool_file(run_id)
        self._lock_path = home.liveness_lock(run_id)
        self._writer = writer
        self._alive = alive
        self._spans = spans
        self._started_ns = started_ns
        self._closed_ns: int | None = None

    @property
    def seconds(self) -> float | None:
        """Wall time of the run, as its record tells it; None before its end, and where there is no record."""
        ended = self._closed_ns if self._spans.run_ended_ns is None else self._spans.run_ended_ns
        return None if ended is None or self.unwritable else max(0, ended - self._started_ns) / 1e9

    @property
    def problems(self) -> int:
        """How many records could not be written, or were taken away with the file."""
        return self._writer.problems

    @property
    def loss(self) -> str | None:
        """What is missing of the record, in one sentence with a count; None when nothing is."""
        if not self.problems:
            return None
        records = f"{self.problems:,} {'record' if self.problems == 1 else 'records'}"
        why = f"; its file {self.spool_path} was removed meanwhile" if self._writer.removed else ""
        return f"trace incomplete: {records} could not be written{why}"

    def close(self, status: str, *, hurried: Callable[[], bool] = lambda: False) -> None:
        """Write the final record (ok, error or cancelled) and give up the liveness lock. Then wait, a few
        seconds at most, for spans that are sent elsewhere; a moment only once somebody wants the end, as
        `hurried` says. Idempotent.
        """
        if self._alive.held:  # else it was closed before, or there is no file
            self._end(status)
        if self._sender is not None:
            self.unsent = self._sender.close(hurried=lambda: status == "cancelled" or hurried())

    def _end(self, status: str) -> None:
        self._closed_ns = self.recorder.clock()
        self._writer.finish(self._closed_ns, status)
        self._alive.release()
        # the file has done its duty; where it cannot be removed, its free lock says the same
        try:
            self._lock_path.unlink(missing_ok=True)
        except OSError:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close(self._spans.run_status or "ok")
        else:
            self.close("error" if issubclass(kind, Exception) else "cancelled")


def open_recording(
    home: Home,
    run_id: str,
    facts: Mapping[str, Attribute],
    *,
    fsync: bool = False,
    id_generator: IdGenerator | None = None,
    clock: Callable[[], int] | None = None,
    engine_version: str | None = rlm_core.__version__,
    make_recorder: Callable[[Tracer, Sink, Callable[[], int]], Recorder] = Recorder,
) -> Recording:
    """Create the spool of a run and hold its liveness lock until the recording is closed.

    `facts` are attributes known before the first span (model ids, corpus, ...), `clock` gives nanoseconds
    since the epoch, `engine_version` is that of the program that makes the run (None: unknown). `fsync` sees
    each record to the disk. Where the file cannot be made, nothing is kept: `unwritable` says so, and every
    record is counted in `problems`. Raises RecordError when the run id was used before.
    """
    ids = _OneTrace(id_generator or RandomIdGenerator())
    now = clock or monotonic_clock()
    unwritable = None
    try:
        alive, writer = _open_files(home, run_id, fsync)
    except OSError as error:
        alive, writer = FileLock(home.liveness_lock(run_id)), SpoolWriter(None)
        unwritable = f"Nothing of this run can be recorded in {home.spool} ({error.strerror or error})."
    started = now()
    writer.write(_header(run_id, ids.trace_id, started, engine_version, facts))
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource({}),
        shutdown_on_exit=False,
        id_generator=ids,
        span_limits=_LIMITS,
        meter_provider=NoOpMeterProvider(),
    )
    # OTEL_SDK_DISABLED of a foreign set-up would empty the record; there is no public way to say so
    provider._disabled = False
    spans = SpoolSpanProcessor(writer)
    provider.add_span_processor(spans)
    sender, unsent = open_sender(os.environ, home.spool_file(run_id))
    if sender is not None:  # after the record, which never waits for it
        provider.add_span_processor(sender)
    tracer = provider.get_tracer("rlmscope", rlm_core.__version__)
    recorder = make_recorder(tracer, _SpoolSink(writer, sender), now)
    return Recording(home, run_id, recorder, writer, alive, spans, started, unwritable, sender, unsent)


def _header(
    run_id: str, trace_id: int, now: int, engine_version: str | None, facts: Mapping[str, Attribute]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "v": sc.RECORD_VERSION,
        "kind": "run",
        "run_id": run_id,
        "trace_id": format(trace_id, "032x"),
        "started_ns": now,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "engine_version": engine_version,
        "facts": dict(facts),
    }


def _open_files(home: Home, run_id: str, fsync: bool) -> tuple[FileLock, SpoolWriter]:
    """Lock first, spool second: a spool that can be seen has a living owner, or one that is gone.

    Raises RecordError for a run id that was used before, OSError when a file cannot be made.
    """
    home.create()
    alive = FileLock(home.liveness_lock(run_id))
    used = RecordError(f"The run id {run_id} is already in use; a run id is never used twice.")
    if run_id in deleted_runs(home) or home.spool_file(run_id).exists():
        raise used
    try:
        if not alive.try_acquire(exclusive_file=True):
            raise used
        return alive, SpoolWriter(home.spool_file(run_id), fsync=fsync)
    except FileExistsError:
        alive.release()
        raise used from None
    except OSError:
        alive.release()
        with suppress(OSError):
            home.liveness_lock(run_id).unlink(missing_ok=True)
        raise
