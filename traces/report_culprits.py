"""The part of a report about what broke the answer: what it was asked, said, should have said, and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlm_core import semconv as sc
from traces.detail import span_detail
from traces.diagnosis_words import name_of
from traces.report_facts import Facts, rows
from traces.report_parts import Heading, Part, Sides, Table, Text, Words
from traces.rows import SpanRow

_MOST: Final = 20  # culprits and suspects that are told in full
_MOST_PASSAGES: Final = 5
_ORIGINS: Final = {
    "good run": "That is what stands in the same place of the good run.",
    "sibling": "That was tried because other calls like it answer so.",
    "source": "That was tried because its source says so.",
    "expected": "That was tried because the expected answer says so.",
    "user": "That is what a person wrote.",
    "re-ask": "That is what the model answered when it was asked again.",
}


@dataclass(frozen=True, slots=True)
class Passage:
    """Text of the corpus that stood in a prompt: the document, the place in it, and the text, or in words why
    it is not at hand. All of it may be anything."""

    document: str
    place: str
    text: str
    problem: str | None = None


def culprit_parts(facts: Facts, passages: Mapping[str, Sequence[Passage]]) -> Iterator[Part]:
    """One section per culprit."""
    count = len(facts.culprits)
    what = "What broke the answer" if facts.proven else "What may have broken the answer"
    yield Heading(what if count == 1 else f"{what}: {count:,} together")
    for number, row in enumerate(facts.culprits[:_MOST], 1):
        span, name = facts.view.by_id.get(row["span_id"]), facts.name(row["span_id"])
        yield Heading(f"{number}. {name}" if count > 1 else name[:1].upper() + name[1:], 3)
        if span is None:
            yield Words(f"The record of the run has no span {row['span_id']}.")
        else:
            yield from _culprit(facts, span, row)
            yield from _read(passages.get(span.span_id, ()))
    if count > _MOST:
        yield Words(f"{count - _MOST:,} more are in the diagnosis.")


def _culprit(facts: Facts, span: SpanRow, row: Mapping[str, Any]) -> Iterator[Part]:
    detail = span_detail(facts.view, span)
    should_be = row.get("text") if isinstance(row.get("text"), str) else None
    origin = Words(_ORIGINS.get(str(row.get("origin")), f"Where that is from: {row.get('origin')}."))
    if span.kind == "cell":
        label = "The code it should have had" if facts.proven else "The code in its place"
        was = Text("The code of the cell", detail["code"], "python")
        yield from (Sides(was, Text(label, should_be, "python")), origin)
        yield Text("What it printed", detail["stdout"])
    else:
        said, asked = ("answer", "question") if span.kind == "run" else ("response", "prompt")
        label = "It should have said" if facts.proven else "In its place was put"
        none = {} if span.status == "ok" else {"absent": "There was no reply."}
        yield from (Sides(Text("It said", detail[said], **none), Text(label, should_be)), origin)
        yield Text(f"It was asked (by {span.model})" if span.model else "It was asked", detail[asked])
    failed = span.attributes.get(sc.ERROR_MESSAGE)
    if isinstance(failed, str):
        yield Text("It failed", failed)


def _read(read: Sequence[Passage]) -> Iterator[Part]:
    for passage in read[:_MOST_PASSAGES]:
        where = f"The passage it was given: {passage.document}, {passage.place}"
        if passage.problem is None:
            yield Text(where, passage.text)
        else:
            yield Words(f"{where} ({passage.problem})")
    if len(read) > _MOST_PASSAGES:
        yield Words(f"{len(read) - _MOST_PASSAGES:,} more passages stood in its prompt.")


def suspect_parts(facts: Facts) -> Iterator[Part]:
    """What looks wrong by itself, where no culprit was found."""
    listed = facts.rows("suspects")
    if not listed:
        return
    yield Heading("What looks wrong by itself")
    yield Words("These are places to look at first. None of it is proven.")
    shown = [_suspect(facts, row) for row in listed[:_MOST]]
    yield Table(("sub-call", "id", "score", "what speaks against it"), shown, right=(2,))
    if len(listed) > _MOST:
        yield Words(f"{len(listed) - _MOST:,} more are on the page of the run.")


def _suspect(facts: Facts, row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    signals = row.get("signals")
    words = [str(signal.get("words")) for signal in rows(signals)]
    if isinstance(signals, list):
        words += [signal for signal in signals if isinstance(signal, str)]
    span = facts.view.by_id.get(str(row.get("span_id")))
    score = row.get("score")
    return (
        "not in the record" if span is None else name_of(span),
        str(row.get("span_id")),
        f"{score:.2f}" if isinstance(score, int | float) else "?",
        " ".join(words),
    )
