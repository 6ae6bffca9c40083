"""What is said of the numbers of runs that were read from the records of other engines: how far each can be
trusted, what a record does not say. Texts out of a record pass `ui.visible` where they are printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ui.figures import counted, tokens

if TYPE_CHECKING:
    from traces.imported import ImportFacts
    from traces.summing import Spend

_MARKS: Final = {
    "reported": "reported",
    "derived": "derived",
    "known_wrong": "what the record says is known to be wrong",
    "missing": "not in the record",
}
_UNTOLD: Final = ("known_wrong", "missing")
_NAMES: Final = {"tokens": "tokens", "cost": "cost", "start": "start", "seconds": "time"}


def marked(shown: str, trust: Mapping[str, str] | None, name: str) -> str:
    """A number in words with its mark; a number that is missing or known to be wrong is unknown. `trust` are
    the marks of a span, None where this engine recorded it; `name` is tokens, cost, start or seconds.

    >>> marked("3.0 s", {"seconds": "derived"}, "seconds"), marked("0 ms", {"seconds": "missing"}, "seconds")
    ('3.0 s (derived)', 'unknown (not in the record)')
    """
    mark = None if trust is None else trust.get(name)
    if mark is None:
        return shown
    return f"{'unknown' if mark in _UNTOLD else shown} ({_MARKS[mark]})"


def reasons(detail: Mapping[str, Any]) -> Iterator[str]:
    """What there is to say about the numbers of a span, a sentence each; `detail` is that of
    `traces.detail.span_detail`.
    """
    trust, why = detail.get("trust") or {}, detail.get("trust_why") or {}
    raw = detail.get("usage_raw")
    for name, word in _NAMES.items():
        said = [why[name]] if name in why else []
        if name == "tokens" and trust.get(name) == "known_wrong" and isinstance(raw, dict):
            said.insert(0, f"the record says {tokens(raw)}")
        if said and name in trust:
            yield f"{word}, {_MARKS[trust[name]]}: {'; '.join(said)}"


def import_lines(facts: ImportFacts, missing: Sequence[str]) -> Iterator[str]:
    """Where a run was read from, and what that record does not say, a line each."""
    yield f"imported: {facts.format}, made by {facts.engine}, read from {facts.file}"
    yield from (f"not in the record: {sentence}" for sentence in missing)
    yield from (f"unreadable in the record: {sentence}" for sentence in facts.problems)


def marks_of_calls(spend: Spend) -> Sequence[str]:
    """How many of these calls have numbers that are not told or derived, in words; none for our own runs."""
    of = f" of {counted(spend.calls, 'call')}"
    said = []
    if spend.untold and spend.untold == spend.calls:
        said.append("Tokens of no call are in the record: sums of them are unknown.")
    elif spend.untold:
        said.append(f"Tokens of {spend.untold:,}{of} are not in the record: sums of them are a lower bound.")
    if spend.derived:
        said.append(f"Tokens or cost of {spend.derived:,}{of} are derived, not reported.")
    return said
