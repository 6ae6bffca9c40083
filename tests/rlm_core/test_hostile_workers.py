"""What a hostile or broken cell can do to the engine: nothing but lose its own cell."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rlm_core import Corpus, Limits, Request
from rlm_core import semconv as sc
from tests.support.scripted import Script, cell, play, run
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording

# Finds the pipe of the protocol as hostile code would: by trying.
FORGE = """
import os, struct, json, fcntl
def forge(message):
    body = json.dumps(message).encode()
    for fd in range(3, 64):
        try:
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                os.write(fd, struct.pack("<I", len(body)) + body)
        except OSError:
            pass
"""


@pytest.mark.parametrize(
    "message",
    [
        {"t": "done", "n": 77},
        {"t": "done", "n": 0, "stdout": 5},
        {"t": "nonsense"},
        {"t": "close", "id": 5},
        {"t": "open", "id": 1, "op": "llm", "n": 1, "batch": False, "line": 1, "api_base": "http://evil"},
    ],
)
def test_a_forged_frame_ends_the_worker_and_not_the_run(message: dict[str, Any]) -> None:
    answer, script = play("x = 1", f"{FORGE}\nforge({message!r})\nimport time\ntime.sleep(20)", "FINAL(x)")
    assert answer.text == "1"
    assert "broke the protocol" in script.outputs[1]


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a lock would prevent must be survived where there is none."""
    monkeypatch.setattr("rlm_core.environment.layers_of", lambda _: ("limits",))
    monkeypatch.setattr("rlm_core.bubblewrap.program", lambda: None)


def test_death_by_a_nameless_signal_is_survived(unlocked: None) -> None:
    answer, script = play("import os\nos.kill(os.getpid(), 35)", "FINAL('on')", sandbox="none")
    assert answer.text == "on"
    assert "ended by signal 35" in script.outputs[0]


def test_a_program_that_keeps_the_pipe_open_does_not_keep_the_engine_waiting(unlocked: None) -> None:
    """A fork made behind Python's back holds the pipe after the worker is gone."""
    code = (
        "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nif libc.fork() == 0:\n    libc.setsid()\n"
        "    libc.sleep(30)\n    libc._exit(0)\nlibc._exit(9)"
    )
    answer, script = play("x = 2", code, "FINAL(x)", sandbox="none")
    assert answer.text == "2"
    assert "exited with code 9" in script.outputs[1]
    assert answer.seconds < 30


def test_a_prompt_made_of_many_places_is_refused_before_it_is_read() -> None:
    answer, script = play(
        "FINAL([r if r else r.kind for r in llm_batch(['go', 'go'], [[context] * 50, context])])",
        corpus="x" * 1_000_000,
    )
    assert answer.value == ["too_large", "seen 1000004"]
    assert len(script.sub_requests) == 1


def test_a_large_batch_is_not_held_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the first calls wait for their answers, only the texts that can soon be sent have been read."""
    read, waiting, text = [0], [0], Corpus.text
    seen_by_first: list[int] = []

    def counting(self: Corpus, document: int, start: int, end: int) -> str:
        read[0] += 1
        return text(self, document, start, end)

    async def sub(_: Request) -> str:
        waiting[0] += 1
        while waiting[0] < 8:  # and then a while, in which more could be read
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        if not seen_by_first:
            seen_by_first.append(read[0])
        return "ok"

    monkeypatch.setattr(Corpus, "text", counting)
    code = "FINAL(len(llm_batch(['p'] * 60, [context] * 60)))"
    answer, _ = play(code, corpus="y" * 1_000, sub=sub, limits=Limits(concurrency=8))
    assert answer.value == 60 and read[0] >= 60
    assert 8 <= seen_by_first[0] <= 18  # twice the concurrency, and two for the preview in the root prompt


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("rlm_query('q' * 9_000_000)", "too_large"),
        ("rlm_query('')", "bad_request"),
        ("rlm_query('q', [context] * 100)", "too_large"),
    ],
)
def test_a_child_run_that_cannot_be_is_refused_before_it_starts(call: str, kind: str) -> None:
    answer, script = play(f"FINAL({call}.kind)", corpus="z" * 1_000_000)
    assert answer.text == kind
    assert len(script.root_requests) == 1


def test_a_child_run_served_again_after_a_death_leaves_its_span(tmp_path: Path) -> None:
    def root(request: Request) -> str:
        if "small" in request.messages[1].content:
            return cell("FINAL('child')")
        turn = sum(message.role == "assistant" for message in request.messages)
        return cell(["rlm_query('small')\nimport os\nos._exit(1)", "FINAL(rlm_query('small'))"][turn])

    home = Home(tmp_path / "home")
    with open_recording(home, "20260101T000000-0000000c", {}) as recording:
        answer = run(Script([root] * 3), recorder=recording.recorder, run_id=recording.run_id)
    assert answer.text == "child"
    runs = [span for span in load_run(home, recording.run_id).spans if span.kind == "run"]
    served = [span.attributes.get(sc.SERVED_FROM) for span in runs]
    assert served == [None, None, "record"] and runs[2].status == "ok"


def test_blocks_behind_a_failed_one_are_not_executed() -> None:
    script = Script([cell("1 / 0") + "\n" + cell("llm_query('paid')"), cell("FINAL('ok')")])
    assert run(script).text == "ok"
    assert not script.sub_requests
    assert "1 later blocks of this reply were not executed" in script.outputs[0]


def test_a_block_too_long_to_run_is_said() -> None:
    script = Script([cell("x = '" + "a" * 1_100_000 + "'"), cell("FINAL('ok')")])
    assert run(script).text == "ok"
    assert "too long to run" in script.outputs[0]


def test_a_child_cannot_use_up_what_the_top_run_needs_for_its_forced_answer() -> None:
    """Tokens held back for the top run's root calls are not there for a child's."""

    def root(request: Request) -> str:
        if request.messages[-1].content.startswith("# Final answer now"):
            return "forced"
        if "inner" in request.messages[1].content:
            return cell("print('x' * 4000)")
        return cell("r = rlm_query('inner')\nprint(r)")

    limits = Limits(max_tokens=9_000, max_tokens_root=1_000, max_iterations=6)
    answer = run(Script([root] * 40), limits=limits)
    assert (answer.stop_reason, answer.text) in (("budget", "forced"), ("max_iterations", "forced"))


def test_error_words_are_looked_for_in_replies_only(tmp_path: Path) -> None:
    """The remark on error text needs to know which names came from sub-calls in earlier cells."""
    home = Home(tmp_path / "home")
    with open_recording(home, "20260101T000000-0000000d", {}) as recording:
        play(
            "r = llm_query('x')",
            "a = 'error' in r\nb = 'error' in context",
            "FINAL(a)",
            recorder=recording.recorder,
            run_id=recording.run_id,
        )
    cells = [span for span in load_run(home, recording.run_id).spans if span.kind == "cell"]
    findings = json.loads(cells[1].attributes[sc.FINDINGS])
    assert [(finding["rule"], finding["line"]) for finding in findings] == [("error_text_as_data", 1)]
