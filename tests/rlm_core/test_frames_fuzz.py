"""Whatever a worker sends, at whatever moment: a report or `WorkerDied`, and nothing left over.

Most of it is played to the engine's side without a process, which allows many examples; the last tests let a
real worker send.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_core import Limits, frames
from rlm_core.environment import Environment
from rlm_core.errors import WorkerDied
from rlm_core.wire import CellReport, OpenCall
from tests.support.scripted import Script, cell, run
from tests.support.workers import Worker

NOBODY = 2**31 - 1  # no process has this number
DONE: dict[str, Any] = {
    "t": "done",
    "n": 0,
    "stdout": "",
    "chars": 0,
    "exc": None,
    "answer": None,
    "vars": [],
}


class Tape:
    """Stands where a worker process stands: what it says is fixed, what it hears is kept."""

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self.blocks = list(blocks)
        self.code: int | None = None
        self.heard = bytearray()
        self.pid, self.scratch = NOBODY, ""
        self._reader = asyncio.StreamReader()
        self.process = SimpleNamespace(pid=NOBODY, stdout=self._reader, stdin=self, returncode=None)
        self._playing: asyncio.Task[None] | None = None

    def is_closing(self) -> bool:
        """Its end is open as long as it has not ended."""
        return self.code is not None

    def write(self, data: bytes) -> None:
        """The cell arrives: the tape begins."""
        self.heard += data
        if self._playing is None:
            self._playing = asyncio.ensure_future(self._play())

    async def drain(self) -> None:
        """It takes everything."""

    async def _play(self) -> None:
        for block in self.blocks:
            self._reader.feed_data(block)
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # replies are sent meanwhile
        self._reader.feed_eof()

    def kill(self) -> None:
        """SIGKILL."""
        self.code = self.process.returncode = -9

    def exit_code(self) -> int | None:
        """As of a process."""
        return self.code

    async def wait(self) -> int:
        """It ends when its tape does."""
        self.kill()
        return -9

    async def end(self) -> None:
        """Nothing is left of it."""
        if self._playing is not None:
            await self._playing

    async def remove_folder(self) -> None:
        """It has none."""


@dataclass
class Host:
    """Answers calls late, so that other frames come in between; keeps what it was asked."""

    calls: list[OpenCall] = field(default_factory=list)

    async def sub_calls(self, call: OpenCall) -> list[dict[str, Any]]:
        """One reply per slot."""
        self.calls.append(call)
        await asyncio.sleep(0)
        return [{"ok": "reply"}] * call.size

    def budget(self) -> dict[str, Any]:
        """Nothing to tell."""
        return {"calls": None}


def played(*tapes: Sequence[bytes]) -> list[tuple[CellReport | WorkerDied, Host]]:
    """What came of one cell with each tape, in one environment, as after the loss of a worker."""

    async def play() -> list[tuple[CellReport | WorkerDied, Host]]:
        environment = Environment([], Limits(), 0)
        outcomes: list[tuple[CellReport | WorkerDied, Host]] = []
        for blocks in tapes:
            host = Host()
            environment._worker = Tape(blocks)  # type: ignore[assignment]
            try:
                outcome: CellReport | WorkerDied = await environment.run_cell(0, "pass", host)
            except WorkerDied as death:
                outcome = death
            await environment.settle()
            assert environment._weight == 0 and not environment._serving
            await environment.close()
            outcomes.append((outcome, host))
        return outcomes

    async def bounded() -> list[tuple[CellReport | WorkerDied, Host]]:
        async with asyncio.timeout(20):
            return await play()

    return asyncio.run(bounded())


def said(outcome: CellReport | WorkerDied) -> str:
    """An outcome without the time it took."""
    return str(outcome if isinstance(outcome, WorkerDied) else replace(outcome, wall_seconds=0.0))


def framed(message: Any) -> bytes:
    """Any JSON as a frame; what cannot be said in UTF-8 is said all the same."""
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return frames.HEADER.pack(len(body)) + body


any_text = st.text(st.characters(codec=None), max_size=8)  # lone surrogates too
numbers = st.one_of(st.integers(-2, 4), st.integers(), st.floats(), st.just(2**63), st.just(10**400))
any_json: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, any_text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(any_text, inner, max_size=4)),
    max_leaves=10,
)
ids = st.integers(1, 3)
places = st.lists(st.integers(-1, 5) | numbers, min_size=2, max_size=4)
parts = st.lists(any_text | places, max_size=3)
slots = st.fixed_dictionaries({"p": parts}, optional={"s": parts, "c": st.lists(parts, max_size=2)})
KEYS = ("id", "op", "n", "batch", "line", "items", "model", "schema", "max_tokens", "touched", "stdout",
        "chars", "exc", "answer", "vars", "restored", "interrupted", "known", "last", "code")  # fmt: skip
kinds = st.sampled_from(["open", "items", "close", "budget", "done", "ready", "ret", "cell", "start", ""])

# Frames as a worker sends them, so that calls are open while the rest arrives ...
right = st.one_of(
    st.builds(
        lambda call, n, batch: {"t": "open", "id": call, "op": "llm", "n": n, "batch": batch, "line": 1},
        ids,
        st.integers(1, 2),
        st.booleans(),
    ),
    st.builds(
        lambda call, items: {"t": "items", "id": call, "items": items}, ids, st.lists(slots, max_size=2)
    ),
    st.builds(lambda call: {"t": "close", "id": call}, ids),
    st.builds(lambda call: {"t": "budget", "id": call, "line": 1}, ids),
    st.builds(
        lambda changes: {**DONE, **changes}, st.dictionaries(st.sampled_from(KEYS), any_json, max_size=2)
    ),
)
# ... well-formed ones that say something else, and what is no frame at all.
wrong = st.builds(
    lambda kind, fields: {**fields, "t": kind}, kinds, st.dictionaries(st.sampled_from(KEYS), any_json)
)
torn = st.builds(lambda message, cut: framed(message)[:-cut], right, st.integers(1, 6))
noise = st.one_of(
    st.binary(max_size=40),
    torn,
    any_json.map(framed),
    st.integers(0, 2**32 - 1).map(frames.HEADER.pack),
    st.just(frames.HEADER.pack(9000) + b"[" * 9000),
)
tapes = st.lists(st.one_of(right.map(framed), right.map(framed), wrong.map(framed), noise), max_size=14)


@given(tapes)
def test_any_tape_is_a_report_or_a_death_and_the_next_worker_is_heard(tape: list[bytes]) -> None:
    (outcome, host), (after, _) = played(tape, [framed(DONE)])
    assert isinstance(outcome, CellReport | WorkerDied)
    if isinstance(outcome, WorkerDied):
        assert outcome.cause in ("exit", "protocol", "closed") and str(outcome)
    for call in host.calls:
        assert len(call.slots) == call.size
    assert isinstance(after, CellReport)


@given(st.lists(right.map(framed), max_size=14), st.integers(1, 7))
def test_frames_may_come_in_pieces_of_any_size(messages: list[bytes], size: int) -> None:
    whole = b"".join(messages)
    pieces = [whole[place : place + size] for place in range(0, len(whole), size)]
    (one, host), (other, same) = played(messages, pieces)
    assert said(one) == said(other)
    assert [call.slots for call in host.calls] == [call.slots for call in same.calls]


@pytest.mark.parametrize(
    "number", ["Infinity", "-Infinity", "NaN", "1e999", "1" * 5000, '"' + "9" * 5000 + '"']
)
@pytest.mark.parametrize("kind", ["budget", "open", "items", "close", "done"])
def test_numbers_that_are_none_end_the_worker(kind: str, number: str) -> None:
    body = f'{{"t":"{kind}","id":{number},"n":{number},"stdout":"","items":[],"op":"llm","line":{number}}}'
    [(outcome, host)] = played([frames.HEADER.pack(len(body)) + body.encode()])
    assert isinstance(outcome, WorkerDied) and outcome.cause == "protocol" and not host.calls


# -- totals


def opened(call: int, size: int) -> bytes:
    return framed({"t": "open", "id": call, "op": "llm", "n": size, "batch": True, "line": 1})


def filled(call: int, text: str, slots: int = 1) -> bytes:
    return framed({"t": "items", "id": call, "items": [{"p": [text]}] * slots})


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 900), st.integers(0, 4)), max_size=40))
def test_open_calls_are_never_heavier_than_the_cap_together(sent: list[tuple[int, int, int]]) -> None:
    cap = 4_000
    tape = [opened(call, 1000) for call in range(1, 7)] + [
        filled(call, "x" * size, slots) for call, size, slots in sent
    ]
    weights = [frames.slot_weight({"p": ["x" * size]}) * slots for _, size, slots in sent]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "MAX_BATCH", cap)
        [(outcome, _)] = played(tape)
    assert isinstance(outcome, WorkerDied)
    assert (outcome.cause == "protocol") == (sum(weights) > cap)


def test_a_batch_that_broke_off_does_not_weigh_on_the_next_worker() -> None:
    """The weight of slots is given back however their call ended."""
    heavy = "x" * 3_000
    broken = [
        [opened(1, 2), filled(1, heavy), filled(1, heavy, 3)],  # more slots than announced
        [opened(1, 2), filled(1, heavy), framed({"t": "close", "id": 1})],  # fewer
        [opened(1, 2), framed({"t": "items", "id": 1, "items": [{"p": [heavy]}, {"p": 5}]})],
        [opened(1, 1), filled(1, heavy), framed({"t": "close", "id": 1}), b"\xff" * 8],
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "MAX_BATCH", 5_000)
        outcomes = played(
            *broken * 3, [opened(1, 1), filled(1, heavy), framed({"t": "close", "id": 1}), framed(DONE)]
        )
    assert [type(outcome) for outcome, _ in outcomes] == [WorkerDied] * 12 + [CellReport]
    assert len(outcomes[-1][1].calls) == 1


def test_calls_that_are_opened_and_never_closed_are_counted() -> None:
    tape = [opened(call, 1) for call in range(1, 5_000)]
    [(outcome, host)] = played(tape)
    assert isinstance(outcome, WorkerDied) and "too many calls" in str(outcome) and not host.calls


# -- from a real worker

_SEND = "import os\nfor block in {blocks!r}:\n    os.write(llm_query.__self__._channel._writer, block)\n"


@pytest.fixture(scope="module")
def worker() -> Any:
    with Worker(cell_seconds=5, cell_cpu_seconds=5) as shared:
        yield shared


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tape=tapes)
def test_a_real_worker_that_sends_anything_is_reported_and_replaced(
    worker: Worker, tape: list[bytes]
) -> None:
    """In the middle of a cell; whatever came of it, the next process runs the next cell."""
    ended = b"\xff" * 8  # what was torn must not wait for more
    try:
        report = worker.run(_SEND.format(blocks=[*tape, ended]))
        assert isinstance(report, CellReport)
    except WorkerDied as death:
        assert death.cause in ("protocol", "exit", "limit")
    worker.restart()
    assert worker.out("print(llm_query('again'))") == "again"


@pytest.mark.parametrize(
    "blocks",
    [
        [b"\xff" * 64],
        [framed({"t": "budget", "id": float("inf")})],
        [opened(90, 2), filled(90, "half")],
        [framed({**DONE, "n": 1, "vars": [{"name": "x" * 10, "change": "new", "type": 5}] * 2000})],
    ],
)
def test_a_run_goes_on_after_any_of_them(blocks: list[bytes]) -> None:
    """Sent while another thread of the cell has a batch under way."""
    batch = "import threading\nlate = threading.Thread(target=llm_batch, args=(['a', 'b'],))\nlate.start()\n"
    ended = [*blocks, b"\xff" * 8]
    script = Script(
        [cell("kept = llm_query('one')"), cell(batch + _SEND.format(blocks=ended)), cell("FINAL(kept)")],
        lambda request: request.prompt,
    )
    answer = run(script)
    assert (answer.text, answer.stop_reason) == ("one", "final")
    assert "broke the protocol" in script.outputs[1]
    assert [r.prompt for r in script.sub_requests if r.prompt == "one"] == ["one"]
