"""Turns a fresh interpreter into a worker: private pipes, death with the parent, limits, seeds."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from rlm_core.errors import SandboxError
from rlm_core.worker.channel import Channel
from rlm_core.worker.interrupts import Interrupts
from rlm_core.worker.lock import lock_down
from rlm_core.worker.self_test import reachable
from rlm_core.worker.session import Session
from rlm_core.worker.surroundings import files_of

_PR_SET_PDEATHSIG: Final = 1
_HANG_UP_POLL_MS: Final = 1000


def main() -> None:
    """Entry of the process; the engine gives its own pid as the last argument."""
    boot(int(sys.argv.pop()), os.dup(0), os.dup(1)).serve()


def boot(parent: int, reader: int, writer: int) -> Session:
    """Take over the standard streams, wait for the start frame and build the session it describes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until the session takes it over
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what C code prints goes to the drained stderr pipe, never into the protocol
    os.close(null)
    _die_with_parent(parent, reader)
    interrupts = Interrupts()
    channel = Channel(reader, writer, interrupts)
    start = channel.next()
    documents: list[dict[str, Any]] = []
    while len(documents) < start["documents"]:
        documents += channel.next()["items"]
    os.chdir(start["scratch"])
    found = _locked(start, documents)
    _seed(int(start["seed"]))
    sys.argv = [""]
    return Session(channel, interrupts, {**start, **found}, documents)


def _locked(start: dict[str, Any], documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Lock this process in, then try what must not be possible: the layers, and what could be reached."""
    try:
        layers = lock_down(
            files_of(documents),
            [start["scratch"]],
            memory_bytes=int(start["memory_bytes"]),
            file_bytes=int(start["file_bytes"]),
            layers=start["layers"],
        )
    except SandboxError as error:
        os.write(2, f"{error}\n".encode("utf-8", "replace"))
        os._exit(1)
    return {"layers": layers, "reached": reachable(start["targets"])}


def _die_with_parent(parent: int, reader: int) -> None:
    """Linux: a death signal, also for forks of this process. Elsewhere a thread that sees the pipe close."""
    if _ask_for_death_signal():
        os.register_at_fork(after_in_child=_ask_for_death_signal)
        if os.getppid() != parent:  # it died before the signal was asked for
            os._exit(0)
    elif hasattr(select, "poll"):
        threading.Thread(target=_exit_on_hang_up, args=(reader,), daemon=True).start()


def _ask_for_death_signal() -> bool:
    """SIGKILL for this process when its parent dies; False where there is no such thing."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        refused: int = ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        return refused == 0
    except (ImportError, OSError, AttributeError):
        return False


def _exit_on_hang_up(reader: int) -> None:
    poll = select.poll()
    poll.register(reader, 0)  # hang-ups and errors only: the data is not ours
    while not poll.poll(_HANG_UP_POLL_MS):
        pass
    os._exit(0)


def _seed(seed: int) -> None:
    """Seed `random` and `numpy.random`: now if they are imported, else when a cell imports them."""
    finder = SeedOnImport(seed)
    for name, seeder in list(finder.seeders.items()):
        if (module := sys.modules.get(name)) is not None:
            finder.seeders.pop(name)
            seeder(module)
    sys.meta_path.insert(0, finder)


class SeedOnImport:
    """A finder that seeds a module at the moment it is imported; nothing is imported for the seed's sake."""

    def __init__(self, seed: int) -> None:
        self.seeders: dict[str, Callable[[ModuleType], None]] = {
            "random": lambda module: module.seed(seed),
            "numpy.random": lambda module: module.seed(seed % (1 << 32)),
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Wrap the loader of a module that wants a seed, once."""
        seeder = self.seeders.pop(name, None)
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
