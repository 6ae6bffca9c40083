"""cost --explain and cost --as, over runs that were written through the recorder."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.answer import Answer
from rlm_core.lm_handler import Usage
from rlm_core.pricing import PriceTable, decimal_text
from rlm_core.telemetry import RunSpan
from traces.home import Home
from traces.recording import open_recording
from ui.ask_outcome import Outcome
from ui.models_config import Models

RUN = "20270115T080000-00000001"
SMALL, MINE = "openai/gpt-5-mini", "openai/mine"
TABLE = PriceTable()


def usage(facts: dict[str, Any], *, model: str = SMALL, row: bool = True) -> dict[str, Any]:
    """What a span says of usage `facts` priced as `model`."""
    used = Usage(**facts)
    price = TABLE.price(model, used)
    return {
        sc.USAGE_INPUT: used.input,
        sc.USAGE_OUTPUT: used.output,
        sc.USAGE_CACHE_READ: used.cached_read,
        sc.USAGE_ESTIMATED: used.estimated or None,
        sc.COST_USD: None if price.usd is None else decimal_text(price.usd),
        sc.COST_STATUS: price.status,
        sc.COST_PRICE: price.row if row else None,
    }


NOTHING = {sc.COST_USD: "0", sc.COST_STATUS: "free"}
Attempts = Sequence[dict[str, Any] | None]


def record(home: Home, *calls: tuple[dict[str, Any], Attempts], model: str = SMALL) -> list[RunSpan]:
    """A run of a root call (the first) and sub-calls: facts of each and of its attempts (None: it failed)."""
    clock = itertools.count(1_800_000_000_000_000_000, 1_000_000)
    with open_recording(home, RUN, {}, clock=lambda: next(clock)) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.ROOT_MODEL: model, sc.SUB_MODEL: model})
        spans = []
        for place, (facts, attempts) in enumerate(calls):
            kind = "sub_call" if place else "root_call"
            span = made.recorder.start(kind, sc.chat(model), run, {sc.REQUEST_MODEL: model})
            for index, of_attempt in enumerate(attempts):
                attempt = made.recorder.start("attempt", sc.NAME_ATTEMPT, span, {sc.ATTEMPT: index})
                attempt.set(NOTHING if of_attempt is None else of_attempt)
                attempt.fail("server", "it broke") if of_attempt is None else attempt.end()
            span.end("ok", facts)
            spans.append(span)
        run.end()
        made.close("ok")
    return spans


def test_what_if_prices_recorded_usage_again(call: Callable[..., Any], home: Home) -> None:
    root, sub = (
        usage({"input": 1000, "output": 100}),
        usage({"input": 1000, "output": 10, "cached_read": 600}),
    )
    record(home, (root, [root]), (sub, [None, sub]), (sub, [sub]))
    call("prices", "set", MINE, "--input", "1", "--output", "3", "--cached-read", "0.5")
    told = call("cost", RUN, "--as", f"sub={MINE}", "--json").json
    rows = {row["role"]: row for row in told["rows"]}
    # 400 x 1 + 600 x 0.5 + 10 x 3 = 730 millionths each, where 400 x 0.25 + 600 x 0.025 + 10 x 2 = 135
    assert (rows["sub"]["cost_usd"], rows["sub"]["recorded_usd"]) == ("0.00146", "0.00027")
    assert rows["sub"]["difference_usd"] == "0.00119" and rows["sub"]["model"] == SMALL
    assert rows["root"]["cost_usd"] == rows["root"]["recorded_usd"] == "0.00045"
    assert rows["root"]["difference_usd"] == "0"
    assert (told["total_usd"], told["recorded_usd"], told["difference_usd"]) == (
        "0.00191",
        "0.00072",
        "0.00119",
    )
    assert told["as"] == {"sub": MINE} and told["unpriced"] == [] and told["cost_status"] == "priced"
    assert call("cost", RUN, "--json").json["total_usd"] == "0.00072", "the record stays as it was"
    out = call("cost", RUN, "--as", f"sub={MINE}").out
    assert "total with sub = openai/mine: $0.00191; recorded: $0.00072; difference: +$0.00119" in out
    by_class = call(
        "cost", RUN, "--as", f"sub={MINE}", "--as", f"root={MINE}", "--by", "class", "--json"
    ).json
    costs = {row["class"]: row["cost_usd"] for row in by_class["rows"]}
    assert costs == {"input": "0.0018", "cached_read": "0.0006", "output": "0.00036"}


def test_what_if_takes_the_tier_of_each_attempt(call: Callable[..., Any], home: Home) -> None:
    one = usage({"input": 150_000, "output": 0})
    both = usage({"input": 300_000, "output": 0})
    record(home, (one, [one]), (both, [one, one]))
    told = call("cost", RUN, "--as", "sub=gemini/gemini-2.5-pro", "--by", "role", "--json").json
    assert (
        next(row["cost_usd"] for row in told["rows"] if row["role"] == "sub") == "0.375"
    )  # 2 x 150,000 x 1.25


def test_what_if_names_what_it_cannot_price(call: Callable[..., Any], home: Home) -> None:
    paid, untold = usage({"input": 1000, "output": 100}), usage({}, model=SMALL)
    record(home, (paid, [paid]), (paid, [paid]), (untold, [untold]))
    told = call("cost", RUN, "--as", "sub=openai/nobody", "--json").json
    assert (told["total_usd"], told["known_usd"], told["cost_status"]) == (None, "0.00045", "partial")
    assert told["unpriced"] == [{"model": "openai/nobody", "calls": 1}] and told["without_usage"] == 1
    assert told["difference_usd"] is None
    out = call("cost", RUN, "--as", "sub=openai/nobody").out
    assert "the price of openai/nobody is unknown (1 call)" in out and "unknown (at least $0.00045)" in out
    assert "1 call did not report a usage" in out


def test_an_answer_from_the_record_costs_nothing_with_any_model(call: Callable[..., Any], home: Home) -> None:
    paid = usage({"input": 1000, "output": 100})
    served = {**NOTHING, sc.SERVED_FROM: "record"}
    spans = record(home, (paid, [paid]), (served, []), (NOTHING, [None]))
    told = call("cost", RUN, "--as", "sub=xai/grok-4", "--json").json
    assert (told["total_usd"], told["not_billed"], told["served_calls"]) == ("0.00045", 1, 1)
    assert "1 call cost nothing either way: never answered" in call("cost", RUN, "--as", "sub=xai/grok-4").out
    why = [call("cost", RUN, "--explain", span.span_id, "--json").json["why"] for span in spans]
    assert why == [
        None,
        "the answer was on record already: nothing was asked",
        "no attempt of it was answered, and nothing is billed for that",
    ]


def test_estimated_usage_is_said(call: Callable[..., Any], home: Home) -> None:
    guessed = usage({"input": 1000, "output": 0, "estimated": True})
    spans = record(home, (guessed, [guessed]))
    assert call("cost", "--as", "root=xai/grok-4", "--json").json["estimated"] == 1
    assert "1 call: tokens were estimated" in call("cost", "--as", "root=xai/grok-4").out
    assert "an estimate" in call("cost", RUN, "--explain", spans[0].span_id).out


def test_the_arithmetic_in_words(call: Callable[..., Any], home: Home) -> None:
    paid = usage({"input": 1000, "output": 500, "cached_read": 400})
    (span,) = record(home, (paid | {sc.USAGE_REASONING: 200}, [None, paid]))
    lines = call("cost", RUN, "--explain", span.span_id).out.splitlines()
    assert lines[0] == f"root_call {span.span_id} of run {RUN}: {SMALL}"
    assert lines[1:5] == [
        "  input       600 tokens x $0.25 per million = $0.00015",
        "  cached read 400 tokens x $0.025 per million = $0.00001",
        "  output      500 tokens x $2 per million = $0.001",
        "  (reasoning, 200 tokens, is part of the output)",
    ]
    assert lines[5] == "cost: $0.00116 (priced)" and lines[6].startswith("price: genai-prices ")
    assert lines[7:] == [
        "2 attempts:",
        "  1: error server, not billed",
        "  2: ok, 1,000 in, 500 out, $0.00116",
    ]


def test_an_attempt_that_was_answered_at_no_cost_is_not_called_unbilled(
    call: Callable[..., Any], home: Home
) -> None:
    silent = {sc.COST_USD: "0", sc.COST_STATUS: "demo"}
    (span,) = record(home, (silent, [None, silent]))
    lines = call("cost", RUN, "--explain", span.span_id).out.splitlines()
    assert lines[-2:] == ["  1: error server, not billed", "  2: ok, tokens unknown, $0"]


def test_attempts_of_different_tiers_leave_a_rest(call: Callable[..., Any], home: Home) -> None:
    model = "gemini/gemini-2.5-pro"
    small, large = (usage({"input": n, "output": 0}, model=model) for n in (100_000, 300_000))
    both = {**large, sc.USAGE_INPUT: 400_000, sc.COST_USD: "0.875"}  # 100,000 x 1.25 + 300,000 x 2.5
    (span,) = record(home, (both, [small, large]), model=model)
    told = call("cost", RUN, "--explain", span.span_id, "--json").json
    assert (told["total_usd"], told["sum_usd"], told["rest_usd"]) == ("0.875", "1", "-0.125")
    assert [attempt["cost_usd"] for attempt in told["attempts"]] == ["0.125", "0.75"]
    assert "beyond these: $-0.125" in call("cost", RUN, "--explain", span.span_id).out


def test_an_unknown_cost_has_a_lower_bound_in_its_attempts(call: Callable[..., Any], home: Home) -> None:
    known, untold = usage({"input": 1000, "output": 0}), usage({})
    (span,) = record(home, (untold, [known, untold]))
    told = call("cost", RUN, "--explain", span.span_id, "--json").json
    assert (told["total_usd"], told["known_usd"], told["cost_status"]) == (None, "0.00025", "unknown")
    out = call("cost", RUN, "--explain", span.span_id).out
    assert "cost: unknown: no usage was reported for it; at least $0.00025" in out


@pytest.mark.parametrize("price", ["{", "[]", "7", '{"input_per_mtok": 1e999}', '{"\\ud800": "\\u001b[2J"}'])
def test_a_price_row_that_is_none_is_survived(call: Callable[..., Any], home: Home, price: str) -> None:
    facts = {**usage({"input": 1000, "output": 10}), sc.COST_PRICE: price, sc.COST_LITELLM: "NaN"}
    (span,) = record(home, (facts, [facts]))
    told = call("cost", RUN, "--explain", span.span_id, "--json")
    assert told.code == 0 and told.json["sum_usd"] is None and told.json["litellm"] is None
    shown = call("cost", RUN, "--explain", span.span_id)
    assert shown.code == 0 and "at an unknown price\n" in shown.out and "\x1b" not in shown.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--explain", "1"), "--explain wants one RUN and no --as"),
        ((RUN, "--explain", "1", "--as", "sub=a/b"), "--explain wants one RUN and no --as"),
        ((RUN, "--explain", "zz"), "no span whose id begins with 'zz'"),
        ((RUN, "--as", "sub"), "'sub' is not of the form"),
        ((RUN, "--as", "boss=a/b"), "'boss=a/b' is not of the form"),
        ((RUN, "--as", "sub="), "the model for sub is empty"),
        ((RUN, "--as", "sub=a b"), "space or control character"),
        ((RUN, "--as", "sub=a/b", "--as", "sub=c/d"), "sub is given twice"),
        (("nothing", "--as", "sub=a/b"), "no run whose id begins with 'nothing'"),
    ],
)
def test_what_cannot_be_asked(
    call: Callable[..., Any], written: Callable[..., Any], words: tuple[str, ...], message: str
) -> None:
    written(RUN)
    refused = call("cost", *words)
    assert refused.code == 2 and message in refused.error


def test_a_span_that_is_no_call_is_explained_as_such(
    call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    written(RUN)
    spans = call("show", RUN, "--json").json["spans"]
    cell = next(span["span_id"] for span in spans if span["kind"] == "cell")
    refused = call("cost", RUN, "--explain", cell)
    assert refused.code == 2 and "of kind cell; it costs what the calls below it cost" in refused.error
    assert Decimal(call("cost", RUN, "--json").json["total_usd"]) > 0


def test_ask_says_the_least_that_was_spent_when_a_price_is_unknown() -> None:
    answer = Answer(RUN, "5", 5, "final", cost_status="partial", known_usd=Decimal("0.012"))
    models = Models("openai/a", "openai/b", (), False)
    lines = "\n".join(Outcome("What?", models, "c", answer, Path("spool"), 0).lines("look"))
    assert "cost unknown (at least $0.012)" in lines
