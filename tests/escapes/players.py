"""Starts stages at a level, as a user, and judges what they report."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from tests.escapes.attempts import Attempt
from tests.escapes.shelter import REFUSED, ROOT, closed_folders
from tests.escapes.stage import SPARE_SECONDS
from tests.escapes.theatre import MARK_VARIABLE

USERS: Final = ("root", "unprivileged")
NO_SHELTER: Final = "it needs a PID namespace, which this system does not give"
_OTHER_USER: Final = 4321  # nobody's number, so that no process but ours can be hurt in its name
_START_SECONDS: Final = 90.0
_TO_ALL: Final = "E35"  # without a namespace of its own it would reach processes that are not ours


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one attempt at one level as one user.

    `found` is what must not have happened, `broken` what the run itself lost, `not_run` why there is no
    result.
    """

    attempt: Attempt
    level: str
    user: str
    found: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    output: str = ""
    died: str = ""
    layers: tuple[str, ...] = ()
    not_run: str = ""

    @property
    def word(self) -> str:
        """The result as it stands in the table."""
        if self.not_run:
            return "not run"
        if self.attempt.expected == "contained":
            if self.found or self.broken:
                return "NOT CONTAINED"
            return "contained (worker lost)" if self.died else "contained"
        if self.attempt.stopped_at(self.level):
            return "THROUGH" if self.found or self.broken else "stopped"
        if self.found:
            return "open"
        return "not reached" if self.shown_here or self.level != "none" else "not shown here"

    @property
    def ok(self) -> bool:
        """Whether that is what the table of levels says. At level none a blocked one must get through."""
        if self.word == "not reached":
            return self.level != "none"
        return self.word not in ("THROUGH", "NOT CONTAINED")

    @property
    def shown_here(self) -> bool:
        """Whether this attempt can get through as this user when nothing stops it."""
        return self.attempt.shown == "any" or (self.attempt.shown == "root" and self.user == "root")

    @property
    def why(self) -> str:
        """One line for whoever looks into it."""
        return "; ".join((*self.found, *self.broken)) or self.not_run or self.output.strip()[-300:]


@dataclass
class Player:
    """A stage that is started when it is needed, and again after an attempt has killed it."""

    level: str
    user: str
    _process: subprocess.Popen[str] | None = None
    _folder: str = ""
    _errors: IO[str] | None = None

    def play(self, attempt: Attempt, *, naked: bool = False) -> Result:
        """Run one attempt; `naked` = without any worker, in a plain interpreter."""
        if attempt.machines and platform.machine() not in attempt.machines:
            return Result(attempt, self.level, self.user, not_run=f"written for {attempt.machines[0]}")
        if why := cannot_play(self.user):
            return Result(attempt, self.level, self.user, not_run=why)
        if attempt.id == _TO_ALL and (why := no_shelter(_number(self.user))):
            return Result(attempt, self.level, self.user, not_run=why)
        seconds = attempt.seconds + SPARE_SECONDS + _START_SECONDS
        line = self._order({"id": attempt.id, "naked": naked}, seconds)
        if line:
            said = json.loads(line)
            if "error" in said:
                return Result(attempt, self.level, self.user, not_run=said["error"])
            lists = {key: tuple(said[key]) for key in ("found", "broken", "layers")}
            return Result(attempt, self.level, self.user, output=said["output"], died=said["died"], **lists)
        return Result(attempt, self.level, self.user, found=(self._obituary(),))

    def close(self) -> None:
        """End the stage."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None and process.stdout is not None and self._errors is not None
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _order(self, order: dict[str, Any], seconds: float) -> str:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None and self._process.stdout is not None
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except BrokenPipeError:
            return ""
        finally:
            timer.cancel()

    def _start(self) -> None:
        user = _number(self.user)
        self._folder = tempfile.mkdtemp(prefix="rlmscope-stage-")
        os.chown(self._folder, user, -1)
        python = [sys.executable, "-m", "tests.escapes.stage", self.level]
        sheltered = no_shelter(user) is None
        command = [sys.executable, "-m", "tests.escapes.shelter", "--user", str(user)] if sheltered else []
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the stage
        self._process = subprocess.Popen(
            command + python,
            cwd=ROOT,
            env={
                **os.environ,
                MARK_VARIABLE: f"mark-{secrets.token_hex(12)}",
                "TMPDIR": self._folder,
                "HOME": self._folder,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            **({} if sheltered or user == os.getuid() else {"user": user, "group": user, "extra_groups": ()}),
        )

    def _obituary(self) -> str:
        """How the stage ended; raises for an end that no attempt made."""
        assert self._process is not None and self._errors is not None
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read()[-2000:]
        self.close()
        if 0 <= code < 128:
            raise RuntimeError(f"the stage ended by itself with code {code}: {said}")
        return f"the parent was killed (exit code {code})"


def cannot_play(user: str) -> str:
    """Why nothing can be run here as this user; empty if it can."""
    if os.getuid() == 0:
        number = _number(user)
        if number == 0 or (why := no_shelter(number)) is None:
            return ""
        closed = closed_folders([Path(sys.base_prefix), Path(sys.prefix), ROOT])
        return f"another user may not pass {', '.join(map(str, closed))}, and {why}" if closed else ""
    return "started by an unprivileged user" if user == "root" else ""


@cache
def no_shelter(user: int) -> str | None:
    """Why there is no namespace for this user; None where there is one."""
    command = [sys.executable, "-m", "tests.escapes.shelter", "--user", str(user), sys.executable, "-c", ""]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    if done.returncode == REFUSED:
        return f"{NO_SHELTER}: {done.stderr.strip()}"
    return f"Python cannot be started as user {user}: {done.stderr.strip()[-300:]}"


def _number(user: str) -> int:
    if user == "root" or os.getuid() != 0:
        return os.getuid()
    return _OTHER_USER
