"""A plain OTLP receiver on 127.0.0.1, and one that behaves badly in every way that can be asked for."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from traces.otlp.spans import OtlpSpan, from_protobuf

PROTOBUF = "application/x-protobuf"


@dataclass
class Receiver:
    """What came in. `status`, `body`, `content_type` and `headers` are the answer to every request; it is
    given when `open` is set, and at once to the first `most` of them.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = PROTOBUF
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # path, headers in lower case
    open: threading.Event = field(default_factory=threading.Event)
    most: int = 0

    @property
    def spans(self) -> list[OtlpSpan]:
        """All spans of all requests."""
        return [span for body in self.bodies for span in from_protobuf(body).spans]

    def by_id(self) -> dict[str, OtlpSpan]:
        """Spans by their id; each came once."""
        found = {span.span_id: span for span in self.spans}
        assert len(found) == len(self.spans)
        return found


def refusing(count: int) -> bytes:
    """The answer of a receiver that did not take some spans."""
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = count
    return answer.SerializeToString()


@contextmanager
def nobody() -> Iterator[str]:
    """An address at which nobody listens; its port is kept, so that no other program takes it."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{kept.getsockname()[1]}"


@contextmanager
def receiver(status: int = 200, *, hangs: bool = False, **answer: object) -> Iterator[Receiver]:
    """A receiver that listens until the block ends."""
    made = Receiver(status=status, **answer)  # type: ignore[arg-type]
    if not hangs:
        made.open.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            made.asked.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
            made.bodies.append(body)
            if len(made.bodies) > made.most:
                made.open.wait(30)
            self.send_response(made.status)
            for name, value in {"Content-Type": made.content_type, **made.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(made.body)))
            self.end_headers()
            self.wfile.write(made.body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                return  # the client did not wait

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.open.set()
        server.shutdown()
        server.server_close()
        thread.join()
