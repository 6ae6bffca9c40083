"""Whether a run can be replayed at all, in words, with the likely cause where it cannot."""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from traces.program import Program, RecordedCell
from traces.trial import Difference, Replayability

if TYPE_CHECKING:
    from traces.replay import Played, Replayer

_IN_MEMORY: Final = "where objects lie in memory"
#: What code may depend on -> names in it that tell; those with a bracket as they are called.
_CAUSES: Final = {
    "the time": (
        *("time", "datetime", "today", "now", "utcnow"),
        *("perf_counter", "monotonic", "time_ns", "process_time", "timeit"),
    ),
    "random bytes of the system": (
        *("urandom", "uuid", "uuid1", "uuid4", "secrets"),
        *("SystemRandom", "Random", "default_rng"),
    ),
    "the order in which threads finish": ("as_completed", "ThreadPoolExecutor", "Thread", "threading"),
    "files or the environment": (
        *("open(", "Path", "pathlib", "glob", "listdir", "stat", "tempfile"),
        *("environ", "getenv", "getcwd", "getpid"),
    ),
    _IN_MEMORY: ("id(",),
}
_SEEDED: Final = {
    "random numbers": ("random", "shuffle", "choice", "choices", "sample", "randint"),
    "the order of a set": ("set", "frozenset"),
    "hash values": ("hash(",),
}
_ADDRESS: Final = re.compile(r"\bat 0x[0-9a-f]{6,}")  # as the repr of an object says it


def replayability(
    replayer: Replayer, first: Played, other: Played | None, again: Played | None
) -> Replayability:
    """The verdict on unpatched replays: with the recorded seeds; if that is equal, with others; if that is
    not, with the recorded ones `again`.
    """
    program = replayer.program
    said = changed_versions(program.versions)
    if unlike := replayer.unlike(first):
        one = _with_cause(unlike[0], program, _CAUSES)
        cause = f"; its code may depend on {one.cause}" if one.cause else ""
        if first[0].not_again and not cause:
            cause = (
                "; cells that were killed or interrupted are not run again, so what they had set is missing"
            )
        return Replayability("not_replayable", f"Not replayable: {_words(one, program)}{cause}.", one, said)
    if unlike := () if again is None else replayer.unlike(again):
        one = _with_cause(unlike[0], program, _CAUSES)
        cause = f"; its code may depend on {one.cause}" if one.cause else ""
        words = f"Not replayable: played once more, {_words(one, program)}{cause}."
        return Replayability("not_replayable", words, one, said)
    if unlike := () if other is None else replayer.unlike(other):
        one = _with_cause(unlike[0], program, _SEEDED)
        cause = f" Its code may depend on {one.cause}." if one.cause else ""
        words = f"Seed-dependent: with other hash and random seeds, {_words(one, program)}.{cause}"
        return Replayability("seed_dependent", words, one, said)
    words = "Replayable: without a patch, the replay gives the same answer and the same output of every cell."
    if first[0].not_again:
        words += " Cells that were killed or interrupted were not run again."
    return Replayability("replayable", words, None, said)


def changed_versions(recorded: Mapping[str, Any]) -> tuple[str, ...]:
    """Libraries that are not those of the record, a sentence each."""
    from rlm_core.rlm import versions

    now = versions()
    return tuple(
        f"{name} was {recorded[name]} when the run was recorded, it is {now.get(name) or 'absent'} now."
        for name in sorted(recorded)
        if name not in _ABOUT and recorded[name] is not None and recorded[name] != now.get(name)
    )


_ABOUT: Final = (
    "platform",
    "gen_ai",
    "openinference",
    "record",
    "litellm",
    "opentelemetry-sdk",
    "duckdb",
    "genai-prices",
)


def _words(one: Difference, program: Program) -> str:
    where = f"cell {one.cell}" if one.path == "0" else f"cell {one.cell} of child run {one.path}"
    if (last := _broken_off(one, program)) is not None:
        inside = "" if last.path == "0" else f" of child run {last.path}"
        return f"the recorded run ended in the middle of cell {last.number}{inside}"
    if one.what == "stdout":
        return f"{where} printed something else"
    if one.what == "exception":
        return f"{where} ended with {one.new or 'no exception'}, not with {one.old or 'none'}"
    if one.what == "cell":
        return f"{where} did not come to its end"
    if one.what == "shown":
        return f"the root would be shown something else of {where}"
    if one.what == "uncalled":
        return f"{where} did not make a recorded sub-call with the same prompt"
    if one.what == "call":
        return one.new or "a call is not in the record"
    return "the answer is another one"


def _broken_off(one: Difference, program: Program) -> RecordedCell | None:
    """The cell in which the record ends, unless a difference is in another one."""
    cells = (cell for cell in program.cells.values() if not cell.ended)
    return next((cell for cell in cells if one.cell is None or one.span_id == cell.span_id), None)


def _with_cause(one: Difference, program: Program, causes: Mapping[str, tuple[str, ...]]) -> Difference:
    """The difference with all that the code may depend on which led to it; nothing where the record ends."""
    if _broken_off(one, program) is not None:
        return one
    codes = [
        cell.code for cell in program.cells.values()
        if one.cell is None or cell.path != one.path or cell.number <= one.cell
    ]  # fmt: skip
    names = _names(codes)
    found = [cause for cause, telling in causes.items() if names.intersection(telling)]
    if not found and _IN_MEMORY in causes and _ADDRESS.search(one.new or ""):
        found = [_IN_MEMORY]
    return replace(one, cause=" or ".join(found) or None)


def _names(codes: Iterable[str]) -> set[str]:
    """Every name and attribute that code uses, with what it is imported from and as; names that it calls also
    with a bracket, sets and their comprehensions as "set". What is only imported is not used, unless all of a
    module is.
    """
    used: set[str] = set()
    imported: dict[str, set[str]] = defaultdict(set)  # by the name that it has in the code
    for node in chain.from_iterable(map(_nodes, codes)):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            used.add(f"{node.func.id}(")
        elif isinstance(node, ast.Set | ast.SetComp):
            used.add("set")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = (getattr(node, "module", None) or "").split(".")
            for one in node.names:
                parts = one.name.split(".")
                imported[one.asname or parts[0]].update(module, parts)
    return used.union(*(imported[name] for name in used & imported.keys()), imported["*"])


def _nodes(code: str) -> Iterable[ast.AST]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.walk(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
