"""Locks between processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.traces.records import ROOT
from traces.locks import FileLock, is_held

HOLDER = """
import sys, time
from pathlib import Path
from traces.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.try_acquire()
print("held", flush=True)
time.sleep(60)
"""


def test_one_holder_at_a_time_also_within_a_process(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_acquire() and first.held
    assert is_held(tmp_path / "lock")
    assert not second.try_acquire()
    assert not second.acquire(time.monotonic())
    first.release()
    first.release()
    assert not is_held(tmp_path / "lock")
    assert second.acquire(time.monotonic())


@pytest.mark.skipif(os.name == "nt", reason="another system: shared locks")
def test_shared_holders_keep_only_exclusive_ones_out(tmp_path: Path) -> None:
    one, two, three = (FileLock(tmp_path / "lock") for _ in range(3))
    assert one.try_acquire(shared=True) and two.try_acquire(shared=True)
    assert not three.try_acquire()


def test_asking_creates_nothing_and_takes_nothing_away(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    lock = FileLock(tmp_path / "lock")
    assert lock.try_acquire()
    assert all(is_held(tmp_path / "lock") for _ in range(3))


def test_an_exclusive_file_must_be_new(tmp_path: Path) -> None:
    assert FileLock(tmp_path / "lock").try_acquire(exclusive_file=True)
    with pytest.raises(FileExistsError):
        FileLock(tmp_path / "lock").try_acquire(exclusive_file=True)


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, cwd=ROOT)
    assert holder.stdout is not None
    with holder, holder.stdout:
        assert holder.stdout.readline() == b"held\n"
        assert is_held(path)
        holder.kill()
        holder.wait()
        assert not is_held(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="another system: fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_lock_alive(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.try_acquire()
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    lock.release()
    assert not is_held(tmp_path / "lock")
    os.write(go[1], b"x")
    os.waitpid(child, 0)
    for fd in (*ready, *go):
        os.close(fd)
