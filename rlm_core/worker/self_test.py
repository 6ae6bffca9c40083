"""What a worker can still reach after its lock, found by trying: no system call's word is taken for it.

Everything tried is harmless: the targets were made by the engine for this worker.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from rlm_core.worker.lock import untested

_SECONDS: Final = 1.0  # for a connection on this machine


def reachable(targets: Mapping[str, Any]) -> list[str]:
    """The names of what could be reached: network, processes, signals, parent, read, write, metadata.

    `targets`: `canary`, a file outside scratch; `beside`, a name for a file beside it; `parent`, the process
    number of the engine; `port`, where it listens on the loopback address.
    """
    if untested() is not None:
        return list(_ATTEMPTS)  # nothing is promised there, so nothing is tried
    return [name for name, attempt in _ATTEMPTS.items() if _succeeds(attempt, targets)]


def _succeeds(attempt: Callable[[Mapping[str, Any]], None], targets: Mapping[str, Any]) -> bool:
    try:
        attempt(targets)
    except OSError:
        return False
    return True


def _connect(targets: Mapping[str, Any]) -> None:
    import _socket  # the module around it costs ten times as much

    if targets["port"] is None:
        return  # nothing to try it on: it counts as reachable
    with contextlib.closing(_socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(("127.0.0.1", targets["port"]))


def _fork(_: Mapping[str, Any]) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _signal(targets: Mapping[str, Any]) -> None:
    os.kill(_parent(targets), 0)


def _read_the_parent(targets: Mapping[str, Any]) -> None:
    _read({"canary": f"/proc/{_parent(targets)}/environ"})


def _parent(targets: Mapping[str, Any]) -> int:
    """The engine's number; where it is also this process's own, in a namespace, it leads to nobody else."""
    number: int = targets["parent"]
    if number == os.getpid():
        raise ProcessLookupError
    return number


def _read(targets: Mapping[str, Any]) -> None:
    descriptor = os.open(targets["canary"], os.O_RDONLY)
    try:
        os.read(descriptor, 1)
    finally:
        os.close(descriptor)


def _write(targets: Mapping[str, Any]) -> None:
    """Open a file that is there, or make a new one: either is a way out."""
    try:
        os.close(os.open(targets["canary"], os.O_WRONLY))
    except OSError:
        os.close(os.open(targets["beside"], os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(targets["beside"])


def _look(targets: Mapping[str, Any]) -> None:
    os.stat(targets["canary"])


_ATTEMPTS: Final[Mapping[str, Callable[[Mapping[str, Any]], None]]] = {
    "network": _connect,
    "processes": _fork,
    "signals": _signal,
    "parent": _read_the_parent,
    "read": _read,
    "write": _write,
    "metadata": _look,
}
