"""The calls of models in runs as one CSV file, a row each; see `traces.call_rows`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

from traces.call_rows import call_rows
from traces.each_run import each_run
from traces.exporters.files import STILL_RUNNING, ExportDone, new_file
from traces.exporters.redaction import Redactor
from traces.exporters.spreadsheet import cell
from traces.home import Home
from traces.reading import Warn
from traces.rows import NUMBERS, money_json

#: What spreadsheets need to take a file for UTF-8; readers of CSV skip it.
_MARK: Final = "\ufeff"
COLUMNS: Final = (
    *("run_id", "run_path", "depth", "iteration", "cell", "call_index", "kind", "span_id", "status"),
    *("error_type", "error", "model", "model_returned", "input_tokens", "cached_read_tokens"),
    *("cache_write_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "cost_status", "start"),
    *("seconds", "served_from", "attempts", *(f"{name}_trust" for name in NUMBERS)),
    *("messages_before", "prompt", "response"),
)


def export(home: Home, run_ids: Sequence[str], out: Path, *, warn: Warn | None = None) -> ExportDone:
    """Write the calls of runs as the new file `out`; see `traces.exporters.export_runs`."""
    redactor, notes = Redactor(), list[str]()
    with new_file(out) as raw:
        file = io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", newline="")
        file.write(_MARK)
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for view in each_run(home, run_ids, warn):
            for row in call_rows(view, texts=True):
                writer.writerow([cell(_plain(row[name], redactor)) for name in COLUMNS])
            notes += [STILL_RUNNING.format(view.run_id)] if view.live else []
        file.detach()
    return ExportDone(out.expanduser().absolute(), tuple(run_ids), redactor.replaced, tuple(notes))


def _plain(value: object, redactor: Redactor) -> object:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Decimal):
        return money_json(value)
    return value.isoformat() if isinstance(value, datetime) else value
