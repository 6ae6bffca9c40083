"""Runs that died at a given record of their spool, and what continues them in this process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlm_core import RLM, Answer, FunctionLMHandler, Request
from rlm_core.retries import RetryPolicy
from tests.support.scripted import FAST
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording
from traces.resume import Continuation, continuation
from traces.view import RunView

Model = Callable[[Request], Any]


def died_at(home: Home, run_id: str, record: int, folder: Path) -> Home:
    """A home in which the run died right after a record of its spool (its corpora are those of the other)."""
    dead = Home.resolve(folder)
    dead.create()
    lines = home.spool_file(run_id).read_bytes().splitlines(keepends=True)
    dead.spool_file(run_id).write_bytes(b"".join(lines[:record]))
    shutil.copytree(home.corpora, dead.corpora, dirs_exist_ok=True)
    return dead


def records(home: Home, run_id: str) -> int:
    """How many records the spool of a run has."""
    return len(home.spool_file(run_id).read_bytes().splitlines())


def go_on(
    home: Home,
    view: RunView,
    model: Model,
    new_id: str,
    *,
    policy: RetryPolicy = FAST,
    **given: Any,
) -> tuple[Answer, RunView, Continuation]:
    """Continue a run with a scripted model; the answer, the new record and what it was continued with."""
    anyway = given.pop("anyway", False)
    tools, prices = given.pop("tools", None), given.pop("prices", None)
    more = continuation(home, view, given, anyway=anyway, tools=tools, prices=prices)
    with (
        RLM(
            more.root,
            more.sub,
            handler=FunctionLMHandler(model),
            limits=more.limits,
            retries=policy,
            options=more.options,
            prices=prices,
        ) as rlm,
        open_recording(home, new_id, {}) as recording,
    ):
        answer = rlm.play(
            more.playing,
            more.question,
            more.corpus,
            seed=more.seed,
            limits=more.limits,
            run_id=new_id,
            recorder=recording.recorder,
            facts=more.facts,
            before=more.before,
        )
        recording.close("error" if answer.text is None else "ok")
    return answer, load_run(home, new_id), more


def forget(home: Home) -> None:
    """Remove a home that is no longer looked at."""
    shutil.rmtree(home.root)
