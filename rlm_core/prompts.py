"""What the root model is told. Short, stable, versioned; nothing here depends on the size of the corpus.

The demo root reads these messages back with `parse_question`, `last_output`, `is_final_request` and
`is_summary_request`, so writer and reader stand side by side. What differs from model to model is in
`rlm_core.prompt_families`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rlm_core.lm_handler import Message

PROMPTS_VERSION: Final = "3"
SNIPPET_CHARS: Final = 100_000  # what a sub-call is said to take
_QUESTION: Final = "# Question\n"
_CONTEXT: Final = "\n# Context\n"
_OUTPUT: Final = "# Output\n"
_FINAL: Final = "# Final answer now\n"
_SUM_UP: Final = "\n# Sum up\n"
_SUMMARY: Final = "\n# Summary of your turns 1 to "
_STATUS: Final = "\n("  # the last line of a message: turn and budget

SYSTEM: Final = """\
Answer a question about a context too large to read. You never see it: you write Python cells for a \
persistent REPL and call a sub-model in them to read with understanding. Write one cell per turn between \
```repl and ```, then stop; you are shown its output (cut in the middle if long).
context: a text or a sequence of documents; documents: always the sequence; a document is a str with .name. \
Both have .search(regex), .lines(), .chunks(n, overlap), .top(query, k) for best passages, and .tables \
(CSV, XLSX, JSON as DataFrames by name).
llm_query(prompt, snippet="", schema=None) -> str (with a JSON schema a value that fits): the sub-model sees \
only prompt and snippet (up to 100,000 characters).
llm_batch(prompts, snippets=None, schema=None) -> list: in parallel, in order; prefer it to loops.
rlm_query(prompt, context=None): a child run with its own REPL.
A failed sub-call is a falsy SubCallError, no str. budget() and SHOW_VARS() return what is left and \
defined. numpy, pandas, scipy, sympy are there.
End inside a cell: FINAL(value), FINAL_VAR("name"), or answer["content"] = value; answer["ready"] = True. \
Text outside cells is no answer.
Example, "Which contracts renew?":
```repl
asked = "Does it renew automatically? Begin with yes or no, then quote the clause."
replies = llm_batch([asked] * len(documents), documents)
yes = [d.name for d, r in zip(documents, replies) if r and r.lower().startswith("yes")]
print(len(yes), [r for r in replies if not r], replies[:2])
```
Next turn, if it looks right: FINAL(yes). Look first, use every document it is about, check before \
you end. If a part makes sense only after those before it (a story, a log), carry notes:
```repl
notes = "none"
for part in context.chunks(40_000):
    reply = llm_query(f"Notes so far: {notes}. Rewrite them with what this part adds.", part)
    notes = reply or print(reply) or notes
```
"""
#: For a small window: the same contract in fewer words.
SHORT_SYSTEM: Final = """\
Answer a question about a context you never see: write Python cells for a persistent REPL, one per turn \
between ```repl and ```, then stop; you are shown what it printed. Print little: your window is small.
context: a text or a sequence of documents; documents: always the sequence (str with .name). Both have \
.search(regex), .lines(), .chunks(n, overlap), .top(query, k), .tables.
llm_query(prompt, snippet="") -> str and llm_batch(prompts, snippets=None) -> list ask a sub-model, which \
sees only prompt and snippet (up to 100,000 characters). A failed call is a falsy SubCallError.
rlm_query(prompt, context=None): a child run; budget(), SHOW_VARS(): what is left, what is defined.
End inside a cell with FINAL(value) or FINAL_VAR("name"). Text outside cells is never an answer.
Example, "Which contracts renew automatically?":
```repl
replies = llm_batch(["Does it renew automatically? Begin with yes or no."] * len(documents), documents)
yes = [d.name for d, r in zip(documents, replies) if r and r.lower().startswith("yes")]
print(len(yes), yes[:3], [r for r in replies if not r][:3])
```
and in the next turn: FINAL(yes). Where a part makes sense only after those before it, loop over \
context.chunks(n) and give each call the notes of the one before. Check before you end.
"""


def opening(
    question: str, context_description: str, budget: str, system: str = SYSTEM
) -> tuple[Message, ...]:
    """The messages a (child) run starts with; `system` is that of the root's family."""
    return (
        Message("system", system),
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


def summary_request(shown: Message, words: int) -> Message:
    """The last message before a summary, with the wish for one: a root call beside the turns."""
    return Message(
        shown.role,
        f"{shown.content}{_SUM_UP}Your window is nearly full. What you write now takes the place of your "
        "turns so far; question and context stay as they are, and so does the REPL with all its variables. "
        f"Write plain text of at most {words:,} words: what was found (figures, names, quotes and which "
        "variables hold them), what failed, what is left to do. No code is run.\n",
    )


def with_summary(first: Message, summary: str, turns: int) -> Message:
    """The message with the question, with a summary that stands for the first turns."""
    told = f"{_SUMMARY}{turns:,}\n{summary}\n(What those turns defined is still there: SHOW_VARS() lists it.)"
    return Message(first.role, first.content + told)


def turns_so_far(messages: Sequence[Message]) -> int:
    """How many turns the root has had: those that are there, and those that a summary stands for."""
    first = next((m.content for m in messages if m.role == "user"), "")
    number = first.rpartition(_SUMMARY)[2].partition("\n")[0] if _SUMMARY in first else "0"
    folded = int(number.replace(",", "")) if re.fullmatch(r"[0-9,]{1,15}", number) else 0
    return folded + sum(m.role == "assistant" for m in messages)


def is_summary_request(messages: Sequence[Message]) -> bool:
    """Whether the root is being asked to sum up its turns."""
    last = messages[-1].content if messages else ""
    return _SUM_UP in last and last.endswith(" No code is run.\n")


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
