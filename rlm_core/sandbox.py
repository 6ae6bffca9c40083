"""How a worker process is started, and how far it is locked in.

The level in force is reported as it is. At `none` the worker is a separate process with an environment built
from nothing, resource limits where the system has them, and nothing else: generated code can read files, open
sockets and start programs with the rights of the user. The lock of the operating system has its place in
`probe` and in `rlm_core.worker.boot`, before the first cell.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rlm_core.errors import SandboxError

Level = Literal["none", "weak", "standard", "strict"]
LEVELS: Final[tuple[Level, ...]] = ("none", "weak", "standard", "strict")
_BOOT: Final = "import sys; sys.path.append(sys.argv.pop(1)); from rlm_core.worker.boot import main; main()"


@dataclass(frozen=True, slots=True)
class Probe:
    """What this machine gives a worker: the level and, in words, what that means."""

    level: Level
    detail: str


def probe() -> Probe:
    """The level a worker started now would have."""
    limits = "with resource limits" if os.name == "posix" else "without resource limits"
    return Probe(
        "none",
        f"a separate process with an empty environment, {limits}; generated code can read your files and use "
        "the network, so run only questions and documents you trust, or start the program inside a container",
    )


def require(minimum: str) -> Probe:
    """The probe, if its level reaches `minimum`; raises `SandboxError` with what to do otherwise."""
    if minimum not in LEVELS:
        raise SandboxError(f"unknown sandbox level {minimum!r}: use one of {', '.join(LEVELS)}")
    found = probe()
    if LEVELS.index(found.level) < LEVELS.index(minimum):
        raise SandboxError(
            f"the sandbox level here is {found.level!r}, below the asked minimum {minimum!r}: "
            f"{found.detail}; or accept it with --sandbox {found.level}"
        )
    return found


def worker_command() -> list[str]:
    """The command line of a worker. `-s -P`: nothing from the user's site folder or the working directory."""
    package_root = str(Path(__file__).resolve().parent.parent)
    return [sys.executable, "-s", "-P", "-c", _BOOT, package_root, str(os.getpid())]


def worker_environment(scratch: str, seed: int) -> dict[str, str]:
    """The environment of a worker, built from nothing: no key and no setting of the user reaches it."""
    environment = {
        "PATH": os.defpath,
        "HOME": scratch,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONHASHSEED": str(seed % (1 << 32)),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if "SYSTEMROOT" in os.environ:  # Windows cannot start an interpreter without it
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return environment
