"""Suspects: sub-calls of one run that look wrong, each with its evidence in words.

No model and no replay: a pure function of the record (design: "Suspects for one run alone"). A suspect is a
place to look at first, not a proof. Siblings are the calls that one line of one cell made.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlm_core import semconv as sc
from traces.facts import Facts
from traces.influence import Influence, influences
from traces.refused import refused
from traces.reply_facts import Found, Signal, short
from traces.rows import SpanRow
from traces.siblings import among_siblings
from traces.tree import outcome
from traces.view import RunView

#: Kind of signal -> how much it weighs. Weights are a ranking, not a probability.
WEIGHTS: Final = {
    "error": 0.9,
    "cut off": 0.8,
    "empty": 0.7,
    "digit": 0.7,
    "disagreement": 0.6,
    "refusal": 0.6,
    "fallback": 0.6,
    "value": 0.5,
    "format": 0.5,
    "name": 0.4,
    "unfinished": 0.4,
    "length": 0.2,
    "outlier": 0.2,
}
#: What a kind means, as a clause that can stand behind "sub-calls".
MEANINGS: Final = {
    "error": "that ended in error, were cancelled or lost",
    "cut off": "whose reply was cut off at its length limit",
    "empty": "whose reply is empty",
    "disagreement": "whose prompt was also asked elsewhere and answered differently",
    "refusal": "that decline or find nothing while their siblings answer",
    "fallback": "that code could not read and passed over with a value of its own",
    "digit": "that name a number of their prompt with a slip in its digits",
    "value": "that name a number which stands nowhere in their prompt",
    "name": "that name somebody or something that stands nowhere in their prompt",
    "format": "whose reply has another form than those of their siblings",
    "unfinished": "whose reply stops in the middle, while those of their siblings do not",
    "outlier": "whose number is of another size than those of their siblings",
    "length": "whose reply is far longer or shorter than those of their siblings",
}
#: Kinds of fault that one run alone cannot show, as nouns: for whoever says what a list of suspects is worth.
UNSEEN: Final = (
    "a wrong label that the prompt offers",
    "a wrong value that stands elsewhere in the prompt",
    "a plausible sentence that is not true",
    "something left out",
    "the same fault in most siblings",
)
_UNKNOWN: Final = Influence(1.0, "")


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sub-call with evidence against it.

    `score` is over 0 and under 1, a rank and no probability: suspicion, which is more with more and weightier
    signals, times `influence`, how much the answer may rest on the call (1: as much as on any). `reach` says
    so in a sentence, "" where it is not known.
    """

    score: float
    signals: tuple[Signal, ...]
    influence: float = 1.0
    reach: str = ""

    def to_json(self, span_id: str) -> dict[str, Any]:
        """The keys of a suspect of `rlmscope diagnose`."""
        return {
            "span_id": span_id,
            "score": self.score,
            "influence": self.influence,
            "reach": self.reach,
            "signals": [{"kind": signal.kind, "words": signal.words} for signal in self.signals],
        }


def suspects(view: RunView) -> dict[str, Suspect]:
    """The suspects of a run by span id, the most suspicious first; equal ones in the order of the record."""
    calls = [span for span in view.spans if span.kind == "sub_call" or span.is_child_run]
    signals: dict[str, list[Signal]] = defaultdict(list)
    turned_away = refused(view.spans)
    for span_id, signal in (
        *_outcomes(calls, turned_away),
        *_disagreements(calls),
        *among_siblings(view, calls),
    ):
        signals[span_id].append(signal)
    reach = influences(view) if signals else {}
    found = {
        span.span_id: _suspect(signals[span.span_id], reach.get(span.span_id, _UNKNOWN))
        for span in calls
        if span.span_id in signals
    }
    return dict(sorted(found.items(), key=lambda item: -item[1].score))


def unseen_words(count: int) -> str:
    """What a list of so many suspects cannot show, in a sentence: a run without suspects may be wrong too."""
    listed = f"{', '.join(UNSEEN[:-1])}, or {UNSEEN[-1]}"
    begin = "Other faults" if count else "There is no suspect, but some faults"
    return f"{begin} cannot be seen from one run alone: {listed}. A good run or a twin shows those."


def _suspect(signals: Iterable[Signal], reach: Influence) -> Suspect:
    ordered = tuple(sorted(signals, key=lambda signal: -WEIGHTS[signal.kind]))
    doubt = 1.0
    for signal in ordered:
        doubt *= 1 - WEIGHTS[signal.kind]
    return Suspect(round((1 - doubt) * reach.weight, 4), ordered, reach.weight, reach.words)


def _outcomes(calls: Sequence[SpanRow], turned_away: frozenset[str]) -> Found:
    """What a call's own end says."""
    for span in calls:
        ended = outcome(span)
        if ended == "empty":
            yield span.span_id, Signal("empty", "The reply is empty.")
        elif ended in ("error", "cancelled", "lost"):
            why = Facts(span.attributes).text(sc.ERROR_MESSAGE) or span.error_type
            failed = "A limit refused the call" if span.span_id in turned_away else "The call failed"
            words = {"error": failed, "cancelled": "The call was cancelled"}.get(
                ended, "The call was lost: its end is not in the record"
            )
            yield span.span_id, Signal("error", f"{words}: {short(why, 200)}" if why else f"{words}.")
        if finished_by_length(span):
            yield span.span_id, Signal("cut off", "The reply was cut off at its length limit.")


def finished_by_length(span: SpanRow) -> bool:
    """Whether a call's reply ended because its length limit was reached."""
    raw = Facts(span.attributes).text(sc.FINISH_REASONS)
    try:
        reasons = json.loads(raw) if raw else []
    except (ValueError, RecursionError):
        return False
    return isinstance(reasons, list) and "length" in reasons or span.error_type == "length"


def _disagreements(calls: Sequence[SpanRow]) -> Found:
    """Equal prompts to one model whose replies differ, white space, case and a final full stop aside."""
    asked: dict[tuple[str, str | None], list[tuple[SpanRow, str]]] = defaultdict(list)
    for span in calls:
        facts = Facts(span.attributes)
        prompt, reply = facts.text(sc.PROMPT_HASH), facts.text(sc.RESPONSE_NORM_HASH)
        if span.kind == "sub_call" and prompt and reply and span.status == "ok":
            asked[prompt, span.model].append((span, reply))
    for same in asked.values():
        counts = Counter(reply for _, reply in same)
        if len(counts) < 2:
            continue
        for span, reply in same:
            others = len(same) - counts[reply]
            if counts[reply] * 2 <= len(same):  # who agrees with most others is not the exception
                words = (
                    f"{others:,} of the {len(same):,} calls with this same prompt were answered differently."
                )
                yield span.span_id, Signal("disagreement", words)
