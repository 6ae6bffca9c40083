"""The command line as a user starts it: a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def start(*words: str | Path, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start `rlmscope WORDS`."""
    command = [sys.executable, "-m", "ui", *map(str, words)]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str], *, ok: Sequence[int] = (0,)) -> Any:
    """Wait for a command with --json and return its document."""
    out, err = process.communicate(timeout=300)
    assert process.returncode in ok, f"exit {process.returncode}: {err[-3000:]}"
    return json.loads(out)


def inside(*words: str | Path, env: Mapping[str, str] | None = None, ok: Sequence[int] = (0,)) -> Any:
    """Like `rlmscope`, but in this process: nothing is imported anew, which with LiteLLM takes seconds."""
    from click.testing import CliRunner

    from ui.cli import cli

    result = CliRunner().invoke(cli, [*map(str, words), "--json"], env=env)
    assert result.exit_code in ok, f"exit {result.exit_code}: {result.stderr[-3000:]} {result.exception!r}"
    return json.loads(result.stdout)


def rlmscope(*words: str | Path, env: Mapping[str, str] | None = None, ok: Sequence[int] = (0,)) -> Any:
    """Run a command with --json to its end and return its document."""
    return finish(start(*words, "--json", env=env), ok=ok)
