"""Runs that cost something: several days, two corpora, a model without a price, a budget that was passed."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.lm_handler import Usage
from rlm_core.pricing import PriceTable, decimal_text
from rlm_core.telemetry import RunSpan
from traces.home import Home
from traces.recording import Recording, open_recording

ROOT_MODEL, SUB_MODEL, LOCAL = "openai/gpt-5", "openai/gpt-5-mini", "openai/local"
FIRST = int(datetime(2026, 11, 2, 9, 30, tzinfo=UTC).timestamp()) * 1_000_000_000
DAY = 86_400_000_000_000
TABLE = PriceTable()
Facts = dict[str, str | int | float | bool | None]


def run_id(number: int) -> str:
    """The id of the n-th run of `spend_runs`, from 0."""
    return f"2026110{2 + number}T093000-0000{number:04x}"


def spend_runs(home: Home, *, text: str = "What was agreed in meeting 5?") -> list[str]:
    """Six runs on as many days. The last one has a sub-model without a price, and `text` in its texts.

    The one before passed its limit of dollars.
    """
    corpora = [Corpus.from_texts({f"{name}.txt": name}, home.corpora, name=name).corpus_id for name in NAMES]
    made = []
    for number in range(6):
        sub = LOCAL if number == 5 else SUB_MODEL
        question = text if number == 5 else f"What was agreed in meeting {number}?"
        made.append(one_run(home, run_id(number), corpora[number % 2], sub, question, FIRST + number * DAY,
                            calls=4 + 5 * number, limit="0.75" if number == 4 else None))  # fmt: skip
    return made


NAMES = ("minutes", "letters")


def one_run(
    home: Home,
    made_id: str,
    corpus: str,
    sub: str,
    question: str,
    begin: int,
    *,
    calls: int,
    limit: str | None = None,
) -> str:
    """A run of two turns; its sub-calls differ a hundredfold in what they cost."""
    clock = itertools.count(begin, 250_000_000)
    with open_recording(home, made_id, {}, clock=lambda: next(clock)) as made:
        top: Facts = {sc.ROOT_MODEL: ROOT_MODEL, sc.SUB_MODEL: sub, sc.CORPUS_ID: corpus, sc.DEPTH: 0}
        run = made.recorder.start("run", sc.NAME_RUN, None, top)
        run.text(sc.QUESTION, question)
        spent = Decimal(0)
        for turn in range(2):
            iteration = made.recorder.start("iteration", sc.NAME_ITERATION, run, {sc.ITERATION: turn})
            spent += _call(made, iteration, "root_call", ROOT_MODEL, Usage(3_000 + 900 * turn, 350))
            cell = made.recorder.start("cell", sc.NAME_CELL, iteration, {sc.CELL: turn})
            for index in range(calls if turn == 0 else 1):
                used = Usage(
                    1_500 + 700 * index**2, 60 + 10 * index, cached_read=1_024 if index % 3 == 0 else 0
                )
                spent += _call(made, cell, "sub_call", sub, used, index, question)
            cell.end()
            iteration.end()
        run.text(sc.ANSWER, "It was agreed to meet again.")
        ledger = {
            "usd": {"spent": decimal_text(spent), "limit": limit, "known": sub != LOCAL},
            "calls": {"spent": calls + 3, "limit": 400},
            "seconds": {"spent": 12.5, "limit": None},
        }
        run.end("ok", {sc.STOP_REASON: "budget" if limit else "final", sc.LEDGER: json.dumps(ledger)})
        made.close("ok")
    return made_id


def _call(
    made: Recording, parent: RunSpan, kind: Any, model: str, used: Usage, index: int = 0, text: str = ""
) -> Decimal:
    """A model call with its attempt; returns what it cost, 0 when that is unknown."""
    price = TABLE.price(model, used)
    facts: Facts = {
        sc.USAGE_INPUT: used.input,
        sc.USAGE_OUTPUT: used.output,
        sc.USAGE_CACHE_READ: used.cached_read,
        sc.COST_STATUS: price.status,
        sc.COST_PRICE: price.row,
    }
    if price.usd is not None:
        facts[sc.COST_USD] = decimal_text(price.usd)
    span = made.recorder.start(kind, sc.chat(model), parent, {sc.REQUEST_MODEL: model, sc.CALL_INDEX: index})
    attempt = made.recorder.start("attempt", sc.NAME_ATTEMPT, span, {sc.ATTEMPT: 0, sc.REQUEST_MODEL: model})
    attempt.end("ok", facts)
    span.text(sc.RESPONSE, f"Passage {index}: {text}")
    span.end("ok", facts)
    return price.usd or Decimal(0)
