"""Runs a program where it can reach no process but its own, if wanted as another user.

`python -m tests.escapes.shelter [--user NUMBER] COMMAND...`: a PID and a mount namespace of their own, so
that a signal to "every process" finds only what belongs to the stage. For another user the folders that are
closed to others (a home of root's in which the interpreter may lie) are covered, in the mount namespace only,
by open ones in which just the interpreter, the packages and this checkout appear. Exit code 77 and one line:
the system does not let us.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).resolve().parents[2]
REFUSED: Final = 77
_NEWNS, _NEWUSER, _NEWPID = 0x20000, 0x10000000, 0x20000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Make the namespaces, run the command in them, leave with its exit code."""
    words = sys.argv[1:]
    user = int(words[1]) if words[0] == "--user" else os.getuid()
    command = words[2:] if words[0] == "--user" else words
    try:
        _unshare()
        inside = os.fork()
        if inside == 0:
            _first(user, command)
    except OSError as error:
        print(f"no namespaces: {error}", file=sys.stderr)
        sys.exit(REFUSED)
    _leave(inside)


def closed_folders(paths: Iterable[Path]) -> dict[Path, list[Path]]:
    """Folders on the way to these paths that others may not pass, each with the paths that lie behind it."""
    closed: dict[Path, list[Path]] = {}
    for path in {path.resolve() for path in paths}:
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & 0o001:
                closed.setdefault(folder, []).append(path)
                break
    return closed


def _unshare() -> None:
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        _call("unshare", _NEWNS | _NEWPID)
        return
    _call("unshare", _NEWUSER | _NEWNS | _NEWPID)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _first(user: int, command: list[str]) -> NoReturn:
    """Process 1 of the namespace: no signal from inside ends it, and with it ends everything."""
    try:
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
        _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
        if user != os.getuid():
            for folder, paths in closed_folders([Path(sys.base_prefix), Path(sys.prefix), ROOT]).items():
                _cover(folder, paths)
        _call("mount", b"proc", b"/proc", b"proc", 0, None)
        player = os.fork()
        if player == 0:
            if user != os.getuid():
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            os.execv(command[0], command)
    except OSError as error:
        print(f"no shelter: {error}", file=sys.stderr)
        os._exit(REFUSED)
    _leave(player)


def _cover(folder: Path, paths: list[Path]) -> None:
    """Put an open, empty folder over a closed one, with `paths` where they were."""
    held = []
    for path in paths:
        held.append(tempfile.mkdtemp(prefix="rlmscope-held-"))
        _call("mount", os.fsencode(path), os.fsencode(held[-1]), None, _MS_BIND | _MS_REC, None)
    _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"mode=0755")
    for path, place in zip(paths, held, strict=True):
        path.mkdir(parents=True, exist_ok=True)
        _call("mount", os.fsencode(place), os.fsencode(path), None, _MS_BIND | _MS_REC, None)
        _call("umount2", os.fsencode(place), 2)
        os.rmdir(place)


def _leave(child: int) -> NoReturn:
    """Wait for a process (and take leave of orphans), then end as it did."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
