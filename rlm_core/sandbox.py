"""How far a worker is locked in: the levels, what this machine gives, and the least that is accepted.

A level is a promise about what generated code cannot do. It is never read off settings: a worker tries what
it must not be able to do (`rlm_core.worker.self_test`), and what it finds is the level. How to reach a level
is the part of `rlm_core.worker.lock` and `rlm_core.bubblewrap`.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rlm_core.errors import SandboxError
from rlm_core.worker.lock import untested

Level = Literal["none", "weak", "standard", "strict"]
LEVELS: Final[tuple[Level, ...]] = ("none", "weak", "standard", "strict")
MEANING: Final[dict[Level, str]] = {
    "none": "a separate process with an empty environment; generated code can read your files, start "
    "programs and use the network, so run only questions and documents you trust",
    "weak": "no network and no new processes, but generated code can read and change your files",
    "standard": "no network, no new processes, no files but the corpus, the libraries and its own scratch "
    "folder; names, sizes and times of other files stay visible",
    "strict": "no network, no new processes, and nothing to be seen but the corpus, the libraries and its "
    "own scratch folder",
}
IN_SHORT: Final[dict[Level, str]] = {
    "none": "code is not locked in",
    "weak": "no network, but files are open",
    "standard": "no network, no files of yours",
    "strict": "no network, nothing of yours is visible",
}
# What must be out of reach at a level, beside what must be at the levels below it.
_CLOSED: Final[dict[Level, frozenset[str]]] = {
    "weak": frozenset({"network", "processes", "signals"}),
    "standard": frozenset({"read", "write", "parent"}),
    "strict": frozenset({"metadata"}),
}
_BOOT: Final = "import sys; sys.path.append(sys.argv.pop(1)); from rlm_core.worker.boot import main; main()"


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What a worker found: the level, the layers in place, and, as a clause, why the level is not higher."""

    level: Level
    layers: tuple[str, ...]
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """The best level of this machine, what it means, its layers and, as a clause, why it is not higher."""

    level: Level
    detail: str
    layers: tuple[str, ...] = ()
    why: str | None = None


def judged(reached: Collection[str], layers: Sequence[str], bare: str | None) -> SandboxReport:
    """The level by what could be reached: the highest one whose promises all hold.

    `bare` says, as a clause, why the worker was not wrapped in bubblewrap; None when it was.
    """
    level: Level = "none"
    for higher in LEVELS[1:]:
        if open_here := sorted(_CLOSED[higher].intersection(reached)):
            return SandboxReport(level, tuple(layers), _why_not(higher, open_here, layers, bare))
        level = higher
    return SandboxReport(level, tuple(layers))


def _why_not(higher: Level, reached: list[str], layers: Sequence[str], bare: str | None) -> str:
    """What keeps a worker from a level, as a clause that says what to do where something can be done."""
    if (never_run := untested()) is not None:
        return f"{never_run}: use Linux on x86_64 (on Windows: WSL2) or a container"
    if higher == "strict" and bare:
        return bare
    if higher == "standard" and not any(layer.startswith("landlock") for layer in layers):
        kernel = "the kernel has no Landlock (Linux 5.13 or newer, switched on)"
        return f"{kernel} and {bare}" if bare else kernel
    return f"a worker could still reach: {', '.join(reached)}"


def level_words(level: str | None) -> str:
    """A recorded level with its meaning in short, for people; "unknown" for None."""
    meaning = {str(known): words for known, words in IN_SHORT.items()}.get(level or "")
    return f"{level} ({meaning})" if meaning else level or "unknown"


def below(level: Level, minimum: Level) -> bool:
    """Whether a level promises less than another one."""
    return LEVELS.index(level) < LEVELS.index(minimum)


def checked_level(text: str) -> Level:
    """A level by its name; raises `SandboxError` for anything else."""
    for level in LEVELS:
        if level == text:
            return level
    raise SandboxError(f"unknown sandbox level {text!r}: use one of {', '.join(LEVELS)}")


def default_minimum() -> Level:
    """What a run asks for when nobody says otherwise: `standard` where there is a lock, else `none`."""
    return "standard" if untested() is None else "none"


@functools.cache
def probe() -> Probe:
    """The level a worker started now would have, from one that is started to find out. Blocks.

    Raises `SandboxError` when no worker can be started at all.
    """
    from rlm_core.environment import try_out

    found = try_out()
    return Probe(found.level, MEANING[found.level], found.layers, found.why)


def require(minimum: str) -> Probe:
    """The probe, if its level reaches `minimum`; raises `SandboxError` with what to do otherwise."""
    wanted = checked_level(minimum)
    found = probe()
    if below(found.level, wanted):
        raise SandboxError(refusal(found, wanted))
    return found


def refusal(found: Probe | SandboxReport, minimum: Level) -> str:
    """The sentence for a level below the minimum: what is missing, and what can be done."""
    because = f", because {found.why}" if found.why else ""
    return (
        f"the sandbox level here is {found.level!r}, below the asked minimum {minimum!r}{because}; "
        f"level {found.level!r} means: {MEANING[found.level]}; to accept that, use --sandbox {found.level}"
    )


def worker_command(parent: int | None = None) -> list[str]:
    """The command line of a worker. `-s -P`: nothing from the user's site folder or the working directory.

    `parent`: the number of the engine's process as the worker sees it (0: it cannot see it); by default that
    of this process.
    """
    package_root = str(Path(__file__).resolve().parent.parent)
    number = os.getpid() if parent is None else parent
    return [sys.executable, "-s", "-P", "-c", _BOOT, package_root, str(number)]


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
