"""How the command line ends when something goes wrong: one line on stderr and an exit code, no traceback."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path

import click

from ui import INTERRUPTED
from ui.common import State, say

LOGS = "logs"  # in the home folder


def exit_code(error: BaseException, state: State) -> int:
    """Say on stderr what went wrong and return the exit code for it."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return 2
    if isinstance(error, click.ClickException):
        say(f"rlmscope: {_usage(error)}")
        return 2
    if isinstance(error, click.Abort | KeyboardInterrupt):
        say("rlmscope: cancelled")
        interrupted = isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt)
        return INTERRUPTED if interrupted else 1
    with suppress(ImportError):  # in an installation as broken as doctor may find it
        from rlm_core.errors import RLMScopeError

        if isinstance(error, RLMScopeError):
            say(f"rlmscope: {error}")
            return error.exit_code
    say(f"rlmscope: {unexpected(error, _logs(state))}")
    return 1


def _usage(error: click.ClickException) -> str:
    message = error.format_message()
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else None
    return f"{message} (see '{path} --help')" if path else message


def unexpected(error: BaseException, logs: Path | None) -> str:
    """One sentence about an error nobody foresaw; its traceback goes into a file only its owner can read."""
    name = f"error-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
    where = "its details could not be written anywhere"
    for folder in (logs, Path(tempfile.gettempdir())):
        if folder is not None and _written(error, folder / name):
            where = f"details are in {folder / name}"
            break
    return f"{type(error).__name__}, which was not expected; {where}"


def _written(error: BaseException, path: Path) -> bool:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write(f"python {sys.version}\nplatform {platform.platform()}\n")
            out.writelines(traceback.format_exception(error))
    except OSError:
        return False
    return True


def _logs(state: State) -> Path | None:
    try:
        return state.home.root / LOGS
    except Exception:  # whatever broke the home must not hide the error at hand
        return None
