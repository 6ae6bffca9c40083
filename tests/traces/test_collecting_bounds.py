"""How much collecting may hold, and how often it may work something out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_core.checks import check
from tests.support.collecting import AGENT, SPANS, Rig, imported, read_run, shape
from tests.support.otlp import llm, span
from traces.collecting import Overfull
from traces.home import Home
from traces.otlp.spans import OtlpSpan
from traces.otlp.trace_run import run_of_trace
from traces.reading import SpoolRun


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(Home.resolve(tmp_path / "home"))
    yield rig
    rig.collector.close()


def test_too_many_spans_or_traces_begin_further_runs(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.collecting.MOST_SPANS", 3)
    monkeypatch.setattr("traces.collecting.MOST_OPEN", 2)
    rig.collector.take(SPANS[:3])
    rig.collector.take(SPANS[3:5])
    for number in range(1, 4):
        rig.collector.take([span(number, "x", trace=format(number, "032x"))])
    done = rig.collector.close()
    assert sum(each.spans for each in done) == 8 and len(done) == 5


def test_texts_that_are_too_long_begin_a_further_run(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.collecting.MOST_CHARS", 1000)
    rig.collector.take([llm(1, 0, "x" * 1000, "r")])
    rig.collector.take([llm(2, 0, "y", "r")])
    assert [each.spans for each in rig.collector.close()] == [1, 1]


@pytest.mark.parametrize(("bound", "most"), [("MOST_SPANS_HELD", 5), ("MOST_CHARS_HELD", 9_000)])
def test_what_all_open_runs_hold_is_bounded_and_nothing_is_lost(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(f"traces.collecting.{bound}", most)
    first, second, third = (format(number, "032x") for number in range(1, 4))
    told = {"tags": [{"long": "x" * 1_000}] * 2}  # texts count wherever they stand
    rig.collector.take([replace(llm(number, 0, trace=first), attributes=told) for number in range(1, 4)])
    rig.clock.now += 1
    rig.collector.take([replace(llm(number, 0, trace=second), attributes=told) for number in range(4, 6)])
    for _ in range(2):
        with pytest.raises(Overfull, match="5 seconds"):
            rig.collector.take([llm(9, 0, trace=third)])
    assert sum("refused" in said for said in rig.said) == 1
    assert len(rig.runs()) == 2
    rig.collector.tend()  # the first run, to which nothing came for longest, makes room
    assert "is closed: 3 spans" in rig.said[-1]
    rig.collector.take([llm(9, 0, trace=third), llm(7, 0, trace=first)])
    done = rig.collector.close()
    assert [each.spans for each in done] == [3, 2, 1, 1]
    assert sum("refused" in said for said in rig.said) == 1


def test_room_is_made_for_more_than_the_one_who_asks_first(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.collecting.MOST_SPANS_HELD", 20)
    for number in range(1, 21):  # a program whose runs never end
        rig.clock.now += 1
        rig.collector.take([llm(number, 0, trace=format(number, "032x"))])
    rig.collector.tend()
    for number in range(21, 26):  # it takes what there is at once; the last one is somebody else
        rig.collector.take([llm(number, 0, trace=format(number, "032x"))])
    with pytest.raises(Overfull):
        rig.collector.take([llm(26, 0, trace=format(26, "032x"))])
    assert [each.spans for each in rig.collector.close()] == [1] * 25


def test_of_closed_runs_only_the_newest_spans_are_remembered_also_where_all_are_of_one_trace(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.collecting.MOST_SPANS", 2)
    monkeypatch.setattr("traces.collecting._REMEMBERED", 3)
    for number in range(1, 7):  # three runs of one trace without end
        rig.collector.take([llm(number, 0)])
    for number in (6, 5, 4, 1):  # sent again: the first is not known any more
        rig.collector.take([llm(number, 0)])
    assert [each.spans for each in rig.collector.close()] == [2, 2, 2, 1]


def test_a_long_trace_is_not_arranged_anew_for_every_span(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    arranged: list[int] = []

    def counted(trace_id: str, spans: list[OtlpSpan]) -> Any:
        rig.clock.now += 0.01
        arranged.append(len(spans))
        return run_of_trace(trace_id, spans)

    monkeypatch.setattr("traces.collecting_trace.run_of_trace", counted)
    spans = [llm(number, 0, f"q{number}", "r") for number in range(1, 60)]
    for each in spans:
        rig.collector.take([each])
    (run_id,) = rig.runs()
    rows = SpoolRun(rig.home, run_id).poll().spans
    assert sum(row.kind in ("root_call", "sub_call") for row in rows) == 59  # all are there at once
    assert sum(arranged) < 59 * 20
    rig.collector.take([AGENT])
    rig.collector.close()
    assert shape(read_run(rig.home, run_id)) == shape(imported(rig.home, [*spans, AGENT]))


def test_code_is_read_once_however_often_its_trace_is_arranged(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(code: str, *more: Any) -> Any:
        read.append(code)
        return check(code, *more)

    monkeypatch.setattr("traces.importers.placing.check", counted)
    for each in SPANS:
        rig.collector.take([each])
        rig.clock.now += 5
        rig.collector.tend()
    rig.collector.close()
    assert len(read) == len(set(read)) > 0
