"""What a suspicious reply may have had to say, without a good run: texts to try in its place, by rule.

No model is asked. A text comes from the prompt ("source"), from the siblings ("sibling") or from the answer
that is expected ("expected", only where it stands in the prompt: else any reply that reaches the answer could
be made to give it). That a text makes the answer right proves that the reply broke it, not that the text is
true; each says where it is from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.diagnosis import Origin
from traces.replies import can_be_read, declines, form, found_nothing, is_label, one_digit_away, unfounded
from traces.replies import named_values as values_named
from traces.reply_facts import FEW, texts_of
from traces.rows import SpanRow
from traces.siblings import siblings_of
from traces.trial import Target
from traces.view import RunView

MOST: Final = 8  # texts for one reply
_LEARNT: Final = 200  # siblings from which it is learnt how a reply follows from a prompt
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_AROUND: Final = 12  # characters on each side of a number by which its place in a prompt is known
_FEWEST: Final = 3  # siblings that read the same place
_LABEL_SHARE: Final = 0.8
_TARGET_CHARS: Final = 200
_MISSED: Final = "The expected answer stands in the prompt and in hardly any other, and not in the reply."


@dataclass(frozen=True, slots=True)
class Proposal:
    """A text for the place of a reply, where it is from, and why, as a sentence that may quote the run."""

    text: str
    origin: Origin
    words: str


@dataclass(frozen=True, slots=True)
class _Sibling:
    prompt: str
    reply: str


def proposals(
    view: RunView, span_id: str, target: Target | None = None, *, missed: bool = False
) -> tuple[Proposal, ...]:
    """Texts to try in the place of the reply of a sub-call, the likeliest first; () for other spans and where
    no rule fits. `missed`: few prompts but its own hold the expected answer, so that this is tried first,
    whatever form the replies of its siblings have. Raises RecordError when the texts of the record cannot be
    read.
    """
    span = view.by_id.get(span_id)
    if span is None or span.kind != "sub_call":
        return ()
    prompt = dict(texts_of(view, [span], sc.PROMPT)).get(span_id)
    reply = dict(texts_of(view, [span], sc.RESPONSE)).get(span_id, "")
    if prompt is None:
        return ()
    others = _siblings(view, span)
    found: dict[str, Proposal] = {}
    if missed and target is not None:
        found[normalise(target.text)] = Proposal(target.text, "expected", _MISSED)
    for one in (*_slips(reply, prompt), *_learnt(prompt, others), *_labels(others, prompt), *_expected(
        prompt, others, target
    )):  # fmt: skip
        if normalise(one.text) != normalise(reply):
            found.setdefault(normalise(one.text), one)
    return tuple(found.values())[:MOST]


def _siblings(view: RunView, span: SpanRow) -> list[_Sibling]:
    """Siblings that answered like most of them do: those that decline or find nothing teach nothing."""
    family = siblings_of(span)
    spans = [
        other
        for other in view.spans
        if other.kind == "sub_call"
        and other.status == "ok"
        and other is not span
        and other.response_chars
        and siblings_of(other) == family
    ][:_LEARNT]
    prompts, replies = dict(texts_of(view, spans, sc.PROMPT)), dict(texts_of(view, spans, sc.RESPONSE))
    told = [_Sibling(prompts[key], replies[key]) for key in replies if key in prompts]
    told = [one for one in told if not declines(one.reply) and not found_nothing(one.reply)]
    forms = Counter(form(one.reply) for one in told)
    usual = forms.most_common(1)[0][0] if forms else ""
    return [one for one in told if form(one.reply) == usual]


def _slips(reply: str, prompt: str) -> Iterator[Proposal]:
    """The reply with the number of the prompt that is a digit away from one which stands nowhere in it."""
    for written in unfounded(values_named(reply), prompt).values():
        other = one_digit_away(written, prompt)
        if other is not None:
            text = reply.replace(written, _as_written(other, written))
            yield Proposal(text, "source", f"The prompt says {other}, a digit away from {written}.")


def _as_written(number: str, like: str) -> str:
    """A number without marks between thousands where the one it stands for has none."""
    return number if "," in like or "." in like else re.sub(r",(?=\d{3})", "", number)


# -- how siblings read their prompts


def _learnt(prompt: str, others: Sequence[_Sibling]) -> Iterator[Proposal]:
    """The number at the place of the prompt from which siblings took theirs, in the words of a sibling."""
    places: Counter[str] = Counter()
    models: dict[str, tuple[_Sibling, str]] = {}
    for other in others:
        for written in _NUMBER.findall(other.reply)[:2]:
            for place in _places(other.prompt, written):
                places[place] += 1
                models.setdefault(place, (other, written))
    for place, count in places.most_common(MOST):
        if count < max(_FEWEST, len(others) // 4):
            return
        found = re.search(place.replace(_HOLE, f"({_NUMBER.pattern})"), prompt)
        if found is not None:
            model, written = models[place]
            text = _like(model, written, _as_written(found[1], written), prompt)
            if text is not None:
                words = f"{count:,} siblings took their number from this place of their prompts."
                yield Proposal(text, "source", words)


_HOLE: Final = "\0"


def _places(prompt: str, written: str) -> set[str]:
    """Patterns of the surroundings of a number in a prompt: what stands right before and right after it."""
    found = set()
    for match in _NUMBER.finditer(prompt):
        if match[0].replace(",", "") == written.replace(",", ""):
            before = prompt[max(0, match.start() - _AROUND) : match.start()]
            after = prompt[match.end() : match.end() + _AROUND]
            before = re.split(r"\d", before)[-1]
            after = re.split(r"\d", after)[0]
            if before.strip() or after.strip():
                found |= {re.escape(before) + _HOLE + re.escape(after)}
                found |= {_HOLE + re.escape(after)} if len(after.strip()) >= _FEWEST else set()
                found |= {re.escape(before) + _HOLE} if len(before.strip()) >= _FEWEST else set()
    return found


def _like(model: _Sibling, written: str, number: str, prompt: str) -> str | None:
    """The reply of a sibling with another number; what else it took from its prompt is taken from the same
    line of this one. None where that cannot be done.
    """
    text = model.reply.replace(written, number, 1)
    theirs, ours = model.prompt.splitlines(), prompt.splitlines()
    if len(theirs) != len(ours):
        return text
    for line, other in zip(theirs, ours, strict=True):
        name = line.strip()
        if line != other and name and len(name) >= _FEWEST and normalise(name) in normalise(text):
            text = re.sub(re.escape(name), other.strip().replace("\\", r"\\"), text, flags=re.IGNORECASE)
    return text


# -- labels and what is expected


def _labels(others: Sequence[_Sibling], prompt: str) -> Iterator[Proposal]:
    """The labels that siblings gave, the commonest first; those of the prompt before all others."""
    labels = [one.reply for one in others if is_label(one.reply) and "digits" not in can_be_read(one.reply)]
    if len(labels) < FEW or len(labels) < _LABEL_SHARE * len(others):
        return
    counts = Counter(normalise(label) for label in labels)
    written = {normalise(label): label for label in labels}
    folded = normalise(prompt)
    for label, count in sorted(counts.items(), key=lambda item: (item[0] not in folded, -item[1])):
        yield Proposal(written[label], "sibling", f"{count:,} of {len(others):,} siblings gave this label.")


def _expected(prompt: str, others: Sequence[_Sibling], target: Target | None) -> Iterator[Proposal]:
    if target is None or not target.text.strip() or len(target.text) > _TARGET_CHARS:
        return
    fits = not others or form(target.text) == form(others[0].reply)
    if fits and normalise(target.text) in normalise(prompt):
        yield Proposal(target.text, "expected", "The expected answer stands in the prompt, and it fits.")
