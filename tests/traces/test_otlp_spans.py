"""Spans out of OTLP: protobuf and JSON say the same, odd forms are read, what is unusable is refused."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from rlm_core.errors import InputError
from traces.otlp.spans import OtlpSpan, from_json, from_protobuf

TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def pair(key: str, **value: Any) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(**value))


def message() -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.append(pair("service.name", string_value="shop"))
    part = group.scope_spans.add()
    part.scope.name, part.scope.version = "my.tracer", "1.2"
    span = part.spans.add(
        trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN), parent_span_id=bytes.fromhex(PARENT),
        name="chat", kind=3, start_time_unix_nano=2**60 + 1, end_time_unix_nano=2**60 + 5,
    )  # fmt: skip
    span.status.code, span.status.message = 2, "no"
    items = ArrayValue(values=[AnyValue(int_value=1), AnyValue(string_value="a")])
    inner = KeyValueList(values=[pair("deep", array_value=items), pair("on", bool_value=True)])
    span.attributes.extend([
        pair("text", string_value="é\n"), pair("large", int_value=2**53 + 1), pair("part", double_value=1.5),
        pair("nan", double_value=math.inf), pair("bytes", bytes_value=b"\x00\xff"),
        pair("table", kvlist_value=inner), KeyValue(key="nothing"),
    ])  # fmt: skip
    event = span.events.add(name="exception", time_unix_nano=2**60 + 3)
    event.attributes.append(pair("exception.type", string_value="KeyError"))
    return request


def only(found: Any) -> OtlpSpan:
    assert len(found.spans) == 1 and not found.refused, found
    span: OtlpSpan = found.spans[0]
    return span


def test_protobuf_and_json_give_the_same_span() -> None:
    span = only(from_protobuf(message().SerializeToString()))
    assert (span.trace_id, span.span_id, span.parent_id, span.kind) == (TRACE, SPAN, PARENT, "client")
    assert (span.start_ns, span.end_ns, span.status, span.message) == (2**60 + 1, 2**60 + 5, "error", "no")
    assert span.attributes == {
        "text": "é\n", "large": 2**53 + 1, "part": 1.5, "nan": math.inf, "nothing": None,
        "bytes": base64.b64encode(b"\x00\xff").decode(), "table": {"deep": [1, "a"], "on": True},
    }  # fmt: skip
    assert span.events[0].attributes == {"exception.type": "KeyError"}
    assert (span.scope.resource["service.name"], span.scope.name, span.scope.version) == (
        "shop", "my.tracer", "1.2",
    )  # fmt: skip
    assert only(from_json(hexed(MessageToDict(message(), use_integers_for_enums=True)))) == span


def test_ids_in_base64_names_of_enums_and_snake_case_are_read() -> None:
    span = only(from_protobuf(message().SerializeToString()))
    assert only(from_json(MessageToJson(message()).encode())) == span
    assert only(from_json(MessageToDict(message(), preserving_proto_field_name=True))) == span


@pytest.mark.parametrize(
    "wrap",
    [
        lambda document: document,
        lambda document: document["resourceSpans"],
        lambda document: document["resourceSpans"][0],
        lambda document: {"batches": document["resourceSpans"]},
        lambda document: {"trace": document},
        lambda document: json.dumps(document).encode("utf-8-sig"),
    ],
    ids=["request", "list", "one group", "batches", "trace", "bytes with a mark"],
)
def test_documents_of_trace_back_ends_are_read(wrap: Any) -> None:
    assert only(from_json(wrap(hexed(MessageToDict(message())))))


def test_a_span_that_cannot_be_used_is_refused_and_the_others_are_read() -> None:
    document = hexed(MessageToDict(message()))
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans += [{"name": "x", "traceId": TRACE}, {"name": "y", "traceId": "0" * 32, "spanId": SPAN}, 7]
    found = from_json(document)
    assert [span.name for span in found.spans] == ["chat"]
    assert found.refused == [
        ("The span 'x' has no valid span id.", TRACE),
        ("The span 'y' has no valid trace id.", None),
        ("A span is no object.", None),
    ]


def test_what_has_no_time_or_no_end_says_so() -> None:
    bare = {"traceId": TRACE.upper(), "spanId": SPAN, "startTimeUnixNano": "0", "endTimeUnixNano": "soon"}
    span = only(from_json({"resourceSpans": [{"scopeSpans": [{"spans": [bare]}]}]}))
    assert (span.trace_id, span.parent_id, span.start_ns, span.end_ns) == (TRACE, None, None, None)
    assert (span.name, span.kind, span.status, span.attributes) == ("", "unspecified", "unset", {})


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"a": 1}', b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_trace_document_is_one_sentence(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^This is no (JSON|OTLP trace document: .*)\.$"):
        from_json(data)


def test_what_is_no_protobuf_is_one_sentence() -> None:
    with pytest.raises(InputError, match="no OTLP trace message in protobuf"):
        from_protobuf(b"\xff\xff not protobuf")


def test_values_that_are_too_deep_are_cut_and_odd_ones_are_unknown() -> None:
    deep: Any = {"stringValue": "end"}
    for _ in range(500):
        deep = {"arrayValue": {"values": [deep]}}
    odd = {"intValue": "1e9"}, {"doubleValue": 10**400}, {"boolValue": "yes"}, {"stringValue": 7}, {}, None
    pairs = [{"key": f"k{number}", "value": value} for number, value in enumerate((deep, *odd))]
    pairs += [{"key": 7, "value": {"intValue": 1}}, "x"]  # type: ignore[list-item]
    body = {"traceId": TRACE, "spanId": SPAN, "attributes": pairs}
    told = only(from_json({"resourceSpans": [{"scopeSpans": [{"spans": [body]}]}]})).attributes
    assert [told[f"k{number}"] for number in range(1, 7)] == [None] * 6 and set(told) == {
        f"k{number}" for number in range(7)
    }
    assert len(json.dumps(told["k0"])) < 100


def hexed(document: Any) -> Any:
    """Ids as OTLP/JSON has them: hex, where protobuf has base64."""
    for group in document["resourceSpans"]:
        for span in group["scopeSpans"][0]["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                span[key] = base64.b64decode(span[key]).hex()
    return document
