"""A process locks itself in, for good: limits, then Landlock, then no special rights, then seccomp.

The order matters: each step uses what the next ones take away, and the earliest failure leaves the most
behind it. Landlock and the loss of rights act on the calling thread alone, so the process must still have no
other one; a thread started before would stay free. Written for and run on x86_64 Linux. Elsewhere only the
limits that the system has are set, and nothing is claimed: what is in force is found by trying
(`rlm_core.worker.self_test`).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Collection, Sequence
from typing import Final, Literal

from rlm_core.errors import SandboxError

Layer = Literal["limits", "landlock", "capabilities", "seccomp"]
LAYERS: Final[tuple[Layer, ...]] = ("limits", "landlock", "capabilities", "seccomp")
_MOST_OPEN_FILES: Final = 256
_MOST_STACK: Final = 8 << 20


def untested() -> str | None:
    """Why this system has no lock, as a clause; None where it has one."""
    if sys.platform != "linux":
        return f"untested: the lock was never run on {sys.platform}"
    machine = os.uname().machine
    if machine != "x86_64" or sys.maxsize < 1 << 32:
        return f"untested: the lock was never run on {machine} processors"
    return None


def lock_down(
    readable: Sequence[str],
    writable: Sequence[str],
    *,
    memory_bytes: int | None = None,
    file_bytes: int | None = None,
    layers: Collection[Layer] = LAYERS,
) -> list[str]:
    """Lock this process in; returns in words which layers were put in place.

    `readable` are files and folders that may be read beside the interpreter and its libraries, `writable`
    folders that may be read and written. No program can be started, no socket opened, no other process
    reached. `memory_bytes` caps private memory (mapped files do not count), `file_bytes` one file. A layer
    that the kernel does not have is left out of what is returned. Raises `SandboxError` when the process has
    other threads, or with the path when something that must be read cannot be.
    """
    done: list[str] = []
    if "limits" in layers:
        limit_resources(memory_bytes, file_bytes)
        done.append("limits")
    if untested() is not None or not set(layers) - {"limits"}:
        return done
    if not _alone():
        raise SandboxError("the process has other threads, which a lock would not reach")
    from rlm_core.worker import capabilities, kernel, landlock, seccomp, surroundings

    kernel.give_up_new_privileges()
    needed = [*surroundings.libraries(), *readable]
    if "landlock" in layers and (abi := landlock.version()):
        _confine(abi, needed, writable)
        done.append(f"landlock abi {abi}")
    if "capabilities" in layers:
        capabilities.drop()
        done.append("no capabilities")
        _check_readable([*needed, os.__file__])
    if "seccomp" in layers:
        with contextlib.suppress(OSError):
            seccomp.install(os.getpid())
            done.append("seccomp")
    return done


def _alone() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return threading.active_count() == 1


def _confine(abi: int, readable: Sequence[str], writable: Sequence[str]) -> None:
    from rlm_core.worker import landlock, surroundings

    rules = landlock.Ruleset(abi)
    try:
        rules.allow(readable, landlock.READ)
        rules.allow(writable, landlock.READ_AND_WRITE)
    except OSError as error:
        raise SandboxError(f"the lock cannot reach {error.filename}: {error.strerror}") from None
    rules.allow(filter(os.path.exists, (*surroundings.DEVICES, *surroundings.KERNEL_FACTS)), landlock.READ)
    rules.allow([surroundings.NOTHING], landlock.READ | landlock.WRITE_FILE | landlock.TRUNCATE)
    rules.enforce()


def _check_readable(paths: Sequence[str]) -> None:
    """Root without its special rights is a user like others: a private folder of somebody else stops it."""
    for path in paths:
        if not os.access(path, os.R_OK):
            who = "root gives up its special rights there" if os.getuid() == 0 else "its user may not"
            raise SandboxError(
                f"a locked worker cannot read {path}: {who}; let everybody read it (chmod o+r, and o+x on "
                "its folders), or run the program as its owner"
            )


def limit_resources(memory_bytes: int | None, file_bytes: int | None) -> None:
    """Caps the kernel enforces. RLIMIT_DATA, not RLIMIT_AS: mapped corpora must not count."""
    try:
        import resource
    except ImportError:  # no such limits on this system: the engine's own watch is all there is
        return
    wanted = {
        "RLIMIT_DATA": memory_bytes,
        "RLIMIT_FSIZE": file_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": _MOST_OPEN_FILES,
        "RLIMIT_STACK": _MOST_STACK,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
    }
    for name, value in wanted.items():
        which = getattr(resource, name, None)
        if which is None or value is None:
            continue
        _, hard = resource.getrlimit(which)
        cap = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):  # a system may know a limit and yet not set it
            resource.setrlimit(which, (cap, cap))
