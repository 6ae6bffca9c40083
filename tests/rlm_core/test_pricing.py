"""Prices by the model asked for, against hand calculation and against the table's own arithmetic."""

from __future__ import annotations

import decimal
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import genai_prices
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rlm_core.cost_check import cost_findings
from rlm_core.lm_handler import Usage
from rlm_core.pricing import CLASSES, Override, Price, PriceTable, billable_tokens, decimal_text

LISTED = PriceTable()
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
# LiteLLM's id, and what the price table calls provider and model
KNOWN = {
    "openai/gpt-5-mini": ("openai", "gpt-5-mini"),
    "gpt-5-mini": ("openai", "gpt-5-mini"),
    "anthropic/claude-sonnet-4-5": ("anthropic", "claude-sonnet-4-5"),
    "gemini/gemini-2.5-pro": ("google", "gemini-2.5-pro"),
    "vertex_ai/gemini-2.5-flash": ("google", "gemini-2.5-flash"),
    "openrouter/openai/gpt-5-mini": ("openrouter", "openai/gpt-5-mini"),
    "bedrock/converse/us.anthropic.claude-sonnet-4-5-20250929-v1:0": (
        "aws",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ),
    "groq/llama-3.3-70b-versatile": ("groq", "llama-3.3-70b-versatile"),
    "deepseek/deepseek-chat": ("deepseek", "deepseek-chat"),
    "xai/grok-4": ("x-ai", "grok-4"),
}
MILLION = 1_000_000


def usages() -> st.SearchStrategy[Usage]:
    tokens = st.integers(0, 3_000_000)

    @st.composite
    def draw_usage(draw: st.DrawFn) -> Usage:
        total, output = draw(tokens), draw(tokens)
        read = draw(st.integers(0, total))
        return Usage(total, output, read, draw(st.integers(0, total - read)))

    return draw_usage()


def test_hand_calculation_with_cached_and_reasoning_tokens() -> None:
    usage = Usage(input=1000, output=500, cached_read=400, reasoning=200)
    price = LISTED.price("openai/gpt-5-mini", usage, now=NOW)
    assert price.status == "priced"
    assert (
        price.usd == Decimal("0.00116") == (600 * Decimal("0.25") + 400 * Decimal("0.025") + 1000) / MILLION
    )
    assert dict(price.classes) == {
        "input": Decimal("0.00015"),
        "cached_read": Decimal("0.00001"),
        "cache_write": Decimal(0),
        "output": Decimal("0.001"),
    }


def test_the_row_is_stored_whole() -> None:
    row = json.loads(LISTED.price("openai/gpt-5-mini", Usage(10, 10), now=NOW).row or "")
    assert row == {
        "source": f"genai-prices {genai_prices.__version__}",
        "model": "gpt-5-mini",
        "input_per_mtok": "0.25",
        "cached_read_per_mtok": "0.025",
        "cache_write_per_mtok": "0.25",
        "output_per_mtok": "2",
        "as_of": "2026-11-20",
    }


@pytest.mark.parametrize("model", sorted(KNOWN))
@given(usage=usages())
def test_same_total_as_the_tables_own_calculation(model: str, usage: Usage) -> None:
    provider, name = KNOWN[model]
    own = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cached_read,
            cache_write_tokens=usage.cache_write,
        ),
        name,
        provider_id=provider,
        genai_request_timestamp=NOW,
    )
    price = LISTED.price(model, usage, now=NOW)
    assert price.usd == own.total_price == sum(price.classes.values())


@given(usage=usages(), model=st.sampled_from(sorted(KNOWN)))
def test_classes_add_up_and_the_stored_row_gives_them_again(usage: Usage, model: str) -> None:
    price = LISTED.price(model, usage, now=NOW)
    assert set(price.classes) == set(CLASSES) and sum(price.classes.values()) == price.usd
    row, tokens = json.loads(price.row or ""), billable_tokens(usage) or {}
    assert price.classes == {n: Decimal(row[f"{n}_per_mtok"]) * tokens[n] / MILLION for n in CLASSES}
    assert price.usd is not None and Decimal(decimal_text(price.usd)) == price.usd


@given(usage=usages(), model=st.sampled_from(sorted(KNOWN)))
def test_no_call_costs_more_than_its_upper_bound(usage: Usage, model: str) -> None:
    price = LISTED.price(model, usage, now=NOW)
    bound = LISTED.upper_bound_usd(model, usage.input or 0, usage.output or 0, now=NOW)
    assert bound is not None and price.usd is not None and bound >= price.usd


def test_a_tier_applies_to_the_whole_call() -> None:
    below = LISTED.price("gemini/gemini-2.5-pro", Usage(200_000, 0), now=NOW)
    above = LISTED.price("gemini/gemini-2.5-pro", Usage(200_001, 0), now=NOW)
    assert below.usd == Decimal("0.25") and above.usd == Decimal("0.5000025")
    assert json.loads(below.row or "")["input_per_mtok"] == "1.25"
    assert json.loads(above.row or "")["input_per_mtok"] == "2.5"


@pytest.mark.parametrize(
    "model",
    [
        "openai/my-local-qwen",
        "openai/meta-llama/Llama-3-8b",  # a server of one's own, whatever it serves
        "openai_like/gpt-5-mini",
        "ollama/llama3",
        "hosted_vllm/gpt-5-mini",
        "azure/my-deployment",
        "openrouter/nobody/nothing",
        "no-such-model",
        "",
        "/",
        "perplexity/sonar",  # charges for each request, which tokens do not tell
        "openai/text-embedding-3-small",  # no price for output
    ],
)
def test_unknown_stays_unknown_and_is_never_zero(model: str) -> None:
    price = LISTED.price(model, Usage(1000, 1000), now=NOW)
    assert (price.status, price.usd, price.row, dict(price.classes)) == ("unknown", None, None, {})
    assert LISTED.upper_bound_usd(model, 1000, 1000, now=NOW) is None


@pytest.mark.parametrize(
    "usage",
    [
        Usage(),
        Usage(input=10),
        Usage(output=10),
        Usage(10, 10, cached_read=11),
        Usage(10, 10, 6, 6),
        Usage(-1, 5),
    ],
)
def test_usage_that_does_not_tell_gives_no_price(usage: Usage) -> None:
    price = LISTED.price("openai/gpt-5-mini", usage, now=NOW)
    assert (price.status, price.usd, price.row) == ("unknown", None, None)


def test_free_is_a_price_of_zero_that_the_table_states() -> None:
    model = "openrouter/meta-llama/llama-3.3-70b-instruct:free"
    price = LISTED.price(model, Usage(1000, 1000), now=NOW)
    assert (price.status, price.usd) == ("free", Decimal(0)) and json.loads(price.row or "")[
        "output_per_mtok"
    ] == "0"
    assert LISTED.upper_bound_usd(model, 1000, 1000, now=NOW) == 0


@pytest.mark.parametrize("model", ["demo/root", "demo/sub"])
def test_the_demo_model_costs_nothing_and_says_why(model: str) -> None:
    price = LISTED.price(model, Usage())
    assert (price.status, price.usd, price.row) == ("demo", Decimal(0), None)
    assert LISTED.upper_bound_usd(model, 10**9, 10**9) == 0


def test_a_price_that_changed_is_taken_at_the_time_of_the_call() -> None:
    before = LISTED.price(
        "anthropic/claude-sonnet-4-6", Usage(300_000, 0), now=datetime(2026, 3, 1, tzinfo=UTC)
    )
    after = LISTED.price(
        "anthropic/claude-sonnet-4-6", Usage(300_000, 0), now=datetime(2026, 4, 1, tzinfo=UTC)
    )
    assert before.status == after.status == "priced" and before.usd != after.usd
    assert json.loads(before.row or "")["as_of"] == "2026-03-01"


@given(usage=usages())
def test_exact_whatever_the_callers_decimal_context_is(usage: Usage) -> None:
    expected = LISTED.price("anthropic/claude-sonnet-4-5", usage, now=NOW)
    with decimal.localcontext(prec=2):
        assert LISTED.price("anthropic/claude-sonnet-4-5", usage, now=NOW) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=0, max_value=10**6))
def test_amounts_are_written_as_plain_digits(amount: Decimal) -> None:
    text = decimal_text(amount)
    assert Decimal(text) == amount and set(text) <= set("0123456789.")
    assume("." in text)
    assert not text.endswith(("0", "."))


# -- prices that a person set


def override(model: str = "openai/mine", *rates: str, start: date | None = None) -> Override:
    """Rates in the order of the classes; without any, a price that cannot be used."""
    given = dict(zip(CLASSES, map(Decimal, rates), strict=True)) if rates else None
    return Override(model, given, "2026-11-30", start)


def test_an_override_stands_above_the_table_and_is_stored_as_one() -> None:
    table = PriceTable([override("openai/gpt-5-mini", "1", "0.5", "2", "3")])
    price = table.price("openai/gpt-5-mini", Usage(1000, 10, 600, 100), now=NOW)
    assert (price.status, price.usd) == ("priced", Decimal("0.00083"))
    assert json.loads(price.row or "") == {
        "source": "override 2026-11-30",
        "model": "openai/gpt-5-mini",
        "input_per_mtok": "1",
        "cached_read_per_mtok": "0.5",
        "cache_write_per_mtok": "2",
        "output_per_mtok": "3",
        "as_of": "2026-11-20",
    }
    assert table.upper_bound_usd("openai/gpt-5-mini", 1000, 10, now=NOW) == Decimal("0.00203")
    assert table.price("gpt-5-mini", Usage(1, 1), now=NOW) == LISTED.price("gpt-5-mini", Usage(1, 1), now=NOW)


def test_a_price_of_nothing_is_free() -> None:
    price = PriceTable([override("ollama/llama3", "0", "0", "0", "0")]).price("ollama/llama3", Usage(9, 9))
    assert (price.status, price.usd) == ("free", 0)


def test_an_override_that_cannot_be_used_makes_the_price_unknown() -> None:
    """It never falls back to the table: the person wanted another price."""
    table = PriceTable([override("openai/gpt-5-mini")])
    assert table.price("openai/gpt-5-mini", Usage(9, 9)) == Price("unknown")
    assert table.upper_bound_usd("openai/gpt-5-mini", 9, 9) is None


def test_the_time_of_the_call_chooses_among_dated_overrides() -> None:
    first, second = date(2026, 11, 1), date(2026, 12, 1)
    table = PriceTable([
        override("openai/gpt-5-mini", "2", "2", "2", "2", start=second),
        override("openai/gpt-5-mini", "9", "9", "9", "9", start=first),
        override("openai/gpt-5-mini", "1", "1", "1", "1", start=first),  # said last
    ])  # fmt: skip
    told = [
        table.price("openai/gpt-5-mini", Usage(1_000_000, 0), now=datetime(*day, 23, 59, tzinfo=UTC)).usd
        for day in ((2026, 10, 31), (2026, 11, 1), (2026, 11, 30), (2026, 12, 1))
    ]
    assert told == [Decimal("0.25"), 1, 1, 2]


def test_rows_of_a_model_with_tiers() -> None:
    rows = LISTED.rows("gemini/gemini-2.5-pro", NOW)
    assert [(row.above, row.rates["input"]) for row in rows] == [
        (0, Decimal("1.25")),
        (200_000, Decimal("2.5")),
    ]
    assert LISTED.rows("openai/my-local-qwen", NOW) == []


def test_a_row_that_is_dated_says_from_when_on() -> None:
    price = LISTED.price("anthropic/claude-sonnet-4-6", Usage(1, 1), now=datetime(2026, 4, 1, tzinfo=UTC))
    assert json.loads(price.row or "")["valid_from"] == "2026-03-13"


# -- LiteLLM's figure beside ours


@pytest.mark.parametrize("theirs", ["0.01", "0.0101", "0.0099", None, "x", "NaN", 0.02])
def test_a_difference_of_one_percent_or_a_figure_that_is_none_says_nothing(
    theirs: str | float | None,
) -> None:
    assert cost_findings(Price("priced", Decimal("0.01")), theirs) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "off"),
    [("0.01", "0.010101", "+1.0%"), ("0.01", "0", "-100.0%"), ("0", "0.5", "+100.0%")],
)
def test_a_difference_of_more_than_one_percent_is_a_finding(ours: str, theirs: str, off: str) -> None:
    with decimal.localcontext(prec=2):
        found = json.loads(cost_findings(Price("priced", Decimal(ours)), theirs) or "[]")
    assert [(one["rule"], off in one["message"]) for one in found] == [("cost_check", True)]


def test_beside_an_unknown_price_there_is_nothing_to_compare() -> None:
    assert cost_findings(Price("unknown"), "0.01") is None
