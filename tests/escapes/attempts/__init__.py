"""All attempts: cells of code that try to get out of the sandbox, or to harm the run from inside it.

Each finds the variables of the stage (`tests.escapes.theatre.Theatre.names`) in its REPL, and says that it
got through by printing ESCAPED or by leaving traces that the stage finds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.escapes.attempts import engine, files, network, ours, processes, resources, secrets
from tests.escapes.attempts.model import LEVELS, WEAKEST, Attempt

__all__ = ["ATTEMPTS", "BY_ID", "LEVELS", "WEAKEST", "Attempt"]

_GROUPS = {
    "secrets": secrets,
    "network": network,
    "processes": processes,
    "files": files,
    "resources": resources,
    "engine": engine,
    "ours": ours,
}
ATTEMPTS: Final[tuple[Attempt, ...]] = tuple(
    sorted(
        (replace(one, group=name) for name, module in _GROUPS.items() for one in module.ATTEMPTS),
        key=lambda one: int(one.id[1:]),
    )
)
BY_ID: Final[dict[str, Attempt]] = {one.id: one for one in ATTEMPTS}
