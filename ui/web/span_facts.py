"""The figures of a span, each under its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import streamlit as st

from rlm_core import semconv as sc
from traces.reading import RunView, SpanRow
from traces.refused import refused_words
from traces.tree import OUTCOMES
from ui.figures import counted, duration, least, money, tokens
from ui.trust_text import marked, reasons
from ui.web.notices import Colour, note
from ui.web.run_header import fact
from ui.web.span_tables import from_one, taken

_CALLS: Final = ("root_call", "sub_call", "attempt")
_SERVED: Final = {"record": "an answer this run already had", "cache": "an equal call of this run"}


def span_facts(view: RunView, span: SpanRow, detail: Mapping[str, Any]) -> None:
    """Model, tokens, cost, times and where a call came from; of a parent what the calls below it took."""
    trust = detail["trust"]
    with st.container(horizontal=True, gap="medium", key="span-facts"):
        if span.kind in _CALLS:
            returned = span.model_returned if span.model_returned not in (None, span.model) else None
            fact("Model", (span.model or "unknown") + (f" (the server says {returned})" if returned else ""))
        for label, value in _token_facts(span, detail):
            fact(label, value)
        if span.kind in _CALLS and span.end_ns is not None and not detail["refused"]:
            fact("Cost", marked(money(detail.get("cost_usd"), span.cost_status), trust, "cost"))
        for label, value in _facts_below(detail["below"]):
            fact(label, value)
        fact("Time", marked(_time(view, span), trust, "seconds"))
        start = min((other.start_ns for other in view.spans), default=span.start_ns)
        fact("Began after", marked(duration(max(0, span.start_ns - start) / 1e9), trust, "start"))
        for label, value in _other_facts(span):
            fact(label, value)
    for why in reasons(detail):
        note(why)


def _time(view: RunView, span: SpanRow) -> str:
    """How long a span took; of one without an end, why it has none."""
    return taken(span) if span.end_ns is None else duration(view.seconds_of(span))


def remarks_of(span: SpanRow) -> list[tuple[str, Colour, str]]:
    """What must be said of a span beside its figures: a word of ours, its colour, a sentence."""
    found: list[tuple[str, Colour, str]] = []
    problem = span.attributes.get(sc.SCHEMA_PROBLEM)
    if problem and span.kind not in ("sub_call", "attempt"):  # theirs is their error, said already
        found.append(("Schema", "orange", f"An answer did not fit the schema asked for: {problem}"))
    if span.attributes.get(sc.COMPACTED) is True:
        turns = span.attributes.get(sc.COMPACTED_TURNS)
        of = counted(turns, "turn") if type(turns) is int else "turns"
        found.append(("Summary", "blue", f"The root was asked to sum up {of}; its reply took their place."))
    return found


def _facts_below(below: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What the calls below a span took; nothing where there are none."""
    if below is None:
        return []
    ended = ", ".join(f"{below['outcomes'][word]:,} {word}" for word in OUTCOMES if word in below["outcomes"])
    turned_away = refused_words(below["refused_sub_calls"])
    ended = f" ({ended})" if ended else ""
    shown = bool(ended or turned_away)
    calls = [("Sub-calls below", f"{below['sub_calls']:,}{ended}{turned_away}")] if shown else []
    if not below["calls"]:
        return calls
    cost = least(below["cost_usd"], below["cost_status"], below["known_usd"] or "0")
    return [*calls, ("Tokens below", tokens(below["tokens"], below["untold_calls"])), ("Cost below", cost)]


def _token_facts(span: SpanRow, detail: Mapping[str, Any]) -> list[tuple[str, str]]:
    if span.kind not in _CALLS or span.end_ns is None or detail["refused"]:
        return []
    trust, used = detail["trust"], span.own_tokens
    if used is None:
        return [("Tokens", marked("unknown", trust, "tokens"))]
    given = f"{used['input']:,}"
    cached = [
        f"{count:,} {word}"
        for count, word in ((span.cached_read, "cached"), (span.cache_write, "written to cache"))
        if count
    ]
    thought = detail["attributes"].get(sc.USAGE_REASONING)
    made = f"{used['output']:,}"
    if type(thought) is int and thought > 0:
        made += f" ({thought:,} reasoning)"
    estimated = " (counted here)" if detail["attributes"].get(sc.USAGE_ESTIMATED) is True else ""
    return [
        ("Tokens in", marked(given + (f" ({', '.join(cached)})" if cached else ""), trust, "tokens")),
        ("Tokens out", marked(made + estimated, trust, "tokens")),
    ]


def _other_facts(span: SpanRow) -> list[tuple[str, str]]:
    facts = []
    if span.phases:
        facts.append(("Phase" if len(span.phases) == 1 else "Phases", ", ".join(span.phases)))
    cpu = span.attributes.get(sc.CELL_CPU)
    if isinstance(cpu, int | float) and not isinstance(cpu, bool):
        facts.append(("CPU", duration(float(cpu))))
    line = span.attributes.get(sc.CALL_LINE)
    if type(line) is int:
        facts.append(("Asked in", f"line {line}" if span.cell is None else f"cell {span.cell}, line {line}"))
    if (source := _SERVED.get(str(span.attributes.get(sc.SERVED_FROM)))) is not None:
        facts.append(("Served from", source))
    if span.kind == "tool":
        facts.append(("Tool", str(span.attributes.get(sc.TOOL_NAME) or "unknown")))
        facts.append(("Round", str(from_one(span.attributes.get(sc.TOOL_ROUND)) or "unknown")))
    attempts = span.attributes.get(sc.ATTEMPTS)
    if type(attempts) is int and attempts != 1:
        facts.append(("Tries", counted(attempts, "attempt")))
    return facts
