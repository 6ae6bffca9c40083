"""A live picture of files becoming a corpus, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an add has come: files and bytes on disk, and the name of the file last worked on."""

    done_files: int
    total_files: int
    done_bytes: int
    total_bytes: int
    name: str


Watcher = Callable[[Progress], None]
