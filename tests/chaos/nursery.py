"""Processes that can be started often: one process imports everything once and forks a child for each job.

Starting `rlmscope ask` takes seconds of imports, mostly LiteLLM's, in which a kill shows nothing. A child of
the nursery begins where those imports end and is a session of its own. Only the nursery waits for its
children, so a kill never meets a process id that was given away again.

As a program (`python -m tests.chaos.nursery`) it takes orders as JSON lines on standard input and says on
standard output what became of them; when the input ends, it ends its children.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import Any, Self

from tests.support.command import ROOT

_PERIOD = 0.003  # seconds between two looks at the children


@dataclass
class Child:
    """A started job. `code` is that of `subprocess`: negative for a signal, None while it runs."""

    number: int
    nursery: Nursery
    pid: int | None = None
    code: int | None = None
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def kill(self, *, group: bool) -> None:
        """kill -9 of the process or of its whole group; nothing happens when it has ended."""
        self.nursery.order({"kill": self.number, "group": group})


class Nursery:
    """The client's side. A context manager."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: dict[int, Child] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("the process that forks the others did not start")
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._listener.join(10)
        self._process.stdout.close()

    def start(self, job: dict[str, Any]) -> Child:
        """Fork a child for a job (see `tests.chaos.jobs`)."""
        with self._lock:
            child = Child(len(self._children), self)
            self._children[child.number] = child
        self.order({"start": child.number, "job": job})
        if not child.started.wait(60):
            raise RuntimeError("no process could be forked")
        return child

    def order(self, words: dict[str, Any]) -> None:
        """Send one order."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(words) + "\n")
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            child = self._children[said["child"]]
            if "pid" in said:
                child.pid = said["pid"]
                child.started.set()
            else:
                child.code = said["code"]
                child.ended.set()


def main() -> None:
    """Serve until the input ends."""
    from tests.chaos import jobs

    jobs.prepare()
    print("ready", flush=True)
    living: dict[int, int] = {}  # child -> process id
    unread = b""
    while True:
        if select.select([0], [], [], _PERIOD)[0]:
            read = os.read(0, 65536)
            if not read:
                break
            *lines, unread = (unread + read).split(b"\n")
            for line in lines:
                _obey(json.loads(line), living)
        _bury(living)
    for pid in living.values():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _obey(order: dict[str, Any], living: dict[int, int]) -> None:
    if "start" in order:
        pid = os.fork()
        if pid == 0:
            from tests.chaos import jobs

            jobs.run(order["job"])
        living[order["start"]] = pid
        print(json.dumps({"child": order["start"], "pid": pid}), flush=True)
        return
    pid = living.get(order["kill"], 0)
    with contextlib.suppress(ProcessLookupError):  # it may not lead a group yet
        if pid:
            (os.killpg if order["group"] else os.kill)(pid, signal.SIGKILL)
            return
    if pid:
        os.kill(pid, signal.SIGKILL)


def _bury(living: dict[int, int]) -> None:
    for number, pid in list(living.items()):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            del living[number]
            code = os.waitstatus_to_exitcode(status)
            print(json.dumps({"child": number, "code": code}), flush=True)


if __name__ == "__main__":
    main()
