"""A run that was diagnosed, with a text of one's choice wherever a model, a file or a person writes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rlm_core import semconv as sc
from tests.traces.records import recording
from traces.diagnosis import Culprit, Diagnosis, Verdict
from traces.home import Home
from traces.reading import load_run
from traces.trial import Budget, Patch, Replayability, Spent, Target, Trial
from traces.view import RunView

RUN = "20260102T030405-0000abcd"


def diagnosed_run(home: Home, text: str = "plain", *, prompt: str | None = None) -> RunView:
    """A run whose question, code, output, prompt, reply and answer hold the text, with two sub-calls."""
    with recording(home, RUN) as made:
        recorder = made.recorder
        top = {sc.DEPTH: 0, sc.ROOT_MODEL: f"r {text}", sc.SUB_MODEL: "s", sc.RUN_PATH: "0"}
        run = recorder.start("run", sc.NAME_RUN, None, top)
        run.text(sc.QUESTION, f"question {text}")
        iteration = recorder.start("iteration", sc.NAME_ITERATION, run, {sc.ITERATION: 0})
        cell = recorder.start("cell", sc.NAME_CELL, iteration, {sc.CELL: 0, sc.RUN_PATH: "0"})
        cell.text(sc.CODE, f"# code {text}")
        cell.text(sc.STDOUT, f"printed {text}")
        for index in range(2):
            call = recorder.start(
                "sub_call",
                "chat s",
                cell,
                {sc.REQUEST_MODEL: f"s {text}", sc.CALL_INDEX: index, sc.RUN_PATH: "0"},
            )
            call.text(sc.PROMPT, prompt or f"prompt {index} {text}")
            call.text(sc.RESPONSE, f"reply {index} {text}")
            call.end("ok", {sc.ERROR_MESSAGE: f"remark {text}"})
        cell.end()
        iteration.end()
        run.text(sc.ANSWER, f"answer {text}")
        run.end("ok", {sc.STOP_REASON: "final"})
        made.close("ok")
    return load_run(home, RUN)


def diagnosis_of(
    view: RunView, text: str = "plain", *, verdict: Verdict = "sub_call", **changes: Any
) -> dict[str, Any]:
    """The JSON of a diagnosis that finds the first sub-call and the cell of such a run; texts hold `text`."""
    call = next(span for span in view.spans if span.kind == "sub_call")
    cell = next(span for span in view.spans if span.kind == "cell")
    culprits = (
        Culprit(call.span_id, "sub_call", f"should {text}", "good run"),
        Culprit(cell.span_id, "cell", f"# should {text}", "user"),
    )
    patches = tuple(Patch(culprit.span_id, culprit.patch) for culprit in culprits)
    found = Diagnosis(
        diagnosis_id="d20260102T030405-0000abcd",
        run_id=view.run_id,
        verdict=verdict,
        words=f"words {text}",
        outcome="fixed",
        mode="strict",
        target=Target(f"expected {text}"),
        proven=True,
        culprits=culprits,
        replayability=Replayability("replayable", f"replayable {text}", None, (f"warning {text}",)),
        assumed=(f"assumed {text}",),
        findings=({"words": f"finding {text}"},),
        trials=(
            Trial(
                patches, "strict", "fixed", f"trial answer {text}", "42", hits=2, stopped=f"stopped {text}"
            ),
            Trial(patches[:1], "strict", "unchanged", "42", "42", hits=2),
        ),
        budget=Budget(200, 5, Decimal("1.50")),
        spent=Spent(2, 1, Decimal("0.25")),
        stopped=f"ended {text}",
    )
    return {**found.to_json(), **changes}
