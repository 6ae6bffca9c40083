"""Ctrl-C while a command is still being imported, or has ended: a real process, stopped at a known moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT

pytestmark = pytest.mark.needs("posix")

# Says when a module is about to be imported, an extension module to be loaded, or the interpreter to end, and
# stays there, in an `exec` of text, as many modules have it, or in a line of the import machinery.
SITE = """
import atexit, os, sys, time
from importlib.machinery import ExtensionFileLoader

def stall(at):
    if at == os.environ["STALLS_AT"] and sys.argv[0] != "-c":
        line = "print('there', flush=True); time.sleep(float(os.environ['STALLS_FOR']))"
        exec(compile(line, "<frozen importlib._bootstrap>", "exec") if at == "traces.runs" else line)
        print("gone on", flush=True)

class Stalls:
    def find_spec(self, name, path=None, target=None):
        stall(name)

def exec_module(self, module):
    stall("extension " + module.__name__)
    load(self, module)

load, ExtensionFileLoader.exec_module = ExtensionFileLoader.exec_module, exec_module
sys.meta_path.insert(0, Stalls())
atexit.register(stall, "end")
"""


def started(folder: Path, module: str, seconds: float = 600, **options: bool) -> subprocess.Popen[str]:
    """A command that has come to the import of a module."""
    (folder / "sitecustomize.py").write_text(SITE)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    env |= {"STALLS_AT": module, "STALLS_FOR": str(seconds), "RLMSCOPE_HOME": str(folder / "home")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "ui", "runs", "--json"]
    process = subprocess.Popen(command, cwd=ROOT, env=env, text=True, **pipes, **options)  # type: ignore[call-overload]
    while (line := process.stdout.readline()) not in ("there\n", ""):  # what the command says before it ends
        pass
    assert line, process.communicate()
    return process  # type: ignore[no-any-return]


@pytest.mark.parametrize("module", ["ui.cli", "click", "ui.read_commands", "traces.home"])
def test_ctrl_c_at_the_start_is_one_line(tmp_path: Path, module: str) -> None:
    process = started(tmp_path, module)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "rlmscope: cancelled")


@pytest.mark.parametrize("place", ["extension _duckdb", "traces.runs"])
def test_ctrl_c_waits_where_python_could_not_raise_it(tmp_path: Path, place: str) -> None:
    process = started(tmp_path, place, 0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "gone on\n", "rlmscope: cancelled")


def test_ctrl_c_while_the_interpreter_ends_is_one_line(tmp_path: Path) -> None:
    process = started(tmp_path, "end")
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
    assert (process.returncode, out, err) == (0, "gone on\n[]\n", "")
