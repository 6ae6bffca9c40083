"""A run's spans on their way to another program, beside its record: OpenTelemetry's exporter in a batch
processor of its own, and a count of what arrived.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from traces.exporters.otlp_content import Conversations, SpanWords
from traces.exporters.redaction import Redactor
from traces.sending import PATIENCE, Target
from traces.sending_export import EndedSpan, SpoolTexts, TellingExporter, own_resource
from traces.sending_http import Session, check_settings, quiet

_QUEUE: Final = 16_384  # spans that wait at most, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise
_MOST_EVENTS: Final = 128  # of one span, as the SDK has it
_HURRIED: Final = 1.0  # seconds that an end is waited for by somebody who cancelled the run, or wants it over
_LOOK: Final = 0.1  # seconds between looks whether somebody does
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
            words = SpanWords(target.content, SpoolTexts(spool), Redactor())
            inner = OTLPSpanExporter(
                endpoint=target.endpoint, session=self._session, meter_provider=NoOpMeterProvider()
            )
            self._exporter = TellingExporter(inner, self._session, words, own_resource())
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

    def close(self, *, hurried: Callable[[], bool] = lambda: False) -> str | None:
        """Wait, a few seconds at most, until what was recorded is sent. What was not, in one sentence with a
        count; None when nothing is missing. `hurried` says, also while this waits, whether somebody wants
        the end: from then on it waits a moment only.
        """
        if os.getpid() != self._owner:
            return None
        if self._closed is None:
            patience = self._target.patience
            if self._target.endpoint in _silent:
                patience = min(patience, _HURRIED)
            self._session.ending = True
            ending = threading.Thread(target=self._end, name="rlmscope-sending", daemon=True)
            ending.start()
            waited, was_hurried = _wait(ending, patience, hurried)
            self._closed = self._missing(waited)
            if waited is None or self._exporter.arrived:
                _silent.discard(self._target.endpoint)
            elif not was_hurried:
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

    def _with_its_own(self, span: ReadableSpan) -> EndedSpan:
        context = span.get_span_context()
        assert context is not None
        messages = None
        with self._lock:
            self._ended += 1
            if span.attributes and span.attributes.get(sc.KIND) == "root_call":
                messages = self._conversations.of(span.attributes)
        return EndedSpan(span, self._events.pop(context.span_id, []), messages)


def _wait(
    ending: threading.Thread, patience: float, hurried: Callable[[], bool]
) -> tuple[float | None, bool]:
    """Wait for a thread; how many seconds were not enough (None: they were), and whether it was hurried."""
    began = time.monotonic()
    allowed, hurry = patience, False
    while ending.is_alive():
        waited = time.monotonic() - began
        if not hurry and hurried():
            hurry, allowed = True, min(patience, waited + _HURRIED)
        if waited >= allowed:
            return round(allowed, 1) if hurry else allowed, hurry
        ending.join(min(_LOOK, allowed - waited))
    return None, hurry
