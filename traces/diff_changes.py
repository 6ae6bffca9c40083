"""What is not the same in two spans that belong together: the prompt, the response, the code, the output.

What is compared: prompts and responses by their normal form (`rlm_core.normalise`), or byte for byte (`raw`);
an output as the root was shown it, always by its normal form. What a failed call said is its kind of error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from rlm_core import semconv as sc
from traces.align import Alignment
from traces.align_keys import Side, asked, code, text
from traces.rows import SpanRow

Change = Literal["prompt", "response", "code", "output", "status"]
_TEXT_OF = {"run": sc.ANSWER, "cell": sc.STDOUT_SHOWN}  # of any other kind: the response
_MADE: Final = ("sub_call", "run", "root_call", "cell")
_Pair = tuple[SpanRow, SpanRow]


class Changes(NamedTuple):
    """What differs between two spans, and what cannot be told because the record lacks it."""

    differing: frozenset[Change]
    unknown: frozenset[Change]


def changes(alignment: Alignment, *, raw: bool) -> dict[str, Changes]:
    """The changes of every pair, by the id of its span in the first run."""
    a, b = alignment.sides
    pairs = [(a.nodes[one].span, b.nodes[other].span) for one, (other, _) in alignment.of_a.items()]
    made = _same_texts([pair for pair in pairs if _by_text(*pair, raw=raw)], (a, b))
    asked_else = [
        pair for pair in pairs if not raw and pair[0].kind == "sub_call" and asked(pair[0]) != asked(pair[1])
    ]
    prompts = _same_texts(asked_else, (a, b), sc.PROMPT)
    return {
        one.span_id: _changes(one, other, made.get(one.span_id), prompts.get(one.span_id), raw)
        for one, other in pairs
    }


def _changes(a: SpanRow, b: SpanRow, made: bool | None, prompt: bool | None, raw: bool) -> Changes:
    """`made` and `prompt` say whether those texts are equal, where they had to be read to know."""
    facts: dict[Change, bool | None] = {"status": _ending(a) == _ending(b)}
    if a.kind in ("sub_call", "run"):
        facts["prompt"] = prompt or _equal(asked(a), asked(b))
    if a.kind == "cell":
        facts["code"] = _equal(code(a), code(b))
        facts["status"] = text(a, sc.EXCEPTION_TYPE) == text(b, sc.EXCEPTION_TYPE) and facts["status"]
    if a.kind in _MADE:
        told = made if _by_text(a, b, raw=raw) else _same_made(a, b, raw)
        facts["output" if a.kind == "cell" else "response"] = told
    return Changes(
        frozenset(name for name, equal in facts.items() if equal is False),
        frozenset(name for name, equal in facts.items() if equal is None),
    )


def _same_made(a: SpanRow, b: SpanRow, raw: bool) -> bool | None:
    """Whether two spans made the same, as far as hashes and endings tell."""
    if a.kind != "cell" and (a.status != "ok" or b.status != "ok"):
        return _ending(a) == _ending(b)
    one, other = _hash(a), _hash(b)
    if a.kind == "cell" and None not in (a.end_ns, b.end_ns) and (one is None or other is None):
        return one == other  # a cell that printed nothing has no output
    if (raw and a.kind != "cell") or (one is not None and one == other):
        return _equal(one, other)
    return _equal(text(a, sc.RESPONSE_NORM_HASH), text(b, sc.RESPONSE_NORM_HASH))


def _by_text(a: SpanRow, b: SpanRow, *, raw: bool) -> bool:
    """Whether only the texts can tell: the hashes differ and the hashes of normal forms are not there."""
    one, other = _hash(a), _hash(b)
    if a.kind not in _MADE or (raw and a.kind != "cell") or one is None or other is None or one == other:
        return False
    if a.kind != "cell" and (a.status != "ok" or b.status != "ok"):
        return False
    return None in (text(a, sc.RESPONSE_NORM_HASH), text(b, sc.RESPONSE_NORM_HASH))


def _same_texts(
    pairs: Sequence[_Pair], sides: tuple[Side, Side], prefix: str | None = None
) -> dict[str, bool]:
    """Whether the texts of pairs are equal once normalised, by the first span's id; without those that a
    record lacks. The text is what the span made, or the one with this prefix.
    """
    forms = [
        side.forms({pair[0].span_id: _hash(pair[n], prefix) for pair in pairs})
        for n, side in enumerate(sides)
    ]
    return {name: form == forms[1][name] for name, form in forms[0].items() if name in forms[1]}


def _hash(span: SpanRow, prefix: str | None = None) -> str | None:
    return text(span, (prefix or _TEXT_OF.get(span.kind, sc.RESPONSE)) + ".sha256")


def _ending(span: SpanRow) -> tuple[str, str | None]:
    return span.status, span.error_type if span.status != "ok" else None


def _equal(one: str | None, other: str | None) -> bool | None:
    return None if one is None or other is None else one == other
