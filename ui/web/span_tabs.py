"""The tabs of a span: which ones it has, and how each is filled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import streamlit as st

from rlm_core import semconv as sc
from traces.explain import explain
from traces.reading import RunView, SpanRow
from traces.summing import CALL_KINDS
from ui.cost_text import explanation
from ui.figures import counted
from ui.passages import document_rows
from ui.web import plain, span_tables
from ui.web.notices import note
from ui.web.span_images import images
from ui.web.span_sources import sources

Tab = tuple[str, Callable[[], None]]
_TEXTS: Final = (
    ("Exception", "exception"),
    ("Result", "result"),
    ("Arguments", "arguments"),
    ("Answer", "answer"),
    ("Response", "response"),
    ("Code", "code"),
    ("Output", "stdout"),
    ("Prompt", "prompt"),
    ("Question", "question"),
    ("Reasoning", "reasoning"),
    ("Best partial", "best_partial"),
    ("Value", "value"),
)
_TABLES: Final[tuple[tuple[str, str, Callable[[SpanRow, Any], None]], ...]] = (
    ("Variables", "variables", span_tables.variables),
    ("Attempts", "attempts", span_tables.attempts),
    ("Findings", "findings", span_tables.findings),
    ("Events", "events", span_tables.events),
)
_ROLES: Final = ("system", "user", "assistant", "tool")
_MISSING: Final = "This text is not in the record."


def tabs_of(view: RunView, span: SpanRow, detail: Mapping[str, Any]) -> list[Tab]:
    """Names and contents of a span's tabs, the most asked for first; nothing is drawn before it is called."""
    inside = [other for other in view.spans if other.parent_id == span.span_id]
    tabs = list(_texts(span, detail))
    if tools := [other for other in inside if other.kind == "tool"]:
        tabs.append(("Tool calls", partial(span_tables.tool_calls, view, span, tools)))
    if span.kind in ("iteration", "batch") and inside:
        name = "Calls" if span.kind == "batch" else "Inside"
        tabs.insert(0, (name, partial(span_tables.inside, view, span, inside)))
    if shown := detail.get("images"):
        tabs.append(("Images", partial(images, view, shown)))
    if detail.get("messages"):
        tabs.append(("Messages", partial(_messages, span, detail)))
    for name, key, show in _TABLES:
        if detail.get(key) or (key == "variables" and span.kind == "cell" and span_tables.names_of(detail)):
            tabs.append((name, partial(show, span, detail if key == "variables" else detail[key])))
    if span.kind in CALL_KINDS:
        tabs.append(("Cost", partial(_cost, view, span)))
    if detail.get("source_ranges") is not None:
        tabs.append(("Sources", partial(sources, view, span, detail["source_ranges"])))
    if documents := document_rows(detail.get("corpus")):
        tabs.append(("Documents", partial(plain.table, documents, key=f"{span.span_id}-documents")))
    if detail.get("child_context") is not None:
        tabs.append(("Context given", partial(_structure, span, "child_context", detail["child_context"])))
    if settings := _settings(detail):
        tabs.append(("Settings", partial(plain.json, settings, expanded=3)))
    if facts := span_tables.facts_of(detail):
        tabs.append(("Facts", partial(plain.table, facts, key=f"{span.span_id}-facts")))
    return [*tabs, ("Raw", partial(_raw, span, detail))]


def _texts(span: SpanRow, detail: Mapping[str, Any]) -> Iterator[Tab]:
    for name, key in _TEXTS:
        if key == "stdout":
            if any(detail.get(part) is not None for part in ("stdout", "stdout_shown", "native_output")):
                yield name, partial(_output, span, detail)
        elif detail.get(key) is not None:
            yield name, partial(_text, span, key, detail[key])


def _text(span: SpanRow, key: str, text: str) -> None:
    if text:
        language = {"code": "python", "arguments": "json"}.get(key)
        address = st.query_params  # what the run was searched for is looked for here too
        words = "" if address.get("regex") else address.get("q", "")
        name = f"{key}.txt"
        plain.payload(text, key=f"{span.span_id}-{key}", file_name=name, language=language, find=words)
    else:
        st.text("(empty)")


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
    whole, shown, native = (detail.get(key) for key in ("stdout", "stdout_shown", "native_output"))
    true_chars = detail["attributes"].get(sc.STDOUT_TRUE_CHARS)
    if whole is not None and type(true_chars) is int and true_chars > len(whole):
        note(f"The cell printed {true_chars:,} characters; {len(whole):,} of them were kept.")
    if whole is not None and shown is not None and whole.strip() == shown.strip():
        st.caption("The root was shown all of it.")
        shown = None
    for name, key, text in (
        ("Printed, in full", "stdout", whole),
        ("As shown to the root", "stdout_shown", shown),
        ("Printed by code that is not Python", "native_output", native),
    ):
        if text is not None:
            st.caption(f"{name}: {counted(len(text), 'character')}")
            plain.payload(text, key=f"{span.span_id}-{key}", file_name=f"{key}.txt")


def _cost(view: RunView, span: SpanRow) -> None:
    """The arithmetic of what a call cost, as it was recorded."""
    plain.code("\n".join(explanation(explain(view, span))))


def _structure(span: SpanRow, key: str, value: Any) -> None:
    """Something of any size that is no text, as JSON."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    plain.payload(text, key=f"{span.span_id}-{key}", file_name=f"{key}.json", language="json")


def _settings(detail: Mapping[str, Any]) -> dict[str, object]:
    """Limits, seeds, versions: what it takes to run the same again."""
    keys = (
        sc.OPTIONS,
        sc.LIMITS,
        sc.RETRIES,
        sc.LEDGER,
        sc.SEEDS,
        sc.VERSIONS,
        sc.SANDBOX_LAYERS,
        sc.PROMPTS_VERSION,
    )
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
