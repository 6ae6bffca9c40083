"""The arithmetic of one call's cost, as it was recorded: nothing is priced again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.cost_check import difference
from rlm_core.errors import InputError
from traces.facts import CLASSES, Facts, class_costs, class_tokens, exact_total, token_counts, usd_amount
from traces.folding import printable
from traces.rows import SpanRow, money_json
from traces.summing import CALL_KINDS
from traces.view import RunView

_EXACT: Final = Context(prec=60)


def explain(view: RunView, span: SpanRow) -> dict[str, Any]:
    """The keys of `rlmscope cost` for one root call or sub-call, and how its figure comes about.

    `rows` are its classes: {class, tokens, usd_per_mtok, cost_usd, ...}. Beside them: `usage` (with
    `reasoning` and `estimated`), `price` (the row on the span), `sum_usd` of the rows, `rest_usd` (what the
    call cost beyond them), `why` (a clause, where the cost is unknown or nothing), `attempts`, `litellm`.
    Raises InputError for a span that is no model call.
    """
    if span.kind not in CALL_KINDS:
        raise InputError(
            f"the span {span.span_id} is no model call but of kind {span.kind}; {_instead(span)}"
        )
    facts = Facts(span.attributes)
    raw = facts.text(sc.COST_PRICE)
    tokens = class_tokens(span.tokens, span.cached_read, span.cache_write)
    price = _price_row(raw)
    rows = _rows(tokens, class_costs(tokens, span.cost_usd, raw), price)
    attempts = [_attempt(child) for child in view.spans if _is_attempt_of(child, span)]
    known = [usd_amount(attempt["cost_usd"]) or Decimal(0) for attempt in attempts]
    lower = span.cost_usd if span.cost_usd is not None else exact_total(known)
    whole, rest = _sum_and_rest(span.cost_usd, rows)
    return {
        "total_usd": money_json(span.cost_usd),
        "known_usd": money_json(lower),
        "cost_status": span.cost_status,
        "tokens": span.tokens or token_counts(0, 0),
        "calls": 1,
        "rows": rows,
        "run_id": span.run_id,
        "span_id": span.span_id,
        "kind": span.kind,
        "role": span.role,
        "model": span.model,
        "model_returned": span.model_returned,
        "usage": {**tokens, "reasoning": facts.count(sc.USAGE_REASONING)},
        "estimated": facts.flag(sc.USAGE_ESTIMATED),
        "price": price,
        "sum_usd": money_json(whole),
        "rest_usd": money_json(rest),
        "why": _why(span, facts, price),
        "served_from": facts.text(sc.SERVED_FROM),
        "attempts": attempts,
        "litellm": _litellm(facts, attempts),
    }


def _instead(span: SpanRow) -> str:
    if span.kind == "attempt":
        return f"explain the call it belongs to: {span.parent_id}"
    return "it costs what the calls below it cost; `rlmscope show` lists the calls"


def _price_row(raw: str | None) -> dict[str, str] | None:
    """The texts of the price row on a span; None where there is none that can be read."""
    try:
        row = json.loads(raw) if raw is not None else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    return {printable(key): printable(value) for key, value in row.items() if isinstance(value, str)}


def _rows(
    tokens: Mapping[str, int | None], costs: Mapping[str, Decimal | None], price: Mapping[str, str] | None
) -> list[dict[str, Any]]:
    """One row for each class that has tokens."""
    rates, rows = price or {}, []
    for name in CLASSES:
        if count := tokens[name]:
            counts = token_counts(*((0, count) if name == "output" else (count, 0)))
            usd, rate = money_json(costs[name]), rates.get(f"{name}_per_mtok")
            rate = rate if usd_amount(rate) is not None else None
            rows.append({"class": name, "cost_usd": usd, "tokens": counts, "calls": 1, "usd_per_mtok": rate})
    return rows


def _sum_and_rest(
    cost_usd: Decimal | None, rows: list[dict[str, Any]]
) -> tuple[Decimal | None, Decimal | None]:
    """The sum of the rows, and what the call cost beyond it; None for what is unknown."""
    parts = [usd_amount(row["cost_usd"]) for row in rows]
    if cost_usd is None or None in parts:
        return None, None
    whole = exact_total([part or Decimal(0) for part in parts])
    return whole, _EXACT.subtract(cost_usd, whole)


def _is_attempt_of(child: SpanRow, span: SpanRow) -> bool:
    return child.kind == "attempt" and child.parent_id == span.span_id


def _attempt(span: SpanRow) -> dict[str, Any]:
    facts = Facts(span.attributes)
    return {
        "attempt": facts.count(sc.ATTEMPT),
        "span_id": span.span_id,
        "status": span.status,
        "error_type": span.error_type,
        "tokens": span.tokens,
        "estimated": facts.flag(sc.USAGE_ESTIMATED),
        "cost_usd": money_json(span.cost_usd),
        "cost_status": span.cost_status or "unknown",
        "litellm_usd": facts.text(sc.COST_LITELLM),
    }


def _why(span: SpanRow, facts: Facts, price: Mapping[str, str] | None) -> str | None:
    """Why a cost is not known, or why there is none."""
    if span.cost_status == "demo":
        return "a demo model answered: no language model was involved"
    if span.cost_status == "unknown":
        if span.status in ("running", "lost"):
            return f"the call is {span.status}: what it cost is not recorded"
        if span.tokens is None:
            return "no usage was reported for it"
        return f"no price was known for {span.model or 'its model'}, or its usage does not tell all classes"
    if span.cost_status != "free":
        return None
    if facts.text(sc.SERVED_FROM) == "record":
        return "the answer was on record already: nothing was asked"
    if price is not None:
        return "its price is 0"
    return "no attempt of it was answered, and nothing is billed for that"


def _litellm(facts: Facts, attempts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """LiteLLM's figure for the last attempt beside ours, and how far off it is."""
    theirs = usd_amount(facts.text(sc.COST_LITELLM))
    ours = usd_amount(attempts[-1]["cost_usd"]) if attempts else None
    if theirs is None:
        return None
    off = None if ours is None else f"{difference(ours, theirs):.6f}"
    return {"usd": money_json(theirs), "difference": off}
