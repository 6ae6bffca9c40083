"""The `rlmscope` command, also as `python -m ui`.

Ctrl-C while modules are still being imported, or while the interpreter ends, would end in the traceback of
whatever line it met. So this one imports nothing until that is seen to; the installed command starts here.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` first builds enums, for a third of a start
import _thread
import os
import time

from ui import INTERRUPTED

TYPE_CHECKING = False  # as type checkers know it; `typing` alone would take longer than all of this
if TYPE_CHECKING:
    from types import FrameType

_MACHINERY = "<frozen importlib"
_LOADING = ("create_module", "exec_module")
_LOOK_SECONDS = 0.02


def main() -> None:
    """The entry point: runs the command, and ends with one line when Ctrl-C comes before or after it."""
    early = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored on purpose
    try:
        if early:
            signal.signal(signal.SIGINT, _stop)
        from ui import cli

        if early:
            signal.signal(signal.SIGINT, _interrupt)
        cli.main()
    except KeyboardInterrupt:
        raise SystemExit(_cancelled()) from None
    finally:
        if early:
            signal.signal(signal.SIGINT, _stop)
        # A Ctrl-C that met an `exec` of text, as dataclasses are made by, is remembered by the interpreter
        # until the next one, and it would end itself by the signal instead of with the exit code.
        exec("")


def _stop(_number: int, _frame: object) -> None:
    """End at once: nothing has begun that would have to be put in order, or all is in order."""
    os._exit(_cancelled())


def _interrupt(_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not into an extension module that is being loaded: DuckDB's would end the
    process with a core dump, and an answer that is there would not be said. Nor into the import machinery
    itself, which has callbacks out of which nothing is raised: the wish would be a traceback, and lost.
    """
    if frame is not None and (frame.f_code.co_filename.startswith(_MACHINERY) or _loads_extension(frame)):
        _thread.start_new_thread(_again, ())
        return
    raise KeyboardInterrupt


def _loads_extension(frame: FrameType) -> bool:
    inner: FrameType | None = frame
    while inner is not None:
        loader = inner.f_locals.get("self") if inner.f_code.co_name in _LOADING else None
        if type(loader).__name__ == "ExtensionFileLoader":
            return True
        inner = inner.f_back
    return False


def _again() -> None:
    time.sleep(_LOOK_SECONDS)
    _thread.interrupt_main()


def _cancelled() -> int:
    os.write(2, b"rlmscope: cancelled\n")
    return INTERRUPTED


if __name__ == "__main__":
    main()
