"""Child runs through the command line and a model server: subtrees, models of each depth, budget, replay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.loopback import Loopback, Messages, Script
from tests.support.scripted import cell
from traces.home import Home
from ui.cli import cli

MODELS = ("--root", "openai/root", "--sub", "openai/sub")


def root_of(depth: int, width: int) -> Any:
    """A root whose every run, down to a depth, asks a sub-call and `width` child runs, and counts answers."""

    def reply(messages: Messages) -> str:
        found = re.search(r"# Question\nlevel (\d+)", str(messages[1]["content"]))
        level = int(found[1]) if found else 0
        below = [f"level {level + 1}, part {number}" for number in range(width if level < depth else 0)]
        return cell(
            f"said = [llm_query('level {level}')] + rlm_query_batched({below!r})\n"
            "FINAL(sum(1 for one in said if one))"
        )

    return reply


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


@pytest.fixture
def document(tmp_path: Path) -> str:
    (tmp_path / "a.txt").write_text("a document", "utf-8")
    return str(tmp_path / "a.txt")


def rlmscope(home: Home, server: Loopback, *words: str) -> Any:
    """What a command says with --json."""
    env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}
    done = CliRunner().invoke(cli, [*words, "--json", "--home", str(home.root)], env=env)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_a_tree_is_one_run_with_subtrees_and_plays_again(home: Home, server: Loopback, document: str) -> None:
    server.use(Script(root=root_of(2, 2)))
    limits = ("--max-depth", "2", "--concurrency", "1", "--at", "1:root=openai/root-small,sub=openai/tiny")
    said = rlmscope(home, server, "ask", "what?", document, *MODELS, *limits)
    assert (said["answer"], said["stop_reason"]) == ("3", "final")
    runs = [span for span in rlmscope(home, server, "show", "last")["spans"] if span["kind"] == "run"]
    assert sorted(span["depth"] for span in runs) == [0, 1, 1, 2, 2, 2, 2]
    assert [run["run_id"] for run in rlmscope(home, server, "runs")] == [said["run_id"]]
    asked = {(request["body"]["model"]) for request in server.requests}
    assert asked == {"root", "sub", "root-small", "tiny"}
    rows = rlmscope(home, server, "cost", "last", "--by", "depth,model")["rows"]
    assert {(row["depth"], row["model"]): row["calls"] for row in rows} == {
        (0, "openai/root"): 1, (0, "openai/sub"): 1, (1, "openai/root-small"): 2, (1, "openai/tiny"): 2,
        (2, "openai/root-small"): 4, (2, "openai/tiny"): 4,
    }  # fmt: skip
    heard = len(server.requests)
    again = rlmscope(home, server, "replay", "last")
    assert (again["replayable"], again["outcome"], again["live_calls"]) == (True, "unchanged", 0)
    assert len(server.requests) == heard
    assert rlmscope(home, server, "diff", said["run_id"], again["run_id"])["frontier"] == []
    live = rlmscope(home, server, "replay", "last", "--mode", "live")
    assert live["live_calls"] == 7 and {r["body"]["model"] for r in server.requests[heard:]} == {
        "sub",
        "tiny",
    }


@pytest.mark.full
def test_depth_three_width_eight_concurrency_two(home: Home, server: Loopback, document: str) -> None:
    server.use(Script(root=root_of(3, 8)))
    limits = ("--max-depth", "3", "--concurrency", "2")
    said = rlmscope(home, server, "ask", "what?", document, *MODELS, *limits)
    assert (said["answer"], said["stop_reason"]) == ("9", "final")
    assert len(server.requests) == 2 * (1 + 8 + 64 + 512) and server.peak <= 2
    again = rlmscope(home, server, "replay", said["run_id"])
    assert (again["replayable"], again["outcome"], again["live_calls"]) == (True, "unchanged", 0)
    assert len(server.requests) == 2 * (1 + 8 + 64 + 512)


@pytest.mark.full
def test_a_budget_stops_it_within_what_is_in_flight(home: Home, server: Loopback, document: str) -> None:
    server.use(Script(root=root_of(3, 8)))
    limits = ("--max-depth", "3", "--concurrency", "2", "--max-tokens", "60000")
    env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}
    words = ["ask", "what?", document, *MODELS, *limits, "--json", "--home", str(home.root)]
    said = json.loads(CliRunner().invoke(cli, words, env=env).stdout)
    usage = [response["body"]["usage"]["total_tokens"] for response in server.responses]
    assert said["tokens"]["total"] == sum(usage) <= 60_000 + 2 * max(usage)
    assert 10 < len(usage) < 1_170
