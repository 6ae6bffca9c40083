"""What ui/docs/money.md says is run: its commands and what they print, over such a run."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.id_generator import IdGenerator

from rlm_core import semconv as sc
from rlm_core.lm_handler import Usage
from rlm_core.price_rows import Override
from rlm_core.pricing import CLASSES, Decimal, PriceTable, decimal_text
from rlm_core.telemetry import RunSpan
from tests.support.command import ROOT, inside
from traces.home import Home
from traces.recording import Recording, open_recording

PAGE = (ROOT / "ui" / "docs" / "money.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```$", PAGE, re.S | re.M)
SESSION = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(b for b in BLOCKS if b.startswith("$")), re.M)
BIG, SMALL = "openai/gpt-5", "openai/gpt-5-mini"
RATES = {BIG: ("1.25", "0.125", "1.25", "10"), SMALL: ("0.25", "0.025", "0.25", "2")}
TABLE = PriceTable(
    Override(model, dict(zip(CLASSES, map(Decimal, rates), strict=True)), "2026-11-30")
    for model, rates in RATES.items()
)


class _Ids(IdGenerator):
    """1, 2, 3, ... in the first digits."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def generate_span_id(self) -> int:
        return next(self._next) << 48

    def generate_trace_id(self) -> int:
        return 1


def paid(model: str, *usages: Usage) -> dict[str, Any]:
    """What a span says of a call with these attempts."""
    prices = [TABLE.price(model, usage) for usage in usages]
    row = (prices[-1].row or "").replace("override 2026-11-30", "genai-prices 0.2.3").replace('"openai/', '"')
    return {
        sc.USAGE_INPUT: sum(usage.input or 0 for usage in usages),
        sc.USAGE_OUTPUT: sum(usage.output or 0 for usage in usages),
        sc.USAGE_CACHE_READ: sum(usage.cached_read or 0 for usage in usages),
        sc.COST_USD: decimal_text(sum((price.usd or Decimal(0) for price in prices), Decimal(0))),
        sc.COST_STATUS: "priced",
        sc.COST_PRICE: row,
    }


def model_call(
    made: Recording, parent: RunSpan, kind: Any, model: str, used: Usage, *, tries: int = 1
) -> None:
    span = made.recorder.start(kind, sc.chat(model), parent, {sc.REQUEST_MODEL: model})
    for index in range(tries):
        attempt = made.recorder.start("attempt", sc.NAME_ATTEMPT, span, {sc.ATTEMPT: index})
        if index + 1 < tries:
            attempt.set({sc.COST_USD: "0", sc.COST_STATUS: "free"})
            attempt.fail("rate_limit", "slow down")
        else:
            attempt.end("ok", paid(model, used))
    span.end("ok", {**paid(model, used), sc.COST_LITELLM: paid(model, used)[sc.COST_USD]})


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """The run that the page describes: two turns of the root, three sub-calls, one of them tried twice."""
    found = Home.resolve(tmp_path / "home")
    clock = itertools.count(1_796_000_000_000_000_000, 1_000_000)
    with open_recording(
        found, "20261130T100000-00c0ffee", {}, id_generator=_Ids(), clock=lambda: next(clock)
    ) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.ROOT_MODEL: BIG, sc.SUB_MODEL: SMALL})
        model_call(made, run, "root_call", BIG, Usage(2_000, 400))
        model_call(made, run, "sub_call", SMALL, Usage(9_000, 120, cached_read=6_000), tries=2)
        model_call(made, run, "sub_call", SMALL, Usage(8_000, 90))
        model_call(made, run, "sub_call", SMALL, Usage(30_000, 200))
        model_call(made, run, "root_call", BIG, Usage(2_600, 150, cached_read=2_048))
        run.end()
        made.close("ok")
    yield found


def masked(text: str) -> str:
    """Without what differs from day to day and from one table of prices to the next."""
    return re.sub(r" +", " ", re.sub(r"\d{4}-\d\d-\d\d|genai-prices [\d.]+", "(x)", text))


def test_the_commands_print_what_the_page_shows(home: Home, tmp_path: Path) -> None:
    assert len(SESSION) == 9
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "RLMSCOPE_HOME": str(home.root)}
    for line, shown in SESSION:
        words = shlex.split(line)
        assert words.pop(0) == "rlmscope"
        done = subprocess.run(
            [sys.executable, "-m", "ui", *words],
            cwd=tmp_path, env=environment, text=True, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert masked(done.stdout).strip() == masked(shown).strip(), line


def test_the_keys_named_are_in_the_documents(home: Home) -> None:
    what_if = inside("cost", "last", "--as", "sub=xai/grok-4", "--home", home.root)
    explained = inside("cost", "last", "--explain", "0004", "--home", home.root)
    (row,) = inside("prices", SMALL, "--home", home.root)
    plain = inside("cost", "last", "--home", home.root)
    named = dict(re.findall(r"^- `([^`]+ --json)` adds (.+?)\.$", PAGE, re.M | re.S))
    for command, document in {
        "cost --json": {**plain, **plain["rows"][0]},
        "cost --as ROLE=MODEL --json": {**what_if, **what_if["rows"][0]},
        "cost --explain SPAN --json": {**explained, **explained["rows"][0]},
        "prices --json": row,
    }.items():
        keys = set(re.findall(r"`(\w+)`", named[command]))
        assert keys and keys <= document.keys(), command
