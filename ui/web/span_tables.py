"""The tables in the tabs of a span: what is inside, attempts, variables, findings, events."""

from __future__ import annotations

from typing import Any

from traces.reading import SpanRow
from traces.tree import outcome
from ui.figures import duration, money
from ui.tree import problem as what_went_wrong
from ui.visible import line
from ui.web import plain
from ui.web.span_paths import title


def taken(span: SpanRow) -> str:
    """How long a span took; one without an end is still at work, or was lost with its process."""
    if span.end_ns is None:
        return "running" if span.status == "running" else "no end recorded"
    return duration(span.seconds)


def inside(span: SpanRow, spans: list[SpanRow]) -> None:
    """The spans right below, in the order of the record."""
    rows = [
        {
            "span": title(other),
            "outcome": outcome(other),
            "time": taken(other),
            "tokens": None if other.tokens is None else other.tokens["total"],
            "cost": None if other.cost_status is None else money(other.cost_usd, other.cost_status),
            "text": what_went_wrong(other) or line(other.preview or ""),
            "id": other.span_id,
        }
        for other in spans
    ]
    plain.table(rows, key=f"{span.span_id}-inside")


def variables(span: SpanRow, value: Any) -> None:
    """Names that a cell left behind."""
    if not _rows(value):
        plain.json(value)
        return
    plain.table(value, columns=("name", "type", "size", "change", "preview"), key=f"{span.span_id}-variables")


def attempts(span: SpanRow, value: list[dict[str, Any]]) -> None:
    """Every try of a call: how it ended, what it waited for."""
    rows = [
        {
            "attempt": item["attempt"],
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
