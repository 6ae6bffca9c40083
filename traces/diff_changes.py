"""What is not the same in two spans that belong together: the prompt, the response, the code, the output.

What is compared: prompts and responses by their normal form (`rlm_core.normalise`), or byte for byte (`raw`);
an output as the root was shown it, always by its normal form; beside a run of another engine, which shows
outputs in its own way, what was printed. What a failed call said is its kind of error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from rlm_core import semconv as sc
from traces.align import Alignment
from traces.align_keys import Side, asked, code, text
from traces.rows import SpanRow

Change = Literal["prompt", "response", "code", "output", "status"]
_TEXT_OF: Final = {"run": sc.ANSWER}  # of any other kind than a cell: the response
_CALLS: Final = ("sub_call", "run", "root_call")
_Pair = tuple[SpanRow, SpanRow]
#: Whether two things are equal; None: the record lacks one; "read": only the texts can tell.
_Facts = dict[Change, bool | Literal["read"] | None]


class Changes(NamedTuple):
    """What differs between two spans, and what cannot be told because the record lacks it."""

    differing: frozenset[Change]
    unknown: frozenset[Change]


_NONE: Final = Changes(frozenset(), frozenset())


def changes(alignment: Alignment, *, raw: bool) -> dict[str, Changes]:
    """The changes of every pair, by the id of its span in the first run."""
    a, b = alignment.sides
    pairs = [(a.nodes[one].span, b.nodes[other].span) for one, (other, _) in alignment.of_a.items()]
    facts = {one.span_id: _facts(one, other, raw) for one, other in pairs}
    places: tuple[tuple[Change, str | None], ...] = (
        ("prompt", sc.PROMPT),
        ("response", None),
        ("output", None),
    )
    for name, prefix in places:
        unsure = [pair for pair in pairs if facts[pair[0].span_id].get(name) == "read"]
        same = _same_texts(unsure, (a, b), prefix)
        # a prompt without its text is known by its hash alone
        lost = False if name == "prompt" else None
        for one, _ in unsure:
            facts[one.span_id][name] = same.get(one.span_id, lost)
    return {span_id: _changes(found) for span_id, found in facts.items()}


def _changes(facts: _Facts) -> Changes:
    if all(equal is True for equal in facts.values()):
        return _NONE
    return Changes(
        frozenset(name for name, equal in facts.items() if equal is False),
        frozenset(name for name, equal in facts.items() if equal is None),
    )


def _facts(a: SpanRow, b: SpanRow, raw: bool) -> _Facts:
    """What is equal in two spans, as far as hashes and endings tell."""
    same_ending = _ending(a) == _ending(b)
    facts: _Facts = {"status": same_ending}
    if a.kind == "cell":
        facts["code"] = _equal(code(a), code(b))
        facts["status"] = same_ending and text(a, sc.EXCEPTION_TYPE) == text(b, sc.EXCEPTION_TYPE)
        facts["output"] = _same_output(a, b)
    elif a.kind in _CALLS:
        if a.kind != "root_call":
            facts["prompt"] = _same_prompt(a, b, raw)
        both = a.status == "ok" and b.status == "ok"
        facts["response"] = _same_response(a, b, raw) if both else same_ending
    return facts


def _same_prompt(a: SpanRow, b: SpanRow, raw: bool) -> bool | Literal["read"] | None:
    by_text = a.kind == "sub_call"
    if a.kind == "run" and foreign(a, b):  # each engine has its own form of what it gave to read
        equal, by_text = _equal(*_hashes(a, b, sc.QUESTION)), True
        if equal and a.is_child_run and _equal(*_hashes(a, b, sc.CHILD_CONTEXT)) is not True:
            equal = True if _hashes(a, b, sc.CHILD_CONTEXT) == (None, None) else None
    else:
        equal = _equal(asked(a), asked(b))
        if equal and _equal(text(a, sc.CORPUS_ID), text(b, sc.CORPUS_ID)) is False:
            equal = False  # of a child run that reads the corpus of its caller
    return "read" if equal is False and by_text and not raw else equal


def _same_output(a: SpanRow, b: SpanRow) -> bool | Literal["read"] | None:
    one, other = _made(a, b)
    if one is not None and one == other:
        return True
    if None in (a.end_ns, b.end_ns) or (None in (one, other) and foreign(a, b)):
        return None if None in (one, other) else "read"
    if one is None or other is None:  # a cell that printed nothing has no output
        return one == other
    return "read"


def _same_response(a: SpanRow, b: SpanRow, raw: bool) -> bool | Literal["read"] | None:
    one, other = _made(a, b)
    if raw or (one is not None and one == other):
        return _equal(one, other)
    equal = _equal(text(a, sc.RESPONSE_NORM_HASH), text(b, sc.RESPONSE_NORM_HASH))
    return "read" if equal is None and one is not None and other is not None else equal


def _same_texts(pairs: Sequence[_Pair], sides: tuple[Side, Side], prefix: str | None) -> Mapping[str, bool]:
    """Whether the texts of pairs are equal once normalised, by the first span's id; without those that a
    record lacks. The text is the one with this prefix, or what the span made.
    """
    if not pairs:
        return {}
    forms = [
        side.forms({pair[0].span_id: _hashes(*pair, prefix)[place] for pair in pairs})
        for place, side in enumerate(sides)
    ]
    return {name: form == forms[1][name] for name, form in forms[0].items() if name in forms[1]}


def _made(a: SpanRow, b: SpanRow) -> tuple[str | None, str | None]:
    """The hashes of what two spans made."""
    if a.kind == "cell":
        return _hashes(a, b, sc.STDOUT if foreign(a, b) else sc.STDOUT_SHOWN)
    return _hashes(a, b, _TEXT_OF.get(a.kind, sc.RESPONSE))


def _hashes(a: SpanRow, b: SpanRow, prefix: str | None) -> tuple[str | None, str | None]:
    if prefix is None:
        return _made(a, b)
    prefix = sc.QUESTION if prefix == sc.PROMPT and a.kind == "run" else prefix
    return text(a, prefix + ".sha256"), text(b, prefix + ".sha256")


def foreign(a: SpanRow, b: SpanRow) -> bool:
    """Whether another engine made one of them."""
    return a.trust is not None or b.trust is not None


def _ending(span: SpanRow) -> tuple[str, str | None]:
    return span.status, span.error_type if span.status != "ok" else None


def _equal(one: str | None, other: str | None) -> bool | None:
    return None if one is None or other is None else one == other
