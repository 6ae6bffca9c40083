"""`demo/root` where it is shown texts, or has no sub-model: the strategies of `rlm_core.strategies`.

It answers lookups, and sums up, by the rules of `demo/sub`; what can be counted in code it counts in code.
For everything else it says that it has no rule: a rule that guessed would make one strategy look worse than
another. No language model is involved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rlm_core import demo_cells as cells
from rlm_core import demo_root, demo_sub, prompts
from rlm_core.demo_lookup import share_of
from rlm_core.demo_plans import Plan
from rlm_core.demo_question import read_question
from rlm_core.lm_handler import Message
from rlm_core.strategies import words

NO_RULE: Final = "The demo model has no rule to answer this question by reading alone."
_NEEDS_A_SUB_MODEL: Final = "the demo model can answer this question only where it may ask a sub-model"
NOT_FOUND: Final = "not found"
_NOTHING: Final = "(nothing yet)"
_MOST_LINES: Final = 20  # of a summary
_BLOCK: Final = 4_000
_HEADING: Final = re.compile(r"^=== \[\d+\] (.*) ===$", re.M)
_SUMMARISING: Final = words.SUMMARISE[:80]
_SHOW: Final = """\
for passage in documents.top(@question@, 5):
    print(f"=== [{passage.document}] {passage.name} ===\\n{passage}\\n")
"""


def reply(messages: Sequence[Message]) -> str | None:
    """The root's next reply by one of those strategies; None where the run is an RLM's."""
    system, question = messages[0].content, prompts.parse_question(messages)
    body = messages[1].content if len(messages) > 1 else ""
    if system.startswith(words.READ):
        return _answer(question, body.partition("\n# Context\n")[2])
    if system.startswith(_SUMMARISING):
        return _summarise(question, *words.summary_and_part(body))
    if system.startswith(words.ANSWER):
        return _from_summary(question, words.summary_and_part(body)[0])
    if system in (words.NO_SUBCALLS, words.CODEACT):
        return _cells(messages, question)
    return None


def _is_lookup(plan: Plan) -> bool:
    return any(code == cells.LOOKUP_BEST for _, code in plan.steps)


def _is_summary(plan: Plan) -> bool:
    return any(code == cells.SUMMARISE for _, code in plan.steps)


# -- reading


def _answer(question: str, texts: str) -> str:
    """The answer that the texts of one request give."""
    plan = demo_root.plan_for(question)
    if _is_lookup(plan):
        return _best(_found(question, texts), question)
    if _is_summary(plan):
        return " ".join(_summed_up(texts))
    return NO_RULE


def _documents(texts: str) -> list[tuple[str, str]]:
    """Name and text of each document; what stands before the first heading belongs to none."""
    parts = _HEADING.split(texts)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def _blocks(text: str) -> list[str]:
    """Whole lines, some 4,000 characters together: the rules take their time over longer texts."""
    blocks, size = [""], 0
    for line in text.splitlines(keepends=True):
        if size > _BLOCK:
            blocks.append("")
            size = 0
        blocks[-1] += line
        size += len(line)
    return blocks


def _found(question: str, texts: str) -> list[str]:
    """What each document says of a lookup, as `demo/sub` replies: `value | "sentence"`."""
    key = " ".join(read_question(question).key)
    asked = [
        f"Answer from the text only.\nQuestion: {question}\nKey: {key}\nDocument: {name}\nText:\n{text}"
        for name, text in _documents(texts)
        for text in _blocks(text)
    ]
    replies = (demo_sub.reply(prompt).text for prompt in asked)
    return [text for text in dict.fromkeys(replies) if " | " in text]


def _summed_up(texts: str) -> list[str]:
    return [demo_sub.reply(f"Summarise.\nText:\n{text}").text for _, text in _documents(texts)]


def _best(found: Sequence[str], question: str) -> str:
    """The value whose sentence shares most words with the question, sure ones first."""
    asked = read_question(question)
    wanted = (*asked.key, *asked.words)

    def order(said: str) -> tuple[bool, float]:
        return said.startswith(demo_sub.UNSURE), -share_of(wanted, said.partition(" | ")[2])

    ranked = sorted(found, key=order)
    if not ranked:
        return NOT_FOUND
    unsure = ranked[0].startswith(demo_sub.UNSURE)
    values = dict.fromkeys(
        said.removeprefix(demo_sub.UNSURE).partition(" | ")[0]
        for said in ranked
        if said.startswith(demo_sub.UNSURE) == unsure
    )
    value = next(iter(values))
    if unsure:
        return f"{value} (unsure: no text says it plainly)"
    return value if len(values) == 1 else f"{value} (unsure: {len(values)} different values were found)"


# -- a running summary


def _summarise(question: str, summary: str, part: str) -> str:
    """The summary with what one more part says."""
    before = [] if summary == _NOTHING else summary.splitlines()
    plan = demo_root.plan_for(question)
    if _is_lookup(plan):
        lines = [*before, *_found(question, part)]
        return "\n".join(list(dict.fromkeys(lines))[:_MOST_LINES]) or _NOTHING
    if _is_summary(plan):
        lines = [
            *before,
            *(demo_sub.reply(f"Summarise.\nText:\n{text}").text for _, text in _documents(part)),
        ]
        return "\n".join(lines[:_MOST_LINES])
    return NO_RULE


def _from_summary(question: str, summary: str) -> str:
    plan = demo_root.plan_for(question)
    if _is_lookup(plan):
        return _best([line for line in summary.splitlines() if " | " in line], question)
    return " ".join(summary.splitlines()) if _is_summary(plan) else NO_RULE


# -- cells without sub-calls


def _cells(messages: Sequence[Message], question: str) -> str | None:
    """The next cell; None where the plan of `demo/root` makes no sub-calls anyway."""
    plan = demo_root.plan_for(question)
    turn = sum(message.role == "assistant" for message in messages)
    if turn == 0 or prompts.is_final_request(messages) or not any("llm_" in code for _, code in plan.steps):
        return None
    if not _is_lookup(plan):
        return _turn("I have no sub-model to read these texts with.", _unsure(NO_RULE, _NEEDS_A_SUB_MODEL))
    if turn == 1:
        return _turn("I look at the closest passages.", cells.fill(_SHOW, question=question))
    value, _, why = _answer(question, prompts.last_output(messages)).partition(" (unsure: ")
    last = _unsure(value, why.removesuffix(")")) if why else f"FINAL({value!r})"
    return _turn("The passages say it; I type it in.", last)


def _unsure(value: str, why: str) -> str:
    lines = (f'answer["content"] = {value!r}', 'answer["confidence"] = "low"', f'answer["note"] = {why!r}')
    return "\n".join([*lines, 'answer["ready"] = True'])


def _turn(prose: str, code: str) -> str:
    return f"{prose}\n\n{prompts.fence(code.rstrip(), 'repl')}"
