"""How spans travel: OpenTelemetry's exporter over a session that knows why a request failed, and its log kept
from the user's screen.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace.export import SpanExportResult

from rlm_core.errors import InputError
from traces.sending import Target

_MOST_ANSWER: Final = 65_536  # bytes of a receiver's answer that are read
_LOGGERS: Final = (
    "opentelemetry.attributes", "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.exporter.otlp.proto.common._internal",
    "opentelemetry.exporter.otlp.proto.common._internal.trace_encoder",
    "opentelemetry.exporter.otlp.proto.http._common",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.resources", "opentelemetry.sdk.trace.export", "opentelemetry.util.re",
    "urllib3.connection", "urllib3.connectionpool", "urllib3.util.retry",
)  # fmt: skip
_heard: ContextVar[list[str] | None] = ContextVar("_heard", default=None)


#: Who warns when the exporter is set up -> of what.
_MISUNDERSTOOD: Final = {
    "opentelemetry.util.re": (
        "OTEL_EXPORTER_OTLP_HEADERS is no list of name=value, percent-encoded, with commas between them"
    ),
    "opentelemetry.exporter.otlp.proto.http._common": (
        "OTEL_EXPORTER_OTLP_COMPRESSION takes none, gzip or deflate, and OTEL_EXPORTER_OTLP_TIMEOUT a number "
        "of seconds"
    ),
    "opentelemetry.sdk.resources": (
        "OTEL_RESOURCE_ATTRIBUTES is no list of name=value, with commas between them"
    ),
    "opentelemetry.sdk.trace.export": "a setting of the queue (OTEL_BSP_...) is no whole number",
}


class _Refused(requests.RequestException):
    """Nobody listens, or somebody else answers: trying again does not help. Its text says why."""


class Session(requests.Session):
    """Remembers why a request failed and what a receiver did not take. It reads a bounded answer: who answers
    may be anybody. `ending`: the run is over, and who does not listen now is not waited for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.problem: str | None = None
        self.rejected = 0
        self.ending = False

    def request(self, *args: Any, **options: Any) -> requests.Response:
        """As in `requests.Session`, whose errors it raises."""
        until = time.monotonic() + float(options.get("timeout") or 0)
        try:
            response = self._asked(*args, **options)
            self._read(response, until)
        except Exception as error:
            self.problem = _words(error)
            raise
        if not 200 <= response.status_code < 300:
            self.problem = f"HTTP {response.status_code} {_phrase(response.status_code)}".rstrip()
            if response.status_code < 400:  # the exporter would take a redirection for success
                raise _Refused(self.problem)
        elif "text/html" in response.headers.get("Content-Type", ""):
            self.problem = "a web page answered: this is no OTLP receiver"
            raise _Refused(self.problem)
        return response

    def _asked(self, *args: Any, **options: Any) -> requests.Response:
        options |= {"stream": True}
        try:
            return super().request(*args, **options)
        except requests.ConnectionError as error:
            if not self.ending or isinstance(error, requests.Timeout):
                raise
        try:  # once more: the server may have closed a connection that was kept
            return super().request(*args, **options)
        except requests.ConnectionError as error:
            raise _Refused(_words(error)) from None

    def _read(self, response: requests.Response, until: float) -> None:
        """Read an answer of OTLP: it may say that some spans were not taken."""
        data = b""
        for piece in response.iter_content(4096):
            data += piece
            if len(data) > _MOST_ANSWER or time.monotonic() > until:
                response.close()
                break
        else:
            if response.ok and "protobuf" in response.headers.get("Content-Type", ""):
                with suppress(Exception):  # not what it says to be: it took the request all the same
                    partial = ExportTraceServiceResponse.FromString(data).partial_success
                    self.rejected = max(partial.rejected_spans, 0)
                    self.problem = "the receiver refused them" if self.rejected else self.problem


def reach(target: Target, seconds: float) -> str | None:
    """Send nothing to a receiver: why that fails, in a clause; None when it is taken. Raises InputError for
    settings that cannot work.
    """
    session = Session()
    session.ending = True
    with quiet() as heard:
        exporter = OTLPSpanExporter(
            endpoint=target.endpoint, session=session, timeout=seconds, meter_provider=NoOpMeterProvider()
        )
        check_settings(heard)
        taken = exporter.export(()) is SpanExportResult.SUCCESS
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return None if taken else session.problem or "no answer"


def check_settings(heard: list[str]) -> None:
    """Raises InputError where a library warned of a variable that it does not understand: it goes on without
    it.
    """
    words = next((_MISUNDERSTOOD[name] for name in heard if name in _MISUNDERSTOOD), None)
    if words is not None:
        raise InputError(words)


def _words(error: Exception) -> str:
    """Why a request failed; never the words of the error, which quote the address with all that is in it."""
    if isinstance(error, _Refused):
        return str(error)
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (requests.exceptions.SSLError, "its certificate is not trusted"),
        (requests.exceptions.ProxyError, "the proxy cannot be reached"),
        (requests.Timeout, "no answer in time"),
        (requests.ConnectionError, "no connection"),
        (ValueError, "the address or a header is not valid"),
        (requests.RequestException, "no valid answer"),
        (OSError, "a certificate file cannot be read"),
    )
    return next((words for kind, words in kinds if isinstance(error, kind)), type(error).__name__)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in list(HTTPStatus) else ""


class _NotOurs(logging.Filter):
    """Lets records pass that do not come from sending the spans of a run: of that people get one notice."""

    def filter(self, record: logging.LogRecord) -> bool:
        heard = _heard.get()
        if heard is not None and record.levelno >= logging.WARNING:
            heard.append(record.name)
        return heard is None


@cache
def _silence() -> None:
    """Once in a process; what others log is not touched."""
    quiet = _NotOurs()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(quiet)


@contextmanager
def quiet() -> Iterator[list[str]]:
    """What the libraries log inside the block is not shown: of what went wrong people get one notice. Gives
    the names of the loggers that warned; their words may quote keys.
    """
    _silence()
    heard: list[str] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)
