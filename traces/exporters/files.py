"""What every export gives back, and new files that appear only when they are whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from rlm_core.errors import InputError

#: The note about a run that goes on while it is exported.
STILL_RUNNING: Final = "{} still goes on: what is on record so far was written."


@dataclass(frozen=True, slots=True)
class ExportDone:
    """A finished export: the new file (or folder), its runs, and in how many places a key was taken out.

    `notes` are sentences about what the format cannot hold.
    """

    path: Path
    run_ids: tuple[str, ...]
    redacted: int = 0
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "path": str(self.path),
            "runs": list(self.run_ids),
            "redacted": self.redacted,
            "notes": list(self.notes),
        }


@contextmanager
def new_file(out: Path) -> Iterator[BinaryIO]:
    """A new file (0600) that gets its name when the block ends well. Raises InputError for a place that is
    taken, or where no file can be made.
    """
    with _new(out) as part, open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A new folder (0700) that gets its name when the block ends well; the files in it are made inside the
    block. Raises InputError as `new_file` does.
    """
    with _new(out) as part:
        part.mkdir(0o700)
        yield part


@contextmanager
def _new(out: Path) -> Iterator[Path]:
    """A path beside `out` for what is being made, and takes its place when the block ends well."""
    target = out.expanduser().absolute()
    _refuse_taken(target)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        _refuse_taken(target)  # somebody else may have made it meanwhile
        part.rename(target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _refuse_taken(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise InputError(f"{target} exists already; nothing is overwritten.")
