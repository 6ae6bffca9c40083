"""prices: what is listed, set and withdrawn; what cannot be a price; what the log may hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import genai_prices
import pytest

from rlm_core.errors import InputError
from rlm_core.lm_handler import Usage
from traces.home import Home
from traces.prices import price_table

RUN = "20270115T080000-00000001"
MODEL = "openai/mine"


def rates(row: dict[str, Any]) -> tuple[str | None, ...]:
    return tuple(row[f"{name}_per_mtok"] for name in ("input", "cached_read", "cache_write", "output"))


def statement(home: Home, **facts: Any) -> None:
    """A price statement as another program, or a person with an editor, may leave it."""
    record = {"v": 1, "time": "2026-11-30T00:00:00+00:00", "kind": "price", "model": MODEL, **facts}
    with home.user_log.open("a") as log:
        log.write(json.dumps(record) + "\n")


def test_models_used_configured_and_priced_are_listed(
    call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    written(RUN)
    call("prices", "set", MODEL, "--free")
    environment = {"RLMSCOPE_ROOT_MODEL": "openai/gpt-5-mini", "RLMSCOPE_SUB_MODEL": "xai/grok-4"}
    listed = call("prices", "--json", env=environment).json
    models = [MODEL, "openai/big", "openai/small", "openai/gpt-5-mini", "xai/grok-4"]
    assert {row["model"] for row in listed} == set(models)
    status = {row["model"]: row["status"] for row in listed}
    assert [status[model] for model in models] == ["free", "unknown", "unknown", "priced", "priced"]
    out = call("prices", env=environment).out
    assert "no price is known" in out and "rlmscope prices set openai/big" in out


def test_the_name_of_a_model_cannot_reorder_a_line(call: Callable[..., Any]) -> None:
    out = call("prices", "openai/\u202egnp").out
    assert "rlmscope prices set openai/" in out and "\u202e" not in out


def test_a_row_of_the_table_says_where_it_is_from(call: Callable[..., Any]) -> None:
    (row,) = call("prices", "openai/gpt-5-mini", "--json").json
    assert rates(row) == ("0.25", "0.025", "0.25", "2")
    assert row["source"] == f"genai-prices {genai_prices.__version__}" and row["priced_as"] == "gpt-5-mini"
    assert (row["above_input_tokens"], row["set"], row["in_force"]) == (0, None, True)
    dated = call("prices", "list", "anthropic/claude-sonnet-4-6", "--json").json
    assert [row["valid_from"] for row in dated] == ["2026-03-13"]


def test_each_tier_is_a_row(call: Callable[..., Any]) -> None:
    rows = call("prices", "gemini/gemini-2.5-pro", "--json").json
    assert [(row["above_input_tokens"], row["input_per_mtok"]) for row in rows] == [
        (0, "1.25"),
        (200_000, "2.5"),
    ]
    assert "above 200,000 input tokens" in call("prices", "gemini/gemini-2.5-pro", env={"COLUMNS": "200"}).out


def test_set_and_unset(call: Callable[..., Any], home: Home) -> None:
    words = ("--input", "$0.5", "--output", "2", "--cached-read", "0.050", "--note", "contract 7")
    (row,) = call("prices", "set", "openai/gpt-5-mini", *words, "--json").json
    assert rates(row) == ("0.5", "0.05", "0.5", "2") and row["note"] == "contract 7"
    assert row["source"] == f"override {row['set']}"
    assert price_table(home).price("openai/gpt-5-mini", Usage(1_000_000, 0)).usd == Decimal("0.5")
    (row,) = call("prices", "unset", "openai/gpt-5-mini", "--json").json
    assert rates(row) == ("0.25", "0.025", "0.25", "2")
    again = call("prices", "unset", "openai/gpt-5-mini")
    assert again.code == 2 and "no price was set for 'openai/gpt-5-mini'" in again.error
    assert len([text for text in home.user_log.read_text().splitlines() if text]) == 2, "nothing is rewritten"


def test_a_price_for_later_is_listed_and_not_in_force(call: Callable[..., Any]) -> None:
    call("prices", "set", MODEL, "--input", "1", "--output", "2")
    rows = call(
        "prices", "set", MODEL, "--input", "3", "--output", "4", "--from", "9999-01-31", "--json"
    ).json
    assert [(row["input_per_mtok"], row["valid_from"], row["in_force"]) for row in rows] == [
        ("1", None, True),
        ("3", "9999-01-31", False),
    ]
    assert "from 9999-01-31 on (not yet)" in call("prices", MODEL).out
    (row,) = call("prices", "set", MODEL, "--free", "--json").json  # for all days: replaces both
    assert (rates(row), row["status"]) == (("0",) * 4, "free")


def test_a_price_survives_a_rebuild_and_recorded_runs_keep_theirs(
    call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    written(RUN)
    before = call("cost", RUN, "--json").json
    call("prices", "set", "openai/small", "--input", "1000", "--output", "1000")
    assert call("ingest", "--rebuild").code == 0
    assert call("cost", RUN, "--json").json == before
    assert call("prices", "openai/small", "--json").json[0]["input_per_mtok"] == "1000"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((MODEL,), "--input and --output, or --free"),
        ((MODEL, "--input", "1"), "--input and --output, or --free"),
        ((MODEL, "--free", "--input", "1"), "--free says it all"),
        ((MODEL, "--input", "cheap", "--output", "1"), "'cheap' is not a price"),
        ((MODEL, "--input", "-1", "--output", "1"), "'-1' is not a price"),
        ((MODEL, "--input", "NaN", "--output", "1"), "'NaN' is not a price"),
        ((MODEL, "--input", "1", "--output", "1e999999"), "from 0 to 1,000,000"),
        ((MODEL, "--input", "1", "--output", "0.0000000000001"), "at most 12 decimals"),
        ((MODEL, "--free", "--from", "tomorrow"), "'tomorrow' is not a date"),
        ((MODEL, "--free", "--note", "a\nb"), "one line"),
        (("openai/a b", "--free"), "space or control character"),
        (("", "--free"), "is empty"),
        (("demo/root", "--free"), "costs nothing"),
    ],
)
def test_what_cannot_be_a_price(
    call: Callable[..., Any], home: Home, words: tuple[str, ...], message: str
) -> None:
    refused = call("prices", "set", *words)
    assert refused.code == 2 and message in refused.error
    assert not home.user_log.exists()


@pytest.mark.parametrize(
    "facts",
    [
        {"input": "1"},
        {"input": 1, "output": 2},
        {"input": "x", "output": "2"},
        {"input": "-1", "output": "2"},
        {"input": "1", "output": "2", "cached_read": None},
        {"input": "1", "output": "1e30"},
        {"input": "1", "output": "2", "from": "someday"},
        {"input": "1", "output": "2", "from": 7},
    ],
)
def test_a_statement_that_cannot_be_used_makes_the_price_unknown(
    call: Callable[..., Any], home: Home, facts: dict[str, Any]
) -> None:
    statement(home, **facts)
    (row,) = call("prices", MODEL, "--json").json
    assert (row["status"], rates(row)) == ("unknown", (None,) * 4)
    assert row["source"] == "override 2026-11-30 that cannot be used"
    assert price_table(home).upper_bound_usd(MODEL, 1, 1) is None
    assert call("prices", "set", MODEL, "--free", "--json").json[0]["status"] == "free"


def test_records_of_other_kinds_and_forms_are_passed_over(call: Callable[..., Any], home: Home) -> None:
    home.user_log.write_text('[]\n{"kind":"price"}\n{"kind":"price","model":7}\n{"kind":"verdict"}\n{torn')
    assert call("prices", MODEL, "--json").json[0]["source"] is None


def test_hostile_text_of_the_log_is_not_obeyed_by_the_terminal(call: Callable[..., Any], home: Home) -> None:
    statement(home, input="1", output="2", note="\x1b[2Jgone", time="\x1b[31m")
    out = call("prices").out
    assert "\x1b" not in out and "gone" in out


def test_a_cost_limit_needs_a_price_and_an_override_is_one(call: Callable[..., Any], home: Home) -> None:
    from ui.ask_run import prepare
    from ui.web.order import Order, checked

    order = checked(Order("What?", "corpus", MODEL, MODEL, {"max_cost_usd": "1"}), RUN)
    with pytest.raises(InputError, match=f"the price of {MODEL} is unknown.*rlmscope prices set"):
        prepare(order, home, {})
    call("prices", "set", MODEL, "--input", "1", "--output", "2")
    models, _ = prepare(order, home, {"OPENAI_API_KEY": "any"})
    assert models.sub == MODEL
