"""What makes one reply stand out among its siblings: the calls that one line of one cell made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log
from statistics import median
from typing import Final

from rlm_core import semconv as sc
from traces.facts import Facts
from traces.fallback import Fallbacks
from traces.grounding import against_prompts
from traces.reply_facts import FEW, RARE, Found, Reply, Signal, is_rare, replies_of
from traces.rows import SpanRow
from traces.view import RunView

_FAR: Final = 4  # times the median length
_BY: Final = 200  # characters that a long reply is longer at least
_TIMES: Final = 50  # the middle number: a number this far away is another kind of thing


def siblings_of(span: SpanRow) -> str:
    """What calls of one line of one cell have in common."""
    facts = Facts(span.attributes)
    line, path = facts.count(sc.CALL_LINE), facts.text(sc.RUN_PATH)
    if line is None or span.cell is None:
        return f"parent {span.parent_id}"
    return f"path {path} cell {span.cell} line {line}"


def among_siblings(view: RunView, calls: Sequence[SpanRow]) -> Found:
    """Signals, by span id, of what stands out among a run's calls; the texts are read a few at a time."""
    families: dict[str, list[Reply]] = defaultdict(list)
    for reply in replies_of(view, calls):
        families[siblings_of(reply.span)].append(reply)
    odd: list[Reply] = []
    fallbacks = Fallbacks(view)
    for family in families.values():
        yield from _refusals(family)
        yield from fallbacks.taken(family)
        # in a search most calls find nothing: the one that finds something is no exception
        telling = [reply for reply in family if not reply.nothing]
        yield from _lengths(telling)
        yield from _formats(telling)
        yield from _unfinished(telling)
        yield from _outliers(telling)
        odd += _odd_labels(telling)
    yield from against_prompts(view, families, odd)


def _refusals(family: Sequence[Reply]) -> Found:
    """A reply that declines, unless half of the siblings do; one that finds nothing, where that is rare."""
    declined = [reply for reply in family if reply.declined]
    if len(declined) * 2 <= len(family) or len(family) == 1:
        for reply in declined:
            yield reply.span.span_id, Signal("refusal", _beside("The reply declines", declined, family))
    nothing = [reply for reply in family if reply.nothing and not reply.declined]
    if is_rare(nothing, family):
        for reply in nothing:
            yield reply.span.span_id, Signal("refusal", _beside("The reply finds nothing", nothing, family))


def _beside(words: str, part: Sequence[Reply], family: Sequence[Reply]) -> str:
    if len(family) == 1:
        return f"{words}."
    return f"{words}; {len(part):,} of {len(family):,} siblings that answered do so."


def _lengths(family: Sequence[Reply]) -> Found:
    if len(family) < FEW:
        return
    middle = median(reply.chars for reply in family)
    far = [
        reply
        for reply in family
        if (reply.chars > _FAR * middle and reply.chars - middle > _BY)
        or (reply.chars * _FAR < middle and middle >= _BY)
    ]
    if is_rare(far, family):
        for reply in far:
            words = f"The reply has {reply.chars:,} characters; the middle of {len(family):,} siblings has "
            yield reply.span.span_id, Signal("length", f"{words}{round(middle):,}.")


def _formats(family: Sequence[Reply]) -> Found:
    if len(family) < FEW:
        return
    ((usual, number),) = Counter(reply.form for reply in family).most_common(1)
    others = [reply for reply in family if reply.form != usual]
    if is_rare(others, family):
        for reply in others:
            words = f"The reply is {reply.form}; {number:,} of {len(family):,} siblings are {usual}."
            yield reply.span.span_id, Signal("format", words)
        family = [reply for reply in family if reply.form == usual]
    yield from _without_number(family)


def _without_number(family: Sequence[Reply]) -> Found:
    """Replies that name no number, where nearly all siblings do."""
    without = [reply for reply in family if "digits" not in reply.reads]
    if is_rare(without, family):
        for reply in without:
            words = (
                f"The reply names no number; {len(family) - len(without):,} of {len(family):,} siblings do."
            )
            yield reply.span.span_id, Signal("format", words)


def _unfinished(family: Sequence[Reply]) -> Found:
    """Replies that stop without the full stop, bracket or quote with which the siblings end."""
    open_ended = [reply for reply in family if not reply.closed]
    if is_rare(open_ended, family):
        for reply in open_ended:
            words = f"The reply stops in the middle: {len(family) - len(open_ended):,} of {len(family):,} "
            yield reply.span.span_id, Signal("unfinished", f"{words}siblings end as sentences or lists do.")


def _outliers(family: Sequence[Reply]) -> Found:
    """Replies that are a number, far from the numbers of the siblings."""
    numbers = [(reply, log(value)) for reply in family if (value := reply.number)]
    if len(numbers) < FEW or len(numbers) < (1 - RARE) * len(family):
        return
    middle = median(size for _, size in numbers)
    far = [reply for reply, size in numbers if abs(size - middle) > log(_TIMES)]
    if is_rare(far, family):
        for reply in far:
            words = f"The number is more than {_TIMES} times larger or smaller than the middle one of "
            yield reply.span.span_id, Signal("outlier", f"{words}{len(numbers):,} siblings.")


def _odd_labels(family: Sequence[Reply]) -> Sequence[Reply]:
    """Replies of a word or two that hardly any sibling gave, where the siblings share a few such labels."""
    counts = Counter(reply.label for reply in family if reply.label is not None)
    if counts.total() < max(FEW, (1 - RARE) * len(family)):
        return []
    odd = [reply for reply in family if reply.label is not None and counts[reply.label] * 100 <= len(family)]
    odd = odd or [reply for reply in family if reply.label is not None and counts[reply.label] == 1]
    return odd if is_rare(odd, family) else []
