"""The process of one check of a set: `python -m ui.web.check_process HOME CHECK_ID ORDER`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rlm_core.errors import RecordError, RLMScopeError
from traces.check_log import CheckLog
from traces.home import Home
from traces.regression import regression_set
from ui.checking import Checker, run_check
from ui.common import say
from ui.failure import LOGS, unexpected
from ui.web.check_jobs import Job, forget_start


def main() -> None:
    """The entry point; what came of it stands in the file of the check."""
    if len(sys.argv) != 4:
        sys.exit("usage: python -m ui.web.check_process HOME CHECK_ID ORDER")
    sys.exit(run(Home(Path(sys.argv[1]).absolute()), sys.argv[2], sys.argv[3], os.environ))


def run(home: Home, check_id: str, text: str, environ: Mapping[str, str]) -> int:
    """Carry out one check; returns the exit code of `rlmscope check`. Raises nothing."""
    try:
        code = _carried_out(home, check_id, Job.from_text(text), environ)
    except RLMScopeError as error:
        say(f"rlmscope: {error}")
        return error.exit_code
    except Exception as error:
        say(f"rlmscope: {unexpected(error, home.root / LOGS)}")
        return 1
    forget_start(home, check_id)
    return code


def _carried_out(home: Home, check_id: str, job: Job, environ: Mapping[str, str]) -> int:
    order = job.order()
    try:
        chosen, checker = regression_set(home, job.name), Checker(home, order, environ)
    except RLMScopeError as error:
        with CheckLog(home, job.name, order.mode, {}, 0, check_id):
            raise RecordError(str(error)) from error  # the page shows what the file says
    with CheckLog(home, job.name, order.mode, checker.models, len(chosen.members), check_id) as log:
        done = run_check(checker, chosen, log, lambda _: None)
    return int(done.count(True) < len(chosen.members))


if __name__ == "__main__":
    main()
