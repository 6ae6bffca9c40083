"""What is known of each reply before it is compared with its siblings, and the words for what is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.facts import Facts
from traces.replies import (
    NUMBER,
    ReadAs,
    can_be_read,
    declines,
    form,
    found_nothing,
    is_closed,
    is_label,
    named_values,
    names_in,
)
from traces.rows import SpanRow
from traces.view import RunView

FEW: Final = 8  # siblings from which on one of them can stand out
RARE: Final = 0.2  # of the siblings: what more than these do is no exception
_AT_ONCE: Final = 8_000_000  # characters of texts that are held together
_TEXTS_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Signal:
    """One piece of evidence. `kind` is a key of `WEIGHTS`; `words` may quote text of a model."""

    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What there is to know of the text of a sub-call that ended well; the text itself is not kept."""

    span: SpanRow
    chars: int
    form: str
    label: str | None  # in comparable form, where the reply is a word or two
    declined: bool
    nothing: bool
    values: dict[str, str]  # numbers and codes: comparable form -> as written
    names: dict[str, str]  # words written as names are: comparable form -> as written
    closed: bool  # whether it ends as a sentence, list or label does
    reads: frozenset[ReadAs]  # what program code can read it as

    @property
    def number(self) -> float | None:
        """The reply as a number over 0, where it is one."""
        (value,) = self.values if self.form == NUMBER and len(self.values) == 1 else ("0",)
        return float(value) if value.replace(".", "", 1).isdecimal() and 0 < len(value) < 100 else None


Found = Iterator[tuple[str, Signal]]


def replies_of(view: RunView, calls: Iterable[SpanRow]) -> Iterator[Reply]:
    """What is known of the replies of those calls that ended well and said something."""
    answered = {
        span.span_id: span
        for span in calls
        if span.kind == "sub_call" and span.status == "ok" and span.response_chars
    }
    for span_id, text in texts_of(view, answered.values(), sc.RESPONSE):
        label = normalise(text) if is_label(text) else None
        yield Reply(
            answered[span_id],
            len(text),
            form(text),
            label,
            declines(text),
            found_nothing(text),
            named_values(text),
            names_in(text),
            is_closed(text),
            can_be_read(text),
        )


def is_rare(part: Sequence[Reply], family: Sequence[Reply]) -> bool:
    """Whether these replies are exceptions among their siblings, of which there are enough to tell."""
    return len(family) >= FEW and len(part) <= RARE * len(family)


def short(text: str | None, most: int) -> str:
    """A text on one line, cut to so many characters."""
    line = " ".join((text or "").split())
    return line if len(line) <= most else line[: most - 1] + "…"


def texts_of(view: RunView, spans: Iterable[SpanRow], prefix: str) -> Iterator[tuple[str, str]]:
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
