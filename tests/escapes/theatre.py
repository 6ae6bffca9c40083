"""What an attempt is after, and how one sees afterwards whether it got it.

A fake home with keys, a folder of canaries, a corpus, listeners of four kinds, a marker in the environment of
this process: all of them made for this and thrown away after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import signal
import socket
import stat
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import rlm_core.worker
from rlm_core.corpus import Corpus

MARK_VARIABLE: Final = "ESCAPE_STAGE_SECRET"
PACKAGES: Final = Path(str(importlib.util.find_spec("numpy").origin)).parent.parent  # type: ignore[union-attr]
HERE: Final = Path(rlm_core.worker.__file__).parent
_MOMENT: Final = 1.0  # seconds
_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_TEXT: Final = "line of the corpus\n" * 400
_CANARY: Final = b"sings as long as nobody touched it\n"


class Theatre:
    """One stage in `folder`; `mark` is the secret, which this process has in its environment."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.mark = mark
        self.home = folder / "home"
        self.canaries = folder / "canaries"
        self.plant = f"planted_{uuid.uuid4().hex[:12]}.py"
        self._secret = ctypes.create_string_buffer(mark.encode())
        self._signals: list[int] = []
        corpus = Corpus.from_texts({"corpus.txt": _TEXT}, folder / "corpora")
        self.documents = corpus.worker_documents()
        self.corpus = Path(self.documents[0]["path"])
        self._write_private(folder)
        self._key = os.open(self.home / ".ssh" / "id_x", os.O_RDONLY)
        self._open_listeners(folder)
        for number in _SIGNALS:
            signal.signal(number, lambda number, _: self._signals.append(number))
        self._children = set(descendants(os.getpid()))
        self._before = self._state()

    def names(self, memory: int) -> dict[str, Any]:
        """The variables that an attempt finds in its REPL."""
        return {
            "MARK": self.mark,
            "HOME": str(self.home),
            "CANARIES": str(self.canaries),
            "CORPUS": str(self.corpus),
            "HERE": str(HERE),
            "PLANT": self.plant,
            "USOCK": self._path,
            "ABSTRACT": self._abstract,
            "PORT": self._listeners["a TCP connection"].getsockname()[1],
            "UPORT": self._listeners["a datagram"].getsockname()[1],
            "LPORT": self._free_port,
            "PPID": os.getpid(),
            "PADDR": ctypes.addressof(self._secret),
            "PFD": self._key,
            "MEMORY": memory,
        }

    def look(self, workers: set[int]) -> list[str]:
        """What happened since the last look that must not have: one line each. Puts everything back.

        `workers` are the processes that may be there: the worker and what its wrapper started.
        """
        found = [f"{what} came from the sandbox" for what in self._hits()]
        found += [f"signal {signal.Signals(number).name} came to the parent" for number in self._signals]
        self._signals.clear()
        if self._answers(self._free_port):
            found.append("others can connect to the sandbox")
        now = self._state()
        found += [f"{name} changed" for name in sorted(now.keys() | self._before.keys())
                  if now.get(name) != self._before.get(name)]  # fmt: skip
        if now != self._before:
            self._restore()
        for place in (PACKAGES, HERE):
            if (planted := place / self.plant).exists():
                planted.unlink()
                found.append(f"a file was planted in {place.name}")
        if strays := self._strays(workers):
            found.append(f"{len(strays)} processes were started")
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        _reap()
        return found

    def _strays(self, workers: set[int]) -> list[int]:
        """Processes that are nobody's; one that is about to end has a moment for it."""
        ends = time.monotonic() + _MOMENT
        while strays := [pid for pid in descendants(os.getpid()) if pid not in self._children | workers]:
            if time.monotonic() > ends:
                break
            time.sleep(0.02)
        return strays

    def _write_private(self, folder: Path) -> None:
        for path in (self.home / ".ssh", self.home / ".aws", self.canaries):
            path.mkdir(parents=True)
        (self.home / ".ssh" / "id_x").write_text(f"key {self.mark}\n")
        (self.home / ".aws" / "credentials").write_text(f"secret = {self.mark}\n")
        (self.canaries / "canary").write_bytes(_CANARY)
        self._modes = {path: path.stat() for path in self._private()}

    def _private(self) -> tuple[Path, ...]:
        return (
            self.home / ".ssh" / "id_x",
            self.home / ".aws" / "credentials",
            self.canaries / "canary",
            self.corpus,
        )

    def _open_listeners(self, folder: Path) -> None:
        self._path = str(folder / "socket")
        self._abstract = f"stage-{uuid.uuid4().hex}"
        made = {
            "a TCP connection": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "a datagram": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "a connection to a path": (socket.AF_UNIX, socket.SOCK_STREAM, self._path),
            "a connection to an abstract name": (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self._abstract),
        }
        self._listeners = {}
        for what, (family, kind, address) in made.items():
            listener = self._listeners[what] = socket.socket(family, kind)
            listener.bind(address)
            if kind == socket.SOCK_STREAM:
                listener.listen(16)
            listener.setblocking(False)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._free_port: int = free.getsockname()[1]

    def _hits(self) -> Iterator[str]:
        """Listeners that somebody reached. Nobody has to be listening for it: the kernel keeps it for us."""
        for what, listener in self._listeners.items():
            hit = False
            with contextlib.suppress(BlockingIOError):
                while True:
                    if listener.type == socket.SOCK_STREAM:
                        listener.accept()[0].close()
                    else:
                        listener.recv(4096)
                    hit = True
            if hit:
                yield what

    def _answers(self, port: int) -> bool:
        with socket.socket() as line:
            line.settimeout(1)
            return line.connect_ex(("127.0.0.1", port)) == 0

    def _state(self) -> dict[str, Any]:
        """Everything that can be changed, by what it is called in a finding."""
        state: dict[str, Any] = {}
        for folder in (self.home, self.canaries, self.corpus.parent):
            for path in sorted(folder.rglob("*")):
                status = path.lstat()
                name = f"{folder.name}/{path.relative_to(folder)}"
                if stat.S_ISDIR(status.st_mode):
                    state[name] = status.st_mode
                    continue
                data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
                owner = (status.st_uid, status.st_gid)
                state[name] = (status.st_mode, owner, status.st_mtime_ns, _attributes(path), data)
        return state

    def _restore(self) -> None:
        texts = (f"key {self.mark}\n", f"secret = {self.mark}\n", _CANARY.decode(), _TEXT)
        for folder in (self.home / ".ssh", self.home / ".aws", self.canaries):
            for path in folder.iterdir():
                path.unlink()
        for path, text in zip(self._private(), texts, strict=True):
            status = self._modes[path]
            path.unlink(missing_ok=True)  # a new file: no attribute of the old one stays
            path.write_bytes(text.encode())
            path.chmod(stat.S_IMODE(status.st_mode))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert self._state() == self._before, "the stage could not be put back"


def _attributes(path: Path) -> tuple[str, ...]:
    if not hasattr(os, "listxattr"):
        return ()
    try:
        return tuple(os.listxattr(path, follow_symlinks=False))
    except OSError:  # a file system without them
        return ()


def descendants(pid: int) -> list[int]:
    """All processes below one that still run."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    parents[int(entry.name)] = int(parent)
    found, level = [], [pid]
    while level:
        level = [child for child, parent in parents.items() if parent in level]
        found += level
    return found


def _reap() -> None:
    """Take leave of strays that ended: this process is the one that orphans below it come to.

    Only those: the child processes that asyncio started are asyncio's.
    """
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ChildProcessError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                # a process group of its own is what the engine gives its workers
                if int(fields[1]) == os.getpid() and fields[0] == "Z" and fields[2] != entry.name:
                    os.waitpid(int(entry.name), os.WNOHANG)
