"""The command line called in this process, and runs written through the recorder with fixed ids and times."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from opentelemetry.sdk.trace.id_generator import IdGenerator

from rlm_core import semconv as sc
from rlm_core.telemetry import Recorder, RunSpan, as_json
from traces.home import Home
from traces.recording import Recording, open_recording
from ui.cli import cli

START = 1_800_000_000_000_000_000  # nanoseconds since the epoch: 2027-01-15T08:00:00Z


@dataclass(frozen=True)
class Called:
    """What one call of the command line left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document it must be."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """Standard error as the one line it must be."""
        assert self.err.count("\n") == 1 and self.err.startswith("rlmscope: "), self.err
        return self.err


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


@pytest.fixture
def call(home: Home) -> Callable[..., Called]:
    """Call a command of the program with the test's home: `call("runs", "--json")`."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> Called:
        result = CliRunner().invoke(cli, [*arguments, "--home", str(home.root)], env=env)
        return Called(result.exit_code, result.stdout, result.stderr)

    return run


class Ids(IdGenerator):
    """1, 2, 3, ... spread over the first digits, so that short prefixes differ."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def generate_span_id(self) -> int:
        return next(self._next) << 44

    def generate_trace_id(self) -> int:
        return 1


@dataclass(frozen=True)
class SubCall:
    """One sub-call of a written run; `error` is its kind."""

    prompt: str = "Which label?"
    response: str = "billing"
    error: str | None = None
    cost: str | None = "0.0001"


@dataclass(frozen=True)
class Script:
    """What a written run says."""

    question: str = "How many?"
    answer: str | None = "42"
    code: str = "replies = llm_batch(prompts)"
    stdout: str = "done\n"
    calls: Sequence[SubCall] = field(default_factory=lambda: [SubCall()])
    model: str = "openai/small"


def write_run(home: Home, run_id: str, script: Script, *, close: bool = True) -> Recording:
    """A run of one iteration: a root call, a cell, a batch of sub-calls. Left open it is a live run."""
    clock = itertools.count(START, 1_000_000)
    recording = open_recording(home, run_id, {}, id_generator=Ids(), clock=lambda: next(clock))
    recorder = recording.recorder
    place = {sc.RUN_PATH: "0", sc.DEPTH: 0}
    facts = {**place, sc.ROOT_MODEL: "openai/big", sc.SUB_MODEL: script.model, sc.SANDBOX: "none"}
    run = recorder.start("run", sc.NAME_RUN, None, facts)
    run.text(sc.QUESTION, script.question)
    run.set({sc.PREVIEW: script.question})
    iteration = recorder.start("iteration", sc.NAME_ITERATION, run, {**place, sc.ITERATION: 0})
    _root_call(recorder, iteration, place, script)
    cell = recorder.start("cell", sc.NAME_CELL, iteration, {**place, sc.CELL: 0, sc.PHASE: "Decompose"})
    cell.text(sc.CODE, script.code)
    cell.set({sc.PREVIEW: script.code})
    batch = recorder.start("batch", sc.NAME_BATCH, cell, {**place, sc.BATCH_SIZE: len(script.calls)})
    for index, asked in enumerate(script.calls):
        _sub_call(recorder, batch, {**place, sc.CALL_INDEX: index}, asked, script.model)
    if not close:
        return recording
    batch.end()
    cell.text(sc.STDOUT, script.stdout)
    cell.text(sc.VARIABLES, as_json([{"name": "replies", "type": "list", "size": len(script.calls)}]))
    cell.end()
    iteration.end()
    if script.answer is not None:
        run.text(sc.ANSWER, script.answer)
    run.set({sc.STOP_REASON: "final" if script.answer is not None else "max_iterations"})
    run.end("ok" if script.answer is not None else "error")
    recording.close("ok" if script.answer is not None else "error")
    return recording


def _root_call(recorder: Recorder, parent: RunSpan, place: dict[str, Any], script: Script) -> None:
    asked = recorder.payload(script.question)
    facts = {**place, sc.ROLE: "root", sc.REQUEST_MODEL: "openai/big", sc.MESSAGES_PRIOR: 0}
    facts[sc.MESSAGES_ADDED] = as_json([["user", asked]])
    span = recorder.start("root_call", sc.chat("openai/big"), parent, facts)
    span.text(sc.RESPONSE, f"```repl\n{script.code}\n```")
    span.end("ok", {sc.USAGE_INPUT: 100, sc.USAGE_OUTPUT: 20, sc.COST_USD: "0.01", sc.COST_STATUS: "priced"})


def _sub_call(recorder: Recorder, parent: RunSpan, place: dict[str, Any], asked: SubCall, model: str) -> None:
    span = recorder.start(
        "sub_call", sc.chat(model), parent, {**place, sc.ROLE: "sub", sc.REQUEST_MODEL: model}
    )
    span.text(sc.PROMPT, asked.prompt)
    span.set({sc.SOURCE_RANGES: as_json({"how": "reference", "ranges": [[0, 0, 9]]})})
    attempt = recorder.start("attempt", sc.NAME_ATTEMPT, span, {sc.ATTEMPT: 0, sc.RUN_PATH: "0"})
    usage = {sc.USAGE_INPUT: 10, sc.USAGE_OUTPUT: 2, sc.COST_USD: asked.cost}
    usage[sc.COST_STATUS] = "unknown" if asked.cost is None else "priced"
    if asked.error is not None:
        attempt.fail(asked.error, "the server said no")
        span.set(usage)
        span.fail(asked.error, "the server said no")
        return
    attempt.end()
    span.text(sc.RESPONSE, asked.response)
    span.set({sc.PREVIEW: asked.response})
    span.end("ok", usage)


@pytest.fixture
def written(home: Home) -> Callable[..., Recording]:
    """Write a run into the test's home: `written("20270115T080000-00000001", Script(...))`."""
    return lambda run_id, script=Script(), **options: write_run(home, run_id, script, **options)


@pytest.fixture
def sub_call() -> type[SubCall]:
    """The type of sub-calls in a `script`."""
    return SubCall


@pytest.fixture
def script() -> type[Script]:
    """The type of what a written run says."""
    return Script
