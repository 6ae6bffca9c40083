"""Cells played by the engine into a record, which is read back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.scripted import Script, cell, run
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording


class Played:
    """Plays cells into a record and reads it back."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "home")

    def play(self, *codes: str, **options: Any) -> tuple[Any, Any, Script]:
        """The answer, the record and the script of a run of these cells."""
        script = Script(
            [cell(code) for code in codes], options.pop("sub", None) or (lambda r: f"seen {len(r.prompt)}")
        )
        return *self.run(script, **options), script

    def run(self, script: Script, **options: Any) -> tuple[Any, Any]:
        """The answer and the record of a run of a script."""
        with open_recording(self.home, "20260101T000000-0000000a", {}) as recording:
            answer = run(script, recorder=recording.recorder, run_id=recording.run_id, **options)
        assert recording.problems == 0
        return answer, load_run(self.home, recording.run_id)


def kinds(view: Any) -> Counter[str]:
    """How many spans of each kind a record has."""
    return Counter(span.kind for span in view.spans)


def of_kind(view: Any, kind: str) -> list[Any]:
    """The spans of a kind, in order."""
    return [span for span in view.spans if span.kind == kind]
