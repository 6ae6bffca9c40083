"""Calls that were given the expected answer and did not say it: what only an expected answer can show."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.reply_facts import Signal, short, texts_of
from traces.suspects import Suspect
from traces.trial import Target
from traces.view import RunView

KIND: Final = "missed"  # of the signal
_FEWEST_CHARS: Final = 4  # of an expected answer that says something by standing in a prompt
_FEWEST_DIGITS: Final = 3  # of one that is a number
_MOST_PROMPTS: Final = 3  # that hold it; what stands in more of them is no find
_MOST_CHARS: Final = 200
_WEIGHT: Final = 0.99
_NUMBER: Final = re.compile(r"[\d.,]+")
_MARK: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")  # between thousands
_QUOTED: Final = 60


def with_missed(view: RunView, known: Mapping[str, Suspect], target: Target | None) -> dict[str, Suspect]:
    """Suspects with those calls before all others whose prompt holds the expected answer while their reply
    does not, where at most three prompts of the run hold it and the question does not. Raises RecordError
    when the texts of the record cannot be read.
    """
    found = dict(known)
    for span_id, signal in reversed(_missed(view, target)):
        old = known.get(span_id, Suspect(0.0, ()))
        found.pop(span_id, None)
        score = round(1 - (1 - _WEIGHT) * (1 - old.score), 4)
        found = {span_id: Suspect(score, (signal, *old.signals), old.influence, old.reach), **found}
    return found


def was_missed(suspect: Suspect) -> bool:
    """Whether the expected answer stands in the prompt of a suspect, but not in its reply."""
    return any(signal.kind == KIND for signal in suspect.signals)


def _missed(view: RunView, target: Target | None) -> list[tuple[str, Signal]]:
    wanted = None if target is None or target.how == "regex" else _pattern(target.text)
    if wanted is None or target is None or wanted.search(_plain(view.summary.question or "")):
        return []
    calls = [span for span in view.spans if span.kind == "sub_call"]
    holding: dict[int, list[str]] = defaultdict(list)  # equal prompts count once
    for span_id, prompt in texts_of(view, calls, sc.PROMPT):
        if wanted.search(_plain(prompt)):
            holding[hash(prompt)].append(span_id)
    if len(holding) > _MOST_PROMPTS:
        return []
    spans = [view.by_id[span_id] for group in holding.values() for span_id in group]
    replies = dict(texts_of(view, spans, sc.RESPONSE))
    return [
        (span.span_id, Signal(KIND, _words(target, replies.get(span.span_id), len(holding))))
        for span in sorted(spans, key=lambda span: span.seq)
        if not wanted.search(_plain(replies.get(span.span_id, "")))
    ]


def _words(target: Target, reply: str | None, prompts: int) -> str:
    where = "this prompt only" if prompts == 1 else f"this and {prompts - 1} other of all prompts"
    said = "there is no reply" if not reply else f"the reply says “{short(reply, _QUOTED)}”"
    return f"The expected answer “{short(target.text, _QUOTED)}” stands in {where}, but {said}."


def _plain(text: str) -> str:
    return _MARK.sub("", normalise(text))


def _pattern(text: str) -> re.Pattern[str] | None:
    """The expected answer as a whole word or number; None for one that may stand anywhere by chance."""
    plain = _plain(text)
    number = _NUMBER.fullmatch(plain) is not None
    enough = sum(map(str.isdigit, plain)) >= _FEWEST_DIGITS if number else len(plain) >= _FEWEST_CHARS
    if not enough or len(plain) > _MOST_CHARS:
        return None
    return re.compile(rf"(?<!\w)(?<!\d[.,]){re.escape(plain)}(?!\w)(?![.,]\d)")
