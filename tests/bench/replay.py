"""What it takes to play a recorded 200-call run again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.rows import Row, cpu
from tests.support.replays import recorded, span_of
from traces.home import Home
from traces.replay import Replayer
from traces.trial import Patch

_REPEATS = 5
_ASK = "replies = llm_batch([f'item {n}: how many?' for n in range(200)])"
_READ = "total = sum(int(r) for r in replies)\nprint(total)"


def replay_figures() -> list[Row]:
    """CPU seconds of reading a run for replay with its self-check, and of one replay more."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home.resolve(Path(folder) / "home")
        view = recorded(home, _ASK, _READ, "FINAL_VAR('total')", sub=lambda _: "3")
        checks, plain, patched = [], [], []
        for _ in range(_REPEATS):
            used = cpu()
            with Replayer(home, view) as replayer:
                assert replayer.check().status == "replayable"
                checks.append(cpu() - used)
                used = cpu()
                assert replayer.trial().outcome == "unchanged"
                plain.append(cpu() - used)
                used = cpu()
                assert replayer.trial([Patch(span_of(view, "sub_call", 7), "4")]).answer == "601"
                patched.append(cpu() - used)
    return [
        ("unpatched replay of a 200-call run, cells without numpy", "s CPU", plain, 1.0),
        ("  the same with one reply patched", "s CPU", patched, 1.0),
        ("  reading it and checking that it can be replayed (two replays)", "s CPU", checks, None),
    ]
