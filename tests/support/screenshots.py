"""Pictures of every page and state of the app, to be looked at: `python -m tests.support.screenshots FOLDER`.

Each is made light and dark, 1280 and 1920 pixels wide: FOLDER/<state>-<theme>-<width>.png. Names of states as
further arguments make only those.
"""

from __future__ import annotations

import os
import re
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

from playwright.sync_api import Browser, Page, expect

from rlm_core.corpus import Corpus, Progress
from tests.support import browser as ui
from tests.support.app import running_app
from tests.support.command import ROOT, rlmscope
from tests.support.gated import processes, surroundings
from tests.support.patchy_run import PATCHY, patchy_run
from tests.support.recorded_runs import wide_run
from tests.support.spend_runs import spend_runs
from tests.support.step_runs import LONG as LONG_TEXT
from tests.support.step_runs import NESTED, long_run, nested_run
from traces.home import Home, new_run_id
from traces.locks import FileLock
from traces.opinions import judge, tag
from traces.reading import list_runs, load_run
from ui.web import additions
from ui.web.first_steps import BROKEN

QUESTION: Final = "How many tickets are about billing?"
LONG: Final = " ".join(["Which of the customers that wrote more than once are still waiting?"] * 6)
WIDTHS: Final = (1280, 1920)
HEIGHTS: Final = {1280: 900, 1920: 1080}
BIG: Final = "20270115T080000-00002000"
Shot = Callable[[Page, str, Home], None]
SHOTS: Final[dict[str, Shot]] = {}


def shot(make: Shot) -> Shot:
    """Register a state: a function that brings an empty tab there, given the app's address and home."""
    SHOTS[make.__name__] = make
    return make


# -- Ask


@shot
def ask_first(page: Page, url: str, home: Home) -> None:
    page.goto(url)
    expect(page.get_by_text("Last runs")).to_be_visible()


@shot
def ask_limits(page: Page, url: str, home: Home) -> None:
    ask_first(page, url, home)
    page.get_by_text("Limits, seeds and practice faults").click()
    expect(page.get_by_label("Fault rate")).to_be_visible()
    page.get_by_label("Fault rate").scroll_into_view_if_needed()


@shot
def ask_complaints(page: Page, url: str, home: Home) -> None:
    ask_first(page, url, home)
    ui.choose_source(page, "Path")
    ui.fill(page, "Root model", "gpt 5")
    ui.start(page)
    expect(page.get_by_text("Problem").nth(2)).to_be_visible()


@shot
def ask_uploaded(page: Page, url: str, home: Home) -> None:
    ask_first(page, url, home)
    ui.choose_source(page, "Upload")
    files = [
        {"name": f"note {n}.txt", "mimeType": "text/plain", "buffer": b"A note.\n" * n} for n in range(8)
    ]
    files.append(
        {"name": "picture.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(range(256))}
    )
    page.locator("input[type=file]").set_input_files(files)  # type: ignore[arg-type]
    expect(page.get_by_text("7 documents")).to_be_visible()


@shot
def ask_answer(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={run_of(home, QUESTION)}")
    ui.outcome(page).wait_for()


@shot
def ask_passages(page: Page, url: str, home: Home) -> None:
    ask_answer(page, url, home)
    page.get_by_role("heading", name="What it may rest on").scroll_into_view_if_needed()
    expect(page.get_by_text("Open passage 1.1")).to_be_visible()


@shot
def ask_cut_short(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={cut_short(home)}")
    ui.outcome(page).wait_for()


@shot
def document_passage(page: Page, url: str, home: Home) -> None:
    ask_passages(page, url, home)
    page.get_by_text("Open passage 1.1").click()
    page.get_by_text("The passage is marked").wait_for()


@shot
def ask_no_answer(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={run_of(home, 'What is the meaning of it all?')}")
    ui.outcome(page).wait_for()


@shot
def ask_unknown(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run=20260101T000000-00000000")
    expect(page.get_by_text("Problem")).to_be_visible()


# -- Runs


@shot
def runs(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/runs")
    ui.wait_for_table(page, len(list_runs(home)))


@shot
def runs_delete(page: Page, url: str, home: Home) -> None:
    runs(page, url, home)
    for number in (0, 1):
        ui.row_of(page, number).get_by_role("checkbox").check()
    page.get_by_text("2 chosen").wait_for()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Keep", exact=True).wait_for()


@shot
def runs_by_question(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/runs?group=1")
    page.get_by_role("table", name="Questions").wait_for()


@shot
def runs_judged(page: Page, url: str, home: Home) -> None:
    wrong, right, *_ = (run.run_id for run in list_runs(home) if run.question == QUESTION)
    judge(home, wrong, verdict="wrong", expected="41", note="counts the refunds twice")
    judge(home, right, verdict="right")
    tag(home, wrong, ["billing", "to look at"])
    page.goto(f"{url}/runs?sort=verdict&chosen={wrong},{right}")
    page.get_by_text("2 chosen").wait_for()


@shot
def compare(page: Page, url: str, home: Home) -> None:
    right = run_of(home, QUESTION)
    judge(home, right, verdict="right", expected="22", note="counted by hand")
    page.goto(f"{url}/compare?a={right}&b={BIG}")
    page.get_by_role("table", name="What each run took").wait_for()


@shot
def compare_choice(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/compare?a={run_of(home, QUESTION)}")
    page.get_by_role("combobox").click()


@shot
def runs_filtered_empty(page: Page, url: str, home: Home) -> None:
    runs(page, url, home)
    page.get_by_label("Filter").fill("nothing has these words")
    expect(page.get_by_text("No run fits these filters.")).to_be_visible()


# -- Run


@shot
def run_top(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}")
    ui.tree_row(page, "llm_query").wait_for()


@shot
def run_sub_call(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "sub_call", 7, "Prompt")


@shot
def run_cell(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "cell", 2, "Code")


@shot
def run_variables(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "cell", 2, "Variables")


@shot
def run_messages(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "root_call", 2, "Messages")


@shot
def run_failed_call(page: Page, url: str, home: Home) -> None:
    run_id = faulty(home)
    page.goto(f"{url}/run?run={run_id}")
    page.get_by_role("button", name="Next failed").click()
    page.get_by_role("tab", name="Attempts").click()
    ui.settle(page)


@shot
def run_table(page: Page, url: str, home: Home) -> None:
    run_top(page, url, home)
    page.get_by_text("Table", exact=True).click()
    page.locator("[role=gridcell]").first.wait_for(state="attached")


@shot
def run_big(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}")
    page.get_by_role("button", name="Expand all").click()
    ui.tree_row(page, "llm_query 3").click()
    expect(page.locator(".st-key-span-title")).to_have_text("llm_query 3")


@shot
def run_flame(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={faulty(home)}&pane=flame")
    page.get_by_role("application").press("ArrowDown")


@shot
def run_flame_big(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}&pane=flame")
    page.get_by_role("application").press("ArrowDown")


@shot
def run_search(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}&q=refund")
    page.get_by_role("button", name="Next hit").click()
    ui.settle(page)


@shot
def run_filtered(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}&status=error&status=empty&sort=cost")
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_label("Cost over ($)", exact=True)).to_be_visible()


@shot
def run_nothing_fits(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}&status=cancelled&depth=7&q=nowhere")
    expect(page.get_by_text("No span of this run fits")).to_be_visible()


@shot
def run_steps(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}&view=steps&step=3")
    expect(page.locator(".st-key-step-title")).to_have_text("Step 3: iteration 2, cell 2")


@shot
def run_steps_calls(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}&view=steps&step=2")
    expect(page.get_by_role("button", name="200 x llm_query")).to_be_visible()
    page.get_by_text("All 4 steps").click()
    page.get_by_role("table", name="Steps of the run").scroll_into_view_if_needed()


@shot
def run_steps_child(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={NESTED}&view=steps&step=2")
    page.get_by_role("button", name="Step into").first.scroll_into_view_if_needed()


@shot
def run_cost(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, BIG, "sub_call", 3, "Cost")


@shot
def run_sources(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "sub_call", 7, "Sources")


@shot
def run_facts(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "cell", 2, "Facts")


@shot
def run_find_in_text(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, LONG_TEXT, "sub_call", 0, "Prompt")
    ui.fill(page, "Find in this text", "refund of order 999")
    expect(page.get_by_text("Place 1 of")).to_be_visible()


@shot
def run_overview(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={faulty(home)}&view=overview")
    page.get_by_role("table", name="The calls that cost most").wait_for()
    ui.settle(page)


@shot
def run_overview_big(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}&view=overview")
    page.get_by_role("table", name="The calls that cost most").wait_for()
    ui.settle(page)


@shot
def run_findings(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={faulty(home)}&view=findings")
    page.get_by_role("table", name="Suspects").wait_for()
    ui.settle(page)


@shot
def run_no_findings(page: Page, url: str, home: Home) -> None:
    run_id = next(run.run_id for run in list_runs(home) if not run.failed_sub_calls and run.sub_calls)
    page.goto(f"{url}/run?run={run_id}&view=findings")
    page.get_by_text("Nothing was found").wait_for()
    ui.settle(page)


@shot
def run_coverage(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={PATCHY}&view=coverage")
    page.get_by_role("table", name="Documents and what became of their parts").wait_for()


@shot
def run_coverage_part(page: Page, url: str, home: Home) -> None:
    run_coverage(page, url, home)
    ui.fill(page, "Filter", "long_text")
    page.get_by_text(re.compile("^1 of .* documents")).wait_for()
    page.get_by_role("button", name="long_text.txt").click()
    page.get_by_role("table", name="Parts of the document").get_by_role("link").nth(5).click()
    page.get_by_role("link", name="Open the document at this part").wait_for()
    page.get_by_role("table", name="Spans that read this part").wait_for()


@shot
def run_coverage_unanswered(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BROKEN}&view=coverage&docs=unanswered&document=1")
    page.get_by_role("table", name="Parts of the document").wait_for()


@shot
def run_none(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run")
    expect(page.get_by_text("Problem")).to_be_visible()


@shot
def run_unknown_span(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}&span=0123456789abcdef")
    page.get_by_role("treeitem").first.wait_for()


# -- Corpora


@shot
def corpora(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora")
    ui.wait_for_table(page, len(Corpus.list(home.corpora)))


@shot
def corpora_add(page: Page, url: str, home: Home) -> None:
    corpora(page, url, home)
    page.get_by_text("Add documents").click()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Choose files, or give the path")).to_be_visible()


def corpora_reading(page: Page, url: str, home: Home) -> None:
    corpora(page, url, home)
    expect(page.get_by_text("1,234 of 50,000 files")).to_be_visible()


@shot
def corpus(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus={Corpus.find(home.corpora, 'Mixed bag')}")
    page.get_by_role("tab", name="Documents").wait_for()
    ui.settle(page)


@shot
def corpus_left_out(page: Page, url: str, home: Home) -> None:
    corpus(page, url, home)
    page.get_by_role("tab", name="Left out").click()


@shot
def corpus_runs(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus={Corpus.find(home.corpora, 'tickets')}")
    page.get_by_role("tab", name="Runs").click()


@shot
def corpus_remove(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus={Corpus.find(home.corpora, 'tickets')}")
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("button", name="Keep it").wait_for()


@shot
def corpus_big(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus={Corpus.find(home.corpora, 'Fifty thousand notes')}&document=40000")
    page.get_by_role("tab", name="Documents").wait_for()
    ui.settle(page)


@shot
def corpus_unknown(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus=0123456789abcdef")
    expect(page.get_by_text("Problem")).to_be_visible()


@shot
def ask_known_corpus(page: Page, url: str, home: Home) -> None:
    ask_first(page, url, home)
    ui.choose_source(page, "Known corpus")


# -- Spend


@shot
def spend(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend")
    page.get_by_role("table", name="Spend by").wait_for()
    page.locator(".js-plotly-plot .bars path").last.wait_for(state="attached")


@shot
def spend_days(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?by=day,corpus&sort=day")
    page.get_by_role("table", name="Spend by").wait_for()
    page.locator(".js-plotly-plot .bars path").last.wait_for(state="attached")


@shot
def spend_calls(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?view=calls")
    page.get_by_role("table", name="The dearest sub-calls").wait_for()
    page.locator(".js-plotly-plot .scatter path").first.wait_for(state="attached")


@shot
def spend_limits(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?view=limits")
    page.get_by_role("table", name="Runs, the dearest first").wait_for()


@shot
def spend_models(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?view=models&sub=openai/gpt-5")
    page.get_by_role("table", name="Recorded cost").wait_for()
    page.locator(".js-plotly-plot .bars path").last.wait_for(state="attached")


@shot
def spend_unknown(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?from=yesterday")
    expect(page.get_by_text("Problem")).to_be_visible()


@shot
def spend_demo_only(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?corpus={Corpus.find(home.corpora, 'tickets')}")
    expect(page.get_by_text("All of these runs are of the demo model")).to_be_visible()


def empty_spend(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend")
    expect(page.get_by_text("There are no runs yet")).to_be_visible()


# -- Settings and the guide


@shot
def settings_models(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings")
    expect(page.get_by_text("What a run uses now")).to_be_visible()


@shot
def settings_keys(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings?part=keys")
    page.get_by_role("table").wait_for()


@shot
def settings_defaults(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings?part=defaults")
    expect(page.get_by_text("This machine gives")).to_be_visible()


@shot
def settings_prices(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings?part=prices&model=openai/of-our-own")
    page.get_by_role("table").wait_for()
    expect(page.get_by_role("button", name="Set the price")).to_be_visible()


@shot
def settings_home(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings?part=home")
    page.get_by_role("table").wait_for()


@shot
def guide(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BROKEN}&guide=4")
    expect(page.get_by_text("(4 of 5)")).to_be_visible()
    page.get_by_role("treeitem").first.wait_for()


# -- a home where nothing was asked yet, and runs at work


def empty_corpora(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora")
    expect(page.get_by_text("There are no corpora yet")).to_be_visible()


def empty(page: Page, url: str, home: Home) -> None:
    page.goto(url)
    expect(page.get_by_text("There are no runs yet")).to_be_visible()


def empty_runs(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/runs")
    expect(page.get_by_text("There are no runs yet")).to_be_visible()


def live_ask(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={list_runs(home)[0].run_id}")
    ui.expect_figure(page, "Sub-calls done", "1")


def live_run(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={list_runs(home)[0].run_id}")
    expect(ui.tree_row(page, "llm_query 1")).to_contain_text("running")


def live_runs(page: Page, url: str, home: Home) -> None:
    runs(page, url, home)


def killed_ask(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={list_runs(home)[0].run_id}")
    ui.outcome(page).wait_for()


def killed_run(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={list_runs(home)[0].run_id}")
    ui.tree_row(page, "llm_query 1").wait_for()


# -- how they are made


def run_of(home: Home, question: str) -> str:
    """The newest run of a question."""
    return next(run.run_id for run in list_runs(home) if run.question == question)


def faulty(home: Home) -> str:
    """The newest run with a failed sub-call of the demo model."""
    return next(run.run_id for run in list_runs(home) if run.failed_sub_calls and run.demo and not run.forced)


def cut_short(home: Home) -> str:
    """The newest run that a limit stopped."""
    return next(run.run_id for run in list_runs(home) if run.stop_reason == "budget")


def go_to(page: Page, url: str, home: Home, run_id: str, kind: str, number: int, tab: str) -> None:
    """A tab of the n-th span of a kind."""
    spans = [span for span in load_run(home, run_id).spans if span.kind == kind]
    page.goto(f"{url}/run?run={run_id}&span={spans[number].span_id}")
    page.get_by_role("tab", name=tab).click()
    ui.settle(page)


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
    {"corpora_reading": corpora_reading},
    {"empty": empty, "empty_runs": empty_runs, "empty_corpora": empty_corpora, "empty_spend": empty_spend},
    {"live_ask": live_ask, "live_run": live_run, "live_runs": live_runs},
    {"killed_ask": killed_ask, "killed_run": killed_run, "killed_runs": live_runs},
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
