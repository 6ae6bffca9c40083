"""Price rows: dollars for a million tokens of each billable class.

They come from the offline table of genai-prices, found by the model's LiteLLM id, or were set by a person.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from rlm_core.telemetry import as_json

Costs = Mapping[str, Decimal]

CLASSES: Final = ("input", "cached_read", "cache_write", "output")
"""The disjoint billable classes of tokens: input without cached reads and writes, those two, output."""

# LiteLLM's provider prefix -> provider id of genai-prices. Only exact names: a prefix that merely resembles a
# provider ("openai_like/...") is somebody else's server.
_PROVIDERS: Final = {
    "anthropic": "anthropic", "azure": "azure", "azure_ai": "azure", "baseten": "baseten", "bedrock": "aws",
    "cerebras": "cerebras", "cloudflare": "cloudflare", "cohere": "cohere", "cohere_chat": "cohere",
    "databricks": "databricks", "deepseek": "deepseek", "fireworks_ai": "fireworks", "gemini": "google",
    "github_copilot": "github-copilot", "groq": "groq", "meta_llama": "meta", "minimax": "minimax",
    "mistral": "mistral", "moonshot": "moonshotai", "novita": "novita", "openai": "openai",
    "openrouter": "openrouter", "ovhcloud": "ovhcloud", "perplexity": "perplexity", "together_ai": "together",
    "vertex_ai": "google", "xai": "x-ai", "zai": "zai",
}  # fmt: skip

_KEYS: Final = {
    "input": "input_mtok",
    "cached_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "output": "output_mtok",
}
# Prices of things that every call may contain and that reported usage does not separate: such a model's cost
# cannot be told from its tokens alone.
_BEYOND_TOKENS: Final = ("requests_kcount", "output_reasoning_mtok", "output_citation_mtok")
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Rates that apply to calls with more than `above` input tokens (up to the next row of the model).

    `json` is what a span keeps of it: source, model, `*_per_mtok` for each class (decimal strings, in dollars
    for a million tokens), `as_of` (the UTC date for which it was looked up) and, for a price that is only
    valid from a date on, `valid_from`.
    """

    rates: Costs
    json: str
    above: int = 0

    @property
    def is_free(self) -> bool:
        """Whether every class costs nothing."""
        return not any(self.rates.values())


@dataclass(frozen=True, slots=True)
class Override:
    """A price that a person set for a model id, over whatever the table says.

    `rates` holds all `CLASSES`; None: what was set cannot be used, and the price is unknown. `said` is the
    UTC date on which it was set, `valid_from` the first UTC date of calls it applies to (None: all).
    """

    model: str
    rates: Costs | None
    said: str
    valid_from: date | None = None
    note: str | None = None

    def row(self, as_of: date) -> PriceRow | None:
        """The row for calls of this UTC date; None when the price is unknown."""
        if self.rates is None:
            return None
        dated = {} if self.valid_from is None else {"valid_from": self.valid_from.isoformat()}
        facts = _facts(self.rates, f"override {self.said}", self.model, as_of)
        return PriceRow(self.rates, as_json(facts | dated))


def listed_rows(model: str, now: datetime) -> list[PriceRow]:
    """The rows of genai-prices that apply to a model at a time, one for each tier; none: it is not known."""
    listing = _listing(model)
    return listing.rows(model, now.astimezone(UTC)) if listing is not None else []


def row_for(rows: list[PriceRow], input_tokens: int) -> PriceRow | None:
    """The row among those of `listed_rows` that applies to a call with so many input tokens."""
    # a tier begins above its start and applies to the whole call
    place = bisect_left([row.above for row in rows], input_tokens)
    return rows[max(place - 1, 0)] if rows else None


def decimal_text(amount: Decimal) -> str:
    """A dollar amount as plain digits, without an exponent or trailing zeros, exact."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text


def _facts(rates: Costs, source: str, model: str, as_of: date) -> dict[str, str]:
    facts = {f"{name}_per_mtok": decimal_text(rates[name]) for name in CLASSES}
    return facts | {"source": source, "model": model, "as_of": as_of.isoformat()}


class _Listing:
    """A model of the price table, with the rows already made for it."""

    def __init__(self, info: Any) -> None:
        self.info = info
        self._rows: dict[tuple[int, date], list[PriceRow]] = {}

    def rows(self, model: str, now: datetime) -> list[PriceRow]:
        # one of a few objects that live as long as the table, so that id() is a safe key
        price = self.info.get_prices(now)
        key = (id(price), now.date())
        if key not in self._rows:
            self._rows[key] = self._made(price, model, now.date())
        return self._rows[key]

    def _made(self, price: Any, model: str, as_of: date) -> list[PriceRow]:
        source = f"genai-prices {import_module('genai_prices').__version__}"
        dated = _start_of(self.info.prices, price)
        made = []
        for above in (0, *_tier_starts(price)):
            rates = _rates(price, model, above + 1)
            if rates is None:
                return []
            made.append(PriceRow(rates, as_json(_facts(rates, source, self.info.id, as_of) | dated), above))
        return made


@lru_cache(maxsize=1024)
def _listing(model: str) -> _Listing | None:
    """Look a model up by its LiteLLM id; None when the table does not know it."""
    prefix, slash, rest = model.partition("/")
    provider = _PROVIDERS.get(prefix) if slash else None
    if slash and provider is None:
        return None
    name = rest if slash else model
    if provider == "aws":
        name = name.removeprefix("converse/").removeprefix("invoke/")
    snapshot = import_module("genai_prices.data_snapshot").get_snapshot()
    try:
        return _Listing(snapshot.find_provider_model(name, None, provider, None)[1])
    except LookupError:
        return None


def _start_of(prices: Any, price: Any) -> dict[str, str]:
    """{"valid_from": date} of a price that the table gives from a date on."""
    dated = prices if isinstance(prices, list) else []
    conditions = (choice.constraint for choice in dated if choice.prices is price)
    start = getattr(next(conditions, None), "start_date", None)
    return {"valid_from": start.isoformat()} if isinstance(start, date) else {}


def _tier_starts(price: Any) -> list[int]:
    """The input sizes above which another tier applies, ascending."""
    tiers = (tier for key in _KEYS.values() for tier in getattr(getattr(price, key), "tiers", ()))
    return sorted({int(tier.start) for tier in tiers})


def _rates(price: Any, model: str, input_tokens: int) -> Costs | None:
    given = {key: value for key, value in vars(price).items() if value is not None}
    # A listing without any price is one "without charge" only where the model's own name says so.
    if not given and model.endswith(":free"):
        return dict.fromkeys(CLASSES, Decimal(0))
    if not given.keys() >= {"input_mtok", "output_mtok"} or not given.keys().isdisjoint(_BEYOND_TOKENS):
        return None
    # tokens of a class without a price of its own are ordinary input
    plain = given["input_mtok"]
    return {name: _rate(given.get(key, plain), input_tokens) for name, key in _KEYS.items()}


def _rate(price: Any, input_tokens: int) -> Decimal:
    """Dollars for a million tokens, by the table's own rule for tiers."""
    calculate = import_module("genai_prices.types").calc_unit_price
    rate: Decimal = calculate(price, _MILLION, input_tokens, _MILLION)
    return rate
