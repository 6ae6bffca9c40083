"""The child process that reads one file: limits first, then the lock, then the reader.

Started by `rlm_core.readers.process` with a JSON task as its only argument. It leaves its result in the
folder of the task, in a file of its own; exit code 0 says that it is there.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

from rlm_core.errors import SandboxError
from rlm_core.readers.output import StagedOutput, Unreadable

RESULT: Final = "result"
DISK_FULL: Final = 3  # exit code: the folder takes no more
MODULES: Final = "rlm_core.readers"
_PR_SET_PDEATHSIG: Final = 1
_FULL: Final = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def main() -> None:
    """Entry of the process."""
    task = json.loads(sys.argv.pop())
    os.chdir(task["folder"])
    _die_with_parent(task["parent"])
    _limit_time(task["seconds"])
    try:
        result = _locked(task) or _read(task)
        Path(task["folder"], RESULT).write_text(json.dumps(result), "utf-8")
    except OSError as error:
        if error.errno in _FULL:
            sys.exit(DISK_FULL)
        raise
    sys.stdout.flush()
    os._exit(0)  # whatever threads a library has started: there is nothing left to wait for


def _locked(task: dict[str, Any]) -> dict[str, Any] | None:
    """Close this process in; a result when the lock shuts out what must be read."""
    from rlm_core.worker.lock import lock_down

    try:
        lock_down(
            [task["path"]], [task["folder"]], memory_bytes=task["memory_bytes"], file_bytes=task["file_bytes"]
        )
    except SandboxError as error:
        return {"unreadable": str(error)}
    return None


def _read(task: dict[str, Any]) -> dict[str, Any]:
    """The result of the reader, or why there is none."""
    try:
        module = importlib.import_module(f"{MODULES}.{task['module']}")
        with StagedOutput(Path(task["folder"]), task["members"], task["member_bytes"], task["wanted"]) as out:
            module.read(task["path"], out)
        return out.result()
    except Unreadable as error:
        return {"unreadable": str(error)}
    except MemoryError:
        return {"unreadable": f"needs more than {task['memory_bytes'] >> 20:,} MB of memory to read"}
    except RecursionError:
        return {"unreadable": "is nested too deeply to read"}
    except OSError as error:
        if error.errno in _FULL:
            raise
        if error.errno == errno.EFBIG:
            size = task["file_bytes"] >> 20
            return {"unreadable": f"holds more than {size:,} MB: split it and add the parts"}
        return {"failed": _name_of(error)}
    except Exception as error:
        return {"failed": _name_of(error)}


def _name_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _die_with_parent(parent: int) -> None:
    """Linux: a death signal. Elsewhere the time limit ends a child whose parent is gone."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the signal was asked for
        os._exit(1)


def _limit_time(seconds: int) -> None:
    """CPU time; and time on the clock, for a parent that is gone: one that lives ends this process before."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds + 1)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
