"""What OpenTelemetry's exporter is handed: spans with the words that leave, in requests of bounded size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import (
    SERVICE_NAME,
    TELEMETRY_SDK_LANGUAGE,
    TELEMETRY_SDK_NAME,
    TELEMETRY_SDK_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode

from rlm_core.errors import RecordError
from traces.exporters.otlp_content import Message, SpanWords
from traces.sending_http import Session, quiet
from traces.spool import SpoolReader, payload_text, read_record

_PART_CHARS: Final = 4_000_000  # texts in one request, so that receivers with a limit take it


class EndedSpan(ReadableSpan):
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


class TellingExporter(SpanExporter):
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
                    continue
                result = SpanExportResult.FAILURE
                self._session.problem = self._session.problem or "too large for one request"
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
        messages = span.messages if isinstance(span, EndedSpan) else None
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


class SpoolTexts:
    """Texts of a spool that is being written, found in the file when they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = SpoolReader(path)
        self._places: dict[str, tuple[int, int]] = {}

    def __call__(self, sha256s: Collection[str]) -> dict[str, str]:
        """The texts of those payloads that stand in the file."""
        with suppress(OSError, RecordError):  # then previews leave, which need no file
            if any(sha256 not in self._places for sha256 in sha256s):
                for line in self._reader.read():
                    if line.record is not None and line.record["kind"] == "b":
                        self._places[str(line.record.get("sha256"))] = (line.offset, line.length)
        found = {sha256: self._text(*self._places[sha256]) for sha256 in sha256s if sha256 in self._places}
        return {sha256: text for sha256, text in found.items() if text is not None}

    def _text(self, offset: int, length: int) -> str | None:
        record = read_record(self._path, offset, length)
        return None if record is None else payload_text(record)


def own_resource() -> Resource:
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
