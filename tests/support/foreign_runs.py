"""A run as the record of another engine tells it: some numbers reported, some derived, wrong or missing."""

from __future__ import annotations

from typing import Final

from rlm_core import semconv as sc
from traces.home import Home
from traces.importers.foreign import (
    ForeignRun,
    ForeignSpan,
    TokenUse,
    Told,
    derived,
    known_wrong,
    reported,
)
from traces.importers.writing import Written, write_run

START_NS: Final = 1_780_000_000_000_000_000  # 2026-05-28T20:26:40Z
WRONG: Final = "all calls of a batch are given the usage of the last one"
UNREADABLE: Final = "line 7 is no JSON"
NO_ROOT: Final = "the usage of root calls"
MODEL: Final = "openai/gpt-5-mini"  # has a price: what calls cost follows from their tokens


def some_times() -> ForeignRun:
    """Two iterations. Of four sub-calls two tell tokens (10 in, 3 out each), two that are known to be wrong;
    the root calls tell none. The start is derived; of the rest only when the first cell ran is told (2 s).
    """
    told = reported(TokenUse(10, 3))
    wrong = known_wrong(TokenUse(500, 20), WRONG)
    calls = [_call("first", "one", told), _call("second", "two", told)]
    batch = ForeignSpan("batch", children=[_call("third", "3", wrong), _call("fourth", "4", wrong)])
    code = {sc.CODE: "a = llm_query('first')", sc.STDOUT: "one"}
    cell = ForeignSpan(
        "cell", texts=code, start=reported(START_NS + 10**9), seconds=reported(2.0), children=[*calls, batch]
    )
    last = ForeignSpan("cell", texts={sc.CODE: "print(a)"})
    start = derived(START_NS, "local time without a zone")
    top = ForeignSpan(
        "run", texts={sc.QUESTION: "How many?", sc.ANSWER: "6"}, start=start,
        children=[_turn("do", cell), _turn("done", last)],
    )  # fmt: skip
    return ForeignRun("rlms", "rlms 0.1.3", "some", top, "big", MODEL, [NO_ROOT], [UNREADABLE])


def no_times() -> ForeignRun:
    """One iteration of which no time is told, and one sub-call without any number."""
    cell = ForeignSpan("cell", texts={sc.CODE: "x = 1"}, children=[ForeignSpan("sub_call", model="small")])
    top = ForeignSpan("run", texts={sc.QUESTION: "How many?", sc.ANSWER: "7"}, children=[_turn("go", cell)])
    return ForeignRun("dspy", "dspy", "none", top, "big", "small")


def write_foreign(home: Home, run: ForeignRun, file_name: str = "log.jsonl") -> Written:
    """Put a run into the home, as an import does."""
    return write_run(home, run, file_name, START_NS)


def _turn(reply: str, cell: ForeignSpan) -> ForeignSpan:
    root = ForeignSpan("root_call", model="big", texts={sc.RESPONSE: reply}, messages=[("user", "How many?")])
    return ForeignSpan("iteration", children=[root, cell])


def _call(prompt: str, reply: str, tokens: Told[TokenUse]) -> ForeignSpan:
    return ForeignSpan("sub_call", model=MODEL, texts={sc.PROMPT: prompt, sc.RESPONSE: reply}, tokens=tokens)


def silent() -> ForeignRun:
    """One iteration with a cell that asks something; the record holds no sub-call and no question."""
    cell = ForeignSpan("cell", texts={sc.CODE: "print(llm_query('How many?'))"})
    top = ForeignSpan("run", texts={sc.ANSWER: "7"}, children=[_turn("go", cell)])
    return ForeignRun("dspy", "dspy.RLM", "silent", top)
