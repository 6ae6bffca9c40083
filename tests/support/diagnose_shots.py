"""States of the Diagnose page."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.shots import shot
from traces.diagnosis_log import DiagnosisLog, diagnoses, open_diagnosis
from traces.home import Home
from traces.trial import Patch, Target, Trial
from ui.web.first_steps import BROKEN

RIGHT: Final = "20260105T090000-0000e001"
FAILED: Final = "63227c4d839a85d7"  # the sub-call of the broken example that broke it
REFUSED: Final = "8b78c8c211a75153"
_OPEN: Final[dict[Home, DiagnosisLog]] = {}  # logs of jobs that seem to work while this process lives


@shot
def diagnose_first(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/diagnose?run={BROKEN}")
    expect(page.get_by_role("button", name="Find minimal cause")).to_be_visible()


@shot
def diagnose_found(page: Page, url: str, home: Home) -> None:
    diagnose_first(page, url, home)
    page.get_by_role("button", name="Find minimal cause").click()
    expect(page.get_by_text("What broke it")).to_be_visible()


@shot
def diagnose_proof(page: Page, url: str, home: Home) -> None:
    diagnose_found(page, url, home)
    page.get_by_role("heading", name="How it was found out").scroll_into_view_if_needed()


@shot
def diagnose_tested(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/diagnose?run={BROKEN}&span={REFUSED}")
    ui.fill(page, "It should have said", "bug")
    page.get_by_role("button", name="Test this answer").click()
    expect(page.get_by_text("Answer now")).to_be_visible()


@shot
def diagnose_working(page: Page, url: str, home: Home) -> None:
    if home not in _OPEN:
        _OPEN[home] = log = open_diagnosis(home, BROKEN, good=RIGHT, target=Target("22", origin="good run"))
        log.stage("Testing 3 of 6 candidates together.")
        for patches in ((FAILED, REFUSED), (FAILED,)):
            replaced = tuple(Patch(span_id, "billing") for span_id in patches)
            log.trial(Trial(replaced, "strict", "fixed", "22", "21", "normalised", hits=200))
    page.goto(f"{url}/diagnose?run={BROKEN}&diagnosis={_OPEN[home].diagnosis_id}")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    assert diagnoses(home, BROKEN)


@shot
def diagnose_twin(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/diagnose?run={BROKEN}&good=none")
    page.get_by_role("button", name="Make a twin").click()
    expect(page.get_by_text("Take it as the good run")).to_be_visible()
