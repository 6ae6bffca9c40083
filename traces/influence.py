"""How much the answer may rest on a call, from the record alone: a weight for the order of suspects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from traces.evidence import Basis, evidence
from traces.lineage import telling
from traces.view import RunView

_SAID: Final = 1.0
_BEHIND: Final = 0.8
_ASIDE: Final = 0.3
_WORDS: Final[dict[Basis, str]] = {
    "read": "The code that set the answer rests on this call, as far as names of variables show it.",
    "printed": "The output that says the answer rests on this call, as far as names of variables show it.",
    "shown": "",  # true of every call: it says nothing about this one
    "code": "",
}
_ASIDE_WORDS: Final = "As far as names of variables show it, nothing behind the answer read its reply."


@dataclass(frozen=True, slots=True)
class Influence:
    """`weight` is over 0 and at most 1: a rank, not a probability. `words` is a sentence that may quote."""

    weight: float
    words: str


def influences(view: RunView) -> dict[str, Influence]:
    """The influence of every sub-call and child run on the answer, by span id; {} where there is no answer.
    Raises RecordError when the texts of the record cannot be read.
    """
    if view.summary.answer is None:
        return {}
    behind = evidence(view)
    said = telling(behind)
    known = {
        support.span.span_id: Influence(_BEHIND, _WORDS[behind.basis]) for support in behind.supports
    } | {
        span_id: Influence(_SAID, f"Its reply and the answer both say {', '.join(values)}.")
        for span_id, values in said.items()
    }
    calls = (span for span in view.spans if span.kind == "sub_call" or span.is_child_run)
    aside = Influence(_ASIDE, _ASIDE_WORDS)
    return {span.span_id: known.get(span.span_id, aside) for span in calls}
