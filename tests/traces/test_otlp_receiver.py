"""The receiver over HTTP: what is taken, what is refused and how, and a real instrumentation that sends."""

from __future__ import annotations

import gzip
import http.client
import importlib
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from tests.support.loopback import Loopback, Reply, Script
from traces.collecting import Collector, Overfull
from traces.home import Home
from traces.otlp import receiver as module
from traces.otlp.receiver import Receiver
from traces.otlp.spans import OtlpSpan, RefusedSpan
from traces.reading import SpoolRun

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": TRACE, "spanId": SPAN, "name": "a"}]}]}]}
JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}


class Rig:
    """A receiver that keeps what it is given, and requests to it."""

    def __init__(self) -> None:
        self.taken: list[OtlpSpan] = []
        self.refused: list[RefusedSpan] = []
        self.said: list[str] = []
        self.broken: Exception | None = None
        self.receiver = Receiver(0, self.take, self.said.append)
        self.thread = threading.Thread(target=self.receiver.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def take(self, spans: Any, refused: Any) -> None:
        if self.broken is not None:
            raise self.broken
        self.taken += spans
        self.refused += refused

    def send(
        self, body: Any, headers: dict[str, str], path: str = "/v1/traces", method: str = "POST"
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.receiver.port, timeout=60)
        try:
            chunked = not isinstance(body, bytes)
            connection.request(method, path, body, headers, encode_chunked=chunked)
            reply = connection.getresponse()
            self.headers = reply.headers
            return reply.status, reply.read()
        finally:
            connection.close()

    def close(self) -> None:
        self.receiver.shutdown()
        self.receiver.server_close()
        self.thread.join()


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.close()


def packed(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("pack", [None, "gzip", "deflate", "chunked"])
def test_spans_are_taken_however_they_are_packed(rig: Rig, pack: str | None) -> None:
    plain = packed(GOOD)
    body: Any = {"gzip": gzip.compress, "deflate": zlib.compress}.get(str(pack), bytes)(plain)
    headers = {**JSON, **({"Content-Encoding": pack} if pack in ("gzip", "deflate") else {})}
    if pack == "chunked":
        body, headers = iter([plain[:20], plain[20:]]), {**JSON, "Transfer-Encoding": "chunked"}
    assert rig.send(body, headers) == (200, b"{}")
    assert [span.name for span in rig.taken] == ["a"] and rig.receiver.counts == (1, 0, 0)


def test_an_empty_message_is_fine_and_metrics_and_logs_are_let_pass_with_a_word(rig: Rig) -> None:
    assert rig.send(b"", PROTOBUF) == (200, b"")
    assert rig.send(b"{}", JSON) == (200, b"{}")
    assert (rig.taken, rig.receiver.counts) == ([], (0, 0, 0))
    for _ in range(2):
        assert rig.send(b"anything", PROTOBUF, "/v1/metrics") == (200, b"")
        assert rig.send(b"{}", JSON, "/v1/logs") == (200, b"{}")
    assert [sentence.split(" (")[0] for sentence in rig.said] == [
        "Some program sends metrics, which are not kept.",
        "Some program sends logs, which are not kept",
    ]


def test_refused_spans_are_told_beside_those_that_were_taken(rig: Rig) -> None:
    document = json.loads(json.dumps(GOOD))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"].append({"name": "bad"})
    status, body = rig.send(packed(document), JSON)
    told = json.loads(body)["partialSuccess"]
    assert (status, told["rejectedSpans"]) == (200, "1") and "'bad' has no valid trace id" in told[
        "errorMessage"
    ]
    # a span without ids in protobuf: resource_spans { scope_spans { spans { name: "x" } } }
    status, body = rig.send(bytes.fromhex("0a0712051203") + b"\x2a\x01x", PROTOBUF)
    assert ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans == 1
    assert (status, rig.receiver.counts) == (200, (1, 2, 0))
    assert [(each.trace_id, each.why.split(" has ")[0]) for each in rig.refused] == [
        (None, "The span 'bad'"),
        (None, "The span 'x'"),
    ]
    assert rig.said == ["Some spans cannot be used: the run of their trace says why, if it has one."]


Change = Callable[[dict[str, str]], dict[str, str]]


@pytest.mark.parametrize(
    ("body", "headers", "path", "status", "message"),
    [
        (b"{", JSON, "/v1/traces", 400, "This is no JSON."),
        (b'{"spans": []}', JSON, "/v1/traces", 400, "no OTLP trace document"),
        (b"[]", JSON, "/v1/traces", 400, "no OTLP trace document"),
        (b"\xff\xff", PROTOBUF, "/v1/traces", 400, "no OTLP trace message"),
        (b"not gzip", {**PROTOBUF, "Content-Encoding": "gzip"}, "/v1/traces", 400, "not packed as it says"),
        (gzip.compress(b"x" * 99)[:-9], {**JSON, "Content-Encoding": "gzip"}, "/v1/traces", 400, "too early"),
        (b"x", {**PROTOBUF, "Content-Encoding": "br"}, "/v1/traces", 415, "'br'"),
        (b"x", {"Content-Type": "text/plain"}, "/v1/traces", 415, "must be application/x-protobuf"),
        (b"{}", JSON, "/v1/secrets", 404, "/v1/traces"),
        (b"{}", {**JSON, "Origin": "http://127.0.0.1:4318"}, "/v1/traces", 403, "Only programs"),
        (b"{}", {**JSON, "Host": "evil.example:4318"}, "/v1/traces", 403, "Only programs"),
        (b"{}", {**JSON, "Host": ""}, "/v1/traces", 403, "Only programs"),
        (b"{}", {**JSON, "Content-Length": "1000000000000"}, "/v1/traces", 413, "at most 64 MB"),
        (b"{}", {**JSON, "Content-Length": "-1"}, "/v1/traces", 411, "how long"),
        (b"zz\r\n", {**JSON, "Transfer-Encoding": "chunked"}, "/v1/traces", 400, "broken"),
        (b"-1\r\n", {**JSON, "Transfer-Encoding": "chunked"}, "/v1/traces", 413, "at most"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_status(
    rig: Rig, body: bytes, headers: dict[str, str], path: str, status: int, message: str
) -> None:
    code, answer = rig.send(body, headers, path)
    kind = headers["Content-Type"]
    binary = kind == PROTOBUF["Content-Type"]
    said = Status.FromString(answer).message if binary else json.loads(answer)["message"]
    assert code == status and message in said
    assert not rig.taken
    assert rig.send(packed(GOOD), JSON)[0] == 200  # it goes on


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused_and_no_page_is_allowed_anything(rig: Rig, method: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", rig.receiver.port, timeout=60)
    connection.request(method, "/v1/traces")
    reply = connection.getresponse()
    reply.read()
    connection.close()
    assert reply.status == 405
    assert not [name for name, _ in reply.getheaders() if name.lower().startswith("access-control")]


def test_bodies_are_bounded_as_sent_and_as_unpacked(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_BODY", 10_000)
    bomb = gzip.compress(b" " * 10_001)
    assert len(bomb) < 1000
    assert rig.send(bomb, {**JSON, "Content-Encoding": "gzip"})[0] == 413
    assert rig.send(b" " * 10_001, JSON)[0] == 413
    parts = iter([b" " * 6_000, b" " * 6_000])
    assert rig.send(parts, {**JSON, "Transfer-Encoding": "chunked"})[0] == 413
    fits = gzip.compress(b" " * 9_000 + packed(GOOD))
    assert rig.send(fits, {**JSON, "Content-Encoding": "gzip"})[0] == 200


def test_no_sender_waits_for_others_that_stop_in_the_middle(rig: Rig) -> None:
    host = f"127.0.0.1:{rig.receiver.port}"
    head = f"POST /v1/traces HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    lengths = ["Content-Length: 100", "Content-Length: 30000000", "Transfer-Encoding: chunked"]
    with ExitStack() as hanging:
        for number in range(3 * (module._AT_ONCE + 1)):
            other = hanging.enter_context(socket.create_connection(("127.0.0.1", rig.receiver.port)))
            other.sendall(f"{head}{lengths[number % 3]}\r\n\r\n".encode())
        assert rig.send(packed(GOOD), JSON)[0] == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_comes_too_slowly_is_refused(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, chunked: bool
) -> None:
    monkeypatch.setattr(module, "_LONGEST", -1.0)
    headers = {**JSON, **({"Transfer-Encoding": "chunked"} if chunked else {})}
    assert rig.send(iter([b"{}"]) if chunked else b"{}", headers)[0] == 408


def test_spans_that_cannot_be_kept_are_to_be_sent_again(rig: Rig) -> None:
    rig.broken = RecordError("The disk may be full.")
    status, answer = rig.send(packed(GOOD), JSON)
    assert (status, json.loads(answer)) == (503, {"code": 14, "message": "The disk may be full."})
    assert (rig.receiver.counts, rig.headers["Retry-After"]) == ((0, 0, 1), None)


@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
def test_who_sends_more_than_is_held_is_told_when_to_try_again(rig: Rig, kind: dict[str, str]) -> None:
    rig.broken = Overfull("Too much.")
    body = packed(GOOD) if kind is JSON else b""
    assert rig.send(body, kind)[0] == 503
    assert (rig.receiver.counts, rig.headers["Retry-After"]) == ((0, 0, 1), "5")


# -- a real instrumentation of a real client


@dataclass(frozen=True)
class Words:
    """What a convention says of the spans that a person makes around the calls, and its instrumentation."""

    package: str
    agent: dict[str, str]
    tool: dict[str, str]
    code: str
    output: str


OPENINFERENCE = Words(
    "openinference.instrumentation.openai",
    {sc.OI_KIND: "AGENT"},
    {sc.OI_KIND: "TOOL"},
    sc.OI_INPUT,
    sc.OI_OUTPUT,
)
GENAI = Words(
    "opentelemetry.instrumentation.genai.openai",
    {sc.OPERATION: "invoke_agent"},
    {sc.OPERATION: "execute_tool", sc.TOOL_NAME: "python"},
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
)


@pytest.fixture(params=[OPENINFERENCE, GENAI], ids=["openinference", "genai"])
def words(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Words:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    assert isinstance(request.param, Words)
    return request.param


@pytest.fixture
def provider(words: Words) -> Iterator[TracerProvider]:
    instrumentor = importlib.import_module(words.package).OpenAIInstrumentor()
    provider = TracerProvider(shutdown_on_exit=False)
    instrumentor.instrument(tracer_provider=provider)
    yield provider
    instrumentor.uninstrument()
    provider.shutdown()


def agent(provider: TracerProvider, words: Words, server: Loopback, between: Callable[[], None]) -> None:
    """A loop of a root model and a tool that asks a sub-model, as a person would write it."""
    import openai

    client = openai.OpenAI(base_url=server.base_url, api_key="x", max_retries=0)

    def ask(model: str, messages: Any) -> str:
        return str(client.chat.completions.create(model=model, messages=messages).choices[0].message.content)

    tracer = provider.get_tracer("triage", "2.1")
    question = "How many are about billing?"
    with tracer.start_as_current_span("triage", attributes={**words.agent, sc.OI_INPUT: question}) as run:
        messages = [{"role": "system", "content": "Write Python."}, {"role": "user", "content": question}]
        code = ask("root", messages)
        with tracer.start_as_current_span("python", attributes={**words.tool, words.code: code}) as tool:
            replies = [
                ask("gpt-5-mini", [{"role": "user", "content": text}]) for text in ("a refund", "a login")
            ]
            tool.set_attribute(words.output, str(replies))
        between()
        messages += [{"role": "assistant", "content": code}, {"role": "user", "content": str(replies)}]
        run.set_attribute(sc.OI_OUTPUT, ask("root", messages))


def test_an_instrumented_agent_appears_while_it_runs_and_ends_right(
    tmp_path: Path, provider: TracerProvider, words: Words
) -> None:
    home = Home.resolve(tmp_path / "home")
    collector = Collector(home)
    receiver = Receiver(0, collector.take)
    thread = threading.Thread(target=receiver.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{receiver.port}/v1/traces"
    exporter = OTLPSpanExporter(endpoint=endpoint, compression=Compression.Gzip)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    seen: list[list[str]] = []

    def look() -> None:
        (path,) = home.spool.glob("*.jsonl")
        live, until = SpoolRun(home, path.stem), time.monotonic() + 60
        while not seen and time.monotonic() < until:
            collector.tend()
            view = live.poll()
            assert view.live and view.summary.status == "running"
            if "sub_call" in (kinds := [row.kind for row in view.spans]):
                seen.append(kinds)

    script = Script(
        root=["ask(t) for t in tickets", "One."],
        sub=lambda prompt: Reply("yes" if "refund" in prompt else "no", usage="cached"),
    )
    with Loopback(script) as server:
        agent(provider, words, server, look)
    receiver.shutdown()
    receiver.server_close()
    thread.join()
    (done,) = collector.close()
    assert seen == [["run", "iteration", "root_call", "cell", "sub_call", "sub_call"]]
    view = SpoolRun(home, done.run_id).poll()
    assert done.closed and view.summary.status == "ok" and view.summary.problems == 0
    assert (view.summary.question, view.summary.answer) == ("How many are about billing?", "One.")
    # the server counts a token for four characters, and eight for a request
    assert [(row.kind, row.model, row.tokens) for row in view.spans if row.tokens is not None] == [
        ("root_call", "root", {"input": 18, "output": 6, "total": 24}),
        ("sub_call", "gpt-5-mini", {"input": 10, "output": 1, "total": 11}),
        ("sub_call", "gpt-5-mini", {"input": 9, "output": 1, "total": 10}),
        ("root_call", "root", {"input": 27, "output": 2, "total": 29}),
    ]
    cell = next(row for row in view.spans if row.kind == "cell")
    assert text(view, cell, sc.CODE) == "ask(t) for t in tickets"
    assert text(view, cell, sc.STDOUT) == "['yes', 'no']"
    calls = [row for row in view.spans if row.kind == "sub_call"]
    assert {str(row.attributes["otlp.scope"]).split()[0] for row in calls} == {words.package}
    told = [(text(view, row, sc.PROMPT), text(view, row, sc.RESPONSE)) for row in calls]
    assert told == [("a refund", "yes"), ("a login", "no")]
    assert all(row.trusted["tokens"] == "reported" for row in calls)
    assert all(row.cached_read for row in calls) and all(row.cost_usd for row in calls)


def text(view: Any, row: Any, prefix: str) -> Any:
    return view.payload(row.attributes[f"{prefix}.sha256"])
