"""Text of models, documents and people that tries to be more than text: it must be seen as what it is.

The watch of every visit fails on anything that would leave the app. `nothing_got_in` looks through the whole
page, shadow trees included, for elements, addresses and handlers that came from such text, and for controls
and direction marks that were not made visible.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, Page

from tests.support import browser as ui
from tests.support.app import Server
from tests.support.checked_sets import checked, make_set
from tests.support.expecting import expect
from tests.support.loopback import Fault, Loopback, Reply, Script
from traces.home import Home
from traces.opinions import judge
from traces.prices import set_price
from traces.reading import list_runs

pytestmark = pytest.mark.needs("chromium")

ELSEWHERE = "http://127.0.0.1:9"


def hostile(place: str) -> str:
    """A text that tries everything; `place` says where it stood."""
    return (
        f"{place} <script>window.pwned = 1; alert('{place}')</script>"
        f'<img src="{ELSEWHERE}/{place}.png" onerror="window.pwned = 1">'
        f'<a href="javascript:window.pwned=1">a</a><iframe src="{ELSEWHERE}/{place}"></iframe>'
        f"![i]({ELSEWHERE}/{place}.png) [l](javascript:window.pwned=1) [m]({ELSEWHERE}/{place}) "
        f":red[{place}] :material/delete: $x^2$ \x1b[31mred\x1b[0m \x1b]8;;{ELSEWHERE}\x07link\x1b]8;;\x07 "
        "\u202egnp.exe\u202c \u2066\u2069 "
    )


RAISES = f"```repl\nraise ValueError({hostile('exception')!r})\n```"
ASKS = f"""{hostile("prose")}
```repl
# {hostile("comment")}
kept = [{hostile("variable")!r}]
replies = llm_batch(['wait', 'break', {hostile("prompt")!r}, ''.join(documents[0])])
print({hostile("printed")!r} + "\\0")
```"""
ENDS = f"""```repl
answer["content"] = {hostile("answer")!r} + "\\0"
answer["confidence"], answer["note"] = "low", {hostile("note")!r}
answer["ready"] = True
```"""


@pytest.fixture(scope="module")
def gate() -> threading.Event:
    """Closed, sub-calls that wait are not answered."""
    return threading.Event()


@pytest.fixture(scope="module")
def model(gate: threading.Event) -> Iterator[Loopback]:
    """A model server whose every reply is hostile."""

    def sub(prompt: str) -> Reply:
        if prompt == "wait":
            gate.wait(60)
        return Reply(hostile("reply") + "\0", reasoning=hostile("reasoning"), model=hostile("model"))

    error = {"error": {"message": hostile("error"), "type": hostile("type"), "code": hostile("code")}}
    fault = Fault("body", contains="break", times=None, status=400, body=error)
    root = [Reply(text, reasoning=hostile("thought")) for text in (RAISES, ASKS, ENDS)]
    with Loopback(Script(root=root, sub=sub, faults=[fault])) as server:
        yield server
        gate.set()


@pytest.fixture(scope="module")
def surroundings(model: Loopback) -> dict[str, str]:
    """The app, and the runs it starts, meet that server."""
    models = {"RLMSCOPE_ROOT_MODEL": "openai/root-model", "RLMSCOPE_SUB_MODEL": "openai/sub-model"}
    return {**models, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-none"}


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder with hostile names; the slash of an address is a folder's."""
    folder = tmp_path / "documents"
    for name in (f"![i]({ELSEWHERE}/name.png)", "<img src=x onerror=alert(1)>.txt", "\x1b[31m\u202etxt.md"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(hostile("document"), encoding="utf-8")
    (folder / ":red[empty] ![i](x).txt").touch()
    return folder


# A function of the root element: what it finds that should not be there.
_LOOK = r"""
root => {
  const found = [], note = what => found.push(String(what).slice(0, 300));
  const unseen = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
  const leads = /^(src|srcset|href|xlink:href|action|formaction|poster|data|background|ping)$/;
  const own = address => {
    const url = URL.parse(address, location.origin);
    return url !== null && (url.origin === location.origin || url.protocol === "data:");
  };
  const attribute = (element, name, value) => {
    if (name.startsWith("on")) note(`handler ${name}=${value}`);
    if (leads.test(name) && !own(value)) note(`${element.tagName} ${name}=${value}`);
    if (name === "style" && /url\(/.test(value)) note(`style=${value}`);
    if (unseen.test(value) && name !== "value") note(`unseen in ${name}: ${JSON.stringify(value)}`);
  };
  const look = node => {
    const typed = node.parentElement?.tagName === "TEXTAREA"; // what a person types is theirs
    if (node.nodeType === Node.TEXT_NODE && !typed && unseen.test(node.data)) note(JSON.stringify(node.data));
    if (node.nodeType === Node.ELEMENT_NODE) {
      const inner = ["IFRAME", "OBJECT", "EMBED", "BASE"].includes(node.tagName);
      const script = node.tagName === "SCRIPT" && node.textContent.includes("pwned");
      const markdown = node.matches(".katex, [data-testid=stMarkdownColoredText]");
      if (inner || script || markdown) note(node.outerHTML);
      for (const { name, value } of node.attributes) attribute(node, name, value);
      if (node.shadowRoot) look(node.shadowRoot);
    }
    for (const child of node.childNodes) look(child);
  };
  if (window.pwned) note("a script ran");
  look(root);
  return found;
}
"""


def nothing_got_in(page: Page, *places: str) -> None:
    """The page is clean, and the texts of these places are seen on it as text."""
    for place in places:
        seen = page.get_by_text(f"{place} <script>window.pwned = 1; alert('{place}')</script>").first
        expect(seen).to_be_visible()
    assert page.evaluate(f"({_LOOK})(document.documentElement)") == []


@pytest.mark.full
def test_every_page_while_a_hostile_run_goes_on_and_after_it(
    page: Page, visit: ui.Visit, documents: Path, gate: threading.Event, home: Home
) -> None:
    walk_asking(page, visit, documents, gate)
    walk_runs(page, visit)
    walk_compare(page, visit, home)
    walk_run(page, visit, list_runs(home)[0].run_id)
    walk_steps(page, visit, list_runs(home)[0].run_id)
    walk_diagnose(page, visit, list_runs(home)[0].run_id)
    walk_sets(page, visit, home)


def walk_sets(page: Page, visit: ui.Visit, home: Home) -> None:
    """The Sets page: the list, and a set with a hostile name whose run has a hostile expected answer."""
    name = "<img src=x onerror=alert(1)>"
    make_set(home, name, [(list_runs(home)[0].run_id, hostile("expected"))])
    checked(home, name, (False,))
    page.goto(f"{visit.url}/sets")
    page.get_by_role("table", name="Sets").wait_for()
    nothing_got_in(page)
    page.goto(f"{visit.url}/sets?{urlencode({'set': name})}")
    page.get_by_role("table", name="Checks of the set, newest first").wait_for()
    nothing_got_in(page, "question", "expected")


def walk_asking(page: Page, visit: ui.Visit, documents: Path, gate: threading.Event) -> None:
    """The Ask page: the form and its complaints, a run at work, its outcome, the last runs."""
    page.goto(visit.url)
    ui.choose_source(page, "Path")
    ui.fill(page, "File or folder on the machine where this app runs", str(documents))
    page.get_by_role("button", name="Read it now").click()
    expect(page.get_by_text("3 documents")).to_be_visible()
    expect(page.get_by_text("<img src=x onerror=alert(1)>.txt").first).to_be_visible()
    ui.fill(page, "Sub-model", "openai/![i](http:/127.0.0.1:9/i.png)<b>:red[x]")
    nothing_got_in(page)
    ui.fill(page, "Sub-model", "![i](http://127.0.0.1:9/i.png)<b>")
    ui.fill(page, "Question", hostile("question"))
    ui.start(page)
    expect(page.get_by_text("is not of the form PROVIDER/NAME")).to_be_visible()
    nothing_got_in(page)
    ui.fill(page, "Sub-model", "openai/sub-model")
    ui.start(page)
    expect(page.get_by_text("Running a cell: cell 1.")).to_be_visible()
    nothing_got_in(page, "question", "comment")
    gate.set()
    ui.outcome(page).wait_for()
    expect(page.get_by_role("link", name=re.compile("^Open call")).first).to_be_visible()
    nothing_got_in(page, "question", "answer", "note", "reply")
    page.get_by_role("link", name=re.compile("^Open passage")).first.click()
    page.locator("mark").wait_for()
    nothing_got_in(page, "document")
    page.goto(visit.url)
    expect(page.get_by_text("Last runs")).to_be_visible()
    nothing_got_in(page, "question", "answer")


def walk_runs(page: Page, visit: ui.Visit) -> None:
    """The Runs page: the table, the question whether to delete."""
    page.goto(f"{visit.url}/runs")
    ui.wait_for_table(page, 3)
    row = ui.table_rows(page)[0]
    assert "question <script>" in row["Question"] and "answer <script>" in row["Answer"]
    nothing_got_in(page)
    ui.row_of(page, 0).get_by_role("checkbox").check()
    page.get_by_text("1 chosen").wait_for()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Keep", exact=True).wait_for()
    nothing_got_in(page, "question")
    page.goto(f"{visit.url}/runs?group=1")
    page.get_by_role("table", name="Questions").wait_for()
    nothing_got_in(page)


def walk_compare(page: Page, visit: ui.Visit, home: Home) -> None:
    """The Compare page: two answers side by side and as one text, a note about one of the runs."""
    one, other = (run.run_id for run in list_runs(home)[:2])
    judge(home, one, verdict="wrong", expected=hostile("expected"), note=hostile("note"))
    page.goto(f"{visit.url}/compare?a={one}&b={other}")
    page.get_by_role("table", name="The answers side by side").wait_for()
    nothing_got_in(page, "question", "answer", "expected", "note")
    page.get_by_text("One below the other").click()
    expect(page.get_by_role("table", name="The answers side by side")).to_be_hidden()
    nothing_got_in(page, "answer")
    page.goto(f"{visit.url}/compare?a={one}&b={other}&all=1")
    expect(page.get_by_role("treeitem").first).to_be_visible()
    for _ in range(5):
        page.get_by_role("button", name="Next difference").click()
        ui.settle(page)
        nothing_got_in(page)


# Every kind of tab once; the spans that hold most.
WALK = {
    "run": ("Answer", "Question", "Value", "Documents", "Settings", "Raw"),
    "root call": ("Response", "Reasoning", "Messages"),
    "cell 0": ("Exception",),
    "cell 1": ("Code", "Output", "Variables", "Facts"),
    "llm_query 0": ("Response", "Reasoning"),
    "llm_query 1": ("Attempts",),
    "llm_query 3": ("Prompt", "Sources", "Cost"),
}
PLACES = {
    "question",
    "answer",
    "exception",
    "comment",
    "variable",
    "printed",
    "document",
    "reply",
    "reasoning",
    "thought",
    "error",
    "model",
}


def walk_run(page: Page, visit: ui.Visit, run_id: str) -> None:
    """The Run page: head, tree, every kind of tab, the table."""
    page.goto(f"{visit.url}/run?run={run_id}")
    page.get_by_role("button", name="Expand all").click()
    nothing_got_in(page, "question", "answer", "note")
    seen: set[str] = set()
    there: set[str] = set()
    for row, tabs in WALK.items():
        ui.tree_row(page, row).click()
        expect(page.locator(".st-key-span-title")).to_have_text(row)
        ui.settle(page)
        for tab in tabs:
            page.get_by_role("tab", name=tab, exact=True).click()
            expect(page.get_by_role("tabpanel", name=tab, exact=True)).to_have_text(re.compile(r"\S"))
            ui.settle(page)
            nothing_got_in(page)
            text = page.get_by_test_id("stMain").text_content() or ""
            seen.update(place for place in PLACES if f"{place} <script>" in text)
        there.update(page.get_by_role("tab").all_inner_texts())
    assert there - {"Events", "Findings", "Inside"} == {tab for tabs in WALK.values() for tab in tabs}
    assert seen == PLACES
    page.get_by_text("Table", exact=True).click()
    page.get_by_role("treeitem").first.wait_for(state="detached")
    ui.settle(page)
    nothing_got_in(page, "question")
    page.goto(f"{visit.url}/run?run={run_id}&pane=flame&q=script&status=error")
    page.get_by_role("application").press("ArrowDown")
    page.get_by_role("table", name="Hits").wait_for()
    page.get_by_role("button", name="Filters (1)").click()
    ui.settle(page)
    nothing_got_in(page, "question")
    views = {
        "overview": "Prompts by their pattern",
        "findings": "Suspects",
        "coverage": "Documents and what became of their parts",
        "coverage&document=0": "Parts of the document",
    }
    for view, table in views.items():
        page.goto(f"{visit.url}/run?run={run_id}&view={view}")
        page.get_by_role("table", name=table).wait_for()
        ui.settle(page)
        nothing_got_in(page, "question", "answer", "note")


def walk_steps(page: Page, visit: ui.Visit, run_id: str) -> None:
    """The steps of the run: what the root was told, code, output, variables, the list."""
    page.goto(f"{visit.url}/run?run={run_id}&view=steps&step=2")
    expect(page.locator(".st-key-step-title")).to_contain_text("Step 2")
    nothing_got_in(page, "comment", "printed")
    page.get_by_text("All 3 steps").click()
    page.get_by_role("table", name="Steps of the run").wait_for()
    nothing_got_in(page)


def walk_diagnose(page: Page, visit: ui.Visit, run_id: str) -> None:
    """The Diagnose page: the offers, a search that ends with suspects, a reply that is tested."""
    page.goto(f"{visit.url}/diagnose?run={run_id}")
    expect(page.get_by_role("button", name="Find minimal cause")).to_be_visible()
    nothing_got_in(page, "question", "answer")
    page.get_by_role("button", name="Find minimal cause").click()
    expect(page.get_by_role("heading", name="How it was found out")).to_be_visible()
    nothing_got_in(page, "question", "answer")
    page.get_by_label("It should have said").fill(hostile("typed"))
    page.get_by_role("button", name="Test this answer").click()
    expect(page.get_by_text("Answer now")).to_be_visible()
    nothing_got_in(page, "question", "answer")


def test_settings(page: Page, visit: ui.Visit, home: Home) -> None:
    """Ids, names and searches of the Settings page, and the note of a price."""
    note = "".join(c for c in hostile("note") if c.isprintable())
    set_price(home, "openai/x", {"input": Decimal(1), "output": Decimal(1)}, note=note)
    page.goto(f"{visit.url}/settings?{urlencode({'part': 'prices', 'model': 'openai/x'})}")
    page.get_by_role("table", name="Prices of models").wait_for()
    nothing_got_in(page, "note")
    page.goto(f"{visit.url}/settings?{urlencode({'part': 'prices', 'model': hostile('model')})}")
    expect(page.get_by_text("No model fits these words.")).to_be_visible()
    nothing_got_in(page)
    page.goto(f"{visit.url}/settings?{urlencode({'part': hostile('part')})}")
    expect(page.get_by_text("There is no part")).to_be_visible()
    nothing_got_in(page)
    page.get_by_label("Root model", exact=True).fill(f"openai/![i]({ELSEWHERE}/i.png)<b>")
    page.get_by_role("button", name="Save models").click()
    expect(page.get_by_text("is not of the form PROVIDER/NAME")).to_be_visible()
    nothing_got_in(page)


def test_uploaded_names(page: Page, visit: ui.Visit) -> None:
    page.goto(visit.url)
    ui.choose_source(page, "Upload")
    names = (
        f"![i]({ELSEWHERE}/i.png).txt",
        "<img src=x onerror=alert(1)>.txt",
        ":red[x] \x1b[31m\u202etxt.md",
    )
    given = [
        {"name": name, "mimeType": "text/plain", "buffer": hostile("document").encode()} for name in names
    ]
    page.locator("input[type=file]").set_input_files(given)  # type: ignore[arg-type]
    expect(page.get_by_text("3 documents")).to_be_visible()
    # the widget shows the name of a person's own file as the browser gave it, marks included
    found = [each for each in page.evaluate(f"({_LOOK})(document.documentElement)") if "txt.md" not in each]
    assert not found


def test_addresses(page: Page, visit: ui.Visit, home: Home) -> None:
    bad = quote(hostile("address") + "\0")
    run_id = list_runs(home)[0].run_id
    places = (
        "?run={bad}",
        "run?run={bad}&span={bad}",
        "run?run={run_id}&span={bad}",
        "compare?a={bad}&b=x",
        "run?run={run_id}&view={bad}&pane={bad}&sort={bad}&over={bad}&status={bad}&model={bad}",
        "run?run={run_id}&q=({bad}&regex=1",  # the bracket stays open: no expression
    )
    for path in (place.format(bad=bad, run_id=run_id) for place in places):
        page.goto(f"{visit.url}/{path}")
        expect(page.get_by_text("Problem", exact=True).first).to_be_visible()
        ui.settle(page)
        nothing_got_in(page)


def test_the_look_sees_what_it_should(page: Page, visit: ui.Visit) -> None:
    page.goto(f"{visit.url}/{LIGHT}")
    text = hostile("x") + "<object></object><p style='background: url(//127.0.0.1:9)' onclick='0'>"
    parsed = "new DOMParser().parseFromString(text, 'text/html').documentElement"
    found = "\n".join(page.evaluate(f"text => ({_LOOK})({parsed})", text))
    for sign in ("IMG src=", "handler onerror=", "A href=javascript:", "<iframe", "IFRAME src=", "gnp.exe"):
        assert sign in found
    for sign in ("<script>", "<object", "style=", "handler onclick="):
        assert sign in found
    visit.strays.clear()  # the policy refuses handlers in a document that is only parsed, too


# -- the watch itself

ESCAPES = {
    "image": "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))",
    "request": "fetch('http://127.0.0.1:9/x').catch(() => 0)",
    "websocket": "try { new WebSocket('ws://127.0.0.1:9/x') } catch {}",
    "style": "document.body.style.backgroundImage = 'url(http://127.0.0.1:9/x.png)'",
    "script": "document.head.append(Object.assign(document.createElement('script'), {textContent: '0'}))",
    "frame": "document.body.append(Object.assign(document.createElement('iframe'), {src: 'http://127.0.0.1:9'}))",
    "dialog": "alert('hello')",
}
LIGHT = "_stcore/health"  # the smallest answer of the app; it carries the same policy as all others


def test_whatever_leaves_a_page_is_refused_and_noticed(browser: Browser, app: Server) -> None:
    with ui.visiting(browser, f"http://127.0.0.1:{app.port}") as visit:
        for name, script in ESCAPES.items():
            page = visit.tab(LIGHT)  # a new one: what is told late of the one before belongs to that
            page.evaluate(script)
            while not visit.strays:
                page.wait_for_timeout(20)
            with pytest.raises(AssertionError, match="dialog: hello" if name == "dialog" else "refused: "):
                visit.leave()


def test_an_address_elsewhere_and_a_broken_script_are_noticed(browser: Browser, app: Server) -> None:
    url = f"http://127.0.0.1:{app.port}"
    with (
        pytest.raises(AssertionError, match="asked for http"),
        ui.visiting(browser, "http://127.0.0.1:9") as visit,
    ):
        visit.context.new_page().goto(f"{url}/{LIGHT}")
    with pytest.raises(AssertionError, match="script error: .*late"), ui.visiting(browser, url) as visit:
        late = "new Promise((done) => setTimeout(() => { setTimeout(done); throw new Error('late') }))"
        visit.tab(LIGHT).evaluate(late)
