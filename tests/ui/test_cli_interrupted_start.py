"""Ctrl-C while a command is still being imported: a real process, stopped inside a known import."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT

pytestmark = pytest.mark.needs("posix")

# Says when a module is about to be imported, and stays there.
SITE = """
import os, sys, time

class Stalls:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["STALLS_AT"] and sys.argv[0] != "-c":
            print("there", flush=True)
            time.sleep(float(os.environ["STALLS_FOR"]))

sys.meta_path.insert(0, Stalls())
"""


def started(folder: Path, module: str, seconds: float = 600, **options: bool) -> subprocess.Popen[str]:
    """A command that has come to the import of a module."""
    (folder / "sitecustomize.py").write_text(SITE)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    env |= {"STALLS_AT": module, "STALLS_FOR": str(seconds), "RLMSCOPE_HOME": str(folder / "home")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "ui", "runs", "--json"]
    process = subprocess.Popen(command, cwd=ROOT, env=env, text=True, **pipes, **options)  # type: ignore[call-overload]
    assert process.stdout.readline() == "there\n", process.communicate()
    return process  # type: ignore[no-any-return]


@pytest.mark.parametrize("module", ["ui.cli", "click", "ui.read_commands", "traces.home"])
def test_ctrl_c_at_the_start_is_one_line(tmp_path: Path, module: str) -> None:
    process = started(tmp_path, module)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "rlmscope: cancelled")


def test_a_command_that_is_to_ignore_ctrl_c_goes_on(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as `nohup` and `&` of a script leave it
    try:
        process = started(tmp_path, "ui.cli", 0.3)
    finally:
        signal.signal(signal.SIGINT, before)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip(), err) == (0, "[]", "")
