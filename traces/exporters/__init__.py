"""Files for other programs, made out of the record.

Every format but training data (`traces.exporters.sft`, which chooses what is worth learning) is in `FORMATS`:
a module of the same name in this package, with the function
`export(home, run_ids, out, *, warn=None) -> ExportDone`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from traces.exporters.files import ExportDone
    from traces.home import Home


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its module in this package, what it is in a clause, and how a file of it ends ("": a folder
    of files).
    """

    module: str
    words: str
    ending: str


#: Name of a format -> what it is.
FORMATS: Final[dict[str, Format]] = {
    "jsonl": Format("own", "the whole record, for another rlmscope to import", ".jsonl"),
    "otlp": Format("otlp", "OpenTelemetry's JSON, for other trace viewers", ".json"),
    "parquet": Format("parquet", "one file per table, for DuckDB, pandas and polars", ""),
    "csv": Format("csv", "one row per call of a model, for spreadsheets", ".csv"),
    "html": Format("html", "one page that opens in any browser, from disk", ".html"),
    "rlms": Format("rlms", "a log as rlms writes it, for its viewer", ".rlms.jsonl"),
}


def export_runs(
    form: str,
    home: Home,
    run_ids: Sequence[str],
    out: Path,
    *,
    warn: Callable[[str], None] | None = None,
) -> ExportDone:
    """Write runs (full ids, each once) to a new file or folder, in a format of `FORMATS`. What looks like a
    key is taken out of every text. `warn` is told what readers of the record are told.

    Raises InputError for a run that is not there, for runs that this format cannot hold, and for a place that
    is taken or cannot be written to; RecordError for a record that cannot be read.
    """
    exporter = import_module(f"{__name__}.{FORMATS[form].module}")
    done: ExportDone = exporter.export(home, run_ids, out, warn=warn)
    return done
