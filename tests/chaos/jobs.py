"""What the children of the nursery do: the programs of rlmscope, from the end of their imports on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

LOOKS = 200  # how often the app's pages are drawn before that process ends by itself


def prepare() -> None:
    """Import what the jobs import, LiteLLM and Streamlit included; no threads may be left by it."""
    import threading

    from streamlit.testing.v1 import AppTest  # noqa: F401

    import rlm_core.litellm_handler
    import ui.ask_run
    import ui.sources
    import ui.web.run_process  # noqa: F401

    rlm_core.litellm_handler._load(32)
    if threading.active_count() > 1:
        raise RuntimeError(f"a process with threads must not fork: {threading.enumerate()}")


def run(job: dict[str, Any]) -> NoReturn:
    """Become the process of a job: `kind` (see `_WORK`), `words`, `env`, `out` (a path), `side` (a path)."""
    code = 70
    try:
        os.setsid()
        for descriptor, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, job["out"] + ".out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, job["out"] + ".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            opened = os.open(path, flags, 0o600)
            os.dup2(opened, descriptor)
            os.close(opened)
        os.environ.update(job["env"])
        sys.argv = ["rlmscope", *job["words"]]
        _WORK[job["kind"]](job)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _command(job: dict[str, Any]) -> None:
    """`rlmscope WORDS`; with a side file, sub-calls are noted there once their end is recorded."""
    from tests.support.acknowledging_ask import watch
    from ui.cli import main

    if job.get("side"):
        watch(job["side"])
    main()


def _run_process(job: dict[str, Any]) -> None:
    """The process that the app starts for a run: `words` are the home and the run id."""
    from tests.support.acknowledging_ask import watch
    from ui.web.run_process import main

    watch(job["side"])
    main()


def _app(job: dict[str, Any]) -> None:
    """The app's list of runs, drawn again and again by the driver that Streamlit has for tests.

    Everything of a session happens, taking closed runs in above all; only the HTTP server is missing.
    """
    from tests.support.pages import runs_page, shown

    page = runs_page()
    for _ in range(LOOKS):
        shown(page)
        page.button(key="runs-refresh").click().run()


def _delete(job: dict[str, Any]) -> None:
    """Delete the run of `words`, as the app does, and note in the side file that it is done."""
    from traces.home import Home
    from traces.upkeep import delete_run

    home, run_id = job["words"]
    delete_run(Home(Path(home)), run_id)
    Path(job["side"]).write_text(run_id)


_WORK = {"command": _command, "run_process": _run_process, "app": _app, "delete": _delete}
