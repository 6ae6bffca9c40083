"""Findings of one run: what in it a person should know before they trust its answer.

No model is asked: every rule is a function of the record (design: "Findings on every run"). What a rule
cannot know it does not claim; nothing found is no proof that nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from traces import finding_calls, finding_cells, finding_run
from traces.finding import SEVERITIES, Finding
from traces.suspects import Suspect, suspects
from traces.view import RunView

_RULES: Final = (
    finding_run.ending,
    finding_run.budget,
    finding_run.unread,
    finding_cells.checked,
    finding_cells.fallbacks,
    finding_run.early,
    finding_cells.broken,
    finding_calls.error_text,
    finding_calls.unshared,
    finding_calls.duplicates,
    finding_run.compacted,
    finding_cells.cut_output,
)


def findings(view: RunView, suspected: Mapping[str, Suspect] | None = None) -> tuple[Finding, ...]:
    """The findings of a run, the serious ones first. `suspected`: its suspects, when they are known already.

    Rules that need an end say nothing of a run that goes on.
    """
    found = list(_all(view, suspects(view) if suspected is None else suspected))
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def _all(view: RunView, suspected: Mapping[str, Suspect]) -> Iterator[Finding]:
    yield from finding_calls.suspicious(view, suspected)
    for rule in _RULES:
        yield from rule(view)
