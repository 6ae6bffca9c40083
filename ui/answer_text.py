"""An answer as a document of its own, to be kept or sent: what was asked, what came out, how far to trust it.

Markdown, in which everything that a model, a person or a file wrote stands in code: whoever reads it rendered
sees that text as it is, and no image or link in it is followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traces.imported import asked_words, calls_words
from ui.figures import counted, duration, tokens
from ui.visible import block, line

if TYPE_CHECKING:
    from traces.reading import RunSummary
    from ui.passages import Passage

_TEXT_CHARS: Final = 600  # of one passage


@dataclass(frozen=True, slots=True)
class Cited:
    """A sub-call with its passages. `call` and `why` are in words; `remarks` say what is not known."""

    call: str
    span_id: str
    why: str
    response: str
    passages: Sequence[Passage]
    remarks: Sequence[str]


def answer_markdown(
    run: RunSummary, *, stopped: str, cost: str, trust: Iterable[str], basis: str, cited: Sequence[Cited]
) -> str:
    """The document. `stopped`, `cost`, `trust` and `basis` are sentences as the page shows them."""
    return "\n".join(_lines(run, stopped, cost, trust, basis, cited)) + "\n"


def _lines(
    run: RunSummary, stopped: str, cost: str, trust: Iterable[str], basis: str, cited: Sequence[Cited]
) -> Iterator[str]:
    yield from ("# Question", "", fenced(asked_words(run)), "")
    yield from ("# Answer", "", fenced("There is no answer." if run.answer is None else run.answer), "")
    yield stopped
    yield from (f"- {quoted(sentence)}" for sentence in trust)
    yield from ("", "# How", "")
    yield f"- run: {quoted(run.run_id)}" + (f", {run.started[:19]} UTC" if run.started else "")
    yield f"- root model: {quoted(run.root_model or 'unknown')}"
    yield f"- sub-model: {quoted(run.sub_model or 'unknown')}"
    yield f"- {counted(run.iterations, 'iteration')}, {calls_words(run)}"
    yield f"- tokens: {tokens(run.tokens, run.untold_calls)}"
    yield f"- cost: {cost}, time: {duration(run.seconds)}"
    yield f"- corpus: {quoted(run.corpus_id or 'unknown')}"
    yield from ("", "# Sources", "", basis)
    for number, one in enumerate(cited, 1):
        yield from ("", f"## {number}. {one.call}", "", f"Span {quoted(one.span_id)}. {_code(one.why)}", "")
        yield fenced(one.response or "(no response)")
        yield from (f"- {_code(remark)}" for remark in one.remarks)
        for passage in one.passages:
            yield from (
                "",
                f"{_where(passage)}:",
                "",
                fenced(passage.text[:_TEXT_CHARS] or passage.problem or ""),
            )


def _where(passage: Passage) -> str:
    place = f", {quoted(passage.place)}" if passage.place else ""
    return f"{quoted(passage.document)}{place}, bytes {passage.start:,} to {passage.end:,}"


def _code(sentence: str) -> str:
    return quoted(sentence) if sentence else ""


def fenced(text: str) -> str:
    """Any text as a block of code, in a fence that is longer than every run of backticks in it.

    >>> print(fenced("a ```` b"))
    `````text
    a ```` b
    `````
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{block(text)}\n{fence}"


def quoted(text: str) -> str:
    """Any text as one line of code.

    >>> quoted("a `b` c")
    '`` a `b` c ``'
    """
    shown = line(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    marks = "`" * (longest + 1)
    return f"{marks} {shown} {marks}" if longest else f"`{shown}`"
