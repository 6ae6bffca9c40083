"""A model for processes that a test starts but does not write: its sub-calls wait until a file exists.

`surroundings(folder)` gives the environment for them. Every run process adds a line to
`folder/asked`; a sub-call whose prompt is `wait` is answered once `folder/gate` is there.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.command import ROOT

CELL = "replies = llm_batch(['go', 'wait', 'wait'])\nFINAL(' '.join(replies))"
ANSWER = "go wait wait"

_SITE = """
import asyncio, os
from pathlib import Path
import rlm_core.models
from rlm_core.lm_handler import FunctionLMHandler

folder = Path(os.environ["TEST_GATE_FOLDER"])

async def answer(request):
    if request.role == "root":
        with open(folder / "asked", "a") as out:
            out.write(f"{os.getpid()}\\n")
        return "```repl\\n" + os.environ["TEST_GATE_CELL"] + "\\n```"
    while request.prompt == "wait" and not (folder / "gate").exists():
        await asyncio.sleep(0.02)
    return request.prompt

rlm_core.models.make_handler = lambda *_, **__: FunctionLMHandler(answer)
if os.environ.get("TEST_GATE_START"):
    exec(os.environ["TEST_GATE_START"])
"""


def surroundings(folder: Path, cell: str = CELL) -> dict[str, str]:
    """Variables of the environment that give a process this model."""
    site = folder / "site"
    site.mkdir(parents=True, exist_ok=True)
    (site / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
    path = os.pathsep.join([str(site), str(ROOT)])
    return {"PYTHONPATH": path, "TEST_GATE_FOLDER": str(folder), "TEST_GATE_CELL": cell}


def open_gate(folder: Path) -> None:
    """Let every waiting sub-call be answered."""
    (folder / "gate").touch()


def processes(folder: Path) -> list[int]:
    """Process ids of those that asked the root, once for each time."""
    file = folder / "asked"
    return [int(line) for line in file.read_text("utf-8").split()] if file.exists() else []
