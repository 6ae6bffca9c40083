"""What an attempt is, and which level of the sandbox says that it stops it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

Aim = Literal[
    "environment", "network", "processes", "reading", "writing", "metadata", "limits", "engine", "none"
]
Shown = Literal["any", "root", "naked", "no"]

# The weakest level that claims to stop what an attempt is after: the columns of the table of levels in
# ui/docs/sandbox.md. "none" = it is after nothing outside; it must only not harm the run.
WEAKEST: Final[Mapping[Aim, str]] = MappingProxyType(
    {
        "environment": "none",
        "engine": "none",
        "none": "none",
        "network": "weak",
        "processes": "weak",
        "limits": "weak",
        "reading": "standard",
        "writing": "standard",
        "metadata": "strict",
    }
)
LEVELS: Final = ("none", "weak", "standard", "strict")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One cell of hostile code.

    `expected` is "blocked" (what it is after does not happen) or "contained" (it may do what it likes to its
    own worker; the engine gets a report within the limit). `state`: "keep" = the variables of earlier cells
    are still there afterwards, "any" = the worker may be lost. `seconds` is the wall time limit of the cell,
    `limits` other limits of its worker. `fresh`: it needs a worker of its own. `heavy`: only in the long
    tests. `shown` says where a blocked one is seen to get through, so that its being stopped means something:
    at level none as "any" user or as "root" only, in a "naked" interpreter because level none stops it too,
    or nowhere ("no"); `why` is the reason where the answer is not "any". `machines`: processors it is written
    for; empty = all.
    """

    id: str
    group: str
    title: str
    aim: Aim
    code: str
    expected: Literal["blocked", "contained"] = "blocked"
    state: Literal["keep", "any"] = "keep"
    seconds: float = 8.0
    limits: Mapping[str, Any] = field(default_factory=dict)
    fresh: bool = False
    heavy: bool = False
    shown: Shown = "any"
    why: str = ""
    machines: tuple[str, ...] = ()

    def stopped_at(self, level: str) -> bool:
        """Whether this level claims that the attempt does not get through."""
        return LEVELS.index(level) >= LEVELS.index(WEAKEST[self.aim])


def blocked(id: str, title: str, aim: Aim, code: str, **more: Any) -> Attempt:
    """An attempt that must not get what it is after."""
    return Attempt(id, "", title, aim, inspect.cleandoc(code) + "\n", **more)


def contained(id: str, title: str, code: str, **more: Any) -> Attempt:
    """An attempt that must not harm the run."""
    more.setdefault("state", "any")
    more.setdefault("fresh", more["state"] == "any")
    return Attempt(id, "", title, "none", inspect.cleandoc(code) + "\n", expected="contained", **more)
