"""The recorder the engine writes to: OpenTelemetry spans, payload texts, events.

The engine knows only the OpenTelemetry *API*. Whoever wants a record builds a private tracer provider and a
sink (`traces.recording.open_recording`) and injects them; without that, spans are no-ops and payloads are
only hashed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from copy import copy
from itertools import count
from typing import Any, Protocol, Self

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from rlm_core import semconv as sc
from rlm_core.errors import RecordError

Attribute = str | int | float | bool
PREVIEW_CHARS = 200
MESSAGE_CHARS = 2_000  # of an error on record
_CLIENT_KINDS = ("root_call", "sub_call")


class Sink(Protocol):
    """Where payloads and events go. Both calls return only when the record stands; neither ever raises."""

    def payload(self, sha256: str, text: str) -> None:
        """Store a text once per run, before any record that cites it."""
        ...

    def event(self, span_id: str, name: str, time_ns: int, attributes: Mapping[str, Attribute]) -> None:
        """Record something that happened inside a span."""
        ...


class Listener(Protocol):
    """Who is told of spans as they start and end, on the engine's thread; never raises. `texts` are payloads
    by their prefix, whole.
    """

    def started(self, span: RunSpan, facts: Mapping[str, Attribute], texts: Mapping[str, str]) -> None:
        """A span is open, with the attributes it was created with."""
        ...

    def ended(self, span: RunSpan, facts: Mapping[str, Attribute], texts: Mapping[str, str]) -> None:
        """A span is closed; `facts` and `texts` are what was set since its start, its status included."""
        ...


def sha256_text(text: str) -> str:
    """The hash by which a payload is named (lone surrogates allowed)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def preview(text: str, chars: int = PREVIEW_CHARS) -> str:
    """The first characters of a text on one line."""
    return " ".join(text[: chars * 2].split())[:chars]


def as_json(value: Any) -> str:
    """Compact JSON with sorted keys, for attributes that hold a structure."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)


class monotonic_clock:
    """Wall-clock nanoseconds that never run backwards: wall time at creation plus monotonic time since."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def __call__(self) -> int:
        return self._offset + time.monotonic_ns()


class RunSpan:
    """One open span. `end` is idempotent; attributes set after it are ignored."""

    __slots__ = ("_ended", "_facts", "_otel", "_recorder", "_texts", "kind", "parent_id", "span_id")

    def __init__(
        self, recorder: Recorder, otel: trace.Span, kind: sc.Kind, parent_id: str | None = None
    ) -> None:
        self._recorder = recorder
        self._otel = otel
        self._ended = False
        self._facts: dict[str, Attribute] = {}  # set since its start, for a listener
        self._texts: dict[str, str] = {}
        self.kind = kind
        self.parent_id = parent_id
        # a tracer that records nothing gives every span the same id
        self.span_id = format(otel.get_span_context().span_id or recorder.next_number(), "016x")

    @property
    def ended(self) -> bool:
        """Whether its end is recorded: what comes later can only be an event."""
        return self._ended

    @property
    def context(self) -> Any:
        """The OpenTelemetry context in which children of this span start."""
        return trace.set_span_in_context(self._otel)

    def set(self, attributes: Mapping[str, Attribute | None]) -> None:
        """Set attributes; None values are left out (unknown is absent, never a made-up value)."""
        known = {key: value for key, value in attributes.items() if value is not None}
        self._otel.set_attributes(known)
        if self._recorder.listener is not None and not self._ended:
            self._facts.update(known)

    def text(self, prefix: str, text: str) -> str:
        """Store a payload and put `<prefix>.sha256/.chars/.preview` on the span; returns the hash."""
        digest = self._recorder.payload(text)
        if self._recorder.listener is not None and not self._ended:
            self._texts[prefix] = text
        self.set(
            {prefix + ".sha256": digest, prefix + ".chars": len(text), prefix + ".preview": preview(text)}
        )
        return digest

    def event(self, name: str, attributes: Mapping[str, Attribute]) -> None:
        """Record something that happened inside this span, at once."""
        self._recorder.event(self, name, attributes)

    def end(self, status: sc.Status = "ok", attributes: Mapping[str, Attribute | None] | None = None) -> None:
        """Close the span with a status."""
        if self._ended:
            return
        self.set({**(attributes or {}), sc.STATUS: status})
        self._ended = True
        if status != "ok":
            self._otel.set_status(trace.StatusCode.ERROR, status)
        self._otel.end(end_time=self._recorder.clock())
        if self._recorder.listener is not None:
            self._recorder.listener.ended(self, self._facts, self._texts)
            self._facts, self._texts = {}, {}

    def fail(self, error_type: str, message: str, status: sc.Status = "error") -> None:
        """Close the span as failed."""
        self.end(status, {sc.ERROR_TYPE: error_type, sc.ERROR_MESSAGE: message[:MESSAGE_CHARS]})


class Recorder:
    """Starts spans and stores payloads for one run."""

    def __init__(
        self,
        tracer: trace.Tracer | None = None,
        sink: Sink | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._tracer = tracer or trace.NoOpTracer()
        self._records = tracer is not None
        self._sink = sink
        self._seen: set[str] = set()
        self._fresh: dict[str, str] = {}  # texts stored since the last start, by hash, for a listener
        self._numbers = count(1)
        self.listener: Listener | None = None
        self.clock = clock or monotonic_clock()

    def heard_by(self, listener: Listener) -> Self:
        """This recorder with a listener: the record is the same one."""
        heard = copy(self)
        heard.listener, heard._fresh = listener, {}
        return heard

    def next_number(self) -> int:
        """1, 2, ... for spans that nobody else numbers."""
        return next(self._numbers)

    @property
    def records(self) -> bool:
        """Whether anything is kept of what it is told."""
        return self._records or self._sink is not None

    def start(
        self, kind: sc.Kind, name: str, parent: RunSpan | None, attributes: Mapping[str, Attribute | None]
    ) -> RunSpan:
        """Open a span. All facts a live view needs belong into `attributes`: they are written before work
        begins.

        Raises `RecordError` when a tracer was given but the span would not be recorded.
        """
        facts: dict[str, Attribute] = {sc.KIND: kind, sc.OI_KIND: sc.OI_KIND_OF[kind]}
        facts.update({key: value for key, value in attributes.items() if value is not None})
        otel = self._tracer.start_span(
            name,
            context=parent.context if parent else None,
            kind=SpanKind.CLIENT if kind in _CLIENT_KINDS else SpanKind.INTERNAL,
            attributes=facts,
            start_time=self.clock(),
        )
        if self._records and not otel.is_recording():
            raise RecordError("the tracer does not record spans; the run would leave no trace")
        span = RunSpan(self, otel, kind, None if parent is None else parent.span_id)
        if self.listener is not None:
            self.listener.started(span, facts, self._told(facts))
        return span

    def _told(self, facts: Mapping[str, Attribute]) -> dict[str, str]:
        """The texts that the attributes of a new span name by hash: they were stored for it just now."""
        suffix = ".sha256"
        named = {key.removesuffix(suffix): str(facts[key]) for key in facts if key.endswith(suffix)}
        texts = {prefix: self._fresh[digest] for prefix, digest in named.items() if digest in self._fresh}
        self._fresh = {}
        return texts

    def payload(self, text: str) -> str:
        """Store a text (once) and return its sha256."""
        digest = sha256_text(text)
        if self.listener is not None:
            self._fresh[digest] = text
        if self._sink is not None and digest not in self._seen:
            self._sink.payload(digest, text)
            self._seen.add(digest)
        return digest

    def event(self, span: RunSpan, name: str, attributes: Mapping[str, Attribute]) -> None:
        """Record an event of a span at once."""
        if self._sink is not None:
            self._sink.event(span.span_id, name, self.clock(), attributes)
