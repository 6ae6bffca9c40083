"""Every kind of usage that a server reports, against a table calculated by hand, to the last digit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm_core import semconv as sc
from tests.support.loopback import Fault, Loopback, Reply, Script, last_user
from traces.home import Home, new_run_id
from traces.prices import set_price
from traces.reading import RunView, load_run
from ui.cli import cli

ROOT, SUB = "openai/root-model", "openai/sub-model"
# dollars for a million tokens: input, cached read, cache write, output
RATES = {ROOT: ("1.25", "0.125", "1.25", "10"), SUB: ("0.25", "0.025", "0.3125", "2")}
MICRO = Decimal("0.000001")


def used(given: int, made: int, read: int = 0, written: int = 0, reasoning: int = 0) -> dict[str, Any]:
    usage: dict[str, Any] = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
    if read or written:
        usage["prompt_tokens_details"] = {"cached_tokens": read, "cache_write_tokens": written}
    if reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return usage


SLOTS = {
    "plain": Reply("a", usage=used(1000, 10)),
    "cached": Reply("a", usage=used(1000, 10, read=600)),
    "written": Reply("a", usage=used(1000, 10, read=300, written=200)),
    "reasoning": Reply("a", usage=used(1000, 50, reasoning=40)),
    "other": Reply("a", usage=used(7, 3), model="gpt-5"),
    "none": Reply("a", usage="none"),
}
# millionths of a dollar, by hand
BY_SLOT = {
    "plain": Decimal("270"),  # 1000 x 0.25 + 10 x 2
    "cached": Decimal("135"),  # 400 x 0.25 + 600 x 0.025 + 10 x 2
    "written": Decimal("215"),  # 500 x 0.25 + 300 x 0.025 + 200 x 0.3125 + 10 x 2
    "reasoning": Decimal("350"),  # 1000 x 0.25 + 50 x 2: reasoning is part of the output
    "other": Decimal("7.75"),  # 7 x 0.25 + 3 x 2, at the price of the model asked for
}
BY_ROOT_CALL = [
    Decimal("3500"),  # 2000 x 1.25 + 100 x 10
    Decimal("2000"),  # 1000 x 1.25 + 2000 x 0.125 + 50 x 10
]
BY_CLASS = {
    "input": Decimal("4476.75"),  # (1000 + 400 + 500 + 1000 + 7) x 0.25 + (2000 + 1000) x 1.25
    "cached_read": Decimal("272.5"),  # (600 + 300) x 0.025 + 2000 x 0.125
    "cache_write": Decimal("62.5"),  # 200 x 0.3125
    "output": Decimal("1666"),  # (10 + 10 + 10 + 50 + 3) x 2 + (100 + 50) x 10
}
TOTAL = Decimal("6477.75")


def replies(*slots: str, root: tuple[Any, Any] = (used(2000, 100), used(3000, 50, read=2000))) -> Script:
    ask = f"```repl\nr = llm_batch({list(slots)!r})\n```"
    turns = [Reply(ask, usage=root[0]), Reply("```repl\nFINAL(len(r))\n```", usage=root[1])]
    faults = [Fault("429", contains="reasoning", headers={"Retry-After": "0"})]
    return Script(root=turns, sub=lambda prompt: SLOTS[prompt], faults=faults)


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def server(running: Loopback, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    return running


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home.resolve(tmp_path / "home")
    for model, rates in RATES.items():
        names = ("input", "cached_read", "cache_write", "output")
        set_price(found, model, dict(zip(names, map(Decimal, rates), strict=True)))
    return found


def rlmscope(home: Home, *words: str) -> Any:
    result = CliRunner().invoke(cli, [*words, "--home", str(home.root), "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def ask(home: Home, tmp_path: Path, *words: str, root: str = ROOT) -> dict[str, Any]:
    note = tmp_path / "note.txt"
    note.write_text("A short note.\n")
    said: dict[str, Any] = rlmscope(home, "ask", "How many?", str(note), "--root", root, "--sub", SUB, *words)
    return said


def micro(usd: str | None) -> Decimal | None:
    """Millionths of a dollar, exactly."""
    return None if usd is None else Decimal(usd) / MICRO


def by_prompt(view: RunView) -> dict[str, Any]:
    calls = [span for span in view.spans if span.kind == "sub_call"]
    return {span.attributes[sc.PROMPT + ".preview"]: span for span in calls}


def test_ledger_record_and_cost_equal_the_table(server: Loopback, home: Home, tmp_path: Path) -> None:
    server.use(replies(*BY_SLOT))
    said = ask(home, tmp_path)
    assert (said["answer"], said["cost_status"], micro(said["cost_usd"])) == ("5", "priced", TOTAL)
    assert said["tokens"] == {"input": 9007, "output": 233, "total": 9240}

    view = load_run(home, said["run_id"])
    spent = json.loads(next(s.attributes[sc.LEDGER] for s in view.spans if s.kind == "run"))
    assert (spent["calls"]["spent"], spent["tokens"]["spent"]) == (5, 9240)
    assert (micro(spent["usd"]["spent"]), spent["usd"]["known"]) == (TOTAL, True)

    sub = by_prompt(view)
    assert {slot: span.cost_usd / MICRO for slot, span in sub.items()} == BY_SLOT
    roots = [span.cost_usd / MICRO for span in view.spans if span.kind == "root_call" and span.cost_usd]
    assert roots == BY_ROOT_CALL
    attempts = [span for span in view.spans if span.kind == "attempt"]
    assert sum(span.cost_usd or 0 for span in attempts) / MICRO == TOTAL and len(attempts) == 8

    for key, expected in {
        "role": {"sub": sum(BY_SLOT.values()), "root": sum(BY_ROOT_CALL)},
        "model": {SUB: sum(BY_SLOT.values()), ROOT: sum(BY_ROOT_CALL)},
        "depth": {0: TOTAL},
        "iteration": {0: BY_ROOT_CALL[0] + sum(BY_SLOT.values()), 1: BY_ROOT_CALL[1]},
        "cell": {0: sum(BY_SLOT.values()), None: sum(BY_ROOT_CALL)},
        "class": BY_CLASS,
    }.items():
        report = rlmscope(home, "cost", said["run_id"], "--by", key)
        assert micro(report["total_usd"]) == TOTAL
        assert {row[key]: micro(row["cost_usd"]) for row in report["rows"]} == expected, key


def test_the_arithmetic_of_a_call_and_the_figure_of_litellm(
    server: Loopback, home: Home, tmp_path: Path
) -> None:
    server.use(replies("written", "other", "reasoning"))
    sub = by_prompt(load_run(home, ask(home, tmp_path)["run_id"]))
    told = rlmscope(home, "cost", "last", "--explain", sub["written"].span_id)
    assert [
        (row["class"], row["tokens"]["total"], row["usd_per_mtok"], micro(row["cost_usd"]))
        for row in told["rows"]
    ] == [
        ("input", 500, "0.25", 125),
        ("cached_read", 300, "0.025", Decimal("7.5")),
        ("cache_write", 200, "0.3125", Decimal("62.5")),
        ("output", 10, "2", 20),
    ]
    assert micro(told["sum_usd"]) == BY_SLOT["written"] and told["rest_usd"] == "0"
    assert told["price"]["source"].startswith("override ") and told["litellm"] is None

    other = rlmscope(home, "cost", "last", "--explain", sub["other"].span_id)
    assert (other["model"], other["model_returned"]) == (SUB, "gpt-5")
    # LiteLLM prices by the name in the answer: 7 x 1.25 + 3 x 10
    assert (micro(other["litellm"]["usd"]), other["litellm"]["difference"]) == (Decimal("38.75"), "4.000000")
    (finding,) = json.loads(sub["other"].attributes[sc.FINDINGS])
    assert finding["rule"] == "cost_check" and "+400.0%" in finding["message"]

    tried = rlmscope(home, "cost", "last", "--explain", sub["reasoning"].span_id)
    assert [(a["error_type"], a["cost_usd"], a["tokens"]) for a in tried["attempts"]] == [
        ("rate_limit", "0", None),
        (None, "0.00035", {"input": 1000, "output": 50, "total": 1050}),
    ]
    assert tried["usage"]["reasoning"] == 40


def test_usage_that_is_not_reported_and_a_model_without_a_price_are_unknown(
    server: Loopback, home: Home, tmp_path: Path
) -> None:
    server.use(replies("plain", "none"))
    said = ask(home, tmp_path, root="openai/root-unpriced")
    assert (said["cost_usd"], said["cost_status"], micro(said["known_usd"])) == (None, "partial", 270)
    report = rlmscope(home, "cost", "last", "--by", "role")
    assert (report["total_usd"], micro(report["known_usd"]), report["cost_status"]) == (None, 270, "partial")
    rows = {row["role"]: (row["cost_usd"], row["known_usd"], row["cost_status"]) for row in report["rows"]}
    assert rows == {"sub": (None, "0.00027", "partial"), "root": (None, "0", "unknown")}
    view = load_run(home, said["run_id"])
    spent = json.loads(next(s.attributes[sc.LEDGER] for s in view.spans if s.kind == "run"))
    assert (micro(spent["usd"]["spent"]), spent["usd"]["known"]) == (270, False)
    why = {
        span.span_id: rlmscope(home, "cost", "last", "--explain", span.span_id)["why"]
        for span in view.spans
        if span.cost_status == "unknown" and span.kind in ("root_call", "sub_call")
    }
    assert sorted(set(why.values())) == [
        "no price was known for openai/root-unpriced, or its usage does not tell all classes",
        "no usage was reported for it",
    ]
    assert last_user(server.requests[0]["body"]["messages"])  # the server did see the calls

    as_priced = rlmscope(home, "cost", "last", "--as", f"root={ROOT}", "--by", "role")
    rows = {row["role"]: (row["cost_usd"], row["recorded_usd"]) for row in as_priced["rows"]}
    assert rows == {"root": ("0.0055", None), "sub": (None, None)}


def test_a_price_that_is_set_later_rewrites_nothing_and_counts_in_the_apps_runs(
    server: Loopback, home: Home, tmp_path: Path
) -> None:
    from ui.web.order import Order, StartFiles
    from ui.web.run_process import run

    server.use(replies("plain"))
    first = ask(home, tmp_path)
    set_price(home, SUB, {"input": Decimal("25"), "output": Decimal("200")})
    again = rlmscope(home, "ingest", "--rebuild")
    assert again["run_ids"] == [first["run_id"]]
    assert rlmscope(home, "cost", first["run_id"])["total_usd"] == first["cost_usd"] == "0.00577"

    server.use(replies("plain"))
    run_id = new_run_id()
    files = StartFiles(home, run_id)
    files.request.parent.mkdir()
    corpus = load_run(home, first["run_id"]).summary.corpus_id
    assert corpus is not None and files.write_order(Order("How many?", corpus, ROOT, SUB))
    import os

    assert run(home, run_id, os.environ) == 0
    by_role = {row["role"]: row["cost_usd"] for row in rlmscope(home, "cost", run_id)["rows"]}
    assert by_role == {"root": "0.0055", "sub": "0.027"}
