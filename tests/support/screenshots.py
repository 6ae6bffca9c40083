"""Pictures of every page and state of the app, to be looked at: `python -m tests.support.screenshots FOLDER`.

Each is made light and dark, 1280 and 1920 pixels wide: FOLDER/<state>-<theme>-<width>.png. Names of states as
further arguments make only those.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser

from rlm_core.corpus import Corpus, Progress
from tests.support import (
    ask_shots,
    compare_shots,
    diagnose_shots,
    replay_shots,
    run_shots,
    site_shots,
    way_shots,
)
from tests.support import browser as ui
from tests.support.app import running_app
from tests.support.command import ROOT, rlmscope
from tests.support.gated import processes, surroundings
from tests.support.patchy_run import patchy_run
from tests.support.recorded_runs import wide_run
from tests.support.shots import BIG, LONG, QUESTION, SHOTS, Shot
from tests.support.spend_runs import spend_runs
from tests.support.step_runs import long_run, nested_run
from traces.home import Home, new_run_id
from traces.locks import FileLock
from ui.web import additions

WIDTHS: Final = (1280, 1920)
HEIGHTS: Final = {1280: 900, 1920: 1080}
# imported: each registers its states in SHOTS
STATES: Final = (ask_shots, compare_shots, diagnose_shots, run_shots, site_shots, replay_shots, way_shots)


def prepare(home: Home) -> None:
    """The runs that the states need."""
    tickets = ROOT / "sample_data" / "tickets"
    rlmscope("ask", "What is the meaning of it all?", tickets, "--home", home.root, ok=(0, 1))
    rlmscope("ask", QUESTION, tickets, "--home", home.root, "--max-calls", "50", ok=(0, 1))
    rlmscope("ask", LONG, tickets, "--home", home.root, ok=(0, 1))
    prepare_most(home)
    long_run(home)
    add_corpora(home)


def prepare_most(home: Home) -> None:
    """The runs that most states need: an answer that faults struck, one that is right, and recorded ones."""
    tickets = ROOT / "sample_data" / "tickets"
    rlmscope("ask", QUESTION, tickets, "--home", home.root, "--fault-rate", "0.03", "--fault-seed", "1")
    rlmscope("ask", QUESTION, tickets, "--home", home.root)
    wide_run(home, 2_000, BIG)
    spend_runs(home)
    nested_run(home)
    patchy_run(home)


def add_corpora(home: Home) -> None:
    """A corpus with pages, sheets, remarks and files left out, and a large one."""
    folder = home.root.parent / "mixed"
    shutil.copytree(ROOT / "tests" / "fixtures" / "documents", folder)
    (folder / "old letter.txt").write_bytes("Sehr geehrte Frau Müller,\n".encode("cp1252") * 40)
    (folder / "empty.txt").touch()
    Corpus.add([folder], home.corpora, name="Mixed bag")
    texts = {f"notes/{n:05}.txt": f"Note {n}: nothing much happened.\n" for n in range(1, 50_001)}
    Corpus.from_texts(texts, home.corpora, name="Fifty thousand notes")


@contextmanager
def reading(home: Home) -> Iterator[None]:
    """A corpus is being read, and does not get on."""
    ticket = new_run_id()
    files, lock = additions.Files(home, ticket), FileLock(additions.Files(home, ticket).lock)
    files.folder.mkdir(exist_ok=True)
    lock.try_acquire()
    files.write(files.order, asdict(additions.Addition(["/data/letters"], "Letters")))
    now = Progress(1_234, 50_000, 98_000_000, 4_100_000_000, "letters/1987/to the editor, on noise.txt")
    files.write(files.now, asdict(now))
    yield
    lock.release()
    additions.forget(home, ticket)


def take(browser: Browser, url: str, home: Home, shots: dict[str, Shot], folder: Path) -> None:
    """Every state in every theme and width."""
    for theme in ("light", "dark"):
        for width in WIDTHS:
            size = {"width": width, "height": HEIGHTS[width]}
            with ui.visiting(browser, url, viewport=size, color_scheme=theme) as visit:
                for name, make in shots.items():
                    page = visit.context.new_page()
                    make(page, visit.url, home)
                    ui.settle(page)
                    page.wait_for_timeout(700)  # fades and fonts: a picture has no event to wait for
                    page.screenshot(path=folder / f"{name}-{theme}-{width}.png")
                    visit.leave()


@contextmanager
def fresh_home() -> Iterator[Home]:
    """An empty home."""
    with tempfile.TemporaryDirectory(prefix="rlmscope-pictures-") as folder:
        yield Home.resolve(Path(folder) / "home")


def without_examples(home: Home) -> Home:
    """A home whose example runs were deleted."""
    from traces.upkeep import delete_run
    from ui.web.samples import install_examples

    for run_id in install_examples(home):
        delete_run(home, run_id)
    return home


GROUPS: Final[tuple[dict[str, Shot], ...]] = (
    SHOTS,
    site_shots.ADDING,
    site_shots.WITHOUT_RUNS,
    site_shots.AT_WORK,
    site_shots.KILLED,
)


Visits = Callable[[Browser, str, Home, dict[str, Shot]], None]


def main() -> None:
    """Make the pictures that the command line names."""
    folder, wanted = Path(sys.argv[1]), set(sys.argv[2:])
    folder.mkdir(parents=True, exist_ok=True)
    with ui.chromium() as browser:
        every_state(browser, wanted, partial(take, folder=folder))


def every_state(browser: Browser, wanted: set[str], visits: Visits) -> None:
    """Call `visits` with an app, its home and states of it, until it had all of `wanted`, or of all."""
    usual, adding, without, working, killed = (
        {name: make for name, make in group.items() if not wanted or name in wanted} for group in GROUPS
    )
    if usual or adding:
        with fresh_home() as home:
            prepare(home)
            with running_app(home) as app:
                url = f"http://127.0.0.1:{app.port}"
                visits(browser, url, home, usual)
                with reading(home):
                    visits(browser, url, home, adding)
    if without:
        with fresh_home() as home, running_app(without_examples(home)) as app:
            visits(browser, f"http://127.0.0.1:{app.port}", home, without)
    if working or killed:
        with fresh_home() as home:
            at_work(browser, home, working, killed, visits)


def at_work(
    browser: Browser, home: Home, working: dict[str, Shot], killed: dict[str, Shot], visits: Visits
) -> None:
    """The states of a run at work, whose sub-calls wait until they were visited; then of one killed."""
    gate = home.root.parent / "gate"
    models = {
        "RLMSCOPE_ROOT_MODEL": "openai/root",
        "RLMSCOPE_SUB_MODEL": "openai/sub",
        "OPENAI_API_KEY": "none",
    }
    with running_app(home, env={**surroundings(gate), **models}) as app:
        url = f"http://127.0.0.1:{app.port}"
        with ui.visiting(browser, url) as visit:
            page = visit.tab()
            ui.fill(page, "Question", QUESTION)
            ui.start(page)
            page.get_by_role("button", name="Cancel the run").wait_for()
            ui.expect_figure(page, "Sub-calls done", "1")
        try:
            visits(browser, url, home, working)
        finally:
            for process in processes(gate):
                os.kill(process, signal.SIGKILL)
        visits(browser, url, home, killed)


if __name__ == "__main__":
    main()
