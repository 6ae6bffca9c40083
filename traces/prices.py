"""Prices that a person set: kept in the user log, folded into the price table that runs and reports use.

A statement is `{"kind": "price", "model", "input": "0.25", "output": "2", "cached_read"?, "cache_write"?,
"from"?: ISO date, "note"?}` in dollars per million tokens, or `{"kind": "price", "model", "unset": true}`.
Nothing here touches recorded runs: each call keeps the price row it was priced by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from rlm_core.errors import InputError
from rlm_core.models import check_model_id, is_demo
from rlm_core.price_rows import CLASSES, Override, PriceRow
from rlm_core.pricing import PriceTable, decimal_text
from traces import user_log
from traces.facts import usd_amount
from traces.home import Home

LARGEST_RATE: Final = Decimal(1_000_000)  # dollars per million tokens: a dollar for each token
RATE_DIGITS: Final = 12  # so that every product with a number of tokens is an amount the store can hold
_LONGEST_NOTE: Final = 1000


def set_price(
    home: Home,
    model: str,
    rates: Mapping[str, Decimal],
    *,
    valid_from: date | None = None,
    note: str | None = None,
) -> Override:
    """Set the price of a model id for later calls, and return it.

    `rates` holds dollars per million tokens by class, `input` and `output` at least; a class without a rate
    is ordinary input. Without `valid_from` (a UTC day) the price replaces everything set for the model
    before; with it the price counts from that day on and earlier statements stand before it. Raises
    InputError for what cannot be a price, RecordError when it cannot be written.
    """
    _check_model(model)
    for name in ("input", "output"):
        if name not in rates:
            raise InputError(f"the price of {name} tokens is missing")
    for name, rate in rates.items():
        if not is_rate(rate):
            raise InputError(
                f"the price of {name} tokens must be from 0 to {LARGEST_RATE:,} dollars per million tokens, "
                f"with at most {RATE_DIGITS} decimals, not {str(rate)[:40]}"
            )
    if note is not None and (len(note) > _LONGEST_NOTE or not note.isprintable()):
        raise InputError(f"the note must be one line of at most {_LONGEST_NOTE:,} printable characters")
    facts: dict[str, Any] = {"model": model, **{name: decimal_text(rates[name]) for name in rates}}
    facts |= {} if valid_from is None else {"from": valid_from.isoformat()}
    facts |= {} if note is None else {"note": note}
    user_log.append(home, user_log.PRICE, facts)
    return Override(model, _complete(rates), datetime.now(UTC).date().isoformat(), valid_from, note)


def unset_price(home: Home, model: str) -> int:
    """Withdraw what was set for a model; returns how many prices that were.

    Raises InputError when there are none, RecordError when it cannot be written.
    """
    standing = sum(override.model == model for override in overrides(home))
    if not standing:
        raise InputError(f"no price was set for {model[:100]!r}; `rlmscope prices` lists those that were")
    user_log.append(home, user_log.PRICE, {"model": model, "unset": True})
    return standing


def overrides(home: Home) -> list[Override]:
    """The prices that stand, by model and first day. Raises RecordError when the log cannot be read."""
    standing: dict[str, dict[date, Override]] = {}
    for record in user_log.records(home):
        model = record.get("model")
        if record.get("kind") != user_log.PRICE or not isinstance(model, str):
            continue
        if record.get("unset") is True:
            standing.pop(model, None)
            continue
        override = _override(model, record)
        if override.valid_from is None:
            standing[model] = {}
        standing.setdefault(model, {})[override.valid_from or date.min] = override
    return [by_start[start] for _, by_start in sorted(standing.items()) for start in sorted(by_start)]


def price_table(home: Home) -> PriceTable:
    """What calls cost in this home. Raises RecordError when the user log cannot be read."""
    return PriceTable(overrides(home))


def price_list(home: Home, models: Iterable[str], *, now: datetime | None = None) -> list[dict[str, Any]]:
    """The price rows of models, as JSON values: in force now, and those that are set for a later day.

    Each has `model, status (priced, free, unknown or demo), input_per_mtok, cached_read_per_mtok,
    cache_write_per_mtok, output_per_mtok` (decimal strings, null for unknown), `above_input_tokens` (a row is
    for calls with more than so many), `source, priced_as, valid_from, set, note, as_of, in_force`.
    """
    now = now or datetime.now(UTC)
    standing = overrides(home)
    table = PriceTable(standing)
    listed: list[dict[str, Any]] = []
    for model in dict.fromkeys(models):
        override = None if is_demo(model) else table.override(model, now.date())
        rows = [] if is_demo(model) else table.rows(model, now)
        in_force: list[PriceRow | None] = [*rows] or [None]
        listed.extend(_listed(model, row, override, now.date()) for row in in_force)
        later = (o for o in standing if o.model == model and o.valid_from and o.valid_from > now.date())
        listed.extend(_listed(model, o.row(now.date()), o, now.date()) for o in later)
    return listed


def is_rate(rate: Decimal) -> bool:
    """Whether this can be a price for a million tokens: exact in the store whatever it is multiplied by."""
    if not rate.is_finite() or not 0 <= rate <= LARGEST_RATE:
        return False
    exponent = rate.normalize().as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -RATE_DIGITS


def _check_model(model: str) -> None:
    check_model_id(model, "the model")
    if is_demo(model):
        raise InputError(f"{model} is no language model and costs nothing; a price cannot be set for it")


def _complete(rates: Mapping[str, Decimal]) -> dict[str, Decimal]:
    return {name: rates.get(name, rates["input"]) for name in CLASSES}


def _override(model: str, record: Mapping[str, Any]) -> Override:
    """A statement of the log. One that says nothing usable makes the price unknown: it is not passed over."""
    said, note = str(record.get("time", ""))[:10], record.get("note")
    note = note if isinstance(note, str) else None
    valid_from, rates = None, {name: usd_amount(record[name]) for name in CLASSES if name in record}
    usable = {name: rate for name, rate in rates.items() if rate is not None and is_rate(rate)}
    complete = usable.keys() >= {"input", "output"} and usable.keys() == rates.keys()
    if record.get("from") is not None:
        try:
            valid_from = date.fromisoformat(record["from"])
        except (TypeError, ValueError):
            complete = False
    return Override(model, _complete(usable) if complete else None, said, valid_from, note)


def _listed(model: str, row: PriceRow | None, override: Override | None, today: date) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(row.json) if row is not None else {}
    rates = {f"{name}_per_mtok": facts.get(f"{name}_per_mtok") for name in CLASSES}
    if is_demo(model):
        rates, status, facts = dict.fromkeys(rates, "0"), "demo", {"source": "demo model"}
    else:
        status = "unknown" if row is None else "free" if row.is_free else "priced"
    start = override.valid_from if override is not None else None
    unusable = f"override {override.said} that cannot be used" if override is not None else None
    return {
        "model": model,
        "status": status,
        **rates,
        "above_input_tokens": row.above if row is not None else 0,
        "source": facts.get("source", unusable),
        "priced_as": facts.get("model"),
        "valid_from": start.isoformat() if start is not None else facts.get("valid_from"),
        "set": override.said if override is not None else None,
        "note": override.note if override is not None else None,
        "as_of": today.isoformat(),
        "in_force": start is None or start <= today,
    }
