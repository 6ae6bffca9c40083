"""What makes one reply stand out among its siblings: the calls that one line of one cell made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.facts import Facts
from traces.replies import declines, form, found_nothing, is_label, is_telling, named_values, unfounded
from traces.rows import SpanRow
from traces.view import RunView

_FEW: Final = 8  # siblings from which on one of them can stand out
_RARE: Final = 0.2  # of the siblings: what more than these do is no exception
_FAR: Final = 4  # times the median length
_BY: Final = 200  # characters that a long reply is longer at least
_QUOTED: Final = 60
_AT_ONCE: Final = 8_000_000  # characters of texts that are held together
_TEXTS_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Signal:
    """One piece of evidence. `kind` is a key of `WEIGHTS`; `words` may quote text of a model."""

    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class _Reply:
    """What there is to know of the text of a sub-call that ended well; the text itself is not kept."""

    span: SpanRow
    chars: int
    form: str
    label: str | None  # in comparable form, where the reply is a word or two
    declined: bool
    nothing: bool
    values: dict[str, str]  # numbers and codes: comparable form -> as written


Found = Iterator[tuple[str, Signal]]


def siblings_of(span: SpanRow) -> str:
    """What calls of one line of one cell have in common."""
    facts = Facts(span.attributes)
    line, path = facts.count(sc.CALL_LINE), facts.text(sc.RUN_PATH)
    if line is None or span.cell is None:
        return f"parent {span.parent_id}"
    return f"path {path} cell {span.cell} line {line}"


def among_siblings(view: RunView, calls: Sequence[SpanRow]) -> Found:
    """Signals, by span id, of what stands out among a run's calls; the texts are read a few at a time."""
    families: dict[str, list[_Reply]] = defaultdict(list)
    for reply in _replies(view, calls):
        families[siblings_of(reply.span)].append(reply)
    odd: list[_Reply] = []
    for family in families.values():
        yield from _refusals(family)
        # in a search most calls find nothing: the one that finds something is no exception
        telling = [reply for reply in family if not reply.nothing]
        yield from _lengths(telling)
        yield from _formats(telling)
        odd += _odd_labels(telling)
    yield from _against_prompts(view, families, odd)


def _replies(view: RunView, calls: Sequence[SpanRow]) -> Iterator[_Reply]:
    answered = {
        span.span_id: span
        for span in calls
        if span.kind == "sub_call" and span.status == "ok" and span.response_chars
    }
    for span_id, text in _texts(view, answered.values(), sc.RESPONSE):
        label = normalise(text) if is_label(text) else None
        yield _Reply(
            answered[span_id],
            len(text),
            form(text),
            label,
            declines(text),
            found_nothing(text),
            named_values(text),
        )


def _refusals(family: Sequence[_Reply]) -> Found:
    """A reply that declines, unless half of the siblings do; one that finds nothing, where that is rare."""
    declined = [reply for reply in family if reply.declined]
    if len(declined) * 2 <= len(family) or len(family) == 1:
        for reply in declined:
            yield reply.span.span_id, Signal("refusal", _beside("The reply declines", declined, family))
    nothing = [reply for reply in family if reply.nothing and not reply.declined]
    if _is_rare(nothing, family):
        for reply in nothing:
            yield reply.span.span_id, Signal("refusal", _beside("The reply finds nothing", nothing, family))


def _is_rare(part: Sequence[_Reply], family: Sequence[_Reply]) -> bool:
    return len(family) >= _FEW and len(part) <= _RARE * len(family)


def _beside(words: str, part: Sequence[_Reply], family: Sequence[_Reply]) -> str:
    if len(family) == 1:
        return f"{words}."
    return f"{words}; {len(part):,} of {len(family):,} siblings that answered do so."


def _lengths(family: Sequence[_Reply]) -> Found:
    if len(family) < _FEW:
        return
    middle = median(reply.chars for reply in family)
    far = [
        reply
        for reply in family
        if (reply.chars > _FAR * middle and reply.chars - middle > _BY)
        or (reply.chars * _FAR < middle and middle >= _BY)
    ]
    if _is_rare(far, family):
        for reply in far:
            words = f"The reply has {reply.chars:,} characters; the middle of {len(family):,} siblings has "
            yield reply.span.span_id, Signal("length", f"{words}{round(middle):,}.")


def _formats(family: Sequence[_Reply]) -> Found:
    if len(family) < _FEW:
        return
    ((usual, number),) = Counter(reply.form for reply in family).most_common(1)
    others = [reply for reply in family if reply.form != usual]
    if _is_rare(others, family):
        for reply in others:
            words = f"The reply is {reply.form}; {number:,} of {len(family):,} siblings are {usual}."
            yield reply.span.span_id, Signal("format", words)


def _odd_labels(family: Sequence[_Reply]) -> Sequence[_Reply]:
    """Replies of a word or two that hardly any sibling gave, where the siblings share a few such labels."""
    counts = Counter(reply.label for reply in family if reply.label is not None)
    if counts.total() < max(_FEW, (1 - _RARE) * len(family)):
        return []
    odd = [reply for reply in family if reply.label is not None and counts[reply.label] * 100 <= len(family)]
    odd = odd or [reply for reply in family if reply.label is not None and counts[reply.label] == 1]
    return odd if _is_rare(odd, family) else []


def _against_prompts(view: RunView, families: Mapping[str, Sequence[_Reply]], odd: Sequence[_Reply]) -> Found:
    """Values and rare labels that stand nowhere in the prompt."""
    labels = {reply.span.span_id: reply.label or "" for reply in odd}
    named = {reply.span.span_id: reply for family in families.values() for reply in family if reply.values}
    absent: dict[str, dict[str, str]] = {}
    asked = [reply.span for reply in ({reply.span.span_id: reply for reply in odd} | named).values()]
    for span_id, prompt in _texts(view, asked, sc.PROMPT):
        if span_id in labels and labels[span_id] not in normalise(prompt):
            words = f"The label “{short(labels[span_id], _QUOTED)}” stands nowhere in the prompt, and hardly "
            yield span_id, Signal("format", f"{words}any sibling gave it.")
        if span_id in named:
            absent[span_id] = unfounded(named[span_id].values, prompt)
    for family in families.values():
        yield from _values([reply for reply in family if reply.values], absent)


def _values(family: Sequence[_Reply], absent: Mapping[str, Mapping[str, str]]) -> Found:
    """Where many siblings name what is not in their prompts, the task is to work it out: no evidence. Among
    few siblings only values that are hardly chance count.
    """
    wrong = {reply.span.span_id: dict(absent.get(reply.span.span_id, {})) for reply in family}
    if len(family) < _FEW:
        wrong = {key: {v: w for v, w in values.items() if is_telling(v)} for key, values in wrong.items()}
    wrong = {key: values for key, values in wrong.items() if values}
    if len(family) < _FEW or len(wrong) <= _RARE * len(family):
        for span_id, values in wrong.items():
            yield span_id, _value(list(values.values()))


def _value(wrong: Sequence[str]) -> Signal:
    shown = ", ".join(short(written, 24) for written in wrong[:3])
    more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
    stand = "stand" if len(wrong) > 1 else "stands"
    return Signal("value", f"{shown}{more} {stand} in the reply but nowhere in the prompt.")


def short(text: str | None, most: int) -> str:
    """A text on one line, cut to so many characters."""
    line = " ".join((text or "").split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _texts(view: RunView, spans: Iterable[SpanRow], prefix: str) -> Iterator[tuple[str, str]]:
    """Whole texts by span id, some millions of characters at a time; without those the record lacks."""
    waiting: dict[str, str] = {}
    chars = 0
    for span in spans:
        facts = Facts(span.attributes)
        if (sha256 := facts.text(prefix + ".sha256")) is None:
            continue
        waiting[span.span_id] = sha256
        chars += facts.count(prefix + ".chars") or 0
        if chars > _AT_ONCE or len(waiting) >= _TEXTS_AT_ONCE:
            yield from _read(view, waiting)
            waiting, chars = {}, 0
    yield from _read(view, waiting)


def _read(view: RunView, wanted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    texts = view.payloads(set(wanted.values()))
    for span_id, sha256 in wanted.items():
        if sha256 in texts:
            yield span_id, texts[sha256]
