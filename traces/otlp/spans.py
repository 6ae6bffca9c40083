"""Spans as OTLP carries them, out of protobuf or JSON, in one form.

OTLP 1.x: https://opentelemetry.io/docs/specs/otlp/. Its JSON differs from the usual one of protobuf: ids are
hex, enums are numbers. Base64 ids, names of enums, snake_case names and the forms of trace back ends that
return OTLP ("batches") are read too. Everything is untrusted: a span that cannot be used is refused with a
sentence, the others are read.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rlm_core.errors import InputError
from traces.facts import LARGEST
from traces.spool import DECODER

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUSES: Final = ("unset", "ok", "error")
_DEEPEST: Final = 30  # levels of a value; what is deeper is left out
_NESTED: Final = 3  # levels of lists and wrappers around the groups of a document
_MEMBERS: Final = ("resourceSpans", "resource_spans", "batches")
_SCOPES: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "ilSpans")
_HEX: Final = re.compile(r"[0-9a-fA-F]+\Z")
_NO_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

#: What an attribute holds: text, bool, int, float, None, and lists and dicts of these. Bytes are base64 text.
Value = Any


@dataclass(frozen=True, slots=True)
class OtlpEvent:
    """Something that happened inside a span; `time_ns` is None where it does not say."""

    name: str
    time_ns: int | None
    attributes: dict[str, Value]


@dataclass(frozen=True, slots=True)
class OtlpScope:
    """Who made spans: the attributes of the program, and name and version of its instrumentation."""

    resource: dict[str, Value] = field(default_factory=dict)
    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class OtlpSpan:
    """A span. Ids are lower-case hex (32 and 16 digits), times nanoseconds since the epoch or None where the
    span does not say; one that says only when it began is still open. `kind` is one of `KINDS`, `status` of
    `STATUSES`.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: str
    start_ns: int | None
    end_ns: int | None
    attributes: dict[str, Value]
    events: tuple[OtlpEvent, ...] = ()
    status: str = "unset"
    message: str = ""  # what the status says
    scope: OtlpScope = field(default_factory=OtlpScope)

    @property
    def ended(self) -> bool:
        """Whether it has ended. One without any time has: spans are sent when they end."""
        return self.end_ns is not None or self.start_ns is None

    @property
    def chars(self) -> int:
        """About how many characters it holds; what is no text counts as a word of eight."""
        waiting: list[Any] = [self.attributes, *(event.attributes for event in self.events)]
        count = len(self.name) + len(self.message)
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                count += len(value)
            elif isinstance(value, Mapping):
                waiting += [*value.keys(), *value.values()]
            elif isinstance(value, list | tuple):
                waiting += value
            else:
                count += 8
        return count


class RefusedSpan(NamedTuple):
    """A span that cannot be used: why, in a sentence, and its trace, None where that cannot be read."""

    why: str
    trace_id: str | None = None


@dataclass(slots=True)
class Received:
    """What one message carried: its spans in order, and those that cannot be used."""

    spans: list[OtlpSpan] = field(default_factory=list)
    refused: list[RefusedSpan] = field(default_factory=list)


class _Refused(Exception):
    """This span cannot be used."""

    def __init__(self, why: str, trace_id: str | None = None) -> None:
        super().__init__(why)
        self.trace_id = trace_id


def from_protobuf(data: bytes) -> Received:
    """The spans of an ExportTraceServiceRequest (or TracesData, which has the same form).

    Raises InputError when it is none.
    """
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        request = ExportTraceServiceRequest.FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise InputError("This is no OTLP trace message in protobuf.") from error
    received = Received()
    for group in request.resource_spans:
        resource = _attributes_of(group.resource.attributes)
        for part in group.scope_spans:
            scope = OtlpScope(resource, part.scope.name, part.scope.version)
            for span in part.spans:
                _take(received, partial(_from_message, span, scope))
    return received


def from_json(data: bytes | Any) -> Received:
    """The spans of an OTLP/JSON document, as bytes or as the value it holds: an ExportTraceServiceRequest
    (`{}` is one without spans), one of its ResourceSpans, or a list of either.

    Raises InputError when it is none.
    """
    if isinstance(data, bytes):
        try:
            data = DECODER.decode(data.decode("utf-8-sig").strip())
        except (ValueError, RecursionError) as error:
            raise InputError("This is no JSON.") from error
    groups = list(_groups(data))
    if not groups and data != {} and not is_json(data):
        raise InputError('This is no OTLP trace document: it has no list "resourceSpans".')
    received = Received()
    for group in groups:
        resource = _attributes(_member(_dict(group.get("resource")), "attributes"))
        for part in _dicts(_member(group, *_SCOPES)):
            about = _dict(_member(part, "scope", "instrumentationLibrary"))
            scope = OtlpScope(resource, _text(about.get("name")), _text(about.get("version")))
            for span in _list(_member(part, "spans")):
                _take(received, partial(_from_value, span, scope))
    return received


def is_json(value: Any, depth: int = 0) -> bool:
    """Whether a JSON value is an OTLP trace document, possibly one without spans."""
    if depth > _NESTED:
        return False
    if isinstance(value, list):
        return bool(value) and all(is_json(item, depth + 1) for item in value[:20])
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("trace"), Mapping):
        return is_json(value["trace"], depth + 1)
    return any(isinstance(value.get(name), list) for name in (*_MEMBERS, *_SCOPES))


def _take(received: Received, make: Callable[[], OtlpSpan]) -> None:
    try:
        received.spans.append(make())
    except _Refused as error:
        received.refused.append(RefusedSpan(str(error), error.trace_id))


def _groups(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Every ResourceSpans of a document."""
    if isinstance(value, list) and depth < _NESTED:
        for item in value:
            yield from _groups(item, depth + 1)
    elif isinstance(value, Mapping):
        if isinstance(value.get("trace"), Mapping) and depth < _NESTED:
            yield from _groups(value["trace"], depth + 1)
        for name in _MEMBERS:
            yield from _dicts(value.get(name))
        if any(name in value for name in _SCOPES):
            yield value


# -- protobuf


def _from_message(span: Span, scope: OtlpScope) -> OtlpSpan:
    trace_id, span_id = _ids(span.trace_id.hex(), span.span_id.hex(), span.name)
    return OtlpSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_parent(span.parent_span_id.hex()),
        name=span.name,
        kind=_named(span.kind, KINDS),
        start_ns=_moment(span.start_time_unix_nano),
        end_ns=_moment(span.end_time_unix_nano),
        attributes=_attributes_of(span.attributes),
        events=tuple(
            OtlpEvent(event.name, _moment(event.time_unix_nano), _attributes_of(event.attributes))
            for event in span.events
        ),
        status=_named(span.status.code, STATUSES),
        message=span.status.message,
        scope=scope,
    )


def _attributes_of(pairs: Iterable[KeyValue]) -> dict[str, Value]:
    return {pair.key: _value_of(pair.value) for pair in pairs}


def _value_of(value: AnyValue, depth: int = 0) -> Value:
    which = value.WhichOneof("value")
    if which is None or depth > _DEEPEST:
        return None
    if which == "array_value":
        return [_value_of(item, depth + 1) for item in value.array_value.values]
    if which == "kvlist_value":
        return {pair.key: _value_of(pair.value, depth + 1) for pair in value.kvlist_value.values}
    if which == "bytes_value":
        return base64.b64encode(value.bytes_value).decode("ascii")
    return getattr(value, which)


# -- JSON


def _from_value(span: Any, scope: OtlpScope) -> OtlpSpan:
    if not isinstance(span, Mapping):
        raise _Refused("A span is no object.")
    name, status = _text(span.get("name")), _dict(span.get("status"))
    found = (_id(_member(span, "traceId", "trace_id"), 16), _id(_member(span, "spanId", "span_id"), 8))
    trace_id, span_id = _ids(*found, name)
    return OtlpSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_parent(_id(_member(span, "parentSpanId", "parent_span_id"), 8)),
        name=name,
        kind=_named(span.get("kind"), KINDS),
        start_ns=_moment(_member(span, "startTimeUnixNano", "start_time_unix_nano")),
        end_ns=_moment(_member(span, "endTimeUnixNano", "end_time_unix_nano")),
        attributes=_attributes(span.get("attributes")),
        events=tuple(
            OtlpEvent(
                _text(event.get("name")),
                _moment(_member(event, "timeUnixNano", "time_unix_nano")),
                _attributes(event.get("attributes")),
            )
            for event in _dicts(span.get("events"))
        ),
        status=_named(status.get("code"), STATUSES),
        message=_text(status.get("message")),
        scope=scope,
    )


def _id(value: Any, size: int) -> str:
    """An id as hex, empty where it is none: hex as OTLP has it, or base64 as plain protobuf JSON has."""
    if not isinstance(value, str):
        return ""
    if len(value) == size * 2 and _HEX.match(value):
        return value.lower()
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) == size else ""


def _attributes(pairs: Any) -> dict[str, Value]:
    """Attributes as OTLP lists them; a plain object, as some tools write it, is taken too."""
    if isinstance(pairs, Mapping):
        return {str(key): value for key, value in pairs.items()}
    return {
        pair["key"]: _value(pair.get("value")) for pair in _dicts(pairs) if isinstance(pair.get("key"), str)
    }


def _value(value: Any, depth: int = 0) -> Value:
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return value if isinstance(value, str | int | float) else None
    for name, raw in value.items():
        match name:
            case "stringValue" | "string_value" | "bytesValue" | "bytes_value":
                return raw if isinstance(raw, str) else None
            case "boolValue" | "bool_value":
                return raw if isinstance(raw, bool) else None
            case "intValue" | "int_value":
                return _whole(raw)
            case "doubleValue" | "double_value":
                return _float(raw)
            case "arrayValue" | "array_value":
                return [_value(item, depth + 1) for item in _list(_dict(raw).get("values"))]
            case "kvlistValue" | "kvlist_value":
                pairs = _dicts(_dict(raw).get("values"))
                return {_text(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in pairs}
    return None


def _whole(raw: Any) -> int | None:
    """A whole number, which JSON has as text because it may be larger than a float can tell."""
    if isinstance(raw, str) and re.fullmatch(r"-?[0-9]{1,20}", raw):
        return int(raw)
    if isinstance(raw, float) and raw.is_integer() and abs(raw) < 2**53:
        return int(raw)
    return raw if type(raw) is int and abs(raw) < 2**64 else None


def _float(raw: Any) -> float | None:
    if isinstance(raw, str):
        return _NO_NUMBERS.get(raw)
    try:
        return float(raw) if type(raw) in (int, float) else None
    except OverflowError:
        return None


# -- both


def _ids(trace_id: str, span_id: str, name: str) -> tuple[str, str]:
    """The ids of a span, which none can do without."""
    if not _is_id(trace_id, 32):
        raise _Refused(f"The span {name[:100]!r} has no valid trace id.")
    if not _is_id(span_id, 16):
        raise _Refused(f"The span {name[:100]!r} has no valid span id.", trace_id)
    return trace_id, span_id


def _is_id(found: str, digits: int) -> bool:
    return len(found) == digits and bool(found.strip("0"))


def _parent(found: str) -> str | None:
    return found if _is_id(found, 16) else None


def _moment(raw: Any) -> int | None:
    """Nanoseconds since the epoch; 0 is how protobuf says nothing."""
    value = _whole(raw)
    return value if value is not None and 0 < value < LARGEST else None


def _named(code: Any, names: Sequence[str]) -> str:
    """An enum, which stands there as its number or as its name ("SPAN_KIND_CLIENT", "STATUS_CODE_OK")."""
    if isinstance(code, str):
        name = code.rpartition("_")[2].lower()
        return name if name in names else names[0]
    return names[code] if type(code) is int and 0 <= code < len(names) else names[0]


def _member(value: Mapping[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in _list(value) if isinstance(item, Mapping))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
