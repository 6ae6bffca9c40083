"""Recorded runs to play again: cells given as code, a sub-model given as a function."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rlm_core import RLM, FunctionLMHandler, Limits, Request
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording
from traces.view import RunView

ROOT: Final = "openai/root"
SUB: Final = "openai/sub"
Sub = Callable[[Request], Any]


def recorded(
    home: Home,
    *codes: str | Callable[[Request], str],
    sub: Sub,
    run_id: str = "20260101T000000-0000aaaa",
    corpus: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    children: Sequence[str] = (),
    **options: Any,
) -> RunView:
    """A run of these cells, one a turn; `children` are the cells of every child run. A callable is asked with
    the request of its turn. What is no code (text without a line break that ends in a full stop) is a plain
    reply.
    """

    def answer(request: Request) -> Any:
        if request.role == "sub":
            return sub(request)
        turn = sum(message.role == "assistant" for message in request.messages)
        given = children if children and "child" in request.messages[1].content.split("\n")[1] else codes
        one = given[turn]
        text = one(request) if callable(one) else one
        return text if text.endswith(".") else f"```repl\n{text}\n```"

    limits = limits or Limits()
    with (
        open_recording(home, run_id, {}) as recording,
        RLM(
            ROOT,
            SUB,
            handler=FunctionLMHandler(answer),
            limits=limits,
            corpora=home.corpora,
            **options,
        ) as rlm,
    ):
        texts = corpus or {"a.txt": "alpha", "b.txt": "beta"}
        rlm.ask("how many?", texts, recorder=recording.recorder, run_id=run_id)
        recording.close("ok")
    return load_run(home, run_id)


_kept: dict[Hashable, Home] = {}


def filled(home: Home, name: Hashable, fill: Callable[[Home], object]) -> None:
    """Fill a home with records as `fill` does; under one name that is done once in a process, then copied."""
    if name not in _kept:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        made = Home.resolve(Path(folder) / "home")
        fill(made)
        _kept[name] = made
    shutil.copytree(_kept[name].root, home.root, dirs_exist_ok=True)


def span_of(view: RunView, kind: str, number: int = 0, *, depth: int | None = None) -> str:
    """The id of a span by kind and order."""
    found = [
        span.span_id
        for span in view.spans
        if span.kind == kind and (depth is None or span.depth == depth) and (kind != "run" or span.parent_id)
    ]
    return found[number]


def live(root: str = "", sub: Sub | None = None) -> FunctionLMHandler:
    """Who is asked live: a root that always writes this cell, and a sub-model."""

    def answer(request: Request) -> Any:
        if request.role == "root":
            return f"```repl\n{root}\n```"
        assert sub is not None, "no sub-model was to be asked"
        return sub(request)

    return FunctionLMHandler(answer)
