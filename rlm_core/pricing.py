"""What a model call costs, in exact decimal dollars, by the model that was *asked for*.

The price rows come from the offline table of genai-prices. The model's name in the answer and the server's
address play no part: a gateway that calls itself gpt-5 does not get gpt-5's price. Unknown stays unknown and
is never 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Literal

from rlm_core.lm_handler import Usage
from rlm_core.telemetry import as_json

PriceStatus = Literal["priced", "free", "unknown", "demo"]
Costs = Mapping[str, Decimal]

CLASSES: Final = ("input", "cached_read", "cache_write", "output")
"""The disjoint billable classes of tokens: input without cached reads and writes, those two, output."""

DEMO_PREFIX: Final = "demo/"

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
# Exact or an error, whatever the caller's own decimal context is.
_EXACT: Final = Context(prec=60, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one call: `usd` is None when `status` is unknown; `classes` add up to `usd` to the last
    digit.

    `row` is the price row used, as JSON: source, model, `*_per_mtok` for each class (decimal strings, in
    dollars for a million tokens, of the tier that applied) and `as_of` (the UTC date for which it was looked
    up).
    """

    status: PriceStatus
    usd: Decimal | None = None
    row: str | None = None
    classes: Costs = field(default_factory=dict)


def price_call(model_requested: str, usage: Usage, *, now: datetime | None = None) -> Price:
    """Price one call by the model asked for and the usage reported; never raises.

    The first call imports the price table (about 0.3 s), later ones take microseconds.
    """
    if model_requested.startswith(DEMO_PREFIX):
        return Price("demo", Decimal(0))
    tokens = billable_tokens(usage)
    if tokens is None or usage.input is None:
        return Price("unknown")
    found = _find_row(model_requested, usage.input, now or datetime.now(UTC))
    if found is None:
        return Price("unknown")
    costs = _costs(found.rates, tokens)
    return Price("free" if found.is_free else "priced", _total(costs), found.json, costs)


def upper_bound_usd(
    model: str, input_tokens: int, output_tokens: int, *, now: datetime | None = None
) -> Decimal | None:
    """The most a call with so many tokens can cost, or None when the model's price is unknown.

    Input counts at the dearest of its classes: whether it will be read from or written to a cache is not
    known yet.
    """
    if model.startswith(DEMO_PREFIX):
        return Decimal(0)
    found = _find_row(model, input_tokens, now or datetime.now(UTC))
    if found is None:
        return None
    dearest = max(found.rates[name] for name in CLASSES if name != "output")
    rates = {"input": dearest, "output": found.rates["output"]}
    return _total(_costs(rates, {"input": input_tokens, "output": output_tokens}))


def class_costs(row: Mapping[str, Any], usage: Usage) -> Costs | None:
    """The cost by class from a stored price row (parsed JSON); None when the usage does not tell.

    Adds up to what `price_call` gave when the row was stored.
    """
    tokens = billable_tokens(usage)
    if tokens is None:
        return None
    return _costs({name: Decimal(str(row[f"{name}_per_mtok"])) for name in CLASSES}, tokens)


def billable_tokens(usage: Usage) -> dict[str, int] | None:
    """Usage in the disjoint `CLASSES`; None when input or output is unknown or the parts exceed the whole.

    Cached tokens that were not told count as ordinary input.
    """
    if usage.input is None or usage.output is None:
        return None
    read, written = usage.cached_read or 0, usage.cache_write or 0
    rest = usage.input - read - written
    if min(rest, read, written, usage.output) < 0:
        return None
    return {"input": rest, "cached_read": read, "cache_write": written, "output": usage.output}


def decimal_text(amount: Decimal) -> str:
    """A dollar amount as plain digits, without an exponent or trailing zeros, exact."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text


@dataclass(frozen=True, slots=True)
class _Row:
    rates: Costs
    json: str
    is_free: bool


class _Listing:
    """A model of the price table, with the rows already made for it."""

    def __init__(self, info: Any) -> None:
        self.info = info
        self._rows: dict[tuple[int, int, str], _Row | None] = {}
        self._starts: dict[int, list[int]] = {}

    def row(self, model: str, input_tokens: int, now: datetime) -> _Row | None:
        """The row that applies at this time to a call with so many input tokens."""
        # one of a few objects that live as long as the table, so that id() is a safe key
        price = self.info.get_prices(now)
        starts = self._starts.get(id(price))
        if starts is None:
            starts = self._starts[id(price)] = _tier_starts(price)
        as_of = now.astimezone(UTC).date().isoformat()
        key = (id(price), bisect_left(starts, input_tokens), as_of)
        if key not in self._rows:
            self._rows[key] = _make_row(price, self.info.id, model, input_tokens, as_of)
        return self._rows[key]


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


def _find_row(model: str, input_tokens: int, now: datetime) -> _Row | None:
    listing = _listing(model)
    return listing.row(model, input_tokens, now) if listing else None


def _tier_starts(price: Any) -> list[int]:
    """The input sizes above which another tier applies, ascending."""
    tiers = (tier for key in _KEYS.values() for tier in getattr(getattr(price, key), "tiers", ()))
    return sorted({int(tier.start) for tier in tiers})


def _make_row(price: Any, priced_as: str, model: str, input_tokens: int, as_of: str) -> _Row | None:
    given = {key: value for key, value in vars(price).items() if value is not None}
    # A listing without any price is one "without charge" only where the model's own name says so.
    if not given and model.endswith(":free"):
        rates = dict.fromkeys(CLASSES, Decimal(0))
    elif not given.keys() >= {"input_mtok", "output_mtok"} or not given.keys().isdisjoint(_BEYOND_TOKENS):
        return None
    else:
        # tokens of a class without a price of its own are ordinary input
        plain = given["input_mtok"]
        rates = {name: _rate(given.get(key, plain), input_tokens) for name, key in _KEYS.items()}
    version = import_module("genai_prices").__version__
    facts = {f"{name}_per_mtok": decimal_text(rate) for name, rate in rates.items()}
    facts |= {"source": f"genai-prices {version}", "model": priced_as, "as_of": as_of}
    return _Row(rates, as_json(facts), not any(rates.values()))


def _rate(price: Any, input_tokens: int) -> Decimal:
    """Dollars for a million tokens, by the table's own rule for tiers."""
    calculate = import_module("genai_prices.types").calc_unit_price
    rate: Decimal = calculate(price, _MILLION, input_tokens, _MILLION)
    return rate


def _costs(rates: Costs, tokens: Mapping[str, int]) -> Costs:
    return {name: _EXACT.scaleb(_EXACT.multiply(rates[name], Decimal(n)), -6) for name, n in tokens.items()}


def _total(costs: Costs) -> Decimal:
    total = Decimal(0)
    for cost in costs.values():
        total = _EXACT.add(total, cost)
    return total
