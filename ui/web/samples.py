"""The sample corpora and the recorded example runs, from the checkout or from where the wheel put them."""

from __future__ import annotations

import json
import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from rlm_core.errors import RecordError
from traces.home import Home, is_run_id
from traces.user_log import deleted_runs

_ROOT: Final = Path(__file__).resolve().parents[2]
_SHARED: Final = Path("share", "rlmscope", "sample_data")
_QUESTIONS: Final = "questions.json"

_EXAMPLES: Final = {
    "20260105T090000-0000e001": "A recorded example whose answer is right.",
    "20260105T091500-0000e002": (
        "A recorded example, broken on purpose: seeded faults struck some of its sub-calls. Find them."
    ),
}


@dataclass(frozen=True)
class Sample:
    """A corpus that ships with the program, and questions over it that the demo model can answer."""

    name: str
    folder: Path
    documents: int
    bytes: int  # of its files
    questions: tuple[str, ...]


@cache
def sample_data() -> Path | None:
    """The folder of everything that ships as sample data, or None where it was not installed."""
    return next((folder for folder in _places() if (folder / _QUESTIONS).is_file()), None)


def _places() -> Iterator[Path]:
    if (_ROOT / "pyproject.toml").is_file():
        yield _ROOT / "sample_data"
    for prefix in (sysconfig.get_path("data"), sys.prefix, str(_ROOT), site.USER_BASE):
        if prefix:
            yield Path(prefix) / _SHARED


@cache
def samples() -> tuple[Sample, ...]:
    """The sample corpora in the order of their names; none where the sample data was not installed."""
    data = sample_data()
    if data is None:
        return ()
    asked: dict[str, list[str]] = {}
    for entry in json.loads((data / _QUESTIONS).read_text("utf-8")):
        asked.setdefault(entry["corpus"], []).append(entry["question"])
    found = (Sample(name, data / name, *_files(data / name), tuple(q)) for name, q in sorted(asked.items()))
    return tuple(sample for sample in found if sample.documents)


def _files(folder: Path) -> tuple[int, int]:
    """How many files there are, and their bytes."""
    paths = [Path(at, name) for at, _, files in os.walk(folder) for name in files]
    return len(paths), sum(path.stat().st_size for path in paths)


def example_note(run_id: str) -> str | None:
    """What a recorded example run is there for, or None for any other run."""
    return _EXAMPLES.get(run_id)


def install_examples(home: Home) -> tuple[str, ...]:
    """Copy the recorded example runs into the home; returns the ids of those that were not there.

    One that a person deleted never comes back. Several processes may do this at the same time. Raises
    RecordError when the home cannot be written.
    """
    data = sample_data()
    shipped = sorted((data / "examples").glob("*.jsonl")) if data else []
    gone = deleted_runs(home) if shipped else frozenset()
    wanted = [path for path in shipped if is_run_id(path.stem) and path.stem not in gone]
    try:
        return tuple(path.stem for path in wanted if _copied(path, home.spool_file(path.stem)))
    except OSError as error:
        raise RecordError(f"The example runs cannot be copied: {error.strerror or error}.") from error


def _copied(source: Path, target: Path) -> bool:
    """Put a whole file in its place, unless one is there: no reader ever meets half of it."""
    if target.exists():
        return False
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".example-")
    try:
        with open(handle, "wb") as out:
            out.write(source.read_bytes())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return True
