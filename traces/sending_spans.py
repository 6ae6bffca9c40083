"""A run's spans on their way to another program, beside its record: OpenTelemetry's exporter in a batch
processor of its own, and a count of what arrived.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import (
    SERVICE_NAME,
    TELEMETRY_SDK_LANGUAGE,
    TELEMETRY_SDK_NAME,
    TELEMETRY_SDK_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from traces.exporters.otlp_content import Conversations, Message, SpanWords
from traces.exporters.redaction import Redactor
from traces.sending import PATIENCE, Target
from traces.sending_http import Session, check_settings, quiet
from traces.spool import SpoolReader, payload_text, read_record

_QUEUE: Final = 16_384  # spans that wait at most, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise
_PART_CHARS: Final = 4_000_000  # texts in one request, so that receivers with a limit take it
_MOST_EVENTS: Final = 128  # of one span, as the SDK has it
_HURRIED: Final = 1.0  # seconds that the end of a cancelled run waits at most
_silent: set[str] = set()  # receivers that took nothing in the time there was: later runs wait less for them


class SpanSender(SpanProcessor):
    """Sends the spans of one run. Nothing of it raises, and only `close` waits."""

    def __init__(self, target: Target, spool: Path) -> None:
        """Set up OpenTelemetry's exporter from its variables. Raises InputError for those that it does not
        understand, and what it raises for others.
        """
        self._target, self._owner = target, os.getpid()
        self._events: dict[int, list[Event]] = {}  # of open spans
        self._conversations = Conversations()
        self._lock = threading.Lock()
        self._ended = 0
        self._closed: str | None = None
        self._session = Session()
        with quiet() as heard:
            words = SpanWords(target.content, _SpoolTexts(spool), Redactor())
            inner = OTLPSpanExporter(
                endpoint=target.endpoint, session=self._session, meter_provider=NoOpMeterProvider()
            )
            self._exporter = _Exporter(inner, self._session, words, _resource())
            queue = None if os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") else _QUEUE
            self._batch = BatchSpanProcessor(
                self._exporter, max_queue_size=queue, meter_provider=NoOpMeterProvider()
            )
            try:
                check_settings(heard)
            except InputError:
                self._end()  # its thread
                raise

    def on_start(self, span: Span, parent_context: object = None) -> None:
        """Keep room for the events of a span."""
        context = span.get_span_context()
        if context is not None:
            self._events[context.span_id] = []

    def event(self, span_id: str, name: str, time_ns: int, attributes: Mapping[str, Any]) -> None:
        """Something happened in a span; what comes after its end cannot be sent with it."""
        events = self._events.get(int(span_id, 16))
        if events is not None and len(events) < _MOST_EVENTS:
            events.append(Event(name, dict(attributes), time_ns))

    def on_end(self, span: ReadableSpan) -> None:
        """Put a span into the queue; where that is full, one is lost, and counted at the end."""
        if os.getpid() != self._owner or self._closed is not None:
            return
        with suppress(Exception), quiet():
            self._batch.on_end(self._with_its_own(span))

    def close(self, *, hurried: bool = False) -> str | None:
        """Wait, a few seconds at most, until what was recorded is sent. What was not, in one sentence with a
        count; None when nothing is missing. `hurried`: the run was cancelled, wait a moment only.
        """
        if os.getpid() != self._owner:
            return None
        if self._closed is None:
            patience = self._target.patience
            if hurried or self._target.endpoint in _silent:
                patience = min(patience, _HURRIED)
            self._session.ending = True
            ending = threading.Thread(target=self._end, name="rlmscope-sending", daemon=True)
            ending.start()
            ending.join(patience)
            waited = patience if ending.is_alive() else None
            self._closed = self._missing(waited)
            if waited is None or self._exporter.arrived:
                _silent.discard(self._target.endpoint)
            elif not hurried:
                _silent.add(self._target.endpoint)
            self._exporter.give_up()
        return self._closed or None

    def _end(self) -> None:
        with quiet():
            self._batch.shutdown()  # type: ignore[no-untyped-call]

    def _missing(self, waited: float | None) -> str:
        lost = self._ended - self._exporter.arrived
        if lost <= 0:
            return ""
        why = self._session.problem
        if why is None and waited is None:
            why = "more came than could wait"
        elif why is None and self._exporter.arrived:
            why = f"{waited:g} s at the end were not enough; {PATIENCE} allows more"
        why = why or f"no answer within {waited:g} s"
        spans = "span was" if self._ended == 1 else "spans were"
        return (
            f"{lost:,} of {self._ended:,} {spans} not sent to {self._target.shown} ({why}); "
            "the record here does not depend on that."
        )

    def _with_its_own(self, span: ReadableSpan) -> _Ended:
        context = span.get_span_context()
        assert context is not None
        messages = None
        with self._lock:
            self._ended += 1
            if span.attributes and span.attributes.get(sc.KIND) == "root_call":
                messages = self._conversations.of(span.attributes)
        return _Ended(span, self._events.pop(context.span_id, []), messages)


class _Ended(ReadableSpan):
    """A span that has ended, as it is on record, with its events and the messages of a root call by hash."""

    def __init__(
        self, span: ReadableSpan, events: Sequence[Event], messages: Sequence[Message] | None
    ) -> None:
        super().__init__(
            name=span.name,
            context=span.get_span_context(),
            parent=span.parent,
            resource=span.resource,
            attributes=span.attributes,
            events=events,
            links=span.links,
            kind=span.kind,
            status=span.status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )
        self.messages = messages


class _Exporter(SpanExporter):
    """Gives spans the words that leave, and hands them on in requests of bounded size."""

    def __init__(
        self, inner: OTLPSpanExporter, session: Session, words: SpanWords, resource: Resource
    ) -> None:
        self._inner, self._session, self._words, self._resource = inner, session, words, resource
        self._given_up = False
        self.arrived = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans, and count those that were taken."""
        result = SpanExportResult.SUCCESS
        with quiet():
            for part in self._parts(spans):
                if self._given_up:
                    return SpanExportResult.FAILURE
                self._session.rejected = 0
                if self._inner.export(part) is SpanExportResult.SUCCESS:
                    self.arrived += len(part) - min(self._session.rejected, len(part))
                else:
                    result = SpanExportResult.FAILURE
        return result

    def give_up(self) -> None:
        """Stop waiting for an answer, and send nothing more."""
        self._given_up = True
        with quiet():
            self.shutdown()

    def shutdown(self) -> None:
        """Give up connections."""
        self._inner.shutdown()  # type: ignore[no-untyped-call]

    def _parts(self, spans: Sequence[ReadableSpan]) -> Iterator[list[ReadableSpan]]:
        part: list[ReadableSpan] = []
        chars = 0
        for span in spans:
            told = self._told(span)
            size = sum(len(value) for value in (told.attributes or {}).values() if isinstance(value, str))
            if part and chars + size > _PART_CHARS:
                yield part
                part, chars = [], 0
            part.append(told)
            chars += size
        if part:
            yield part

    def _told(self, span: ReadableSpan) -> ReadableSpan:
        messages = span.messages if isinstance(span, _Ended) else None
        said = self._words.attributes(span.attributes or {}, messages)
        status = Status(StatusCode.OK)
        if span.status.status_code is StatusCode.ERROR:
            status = Status(StatusCode.ERROR, self._words.problem(said) or span.status.description)
        return ReadableSpan(
            name=span.name,
            context=span.get_span_context(),
            parent=span.parent,
            resource=self._resource,
            attributes=said,
            events=[
                Event(event.name, self._words.event(event.attributes or {}), event.timestamp)
                for event in span.events
            ],
            links=span.links,
            kind=span.kind,
            status=status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )


class _SpoolTexts:
    """Texts of a spool that is being written, found in the file when they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = SpoolReader(path)
        self._places: dict[str, tuple[int, int]] = {}

    def __call__(self, sha256s: Collection[str]) -> dict[str, str]:
        """The texts of those payloads that stand in the file."""
        with suppress(OSError):
            if any(sha256 not in self._places for sha256 in sha256s):
                for line in self._reader.read():
                    if line.record is not None and line.record["kind"] == "b":
                        self._places[str(line.record.get("sha256"))] = (line.offset, line.length)
        found = {sha256: self._text(*self._places[sha256]) for sha256 in sha256s if sha256 in self._places}
        return {sha256: text for sha256, text in found.items() if text is not None}

    def _text(self, offset: int, length: int) -> str | None:
        record = read_record(self._path, offset, length)
        return None if record is None else payload_text(record)


def _resource() -> Resource:
    """Who sends, as OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say. (`Resource.create` asks detectors in
    threads of its own, whose warnings would reach the user's screen.)
    """
    ours = {
        SERVICE_NAME: "rlmscope",
        TELEMETRY_SDK_LANGUAGE: "python",
        TELEMETRY_SDK_NAME: "opentelemetry",
        TELEMETRY_SDK_VERSION: version("opentelemetry-sdk"),
    }
    return Resource(ours).merge(OTELResourceDetector().detect())
