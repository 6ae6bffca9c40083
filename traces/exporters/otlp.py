"""Runs as one document of OTLP/JSON, with whole texts, for other trace viewers and for import.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: ids are hex, whole numbers text, enums
numbers. A receiver takes the file as it is (`POST /v1/traces`, content type application/json). What looks
like a key is taken out. Attributes and texts are those that sending puts on spans (`otlp_content`).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import rlm_core
from rlm_core import semconv as sc
from rlm_core.telemetry import as_json
from traces.each_run import each_run
from traces.exporters.files import STILL_RUNNING, ExportDone, new_file
from traces.exporters.otlp_content import Content, Conversations, Message, SpanWords, plain
from traces.exporters.redaction import Redactor
from traces.home import Home
from traces.imported import import_facts
from traces.rows import SpanRow
from traces.runs import Warn
from traces.view import RunView

CONTENT: Final = Content("whole")
_KINDS: Final = {"root_call": 3, "sub_call": 3}  # SPAN_KIND_CLIENT; all others are INTERNAL
_INTERNAL: Final = 1
_OK, _ERROR = 1, 2  # STATUS_CODE_*
_AT_ONCE: Final = 64  # spans whose texts are held at the same time
_HEX: Final = re.compile(r"[0-9a-f]+\Z")


def export(home: Home, run_ids: Sequence[str], out: Path, *, warn: Warn | None = None) -> ExportDone:
    """Write runs into a new file. Raises InputError for a run that is not there and a place that is taken,
    RecordError for a record that cannot be read.
    """
    replaced, notes = 0, list[str]()
    with new_file(out) as file:
        file.write(b'{"resourceSpans":[')
        for number, view in enumerate(each_run(home, run_ids, warn)):
            redactor = Redactor()
            file.write(b",\n" if number else b"\n")
            _write_run(file, view, redactor)
            replaced += redactor.replaced
            notes += _notes(view)
        file.write(b"\n]}\n")
    return ExportDone(out.expanduser().absolute(), tuple(run_ids), replaced, tuple(notes))


def _notes(view: RunView) -> Iterator[str]:
    """What OTLP cannot hold of a run."""
    if view.live:
        yield STILL_RUNNING.format(view.run_id)
    if open_spans := sum(span.end_ns is None for span in view.spans):
        spans = "1 span has" if open_spans == 1 else f"{open_spans:,} spans have"
        yield (
            f"{view.run_id}: {spans} no end on record; OTLP has no word for that, so each ends where it "
            f"began, and {sc.STATUS} says what it is."
        )
    if untimed := sum(map(_is_untimed, view.spans)):
        spans = "1 span is" if untimed == 1 else f"{untimed:,} spans are"
        yield (
            f"{view.run_id}: start or duration of {spans} not on record; OTLP needs both, so what stands "
            f"there only keeps the order, and {sc.TRUST} says which they are."
        )
    if images := sum(bool(span.attributes.get(sc.IMAGES)) for span in view.spans):
        calls = "1 call was" if images == 1 else f"{images:,} calls were"
        yield f"{view.run_id}: {calls} shown images, which are named here; OTLP carries none."


def _is_untimed(span: SpanRow) -> bool:
    """Whether a time of an ended span that OTLP is given stands in no record."""
    return not span.start_told or (span.end_ns is not None and span.seconds is None)


def _write_run(file: BinaryIO, view: RunView, redactor: Redactor) -> None:
    resource = {"attributes": _pairs({"service.name": "rlmscope", sc.RUN_ID: view.run_id})}
    ours = view.summary.imported_from in (None, sc.IMPORT_OWN)
    version = view.summary.engine_version if ours else None
    scope = {"name": "rlmscope", "version": version or rlm_core.__version__}
    file.write(f'{{"resource":{_json(resource)},"scopeSpans":[{{"scope":{_json(scope)},"spans":['.encode())
    for number, span in enumerate(_spans(view, redactor)):
        file.write((",\n" if number else "\n").encode() + _json(span).encode())
    file.write(b"\n]}]}")


def _spans(view: RunView, redactor: Redactor) -> Iterator[dict[str, Any]]:
    trace_id = _id(view.summary.trace_id or view.run_id, 32)
    texts = _Texts(view.payloads)
    words = SpanWords(CONTENT, texts, redactor)
    conversations = Conversations()
    for start in range(0, len(view.spans), _AT_ONCE):
        group = view.spans[start : start + _AT_ONCE]
        messages = {
            span.span_id: conversations.of(span.attributes) for span in group if span.kind == "root_call"
        }
        texts.fetch(group, messages)
        for span in group:
            yield _span(view, span, trace_id, words, messages.get(span.span_id))


class _Texts:
    """The payloads of some spans, fetched together: opening a store takes longer than reading it."""

    def __init__(self, payloads: Callable[[Collection[str]], dict[str, str]]) -> None:
        self._payloads = payloads
        self._known: dict[str, str] = {}

    def fetch(self, spans: Iterable[SpanRow], messages: Mapping[str, Sequence[Message]]) -> None:
        """Hold the texts of these spans; those of messages stay while messages go on citing them."""
        cited = {sha256 for sent in messages.values() for _, sha256 in sent}
        for span in spans:
            cited |= {str(v) for k, v in span.attributes.items() if k.endswith(".sha256")}
        kept = {sha256: self._known[sha256] for sha256 in cited if sha256 in self._known}
        self._known = kept | self._payloads(cited - kept.keys())

    def __call__(self, sha256s: Collection[str]) -> dict[str, str]:
        return {sha256: self._known[sha256] for sha256 in sha256s if sha256 in self._known}


def _span(
    view: RunView, span: SpanRow, trace_id: str, words: SpanWords, messages: Sequence[Message] | None
) -> dict[str, Any]:
    facts = {sc.KIND: span.kind, sc.OI_KIND: _viewers_kind(span.kind), **span.attributes}
    if span.parent_id is None and (imported := import_facts(view)) is not None:
        facts |= {
            sc.IMPORT_ENGINE: imported.engine,
            sc.IMPORT_MISSING: as_json(imported.missing),
            sc.IMPORT_PROBLEMS: as_json(imported.problems),
        }
    facts[sc.STATUS] = span.status
    said = words.attributes(facts, messages)
    status: dict[str, Any] = {"code": _OK if span.status == "ok" else _ERROR}
    if span.status != "ok":
        status["message"] = words.problem(said) or span.status
    events = [
        {
            "timeUnixNano": str(event["time_ns"]),
            "name": words.name(event["name"]),
            "attributes": _pairs(words.event(event["attributes"])),
        }
        for event in view.events(span.span_id)
    ]
    parent = {} if span.parent_id is None else {"parentSpanId": _id(span.parent_id, 16)}
    return {
        "traceId": trace_id,
        "spanId": _id(span.span_id, 16),
        **parent,
        "name": words.name(span.name),
        "kind": _KINDS.get(span.kind, _INTERNAL),
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.start_ns if span.end_ns is None else span.end_ns),
        "attributes": _pairs(said),
        "events": events,
        "status": status,
    }


def _viewers_kind(kind: str) -> str:
    return {str(own): said for own, said in sc.OI_KIND_OF.items()}.get(kind, "CHAIN")


def _id(recorded: str, digits: int) -> str:
    """An id as OTLP wants it; of one that has another form a hash, so that links between spans stay."""
    if len(recorded) == digits and _HEX.match(recorded) and recorded.strip("0"):
        return recorded
    return hashlib.sha256(recorded.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": plain(key), "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        names = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return {"doubleValue": value if math.isfinite(value) else names.get(value, "NaN")}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
