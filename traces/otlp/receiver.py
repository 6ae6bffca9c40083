"""A receiver of OTLP over HTTP on 127.0.0.1: traces are taken, metrics and logs are let pass.

https://opentelemetry.io/docs/specs/otlp/#otlphttp. What is sent is untrusted: bodies are bounded before and
after they are unpacked, and requests that a web page may have made (a foreign Host, any Origin) are refused.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

from rlm_core.errors import InputError, RecordError
from traces.collecting import RETRY_SECONDS, Overfull
from traces.otlp.spans import OtlpSpan, RefusedSpan, from_json, from_protobuf

HOST: Final = "127.0.0.1"
PORT: Final = 4318
LARGEST_BODY: Final = 64 * 1024 * 1024  # bytes, as sent and as unpacked
_LARGEST_LINE: Final = 1024  # of the head of a chunk
_PROTOBUF: Final = "application/x-protobuf"
_JSON: Final = "application/json"
_AT_ONCE: Final = 4  # bodies that are unpacked and read at one time
_LARGE: Final = 1024 * 1024  # bytes of a body for which a sender waits while as many others are large
_SLOW: Final = 30.0  # seconds in which nothing comes of a request
_LONGEST: Final = 120.0  # seconds that a body may take to come
_PIECE: Final = 65_536  # bytes
_IGNORED: Final = ("/v1/metrics", "/v1/logs")
_REASONS: Final = 3  # refused spans of which the answer says why
_INVALID: Final = 3  # google.rpc.Code
_UNAVAILABLE: Final = 14

Take = Callable[[Iterable[OtlpSpan], Iterable[RefusedSpan]], None]


class _Refusal(Exception):
    """The request is answered with a status and a sentence."""

    def __init__(self, status: int, message: str, code: int = _INVALID, retry: int | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code
        self.retry = retry  # seconds after which it may be sent again, where that is known


class Counts(NamedTuple):
    """What came in so far: spans that were taken, spans that could not be used, and requests that were to be
    sent again because nothing could be taken.
    """

    spans: int
    rejected: int
    put_off: int


class Receiver(ThreadingHTTPServer):
    """Listens at once; `serve_forever` answers. `take` gets the spans of each request, and those that cannot
    be used, and returns when they are safe; RecordError of it makes the sender try again. `say` is told what
    is let pass or refused, once each.

    Raises OSError when the port cannot be had.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, port: int, take: Take, say: Callable[[str], None] = lambda _: None) -> None:
        super().__init__((HOST, port), _Handler)
        self.take, self._say = take, say
        self.bodies = threading.BoundedSemaphore(_AT_ONCE)
        self.large = threading.BoundedSemaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._counts = Counts(0, 0, 0)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    @property
    def counts(self) -> Counts:
        """What came in so far."""
        return self._counts

    def count(self, spans: int = 0, rejected: int = 0, put_off: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            now = self._counts
            self._counts = Counts(now.spans + spans, now.rejected + rejected, now.put_off + put_off)

    def say_once(self, sentence: str) -> None:
        """Say a sentence, unless it was said before."""
        with self._lock:
            known = sentence in self._said
            self._said.add(sentence)
        if not known:
            self._say(sentence)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that goes away in the middle is no error of ours; anything else is said."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.say_once(f"A request was not answered, by an error of this program: {error!r}"[:500])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _SLOW
    server: Receiver

    def do_POST(self) -> None:
        """Take a message, or say why not."""
        try:
            self._check_sender()
            path = self.path.partition("?")[0].rstrip("/")
            if path != "/v1/traces" and path not in _IGNORED:
                raise _Refusal(404, "Traces are taken at /v1/traces.")
            kind = self.headers.get_content_type()
            if kind not in (_PROTOBUF, _JSON):
                raise _Refusal(415, f"Bodies must be {_PROTOBUF} or {_JSON}.")
            packed = self._body()  # from a sender that may be slow, for which no other waits
            with self.server.bodies:
                body = self._unpacked(packed)
                self._answer(kind, self._traces(kind, body) if path == "/v1/traces" else self._ignored(path))
        except _Refusal as refusal:
            self._refuse(refusal)

    def _other(self) -> None:
        self._refuse(_Refusal(405, "OTLP is sent by POST."))

    do_GET = do_PUT = do_DELETE = do_OPTIONS = do_HEAD = do_PATCH = _other

    def _check_sender(self) -> None:
        """Refuse what a web page could have sent: its browser names an origin, or a host that it was told."""
        hosts = {f"{name}:{self.server.port}" for name in (HOST, "localhost", "[::1]")}
        if self.headers.get("Origin") is not None or self.headers.get("Host", "").lower() not in hosts:
            raise _Refusal(403, f"Only programs on this machine may send here, to {HOST}.", 7)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            with self.server.large:
                return self._chunked()
        raw = self.headers.get("Content-Length", "")
        if not raw.isdecimal() or len(raw) > 18:
            raise _Refusal(411, "The request does not say how long it is.")
        if int(raw) > LARGEST_BODY:
            raise _too_large()
        with self.server.large if int(raw) > _LARGE else nullcontext():
            return self._read(int(raw), time.monotonic() + _LONGEST)

    def _read(self, size: int, until: float) -> bytes:
        """So many bytes of the body, a piece at a time: who sends one now and then would hold us for ever."""
        parts: list[bytes] = []
        left = size
        while left:
            part = self.rfile.read1(min(left, _PIECE))
            if not part:
                raise _Refusal(400, "The request ends too early.")
            if time.monotonic() > until:
                raise _Refusal(408, "The request takes too long.")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _chunked(self) -> bytes:
        body = bytearray()
        left, until = LARGEST_BODY, time.monotonic() + _LONGEST
        while True:
            head = self.rfile.readline(_LARGEST_LINE).split(b";")[0].strip()
            try:
                size = int(head, 16)
            except ValueError:
                raise _Refusal(400, "The request is broken.") from None
            if size < 0 or size > left:
                raise _too_large()
            left -= size
            body += self._read(size, until)
            if not self.rfile.readline(_LARGEST_LINE):  # after a chunk, or after the last one
                raise _Refusal(400, "The request ends too early.")
            if size == 0:
                return bytes(body)

    def _unpacked(self, body: bytes) -> bytes:
        encoding = self.headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity":
            return body
        if encoding not in ("gzip", "deflate"):
            raise _Refusal(415, f"A body packed as {encoding[:40]!r} cannot be read.")
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either header
        try:
            plain = unpack.decompress(body, LARGEST_BODY)
            if unpack.unconsumed_tail and unpack.decompress(unpack.unconsumed_tail, 1):
                raise _too_large()
        except zlib.error:
            raise _Refusal(400, "The body is not packed as it says.") from None
        if not unpack.eof:
            raise _Refusal(400, "The packed body ends too early.")
        return plain

    def _traces(self, kind: str, body: bytes) -> bytes:
        """Take the spans of a message; the answer says how many of them cannot be used."""
        try:
            received = from_protobuf(body) if kind == _PROTOBUF else from_json(body)
            self.server.take(received.spans, received.refused)
        except InputError as error:
            raise _Refusal(400, str(error)) from error
        except RecordError as error:
            self.server.count(put_off=1)
            retry = RETRY_SECONDS if isinstance(error, Overfull) else None
            raise _Refusal(503, str(error), _UNAVAILABLE, retry) from error
        self.server.count(len(received.spans), len(received.refused))
        why = " ".join(each.why for each in received.refused[:_REASONS])
        if why:
            self.server.say_once("Some spans cannot be used: the run of their trace says why, if it has one.")
        return _response(kind, len(received.refused), why)

    def _ignored(self, path: str) -> bytes:
        what = path.rpartition("/")[2]
        advice = " (texts of messages that come as logs are not kept)" if what == "logs" else ""
        self.server.say_once(f"Some program sends {what}, which are not kept{advice}.")
        return b""

    def _answer(self, kind: str, body: bytes) -> None:
        self._reply(200, kind, body or (b"{}" if kind == _JSON else b""))

    def _refuse(self, refusal: _Refusal) -> None:
        """Answer with a google.rpc.Status, and hang up: what is left of the request was not read."""
        self.close_connection = True
        message, code = str(refusal), refusal.code
        if self.headers.get_content_type() == _PROTOBUF:
            from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

            body = bytes(Status(code=code, message=message).SerializeToString())
            self._reply(refusal.status, _PROTOBUF, body, refusal.retry)
        else:
            body = json.dumps({"code": code, "message": message}).encode()
            self._reply(refusal.status, _JSON, body, refusal.retry)

    def _reply(self, status: int, kind: str, body: bytes, retry: int | None = None) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if retry is not None:
                self.send_header("Retry-After", str(retry))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body if self.command != "HEAD" else b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the screen belongs to the person."""


def _too_large() -> _Refusal:
    return _Refusal(413, f"A request may hold at most {LARGEST_BODY >> 20} MB, also unpacked.", 8)


def _response(kind: str, rejected: int, why: str) -> bytes:
    """An ExportTraceServiceResponse."""
    if kind == _JSON:
        partial = {"rejectedSpans": str(rejected), "errorMessage": why}
        return json.dumps({"partialSuccess": partial} if rejected else {}).encode()
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb

    if not rejected:
        return b""
    partial_success = pb.ExportTracePartialSuccess(rejected_spans=rejected, error_message=why)
    return bytes(pb.ExportTraceServiceResponse(partial_success=partial_success).SerializeToString())
