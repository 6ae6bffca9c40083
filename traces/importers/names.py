"""The names that imported runs have in a home, for many imports in a row."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from rlm_core.pricing import PriceTable
from traces.home import Home
from traces.locks import FileLock
from traces.prices import price_table
from traces.spool import decode
from traces.user_log import deleted_runs

_IDS: Final = 1_000  # names that are tried for one run; each deletion of it takes one
_LONGEST_HEADER: Final = 16 << 20  # bytes
_STALE_SECONDS: Final = 3600  # after which nobody writes to a half-written file any more
_PATIENCE: Final = 60  # seconds to wait for other imports, of which each names one run in far less


class Names:
    """Which runs a home holds, and what a person said that bears on imports: which were deleted, and prices.

    The folder is listed once for many runs, and again where another process has brought runs meanwhile.
    Whether a run is there is true inside of `alone` only: outside of it another import may bring it at once.
    What killed imports have left is removed on the way.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self._said: tuple[int, frozenset[str], frozenset[str], PriceTable] | None = None
        try:
            self._turns = home.import_lock.stat().st_size
        except OSError:
            self._turns = 0
        self._list()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other import names a run: what others brought before is known then.

        Raises RecordError when they do not let it, OSError.
        """
        lock = FileLock(self.home.import_lock)
        if not lock.acquire(time.monotonic() + _PATIENCE):
            raise RecordError("Other imports keep this home busy: try again later.")
        try:
            turns = os.fstat(lock.fileno()).st_size
            if turns != self._turns:
                self._list()
            self._turns = turns + 1
            os.ftruncate(lock.fileno(), self._turns)  # a size, unlike a time, is never that of before
            yield
        finally:
            lock.release()

    def free(self, started_ns: int, key: str) -> tuple[str, bool]:
        """The id for what `key` names, and whether it is in the home already. An id that was deleted, or that
        something else has, is passed over.

        Its second half is made of the key alone: the same thing is found again whatever time stands before
        it. Raises RecordError when no name is left.
        """
        moment = datetime.fromtimestamp(started_ns // 1_000_000_000, UTC)
        deleted = self._log()[2]
        for number in range(_IDS):
            tail = sha256(f"{key}/{number}".encode()).hexdigest()[:8]
            if tail in deleted:
                continue
            run_id = f"{moment:%Y%m%dT%H%M%S}-{tail}"
            known = self._by_tail.setdefault(tail, {run_id})
            for other in sorted({*known, run_id}):
                if key_of(self.home.spool_file(other)) == key:
                    return other, True
            if not self.home.spool_file(run_id).exists():
                known.add(run_id)
                return run_id, False
        raise RecordError("This run was imported and deleted too often; no name is left for it.")

    @property
    def deleted(self) -> frozenset[str]:
        """Ids of runs that a person deleted. Raises RecordError when that cannot be read."""
        return self._log()[1]

    @property
    def prices(self) -> PriceTable:
        """Prices as they are now. Raises RecordError when those that were set cannot be read."""
        return self._log()[3]

    def _log(self) -> tuple[int, frozenset[str], frozenset[str], PriceTable]:
        """The size of the log, and what it says: ids of deleted runs, their second halves, prices."""
        try:
            size = self.home.user_log.stat().st_size
        except OSError:
            size = -1
        if self._said is None or self._said[0] != size:  # nothing is ever taken out of it
            deleted = deleted_runs(self.home)
            self._said = size, deleted, frozenset(map(_tail, deleted)), price_table(self.home)
        return self._said

    def _list(self) -> None:
        self._by_tail: dict[str, set[str]] = {}
        with suppress(OSError), os.scandir(self.home.spool) as entries:  # who writes there says what is wrong
            for entry in entries:
                run_id, _, ending = entry.name.rpartition(".")
                if ending == "jsonl":
                    self._by_tail.setdefault(_tail(run_id), set()).add(run_id)
                elif ending == "part":
                    _sweep(Path(entry.path))


def _tail(run_id: str) -> str:
    return run_id.rpartition("-")[2]


def _sweep(part: Path) -> None:
    """Remove what an import that was killed has left."""
    with suppress(OSError):
        if part.stat().st_mtime < time.time() - _STALE_SECONDS:
            part.unlink()


def key_of(path: Path) -> object:
    """What the spool of an imported run was read from (`sc.IMPORT_KEY`), None for other runs."""
    return import_fact(path, sc.IMPORT_KEY)


def import_fact(path: Path, name: str) -> object:
    """What the first record of a spool says under a name, None where it does not."""
    try:
        with path.open("rb") as file:
            first = decode(file.readline(_LONGEST_HEADER)) or {}
    except OSError:
        return None
    facts = first.get("facts")
    return facts.get(name) if isinstance(facts, dict) else None
