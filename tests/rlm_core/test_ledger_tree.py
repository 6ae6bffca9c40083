"""One ledger for a whole tree, seen from outside: every limit, every attempt, and nothing that spins."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, Answer, Completion, FunctionLMHandler, Limits, Request, cell_scope
from rlm_core import semconv as sc
from rlm_core.errors import ConfigError, ModelError
from rlm_core.lm_handler import Usage, estimate_tokens
from rlm_core.price_rows import Override
from rlm_core.pricing import PriceTable
from tests.support.scripted import FAST, cell
from traces.home import Home
from traces.reading import RunView, load_run
from traces.recording import open_recording

MODEL = "openai/no-such-model"
CENT = Decimal("0.01")
#: A call of one output token costs a cent, whatever its input was.
CENTS = PriceTable(
    [Override(MODEL, {"input": Decimal(0), "cached_read": Decimal(0), "cache_write": Decimal(0),
                      "output": Decimal(10_000)}, "2026-01-01")]
)  # fmt: skip
RUN = "20260101T000000-0000000a"
SPIN = "n = 0\nwhile True:\n    n += 1\n    {call}"
Model = Callable[[Request], Any]


def cent(text: str) -> Completion:
    return Completion(text, usage=Usage(input=1, output=1))


def turns(*codes: str, sub: Model = lambda _: cent("yes"), child: str = "FINAL(1)", price: int = 1) -> Model:
    """A root that follows a script, at `price` output tokens a turn; its children play one cell each."""
    script = iter(codes)

    def model(request: Request) -> Any:
        if request.role == "sub":
            return sub(request)
        text = request.messages[1].content
        code = child if "# Question\nchild" in text else next(script, "print('on and on')")
        return Completion(cell(code), usage=Usage(input=1, output=price))

    return model


def play(
    folder: Path, model: Model, limits: Limits, **options: Any
) -> tuple[Answer, RunView, dict[str, Any]]:
    """A recorded run: the answer, the record, and the ledger as recorded."""
    home = Home(folder / "home")
    options = {"prices": CENTS, "retries": FAST, **options}
    handler = FunctionLMHandler(model, concurrency=limits.concurrency)
    with (
        open_recording(home, RUN, {}) as recording,
        RLM(MODEL, MODEL, handler=handler, limits=limits, **options) as rlm,
    ):
        answer = rlm.ask("What?", "the corpus", run_id=RUN, recorder=recording.recorder)
    view = load_run(home, RUN)
    return answer, view, json.loads(view.spans[0].attributes[sc.LEDGER])


def of_kind(view: RunView, kind: str) -> list[Any]:
    return [span for span in view.spans if span.kind == kind]


def refused(view: RunView) -> list[str | None]:
    return [span.error_type for span in of_kind(view, "sub_call") if span.status == "error"]


# -- one budget for the tree


def test_three_children_share_one_budget(tmp_path: Path) -> None:
    child = "seen = [llm_query(f'{context} {i}') for i in range(3)]\nFINAL(1)"
    model = turns("r = rlm_query_batched(['child'] * 3, ['a', 'b', 'c'])", child=child)
    limits = Limits(max_cost_usd=10 * CENT, max_tokens_sub=1, max_tokens_root=1, concurrency=4)
    answer, view, ledger = play(tmp_path, model, limits)
    spent = Decimal(ledger["usd"]["spent"])
    calls = [span for span in view.spans if span.kind in ("root_call", "sub_call")]
    assert spent == sum(span.cost_usd for span in calls) == answer.cost_usd == view.summary.cost_usd
    assert 7 * CENT <= spent <= 10 * CENT, "three children alone would take twelve"
    assert "budget" in refused(view) and answer.stop_reason == "budget" and ledger["usd"]["known"]


def test_a_budget_stops_at_its_amount_plus_what_was_in_flight(tmp_path: Path) -> None:
    model = turns(
        "r = llm_batch(['x'] * 20)", sub=lambda _: Completion("yes", usage=Usage(input=1, output=3))
    )
    limits = Limits(max_cost_usd=5 * CENT, max_tokens_sub=1, max_tokens_root=1, concurrency=2)
    _, view, ledger = play(tmp_path, model, limits)
    assert ledger["width"]["most_in_flight"] <= 2
    # two calls in flight may take three cents each where one was expected
    assert 5 * CENT <= Decimal(ledger["usd"]["spent"]) <= 5 * CENT + 2 * 3 * CENT
    assert refused(view).count("budget") >= 8, "refused, with a span each"


def test_the_forced_answer_has_its_part_of_the_budget(tmp_path: Path) -> None:
    def model(request: Request) -> Completion:
        if request.role == "sub":
            return cent("yes")
        last = request.messages[-1].content
        return cent("enough said" if "Final answer now" in last else cell("r = llm_batch(['x'] * 50)"))

    limits = Limits(max_cost_usd=20 * CENT, max_tokens_sub=1, max_tokens_root=1)
    answer, _, ledger = play(tmp_path, model, limits)
    assert (answer.text, answer.forced, answer.stop_reason) == ("enough said", True, "budget")
    assert Decimal(ledger["usd"]["spent"]) <= 20 * CENT


def test_width_and_depth_are_limits_of_the_tree_and_are_recorded(tmp_path: Path) -> None:
    model = turns("r = rlm_query_batched(['child'] * 5)\nFINAL(r)")
    answer, _, ledger = play(tmp_path, model, Limits(max_workers=2))
    assert answer.value == ["1"] * 5
    assert 2 <= ledger["width"]["most_workers"] <= 3, "one at the top, at most two below it"
    assert ledger["depth"] == {"spent": 1, "limit": 1}


def test_the_time_of_a_run_is_that_of_its_children_too(tmp_path: Path) -> None:
    model = turns("r = rlm_query('child')", child="import time\ntime.sleep(3600)")
    answer, view, ledger = play(tmp_path, model, Limits(max_seconds=1.0, cell_seconds=3600.0))
    assert answer.stop_reason == "timeout"
    assert ledger["seconds"]["spent"] >= 1.0 and all(span.end_ns is not None for span in view.spans)


# -- every attempt counts


def test_answers_that_are_none_and_attempts_without_an_answer_are_counted(tmp_path: Path) -> None:
    tries = {"busy": 0, "silent": 0, "no choices": 0}

    def sub(request: Request) -> Completion:
        if request.prompt == "empty":
            return Completion(None, "stop", Usage(input=7, output=5), reasoning="hm")
        tries[request.prompt] += 1
        if tries[request.prompt] == 1 and request.prompt == "no choices":
            came = Completion(None, None, Usage(input=11, output=3))
            raise ModelError("malformed", "no choices", retryable=True, completion=came)
        if tries[request.prompt] == 1:
            kind = "rate_limit" if request.prompt == "busy" else "timeout"
            raise ModelError(kind, "not now", retryable=True)
        return cent("yes")

    code = "r = llm_batch(['empty', 'busy', 'silent', 'no choices'])\nFINAL([bool(x) for x in r])"
    answer, view, ledger = play(tmp_path, turns(code, sub=sub), Limits())
    assert answer.value == [False, True, True, True]
    # the root's turn 1 + 1; "empty" 7 + 5; a refused try nothing; a silent one its input, counted here; one
    # without choices what it says, 11 + 3
    used = 2 + 12 + 2 + (estimate_tokens("silent") + 2) + (14 + 2)
    assert ledger["tokens"]["spent"] == used == view.summary.tokens["total"] == answer.tokens["total"]
    empty = next(span for span in of_kind(view, "attempt") if span.error_type == "empty")
    assert view.payload(empty.attributes[sc.REASONING + ".sha256"]) == "hm", "what was paid for is kept"


def test_an_attempt_that_is_stopped_in_flight_counts_with_an_estimate(tmp_path: Path) -> None:
    async def slow(request: Request) -> str:
        await asyncio.sleep(60)
        return "too late"

    model = turns("r = llm_query('a question of some length')", sub=slow)
    _, view, ledger = play(tmp_path, model, Limits(max_seconds=4.0))  # a worker starts, and a cell, before
    (call,), estimated = of_kind(view, "sub_call"), estimate_tokens("a question of some length")
    assert (call.status, call.tokens["input"], call.cost_status) == ("cancelled", estimated, "priced")
    assert call.attributes[sc.USAGE_ESTIMATED] is True
    assert ledger["tokens"]["spent"] == view.summary.tokens["total"]


# -- nothing spins


@pytest.mark.parametrize(
    ("call", "limits", "kind"),
    [
        ("llm_query(f'{n}')", Limits(max_calls=1, max_iterations=3), "budget"),
        ("rlm_query('child')", Limits(max_calls=1, max_iterations=3), "budget"),
        ("rlm_query('child')", Limits(max_depth=0, max_iterations=2), "depth"),
        ("llm_query('x', model='test/other')", Limits(max_iterations=2), "bad_request"),
    ],
    ids=["calls", "child runs", "child runs too deep", "a foreign model"],
)
def test_a_cell_that_asks_for_ever_is_stopped(
    call: str, limits: Limits, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_scope, "TURNED_AWAY_PER_CELL", 20)
    _, view, _ = play(tmp_path, turns(SPIN.format(call=call)), limits)
    spun = of_kind(view, "cell")[0]
    assert spun.error_type == "KeyboardInterrupt", spun
    turned_away = [
        span for span in of_kind(view, "sub_call") if span.cell == spun.cell and span.error_type == kind
    ]
    most = 8 if kind == "budget" else 20
    assert most <= len(turned_away) <= 2 * most


def test_child_runs_that_cannot_ask_their_root_are_refusals_too(tmp_path: Path) -> None:
    """The budget has room for the top run only, so a child starts, is refused its first turn and ends."""
    model = turns(SPIN.format(call="rlm_query('child')"), price=2)
    limits = Limits(max_cost_usd=5 * CENT, max_tokens_root=2, max_iterations=2)
    answer, view, _ = play(tmp_path, model, limits)
    children = [span for span in of_kind(view, "run") if span.depth == 1]
    assert 8 <= len(children) <= 9 and {span.error_type for span in children} == {"budget"}
    assert answer.stop_reason == "budget"


# -- prices that are not known


def test_a_cost_limit_needs_prices_or_another_limit() -> None:
    limits = Limits(max_cost_usd=CENT)
    with pytest.raises(ConfigError, match="the price of openai/unpriced is unknown"):
        RLM(MODEL, "openai/unpriced", limits=limits, prices=CENTS)
    for fine in (
        Limits(max_cost_usd=CENT, max_tokens=100),
        Limits(max_cost_usd=CENT, max_calls=10),
        Limits(),
    ):
        RLM(MODEL, "openai/unpriced", limits=fine, prices=CENTS).close()
    RLM(MODEL, MODEL, limits=limits, prices=CENTS).close()
    RLM(limits=limits).close()  # the demo models are free


def test_costs_of_unknown_price_are_unknown_in_the_ledger(tmp_path: Path) -> None:
    limits = Limits(max_cost_usd=CENT, max_tokens=100_000)
    answer, _, ledger = play(tmp_path, turns("FINAL(llm_query('x'))"), limits, prices=PriceTable())
    assert (answer.text, answer.cost_usd, ledger["usd"]["known"]) == ("yes", None, False)
