"""What ui/docs/corpora.md says is run: its commands and what they print, its formats and keys."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.command import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "documents" / "good"
PAGE = (ROOT / "ui" / "docs" / "corpora.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```$", PAGE, re.S | re.M)
SESSION = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(b for b in BLOCKS if b.startswith("$")), re.M)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """The folder that the page describes."""
    from pptx import Presentation

    folder = tmp_path / "inbox"
    folder.mkdir()
    (folder / "contract.txt").write_text("The contract renews on 1 March unless it is cancelled.\n")
    (folder / "letter.txt").write_bytes("Grüße aus München\n".encode("cp1252"))
    (folder / "empty.txt").touch()
    (folder / "scan.pdf").write_bytes(b"%PDF-1.7\n")
    deck = Presentation()
    for title in ("Costs", "Income", "Outlook"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    deck.save(str(folder / "deck.pptx"))
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("notes/meeting.md", "# Meeting\n\nThe refund was approved.\n")
        archive.writestr("../escape.txt", "x")
    return folder


def masked(text: str) -> str:
    """Without what differs from day to day."""
    return re.sub(r"\d{4}-\d\d-\d\d$", "(day)", text, flags=re.M)


def test_the_commands_print_what_the_page_shows(inbox: Path) -> None:
    assert len(SESSION) == 4
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    for line, shown in SESSION:
        words = shlex.split(line)
        assert words.pop(0) == "rlmscope"
        done = subprocess.run(
            [sys.executable, "-m", "ui", *words],
            cwd=inbox.parent, env=environment, text=True, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert masked(done.stdout).strip() == masked(shown).strip(), line


def test_the_keys_named_are_in_the_documents() -> None:
    from rlm_core.corpus import Corpus
    from ui.corpora import details, facts

    corpus = Corpus.from_texts(["text"], Path(os.environ["RLMSCOPE_HOME"]) / "corpora")
    assert {"corpus_id", "documents", "chars", "problems"} <= facts(corpus).keys()
    named = re.search(r"`corpus show` adds (.*) that used it", PAGE, re.S)
    assert named is not None
    assert set(re.findall(r"`(\w+)`", named[1])) <= details(corpus).keys() | {"runs"}


def test_formats_named_by_their_suffix_are_read() -> None:
    """Each by a reader of its own, from files that other programs made."""
    from rlm_core.corpus import Corpus

    named = set(re.findall(r"`(\.\w+)`", PAGE.split("## What is read")[1].split("Not read:")[0]))
    found = [path for path in sorted(FIXTURES.iterdir()) if path.suffix in named]
    corpus = Corpus.add(found, Path(os.environ["RLMSCOPE_HOME"]) / "corpora")
    readers = {Path(document.name).suffix: document.reader for document in corpus.documents}
    assert named <= {suffix for suffix, reader in readers.items() if reader != "text"}
