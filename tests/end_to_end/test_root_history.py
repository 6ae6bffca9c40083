"""A full window and a family of models, through the command line, LiteLLM and a model server on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_core.lm_handler import Message
from rlm_core.prompt_families import family_of
from rlm_core.prompts import is_summary_request, turns_so_far
from tests.support.command import rlmscope, start
from tests.support.loopback import Fault, Loopback, Messages, Script

pytestmark = pytest.mark.full
TURNS = 6


def root(messages: Messages) -> str:
    """Prints much in six turns, and sums them up where it is asked to."""
    said = [Message(m["role"], m["content"]) for m in messages]
    if is_summary_request(said):
        return "The harbour was looked at; n0 and so on hold the counts."
    turn = turns_so_far(said)
    if turn < TURNS:
        return f"```repl\nn{turn} = {turn}\nprint('turn {turn} ' + 'x' * 4_000)\n```"
    return f"```repl\nFINAL(sum([{', '.join(f'n{n}' for n in range(TURNS))}]))\n```"


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text("A short note.\n")
    return path


def environment(server: Loopback) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test-0123456789"}


def test_a_run_goes_on_past_its_window_and_is_played_again_without_a_model(
    running: Loopback, corpus: Path, tmp_path: Path
) -> None:
    running.use(Script(root=root))
    home, env = tmp_path / "home", environment(running)
    models = ("--root", "openai/root-model", "--sub", "openai/sub-model")
    said = rlmscope(
        "ask", "What is it?", corpus, *models, "--root-window", "4000", "--home", home, env=env
    )  # fmt: skip
    assert (said["answer"], said["stop_reason"], said["iterations"]) == ("15", "final", 7)
    sent = len(running.requests)
    assert sent > 7  # turns and summaries
    shown = rlmscope("show", said["run_id"], "--home", home)
    assert [finding["kind"] for finding in shown["findings"]].count("compacted") == 1
    calls = [span for span in shown["spans"] if span["kind"] == "root_call"]
    assert len(calls) == sent
    process = start("show", said["run_id"], "--home", str(home))
    tree, _ = process.communicate(timeout=120)
    assert "summary of " in tree

    again = rlmscope("replay", said["run_id"], "--home", home)
    assert again["answer"] == "15" and again["live_calls"] == 0
    assert len(running.requests) == sent


def test_a_server_that_says_too_long_gets_a_shorter_request(
    running: Loopback, corpus: Path, tmp_path: Path
) -> None:
    running.use(Script(root=root, faults=[Fault("400_context", ordinal=4)]))
    models = ("--root", "openai/root-model", "--sub", "openai/sub-model")
    said = rlmscope(
        "ask", "What is it?", corpus, *models, "--home", tmp_path / "home", env=environment(running)
    )
    assert (said["answer"], said["stop_reason"]) == ("15", "final")
    statuses = [entry["status"] for entry in running.responses if entry["event"] == "response"]
    assert statuses.count(400) == 1


def test_each_family_is_told_its_own_text(running: Loopback, corpus: Path, tmp_path: Path) -> None:
    running.use(Script())
    home = tmp_path / "home"
    models = ("openai/root-qwen3-coder", "openai/sub-model")
    said = rlmscope(
        "ask", "What is it?", corpus, "--root", models[0], "--sub", models[1], "--home", home,
        env=environment(running),
    )  # fmt: skip
    assert running.requests[0]["body"]["messages"][0]["content"] == family_of(*models).system
    shown = rlmscope("show", said["run_id"], "--home", home)
    run = next(span for span in shown["spans"] if span["kind"] == "run")
    detail = rlmscope("span", said["run_id"], run["span_id"], "--home", home)
    assert detail["facts"]["prompts.version"] == "3/qwen"
