"""Figures in words, and the progress line of a run."""

from __future__ import annotations

from decimal import Decimal

import click
import pytest

from rlm_core.progress import Progress
from ui.common import say
from ui.figures import counted, duration, money, tokens, with_tokens
from ui.progress import QUIET_SECONDS, ProgressLine, progress_text


@pytest.mark.parametrize(
    ("cost", "status", "expected"),
    [
        (None, "unknown", "unknown"),
        (None, None, "unknown"),
        (Decimal(0), "demo", "$0 (demo)"),
        (Decimal(0), "free", "$0 (free)"),
        (Decimal("0.0012340"), "priced", "$0.001234"),
        (Decimal("0.00000001"), "priced", "<$0.000001"),
        (Decimal("120"), "priced", "$120"),
        (Decimal("1.5"), "partial", "at least $1.5"),
        ("0.25", "priced", "$0.25"),
    ],
)
def test_money(cost: Decimal | str | None, status: str | None, expected: str) -> None:
    assert money(cost, status) == expected


def test_what_is_said_twice_in_a_row_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with click.Context(click.Command("x")):
        for text in ("a", "a", "b", "a"):
            say(text)
    assert capsys.readouterr().err == "a\nb\na\n"


def test_tokens() -> None:
    assert tokens({"input": 1200, "output": 80, "total": 1280}) == "1,200 in, 80 out"
    assert tokens({"input": None, "output": 1}) == "? in, 1 out"
    assert (tokens(None), with_tokens(None)) == ("unknown", "tokens unknown")
    assert with_tokens({"input": 1200, "output": 80, "total": 1280}) == "tokens 1,200 in, 80 out"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "unknown"),
        (0.0124, "12 ms"),
        (0.9996, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_duration(seconds: float | None, expected: str) -> None:
    assert duration(seconds) == expected


def test_counted() -> None:
    assert [counted(n, "call") for n in (0, 1, 1200)] == ["0 calls", "1 call", "1,200 calls"]


def test_progress_text() -> None:
    now = Progress(phase="running a cell", iteration=2, max_iterations=30, cell=1, depth=1)
    now.calls_done, now.calls_running, now.calls_failed, now.tokens = 10, 5, 3, 1234
    now.cost_usd, now.cost_known = Decimal("0.5"), False
    assert progress_text(now, 61) == (
        "iteration 2 (at most 30): running a cell (cell 1), child run at depth 1 · "
        "sub-calls 7 done, 5 running, 3 failed · 1,234 tokens · at least $0.5 · 1 min 01 s"
    )
    now.calls_refused = 20
    assert "3 failed; 20 refused by a limit · 1,234 tokens" in progress_text(now, 61)
    now.cost_usd = Decimal(0)
    assert "1,234 tokens · cost unknown · 1 min" in progress_text(now, 61)


def test_off_a_terminal_a_line_per_iteration_and_after_a_long_silence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    time = [0.0]
    now = Progress(max_iterations=30)
    with ProgressLine(clock=lambda: time[0]) as shown:
        for _ in range(100):
            shown.update(now)
        now.iteration, now.depth = 5, 1  # child runs count their own iterations
        shown.update(now)
        time[0] += QUIET_SECONDS
        shown.update(now)
        now.iteration, now.depth = 1, 0
        shown.update(now)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [text.split(" (")[0] for text in captured.err.splitlines()] == [
        "iteration 0",
        "iteration 5",
        "iteration 1",
    ]
