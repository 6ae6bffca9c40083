"""What the root model is told. Short, stable, versioned; nothing here depends on the size of the corpus.

The demo root reads these messages back with `parse_question`, `last_output` and `is_final_request`, so writer
and reader stand side by side.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rlm_core.lm_handler import Message

PROMPTS_VERSION: Final = "2"
_QUESTION: Final = "# Question\n"
_CONTEXT: Final = "\n# Context\n"
_OUTPUT: Final = "# Output\n"
_FINAL: Final = "# Final answer now\n"
_STATUS: Final = "\n("  # the last line of a message: turn and budget

SYSTEM: Final = """\
Answer a question about a context too large to read. You never see it: you write Python cells for a \
persistent REPL and call a sub-model from the code for all that needs reading with understanding. Write one \
cell per turn between ```repl and ```, then stop; you are shown what it printed (long output is cut in the \
middle).
In the REPL:
context: a text, or a sequence of documents; documents: always the sequence; a document is a str with .name \
(a huge one acts like a str). Both have .search(regex), .lines(), .chunks(n, overlap), .top(query, k) for \
the best passages, and .tables (CSV, XLSX, JSON as DataFrames by name).
llm_query(prompt, snippet="") -> str: the sub-model sees only prompt and snippet (up to 100,000 characters).
llm_batch(prompts, snippets=None) -> list: many in parallel, in order; prefer it to loops.
rlm_query(prompt, context=None): a child run with a REPL of its own.
A failed sub-call is a falsy SubCallError, never a str. budget() and SHOW_VARS() return what is left and \
defined. numpy, pandas, scipy, sympy can be imported.
End inside a cell: FINAL(value), FINAL_VAR("name"), or answer["content"] = value; answer["ready"] = True. \
Text outside cells is never an answer.
Example, "Which contracts renew automatically?":
```repl
asked = "Does this contract renew automatically? Begin with yes or no, then quote the clause."
replies = llm_batch([asked] * len(documents), documents)
yes = [d.name for d, r in zip(documents, replies) if r and r.lower().startswith("yes")]
print(len(yes), [r for r in replies if not r], replies[:2])
```
and in the next turn, once that looks right: FINAL(yes). Look first, use every document the question is \
about, check before you end.
"""


def opening(question: str, context_description: str, budget: str) -> tuple[Message, ...]:
    """The messages a (child) run starts with."""
    return (
        Message("system", SYSTEM),
        Message("user", f"{_QUESTION}{question}\n{_CONTEXT}{context_description}{_STATUS}{budget})"),
    )


def cell_output(parts: Sequence[str], budget: str) -> Message:
    """What the root sees after its cells ran (or why nothing ran)."""
    return Message("user", _OUTPUT + "\n".join(parts) + f"{_STATUS}{budget})")


def final_request(reason: str) -> Message:
    """The one extra call after a limit: asks for the best answer as plain text."""
    return Message(
        "user",
        f"{_FINAL}{reason} No more cells will run. Reply with your best answer as plain text only, from what "
        "you have seen; if you cannot answer, say in one sentence what is missing.\n",
    )


def parse_question(messages: Sequence[Message]) -> str:
    """The question of a run, read back from its first user message."""
    first = next((m.content for m in messages if m.role == "user"), "")
    body = first.removeprefix(_QUESTION)
    return body.split("\n" + _CONTEXT, 1)[0].strip()


def last_output(messages: Sequence[Message]) -> str:
    """What the last cell printed as the root was shown it, without headings; "" before the first cell."""
    last = messages[-1].content if messages else ""
    if not last.startswith(_OUTPUT):
        return ""
    return last.removeprefix(_OUTPUT).rpartition(_STATUS)[0]


def is_final_request(messages: Sequence[Message]) -> bool:
    """Whether the root is being asked for its forced answer."""
    return bool(messages) and messages[-1].content.startswith(_FINAL)


def cut_middle(text: str, limit: int) -> str:
    """Head and tail of a long text, with the true length said in the middle."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n{left_out(len(text) - 2 * half, len(text))}\n{text[-half:]}"


def left_out(chars: int, total: int) -> str:
    """The line that stands where a text was cut."""
    return f"[... {chars:,} of {total:,} characters left out ...]"


_FENCE_RUN: Final = re.compile(r"`{3,}|~{3,}")


def fence(text: str, tag: str = "") -> str:
    """A code fence longer than any fence inside the text, so that printed fences cannot end it."""
    longest = max((len(m) for m in _FENCE_RUN.findall(text)), default=2)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{tag}\n{text}\n{marks}"
