"""The process that adds one corpus for the app: `python -m ui.web.add_process HOME TICKET`."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from rlm_core.corpus import Corpus, Progress
from rlm_core.errors import InputError, RLMScopeError
from traces.home import Home
from ui import corpora
from ui.common import say
from ui.control import StopWatch
from ui.failure import LOGS, unexpected
from ui.web.additions import Addition, Files


def main() -> None:
    """The entry point; what came of it stands in the home."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m ui.web.add_process HOME TICKET")
    sys.exit(run(Home(Path(sys.argv[1]).absolute()), sys.argv[2]))


def run(home: Home, ticket: str) -> int:
    """Carry out one addition; returns the exit code of `corpus add`. Raises nothing."""
    try:
        files = Files(home, ticket)
        what = files.addition()
    except InputError as error:
        say(f"rlmscope: {error}")
        return error.exit_code
    code, end = 1, {"error": ""}
    try:
        with StopWatch(files.cancel, _interrupt):
            end, code = {"corpus_id": _added(home, files, what)}, 0
    except KeyboardInterrupt:
        end = {"cancelled": ""}
    except RLMScopeError as error:
        end, code = {"error": str(error)}, error.exit_code
    except Exception as error:
        end = {"error": unexpected(error, home.root / LOGS)}
    try:
        files.write(files.end, end)
    except OSError as error:
        say(f"rlmscope: {end} (and this could not be left for the app: {error.strerror or error})")
    return code


def _interrupt() -> None:
    """Ctrl-C for the main thread, also where it waits for another process."""
    main_thread = threading.main_thread().ident
    if os.name == "posix" and main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _added(home: Home, files: Files, what: Addition) -> str:
    """Add the documents. Uploaded files whose text was copied are not needed any longer."""

    def tell(now: Progress) -> None:
        files.write(files.now, asdict(now))

    paths = [Path(path) for path in what.paths]
    found = Corpus.add(paths, home.corpora, name=what.name, encoding=what.encoding, progress=tell)
    ours = home.root / corpora.UPLOADS
    given = {os.path.realpath(path) for path in paths if path.is_relative_to(ours)}
    corpora.drop(home, given - corpora.uploaded_files(home, found))
    return found.corpus_id


if __name__ == "__main__":
    main()
