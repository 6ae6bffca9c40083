"""What every export gives back, and new files that appear only when they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rlm_core.errors import InputError


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
    target = out.expanduser().absolute()
    if target.exists() or target.is_symlink():
        raise InputError(f"{target} exists already; nothing is overwritten.")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
        part.rename(target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
