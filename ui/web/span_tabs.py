"""The tabs of a span: which ones it has, and how each is filled."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from rlm_core import semconv as sc
from traces.reading import RunView, SpanRow
from traces.tree import outcome
from ui.figures import counted, duration, money
from ui.visible import line
from ui.web import plain
from ui.web.notices import note
from ui.web.span_paths import title
from ui.web.span_sources import sources

Tab = tuple[str, Callable[[], None]]
_ROLES: Final = ("system", "user", "assistant", "tool")
_MISSING: Final = "This text is not in the record."


def tabs_of(view: RunView, span: SpanRow, detail: Mapping[str, Any]) -> list[Tab]:
    """Names and contents of a span's tabs, the most asked for first; nothing is drawn before it is called."""
    texts = {
        "Exception": ("exception", None),
        "Answer": ("answer", None),
        "Response": ("response", None),
        "Code": ("code", "python"),
        "Prompt": ("prompt", None),
        "Question": ("question", None),
        "Reasoning": ("reasoning", None),
    }
    tabs: list[Tab] = []
    for name, (key, language) in texts.items():
        if detail.get(key) is not None:
            tabs.append((name, _text_tab(span, key, detail[key], language)))
    if detail.get("messages"):
        tabs.append(("Messages", lambda: _messages(span, detail)))
    if detail.get("stdout") is not None or detail.get("stdout_shown") is not None:
        tabs.insert(_after(tabs, "Code"), ("Output", lambda: _output(span, detail)))
    for name, key, show in (
        ("Variables", "variables", _variables),
        ("Attempts", "attempts", _attempts),
        ("Findings", "findings", _findings),
        ("Events", "events", _events),
    ):
        if detail.get(key):
            tabs.append((name, _table_tab(show, span, detail[key])))
    if detail.get("source_ranges") is not None:
        tabs.append(("Sources", lambda: sources(view, detail["source_ranges"])))
    inside = [other for other in view.spans if other.parent_id == span.span_id]
    if span.kind in ("iteration", "batch") and inside:
        tabs.insert(0, ("Calls" if span.kind == "batch" else "Inside", lambda: _inside(span, inside)))
    settings = _settings(detail)
    if settings:
        tabs.append(("Settings", lambda: plain.json(settings, expanded=3)))
    tabs.append(("Raw", lambda: _raw(span, detail)))
    return tabs


def _after(tabs: list[Tab], name: str) -> int:
    return next((place + 1 for place, tab in enumerate(tabs) if tab[0] == name), len(tabs))


def _text_tab(span: SpanRow, key: str, text: str, language: str | None) -> Callable[[], None]:
    def fill() -> None:
        if text:
            plain.payload(text, key=f"{span.span_id}-{key}", file_name=f"{key}.txt", language=language)
        else:
            st.text("(empty)")

    return fill


def _table_tab(show: Callable[[SpanRow, Any], None], span: SpanRow, value: Any) -> Callable[[], None]:
    return lambda: show(span, value)


def _messages(span: SpanRow, detail: Mapping[str, Any]) -> None:
    """What the root was sent, each message whole; the newest is open."""
    if not detail["messages_complete"]:
        note("Earlier messages of this conversation are not in the record.")
    messages = detail["messages"]
    for number, message in enumerate(messages):
        text = message.get("content")
        role = message["role"] if message["role"] in _ROLES else "message"
        size = "not in the record" if text is None else counted(len(text), "character")
        key = f"{span.span_id}-message-{number}"
        newest = number == len(messages) - 1
        box = st.expander(f"{number + 1}. {role}, {size}", expanded=newest, key=key, on_change="rerun")
        if box.open:
            with box:
                if text is None:
                    st.text(_MISSING)
                else:
                    plain.payload(text, key=f"{key}-text", file_name=f"message-{number + 1}.txt")


def _output(span: SpanRow, detail: Mapping[str, Any]) -> None:
    whole, shown = detail.get("stdout"), detail.get("stdout_shown")
    true_chars = detail["attributes"].get(sc.STDOUT_TRUE_CHARS)
    if whole is not None and type(true_chars) is int and true_chars > len(whole):
        note(f"The cell printed {true_chars:,} characters; {len(whole):,} of them were kept.")
    if whole is not None and shown is not None and whole.strip() == shown.strip():
        st.caption("The root was shown all of it.")
        shown = None
    for name, key, text in (
        ("Printed, in full", "stdout", whole),
        ("As shown to the root", "stdout_shown", shown),
    ):
        if text is not None:
            st.caption(f"{name}: {counted(len(text), 'character')}")
            plain.payload(text, key=f"{span.span_id}-{key}", file_name=f"{key}.txt")


def _inside(span: SpanRow, spans: list[SpanRow]) -> None:
    """The spans right below, in the order of the record."""
    rows = [
        {
            "span": title(other),
            "outcome": outcome(other),
            "time": "no end recorded" if other.end_ns is None else duration(other.seconds),
            "tokens": None if other.tokens is None else other.tokens["total"],
            "cost": None if other.cost_status is None else money(other.cost_usd, other.cost_status),
            "text": line(other.preview or ""),
            "id": other.span_id,
        }
        for other in spans
    ]
    plain.table(rows, key=f"{span.span_id}-inside")


def _variables(span: SpanRow, value: Any) -> None:
    if not _rows(value):
        plain.json(value)
        return
    plain.table(value, columns=("name", "type", "size", "change", "preview"), key=f"{span.span_id}-variables")


def _attempts(span: SpanRow, value: list[dict[str, Any]]) -> None:
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


def _findings(span: SpanRow, value: Any) -> None:
    if _rows(value):
        plain.table(value, columns=("rule", "line", "message"), key=f"{span.span_id}-findings")
    else:
        plain.json(value)


def _events(span: SpanRow, value: list[dict[str, Any]]) -> None:
    rows = [
        {
            "after": duration(max(0, item["time_ns"] - span.start_ns) / 1e9),
            "event": item["name"],
            "facts": item["attributes"],
        }
        for item in value
    ]
    plain.table(rows, key=f"{span.span_id}-events")


def _settings(detail: Mapping[str, Any]) -> dict[str, object]:
    """Limits, seeds, versions: what it takes to run the same again."""
    keys = (sc.LIMITS, sc.LEDGER, sc.SEEDS, sc.VERSIONS, sc.PROMPTS_VERSION, sc.CORPUS_ID)
    found = {key.removeprefix("rlm."): detail["attributes"].get(key) for key in keys}
    return {name: _parsed(value) for name, value in found.items() if value is not None}


def _parsed(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _raw(span: SpanRow, detail: Mapping[str, Any]) -> None:
    """Every recorded attribute, as JSON."""
    text = json.dumps(dict(detail["attributes"]), ensure_ascii=False, indent=2, sort_keys=True, default=str)
    plain.payload(text, key=f"{span.span_id}-raw", file_name="attributes.json", language="json")


def _rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
