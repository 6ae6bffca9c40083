"""Runs for tests of comparisons, written as plans: cells with their code, output and calls."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from rlm_core.telemetry import sha256_text
from tests.traces.records import body, end, fin, header, home_in, start, write_spool
from traces.view import RunView, SpoolRun


@dataclass
class Call:
    """A sub-call; `reply` None is a call that failed."""

    prompt: str
    reply: str | None = "yes"
    line: int | None = 1
    ranges: Sequence[Sequence[int]] = ()
    given: bool = True
    hashed: bool = True
    template: str | None = None


@dataclass
class Child:
    """A child run."""

    question: str
    answer: str | None
    cells: Sequence[Cell] = ()


@dataclass
class Cell:
    """An iteration of one cell; `batch` puts its calls into one."""

    code: str
    calls: Sequence[Call | Child] = ()
    output: str = ""
    batch: bool = False


@dataclass
class Writer:
    """Turns plans into the records of a spool."""

    records: list[dict[str, Any]] = field(default_factory=list)
    number: int = 0

    def text(self, prefix: str, text: str) -> dict[str, Any]:
        self.records.append(body(text))
        return {f"{prefix}.sha256": sha256_text(text), f"{prefix}.chars": len(text)}

    def span(self, kind: str, parent: str | None, facts: dict[str, Any]) -> str:
        self.number += 1
        span_id = f"{self.number:016x}"
        self.records.append(start(span_id, parent, kind, a=facts))
        return span_id

    def run(self, cells: Sequence[Cell], answer: str | None, question: str, parent: str | None) -> None:
        facts = {sc.CORPUS_ID: "c", **self.text(sc.QUESTION, question), sc.PROMPT_HASH: sha256_text(question)}
        run = self.span("run", parent, facts)
        for index, cell in enumerate(cells):
            place = {sc.ITERATION: index, sc.CELL: index}
            iteration = self.span("iteration", run, place)
            self.records.append(end(self.span("root_call", iteration, self.text(sc.RESPONSE, cell.code))))
            self.cell(cell, iteration, place)
            self.records.append(end(iteration))
        told = {} if answer is None else self.text(sc.ANSWER, answer)
        normal = {} if answer is None else {sc.RESPONSE_NORM_HASH: sha256_text(normalise(answer))}
        self.records.append(end(run, a={**told, **normal}, status="ok" if answer is not None else "error"))

    def cell(self, cell: Cell, iteration: str, place: dict[str, Any]) -> None:
        span_id = self.span("cell", iteration, {**place, **self.text(sc.CODE, cell.code)})
        above = self.span("batch", span_id, place) if cell.batch else span_id
        for ordinal, call in enumerate(cell.calls):
            if isinstance(call, Child):
                self.run(call.cells, call.answer, call.question, above)
            else:
                self.call(call, above, {**place, sc.CALL_ORDINAL: ordinal, sc.CALL_INDEX: ordinal})
        if cell.batch:
            self.records.append(end(above))
        shown = self.text(sc.STDOUT_SHOWN, cell.output) if cell.output else {}
        self.records.append(end(span_id, a=shown))

    def call(self, call: Call, above: str, place: dict[str, Any]) -> None:
        facts: dict[str, Any] = {**place, **self.text(sc.PROMPT, call.prompt), sc.CALL_LINE: call.line}
        if call.hashed:
            facts[sc.PROMPT_HASH] = sha256_text(call.prompt)
            facts[sc.TEMPLATE_HASH] = sha256_text(call.template or re.sub(r"\d", "0", call.prompt))
        else:
            del facts[sc.PROMPT + ".sha256"]
        if call.ranges:
            how = "reference" if call.given else "located"
            facts[sc.SOURCE_RANGES] = json.dumps({"how": how, "ranges": [list(one) for one in call.ranges]})
        span_id = self.span("sub_call", above, facts)
        if call.reply is None:
            self.records.append(end(span_id, status="error", a={sc.ERROR_TYPE: "server"}))
            return
        told = self.text(sc.RESPONSE, call.reply)
        if call.hashed:
            told[sc.RESPONSE_NORM_HASH] = sha256_text(normalise(call.reply))
        self.records.append(end(span_id, a=told))


def run_of(
    folder: Path, name: str, cells: Sequence[Cell], *, answer: str | None = "42", question: str = "How many?"
) -> RunView:
    """A closed run of a plan, read from its spool; `name` is a letter of a to f."""
    writer = Writer()
    writer.run(cells, answer, question, None)
    return view_of(folder, name, writer.records)


def view_of(folder: Path, name: str, records: Sequence[dict[str, Any]]) -> RunView:
    """A closed run of any records."""
    run_id = f"20260102T030405-0000abc{name}"
    home = home_in(folder)
    write_spool(home, [header(run_id), *records, fin()], run_id)
    return SpoolRun(home, run_id).poll()
