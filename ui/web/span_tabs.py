"""The tabs of a span: which ones it has, and how each is filled."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from rlm_core import semconv as sc
from traces.reading import RunView, SpanRow
from ui.figures import counted
from ui.web import plain, span_tables
from ui.web.notices import note
from ui.web.span_sources import document_rows, sources

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
        ("Variables", "variables", span_tables.variables),
        ("Attempts", "attempts", span_tables.attempts),
        ("Findings", "findings", span_tables.findings),
        ("Events", "events", span_tables.events),
    ):
        if detail.get(key):
            tabs.append((name, _table_tab(show, span, detail[key])))
    if detail.get("source_ranges") is not None:
        tabs.append(("Sources", lambda: sources(view, detail["source_ranges"])))
    inside = [other for other in view.spans if other.parent_id == span.span_id]
    if span.kind in ("iteration", "batch") and inside:
        tabs.insert(
            0, ("Calls" if span.kind == "batch" else "Inside", lambda: span_tables.inside(span, inside))
        )
    documents = document_rows(detail.get("corpus"))
    if documents:
        tabs.append(("Documents", lambda: plain.table(documents, key=f"{span.span_id}-documents")))
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
