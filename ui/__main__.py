"""The `rlmscope` command, also as `python -m ui`.

Ctrl-C while modules are still being imported would end in the traceback of whatever line it met. So this one
imports nothing until that is seen to, and the installed command starts here.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` first builds enums, for a third of a start
import os

from ui import INTERRUPTED


def main() -> None:
    """The entry point: runs the command, and ends with one line when Ctrl-C comes before it has begun."""
    early = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored on purpose
    try:
        if early:
            signal.signal(signal.SIGINT, _stop)
        from ui import cli

        if early:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        cli.main()
    except KeyboardInterrupt:
        raise SystemExit(_cancelled()) from None


def _stop(_number: int, _frame: object) -> None:
    """End at once: nothing has begun that would have to be put in order."""
    os._exit(_cancelled())


def _cancelled() -> int:
    os.write(2, b"rlmscope: cancelled\n")
    return INTERRUPTED


if __name__ == "__main__":
    main()
