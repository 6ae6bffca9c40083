"""Whether a run can be replayed at all, in words, with the likely cause where it cannot."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from traces.program import Program
from traces.trial import Difference, Replayability

if TYPE_CHECKING:
    from traces.replay import Played, Replayer

#: Names in code -> what it then depends on.
_CAUSES: Final = {
    "the time": ("time", "datetime", "perf_counter", "monotonic", "time_ns"),
    "random bytes of the system": ("urandom", "uuid", "uuid1", "uuid4", "secrets", "SystemRandom"),
    "the order in which threads finish": ("as_completed", "ThreadPoolExecutor", "Thread", "threading"),
    "files or the environment": (
        "open",
        "Path",
        "pathlib",
        "glob",
        "listdir",
        "environ",
        "getpid",
        "tempfile",
    ),
    "where objects lie in memory": ("id",),
}
_SEEDED: Final = {
    "random numbers": ("random", "shuffle", "choice", "choices", "sample", "default_rng", "randint"),
    "the order of a set": ("set", "frozenset", "hash"),
}


def replayability(replayer: Replayer, first: Played, other: Played | None) -> Replayability:
    """The verdict on two unpatched replays: with the recorded seeds and, if that is equal, with others."""
    program = replayer.program
    said = changed_versions(program.versions)
    unlike = replayer.unlike(first)
    if unlike:
        one = _with_cause(unlike[0], program, _CAUSES)
        cause = f"; its code depends on {one.cause}" if one.cause else ""
        if first[0].not_again and not cause:
            cause = (
                "; cells that were killed or interrupted are not run again, so what they had set is missing"
            )
        return Replayability("not_replayable", f"Not replayable: {_words(one)}{cause}.", one, said)
    unlike = () if other is None else replayer.unlike(other)
    if unlike:
        one = _with_cause(unlike[0], program, _SEEDED)
        cause = f" It depends on {one.cause}." if one.cause else ""
        words = f"Seed-dependent: with other hash and random seeds, {_words(one)}.{cause}"
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


def _words(one: Difference) -> str:
    where = f"cell {one.cell}" if one.path == "0" else f"cell {one.cell} of child run {one.path}"
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


def _with_cause(one: Difference, program: Program, causes: Mapping[str, tuple[str, ...]]) -> Difference:
    from dataclasses import replace

    codes = [
        cell.code for cell in program.cells.values()
        if one.cell is None or cell.path != one.path or cell.number <= one.cell
    ]  # fmt: skip
    names = set(_names(codes))
    cause = next((cause for cause, telling in causes.items() if names.intersection(telling)), None)
    return replace(one, cause=cause)


def _names(codes: Iterable[str]) -> Iterable[str]:
    """Every name and attribute that stands in code, sets and their comprehensions as "set"."""
    for code in codes:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Set | ast.SetComp):
                yield "set"
            elif isinstance(node, ast.alias):
                yield from node.name.split(".")
