"""The process of one job about a run: `python -m ui.web.diagnose_process HOME ID`.

Reads its order from the home, plays the run again with the present settings and keys, and writes the log of
that id. Why it broke off, if it did, is left as one sentence in the place of the order.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from ui.common import say
from ui.failure import LOGS, unexpected
from ui.web import diagnose_jobs
from ui.web.diagnose_jobs import Job, JobFiles

if TYPE_CHECKING:
    from traces.diagnosis_log import DiagnosisLog
    from traces.diagnosis_state import Task
    from traces.reading import RunView
    from traces.trial import Target
    from ui.replaying import Present

#: What a job is called in its log.
TASKS: Final[dict[diagnose_jobs.Task, Task]] = {
    "diagnose": "diagnose",
    "test": "replay",
    "twin": "replay",
    "prove": "prove",
}


def main() -> None:
    """The entry point; what came of it stands in the home."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m ui.web.diagnose_process HOME ID")
    sys.exit(run(Home(Path(sys.argv[1]).absolute()), sys.argv[2], os.environ))


def run(home: Home, ticket: str, environ: Mapping[str, str]) -> int:
    """Carry out the order of one job; returns the exit code. Raises nothing."""
    try:
        files = JobFiles(home, ticket)
        job = files.read_job()
    except InputError as error:
        say(f"rlmscope: {error}")
        return error.exit_code
    code, sentence = 0, None
    try:
        _carry_out(home, ticket, job, environ)
    except RLMScopeError as error:
        code, sentence = error.exit_code, str(error)
    except Exception as error:
        code, sentence = 1, unexpected(error, home.root / LOGS)
    files.finish(sentence)
    return code


def _carry_out(home: Home, ticket: str, job: Job, environ: Mapping[str, str]) -> None:
    """Do it, writing the log. Raises RLMScopeError."""
    from traces.diagnosis_log import open_diagnosis
    from traces.reading import load_run
    from ui.proofs import proof_of
    from ui.replaying import ASKED, present

    job.check()
    view = load_run(home, job.run_id)
    good = None if job.good is None else load_run(home, job.good)
    target = job.target or _answer_of(good)
    log = open_diagnosis(
        home, job.run_id, task=TASKS[job.task], good=job.good,
        span_id=job.patches[0][0] if job.patches else None, target=target, budget=job.budget, mode=job.mode,
        diagnosis_id=ticket, about=job.about,
    )  # fmt: skip
    roles = () if not job.live_calls else ("root", "sub") if job.task == "diagnose" else ASKED[job.mode]
    with log, present(home, view, environ, roles=roles, sub=job.sub, budget=job.budget) as now:
        if job.task == "diagnose":
            _diagnosed(now, log, job, good, target)
        elif job.task == "prove":
            proof_of(now, log, job.spans, job.budget)
        else:
            _played(now, log, job, good, target)
    _ingested(home)


def _answer_of(good: RunView | None) -> Target | None:
    from traces.trial import Target

    answer = None if good is None else good.summary.answer
    return None if answer is None else Target(answer, origin="good run")


def _diagnosed(
    now: Present, log: DiagnosisLog, job: Job, good: RunView | None, target: Target | None
) -> None:
    from traces.diagnose import diagnose

    found = diagnose(
        now.home, now.view, good=good, target=target, budget=job.budget, replayer=now.replayer,
        tell=log.trial, stage=log.stage, cancelled=log.cancelled, mode=job.mode,
        diagnosis_id=log.diagnosis_id, record=True,
    )  # fmt: skip
    log.end(found)


def _played(now: Present, log: DiagnosisLog, job: Job, good: RunView | None, target: Target | None) -> None:
    """One replay that a person started, or a twin: kept as a run of its own."""
    from traces.replay_runs import record_replay

    options = {"budget": job.budget, "cancelled": log.cancelled, "also": () if good is None else (good,)}
    with now.replayer(now.home, now.view, **options) as replayer:
        log.stage("Looking whether the run comes out as recorded when nothing is replaced.")
        log.checked(replayer.check())
        for _ in range(job.repeat):
            log.stage("Playing the run again.")
            trial = record_replay(
                now.home, replayer, job.replaced, mode=job.mode, target=target, cancelled=log.cancelled,
                warn=log.stage,
            )  # fmt: skip
            log.trial(trial)
            if log.cancelled():
                break
        log.end()


def _ingested(home: Home) -> None:
    """Take recorded replays into the store; whoever reads next does it otherwise."""
    from traces.ingest import ingest

    with suppress(RLMScopeError):
        ingest(home)


if __name__ == "__main__":
    main()
