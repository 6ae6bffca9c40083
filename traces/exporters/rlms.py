"""Runs as a log in the form of `rlms` 0.1.3, for its viewer and its own classes.

Keys that rlms does not know and passes over keep what its form has no place for: `root_prompt` and
`lacks_calls` (true: not all calls are on record) of the settings, `usage_summary` of an iteration, `batch` of
a call (a number for each batch of its cell, null for a call outside of batches), `derived` of an iteration or
call (which of its `tokens` and `cost` nobody reported), `forced` of the last iteration. The importer of this
format reads them. Calls have `prompt_tokens` and `completion_tokens` for the viewer, which looks for what
rlms no longer writes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rlm_core.errors import InputError
from traces.each_run import each_run
from traces.exporters.files import STILL_RUNNING, ExportDone, new_file
from traces.exporters.redaction import Redactor
from traces.exporters.rlms_log import Log
from traces.home import Home
from traces.reading import Warn

_NOT_IN_IT: Final = (
    "The form has no place for attempts, tools of sub-calls, parameters, starts of sub-calls, sources and "
    "why a run stopped: they are left out. Variables are their first characters."
)
_SEVERAL: Final = "The viewer of rlms shows all runs of a file as one: export them one by one for it."


def export(home: Home, run_ids: Sequence[str], out: Path, *, warn: Warn | None = None) -> ExportDone:
    """Write runs as the new log `out`; see `traces.exporters.export_runs`."""
    redactor, notes = Redactor(), dict.fromkeys([_NOT_IN_IT])
    with new_file(out) as file:
        for view in each_run(home, run_ids, warn):
            log = Log(view, redactor)
            try:
                for entry in log.entries():
                    file.write(json.dumps(entry).encode() + b"\n")
            except RecursionError:
                raise InputError(f"The child runs of {view.run_id} are too deep for a log of rlms.") from None
            notes |= dict.fromkeys([STILL_RUNNING.format(view.run_id)] if view.live else [])
            notes |= dict.fromkeys(log.notes)
    notes |= dict.fromkeys([_SEVERAL] if len(run_ids) > 1 else [])
    return ExportDone(out.expanduser().absolute(), tuple(run_ids), redactor.replaced, tuple(notes))
