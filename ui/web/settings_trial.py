"""Trying a model out: one tiny call by a short process of its own, with the keys of the home.

In `home/trials`: `root.json` and `sub.json` (0600) hold what came of the last trial of each, or only the
model while it is asked; the lock of `<role>.lock` is held until the process has ended. The app itself never
has the keys, nor LiteLLM. A trial is no run: it is recorded nowhere.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from rlm_core.errors import RecordError, RLMScopeError
from rlm_core.models import check_usable, make_handler
from traces.home import Home
from traces.locks import FileLock, is_held
from ui.failure import LOGS, unexpected
from ui.web.processes import start_process
from ui.web.settings_keys import keys_lent, write_private

if TYPE_CHECKING:
    from rlm_core.lm_handler import Completion

Role = Literal["root", "sub"]
ROLES: Final[tuple[Role, Role]] = ("root", "sub")
QUESTION: Final = "Answer with one word: ready"
_MODULE: Final = "ui.web.settings_trial"
_FOLDER: Final = "trials"
_SECONDS: Final = 30.0  # for the one attempt
_TOKENS: Final = 256  # a model that thinks first needs some
_ANSWER_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of asking a model: its `answer` (untrusted; "" for none), or why there is none (`error`).

    Both None: it is being asked.
    """

    model: str
    answer: str | None = None
    error: str | None = None
    seconds: float = 0.0
    tokens: int | None = None


def start_trial(home: Home, role: Role, model: str) -> None:
    """Ask a model, unless one is just being asked in this role.

    Raises InputError for an id that cannot be used, RecordError when no process can be started.
    """
    check_usable(model, f"the {'root model' if role == 'root' else 'sub-model'}")
    path, lock = _file(home, role), FileLock(_lock(home, role))
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not lock.try_acquire():
            return
        _leave(path, Trial(model))
        start_process(_MODULE, [str(home.root), role], home.root / LOGS / f"trial-{role}.log", lock)
    except OSError as error:
        lock.release()
        raise RecordError(f"The model cannot be tried: {error.strerror or error}.") from error


def last_trial(home: Home, role: Role) -> Trial | None:
    """What came of the last trial; None when there was none. Cheap enough to be asked every second."""
    alive = is_held(_lock(home, role))  # first: one that lived may have ended since
    try:
        trial = Trial(**json.loads(_file(home, role).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if trial.answer is None and trial.error is None and not alive:
        return Trial(trial.model, error="the process that asked ended without a word")
    return trial


def main() -> None:
    """The entry point of the process: `python -m ui.web.settings_trial HOME ROLE`."""
    role = next((role for role in ROLES if sys.argv[2:] == [role]), None)
    if role is None:
        sys.exit("usage: python -m ui.web.settings_trial HOME root|sub")
    home = Home(Path(sys.argv[1]).absolute())
    asked = last_trial(home, role)
    if asked is not None:
        _leave(_file(home, role), carry_out(home, asked.model))


def carry_out(home: Home, model: str) -> Trial:
    """Ask the model once, with the keys of the home in the environment meanwhile. Raises nothing."""
    began = time.monotonic()
    try:
        with keys_lent(home):
            done = asyncio.run(_asked(model))
    except RLMScopeError as error:
        return Trial(model, error=str(error), seconds=time.monotonic() - began)
    except Exception as error:
        return Trial(model, error=unexpected(error, home.root / LOGS), seconds=time.monotonic() - began)
    used = (done.usage.input, done.usage.output)
    tokens = None if None in used else sum(count or 0 for count in used)
    return Trial(model, (done.text or "")[:_ANSWER_CHARS], None, time.monotonic() - began, tokens)


async def _asked(model: str) -> Completion:
    from rlm_core.lm_handler import Message, Request

    handler = make_handler(model, model, concurrency=1)
    try:
        await handler.prepare()
        messages = (Message("user", QUESTION),)
        return await handler.complete(Request(model, messages, "sub", _TOKENS, timeout=_SECONDS))
    finally:
        await handler.aclose()


def _leave(path: Path, trial: Trial) -> None:
    write_private(path, json.dumps(asdict(trial)))


def _file(home: Home, role: Role) -> Path:
    return home.root / _FOLDER / f"{role}.json"


def _lock(home: Home, role: Role) -> Path:
    return home.root / _FOLDER / f"{role}.lock"


if __name__ == "__main__":
    main()
