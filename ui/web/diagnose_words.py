"""Diagnoses in the words of the pages. Logs are untrusted: of what is said here all but `patched_words` may
stand in labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from rlm_core.errors import RLMScopeError
from traces.diagnosis_words import put_in
from traces.reading import RunView
from traces.trial import Budget
from ui.figures import counted, money
from ui.web.findings_view import place
from ui.web.notices import Colour

VERDICT: Final[dict[str, tuple[str, Colour]]] = {
    "sub_call": ("Sub-call", "red"),
    "cell": ("Code", "red"),
    "sub_call_and_cell": ("Sub-call and code", "red"),
    "plan_diverged": ("Another plan", "orange"),
    "suspects": ("Suspects only", "orange"),
    "undecided": ("Not decided", "orange"),
    "not_replayable": ("Not replayable", "orange"),
    "seed_dependent": ("Depends on seeds", "orange"),
    "right": ("Already right", "green"),
}
OUTCOME: Final[dict[str, tuple[str, Colour]]] = {
    "fixed": ("fixed", "green"),
    "moved": ("moved", "orange"),
    "unchanged": ("unchanged", "gray"),
    "reached_root": ("reached the root", "blue"),
    "undecided": ("undecided", "orange"),
    "error": ("failed", "red"),
}
STATUS: Final[dict[str, tuple[str, Colour]]] = {
    "running": ("running", "blue"),
    "done": ("done", "green"),
    "cancelled": ("cancelled", "orange"),
    "failed": ("failed", "red"),
    "lost": ("lost", "red"),
}
REPLAYABLE: Final[dict[str, tuple[str, Colour]]] = {
    "replayable": ("replayable", "green"),
    "seed_dependent": ("seed-dependent", "orange"),
    "not_replayable": ("not replayable", "red"),
}
ORIGIN: Final = {
    "good run": "as the good run has it",
    "sibling": "a value seen among its siblings",
    "source": "a value of its prompt",
    "expected": "the value of the expected answer",
    "user": "as a person wrote it",
    "re-ask": "as the model said when asked again",
}
MODE_TITLES: Final = {
    "strict": "strict: from the record alone",
    "recompute": "recompute: ask for changed prompts",
    "live": "live: ask for everything again",
    "frozen": "frozen: old replies to changed prompts",
    "reask": "reask: ask the root again",
}
_UNKNOWN: Final[tuple[str, Colour]] = ("unknown", "gray")
_NAMED: Final = 3  # spans of a trial that are named
_TEXT_CHARS: Final = 60  # of the one text that a trial put in


def badge(words: Mapping[str, tuple[str, Colour]], name: object) -> tuple[str, Colour]:
    """Word and colour of a name that a log says."""
    return words.get(name, _UNKNOWN) if isinstance(name, str) else _UNKNOWN


def span_words(view: RunView, span_id: object) -> str:
    """Where a span is, in words of ours and numbers; a span that the run does not have is said so."""
    if isinstance(span_id, str) and span_id in view.by_id:
        return place(view, span_id)
    return "a span that is not in this run"


def patched_words(view: RunView, patches: Sequence[Mapping[str, Any]]) -> str:
    """Which spans a trial replaced; of a single one also with what (of code, the lines that it changed), so
    it is no text of ours."""
    if not patches:
        return "nothing"
    named = [span_words(view, patch.get("span_id")) for patch in patches[:_NAMED]]
    if len(patches) == 1:
        span_id, text = str(patches[0].get("span_id")), str(patches[0].get("text"))
        with suppress(RLMScopeError):  # a record that cannot be read hides no trial
            text = put_in(view, span_id, text)
        even = " ".join(text.split())
        return f"{named[0]}: “{even if len(even) <= _TEXT_CHARS else even[: _TEXT_CHARS - 1] + '…'}”"
    more = len(patches) - len(named)
    return ", ".join(named) + (f" and {counted(more, 'more', 'more')}" if more else "")


def budget_words(budget: Budget) -> str:
    """What may be spent at most, as a clause."""
    calls = counted(budget.live_calls, "model call") if budget.live_calls else "no model call"
    usd = "" if budget.usd is None else f", {money(budget.usd, None)}"
    return f"at most {counted(budget.replays, 'replay')}, {calls}{usd}"


def spent_words(replays: object, live_calls: object, usd: object) -> str:
    """What was spent, as a clause; what a log says that is no number is unknown."""
    runs = counted(replays, "replay") if type(replays) is int else "an unknown number of replays"
    calls = counted(live_calls, "model call") if type(live_calls) is int else "unknown model calls"
    return f"{runs}, {calls}, {usd_words(usd)}"


def usd_words(usd: object) -> str:
    """An amount as a log says it."""
    try:
        return money(usd if isinstance(usd, str) else None, None)
    except ArithmeticError:
        return "unknown"
