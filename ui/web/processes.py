"""Processes that the app starts and that outlive it: runs, and corpora being added."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

from traces.locks import FileLock

_ROOT: Final = Path(__file__).resolve().parents[2]
_BOOT: Final = "import sys; sys.path.append(sys.argv.pop(1)); from {module} import main; main()"


def start_process(module: str, words: list[str], log: Path, lock: FileLock) -> None:
    """Call `main()` of a module in a process of its own; what it prints goes into the file `log`.

    The process inherits the lock (not on Windows); a thread here keeps it too, until the process has ended.
    Raises OSError when it cannot be started.
    """
    command = [sys.executable, "-P", "-c", _BOOT.format(module=module), str(_ROOT), *words]
    log.parent.mkdir(mode=0o700, exist_ok=True)
    with open(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "ab") as out:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        process = subprocess.Popen(command, **streams, **_detached(lock.fileno()))
    threading.Thread(target=_reap, args=(process, lock), name="rlm-reaper", daemon=True).start()


def _detached(lock: int) -> dict[str, Any]:
    """Options of Popen for a process that neither Ctrl-C in our terminal nor our end reaches."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True, "pass_fds": (lock,)}


def _reap(process: subprocess.Popen[bytes], lock: FileLock) -> None:
    process.wait()
    lock.release()
