"""Spans as OTLP carries them, written by hand for tests."""

from __future__ import annotations

from typing import Any

from traces.otlp.spans import OtlpEvent, OtlpScope, OtlpSpan

TRACE = "0af7651916cd43dd8448eb211c80319c"
BEGIN = 1_780_000_000_000_000_000  # nanoseconds since the epoch


def span(
    number: int,
    name: str,
    parent: int | None = None,
    *,
    at: float | None = None,
    lasts: float | None = 1.0,
    events: tuple[OtlpEvent, ...] = (),
    status: str = "unset",
    message: str = "",
    scope: OtlpScope | None = None,
    trace: str = TRACE,
    **attributes: Any,
) -> OtlpSpan:
    """A span with the given number as its id. It begins `at` seconds after the first (default: its number)
    and lasts so many seconds (None: it has not ended). Keys of attributes are written with __ for dots.
    """
    start = BEGIN + round((number if at is None else at) * 1e9)
    return OtlpSpan(
        trace_id=trace,
        span_id=identity(number),
        parent_id=None if parent is None else identity(parent),
        name=name,
        kind="internal",
        start_ns=start,
        end_ns=None if lasts is None else start + round(lasts * 1e9),
        attributes={key.replace("__", "."): value for key, value in attributes.items()},
        events=events,
        status=status,
        message=message,
        scope=scope or OtlpScope(),
    )


def identity(number: int) -> str:
    """The id of a span with a number."""
    return format(number, "016x")


def llm(number: int, parent: int | None = None, prompt: str = "?", reply: str = "!", **more: Any) -> OtlpSpan:
    """A model call by OpenInference."""
    told = {
        "openinference__span__kind": "LLM",
        "llm__model_name": "gpt-5-mini",
        "llm__input_messages__0__message__role": "user",
        "llm__input_messages__0__message__content": prompt,
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__content": reply,
        "llm__token_count__prompt": 10,
        "llm__token_count__completion": 2,
    }
    return span(number, "ChatCompletion", parent, **{**told, **more})


def kind(number: int, oi_kind: str, parent: int | None = None, name: str = "step", **more: Any) -> OtlpSpan:
    """A span of a kind of OpenInference."""
    return span(number, name, parent, **{"openinference__span__kind": oi_kind, **more})
