"""Programs as root models write them, each recorded for real with one wrong reply or cell in it.

All of them count fruit in three documents; the sub-model says 50 pears where there are 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core import RLM, Answer, FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from rlm_core.errors import ModelError
from rlm_core.prompts import last_output, parse_question
from tests.support.scripted import FAST, cell
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording
from traces.trial import Mode, Outcome, Patch, Status
from traces.view import RunView

ROOT, SUB = "openai/root", "openai/sub"
RUN: Final = "20260101T000000-0000000a"
CORPUS: Final = {"a.txt": "apples 3", "b.txt": "pears 5", "c.txt": "plums 9"}
QUESTION: Final = "How many fruits are there?"
TYPED: Final = "TYPE WHAT WAS PRINTED"  # a turn in which the root types the last line that it was shown

ASK: Final = 'replies = llm_batch(["How many?"] * len(documents), documents)'
SUM: Final = "total = sum(int(reply) for reply in replies)"
COUNT: Final = f"{ASK}\n{SUM}\nprint(total)"
END: Final = 'FINAL_VAR("total")'

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A program and what a replay of it must say.

    `cells` are those of the root, turn by turn (`TYPED`, or a text with fences, is a reply as it stands);
    `children` maps the first word of a child's question to the child's cells. `fix` says what is patched and
    with which text: a part of the prompt of a call, else of the question of a child run, else of a cell's
    code. `right` is the answer expected, compared after a patch.
    """

    cells: Cells
    fix: tuple[str, str] | None = ("pears", "5")
    right: str = "17"
    outcome: Outcome = "fixed"
    mode: Mode = "strict"
    status: Status = "replayable"
    limits: Limits = field(default_factory=Limits)
    children: Mapping[str, Cells] = field(default_factory=dict)
    sub: Callable[[Request], Any] | None = None
    occurrence: int = 0  # which of the calls with such a prompt is patched
    forced: str | None = None

    def handler(self, honest: bool = False) -> FunctionLMHandler:
        """Root and sub-model; an honest one reads all that it is asked."""

        async def answer(request: Request) -> Any:
            if request.role == "root":
                return self._turn(request)
            reply = read(request, 5 if honest else 50) if self.sub is None else self.sub(request)
            if isinstance(reply, Exception):
                raise reply
            return reply

        return FunctionLMHandler(answer)

    def _turn(self, request: Request) -> str:
        turn = sum(message.role == "assistant" for message in request.messages)
        cells = self.children.get(parse_question(request.messages).split()[0], self.cells)
        if turn >= len(cells) and self.forced == TYPED:
            return last_output(request.messages[:-1]).strip().splitlines()[-1]
        if turn >= len(cells):
            return self.forced or "I do not know."
        if cells[turn] == TYPED:
            return cell(f"FINAL({last_output(request.messages).strip().splitlines()[-1]})")
        return cells[turn] if "```" in cells[turn] else cell(cells[turn])


def read(request: Request, pears: int) -> str:
    """Adds up the numbers of a prompt, reading so many pears."""
    prompt = request.prompt.replace("pears 5", f"pears {pears}")
    return str(sum(int(number) for number in re.findall(r"\d+", prompt)))


def record(home: Home, program: Program, run_id: str = RUN) -> Answer:
    """One recorded run of a program."""
    with (
        open_recording(home, run_id, {}) as recording,
        RLM(
            ROOT,
            SUB,
            handler=program.handler(),
            limits=program.limits,
            corpora=home.corpora,
            retries=FAST,
        ) as rlm,
    ):
        return rlm.ask(QUESTION, CORPUS, recorder=recording.recorder, run_id=run_id)


def recorded(home: Home, program: Program, run_id: str = RUN) -> tuple[Answer, RunView]:
    """The answer and the record of a run of a program."""
    answer = record(home, program, run_id)
    return answer, load_run(home, run_id)


def patches(view: RunView, program: Program) -> tuple[Patch, ...]:
    """The patch of a program, in its record."""
    if program.fix is None:
        return ()
    needle, text = program.fix
    for key, kind in ((sc.PROMPT, "sub_call"), (sc.QUESTION, "run"), (sc.CODE, "cell")):
        spans = [
            span
            for span in view.spans
            if span.kind == kind and needle in (view.payload(str(span.attributes.get(f"{key}.sha256"))) or "")
        ]
        if spans:
            return (Patch(spans[program.occurrence].span_id, text),)
    raise AssertionError(f"no span holds {needle!r}")


def _twice(request: Request) -> Any:
    return str(3 + request.occurrence)


def _failing(request: Request) -> Any:
    return ModelError("bad_request", "not this one") if "plums" in request.prompt else read(request, 50)


def _vague(request: Request) -> Any:
    return "about five" if "pears" in request.prompt else read(request, 5)


_LOOP: Final = (
    'note = "0"\nfor document in documents:\n    note = llm_query(f"So far {note}, and {document}")\n'
    "FINAL(note)"
)
_LAYERS: Final = 'FINAL(llm_query("Add up: " + " and ".join(replies)))'
_POOL: Final = (
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as pool:\n"
    '    replies = list(pool.map(lambda text: llm_query("How many?", text), documents))'
)
_PARTS: Final = (
    'parts = rlm_query_batched([f"Part {d.name}" for d in documents], [[d] for d in documents])\n'
    "total = sum(int(part) for part in parts)"
)
_PART: Final = ('FINAL(llm_query("How many?", documents[0]))',)
_LENIENT: Final = (
    "total = 0\nfor reply in replies:\n    try:\n        total += int(reply)\n"
    "    except (TypeError, ValueError):\n        pass"
)
_PROSE: Final = f"First I look.\n\n{cell(ASK)}\n\nThen I add up.\n\n{cell(SUM)}"
_QUICK: Final = Limits(cell_seconds=0.3, cell_cpu_seconds=0.3)

PROGRAMS: Final[dict[str, Program]] = {
    "answer by FINAL_VAR": Program((COUNT, END)),
    "answer by FINAL": Program((f"{COUNT}\nFINAL(total)",)),
    "answer by SUBMIT": Program((f"{COUNT}\nSUBMIT(total)",)),
    "answer by the answer variable": Program(
        (COUNT, 'answer["content"] = total\nanswer["ready"] = True'),
    ),
    "typed after reading": Program((COUNT, TYPED), outcome="reached_root"),
    "typed after reading, root asked again": Program((COUNT, TYPED), mode="reask"),
    "thread pool": Program((f"{_POOL}\n{SUM}", END)),
    "thread pool of child runs": Program(
        (f"{_POOL.replace('llm_query', 'rlm_query').replace('How many', 'Count')}\n{SUM}", END),
        children={"Count?": ('FINAL(llm_query("How many?", context))',)},
    ),
    "dependent calls, strict": Program((_LOOP,), ("pears", "8"), outcome="undecided"),
    "dependent calls, recomputed": Program((_LOOP,), ("pears", "8"), mode="recompute"),
    "dependent calls, all asked": Program((_LOOP,), ("pears", "8"), mode="live"),
    "two layers, strict": Program((ASK, _LAYERS), outcome="undecided"),
    "two layers, recomputed": Program((ASK, _LAYERS), mode="recompute"),
    "a call of a child run": Program((_PARTS, END), children={"Part": _PART}),
    "the answer of a child run": Program((_PARTS, END), ("Part b.txt", "5"), children={"Part": _PART}),
    "a child run that types": Program(
        (_PARTS, END),
        outcome="reached_root",
        children={"Part": ('print(llm_query("How many?", documents[0]))', TYPED)},
    ),
    "a child run that types, its root asked again": Program(
        (_PARTS, END),
        mode="reask",
        children={"Part": ('print(llm_query("How many?", documents[0]))', TYPED)},
    ),
    "a child run too deep": Program(
        (f"{COUNT}\nprint(rlm_query('Deep'))", END),
        children={"Deep": ('FINAL(rlm_query("Deeper") or 0)',)},
    ),
    "child runs of a child run": Program(
        ('total = rlm_query("Whole")', END),
        limits=Limits(max_depth=2),
        children={"Whole": (f"{_PARTS}\nFINAL(total)",), "Part": _PART},
    ),
    "equal child runs": Program(
        ('total = sum(int(part) for part in rlm_query_batched(["Whole"] * 2))', END),
        right="79",
        children={"Whole": (f"{COUNT}\nFINAL(total)",)},
    ),
    "a cell that fails": Program((f"{ASK}\n1 / 0", f"{SUM}\n{END}")),
    "a cell that fails in the middle of calls": Program(
        ('first = llm_query("How many?", documents[0])\nfirst.missing', f"{ASK}\n{SUM}\n{END}")
    ),
    "a cell out of memory": Program((f"{ASK}\nx = bytearray(8 << 30)", f"{SUM}\n{END}")),
    "a cell out of time": Program((ASK, "while True: pass", f"{SUM}\n{END}"), limits=_QUICK),
    "a cell out of time after its calls": Program(
        (f"{ASK}\nprint(replies)\nwhile True: pass", f"{ASK}\n{SUM}\n{END}"), limits=_QUICK, occurrence=1
    ),
    "variables of a cell out of time": Program(
        (f"{ASK}\nwhile True: pass", f"{SUM}\n{END}"), None, limits=_QUICK, status="not_replayable"
    ),
    "a reply in a cell out of time": Program(
        (f"{ASK}\nprint(replies)\nwhile True: pass", f"{ASK}\n{SUM}\n{END}"), limits=_QUICK,
        outcome="undecided",
    ),
    "code that ran out of time": Program(
        (f"{ASK}\nwhile True: pass", f"{ASK}\n{SUM}\n{END}"), ("while True", ASK), limits=_QUICK,
        outcome="reached_root",
    ),
    "a worker that died": Program(
        (ASK, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", f"{SUM}\n{END}")
    ),
    "swallowed exceptions": Program((f"{ASK}\n{_LENIENT}", END), sub=_vague),
    "duplicates answered differently": Program(
        ('total = sum(int(r) for r in llm_batch(["How many?"] * 2))', END),
        ("How many?", "3"), right="6", sub=_twice, occurrence=1,
    ),
    "calls refused by the budget": Program(
        (f"{ASK}\n{_LENIENT}", END), right="8", limits=Limits(max_calls=2)
    ),
    "calls that failed": Program((f"{ASK}\n{_LENIENT}", END), right="8", sub=_failing),
    "a forced answer": Program(
        (COUNT,), outcome="reached_root", limits=Limits(max_iterations=1), forced="62"
    ),
    "a forced answer of a child run": Program(
        (f"{_PARTS.replace('int(part)', 'int(str(part)[:2])')}", END),
        children={"Part": ('found = llm_query("How many?", documents[0])',)},
        right="29", fix=("Part b.txt", "5"), limits=Limits(max_iterations=2), forced="12",
    ),
    "cells with prose around them": Program((_PROSE, END)),
    "a turn without a cell": Program(("``` no cell at all", COUNT, END)),
    "a name that is not there": Program((COUNT, 'FINAL_VAR("totl")', END)),
    "output that is cut": Program((f'{COUNT}\nprint("x" * 50_000)', END)),
    "the budget is printed": Program((f"print(budget())\n{COUNT}\nprint(budget())", END)),
    "variables are shown": Program((f"{COUNT}\nprint(SHOW_VARS())", END)),
    "an answer as JSON": Program(
        (
            'found = [llm_query("How many?", d, schema={"type": "object"}) for d in documents]\n'
            "import json\nloads = lambda r: json.loads(r) if isinstance(r, str) else r\n"
            'total = sum(loads(r)["n"] for r in found)', END,
        ),
        ("pears", '{"n": 5}'), sub=lambda request: f'{{"n": {read(request, 50)}}}',
    ),
    "code that is wrong": Program(
        (ASK, "total = sum(int(reply) for reply in replies[1:])", END),
        ("replies[1:]", SUM), right="62",
    ),
    "code that asks too few": Program(
        (f"few = documents[:1]\n{ASK.replace('documents', 'few')}\n{SUM}", END),
        ("few", f"{ASK}\n{SUM}"), mode="recompute",
    ),
    "code that is wrong, asking again": Program(
        (f"few = documents[:1]\n{ASK.replace('documents', 'few')}\n{SUM}", END),
        ("few", f"{ASK}\n{SUM}"), outcome="undecided",
    ),
    "the clock": Program(("import time\nFINAL(time.time_ns())",), None, status="not_replayable"),
    "the order of a set": Program(
        ("FINAL(' '.join({document.name * 3 for document in documents} | set('abcdefgh')))",),
        None, status="seed_dependent",
    ),
    "threads as they come": Program(
        (
            "from concurrent.futures import ThreadPoolExecutor, as_completed\n"
            "with ThreadPoolExecutor(3) as pool:\n"
            '    asked = [pool.submit(llm_query, "How many?", text) for text in documents]\n'
            f"    replies = [one.result() for one in as_completed(asked)]\n{SUM}", END,
        )
    ),
    "an event loop": Program(
        (
            "import asyncio\nasync def every():\n"
            '    calls = [asyncio.to_thread(llm_query, "How many?", text) for text in documents]\n'
            f"    return await asyncio.gather(*calls)\nreplies = asyncio.run(every())\n{SUM}", END,
        )
    ),
    "equal prompts in two cells": Program((ASK, f"{ASK}\n{SUM}", END), occurrence=1),
    "a question back": Program(
        (
            'total = 0\nfor text in documents:\n    reply = llm_query("How many?", text)\n'
            "    if int(reply) > 20:\n"
            '        reply = llm_query(f"You said {reply}: sure?", text)\n    total += int(reply)', END,
        ),
        sub=lambda request: "50" if "sure" in request.prompt else read(request, 50),
    ),
    "files of its own": Program((f"open('note', 'w').write('x')\nprint(open('note').read())\n{COUNT}", END)),
    "code that is none": Program(("def broken(:", COUNT, END)),
    "random bytes of the system": Program(
        ("import uuid\nFINAL(str(uuid.uuid4()))",), None, status="not_replayable"
    ),
    "a forced answer, the root asked again": Program(
        (COUNT,), mode="reask", limits=Limits(max_iterations=1), forced=TYPED
    ),
    "numbers drawn at random": Program(
        ("import random\nFINAL(random.random())",), None, status="seed_dependent"
    ),
}  # fmt: skip
