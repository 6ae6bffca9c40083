"""Which sub-calls an answer may rest on, from the record alone: candidates, no proof.

The chain goes back from the cell that set the answer: for every name a cell reads, the last earlier cell of
the run that wrote it. The sub-calls and child runs of these cells are what the answer was made of, as far as
names show it. A value can also travel by what the root was shown and then wrote into code: when the chain
meets no sub-call, it starts again from the last cell whose output says the answer; without one, all earlier
calls are candidates. `basis` says which it was.

They are ordered by what they share with the answer (values of the response, names of the documents that were
read), then with the question, each shared value weighing the less the more calls have it (the idea of inverse
document frequency, Sparck Jones 1972).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rlm_core import semconv as sc
from traces.finding import names_of
from traces.rows import SpanRow
from traces.shared_values import COMPARED_CHARS, shared, told, values_of
from traces.view import RunView

Basis = Literal["read", "printed", "shown", "code"]
COMPARED_WHOLE: Final = 2_000  # candidates; of more, only the beginnings of the responses are compared
_RANGES: Final = 50  # passages of one call whose documents are looked at
_NAMED: Final = 3  # shared values that are told


@dataclass(frozen=True, slots=True)
class Support:
    """A sub-call, or the span of a child run, that the answer may rest on.

    `answer` and `question` are values its response shares with them, `documents` names of documents it was
    given that stand in the answer; rarest first, at most three each.
    """

    span: SpanRow
    answer: tuple[str, ...]
    documents: tuple[str, ...]
    question: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an answer may rest on, the likeliest first.

    `basis`: "read", the answer's cell read what came from these calls; "printed", it read no such thing,
    but the output of the cell `printed` says the answer and that cell read it; "shown", neither, so the root
    may have written what it had been shown of any call before; "code", no call came before the answer.
    `cells` are the spans of the cells that made the calls, `chain` those and every other cell behind the
    answer, in order. `whole` says that whole responses were compared, not only their first 200 characters.
    """

    basis: Basis
    cells: tuple[SpanRow, ...]
    supports: tuple[Support, ...]
    printed: SpanRow | None = None
    whole: bool = True
    chain: tuple[SpanRow, ...] = ()


def evidence(view: RunView) -> Evidence:
    """The calls that the answer of a run may rest on, as far as the record shows it. Raises nothing for what
    a record may hold; RecordError when its texts cannot be read."""
    tree = _Tree(view.spans)
    run = next((span for span in view.spans if span.kind == "run" and not span.orphan), None)
    cells = tree.cells(run)
    number = None if run is None else run.attributes.get(sc.ANSWER_CELL)
    # a forced answer has no cell: then the root wrote it after the last one
    last = next((n for n, cell in enumerate(cells) if number is not None and cell.cell == number), None)
    before = cells if last is None else cells[: last + 1]
    chain = [] if last is None else _chain(before, answer_names(run))
    basis: Basis = "read"
    printed = None
    if not tree.calls(chain):
        printed = _says_the_answer(view, before)
        basis, chain = "shown", before
        if printed is not None and tree.calls(found := _chain(before[: printed + 1])):
            basis, chain = "printed", found
    calls = tree.calls(chain)
    if not calls:
        return Evidence("code", tuple(chain), (), chain=tuple(chain))
    whole = len(calls) <= COMPARED_WHOLE
    return Evidence(
        basis,
        tuple(cell for cell in chain if tree.calls([cell])),
        _ranked(view, run, calls, whole),
        before[printed] if basis == "printed" and printed is not None else None,
        whole,
        tuple(chain),
    )


class _Tree:
    """Spans by their parents."""

    def __init__(self, spans: Sequence[SpanRow]) -> None:
        self._below: dict[str | None, list[SpanRow]] = {}
        for span in spans:
            self._below.setdefault(span.parent_id, []).append(span)

    def cells(self, run: SpanRow | None) -> list[SpanRow]:
        """The cells of a (child) run itself, in order."""
        iterations = self._below.get(run.span_id, []) if run is not None else []
        return [
            cell for one in iterations for cell in self._below.get(one.span_id, []) if cell.kind == "cell"
        ]

    def calls(self, spans: Iterable[SpanRow]) -> list[SpanRow]:
        """Every sub-call and child run below some spans, in order; a record may hold a circle of parents."""
        found: list[SpanRow] = []
        todo = list(spans)
        seen = {span.span_id for span in todo}
        while todo:
            for child in self._below.get(todo.pop().span_id, []):
                if child.span_id not in seen:
                    seen.add(child.span_id)
                    todo.append(child)
                    if child.kind in ("sub_call", "run"):
                        found.append(child)
        return sorted(found, key=lambda one: one.seq)


def _says_the_answer(view: RunView, cells: Sequence[SpanRow]) -> int | None:
    """The place of the last cell whose output, as the root was shown it, says every value of the answer."""
    wanted = values_of(view.summary.answer or "").keys()
    digests = [_text(cell.attributes.get(sc.STDOUT_SHOWN + ".sha256")) for cell in cells]
    outputs = view.payloads({digest for digest in digests if digest}) if wanted else {}
    says = (
        n
        for n in reversed(range(len(cells)))
        if wanted and wanted <= values_of(outputs.get(digests[n], "")).keys()
    )
    return next(says, None)


def answer_names(run: SpanRow | None) -> frozenset[str]:
    """The variable that a (child) run named as its answer, if it did: the cell that named it read it."""
    named = "" if run is None else _text(run.attributes.get(sc.ANSWER_EXPRESSION))
    return frozenset([named]) if named else frozenset()


def _chain(cells: Sequence[SpanRow], named: frozenset[str] = frozenset()) -> list[SpanRow]:
    """The last of the cells, and those that wrote what it read, and so on back; in their order."""
    needs = reads(cells, named)
    chain, todo = {len(cells) - 1}, [len(cells) - 1]
    while todo:
        new = needs[todo.pop()].keys() - chain
        chain |= new
        todo.extend(new)
    return [cells[number] for number in sorted(chain)]


def reads(cells: Sequence[SpanRow], named: frozenset[str] = frozenset()) -> list[dict[int, list[str]]]:
    """By cell of one run, in order: the places of the earlier ones that last wrote names which it reads, with
    these names. The last cell also reads those `named`.
    """
    writers: dict[str, int] = {}
    found: list[dict[int, list[str]]] = []
    for number, cell in enumerate(cells):
        needs: dict[int, list[str]] = {}
        read = names_of(cell, sc.NAMES_READ) | (named if number == len(cells) - 1 else frozenset())
        for name in sorted(read & writers.keys()):
            needs.setdefault(writers[name], []).append(name)
        found.append(needs)
        writers.update(dict.fromkeys(names_of(cell, sc.NAMES_WRITTEN), number))
    return found


# -- which of them share something with the answer


def _ranked(view: RunView, run: SpanRow | None, spans: Sequence[SpanRow], whole: bool) -> tuple[Support, ...]:
    said = [values_of(text) for text in _responses(view, spans, whole)]
    given = [values_of("\n".join(names)) for names in _documents(view, run, spans)]
    in_said = Counter(value for found in said for value in found)
    in_given = Counter(value for found in given for value in found)
    answer, question = values_of(view.summary.answer or ""), values_of(view.summary.question or "")
    ranked = []
    for span, response, documents in zip(spans, said, given, strict=True):
        common = (
            shared(response, answer, in_said),
            shared(documents, answer, in_given),
            shared(response, question, in_said),
        )
        weights = [sum(1 / share for share in found.values()) for found in common]
        support = Support(
            span,
            *(
                told(found, texts, _NAMED)
                for found, texts in zip(common, (response, documents, response), strict=True)
            ),
        )
        ranked.append((-weights[0] - weights[1], -weights[2], span.seq, support))
    ranked.sort(key=lambda entry: entry[:3])
    return tuple(support for *_, support in ranked)


def _documents(view: RunView, run: SpanRow | None, spans: Sequence[SpanRow]) -> list[list[str]]:
    """Names of the documents from which each call was given text, as far as that is known. Inside a child run
    documents have numbers of their own: there it is not known here."""
    names = _document_names(view, run)
    numbers = (
        _numbers(span.attributes.get(sc.SOURCE_RANGES)) if span.depth <= int(span.kind == "run") else []
        for span in spans
    )
    return [[names[number] for number in found if number < len(names)] for found in numbers]


def _document_names(view: RunView, run: SpanRow | None) -> list[str]:
    digest = "" if run is None else _text(run.attributes.get(sc.CORPUS + ".sha256"))
    try:
        table = json.loads((view.payload(digest) if digest else None) or "{}")
        return [str(document["name"]) for document in table["documents"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []


def _numbers(raw: object) -> list[int]:
    try:
        ranges = json.loads(raw)["ranges"] if isinstance(raw, str) else []
        return [number for number, _, _ in ranges[:_RANGES] if type(number) is int and number >= 0]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []


def _responses(view: RunView, spans: Sequence[SpanRow], whole: bool) -> list[str]:
    """What each call gave back: a response, or the answer of a child run; "" where there is none."""
    prefixes = [sc.ANSWER if span.kind == "run" else sc.RESPONSE for span in spans]
    if not whole:
        return [
            _text(span.attributes.get(prefix + ".preview"))
            for span, prefix in zip(spans, prefixes, strict=True)
        ]
    digests = [
        _text(span.attributes.get(prefix + ".sha256")) for span, prefix in zip(spans, prefixes, strict=True)
    ]
    payloads = view.payloads({digest for digest in digests if digest})
    return [payloads.get(digest, "")[:COMPARED_CHARS] for digest in digests]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
