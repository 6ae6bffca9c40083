"""Starting and stopping runs. Each is a process of its own that outlives the app.

The ticket of a form is the run id and the token of the start: whoever comes second with it (a double click,
two tabs, two servers on one home) starts nothing. One process may carry out several runs in turn. Questions
and keys are never in a command line; keys reach the process through the environment only.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rlm_core.errors import RecordError
from traces.home import Home, is_run_id, new_run_id
from traces.locks import FileLock, is_held, pauses
from traces.user_log import deleted_runs
from ui.control import ask_to_stop
from ui.web.order import Order, StartFiles, orders, series_ids
from ui.web.processes import start_process

__all__ = ["Launch", "Order", "cancel_run", "launch_state", "new_ticket", "series_ids", "start_run"]

_PROCESS: Final = "ui.web.run_process"
_PATIENCE: Final = 5.0  # seconds for another process that is starting the same run


@dataclass(frozen=True)
class Launch:
    """How far a start has come.

    `starting`: there is no record yet; `recorded`: the run can be read; `failed`: it never will be. `error`
    is the sentence the process left about why it broke off, also beside a record; it may quote a model.
    """

    state: Literal["starting", "recorded", "failed"]
    error: str | None = None


def new_ticket() -> str:
    """A run id that nobody has: made when a form is first shown, used up by its start."""
    return new_run_id()


def start_run(home: Home, order: Order, ticket: str) -> str:
    """Start a run in a process of its own, once for each ticket; returns the run id, which is the ticket.

    Runs that come after it have the ids that `series_ids` says.

    Raises InputError, before anything starts, for an order that cannot work, RecordError when no process can
    be started.
    """
    from rlm_core.corpus import Corpus
    from ui.ask_run import prepare

    files = StartFiles(home, ticket)
    for each in orders(home, order, ticket):
        prepare(each, home, os.environ)
    Corpus.load(home.corpora, order.corpus_id).check()
    lock = FileLock(files.lock)
    try:
        files.request.parent.mkdir(mode=0o700, exist_ok=True)
        _forget_deleted(home, files.request.parent)
        if _first(home, ticket, files, lock) and files.write_order(order):
            start_process(_PROCESS, [str(home.root), ticket], files.log, lock)
    except OSError as error:
        if lock.held:  # nothing was started, and the ticket can be used again
            files.remove()
            lock.release()
        raise RecordError(f"The run could not be started: {error.strerror or error}.") from error
    return ticket


def _forget_deleted(home: Home, requests: Path) -> None:
    """Of runs that a person deleted nothing stays, no sentence about them either."""
    deleted = deleted_runs(home)
    for path in requests.glob("*.json"):
        if path.stem in deleted:
            StartFiles(home, path.stem).remove()


def _first(home: Home, ticket: str, files: StartFiles, lock: FileLock) -> bool:
    """Take the lock of a start, unless the ticket was used before."""
    for pause in pauses(time.monotonic() + _PATIENCE):
        if files.request.exists() or home.spool_file(ticket).exists() or ticket in deleted_runs(home):
            return False
        if lock.try_acquire():
            return True
        time.sleep(pause)
    raise RecordError("The run could not be started: another process is starting it.")


def cancel_run(home: Home, run_id: str) -> None:
    """Ask a run to stop, whoever started it; nothing happens when it has ended. Raises InputError."""
    from traces.ingest import is_open

    if is_held(StartFiles(home, run_id).lock) or is_open(home, run_id):
        ask_to_stop(home, run_id)


def launch_state(home: Home, run_id: str) -> Launch:
    """How far a start has come; cheap enough to be asked every second."""
    if not is_run_id(run_id):
        return Launch("failed", "This is not a run id.")
    files = StartFiles(home, run_id)
    # in this order: whoever finds an order whose lock is free afterwards knows that its process has ended
    ordered = files.request.exists()
    alive = is_held(files.lock)
    error = files.read_error()
    if home.spool_file(run_id).exists():
        return Launch("recorded", error)
    if error is not None:
        return Launch("failed", error)
    if alive:
        return Launch("starting")
    if not ordered:
        return Launch("failed", "There is no such run.")
    return Launch("failed", f"The process of this run ended at once, and recorded nothing; see {files.log}.")
