"""Usage, variables and times as a log of `rlms` has them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from rlm_core import semconv as sc
from traces.detail import decoded
from traces.rows import SpanRow
from traces.step_variables import Delta


def usage(call: SpanRow) -> dict[str, Any]:
    """The usage of a call; without any model where it is not known."""
    told = {} if call.tokens is None else {"input": call.tokens["input"], "output": call.tokens["output"]}
    if call.trusted.get("tokens") == "known_wrong":  # what rlms said of it
        raw = decoded(call.attributes.get(sc.USAGE_RAW))
        told = raw if isinstance(raw, dict) and {"input", "output"} <= raw.keys() else {}
    if not told:
        return summary({})
    sent, made = told["input"], told["output"]
    one: dict[str, Any] = {"total_calls": 1, "total_input_tokens": sent, "total_output_tokens": made}
    if call.cost_usd is not None:
        one["total_cost"] = float(call.cost_usd)
    return summary({call.model or "unknown": one})


def summary(models: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The usage of several models, with what they cost together where any cost is known."""
    costs = [one["total_cost"] for one in models.values() if "total_cost" in one]
    return {"model_usage_summaries": models} | ({"total_cost": sum(costs)} if costs else {})


def apply(names: dict[str, str], delta: Delta | None, clean: Callable[[str], str]) -> None:
    """Change variables as a cell did. Of a value without a preview only its type and size are told."""
    for name, change, value in delta.rows if delta is not None else ():
        if change == "deleted":
            names.pop(clean(name), None)
        elif value.preview is not None:
            names[clean(name)] = clean(value.preview)
        else:
            size = "" if value.size is None else f" of size {value.size}"
            names[clean(name)] = clean(f"<{value.type or 'value'}{size}>")


def seconds(call: SpanRow) -> float | None:
    """The time of a call as rlms said it, also where that is known to be wrong; None where nobody took it."""
    if call.end_ns is None or call.trusted.get("seconds") == "missing":
        return None
    return (call.end_ns - call.start_ns) / 1e9


def iso(ns: int) -> str:
    """A moment in UTC; rlms itself writes local times without a zone."""
    return (
        datetime.fromtimestamp(ns // 1_000_000_000, UTC)
        .replace(microsecond=ns // 1000 % 1_000_000)
        .isoformat()
    )
