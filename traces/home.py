"""The folder that holds everything rlmscope keeps, and the names inside it."""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from rlm_core.errors import InputError

ENVIRONMENT = "RLMSCOPE_HOME"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True, slots=True)
class Home:
    """Paths inside one home folder. Creating the object touches nothing on disk."""

    root: Path

    @classmethod
    def resolve(cls, folder: str | os.PathLike[str] | None = None) -> Home:
        """The given folder, else `$RLMSCOPE_HOME`, else the user data folder; it is created, private.

        Raises InputError when the folder cannot be made or is not a folder.
        """
        chosen = (
            folder or os.environ.get(ENVIRONMENT) or platformdirs.user_data_path("rlmscope", appauthor=False)
        )
        home = cls(Path(chosen).expanduser().absolute())
        home.create()
        return home

    def create(self) -> None:
        """Make the folder and its sub-folders (0700). Raises InputError when that is impossible."""
        try:
            for folder in (self.root, self.spool, self.corpora):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = "it is a file" if self.root.is_file() else error.strerror or error
            raise InputError(f"The home folder {self.root} cannot be used: {why}.") from error

    @property
    def store(self) -> Path:
        """The DuckDB file: an index that can always be rebuilt from the spools."""
        return self.root / "traces.duckdb"

    @property
    def spool(self) -> Path:
        """One file per run, the truth about it."""
        return self.root / "spool"

    @property
    def corpora(self) -> Path:
        """Manifests and converted texts of corpora."""
        return self.root / "corpora"

    @property
    def user_log(self) -> Path:
        """What people said about runs (append-only): verdicts, notes, tags, deletions."""
        return self.root / "user.jsonl"

    @property
    def settings(self) -> Path:
        """What a person has set: models, limits, sandbox. No keys."""
        return self.root / "settings.toml"

    @property
    def keys(self) -> Path:
        """Keys of model providers (0600): read only by processes that call models."""
        return self.root / "keys.json"

    @property
    def ingest_lock(self) -> Path:
        """Held while the store is written; readers pass through it before they open the store."""
        return self.root / "ingest.lock"

    @property
    def rebuild_lock(self) -> Path:
        """Held while a new store is built beside the old one."""
        return self.root / "rebuild.lock"

    @property
    def import_lock(self) -> Path:
        """Held while an import gives a run its name; its size tells the others that there are new runs."""
        return self.root / "import.lock"

    def spool_file(self, run_id: str) -> Path:
        """The spool of a run. Raises InputError for an id that could leave the folder."""
        return self.spool / (_checked(run_id) + ".jsonl")

    def liveness_lock(self, run_id: str) -> Path:
        """The file whose lock says that the run's process lives."""
        return self.spool / (_checked(run_id) + ".lock")


def is_run_id(text: str) -> bool:
    """Whether a text can name a run (and a file)."""
    return _RUN_ID.fullmatch(text) is not None


def new_run_id(now: datetime | None = None, rng: random.Random | None = None) -> str:
    """`YYYYmmddTHHMMSS-xxxxxxxx`: the UTC start time and 8 random hex digits."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    number = (rng or random.SystemRandom()).getrandbits(32)
    return f"{moment:%Y%m%dT%H%M%S}-{number:08x}"


def _checked(run_id: str) -> str:
    if not is_run_id(run_id):
        raise InputError(f"{run_id[:100]!r} is not a run id.")
    return run_id
