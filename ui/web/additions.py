"""Corpora that are being added: each by a process of its own, which no page waits for and none interrupts.

In `home/adding`: `<ticket>.json` (0600) says what to add, `<ticket>.now` how far that is, `<ticket>.end` what
came of it; the lock of `<ticket>.lock` is held while the process lives, `<ticket>.cancel` asks it to stop.
All state is there: a reload, another tab and a new start of the app show the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from rlm_core.corpus import Progress
from rlm_core.errors import InputError, RecordError
from traces.home import is_run_id, new_run_id
from traces.locks import FileLock, is_held
from ui.web.folders import check_allowed
from ui.web.processes import start_process

if TYPE_CHECKING:
    from traces.home import Home

Kind = Literal["working", "added", "failed", "cancelled"]
FOLDER: Final = "adding"  # in the home folder
_PROCESS: Final = "ui.web.add_process"
_KEPT_SECONDS: Final = 24 * 3600.0  # how long the outcome of an addition is told to whoever looks
_SUFFIXES: Final = (".json", ".now", ".end", ".cancel", ".lock")


@dataclass(frozen=True)
class Addition:
    """What to add. `name` None: called after the first path; `encoding` None: found out for each text."""

    paths: Sequence[str]
    name: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class State:
    """An addition as it stands.

    `progress` is known while files are read, and holds an untrusted name. `error` is the sentence on why it
    failed, which may quote file names. `stopping`: it works, and was asked to stop.
    """

    ticket: str
    what: Addition
    state: Kind
    progress: Progress | None = None
    corpus_id: str | None = None
    error: str | None = None
    stopping: bool = False


class Files:
    """The files of one addition. Creating the object touches nothing on disk."""

    def __init__(self, home: Home, ticket: str) -> None:
        """Raises InputError for what is no ticket."""
        if not is_run_id(ticket):
            raise InputError("This is not a ticket of an addition.")
        self.folder = home.root / FOLDER
        self.order, self.now, self.end, self.cancel, self.lock = (
            self.folder / f"{ticket}{suffix}" for suffix in _SUFFIXES
        )
        self.log = home.root / "logs" / f"add-{ticket}.log"

    def write(self, path: Path, value: Any) -> None:
        """Put a whole JSON file in its place. Raises OSError."""
        draft = path.with_suffix(f"{path.suffix}-{os.getpid()}")
        with open(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            json.dump(value, out)
        os.replace(draft, path)

    def read(self, path: Path) -> Any:
        """What stands in a JSON file, or None when there is none that can be read."""
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def addition(self) -> Addition:
        """What is to be added. Raises InputError when that cannot be read."""
        try:
            return Addition(**self.read(self.order))
        except TypeError:
            raise InputError("What was to be added is no longer known.") from None


def start(home: Home, what: Addition) -> str:
    """Begin to add documents in a process of their own; returns the ticket to ask about it with.

    Raises InputError for a path that this app may not read, RecordError when no process can be started.
    """
    check_allowed(home, what.paths, os.environ)
    ticket = new_run_id()
    files, lock = Files(home, ticket), FileLock(Files(home, ticket).lock)
    try:
        files.folder.mkdir(mode=0o700, exist_ok=True)
        lock.try_acquire()
        files.write(files.order, asdict(what))
        start_process(_PROCESS, [str(home.root), ticket], files.log, lock)
    except OSError as error:
        lock.release()
        forget(home, ticket)
        raise RecordError(f"The documents cannot be added: {error.strerror or error}.") from error
    return ticket


def look(home: Home, ticket: str) -> State | None:
    """How an addition stands; None when nothing is known of it. Cheap enough to be asked twice a second."""
    files = Files(home, ticket)
    try:
        what = files.addition()
    except InputError:
        return None
    alive = is_held(files.lock)  # before its end is looked for: one that lived may have ended since
    end = files.read(files.end)
    if isinstance(end, dict):
        return State(ticket, what, _kind(end), None, end.get("corpus_id"), end.get("error"))
    if not alive:
        return State(ticket, what, "failed", error=f"Its process ended without a word; see {files.log}.")
    now = files.read(files.now)
    progress = Progress(**now) if isinstance(now, dict) else None
    return State(ticket, what, "working", progress, stopping=files.cancel.exists())


def look_at(home: Home, given: str) -> State | None:
    """`look` for what may be no ticket at all."""
    return look(home, given) if is_run_id(given) else None


def _kind(end: dict[str, Any]) -> Kind:
    if "corpus_id" in end:
        return "added"
    return "cancelled" if "cancelled" in end else "failed"


def wait(home: Home, ticket: str, seconds: float) -> State | None:
    """`look`, after the end of the addition or after so many seconds, whatever comes first."""
    deadline = time.monotonic() + seconds
    while (found := look(home, ticket)) is not None:
        if found.state != "working" or time.monotonic() > deadline:
            break
        time.sleep(0.03)
    return found


def all_of(home: Home) -> list[State]:
    """Every addition that is worth telling, oldest first; what ended a day ago is forgotten."""
    found = []
    for path in sorted((home.root / FOLDER).glob("*.json")):
        state = look(home, path.stem) if is_run_id(path.stem) else None
        if state is None:
            continue
        if state.state != "working" and _age(path) > _KEPT_SECONDS:
            forget(home, path.stem)
        else:
            found.append(state)
    return found


def _age(path: Path) -> float:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime
    return 0.0


def cancel(home: Home, ticket: str) -> None:
    """Ask an addition to stop: nothing of it stays. Nothing happens when it has ended."""
    with suppress(OSError):
        Files(home, ticket).cancel.touch(mode=0o600)


def forget(home: Home, ticket: str) -> None:
    """Remove what is left of an addition that has ended, drafts of a killed process too; the corpus stays."""
    files = Files(home, ticket)
    for path in (*files.folder.glob(f"{ticket}.*"), files.log):
        with suppress(OSError):
            path.unlink(missing_ok=True)
