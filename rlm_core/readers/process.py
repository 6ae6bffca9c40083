"""Starting the child process that reads one file, and ending it when it takes too much."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rlm_core.errors import CorpusError
from rlm_core.readers.child import DISK_FULL
from rlm_core.readers.output import MOST_TEXT_BYTES, Unreadable
from rlm_core.sandbox import worker_environment

_BOOT: Final = "import sys; sys.path.append(sys.argv.pop(1)); from rlm_core.readers.child import main; main()"
_PACKAGES: Final = str(Path(__file__).resolve().parent.parent.parent)
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.05
_LOOK_SECONDS: Final = 0.25  # between two looks at how much has been written
_SECONDS: Final = 120
_SECONDS_PER_MB: Final = 10
_MOST_SECONDS: Final = 3600
_OUT_OF_TIME: Final = [-getattr(signal, name, 0) for name in ("SIGXCPU", "SIGALRM")]


@dataclass(frozen=True, slots=True)
class Caps:
    """What a child may take: seconds (of wall clock, and of CPU), memory, the size of one file it writes, and
    how many contained files of how many bytes in all it may unpack.
    """

    seconds: int
    memory_bytes: int
    file_bytes: int
    members: int
    member_bytes: int

    @classmethod
    def of(cls, size: int, members: int, member_bytes: int) -> Caps:
        """The caps for a file of `size` bytes: more time for larger ones."""
        seconds = min(_MOST_SECONDS, _SECONDS + _SECONDS_PER_MB * (size >> 20))
        return cls(seconds, 2 << 30, max(MOST_TEXT_BYTES, member_bytes), members, member_bytes)


def run_child(
    module: str,
    path: str,
    folder: Path,
    caps: Caps,
    check: Callable[[], None],
    wanted: Sequence[int] = (),
) -> None:
    """Have a module read a file into an empty folder; nothing of the child is running afterwards.

    `wanted`: see `rlm_core.readers.output.Output`.
    `check` is called now and then, and may raise to end the child. Raises `Unreadable` when the child crashed
    or was ended for taking too much, `CorpusError` when the disk is full.
    """
    task = {
        "module": module, "path": path, "folder": str(folder), "parent": os.getpid(), "wanted": list(wanted),
        **asdict(caps),
    }  # fmt: skip
    command = [sys.executable, "-s", "-P", "-c", _BOOT, _PACKAGES, json.dumps(task)]
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=worker_environment(str(folder), 0), cwd=folder, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise CorpusError(f"no process to read files can be started ({error.strerror or error})") from None
    try:
        _wait(child, folder, caps, check)
    finally:
        code = _end(child)
    if code and code in _OUT_OF_TIME:
        raise _too_slow(caps)
    if code == DISK_FULL:
        raise CorpusError(
            f"the corpus cannot be stored in {folder.parent} (No space left on device): free some space there"
        )
    if code:
        raise Unreadable(f"cannot be read: its reader {_how_it_ended(code)}, as damaged files can make it")


def _wait(child: subprocess.Popen[bytes], folder: Path, caps: Caps, check: Callable[[], None]) -> None:
    """Until it has ended; raises `Unreadable` when a cap is reached."""
    start = looked = time.monotonic()
    pause = _FIRST_PAUSE
    most = caps.member_bytes + caps.file_bytes
    while not _has_ended(child, pause):
        pause = min(2 * pause, _LONGEST_PAUSE)
        check()
        now = time.monotonic()
        if now - start > caps.seconds:
            raise _too_slow(caps)
        if now - looked > _LOOK_SECONDS:
            looked = now
            if _written(folder, most) > most:
                raise Unreadable(f"takes more than {most >> 20:,} MB when it is read")


def _has_ended(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it has ended, after waiting so long at most.

    Where the system can tell without collecting it, it stays a zombie: so nobody else gets its number before
    its group is killed.
    """
    if not hasattr(os, "waitid"):
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        return child.returncode is not None
    time.sleep(seconds)
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _written(folder: Path, most: int) -> int:
    """The bytes of the files in a folder; no more are looked at once it is clear that they are too many."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
        if total > most:
            break
    return total


def _end(child: subprocess.Popen[bytes]) -> int:
    """Kill whatever is left of the process group; the exit code of the child."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    return child.wait()


def _too_slow(caps: Caps) -> Unreadable:
    return Unreadable(f"was not read within {caps.seconds:,} seconds: split it, or convert it to text")


def _how_it_ended(code: int) -> str:
    if code > 0:
        return "failed"
    with suppress(ValueError):
        return f"crashed ({signal.Signals(-code).name})"
    return "crashed"
