"""The tables in the tabs of a span: what is inside, attempts, variables, findings, events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import streamlit as st

from rlm_core import semconv as sc
from traces.reading import RunView, SpanRow
from traces.refused import refused
from traces.tree import outcome
from ui.figures import duration, money
from ui.tree import problem as what_went_wrong
from ui.visible import line
from ui.web import plain
from ui.web.span_paths import title

_NAMES: Final = (
    ("Names it read", "names_read"),
    ("Names it set", "names_written"),
    ("Names lost with its process", "names_lost"),
)
_FACTS: Final = (
    ("parameters", "parameters"),
    ("finish reasons", "finish_reasons"),
    ("usage as reported", "usage_raw"),
    ("price", "price"),
    ("output rule", "output_rule"),
    ("values read (hashes)", "values_read"),
)


def taken(span: SpanRow) -> str:
    """How long a span took; one without an end is still at work, or was lost with its process."""
    if span.end_ns is None:
        return "running" if span.status == "running" else "no end recorded"
    return duration(span.seconds)


def inside(view: RunView, span: SpanRow, spans: list[SpanRow]) -> None:
    """The spans right below, in the order of the record."""
    turned_away = refused(view.spans)
    rows = [
        {
            "span": title(other),
            "outcome": outcome(other, turned_away),
            "time": taken(other),
            **_took(other, other.cost_status is not None and other.span_id not in turned_away),
            "text": what_went_wrong(other) or line(other.preview or ""),
            "id": other.span_id,
        }
        for other in spans
    ]
    plain.table(rows, key=f"{span.span_id}-inside")


def _took(span: SpanRow, asked: bool) -> dict[str, object]:
    """Tokens and cost of a span that asked a model; nothing of others, and of calls that a limit refused."""
    if not asked:
        return {"tokens": None, "cost": None}
    used = span.own_tokens
    return {"tokens": used and used["total"], "cost": money(span.cost_usd, span.cost_status)}


def tool_calls(view: RunView, span: SpanRow, tools: list[SpanRow]) -> None:
    """What the model had called before it replied: round by round, with what it was told."""
    names = {other.span_id: other.attributes for other in tools}
    rows = [
        {
            "round": from_one(names[other.span_id].get(sc.TOOL_ROUND)),
            "tool": names[other.span_id].get(sc.TOOL_NAME),
            "arguments": _payload(view, other, sc.TOOL_ARGUMENTS),
            "result": _payload(view, other, sc.TOOL_RESULT),
            "outcome": outcome(other),
            "problem": what_went_wrong(other),
            "time": taken(other),
            "id": other.span_id,
        }
        for other in tools
    ]
    used = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    plain.table(rows, columns=used, key=f"{span.span_id}-tools")


def from_one(number: object) -> int | None:
    """A number that the record counts from 0, as people count; None where the record does not say."""
    return number + 1 if type(number) is int else None


def _payload(view: RunView, span: SpanRow, prefix: str) -> str | None:
    """A text of a span; its beginning where the record does not hold all of it."""
    digest = span.attributes.get(f"{prefix}.sha256")
    whole = view.payload(digest) if isinstance(digest, str) else None
    return whole if whole is not None else span.attributes.get(f"{prefix}.preview")


def variables(span: SpanRow, detail: Mapping[str, Any]) -> None:
    """Names that a cell left behind, and those that it read, set and lost."""
    value = detail.get("variables")
    if value and not _rows(value):
        plain.json(value)
    elif value:
        columns = ("name", "type", "size", "change", "preview")
        plain.table(value, columns=columns, key=f"{span.span_id}-variables")
    else:
        st.caption("It set no variables." if value == [] else "Its variables are not on record.")
    for label, names in names_of(detail):
        st.caption(label)
        plain.text(names)


def names_of(detail: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Which names a cell read, set and lost, each list with its label."""
    found = ((label, detail.get(key)) for label, key in _NAMES)
    return [
        (label, ", ".join(map(str, names)) if isinstance(names, list) else str(names))
        for label, names in found
        if names
    ]


def facts_of(detail: Mapping[str, Any]) -> list[dict[str, object]]:
    """What was recorded about a span that no other tab says, by name."""
    named = {name: detail.get(key) for name, key in _FACTS}
    hashes = {f"sha256 of {key}": sha256 for key, sha256 in (detail.get("hashes") or {}).items()}
    found = {**named, **(detail.get("facts") or {}), **hashes}
    return [
        {"fact": name, "value": _plain(value)} for name, value in found.items() if value not in (None, [], {})
    ]


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def attempts(span: SpanRow, value: list[dict[str, Any]]) -> None:
    """Every try of a call: how it ended, what it waited for."""
    rows = [
        {
            "attempt": item["attempt"],
            "tool round": from_one(item["tool_round"]),
            "outcome": item["status"],
            "error": item["error_type"],
            "HTTP": item["http_status"],
            "waited before": _seconds(item["wait_seconds"]),
            "Retry-After": _seconds(item["retry_after_seconds"]),
            "time": duration(item["seconds"]) if item["seconds"] is not None else "no end recorded",
            "tokens": None if item["tokens"] is None else item["tokens"]["total"],
            "cost": "unknown" if item["cost_usd"] is None else money(item["cost_usd"], None),
            "message": item["error_message"],
            "finish": item["finish_reasons"],
            "seeded fault": item["demo_fault"],
            "span": item["span_id"],
        }
        for item in value
    ]
    used = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    plain.table(rows, columns=used, key=f"{span.span_id}-attempts")


def _seconds(value: object) -> object:
    return duration(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def findings(span: SpanRow, value: Any) -> None:
    """Remarks that checks made on a cell."""
    if _rows(value):
        plain.table(value, columns=("rule", "line", "message"), key=f"{span.span_id}-findings")
    else:
        plain.json(value)


def events(span: SpanRow, value: list[dict[str, Any]]) -> None:
    """What happened inside a span, and when."""
    rows = [
        {
            "after": duration(max(0, item["time_ns"] - span.start_ns) / 1e9),
            "event": item["name"],
            "facts": item["attributes"],
        }
        for item in value
    ]
    plain.table(rows, key=f"{span.span_id}-events")


def _rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
