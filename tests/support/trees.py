"""Seeded trees of about 200 calls: a good and a bad run of the same program, with known culprits.

Everything follows from the seed and the wishes of `plan`: documents, program, faults and noise. The runs are
made by the real engine with a scripted root and sub-model, and recorded into a real home.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Final, Literal

from rlm_core import RLM, Completion, FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from tests.support.tree_models import (
    NAMES,
    PARSED_AS_ZERO,
    VALUES,
    Kind,
    Noise,
    Report,
    Side,
    SubModel,
    Task,
    wrong_value,
)
from tests.support.tree_programs import GROUP, PART, PARTS, Program, Shape, Where
from traces.home import Home
from traces.recording import open_recording
from traces.view import RunView, SpoolRun

Condition = Literal["format", "paraphrase", "layers", "children"]
CONDITIONS: Final[tuple[Condition, ...]] = ("format", "paraphrase", "layers", "children")
ROOT, SUB = "openai/root", "openai/sub"
_LEAVES: Final[dict[Shape, int]] = {"flat": 200, "layers": 186, "children": PART * PARTS}


@dataclass(frozen=True, slots=True)
class Tree:
    """A planned pair of runs. `sub` holds the faults of replies, `program` that of the code."""

    seed: int
    condition: Condition
    reports: tuple[Report, ...]
    sub: SubModel
    program: Program

    @property
    def question(self) -> str:
        """What both runs are asked."""
        return f"What do these reports say of refunds ({self.program.task})?"

    @property
    def documents(self) -> dict[str, str]:
        """The corpus."""
        return {report.name.replace(" ", "-").lower() + ".txt": report.text for report in self.reports}

    def handler(self, side: Side = "live") -> FunctionLMHandler:
        """Root and sub-model of a side; both answer from the request alone."""

        async def answer(request: Request) -> str | Completion:
            if request.role == "root":
                return self.program.reply(side, request)
            return self.sub.reply(side, request.prompt)

        return FunctionLMHandler(answer)


@dataclass(frozen=True, slots=True)
class Pair:
    """What was recorded. `culprits` are spans of the bad run: leaves, summaries and cells."""

    tree: Tree
    good: str
    bad: str
    right: str
    wrong: str
    culprits: frozenset[str]


def plan(
    seed: int,
    condition: Condition = "format",
    culprits: int = 1,
    *,
    typed: bool | None = None,
    cell: bool | None = None,
    kind: Kind = "digit",
    task: Task | None = None,
    size: int | None = None,
) -> Tree:
    """A tree with `culprits` faults that all move the answer, and only together make it wrong as it is.

    `typed`: the root types the answer after reading what was printed (default: by the seed, half of them).
    `cell`: one of the faults is in a cell's code (default: by the seed, a fifth). `kind`: what is wrong with
    faulty leaves. `size`: leaves (default: so that there are about 200 calls).
    """
    rng = random.Random(f"{seed} {condition} {culprits}")
    drawn_typed, drawn_cell = rng.random() < 0.5, rng.random() < 0.2
    typed, cell = drawn_typed if typed is None else typed, drawn_cell if cell is None else cell
    shape: Shape = condition if condition in ("layers", "children") else "flat"
    fault: Where = _faulty_cell(shape, rng) if cell else "none"
    chosen = task or _task(kind, fault, shape, rng)
    reports = _reports(size or _LEAVES[shape], rng)
    program = Program(
        task=chosen,
        shape=shape,
        asking=rng.choice(("batch", "built", "pool")),
        typed=typed,
        typed_children=typed and rng.random() < 0.5,
        clean=rng.random() < 0.5,
        chatty=rng.random() < 0.3,
        prose=rng.random() < 0.3,
        fault=fault,
        faulty_part=rng.randrange(-(-len(reports) // PART)),
    )
    noise: Noise = "paraphrase" if condition == "paraphrase" else "format"
    sub = _with_faults(SubModel(chosen, kind, noise, {}), program, reports, culprits - cell, rng)
    return Tree(seed, condition, reports, sub, program)


def record(home: Home, tree: Tree, side: Side, run_id: str) -> str:
    """One run of a tree, recorded; returns its answer."""
    with (
        open_recording(home, run_id, {}) as recording,
        RLM(ROOT, SUB, handler=tree.handler(side), limits=Limits(), corpora=home.corpora) as rlm,
    ):
        answer = rlm.ask(tree.question, tree.documents, recorder=recording.recorder, run_id=run_id)
    assert answer.stop_reason == "final" and answer.text is not None, answer
    assert recording.problems == 0
    return answer.text


def record_pair(home: Home, tree: Tree) -> Pair:
    """The good and the bad run of a tree."""
    number = random.Random(f"{tree}").getrandbits(24)
    good, bad = (f"20260101T000000-{number:06x}{letters}" for letters in ("aa", "bb"))
    right, wrong = record(home, tree, "good", good), record(home, tree, "bad", bad)
    assert right != wrong, "the planted faults do not move the answer"
    return Pair(tree, good, bad, right, wrong, planted(SpoolRun(home, bad).poll(), tree))


def planted(view: RunView, tree: Tree) -> frozenset[str]:
    """The spans of a bad run in which the faults of its tree are."""
    calls = [span for span in view.spans if span.kind == "sub_call"]
    prompts = view.payloads({str(span.attributes[sc.PROMPT + ".sha256"]) for span in calls})
    found = set()
    for span in calls:
        prompt = prompts[str(span.attributes[sc.PROMPT + ".sha256"])]
        if any(f"Report of {name}:" in prompt for name in tree.sub.faults):
            found.add(span.span_id)
        first = prompt.partition("\n\n")[2].split("\n")[0]
        if any(first.casefold().endswith(f"refunds at {name}".casefold()) for name in tree.sub.miscounted):
            found.add(span.span_id)
    found |= _faulty_cells(view, tree.program)
    assert len(found) == len(tree.sub.faults) + len(tree.sub.miscounted) + (tree.program.fault != "none")
    return frozenset(found)


def _faulty_cells(view: RunView, program: Program) -> set[str]:
    number = {"none": None, "ask": 0, "read": 1, "child": 0}[program.fault]
    cells = [span for span in view.spans if span.kind == "cell" and span.cell == number]
    if program.fault != "child":
        return {span.span_id for span in cells if span.depth == 0}
    children = [span for span in view.spans if span.is_child_run]
    questions = view.payloads({str(span.attributes[sc.QUESTION + ".sha256"]) for span in children})
    wanted = f"Part {program.faulty_part}:"
    (child,) = (
        span.span_id
        for span in children
        if questions[str(span.attributes[sc.QUESTION + ".sha256"])].startswith(wanted)
    )
    return {span.span_id for span in cells if child in _ancestors(view, span.span_id)}


def _ancestors(view: RunView, span_id: str) -> list[str]:
    found = []
    parent = view.by_id[span_id].parent_id
    while parent is not None:
        found.append(parent)
        parent = view.by_id[parent].parent_id
    return found


def _reports(count: int, rng: random.Random) -> tuple[Report, ...]:
    names = rng.sample(NAMES, count)
    return tuple(
        Report(name, rng.randint(100, 999), rng.randint(*VALUES), rng.randint(2, 9)) for name in names
    )


def _task(kind: Kind, fault: Where, shape: Shape, rng: random.Random) -> Task:
    """A task whose answer any fault of this kind can move."""
    if fault == "child" or (fault == "read" and shape == "layers"):
        return "sum"
    if kind in PARSED_AS_ZERO or fault == "ask" or (fault == "read" and shape == "children"):
        return rng.choice(("sum", "over"))
    return rng.choice(("sum", "over", "largest"))


def _faulty_cell(shape: Shape, rng: random.Random) -> Where:
    places: dict[Shape, Sequence[Where]] = {
        "flat": ("ask", "read", "read"),
        "layers": ("read",),
        "children": ("read", "child"),
    }
    return rng.choice(places[shape])


def _with_faults(
    sub: SubModel, program: Program, reports: Sequence[Report], count: int, rng: random.Random
) -> SubModel:
    """Faults in leaves; where notes are clean, the first may be in a summary (of a group with no other)."""
    miscounted: frozenset[str] = frozenset()
    free = list(reports)
    if program.shape == "layers" and program.clean and sub.task == "sum" and count and rng.random() < 0.5:
        group = rng.randrange(len(reports) // GROUP)
        miscounted = frozenset([reports[group * GROUP].name])
        free = [report for index, report in enumerate(reports) if index // GROUP != group]
        count -= 1
    while True:
        faults: dict[str, int] = {}
        errors = [10] * len(miscounted)
        for report in rng.sample(free, len(free)):
            value = wrong_value(sub.kind, sub.task, report, rng)
            if value is not None and len(faults) < count:
                faults[report.name] = value
                errors.append(value - report.refunds)
        assert len(faults) == count, "this kind of fault moves no answer of this task"
        # no two faults may make up for each other: then fewer patches would do
        if sub.task != "sum" or all(sum(some) for some in _subsets(errors)):
            return replace(sub, faults=faults, miscounted=miscounted)


def _subsets(values: Sequence[int]) -> chain[tuple[int, ...]]:
    return chain.from_iterable(combinations(values, size) for size in range(1, len(values) + 1))
