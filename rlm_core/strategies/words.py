"""What the root is told by the strategies that are not the RLM itself. Short, stable, versioned.

`rlm_core.demo_reading` reads these messages back, so a change here is a change there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rlm_core.lm_handler import Message
from rlm_core.telemetry import as_json

VERSION: Final = "1"
_SUMMARY: Final = "# Summary so far\n"
_STATUS: Final = "\n("  # with which the last line of an opening begins, see `rlm_core.prompts`
_PART: Final = "\n\n# Next part"

READ: Final = """\
Answer a question from the texts that you are given with it, and from them alone. A line \
=== [number] name === stands before each text. Reply with the answer as plain text only, as short as the \
question allows. If the texts do not hold the answer, say so in one sentence.
"""

SUMMARISE: Final = """\
A question is to be answered from texts that are too long to be read at once. You read them part by part, \
and keep nothing but a summary. Reply with the new summary only, as plain text: what the summary so far says \
and what the next part adds, as far as it may help to answer the question: names, figures, counts, quotes, \
each with the document it is from. Carry every count on. At most {chars:,} characters.
"""

ANSWER: Final = """\
Answer a question from a summary that was made, part by part, of texts too long to be read at once. Rely on \
the summary alone. Reply with the answer as plain text only, as short as the question allows. If the summary \
does not hold the answer, say so in one sentence.
"""

_REPL: Final = """\
In the REPL:
context: a text, or a sequence of documents; documents: always the sequence; a document is a str with .name \
(a huge one acts like a str). Both have .search(regex), .lines(), .chunks(n, overlap), .top(query, k) for \
the best passages by BM25, and .tables (CSV, XLSX, JSON as DataFrames by name).
There is no sub-model: what needs reading with understanding you print, and read yourself.
budget() and SHOW_VARS() return what is left and defined. numpy, pandas, scipy, sympy can be imported.
End inside a cell: FINAL(value), FINAL_VAR("name"), or answer["content"] = value; answer["ready"] = True. \
Text outside cells is never an answer.
"""

_CELLS: Final = """\
Write one cell per turn between ```repl and ```, then stop; you are shown what it printed (long output is \
cut in the middle).
"""

NO_SUBCALLS: Final = f"""\
Answer a question about a context too large to read. You never see it: you write Python cells for a \
persistent REPL. {_CELLS}{_REPL}\
Look first, use every document the question is about, check before you end.
"""

CODEACT: Final = f"""\
Answer a question by acting in turns: think in a sentence, write a Python cell, read what it printed, and go \
on until you know the answer. The texts are in a persistent REPL, behind a search engine. {_CELLS}{_REPL}\
Example, "Who signed the Bergen contract?":
```repl
for p in context.top("Bergen contract signed", 5):
    print(f"[{{p.document}}] {{p.name}}:", p)
```
and in the next turn, once a passage says it: FINAL("Ines Duarte"). Search again in other words when the \
passages do not say it.
"""

FEWER: Final = "{shown} of {wanted} passages were shown: more do not fit into the root's window"
PASSAGES: Final = "\n\n# Passages that fit the question best\n"


MISFIT: Final = (
    "# Answer again\nThis does not fit the JSON schema of the answer: {problem}. Reply with the whole answer "
    "as JSON that fits, and with nothing else."
)


def with_schema(messages: Sequence[Message], schema: Mapping[str, Any]) -> tuple[Message, ...]:
    """Messages that ask for an answer, with the schema that this has to fit."""
    system, *others = messages
    told = "Not plain text: reply with JSON that fits this JSON schema, and with nothing else:\n"
    return (replace(system, content=f"{system.content}{told}{as_json(schema)}\n"), *others)


def with_passages(opening: Message, text: str) -> Message:
    """The first message of an RLM with passages in it, before its last line: turn and budget."""
    body, status, line = opening.content.rpartition(_STATUS)
    return replace(opening, content=f"{body}{PASSAGES}{text}{status}{line}")


def reading(question: str, texts: str) -> tuple[Message, ...]:
    """The one request of a strategy that reads texts and answers."""
    return _ask(READ, f"# Question\n{question}\n\n# Context\n{texts}")


def summarising(system: Message, question: str, summary: str, left: int, text: str) -> tuple[Message, ...]:
    """One part to be taken into a summary; `left` characters of the corpus come after it."""
    after = f"{left:,} characters come after it" if left else "it is the last one"
    body = f"{_SUMMARY}{summary or '(nothing yet)'}{_PART} ({after})\n{text}"
    return (system, Message("user", f"# Question\n{question}\n\n# Context\n{body}"))


def answering(question: str, summary: str) -> tuple[Message, ...]:
    """The request for the answer once all was read, or no more can be."""
    return _ask(ANSWER, f"# Question\n{question}\n\n# Context\n{_SUMMARY}{summary or '(nothing)'}")


def summary_and_part(content: str) -> tuple[str, str]:
    """Summary and part, read back from what `summarising` wrote; the part is "" in what `answering` wrote."""
    body = content.partition("\n\n# Context\n" + _SUMMARY)[2]
    summary, _, part = body.partition(_PART)
    return summary, part.partition("\n")[2]


def _ask(system: str, content: str) -> tuple[Message, ...]:
    return (Message("system", system), Message("user", content))
