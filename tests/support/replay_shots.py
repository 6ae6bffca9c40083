"""States of replays: the run page of one, and the list that shows them."""

from __future__ import annotations

from playwright.sync_api import Page

from rlm_core import semconv as sc
from tests.support.command import rlmscope
from tests.support.shots import shot
from traces.home import Home
from traces.reading import list_runs, load_run
from ui.web.first_steps import BROKEN


def replay_of_the_broken(home: Home) -> str:
    """A replay of the broken example with a struck reply patched; made where there is none with a patch."""
    for run in list_runs(home, replays=True):
        if run.replay_of == BROKEN:
            facts = load_run(home, run.run_id).spans[0].attributes
            if f"{sc.REPLAY_PATCHES}.sha256" in facts:
                return run.run_id
    calls = (span for span in load_run(home, BROKEN).spans if span.kind == "sub_call")
    struck = next(span.span_id for span in calls if span.status == "error")
    patch = ("--patch", f"{struck}=billing", "--expected", "22")
    return str(rlmscope("replay", BROKEN, *patch, "--home", home.root)["run_id"])


@shot
def run_of_a_replay(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={replay_of_the_broken(home)}")
    page.get_by_text("What was replaced").click()
    page.get_by_role("button", name="Replaced 1").wait_for()


@shot
def runs_with_replays(page: Page, url: str, home: Home) -> None:
    replay_of_the_broken(home)
    page.goto(f"{url}/runs?replays=1")
    page.get_by_text("replay", exact=True).first.wait_for()
