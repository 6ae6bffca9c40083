"""The pictures of the README, made anew: `make pictures`.

They show the recorded examples, so they change only when the app does: PICTURES/<name>-<theme>.png.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page

from rlm_core.corpus import Corpus
from tests.support import browser as ui
from tests.support.app import running_app
from tests.support.command import ROOT
from traces.home import Home
from traces.reading import load_run
from traces.tree import outcome
from ui.web.samples import install_examples

PICTURES: Final = ROOT / "ui" / "docs" / "pictures"
THEMES: Final = ("light", "dark")
SIZE: Final = {"width": 1280, "height": 800}  # pixels
RIGHT: Final = "20260105T090000-0000e001"
BROKEN: Final = "20260105T091500-0000e002"


def run(page: Page, url: str, home: Home) -> None:
    """The broken example, at the sub-call that failed."""
    view = load_run(home, BROKEN)
    failed = next(
        span for span in view.spans if span.kind == "sub_call" and outcome(span) not in ("ok", "empty")
    )
    page.goto(f"{url}/run?run={BROKEN}&span={failed.span_id}")
    ui.tree_row(page, "llm_query").wait_for()
    page.get_by_role("tabpanel").wait_for()


def answer(page: Page, url: str, home: Home) -> None:
    """The right example on the Ask page, with what its answer may rest on."""
    page.goto(f"{url}/?run={RIGHT}")
    page.get_by_text("What it may rest on").wait_for()
    page.get_by_role("link", name="Open passage").first.wait_for()


def steps(page: Page, url: str, home: Home) -> None:
    """The broken example in steps, at the cell that counts."""
    page.goto(f"{url}/run?run={BROKEN}&view=steps&step=3")
    page.get_by_text("Variables").first.wait_for()


SHOTS: Final[dict[str, Callable[[Page, str, Home], None]]] = {"run": run, "answer": answer, "steps": steps}


def take(browser: Browser, url: str, home: Home, folder: Path) -> None:
    """Every picture in both themes."""
    for theme in THEMES:
        with ui.visiting(browser, url, viewport=SIZE, color_scheme=theme) as visit:
            for name, make in SHOTS.items():
                page = visit.context.new_page()
                make(page, visit.url, home)
                ui.settle(page)
                page.wait_for_timeout(700)  # fades and fonts: a picture has no event to wait for
                page.screenshot(path=folder / f"{name}-{theme}.png")


def main() -> None:
    """Make all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rlmscope-pictures-") as folder:
        home = Home.resolve(Path(folder) / "home")
        install_examples(home)
        Corpus.add([ROOT / "sample_data" / "tickets"], home.corpora)
        with running_app(home) as app, ui.chromium() as browser:
            take(browser, f"http://127.0.0.1:{app.port}", home, PICTURES)


if __name__ == "__main__":
    main()
