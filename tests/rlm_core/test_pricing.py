"""Prices by the model asked for, against hand calculation and against the table's own arithmetic."""

from __future__ import annotations

import decimal
import json
from datetime import UTC, datetime
from decimal import Decimal

import genai_prices
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rlm_core.lm_handler import Usage
from rlm_core.pricing import CLASSES, class_costs, decimal_text, price_call, upper_bound_usd

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
    price = price_call("openai/gpt-5-mini", usage, now=NOW)
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
    row = json.loads(price_call("openai/gpt-5-mini", Usage(10, 10), now=NOW).row or "")
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
    price = price_call(model, usage, now=NOW)
    assert price.usd == own.total_price == sum(price.classes.values())


@given(usage=usages(), model=st.sampled_from(sorted(KNOWN)))
def test_classes_add_up_and_the_stored_row_gives_them_again(usage: Usage, model: str) -> None:
    price = price_call(model, usage, now=NOW)
    assert set(price.classes) == set(CLASSES) and sum(price.classes.values()) == price.usd
    assert class_costs(json.loads(price.row or ""), usage) == price.classes
    assert price.usd is not None and Decimal(decimal_text(price.usd)) == price.usd


@given(usage=usages(), model=st.sampled_from(sorted(KNOWN)))
def test_no_call_costs_more_than_its_upper_bound(usage: Usage, model: str) -> None:
    price = price_call(model, usage, now=NOW)
    bound = upper_bound_usd(model, usage.input or 0, usage.output or 0, now=NOW)
    assert bound is not None and price.usd is not None and bound >= price.usd


def test_a_tier_applies_to_the_whole_call() -> None:
    below = price_call("gemini/gemini-2.5-pro", Usage(200_000, 0), now=NOW)
    above = price_call("gemini/gemini-2.5-pro", Usage(200_001, 0), now=NOW)
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
    price = price_call(model, Usage(1000, 1000), now=NOW)
    assert (price.status, price.usd, price.row, dict(price.classes)) == ("unknown", None, None, {})
    assert upper_bound_usd(model, 1000, 1000, now=NOW) is None


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
    price = price_call("openai/gpt-5-mini", usage, now=NOW)
    assert (price.status, price.usd, price.row) == ("unknown", None, None)
    assert class_costs({f"{name}_per_mtok": "1" for name in CLASSES}, usage) is None


def test_free_is_a_price_of_zero_that_the_table_states() -> None:
    model = "openrouter/meta-llama/llama-3.3-70b-instruct:free"
    price = price_call(model, Usage(1000, 1000), now=NOW)
    assert (price.status, price.usd) == ("free", Decimal(0)) and json.loads(price.row or "")[
        "output_per_mtok"
    ] == "0"
    assert upper_bound_usd(model, 1000, 1000, now=NOW) == 0


@pytest.mark.parametrize("model", ["demo/root", "demo/sub"])
def test_the_demo_model_costs_nothing_and_says_why(model: str) -> None:
    price = price_call(model, Usage())
    assert (price.status, price.usd, price.row) == ("demo", Decimal(0), None)
    assert upper_bound_usd(model, 10**9, 10**9) == 0


def test_a_price_that_changed_is_taken_at_the_time_of_the_call() -> None:
    before = price_call(
        "anthropic/claude-sonnet-4-6", Usage(300_000, 0), now=datetime(2026, 3, 1, tzinfo=UTC)
    )
    after = price_call("anthropic/claude-sonnet-4-6", Usage(300_000, 0), now=datetime(2026, 4, 1, tzinfo=UTC))
    assert before.status == after.status == "priced" and before.usd != after.usd
    assert json.loads(before.row or "")["as_of"] == "2026-03-01"


@given(usage=usages())
def test_exact_whatever_the_callers_decimal_context_is(usage: Usage) -> None:
    expected = price_call("anthropic/claude-sonnet-4-5", usage, now=NOW)
    with decimal.localcontext(prec=2):
        assert price_call("anthropic/claude-sonnet-4-5", usage, now=NOW) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=0, max_value=10**6))
def test_amounts_are_written_as_plain_digits(amount: Decimal) -> None:
    text = decimal_text(amount)
    assert Decimal(text) == amount and set(text) <= set("0123456789.")
    assume("." in text)
    assert not text.endswith(("0", "."))
