"""`rlmscope resume` through the command line, against a model server."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.command import rlmscope, start
from tests.support.dead_runs import died_at, records
from tests.support.loopback import Loopback, Messages
from tests.support.loopback import Script as Server
from tests.support.scripted import cell
from traces.home import Home
from traces.reading import list_runs
from ui.cli import cli

Call = Callable[..., Any]
CELLS = (
    "replies = llm_batch(['How long is it?'] * len(documents), documents)\nprint(len(replies))",
    "part = rlm_query('child: how many?')\nprint(part)",
    "total = llm_query('Add up: ' + ' '.join(replies) + ' ' + part)\nFINAL(total)",
)
CHILD = "FINAL(llm_query('inner'))"
LIMITS = ("--root", "openai/root", "--sub", "openai/sub", "--concurrency", "2")


def root(messages: Messages) -> str:
    """Writes the cells in order, one for a child run."""
    turn = sum(message.get("role") == "assistant" for message in messages)
    child = "# Question\nchild" in str(messages[1]["content"])
    return cell(CHILD if child else CELLS[turn])


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(Server(root=root)) as running:
        yield running


@pytest.fixture
def asked(server: Loopback) -> dict[str, str]:
    """The environment in which the server is the models'; it has heard nothing yet."""
    server.use(Server(root=root))
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Six short documents."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.txt").write_text(f"document {number} " + "x" * number, "utf-8")
    return folder


def heard(server: Loopback) -> Counter[str]:
    """What the server was asked, whole conversations."""
    return Counter(json.dumps(request["body"]["messages"]) for request in server.requests)


def at(home: Home, *words: str, env: dict[str, str] | None = None) -> Any:
    """A command on another home; what it prints, parsed if it is JSON."""
    done = CliRunner().invoke(cli, [*words, "--home", str(home.root)], env=env)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout) if "--json" in words else done.stdout


def test_a_killed_run_is_continued_and_nothing_is_asked_twice(
    call: Call, home: Home, server: Loopback, asked: dict[str, str], documents: Path, tmp_path: Path
) -> None:
    whole = call("ask", "How long?", str(documents), *LIMITS, "--json", env=asked).json
    everything, run_id = heard(server), whole["run_id"]
    dead = died_at(home, run_id, records(home, run_id) // 2, tmp_path / "dead")
    spans = at(dead, "show", run_id, "--json")["spans"]
    answered = sum(s["status"] == "ok" and s["kind"] in ("root_call", "sub_call") for s in spans)
    server.use(Server(root=root))
    said = at(dead, "resume", run_id[:15], "--json", env=asked)
    assert (said["answer"], said["stop_reason"]) == (whole["answer"], "final")
    assert said["resumed_from"] == run_id != said["run_id"]
    assert said["served_calls"] + said["served_turns"] == answered > 3
    assert heard(server).total() == everything.total() - answered and heard(server) <= everything
    shown = at(dead, "show", said["run_id"])
    assert f"continues run {run_id}" in shown and "from the record" in shown
    assert f"continued by run {said['run_id']}" in at(dead, "show", run_id)
    later = {one: at(dead, "show", one, "--json")["continued_by"] for one in (run_id, said["run_id"])}
    assert later == {run_id: [said["run_id"]], said["run_id"]: []}
    listed = {run["run_id"]: run["resumed_from"] for run in at(dead, "runs", "--json")}
    assert listed == {said["run_id"]: run_id, run_id: None}
    again = at(dead, "replay", said["run_id"], "--json")
    assert (again["replayable"], again["live_calls"]) == (True, 0)
    paid = at(dead, "cost", said["run_id"], "--by", "role", "--json")["rows"]
    assert sum(row["calls"] for row in paid) == heard(server).total()


def test_a_run_that_outgrew_its_window_goes_on_in_a_larger_one(
    call: Call, home: Home, asked: dict[str, str], documents: Path
) -> None:
    small = call("ask", "How long?", str(documents), *LIMITS, "--root-window", "300", "--json", env=asked)
    assert "root_window is 300" in small.json["error"]
    again = CliRunner().invoke(cli, ["resume", "last", "--json", "--home", str(home.root)], env=asked)
    assert json.loads(again.stdout)["stop_reason"] == "error"
    said = at(home, "resume", "last", "--root-window", "90000", "--json", env=asked)
    assert said["stop_reason"] == "final"


@pytest.mark.full
def test_a_run_that_ended_with_an_answer_is_not_resumed(
    call: Call, home: Home, asked: dict[str, str], documents: Path
) -> None:
    whole = call("ask", "How long?", str(documents), *LIMITS, "--json", env=asked).json
    done = call("resume", whole["run_id"], env=asked)
    assert done.code == 2 and "ended with an answer: there is nothing to resume" in done.error
    assert len(list_runs(home)) == 1


@pytest.mark.full
def test_a_process_that_is_killed_is_continued(
    home: Home, server: Loopback, asked: dict[str, str], documents: Path
) -> None:
    server.use(Server(root=root, latency=0.3))
    process = start("ask", "How long?", documents, *LIMITS, "--home", home.root, env=asked)
    deadline = time.monotonic() + 120
    while len(server.responses) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before, in_flight = heard(server), len(server.requests) - len(server.responses)
    spans = rlmscope("show", "last", "--home", home.root)["spans"]
    kept = sum(s["status"] == "ok" and s["kind"] in ("root_call", "sub_call") for s in spans)
    said = rlmscope("resume", "last", "--home", home.root, env=asked)
    assert said["stop_reason"] == "final" and said["served_calls"] + said["served_turns"] == kept > 0
    again = [request for request, count in (heard(server)).items() if count > 1 and request in before]
    assert len(again) <= max(in_flight, 2), "only what was in flight is asked once more"
