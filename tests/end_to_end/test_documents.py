"""Documents made by other programs, from the command line: problems are named, questions find the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_core import FunctionLMHandler
from rlm_core.corpus import Corpus
from tests.support.command import ROOT, inside
from tests.support.scripted import Script, cell
from traces.home import Home

DOCUMENTS = ROOT / "tests" / "fixtures" / "documents"
DEMO = ("--root", "demo/root", "--sub", "demo/sub")
HALF_READ = {"climbing.zip", "damaged-member.zip"}  # archives of which one member is refused
LIARS = {"really-a-page.xls", "really-a-pdf.docx"}  # read as what they are
PICTURES = {"picture.pdf", "scanned.pdf"}  # for models that see images
# Each fact stands in one place of one document.
FACTS = {
    "notice period for": ("contract.pdf", "page 3"),
    "The miller was Asta Lund.": ("deck.pptx", "slide 1"),
    "Nordsalt AS": ("orders.xlsx", "sheet Suppliers"),
    "The pump on pier 9": ("letter.eml", None),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("documents") / "home")


@pytest.fixture(scope="module")
def added(home: Home) -> Any:
    """What the command says about the good and the broken documents."""
    folders = (DOCUMENTS / "good", DOCUMENTS / "broken")
    return inside("corpus", "add", *folders, "--name", "documents", "--home", home.root)


def calls(home: Home, run: str) -> list[Any]:
    """Every sub-call of a run, as `rlmscope span` shows it."""
    shown = inside("show", run, "--home", home.root)["spans"]
    found = [span["span_id"] for span in shown if span["kind"] == "sub_call"]
    return [inside("span", run, span, "--home", home.root) for span in found]


def passages(home: Home, corpus_id: str, ranges: list[list[int]]) -> list[tuple[str, str]]:
    """Name of the document and text of each range."""
    documents = Corpus.load(home.corpora, corpus_id).documents
    cut = [(documents[number], start, end) for number, start, end in ranges]
    return [(d.name, Path(d.path).read_bytes()[start:end].decode()) for d, start, end in cut]


def test_broken_documents_are_named_and_the_others_read(added: Any, home: Home) -> None:
    named = {Path(problem["path"]).as_posix() for problem in added["problems"]}
    for path in (DOCUMENTS / "broken").iterdir():
        mine = [name for name in named if f"{path.name}/" in f"{name}/"]
        assert len(mine) == (2 if path.name == "climbing.zip" else 1), (path.name, mine)
    assert all(problem["message"] and "\n" not in problem["message"] for problem in added["problems"])
    documents = Corpus.load(home.corpora, added["corpus_id"]).documents
    read = {document.name.partition("/")[0] for document in documents}
    good = {path.name for path in (DOCUMENTS / "good").iterdir()}
    assert read == good | HALF_READ | LIARS | PICTURES


def test_a_question_is_answered_with_the_place_of_the_answer(added: Any, home: Home) -> None:
    asked = ("What is the notice period for renewal?", added["corpus_id"])
    said = inside("ask", *asked, *DEMO, "--home", home.root)
    assert said["answer"] == "73 days"
    places = {}
    for call in calls(home, said["run_id"]):
        sources = call["source_ranges"]
        assert sources["how"] == "located"
        found = passages(home, added["corpus_id"], sources["ranges"])
        for (name, text), place in zip(found, sources["places"], strict=True):
            if "73 days" in text:
                places[name] = place
    assert places["contract.pdf"] in (
        "page 3",
        "pages 1-4",
    )  # the demo model asks about whole short documents


def test_every_passage_knows_its_page_slide_or_sheet(
    added: Any, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        f"facts = {[(name, fact) for fact, (name, _) in FACTS.items()]!r}\n"
        "lines = [context[name].search(fact)[0].line for name, fact in facts]\n"
        "replies = llm_batch(['Passage:\\n' + line for line in lines])\n"
        "FINAL(len(replies))"
    )
    models = FunctionLMHandler(Script([cell(code)]))
    monkeypatch.setattr("rlm_core.models.make_handler", lambda *_, **__: models)
    asked = ("Where is it?", added["corpus_id"], "--root", "openai/root", "--sub", "openai/sub")
    said = inside("ask", *asked, "--home", home.root)
    assert said["answer"] == str(len(FACTS))
    found = {}
    for call in calls(home, said["run_id"]):
        sources = call["source_ranges"]
        ((name, text),) = passages(home, added["corpus_id"], sources["ranges"])
        fact = next(fact for fact in FACTS if fact in text)
        found[fact] = (name, *sources["places"])
    assert found == FACTS
