"""The parts of a worker one by one, in this process."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core import frames
from rlm_core.errors import WorkerDied
from rlm_core.limits import Limits
from rlm_core.normalise import normalise
from rlm_core.sandbox import worker_command, worker_environment
from rlm_core.sub_call_error import SubCallError
from rlm_core.worker.boot import SeedOnImport
from rlm_core.worker.channel import Channel
from rlm_core.worker.interrupts import Interrupts
from rlm_core.worker.output import CappedOutput
from rlm_core.worker.tracebacks import traceback_text
from rlm_core.worker.variables import VariableTable, fingerprint, type_name
from rlm_core.worker_measures import anonymous_bytes, process_cpu_seconds, scratch_use
from rlm_core.worker_watch import Watch

# -- output


@given(st.lists(st.text(max_size=30), max_size=40), st.integers(2, 60))
def test_output_is_what_was_written_or_its_head_and_tail(texts: list[str], cap: int) -> None:
    output = CappedOutput(cap)
    for text in texts:
        assert output.write(text) == len(text)
    whole = "".join(texts)
    kept, true_chars = output.report()
    assert true_chars == len(whole)
    half = cap // 2
    if len(whole) <= 2 * half:
        assert kept == whole
    else:
        assert kept.startswith(whole[:half]) and kept.endswith(whole[-half:])
        assert f"{len(whole) - 2 * half:,} of {len(whole):,} characters" in kept
    output.start()
    assert output.report() == ("", 0)


def test_a_flood_of_small_writes_takes_little_memory() -> None:
    output = CappedOutput(100)
    for _ in range(20_000):
        print("", end="", file=output)
        print("ab", file=output)
    assert output.report()[1] == 60_000
    assert len(output._head) + len(output._tail) <= 102


def test_output_takes_only_text() -> None:
    with pytest.raises(TypeError):
        CappedOutput(10).write(b"bytes")  # type: ignore[arg-type]


# -- the variable table

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner)
    ),
    max_leaves=8,
)


@given(_PLAIN, _PLAIN)
def test_fingerprints_tell_plain_values_apart(a: Any, b: Any) -> None:
    assert fingerprint(a) is not None
    assert (fingerprint(a) == fingerprint(b)) == (repr(a) == repr(b))


def test_fingerprints_of_sets_do_not_depend_on_their_order() -> None:
    assert fingerprint({"a", "b", (1, 2)}) == fingerprint({(1, 2), "b", "a"})
    assert fingerprint({1}) != fingerprint({2}) and fingerprint([1]) != fingerprint((1,)) != fingerprint({1})


def test_what_is_foreign_large_or_endless_has_no_fingerprint() -> None:
    loop: list[Any] = []
    loop.append(loop)
    doubled: list[Any] = []
    for _ in range(100):
        doubled = [doubled, doubled]
    for value in (object(), [object()], loop, doubled, [0] * 10_000, "x" * 3_000_000, 1 << 10_000, len):
        assert fingerprint(value) is None


def _changes(table: VariableTable, **names: Any) -> dict[str, str]:
    return {row["name"]: row["change"] for row in table.changes(names, frozenset({"reserved"}))}


def test_new_changed_and_deleted_variables() -> None:
    table = VariableTable()
    assert _changes(table, a=1, b=[1], reserved=1, __dunder__=1, module=os) == {"a": "new", "b": "new"}
    assert _changes(table, a=1, b=[1]) == {}
    assert _changes(table, a=1.0, c="x") == {"a": "changed", "b": "deleted", "c": "new"}


def test_foreign_values_change_with_their_identity() -> None:
    table = VariableTable()
    first, second = object(), object()
    large = [0] * 10_000
    _changes(table, f=first, g=large, h=len)
    assert _changes(table, f=first, g=large, h=len) == {}
    assert _changes(table, f=second, g=large, h=min) == {"f": "changed", "h": "changed"}


def test_the_table_keeps_nothing_alive() -> None:
    class Big:
        pass

    table, big = VariableTable(), Big()
    seen = weakref.ref(big)
    _changes(table, big=big)
    del big
    assert seen() is None
    assert _changes(table, big=Big()) == {"big": "changed"}


def test_rows_say_what_is_known_without_running_code() -> None:
    class Hostile(str):
        __len__ = __repr__ = __str__ = __getitem__ = None  # type: ignore[assignment]

    class Names(type):
        __name__ = property(lambda cls: 1 / 0)

    class Odd(metaclass=Names):
        pass

    table = VariableTable()
    rows = {
        row["name"]: row
        for row in table.changes(
            {"h": Hostile("abc"), "o": Odd(), "n": 1 << 20_000, "d": {"k": [1]}, "l": [0] * 50}, frozenset()
        )
    }
    assert (rows["h"]["size"], rows["h"]["preview"], rows["h"]["hash"]) == (3, "abc", None)
    assert rows["o"]["type"] == "Odd" == type_name(Odd()) and "preview" not in rows["o"]
    assert rows["n"]["preview"] == "<int of 20001 bits>"
    assert rows["d"]["preview"] == "{'k': [1]}" and rows["d"]["size"] == 1
    assert rows["l"]["preview"].endswith("...]") and len(rows["l"]["preview"]) < 100


def test_the_table_is_bounded() -> None:
    table = VariableTable()
    names = {f"v{number}": [number] * 400 for number in range(2_000)} | {"x" * 10_000: 1}
    rows = table.changes(names, frozenset())
    assert len(rows) == 200
    assert len(table.changes({}, frozenset())) == 200


# -- interrupts


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    before = signal.getsignal(signal.SIGINT)
    made = Interrupts()
    made.install()
    yield made
    signal.signal(signal.SIGINT, before)


def _strike() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_raises_in_a_cells_code_only(interrupts: Interrupts) -> None:
    _strike()  # not in a cell: waits
    interrupts.forget()
    _, error = interrupts.run(_strike)
    assert type(error) is KeyboardInterrupt
    value, error = interrupts.run(lambda: 5)
    assert (value, error) == (5, None)


def test_an_interrupt_that_waited_strikes_at_the_next_code_of_the_cell(interrupts: Interrupts) -> None:
    _strike()
    _, error = interrupts.run(lambda: 5)
    assert type(error) is KeyboardInterrupt


def test_a_shield_holds_an_interrupt_until_it_ends(interrupts: Interrupts) -> None:
    seen = []

    def work() -> None:
        with interrupts.shield():
            with interrupts.shield():
                _strike()
                seen.append("inner")
            seen.append("outer")
        seen.append("never")

    _, error = interrupts.run(work)
    assert type(error) is KeyboardInterrupt and seen == ["inner", "outer"]


def test_a_window_lets_an_interrupt_in(interrupts: Interrupts) -> None:
    seen = []

    def work() -> None:
        with interrupts.shield():
            seen.append("shielded")
            with interrupts.window():
                _strike()
                seen.append("never")

    assert type(interrupts.run(work)[1]) is KeyboardInterrupt and seen == ["shielded"]
    with interrupts.shield(), interrupts.window():
        _strike()  # no cell runs: a window opens nothing


def test_other_threads_neither_take_nor_hold_interrupts(interrupts: Interrupts) -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with interrupts.shield():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)

    def work() -> None:
        thread.start()
        inside.wait()
        _strike()  # while the other thread is in its shield

    try:
        assert type(interrupts.run(work)[1]) is KeyboardInterrupt
    finally:
        leave.set()
        thread.join()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), ValueError("x")])
def test_whatever_code_raises_ends_there(interrupts: Interrupts, error: BaseException) -> None:
    def work() -> None:
        raise error

    assert interrupts.run(work) == (None, error)


# -- the channel


class Pipes:
    """A channel and the engine's ends of its pipes."""

    def __init__(self) -> None:
        self.reader, self._to_worker = os.pipe()
        self.from_worker, self.writer = os.pipe()
        self.channel = Channel(self.reader, self.writer, Interrupts())

    def push(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            os.write(self._to_worker, frames.encode(message))

    def pull(self) -> dict[str, Any]:
        (size,) = struct.unpack("<I", self._exactly(4))
        return frames.decode(self._exactly(size))

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += os.read(self.from_worker, count - len(data))
        return data

    def close(self) -> None:
        for pipe in (self.reader, self._to_worker, self.from_worker, self.writer):
            os.close(pipe)


@pytest.fixture
def pipes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipes]:
    monkeypatch.delattr(os, "register_at_fork")  # what is registered stays for the life of this process
    made = Pipes()
    yield made
    made.close()


def test_replies_are_sorted_by_call_and_cells_wait_their_turn(pipes: Pipes) -> None:
    replies: dict[int, list[Any]] = {}

    def ask() -> None:
        given = []

        def messages(call: int) -> list[dict[str, Any]]:
            given.append(call)
            return [{"t": "budget", "id": call}]

        items = pipes.channel.ask(messages)
        replies[given[0]] = items

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    calls = sorted(pipes.pull()["id"] for _ in threads)
    pipes.push({"t": "cell", "n": 1})
    for call in reversed(calls):
        pipes.push({"t": "ret", "id": call, "items": [call, "a"], "last": False})
    pipes.push({"t": "ret", "id": 999, "items": ["nobody asked"], "last": True})
    for call in calls:
        pipes.push({"t": "ret", "id": call, "items": ["b"], "last": True})
    for thread in threads:
        thread.join()
    assert replies == {call: [call, "a", "b"] for call in calls}
    assert pipes.channel.next() == {"t": "cell", "n": 1}


def test_the_messages_of_one_call_are_not_mixed_with_others(pipes: Pipes) -> None:
    def send(name: str) -> None:
        pipes.channel.send({"t": name, "n": number, "pad": "x" * 20_000} for number in range(20))

    threads = [threading.Thread(target=send, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    got = [pipes.pull() for _ in range(80)]
    for thread in threads:
        thread.join()
    for start in range(0, 80, 20):
        block = got[start : start + 20]
        assert len({message["t"] for message in block}) == 1
        assert [message["n"] for message in block] == list(range(20))


def test_nothing_is_sent_when_the_first_message_is_too_large(pipes: Pipes) -> None:
    with pytest.raises(frames.FrameError):
        pipes.channel.ask(lambda call: [{"t": "x", "a": "b" * frames.MAX_FRAME}])
    pipes.channel.send([{"t": "next"}])
    assert pipes.pull() == {"t": "next"}


# -- seeds, tracebacks, small things


def test_a_module_is_seeded_once_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rlmscope_seeded.py").write_text("seeds = []\ndef seed(n): seeds.append(n)\n")
    monkeypatch.syspath_prepend(tmp_path)
    finder = SeedOnImport(7)
    finder.seeders["rlmscope_seeded"] = finder.seeders["random"]
    monkeypatch.setattr("sys.meta_path", [finder, *sys.meta_path])
    import rlmscope_seeded  # type: ignore[import-not-found]

    assert rlmscope_seeded.seeds == [7]
    monkeypatch.delitem(sys.modules, "rlmscope_seeded")
    assert __import__("rlmscope_seeded").seeds == []


def test_long_tracebacks_keep_head_and_tail() -> None:
    try:
        raise ValueError("first " + "x" * 100_000 + " last")
    except ValueError as error:
        text = traceback_text(error)
    assert text.startswith("Traceback") and text.endswith("last\n") and len(text) < 21_000


def test_groups_and_causes_are_told() -> None:
    try:
        try:
            raise KeyError("cause")
        except KeyError as cause:
            raise ExceptionGroup("several", [ValueError("one"), TypeError("two")]) from cause
    except ExceptionGroup as error:
        text = traceback_text(error)
    assert all(word in text for word in ("cause", "several", "one", "two"))


def test_a_failed_sub_call_compares_by_what_it_says() -> None:
    error = SubCallError("budget", "none left")
    assert not error and error == SubCallError("budget", "none left") != SubCallError("depth", "none left")
    assert len({error, SubCallError("budget", "none left")}) == 1 and error != "budget"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Yes.", "yes"), ("A  b\n c", "a b c"), ("Stra\u00dfe", "STRASSE"), ("\ufb01ne!", "fine"), (" x ", "x")],
)
def test_texts_that_say_the_same(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    assert normalise("5") != normalise("-5") and normalise("a b") != normalise("ab")


# -- watching and starting


def test_scratch_use_counts_files_folders_and_blocks(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(os.urandom(20_000))
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(10**9)
    os.symlink("/", tmp_path / "link")
    used, files = scratch_use(str(tmp_path), 1 << 40, 1_000)
    assert files == 4 and 20_000 <= used < 1_000_000
    assert scratch_use(str(tmp_path), 1 << 40, 2)[1] == 3
    assert scratch_use(str(tmp_path / "gone"), 1, 1) == (0, 0)


@pytest.mark.needs("linux")
def test_figures_of_a_process() -> None:
    assert (process_cpu_seconds(os.getpid()) or 0) > 0
    assert anonymous_bytes(os.getpid()) > 1 << 20
    assert process_cpu_seconds(2**22 + 1) is None and anonymous_bytes(2**22 + 1) == 0


def test_a_watch_stands_still_while_calls_are_out() -> None:
    now = 0.0
    watch = Watch(os.getpid(), ".", Limits(), clock=lambda: now)
    now = 2.0
    watch.pause()
    now = 10.0
    watch.pause()
    watch.resume()
    assert watch.active_seconds == 2.0
    now = 20.0
    watch.resume()
    now = 21.0
    watch.end()
    now = 99.0
    assert watch.active_seconds == 3.0


def test_a_watch_kills_what_does_not_heed_its_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.POLL_SECONDS", 0.01)
    monkeypatch.setattr("rlm_core.worker_watch.GRACE_SECONDS", 0.05)
    code = (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(flush=True)\ntime.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline()
    watch = Watch(process.pid, ".", Limits(cell_seconds=0.01))

    async def work() -> None:
        guard = asyncio.create_task(watch.guard())
        await asyncio.to_thread(process.wait, 30)
        guard.cancel()

    asyncio.run(work())
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL
    told = watch.explain(WorkerDied("exit", "gone"))
    assert told.cause == "limit" and "wall time" in str(told)


def test_a_death_without_a_limit_stays_what_it_is() -> None:
    died = WorkerDied("exit", "gone")
    assert Watch(os.getpid(), ".", Limits()).explain(died) is died


def test_an_environment_is_built_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    environment = worker_environment("/scratch", 2**40 + 5)
    assert "secret" not in environment.values() and environment["HOME"] == "/scratch"
    assert environment["PYTHONHASHSEED"] == "5"
    assert "secret" not in worker_command() and "-P" in worker_command()
