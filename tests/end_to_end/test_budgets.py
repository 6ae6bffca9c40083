"""Budgets from the command line to a model server: one ledger for the whole tree, reserved before each call.

The sub-model costs a cent a call by prices of the test's own, the root model nothing, so that every amount
can be told by counting requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.loopback import Fault, Loopback, Messages, Reply, Script
from ui.cli import cli

ROOT, SUB = "openai/root-model", "openai/sub-model"
CENT = Decimal("0.01")
ANSWER = Reply("ok", usage={"prompt_tokens": 1, "completion_tokens": 4000, "total_tokens": 4001})
FIRST_GUESS = Decimal("0.0025")  # what is reserved for a call before any reply was seen: 1,000 tokens
KINDS = "[getattr(reply, 'kind', 'ok') for reply in replies]"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def call(tmp_path: Path, server: Loopback) -> Callable[..., Any]:
    """Call a command with --json in a home where the models have their prices; its document comes back."""
    env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-x"}

    def run(*words: str, codes: tuple[int, ...] = (0,)) -> Any:
        result = CliRunner().invoke(cli, [*words, "--json", "--home", str(tmp_path / "home")], env=env)
        assert result.exit_code in codes, result.stderr
        return json.loads(result.stdout)

    run("prices", "set", ROOT, "--free")
    run("prices", "set", SUB, "--input", "0", "--output", "2.5")
    return run


@pytest.fixture
def ask(call: Callable[..., Any], server: Loopback, tmp_path: Path) -> Callable[..., Any]:
    """Ask with a root that writes the given cells, one a turn; its last reply comes again and again.

    A mapping gives the cells by a word of the question, for child runs.
    """
    (tmp_path / "note.txt").write_text("A short note.\n")

    def run(
        cells: list[str] | Mapping[str, list[str]], *options: str, faults: Any = (), reply: Reply = ANSWER
    ) -> Any:
        def root(messages: Messages) -> str:
            given = cells if isinstance(cells, list) else cells[_whose(messages, cells)]
            turn = sum(message.get("role") == "assistant" for message in messages)
            return f"```repl\n{given[min(turn, len(given) - 1)]}\n```"

        server.use(Script(root=root, sub=lambda _: reply, latency=0.02, faults=faults))
        words = ("ask", "How many?", str(tmp_path / "note.txt"), "--root", ROOT, "--sub", SUB)
        return call(*words, *options, codes=(0, 1))

    return run


def _whose(messages: Messages, cells: Mapping[str, Any]) -> str:
    question = str(messages[1]["content"])
    return next((word for word in cells if word in question), "")


def sub_requests(server: Loopback) -> int:
    return sum(str(entry["body"]["model"]).startswith("sub") for entry in server.requests)


def spent_on_record(call: Callable[..., Any]) -> Decimal:
    """The sum of the costs of all calls, span by span."""
    spans = call("show", "last")["spans"]
    calls = [span for span in spans if span["kind"] in ("root_call", "sub_call")]
    return sum((Decimal(span["cost_usd"]) for span in calls), Decimal(0))


def test_three_cents_are_three_calls_of_a_cent(
    ask: Callable[..., Any], call: Callable[..., Any], server: Loopback
) -> None:
    cell = f"replies = [llm_query(f'question {{n}}') for n in range(10)]\nFINAL({KINDS})"
    said = ask([cell], "--max-cost", "0.03", "--concurrency", "1")
    assert said["value"] == ["ok"] * 3 + ["budget"] * 7
    assert sub_requests(server) == 3
    assert Decimal(said["cost_usd"]) == spent_on_record(call) == 3 * CENT
    refused = [span for span in call("show", "last")["spans"] if span["status"] == "error"]
    assert len(refused) == 7 and {span["kind"] for span in refused} == {"sub_call"}


def test_what_is_in_flight_when_the_budget_ends_is_all_that_exceeds_it(
    ask: Callable[..., Any], call: Callable[..., Any], server: Loopback
) -> None:
    cell = "replies = llm_batch([f'question {n}' for n in range(40)])\nprint(len(replies))"
    said = ask([cell, "FINAL('so far')"], "--max-cost", "0.03", "--concurrency", "4")
    made = sub_requests(server)
    assert 3 <= made <= 3 + 4
    assert Decimal(said["cost_usd"]) == spent_on_record(call) == made * CENT


def test_a_call_is_reserved_for_before_it_leaves(
    ask: Callable[..., Any], call: Callable[..., Any], server: Loopback
) -> None:
    """Forty could leave at once and nothing is spent yet: only as many leave as were reserved for."""
    cell = "replies = llm_batch([f'question {n}' for n in range(40)])\nprint(len(replies))"
    said = ask([cell, "FINAL('so far')"], "--max-cost", "0.03", "--concurrency", "40")
    made = sub_requests(server)
    assert 3 <= made <= 3 * CENT / FIRST_GUESS == 12
    assert Decimal(said["cost_usd"]) == made * CENT


def test_three_children_share_one_budget(
    ask: Callable[..., Any], call: Callable[..., Any], server: Loopback
) -> None:
    child = f"replies = [llm_query(question + str(n)) for n in range(4)]\nFINAL(' '.join({KINDS}))"
    top = "replies = rlm_query_batched(['child a', 'child b', 'child c'])\nFINAL([str(r) for r in replies])"
    cells = {"child": ["question = 'a question '\n" + child], "How many?": [top]}
    said = ask(cells, "--max-cost", "0.06", "--concurrency", "1")
    kinds = " ".join(said["value"]).split()
    assert (kinds.count("ok"), kinds.count("budget")) == (6, 6)
    assert sub_requests(server) == 6
    assert Decimal(said["cost_usd"]) == spent_on_record(call) == 6 * CENT
    by_depth = {
        row["depth"]: Decimal(row["cost_usd"]) for row in call("cost", "last", "--by", "depth")["rows"]
    }
    assert by_depth == {0: 0, 1: 6 * CENT}


def test_what_a_failed_child_used_is_counted_and_gone_from_the_budget(
    ask: Callable[..., Any], call: Callable[..., Any], server: Loopback
) -> None:
    child = "replies = [llm_query(f'question {n}') for n in range(3)]\nprint('the child got', len(replies))"
    top = "kind = rlm_query('child').kind\nreplies = [llm_query('one more')]\nFINAL([kind, replies[0].kind])"
    broken = Fault("400", contains="the child got 3", times=None)
    cells = {"child": [child], "How many?": [top]}
    said = ask(cells, "--max-cost", "0.03", "--concurrency", "1", faults=[broken])
    assert said["value"][1] == "budget" and said["value"][0] not in (None, "budget")
    assert sub_requests(server) == 3
    assert Decimal(said["cost_usd"]) == spent_on_record(call) == 3 * CENT
    reported = [entry["body"]["usage"] for entry in server.responses if "usage" in entry["body"]]
    assert said["tokens"]["output"] == sum(usage["completion_tokens"] for usage in reported) > 12_000


def test_a_refused_call_cannot_spin_a_cell_for_ever(
    ask: Callable[..., Any], call: Callable[..., Any], server: Loopback
) -> None:
    spin = "n = 0\nwhile True:\n    n += 1\n    llm_query(f'question {n}')"
    said = ask([spin], "--max-cost", "0.03", "--concurrency", "1", "--max-iterations", "3")
    assert said["stop_reason"] in ("budget", "max_iterations")
    assert sub_requests(server) == 3 and Decimal(said["cost_usd"]) == 3 * CENT
    cells = [span for span in call("show", "last")["spans"] if span["kind"] == "cell"]
    refused = [span for span in call("show", "last")["spans"] if span["kind"] == "sub_call"][3:]
    assert 0 < len(refused) <= 8 * len(cells) and {span["status"] for span in refused} == {"error"}


@pytest.mark.parametrize("limit", [("--max-cost", "0.03"), ("--max-tokens", "14000")])
def test_a_server_that_reports_no_usage_makes_no_limit_void(
    ask: Callable[..., Any], call: Callable[..., Any], server: Loopback, limit: tuple[str, str]
) -> None:
    """What a call cost stays unknown; the limit counts what was reserved for it."""
    cell = f"replies = [llm_query(f'question {{n}}') for n in range(15)]\nFINAL({KINDS})"
    said = ask([cell], *limit, "--concurrency", "1", reply=Reply("ok", usage="none"))
    made = sub_requests(server)
    assert 8 <= made <= 12 and said["value"][:made] == ["ok"] * made
    assert set(said["value"][made:]) == {"budget"}
    assert (said["cost_usd"], said["cost_status"]) == (None, "unknown")
