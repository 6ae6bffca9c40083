"""The cells that the scripted root of a seeded tree writes, right or with a planted fault in the code."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, Literal

from rlm_core import Request
from rlm_core.prompts import last_output, parse_question
from tests.support.scripted import cell
from tests.support.tree_models import COMBINE, LEAF_PROMPT, LIMIT, Side, Task

Shape = Literal["flat", "layers", "children"]
Asking = Literal["batch", "built", "pool", "loop"]
Where = Literal["none", "ask", "read", "child"]
GROUP: Final = 15  # notes of a summary
PART: Final = 24  # reports of a child run
PARTS: Final = 8
ANSWER: Final = "answer: "

_ASK: Final[dict[Asking, str]] = {
    "batch": "replies = llm_batch([asked] * len(reports), reports)",
    "built": 'replies = llm_batch([f"{asked}\\n\\n{report}" for report in reports])',
    "pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(16) as pool:\n"
        "    replies = list(pool.map(lambda report: llm_query(asked, report), reports))"
    ),
    "loop": "replies = []\nfor report in reports:\n    replies.append(llm_query(asked, report))",
}
_NUMBER: Final = """\
import re
def number(reply):
    found = re.search(r"\\d+", str(reply))
    return int(found.group()) if found else 0"""
_READ: Final[dict[Task, str]] = {
    "sum": "result = sum(values)",
    "over": f"result = ', '.join(name for value, name in zip(values, names) if value > {LIMIT})",
    "largest": "result = '{1}: {0}'.format(*max(zip(values, names)))",
}
_MISREAD: Final[dict[Task, str]] = {
    "sum": "result = sum(values[1:])",
    "over": f"result = ', '.join(name for value, name in zip(values, names) if value > {LIMIT + 10})",
    "largest": "result = '{1}: {0}'.format(*min(zip(values, names)))",
}
_JOIN: Final[dict[Task, str]] = {
    "sum": "result = sum(number(part) for part in parts)",
    "over": "result = ', '.join(str(part) for part in parts if part)",
    "largest": "result = max((str(part) for part in parts), key=number)",
}


@dataclass(frozen=True, slots=True)
class Program:
    """A root: `fault` says in which cell the bad side writes other code, `typed` that it types the answer
    after reading what was printed, `clean` that summaries are given parsed values, not replies as they came,
    `chatty` that replies are printed as they came, `prose` that a typed answer is a sentence.
    """

    task: Task
    shape: Shape
    asking: Asking = "batch"
    typed: bool = False
    typed_children: bool = False
    clean: bool = False
    chatty: bool = False
    prose: bool = False
    fault: Where = "none"
    faulty_part: int = 0

    def reply(self, side: Side, request: Request) -> str:
        """What the root says next, from the messages alone."""
        turn = sum(message.role == "assistant" for message in request.messages)
        part = re.match(r"Part (\d+):", parse_question(request.messages))
        if part is not None:
            cells = self._child(side, int(part[1]))
            typed = self.typed_children
        else:
            cells = self._cells(side)
            typed = self.typed
        if turn < len(cells):
            return cell(cells[turn])
        if not typed:
            return cell('FINAL_VAR("result")')
        printed = last_output(request.messages).partition(ANSWER)[2].split("\n")[0].strip()
        said = f"They say of refunds: {printed}." if self.prose and part is None else printed
        return f"The output says it.\n{cell(f'FINAL({json.dumps(said)})')}"

    def _cells(self, side: Side) -> list[str]:
        slip = self.fault if side == "bad" else "none"
        if self.shape == "children":
            return [_parts(), _joined(self.task, slip == "read")]
        ask = self._asked(slip == "ask")
        if self.shape == "flat":
            return [ask, self._read(slip == "read")]
        return [ask, _summaries(self.task, self.clean, slip == "read"), _top(self.task)]

    def _child(self, side: Side, part: int) -> list[str]:
        slip = side == "bad" and self.fault == "child" and part == self.faulty_part
        return [f"{self._asked(False)}\n{self._read(slip)}"]

    def _asked(self, slip: bool) -> str:
        reports = "documents[1:]" if slip else "documents"
        printed = 'len(replies), "replies", replies[:3]' if self.chatty else 'len(replies), "replies"'
        return f'asked = "{LEAF_PROMPT}"\nreports = {reports}\n{_ASK[self.asking]}\nprint({printed})'

    def _read(self, slip: bool) -> str:
        lines = [
            _NUMBER,
            "values = [number(reply) for reply in replies]",
            'names = [report.split("\\n", 1)[0] for report in documents]',
            (_MISREAD if slip else _READ)[self.task],
            f'print("{ANSWER}" + str(result))',
        ]
        return "\n".join(lines)


def _summaries(task: Task, clean: bool, slip: bool) -> str:
    """Notes of fifteen reports each are combined; by mistake the last group is left out."""
    lines = ["notes = [str(reply) for reply in replies]"]
    if clean:
        names = 'report.split("\\n", 1)[0]'
        notes = (
            f'notes = [f"{{number(reply)}} refunds at {{name}}" for reply, name in '
            f"zip(replies, [{names} for report in reports])]"
        )
        lines = [_NUMBER, notes]
    last = f"len(notes) - {GROUP}" if slip else "len(notes)"
    lines += [
        f'groups = ["\\n".join(notes[i:i + {GROUP}]) for i in range(0, {last}, {GROUP})]',
        f'summaries = llm_batch(["{COMBINE[task]}\\n\\n" + group for group in groups])',
        'print(len(summaries), "summaries")',
    ]
    return "\n".join(lines)


def _top(task: Task) -> str:
    summaries = '"\\n".join(str(summary) for summary in summaries)'
    if task == "sum":  # totals, which have no shop: given as notes again
        summaries = '"\\n".join(f"{str(summary).split()[0]} refunds at these shops" for summary in summaries)'
    return (
        f'result = llm_query("{COMBINE[task]}\\n\\n" + {summaries})\n'
        'lines = str(result).casefold().strip(".! \\n").splitlines()\n'
        'result = "; ".join(" ".join(line.split()) for line in lines)'
        f'\nprint("{ANSWER}" + result)'
    )


def _parts() -> str:
    return (
        f"groups = [documents[i:i + {PART}] for i in range(0, len(documents), {PART})]\n"
        'questions = [f"Part {i}: what do these reports say of refunds?" for i in range(len(groups))]\n'
        'parts = rlm_query_batched(questions, groups)\nprint(len(parts), "parts")'
    )


def _joined(task: Task, slip: bool) -> str:
    first = "parts = parts[1:]\n" if slip else ""
    return f'{_NUMBER}\n{first}{_JOIN[task]}\nprint("{ANSWER}" + str(result))'
