"""Spend as text for a terminal: tables, the arithmetic of one call, what other models would cost.

Every text of a record passes `ui.visible` first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from traces.summing import Spend
from ui.figures import counted, money, spent, tokens, with_tokens
from ui.render import table
from ui.trust_text import marks_of_calls
from ui.visible import line

_CLASS_WORDS: Final = {
    "input": "input",
    "cached_read": "cached read",
    "cache_write": "cache write",
    "output": "output",
}
_SPREAD: Final = ("p50_usd", "p95_usd", "max_usd")


def cost_table(report: Mapping[str, Any], by: Sequence[str]) -> list[str]:
    """Spend by the chosen keys, what one call cost (p50, p95 and the dearest), and the total."""
    rows = [(*_place(row, by), _cost(row), *_sizes(row)) for row in report["rows"]]
    head = (*by, "cost", "tokens", "calls", "p50 / p95 / max of a call")
    lines = table(head, rows, right=frozenset(range(len(by), len(head))))
    total = f"total: {_cost({**report, 'cost_usd': report['total_usd']})}"
    return [*lines, total, *_marks(report), *_served(report), *_diagnoses(report), *_gaps(report)]


def what_if_table(report: Mapping[str, Any], by: Sequence[str]) -> list[str]:
    """What was recorded, what it would have been, and what keeps that from being exact."""
    rows = [(*_place(row, by), *_compared(row), *_sizes(row)) for row in report["rows"]]
    head = (*by, "recorded", "would be", "difference", "tokens", "calls", "p50 / p95 / max of a call")
    lines = table(head, rows, right=frozenset(range(len(by), len(head))))
    recorded, would_be, difference = _compared({**report, "cost_usd": report["total_usd"]})
    models = " and ".join(f"{role} = {line(model)}" for role, model in report["as"].items())
    lines.append(f"total with {models}: {would_be}; recorded: {recorded}; difference: {difference}")
    lines.extend([*_marks(report), *_served(report), *_gaps(report), *_remarks(report)])
    return lines


def unsent_words(calls: int, refused: int) -> str:
    """What is said of calls that no model was asked for, of which a limit `refused` some."""
    told = {
        "refused by a limit": refused,
        "answered from a record, the cache or by a patch, or never sent": calls - refused,
    }
    parts = {words: number for words, number in told.items() if number}
    counts = (f"{number:,} {words}" for words, number in parts.items())
    how = ", ".join(counts if len(parts) > 1 else parts)
    return f"{counted(calls, 'call')} that no model was asked for: {how}"


def explanation(document: Mapping[str, Any]) -> Iterator[str]:
    """The arithmetic of one call, line by line."""
    returned = document["model_returned"]
    other = f" (the server says {line(returned)})" if returned and returned != document["model"] else ""
    model = line(document["model"] or "unknown model")
    yield f"{document['kind']} {line(document['span_id'])} of run {line(document['run_id'])}: {model}{other}"
    for row in document["rows"]:
        yield f"  {_product(row)}"
    if document["usage"]["reasoning"]:
        yield f"  (reasoning, {counted(document['usage']['reasoning'], 'token')}, is part of the output)"
    if document["estimated"]:
        yield "  (tokens are an estimate: the engine counted some of them, not the server)"
    if document["rest_usd"] not in (None, "0"):
        yield f"  beyond these: ${document['rest_usd']} (its attempts were priced one by one, see below)"
    yield _result(document)
    if document["price"]:
        yield f"price: {_price_words(document['price'])}"
    attempts = document["attempts"]
    if attempts:
        yield f"{counted(len(attempts), 'attempt')}:"
        yield from (f"  {_attempt(attempt)}" for attempt in attempts)
    if document["litellm"] is not None:
        off = document["litellm"]["difference"]
        words = "" if off is None else f" ({Decimal(off):+.1%})" if Decimal(off) else " (the same)"
        yield f"LiteLLM says of the last attempt: ${document['litellm']['usd']}{words}"


def _place(row: Mapping[str, Any], by: Sequence[str]) -> tuple[str, ...]:
    return tuple("-" if row.get(key) is None else str(row[key]) for key in by)


def _sizes(row: Mapping[str, Any]) -> tuple[str, str, str]:
    spread = [row[name] for name in _SPREAD]
    per_call = "-" if None in spread else " / ".join(money(usd, None) for usd in spread)
    return tokens(row["tokens"], row["untold_calls"]), f"{row['calls']:,}", per_call


def _cost(row: Mapping[str, Any]) -> str:
    return spent(row["cost_usd"], row.get("cost_status"), row.get("known_usd"))


def _marks(report: Mapping[str, Any]) -> Sequence[str]:
    return marks_of_calls(
        Spend(report["calls"], untold=report["untold_calls"], derived=report["derived_calls"])
    )


def _served(report: Mapping[str, Any]) -> Iterator[str]:
    if report["served_calls"]:
        yield f"not counted: {unsent_words(report['served_calls'], report['refused_calls'])}"


def _diagnoses(report: Mapping[str, Any]) -> Iterator[str]:
    found = report["diagnoses"]
    if found["live_calls"]:
        calls = counted(found["live_calls"], "call")
        yield f"beside these runs, diagnoses made {calls} to a model: {money(found['cost_usd'], None)}"


def _gaps(report: Mapping[str, Any]) -> Iterator[str]:
    if report["runs_with_gaps"]:
        yield f"the record of {counted(report['runs_with_gaps'], 'run')} has gaps: calls may be missing"


def _compared(row: Mapping[str, Any]) -> tuple[str, str, str]:
    recorded = {"cost_usd": row["recorded_usd"], "known_usd": row["recorded_known_usd"]}
    difference = row["difference_usd"]
    if difference is None:
        return _cost(recorded), _cost(row), "unknown"
    sign = "-" if Decimal(difference) < 0 else "+" if Decimal(difference) else ""
    return _cost(recorded), _cost(row), sign + money(difference.removeprefix("-"), None)


def _remarks(report: Mapping[str, Any]) -> Iterator[str]:
    for one in report["unpriced"]:
        model = line(one["model"])
        yield (
            f"the price of {model} is unknown ({counted(one['calls'], 'call')}); "
            f"set one with: rlmscope prices set {model} --input USD --output USD"
        )
    if report["without_usage"]:
        yield f"{counted(report['without_usage'], 'call')} did not report a usage that can be priced"
    if report["estimated"]:
        yield f"{counted(report['estimated'], 'call')}: tokens were estimated by the engine, not reported"
    if report["not_billed"]:
        calls = counted(report["not_billed"], "call")
        yield f"{calls} cost nothing either way: never answered"


def _product(row: Mapping[str, Any]) -> str:
    rate, usd = row["usd_per_mtok"], row["cost_usd"]
    name = f"{_CLASS_WORDS[row['class']]:<11}"
    count = counted(row["tokens"]["total"], "token")
    if rate is None:
        return f"{name} {count}" + (", not billed" if usd == "0" else " at an unknown price")
    made = "unknown" if usd is None else f"${usd}"
    return f"{name} {count} x ${line(rate)} per million = {made}"


def _result(document: Mapping[str, Any]) -> str:
    why = f": {line(document['why'])}" if document["why"] else ""
    if document["total_usd"] is None:
        known = document["known_usd"]
        least = f"; at least ${known}, which its other attempts cost" if known not in (None, "0") else ""
        return f"cost: unknown{why}{least}"
    return f"cost: ${document['total_usd']} ({document['cost_status']}){why}"


def _price_words(price: Mapping[str, str]) -> str:
    words = [line(price.get("source", "unknown source")), f"model {line(price.get('model', 'unknown'))}"]
    words += [f"as of {line(price['as_of'])}"] if "as_of" in price else []
    words += [f"valid from {line(price['valid_from'])}"] if "valid_from" in price else []
    return ", ".join(words)


def _used(counts: Mapping[str, int] | None) -> str:
    return tokens(counts) if counts else with_tokens(counts)


def _attempt(attempt: Mapping[str, Any]) -> str:
    number = "?" if attempt["attempt"] is None else attempt["attempt"] + 1
    status = " ".join(part for part in (attempt["status"], attempt["error_type"]) if part)
    if attempt["cost_status"] == "free" and not attempt["tokens"]:
        return f"{number}: {line(status)}, not billed"
    used = _used(attempt["tokens"]) + (" (estimated)" if attempt["estimated"] else "")
    usd = attempt["cost_usd"]
    return f"{number}: {line(status)}, {used}, {'cost unknown' if usd is None else f'${usd}'}"
