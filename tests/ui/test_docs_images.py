"""What ui/docs/images.md shows is run, and its figures, suffixes and keys are those of the program."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
from PIL import Image

from rlm_core import images
from rlm_core.corpus import Corpus
from rlm_core.lm_handler import IMAGE_TOKENS
from rlm_core.readers.output import LONGEST_EDGE
from tests.support.command import ROOT
from tests.support.scripted import play
from traces.span_images import image_facts
from ui.cli import cli

PAGE = (ROOT / "ui" / "docs" / "images.md").read_text(encoding="utf-8")


def test_the_code_runs_over_the_files_of_the_command(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)
    (command,) = re.findall(r"^rlmscope ask .*$", PAGE, re.M)
    words = shlex.split(command)[2:]
    ask = cli.get_command(click.Context(cli), "ask")
    assert ask is not None
    parsed = ask.make_context("ask", list(words)).params
    given = [tmp_path / word for word in words if word.endswith((".pdf", ".png"))]
    assert parsed["sources"] == ("report.pdf", "chart.png")
    pages = [Image.new("RGB", (90, 60), colour) for colour in ("red", "green")]
    pages[0].save(given[0], save_all=True, append_images=pages[1:])
    pages[0].save(given[1])
    corpus = Corpus.add(given, tmp_path / "corpora")
    answer, script = play(code, corpus=corpus, sub=lambda request: str(len(request.messages[0].images)))
    assert answer.text == "1; ['1', '1']"
    assert [r.prompt.strip() for r in script.sub_requests][1:] == ["What does the figure show?"] * 2


def test_figures_are_those_of_the_program() -> None:
    plain = " ".join(PAGE.split())
    for figure in (
        f"at most {LONGEST_EDGE:,} pixels",
        f"at most {images.MOST_IMAGES} images, and {images.MOST_BYTES:,} bytes",
        f"{IMAGE_TOKENS:,} tokens an image",
    ):
        assert figure in plain


def test_the_keys_of_an_image_are_all_named() -> None:
    (named,) = re.findall(r"with `--json`, `images` has for each (.*?)\n- ", PAGE, re.S)
    assert set(re.findall(r"`(\w+)`", named)) == image_facts({}).keys()
