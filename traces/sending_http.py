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
_ours: ContextVar[bool] = ContextVar("_ours", default=False)


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
    """Send nothing to a receiver: why that fails, in a clause; None when it is taken."""
    session = Session()
    session.ending = True
    with quiet():
        exporter = OTLPSpanExporter(
            endpoint=target.endpoint, session=session, timeout=seconds, meter_provider=NoOpMeterProvider()
        )
        taken = exporter.export(()) is SpanExportResult.SUCCESS
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return None if taken else session.problem or "no answer"


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
        return not _ours.get()


@cache
def _silence() -> None:
    """Once in a process; what others log is not touched."""
    quiet = _NotOurs()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(quiet)


@contextmanager
def quiet() -> Iterator[None]:
    """What the libraries log inside the block is not shown: of what went wrong people get one notice."""
    _silence()
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)
