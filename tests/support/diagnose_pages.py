"""Diagnoses of the broken example as the Diagnose page shows them, made without a search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from streamlit.testing.v1 import AppTest

from tests.support.pages import ask_page
from traces.diagnosis import Culprit, Diagnosis
from traces.diagnosis_log import open_diagnosis
from traces.home import Home
from traces.trial import Patch, Replayability, Spent, Target, Trial

BAD: Final = "20260105T091500-0000e002"
GOOD: Final = "20260105T090000-0000e001"
FAILED: Final = "63227c4d839a85d7"  # the sub-call that broke it: it has no reply
REFUSED: Final = "8b78c8c211a75153"


def diagnose_page(run: str = BAD, **query: str) -> AppTest:
    """The page with this address, after its script ran."""
    page = ask_page().switch_page("pages/diagnose.py")
    for name, value in {"run": run, **query}.items():
        if value:
            page.query_params[name] = value
    page.run()
    assert not page.exception, page.exception
    return page


def trial(*span_ids: str, text: str = "billing", **more: Any) -> Trial:
    """A replay that fixed the answer by putting a text in the place of these replies."""
    patches = tuple(Patch(span_id, text) for span_id in span_ids)
    made = Trial(patches, "strict", "fixed", "22", "21", "normalised", hits=200)
    return replace(made, **more)


def found(**more: Any) -> Diagnosis:
    """A diagnosis of the broken example, as the search makes it."""
    made = Diagnosis(
        "d", BAD, "sub_call", "Sub-call 1 of cell 1 broke the answer.", "fixed", "strict", GOOD,
        Target("22", origin="good run"), True, (Culprit(FAILED, "sub_call", "billing", "good run"),),
        (FAILED, REFUSED), Replayability("replayable", "It comes out as recorded."),
        assumed=("The code stays as it was.",), warnings=("numpy is another one now.",),
        spent=Spent(2, 0),
    )  # fmt: skip
    return replace(made, **more)


def logged(home: Home, diagnosis: Diagnosis | None, *trials: Trial, run_id: str = BAD, **options: Any) -> str:
    """A diagnosis that has ended, in the home; its id."""
    with open_diagnosis(home, run_id, good=GOOD, **options) as log:
        for one in trials:
            log.trial(one)
        log.end(diagnosis)
    return log.diagnosis_id
