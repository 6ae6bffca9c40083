"""Collected runs whose clocks differ, and of whose spans some cannot be used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.otlp import kind, llm
from traces.collecting import Collector
from traces.home import Home
from traces.reading import load_run

AGENT = kind(0, "AGENT", name="agent", lasts=9.0, input__value="How many?", output__value="Two.")
CALL = llm(1, 0, "How many?", "Two.")


def test_a_collected_run_began_and_took_what_its_own_span_says_whatever_clocks_inside_say(
    tmp_path: Path,
) -> None:
    home = Home.resolve(tmp_path / "home")
    collector = Collector(home)
    assert CALL.start_ns is not None and CALL.end_ns is not None and AGENT.start_ns is not None
    hour = 3600 * 10**9
    collector.take([replace(CALL, start_ns=CALL.start_ns - hour, end_ns=CALL.end_ns - hour), AGENT])
    (done,) = collector.close()
    summary = load_run(home, done.run_id).summary
    assert (summary.started_ns, summary.seconds) == (AGENT.start_ns, 9.0)
