"""Every strategy through the command line, LiteLLM and a model server on 127.0.0.1; on each sample corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm_core.options import STRATEGIES
from tests.support.command import ROOT, rlmscope
from tests.support.loopback import Fault, Loopback, Messages, Script, last_user
from ui.cli import cli

pytestmark = pytest.mark.full
SAMPLES = ROOT / "sample_data"
ASKED = json.loads((SAMPLES / "questions.json").read_text("utf-8"))
QUESTIONS = {item["corpus"]: item["question"] for item in reversed(ASKED)}  # the first of each corpus
MODELS = ("--root", "openai/root-model", "--sub", "openai/sub-model")
QUESTION = "Which pin opens the harbour gate?"
SECRET = "The pin of the harbour gate is 4711.\n"


def root(messages: Messages) -> str:
    """Writes cells where it is told of a REPL, else answers from what it is shown."""
    if "```repl" in messages[0]["content"]:
        if "llm_batch" in messages[0]["content"]:
            code = "FINAL(max(llm_batch(['Which pin?'] * 2, documents), key='4711'.__eq__))"
        else:
            code = "FINAL('4711' if '4711' in str(context.top('harbour gate pin', 1)) else 'none')"
        return f"```repl\n{code}\n```"
    return "4711" if "4711" in last_user(messages) else "none"


def sub(prompt: str) -> str:
    """Finds the pin where it is."""
    return "4711" if "4711" in prompt else "none"


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("The harbour gate is green.\n" * 300)
    (folder / "b.txt").write_text(SECRET + "The fence is low.\n" * 300)
    return folder


def compare(server: Loopback, corpus: Path, home: Path, *options: str) -> Any:
    env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test-0123456789"}
    words = ("compare-strategies", QUESTION, corpus, *MODELS, "--expected", "4711", *options, "--home", home)
    return rlmscope(*words, env=env)


def read(*words: str | Path) -> Any:
    """The document of a command that is called in this process."""
    done = CliRunner().invoke(cli, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_all_strategies_answer_in_one_form_of_record(running: Loopback, corpus: Path, tmp_path: Path) -> None:
    running.use(Script(root=root, sub=sub))
    home = tmp_path / "home"
    said = compare(running, corpus, home, "--root-window", "4000")
    assert {row["strategy"]: row["correct"] for row in said["rows"]} == dict.fromkeys(STRATEGIES, True)
    rows = {row["strategy"]: row for row in said["rows"]}
    assert rows["compaction"]["root_calls"] > 2 and rows["rlm"]["sub_calls"] == 2
    assert all(row["sub_calls"] == 0 for name, row in rows.items() if name not in ("rlm", "retrieve+rlm"))
    asked = sum(row["root_calls"] + row["sub_calls"] for row in said["rows"])
    assert len(running.requests) == asked
    for name, row in rows.items():
        shown = read("show", row["run_id"], "--home", home)
        kinds = [span["kind"] for span in shown["spans"]]
        assert kinds[:3] == ["run", "iteration", "root_call"], name
        assert shown["run"]["strategy"] == name
        spent = sum(
            span["tokens"]["total"] for span in shown["spans"] if span["role"] and span["kind"] != "attempt"
        )
        assert spent == row["tokens"]["total"], name
        played = read("replay", row["run_id"], "--home", home)
        assert (played["outcome"], played["live_calls"]) == ("unchanged", 0), name
    assert len(running.requests) == asked  # no replay asked anybody
    pair = [rows[name]["run_id"] for name in ("rlm", "retrieve+rlm")]
    assert read("diff", *pair, "--home", home)["rows"]


def test_a_corpus_that_the_server_finds_too_long_does_not_fit(
    running: Loopback, corpus: Path, tmp_path: Path
) -> None:
    running.use(Script(root=root, sub=sub, faults=[Fault("400_context", contains="The fence", times=None)]))
    said = compare(running, corpus, tmp_path / "home", "--strategies", "direct")
    (row,) = said["rows"]
    assert (row["fits"], row["answer"], row["correct"]) == (False, None, None)
    assert "does not fit" in row["note"]
    assert any("how much openai/root-model takes is not known" in notice for notice in said["notices"])


@pytest.mark.parametrize("corpus", sorted(QUESTIONS))
def test_on_each_sample_corpus(corpus: str, tmp_path: Path) -> None:
    said = rlmscope("compare-strategies", QUESTIONS[corpus], SAMPLES / corpus, "--home", tmp_path / "home")
    assert [row["strategy"] for row in said["rows"]] == list(STRATEGIES)
    assert all(row["answer"] is not None and row["demo"] for row in said["rows"])
