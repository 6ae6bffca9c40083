"""The process of one run, or of several in turn: `python -m ui.web.run_process HOME RUN_ID`.

Reads its order from the home, runs it, records it and takes it into the store. Why it broke off, if it did,
is left as one sentence in the place of the order.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from ui.common import say
from ui.failure import LOGS, unexpected
from ui.web.order import StartFiles, orders


def main() -> None:
    """The entry point; the exit codes are those of `rlmscope ask`."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m ui.web.run_process HOME RUN_ID")
    sys.exit(run(Home(Path(sys.argv[1]).absolute()), sys.argv[2], os.environ))


def run(home: Home, run_id: str, environ: Mapping[str, str]) -> int:
    """Carry out the order of one run; returns the exit code. Raises nothing."""
    try:
        files = StartFiles(home, run_id)
        order = files.read_order()
    except InputError as error:
        say(f"rlmscope: {error}")
        return error.exit_code
    code, sentence = 1, None
    try:
        from ui.ask_run import run_in_turn

        ordered = orders(home, order, run_id)
        outcomes = run_in_turn(ordered, [None] * len(ordered), home, environ)
        code = max(outcome.exit_code for outcome in outcomes)
        if outcomes[0].answer.stop_reason == "error":
            sentence = outcomes[0].failure  # that of another run stands in its record
    except RLMScopeError as error:
        code, sentence = error.exit_code, str(error)
    except Exception as error:
        sentence = unexpected(error, home.root / LOGS)
    files.finish(sentence)  # the record says all the rest
    return code


if __name__ == "__main__":
    main()
