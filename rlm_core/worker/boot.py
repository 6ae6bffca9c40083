"""Turns a fresh interpreter into a worker: private pipes, death with the parent, limits, seeds."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from rlm_core.worker.channel import Channel
from rlm_core.worker.session import Session


def main() -> None:
    """Entry of the process; the engine gives its own pid as the last argument."""
    boot(int(sys.argv.pop()), os.dup(0), os.dup(1)).serve()


def boot(parent: int, reader: int, writer: int) -> Session:
    """Take over the standard streams, wait for the start frame and build the session it describes."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what C code prints goes to the drained stderr pipe, never into the protocol
    os.close(null)
    _die_with_parent(parent, reader)
    channel = Channel(reader, writer)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start = channel.read()
    _limit_resources(int(start["memory_bytes"]), int(start["file_bytes"]))
    os.chdir(start["scratch"])
    sys.meta_path.insert(0, SeedOnImport(int(start["seed"])))
    sys.argv = [""]
    return Session(channel, start)


def _die_with_parent(parent: int, reader: int) -> None:
    """Linux: a death signal; elsewhere a thread that sees the pipe close."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(0)
    else:
        threading.Thread(target=_exit_on_hangup, args=(reader,), daemon=True).start()


def _exit_on_hangup(reader: int) -> None:
    import select
    import time

    poll = select.poll()
    poll.register(reader, 0)  # hang-ups and errors only: the data is not ours
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(1000)):
        time.sleep(0.2)
    os._exit(0)


def _limit_resources(memory: int, file_bytes: int) -> None:
    """Caps the kernel enforces. RLIMIT_DATA, not RLIMIT_AS: mapped corpora must not count."""
    try:
        import resource
    except ImportError:  # no such limits on this system; the engine reports them as absent
        return
    wanted = {"RLIMIT_DATA": memory, "RLIMIT_FSIZE": file_bytes, "RLIMIT_CORE": 0, "RLIMIT_NOFILE": 256}
    for name, value in wanted.items():
        which = getattr(resource, name, None)
        if which is None:
            continue
        _, hard = resource.getrlimit(which)
        cap = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (cap, cap))


class SeedOnImport(importlib.abc.MetaPathFinder):
    """Seeds `random` and `numpy.random` at the moment a cell imports them; nothing is imported for their sake."""

    def __init__(self, seed: int) -> None:
        self._seeders: dict[str, Callable[[ModuleType], None]] = {
            "random": lambda module: module.seed(seed),
            "numpy.random": lambda module: module.seed(seed % (1 << 32)),
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Wrap the loader of a module that wants a seed, once."""
        seeder = self._seeders.pop(name, None)
        if seeder is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            _seed_after_load(spec.loader, seeder)
        return spec


def _seed_after_load(loader: Any, seeder: Callable[[ModuleType], None]) -> None:
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        seeder(module)

    loader.exec_module = exec_module
