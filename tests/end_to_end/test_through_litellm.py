"""The whole path through LiteLLM and a real model server on 127.0.0.1, with faults, and with kill -9."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, inside, rlmscope, start
from tests.support.loopback import Fault, Loopback, Reply, Script
from traces.home import Home
from traces.ingest import ingest
from traces.reading import list_runs, load_run, span_detail

BATCH = "```repl\nr = llm_batch([f'question {i:03}' for i in range(%d)])\nprint(sum(bool(x) for x in r))\n```"
END = "```repl\nFINAL(sum(bool(x) for x in r))\n```"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text("A short note.\n")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


def environment(server: Loopback) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test-0123456789"}


MODELS = ("--root", "openai/root-model", "--sub", "openai/sub-model")


def usages(log: list[dict[str, Any]]) -> tuple[int, int]:
    """Input and output tokens the server reported."""
    bodies = [entry["body"] for entry in log if entry["event"] == "response"]
    said = [body["usage"] for body in bodies if isinstance(body, dict) and "usage" in body]
    return sum(u["prompt_tokens"] for u in said), sum(u["completion_tokens"] for u in said)


def test_reported_tokens_attempts_and_a_dead_slot(running: Loopback, corpus: Path, home: Home) -> None:
    faults = [
        Fault("500", contains="question 007", times=None),
        Fault("429", contains="question 003", headers={"Retry-After": "1"}),
        Fault("500", contains="question 004"),
        Fault("reset", contains="question 005"),
        Fault("malformed", contains="question 006"),
        Fault("choiceless", contains="question 008"),
    ]
    running.use(Script(root=[BATCH % 20, END], faults=faults))
    said = rlmscope("ask", "How many?", corpus, *MODELS, "--home", home.root, env=environment(running))
    assert (said["answer"], said["stop_reason"], said["sub_calls"]) == ("19", "final", 20)
    assert (said["cost_usd"], said["cost_status"], said["demo"]) == (None, "unknown", False)

    shown = inside("show", said["run_id"], "--home", home.root)
    calls = [span for span in shown["spans"] if span["kind"] == "sub_call"]
    attempts = Counter(span["parent_id"] for span in shown["spans"] if span["kind"] == "attempt")
    tries = {call["call_index"]: attempts[call["span_id"]] for call in calls}
    assert {index for index, number in tries.items() if number > 1} == {3, 4, 5, 6, 7, 8}
    assert all(tries[index] == 2 for index in (3, 4, 5, 6, 8)) and 2 <= tries[7] <= 5
    assert [call["call_index"] for call in calls if call["status"] == "error"] == [7]
    assert {call["status"] for call in calls} == {"ok", "error"}

    assert usages(running.responses) == (said["tokens"]["input"], said["tokens"]["output"])
    spans = [span for span in shown["spans"] if span["kind"] in ("root_call", "sub_call") and span["tokens"]]
    assert sum(span["tokens"]["total"] for span in spans) == said["tokens"]["total"]
    assert len(running.requests) == sum(tries.values()) + 2

    waited = inside("span", said["run_id"], calls[3]["span_id"], "--home", home.root)["attempts"]
    assert waited[1]["retry_after_seconds"] == 1 and waited[1]["wait_seconds"] >= 1
    broken = inside("span", said["run_id"], calls[7]["span_id"], "--home", home.root)
    assert broken["prompt"] == "question 007" and broken["status"] == "error"


def test_no_key_reaches_the_record_or_the_sandbox(running: Loopback, corpus: Path, home: Home) -> None:
    code = "import os\nprint(dict(os.environ))\nFINAL(any('sk-' in v for v in os.environ.values()))"
    look = f"```repl\n{code}\n```"
    running.use(Script(root=[look]))
    said = inside("ask", "Any key?", corpus, *MODELS, "--home", home.root, env=environment(running))
    assert said["value"] is False
    kept = b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())
    assert b"sk-test-0123456789" not in kept


def test_a_returned_model_name_does_not_set_the_price(running: Loopback, corpus: Path, home: Home) -> None:
    running.use(Script(root=[Reply("```repl\nFINAL(1)\n```", model="gpt-5-mini", usage="cached")]))
    said = inside("ask", "What?", corpus, *MODELS, "--home", home.root, env=environment(running))
    assert (said["cost_usd"], said["cost_status"]) == (None, "unknown")
    view = load_run(home, said["run_id"])
    call = next(span for span in view.spans if span.kind == "root_call")
    assert (call.model, call.model_returned) == ("openai/root-model", "gpt-5-mini")


def prompts_of(log: Path) -> Counter[str]:
    """Prompts of the sub-model that the server received."""
    received: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if entry["event"] == "request" and entry["body"]["model"].startswith("sub"):
            received[entry["body"]["messages"][-1]["content"]] += 1
    return received


def serve(folder: Path, script: dict[str, Any]) -> tuple[subprocess.Popen[str], Path, str]:
    """The server as a process of its own, so that its log outlives everything."""
    (folder / "script.json").write_text(json.dumps(script))
    log = folder / "server.jsonl"
    command = [sys.executable, str(ROOT / "tests/support/loopback.py"), "--port", "0", "--log", str(log)]
    command += ["--script", str(folder / "script.json"), "--max-seconds", "280"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, log, json.loads(server.stdout.readline())["base_url"]


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


@pytest.mark.parametrize("acknowledged", [pytest.param(1, marks=pytest.mark.full), 37])
def test_kill_9_in_a_batch_loses_no_request_and_no_answer(
    tmp_path: Path, corpus: Path, home: Home, acknowledged: int
) -> None:
    """Every request the server received has a start, every answer taken has an end with its text."""
    server, log, url = serve(tmp_path, {"root": [BATCH % 120, END], "latency": 0.15})
    side = tmp_path / "side.jsonl"
    script = str(ROOT / "tests/support/acknowledging_ask.py")
    command = [
        sys.executable,
        script,
        str(side),
        "ask",
        "How many?",
        str(corpus),
        *MODELS,
        "--home",
        str(home.root),
    ]
    env = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-x", "PYTHONPATH": str(ROOT)}
    with open(tmp_path / "ask.err", "w") as err:
        ask = subprocess.Popen(
            [*command, "--concurrency", "8"], env=env, stdout=err, stderr=err, start_new_session=True
        )
    try:
        wait_for(lambda: side.exists() and len(side.read_text().splitlines()) >= acknowledged)
        os.killpg(ask.pid, signal.SIGKILL)
        ask.wait()
        wait_for(lambda: not workers_of(ask.pid))
    finally:
        ask.kill()
        server.terminate()
        server.communicate()

    report = ingest(home)
    assert len(report.runs) == 1
    view = load_run(home, list_runs(home)[0].run_id)
    assert view.summary.status == "interrupted" and not view.live
    calls = {span.span_id: span for span in view.spans if span.kind == "sub_call"}
    attempted = {span.parent_id for span in view.spans if span.kind == "attempt"}
    started = Counter(
        span_detail(view, span)["prompt"] for span in calls.values() if span.span_id in attempted
    )
    received = prompts_of(log)
    assert received and not received - started
    acknowledged_calls = [json.loads(line) for line in side.read_text().splitlines()]
    assert len(acknowledged_calls) >= acknowledged
    for line in acknowledged_calls:
        span = calls[line["span_id"]]
        response = span_detail(view, span)["response"]
        assert span.status == "ok" and hashlib.sha256(response.encode()).hexdigest() == line["response"]
    open_ones = [span for span in view.spans if span.end_ns is None]
    assert open_ones and {span.status for span in open_ones} == {"lost"}


def workers_of(parent: int) -> list[int]:
    """Worker processes that were started by a process (their command line names it)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(parent).encode() in words and any(b"rlm_core.worker" in word for word in words):
            found.append(int(path.parent.name))
    return found


@pytest.mark.full
def test_six_processes_ask_at_once_into_one_home(running: Loopback, corpus: Path, home: Home) -> None:
    running.use(Script(root=[BATCH % 10, END], latency=0.02))
    asked = [
        start(
            "ask",
            f"Question of process {n}?",
            corpus,
            *MODELS,
            "--home",
            home.root,
            "--json",
            env=environment(running),
        )
        for n in range(6)
    ]
    answers = []
    for process in asked:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        answers.append(json.loads(out))
    assert {answer["answer"] for answer in answers} == {"10"}
    runs = {run["run_id"]: run for run in rlmscope("runs", "--home", home.root)}
    assert sorted(runs) == sorted(answer["run_id"] for answer in answers) and len(runs) == 6
    for number, answer in enumerate(answers):
        assert runs[answer["run_id"]]["question"] == f"Question of process {number}?"
        view = load_run(home, answer["run_id"])
        assert {span.run_id for span in view.spans} == {answer["run_id"]}
        assert Counter(span.kind for span in view.spans)["sub_call"] == 10
        assert view.summary.complete and view.summary.problems == 0
