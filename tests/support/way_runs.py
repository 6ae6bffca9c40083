"""Runs that went about their question in other ways than the usual, written through the recorder."""

from __future__ import annotations

from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.telemetry import RunSpan, as_json
from tests.support.recorded_runs import recording
from traces.home import Home

OPTIONS: Final = {
    "strategy": "retrieve+rlm",
    "cache": True,
    "tools": [{"name": "look_up", "description": "", "parameters": {}}],
    "models": {"1": {"root": "test/small", "sub": None}, "2": {"sub": "test/tiny"}},
}


def asked_by(home: Home, run_id: str, strategy: str | None, answer: str | None, **more: Any) -> str:
    """A run of a strategy with nothing in it but its question and answer."""
    facts = {sc.ROOT_MODEL: "test/root", sc.SUB_MODEL: "test/sub", **more}
    if strategy is not None:
        facts[sc.STRATEGY] = strategy
    with recording(home, run_id) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, facts)
        run.text(sc.QUESTION, "How many?")
        if answer is not None:
            run.text(sc.ANSWER, answer)
        run.end("ok" if answer is not None else "error", {sc.STOP_REASON: "final" if answer else "error"})
        made.close("ok")
    return run_id


def many_ways(home: Home, run_id: str, words: str, resumed: str) -> dict[str, RunSpan]:
    """A run with everything that is not usual; `words` stand where a model may write. Its spans by name."""
    spans: dict[str, RunSpan] = {}
    with recording(home, run_id) as made:
        start = made.recorder.start
        models = {sc.ROOT_MODEL: "test/root", sc.SUB_MODEL: "test/sub"}
        facts = {sc.STRATEGY: "retrieve+rlm", sc.OPTIONS: as_json(OPTIONS), sc.RESUME_OF: resumed}
        run = spans["run"] = start("run", sc.NAME_RUN, None, {**models, **facts})
        run.text(sc.QUESTION, "How many?")
        turn = spans["iteration"] = start("iteration", sc.NAME_ITERATION, run, {sc.ITERATION: 0})
        said = {sc.COMPACTED: True, sc.COMPACTED_TURNS: 3, sc.REQUEST_MODEL: "test/root"}
        spans["summary"] = start("root_call", "chat test/root", turn, said)
        cell = start("cell", sc.NAME_CELL, turn, {sc.CELL: 0})
        call = spans["call"] = start("sub_call", "chat test/sub", cell, {sc.REQUEST_MODEL: "test/sub"})
        told = {sc.TOOL_NAME: f"look_up {words}", sc.TOOL_ROUND: 0}
        tool = spans["tool"] = start("tool", "execute_tool look_up", call, told)
        tool.text(sc.TOOL_ARGUMENTS, f'{{"query": "{words}"}}')
        tool.text(sc.TOOL_RESULT, f"Nothing. {words}")
        hit = {sc.SERVED_FROM: "cache", sc.REQUEST_MODEL: "test/sub"}
        spans["hit"] = start("sub_call", "chat test/sub", cell, hit)
        for name in ("tool", "call", "hit"):
            spans[name].end("ok")
        cell.end("ok")
        spans["summary"].end("ok")
        turn.end("ok", {sc.SCHEMA_PROBLEM: f"count is no number: {words}"})
        run.text(sc.ANSWER, "four")
        run.end("ok", {sc.STOP_REASON: "final", sc.ANSWER_MARK: "schema"})
        made.close("ok")
    return spans
