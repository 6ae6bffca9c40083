"""The command line that wraps a worker in bubblewrap (bwrap(1)): it sees nothing but what it needs.

The worker gets mount, process, network, IPC, host-name and (where that works) user namespaces of its own.
What it may read is bound read-only at the same paths, so that file metadata of everything else is out of
reach too. The lock inside the worker is the same as without bubblewrap.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rlm_core.errors import SandboxError
from rlm_core.worker.surroundings import DEVICES, libraries

MISSING: Final = "bubblewrap is not installed (Debian, Ubuntu: apt install bubblewrap)"
MOST_BINDS: Final = 200  # single files, then folders: the more mounts, the more each one costs
_NAMESPACES: Final = ("--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL")


def program() -> str | None:
    """The path of bubblewrap, or None where it is not installed."""
    return shutil.which("bwrap") if sys.platform == "linux" else None


def wrapped(command: Sequence[str], scratch: str, readable: Iterable[str], info: int) -> list[str]:
    """`command` inside bubblewrap, which writes the worker's process number to the descriptor `info`.

    Raises `SandboxError` when bubblewrap is not there or the documents lie in too many places.
    """
    from rlm_core.worker import landlock

    bwrap = program()
    if bwrap is None:
        raise SandboxError(MISSING)
    python = os.path.realpath(sys.executable)
    settings = os.path.join(sys.prefix, "pyvenv.cfg")
    files = set(readable)
    if len(files) > MOST_BINDS and not landlock.version():  # what lies beside them in their folders
        raise SandboxError(f"more than {MOST_BINDS} files need Landlock beside bubblewrap")
    shown = [*libraries(), python, *gathered(files)]
    if os.path.exists(settings):
        shown.append(settings)
    line = [bwrap, *_NAMESPACES, "--info-fd", str(info), "--proc", "/proc"]
    for device in filter(os.path.exists, DEVICES):
        line += ["--dev-bind", device, device]
    for path in sorted(set(shown)):
        line += ["--ro-bind", path, path]
    if sys.executable != python:
        line += ["--symlink", python, sys.executable]
    return [*line, "--bind", scratch, scratch, "--chdir", scratch, "--remount-ro", "/", "--", *command]


def gathered(paths: Iterable[str]) -> list[str]:
    """At most `MOST_BINDS` paths that hold all of these: the files, else their folders, or folders of those.

    Raises `SandboxError` when that would lay open a folder of the root.
    """
    found = set(paths)
    if len(found) > MOST_BINDS:
        found = {os.path.dirname(path) for path in found}
    while len(found) > MOST_BINDS:
        deepest = max(map(_depth, found))
        if deepest <= 2:
            raise SandboxError("the documents lie in too many folders for bubblewrap")
        found = {os.path.dirname(path) if _depth(path) == deepest else path for path in found}
    return sorted(found)


def _depth(path: str) -> int:
    return path.rstrip("/").count("/")


def worker_pid(info: bytes) -> int | None:
    """The process number of the worker on this side, from what bubblewrap wrote."""
    import json

    try:
        said: Any = json.loads(info)
        return int(said["child-pid"])
    except (ValueError, KeyError, TypeError):
        return None
