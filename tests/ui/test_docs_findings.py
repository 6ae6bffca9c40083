"""What ui/docs/findings.md says is compared with the rules, and its command is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.command import ROOT, rlmscope
from traces import finding_calls, finding_cells, finding_run
from traces.home import Home
from traces.suspects import WEIGHTS
from ui.web.samples import install_examples

PAGE = (ROOT / "ui" / "docs" / "findings.md").read_text(encoding="utf-8")
SESSION = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", PAGE, re.M)
ROWS = [
    (re.findall(r"`([^`]+)`", kinds), severity)
    for kinds, severity in re.findall(r"^\| (`.+?) \| (\w+) \|", PAGE, re.M)
]
MADE = re.compile(r'Finding\(\s*"(\w+)",\s*(?:"(\w+)")?')


def home_with_examples(folder: Path) -> Home:
    home = Home.resolve(folder / "home")
    install_examples(home)
    return home


def test_the_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    home = home_with_examples(tmp_path)
    ((typed, shown),) = SESSION
    words = [*typed.split()[1:], "--home", str(home.root)]
    done = subprocess.run(
        [sys.executable, "-m", "ui", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown in done.stdout


def test_every_kind_of_finding_is_explained_with_its_severity() -> None:
    sources = [
        Path(module.__file__ or "").read_text("utf-8")
        for module in (finding_calls, finding_cells, finding_run)
    ]
    made = {kind: severity for source in sources for kind, severity in MADE.findall(source)}
    made |= {rule: severity for rule, (severity, _) in finding_cells.CHECKS.items()}
    explained = {kind: severity for kinds, severity in ROWS for kind in kinds if kind not in WEIGHTS}
    assert explained.keys() == made.keys()
    assert [kind for kind, severity in made.items() if severity and explained[kind] != severity] == []


def test_every_signal_is_explained_with_the_severity_of_its_finding() -> None:
    explained = {kind: severity for kinds, severity in ROWS for kind in kinds if kind in WEIGHTS}
    assert explained == dict(finding_calls.SEVERITY_OF)
    assert explained.keys() == WEIGHTS.keys()


def test_the_keys_of_a_finding_are_those_that_the_page_names(tmp_path: Path) -> None:
    home = home_with_examples(tmp_path)
    (found, *_) = rlmscope("show", "20260105T091500-0000e002", "--home", home.root)["findings"]
    named = PAGE[PAGE.index("`findings` as") : PAGE.index("| kind | severity")]
    assert found.keys() <= set(re.findall(r"`(\w+)`", named))
