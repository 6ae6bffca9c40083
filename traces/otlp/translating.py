"""One span of OTLP as a span of a run, once it is known what kind it is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, cast

from rlm_core import semconv as sc
from rlm_core.telemetry import Attribute, as_json
from traces.facts import usd_amount
from traces.importers.foreign import ForeignSpan, Mark, T, TokenUse, Told, derived, missing, reported
from traces.importers.source import as_text
from traces.otlp import conventions, messages
from traces.otlp.spans import OtlpSpan
from traces.rows import marks

SAID_KIND: Final = "otlp.kind"  # what the span's own convention calls it
SCOPE: Final = "otlp.scope"  # the instrumentation that made it, with its version
EVENTS: Final = "otlp.events"  # JSON [[name, time, attributes], ...]
LEFT_OUT: Final = "otlp.left_out"  # how many attributes were not kept, and how many were cut
FOREIGN: Final = "otlp."  # before the key of an attribute that would be taken for one of ours

_MOST: Final = 200  # attributes of a span
_LONGEST: Final = 8_000  # characters of one
_INPUTS: Final = ("input.value", "traceloop.entity.input")
_OUTPUTS: Final = ("output.value", "traceloop.entity.output")
_ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "tool.parameters", *_INPUTS)
_RESULTS: Final = ("gen_ai.tool.call.result", *_OUTPUTS)
_CODE: Final = ("code", "source", "script", "python", "query", "input", "command", "cmd")
_PRINTED: Final = ("stdout", "output", "result", "text")
_DOCUMENTS: Final = "retrieval.documents"
#: Attributes that became texts or facts of the record, or that the record sets for every span itself.
_TAKEN: Final = frozenset(
    (*messages.TEXTS, *_ARGUMENTS, *_RESULTS, *conventions.COUNTED, conventions.PARAMETERS, "input.mime_type",
     "output.mime_type", sc.OI_KIND, sc.OPERATION, sc.OI_MODEL, sc.REQUEST_MODEL, sc.ERROR_TYPE)
)  # fmt: skip
_FLAT_TEXTS: Final = re.compile(
    messages.FLAT.pattern + r"|retrieval\.documents\.\d+\.|embedding\.embeddings\.\d+\.embedding\.vector"
)


def foreign_span(span: OtlpSpan, kind: sc.Kind) -> ForeignSpan:
    """The span as one of `kind`, without what is below it."""
    what = conventions.what_is(span)
    if what == "own":
        return _own(span, kind)
    out = _timed(span, kind)
    out.name = span.name or None
    out.model = conventions.model_of(span) if kind in ("root_call", "sub_call", "attempt", "run") else None
    out.error = conventions.error_of(span)
    out.status = _status(span, out.error)
    _TEXTS_OF[kind](out, span)
    if kind in ("root_call", "sub_call"):
        out.tokens, out.cost = conventions.tokens_of(span), conventions.cost_of(span)
    out.attributes = _kept(span, kind)
    return out


def _timed(span: OtlpSpan, kind: sc.Kind) -> ForeignSpan:
    out = ForeignSpan(kind, span_id=span.span_id)
    if span.start_ns is not None:
        out.start = reported(span.start_ns)
        if span.end_ns is not None:
            out.seconds = _seconds(span.end_ns - span.start_ns)
    return out


def _seconds(nanoseconds: int) -> Told[float]:
    if nanoseconds < 0:
        return missing("the span ends before it begins")
    return reported(nanoseconds / 1e9)


def _status(span: OtlpSpan, error: tuple[str, str] | None) -> sc.Status:
    if not span.ended:
        return "running"
    if error is None:
        return "ok"
    return "cancelled" if error[0].rpartition(".")[2] in ("CancelledError", "KeyboardInterrupt") else "error"


# -- texts, by kind


def _texts_of_run(out: ForeignSpan, span: OtlpSpan) -> None:
    told = span.attributes
    sent = None if any(told.get(key) for key in _INPUTS) else messages.sent(span)
    question = messages.plain(_raw(told, _INPUTS)) or messages.last_of(sent, "user")
    answer = messages.plain(_raw(told, _OUTPUTS)) or messages.replied(span)[0]
    _put(out, {sc.QUESTION: question, sc.ANSWER: answer})


def _texts_of_root_call(out: ForeignSpan, span: OtlpSpan) -> None:
    out.messages = messages.sent(span)
    _put_reply(out, span)


def _texts_of_sub_call(out: ForeignSpan, span: OtlpSpan) -> None:
    sent = messages.sent(span)
    _put(out, {sc.PROMPT: None if sent is None else messages.rendered(sent)})
    _put_reply(out, span)


def _put_reply(out: ForeignSpan, span: OtlpSpan) -> None:
    response, reasoning = messages.replied(span)
    _put(out, {sc.RESPONSE: response, sc.REASONING: reasoning})


def _texts_of_cell(out: ForeignSpan, span: OtlpSpan) -> None:
    told, caught = span.attributes, conventions.exception_of(span)
    arguments = messages.decoded(_raw(told, _ARGUMENTS))
    others = isinstance(arguments, Mapping) and len(arguments) > 1
    trace = conventions.text_of(caught, "exception.stacktrace")
    if trace is None and out.error is not None:
        trace = ": ".join(part for part in out.error if part)
    _put(out, {
        sc.CODE: _part_of(arguments, _CODE),
        sc.TOOL_ARGUMENTS: as_text(arguments) if others else None,
        sc.STDOUT: _part_of(_raw(told, _RESULTS), _PRINTED),
        sc.EXCEPTION: trace,
    })  # fmt: skip


def _texts_of_tool(out: ForeignSpan, span: OtlpSpan) -> None:
    told = span.attributes
    given, result = _raw(told, _ARGUMENTS), _raw(told, _RESULTS)
    if given is None and (sent := messages.sent(span)):
        given = messages.rendered(sent)
    if found := messages.unflatten(told, _DOCUMENTS):
        result = [_document(found[number]) for number in sorted(found)]
    elif result is None:
        result = messages.replied(span)[0]
    _put(out, {
        sc.TOOL_ARGUMENTS: None if given is None else as_text(given),
        sc.TOOL_RESULT: None if result is None else as_text(result),
    })  # fmt: skip


def _document(value: Any) -> Any:
    inner = value.get("document") if isinstance(value, Mapping) else None
    if not isinstance(inner, Mapping):
        return value
    return {key.removeprefix("document."): each for key, each in inner.items()}


_TEXTS_OF: Final = {
    "run": _texts_of_run,
    "root_call": _texts_of_root_call,
    "sub_call": _texts_of_sub_call,
    "attempt": _texts_of_sub_call,
    "cell": _texts_of_cell,
    "tool": _texts_of_tool,
    "iteration": _texts_of_tool,
    "batch": _texts_of_tool,
}


def _put(out: ForeignSpan, texts: Mapping[str, str | None]) -> None:
    out.texts |= {prefix: text for prefix, text in texts.items() if text is not None}


def _raw(told: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((told[key] for key in keys if told.get(key) not in (None, "")), None)


def _part_of(value: Any, names: tuple[str, ...]) -> str | None:
    """The text under the first of these names, where the value is an object; else the value as a text."""
    decoded = messages.decoded(value)
    if isinstance(decoded, Mapping):
        found = next((decoded[name] for name in names if isinstance(decoded.get(name), str)), None)
        if found is not None:
            return str(found)
    return messages.plain(value)


# -- attributes


def _kept(span: OtlpSpan, kind: sc.Kind) -> dict[str, Attribute]:
    """What else a span says, within bounds, and what its own convention calls it."""
    kept: dict[str, Attribute] = {SAID_KIND: conventions.said_kind(span)}
    if span.scope.name:
        kept[SCOPE] = f"{span.scope.name} {span.scope.version}".strip()
    parameters = span.attributes.get(conventions.PARAMETERS)
    if parameters:
        kept[sc.PARAMETERS] = as_text(parameters)[:_LONGEST]
    if kind not in ("root_call", "sub_call"):
        counted = {key: value for key, value in span.attributes.items() if key in conventions.COUNTED}
        kept |= {sc.USAGE_RAW: as_json(counted)} if counted else {}
    left_out = cut = 0
    for key, value in span.attributes.items():
        if key in _TAKEN or _FLAT_TEXTS.match(key) or value is None:
            continue
        if len(kept) >= _MOST:
            left_out += 1
            continue
        name = FOREIGN + key if key.startswith(("rlm.", FOREIGN)) else key
        kept[name], shortened = _bounded(value)
        cut += shortened
    events, shortened = _events(span)
    cut += shortened
    return (
        kept | events | ({LEFT_OUT: as_json({"left_out": left_out, "cut": cut})} if left_out or cut else {})
    )


def _events(span: OtlpSpan) -> tuple[dict[str, Attribute], bool]:
    """The events that are no messages, and whether something of them was cut."""
    events = [event for event in span.events if not event.name.startswith("gen_ai.")]
    if not events:
        return {}, False
    value, cut = _bounded([[event.name, event.time_ns, event.attributes] for event in events])
    return {EVENTS: value}, cut


def _bounded(value: Any) -> tuple[Attribute, bool]:
    """A value as attributes can hold it, and whether something of it was cut."""
    flat = isinstance(value, list) and all(isinstance(item, str | int | float) for item in value)
    if flat and sum(len(str(item)) for item in value) <= _LONGEST:
        return value, False
    if isinstance(value, bool | int | float):
        return value, False
    text = as_text(value)
    return text[:_LONGEST], len(text) > _LONGEST


# -- spans of this engine

_STATUSES: Final[Mapping[str, sc.Status]] = {
    "ok": "ok", "error": "error", "cancelled": "cancelled", "lost": "lost", "running": "lost",
}  # fmt: skip


def _own(span: OtlpSpan, kind: sc.Kind) -> ForeignSpan:
    """A span of this engine, with all its facts; whole texts where it was sent with them."""
    told = span.attributes
    out = _timed(span, kind)
    out.name, out.model = span.name or None, conventions.model_of(span)
    failed: sc.Status = "error" if span.status == "error" else "ok"
    out.status = "running" if not span.ended else _STATUSES.get(str(told.get(sc.STATUS)), failed)
    digests = {key.removesuffix(".sha256") for key in told if key.endswith(".sha256")}
    _put(out, {prefix: told[prefix] for prefix in digests if isinstance(told.get(prefix), str)})
    whole = {f"{prefix}{end}" for prefix in out.texts for end in ("", ".sha256", ".chars", ".preview")}
    if kind == "root_call" and told.get(messages.SENT):
        out.messages = messages.sent(span)
        whole |= {sc.MESSAGES_PRIOR, sc.MESSAGES_ADDED}
    if kind in ("root_call", "sub_call"):
        out.tokens, out.cost = _own_tokens(span), _own_cost(told)
        whole |= conventions.COUNTED
    _trust_as_told(out, told)
    whole |= {*messages.TEXTS, sc.STATUS, sc.KIND, sc.TRUST, sc.TRUST_WHY, sc.OI_INPUT, sc.OI_OUTPUT,
              "input.mime_type", "output.mime_type"}  # fmt: skip
    facts = {key: value for key, value in told.items() if key not in whole and not messages.FLAT.match(key)}
    bounded = {key: _bounded(value) for key, value in facts.items() if value is not None}
    events, cut_events = _events(span)
    out.attributes = {key: value for key, (value, _) in bounded.items()} | events
    if cut := sum(shortened for _, shortened in bounded.values()) + cut_events:
        out.attributes[LEFT_OUT] = as_json({"left_out": 0, "cut": cut})
    return out


def _trust_as_told(out: ForeignSpan, told: Mapping[str, Any]) -> None:
    """The marks of a run that was imported before it was exported: what was derived or missing there is not
    reported here. Tokens that are known to be wrong stand apart from those that count.
    """
    said = marks(text) if isinstance(text := told.get(sc.TRUST), str) else {}
    held = messages.decoded(told.get(sc.TRUST_WHY))
    why = {name: str(sentence) for name, sentence in held.items()} if isinstance(held, Mapping) else {}
    if said.get("tokens") == "known_wrong":
        raw = messages.decoded(told.get(sc.USAGE_RAW))
        sides = [raw.get(side) for side in ("input", "output")] if isinstance(raw, Mapping) else []
        counts = [count for count in sides if type(count) is int]
        out.tokens = Told(TokenUse(*counts) if len(counts) == 2 else None, "known_wrong")
    out.start = _marked(out.start, said.get("start"), why.get("start"))
    out.seconds = _marked(out.seconds, said.get("seconds"), why.get("seconds"))
    out.tokens = _marked(out.tokens, said.get("tokens"), why.get("tokens"))
    out.cost = _marked(out.cost, said.get("cost"), why.get("cost"))


def _marked(told: Told[T], mark: str | None, why: str | None) -> Told[T]:
    """A number with the mark that it had; one that is not there is missing."""
    if mark == "missing":
        return missing(why)
    if mark is None or (told.value is None and mark != "known_wrong"):
        return told
    return Told(told.value, cast(Mark, mark), why)


def _own_tokens(span: OtlpSpan) -> Told[TokenUse]:
    """As told; none at all where nothing is billed, which a span of this engine says by its cost."""
    tokens = conventions.tokens_of(span)
    if tokens.value is None and span.attributes.get(sc.COST_STATUS) == "free":
        return derived(TokenUse(0, 0), "nothing was billed")
    return tokens


def _own_cost(told: Mapping[str, Any]) -> Told[Decimal]:
    amount = usd_amount(told.get(sc.COST_USD))
    if amount is not None:
        return reported(amount)
    return derived(Decimal(0)) if told.get(sc.COST_STATUS) in ("free", "demo") else missing()
