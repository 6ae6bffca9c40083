"""What ui/docs/training-data.md and ui/docs/repeat.md say is run: commands, what they print, keys, words."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.command import ROOT
from traces.exporters.secrets import REDACTED
from traces.exporters.sft_runs import KINDS
from traces.home import Home
from traces.same_answer import explain
from ui.cli import cli
from ui.web.samples import install_examples

TRAINING = (ROOT / "ui" / "docs" / "training-data.md").read_text(encoding="utf-8")
REPEAT = (ROOT / "ui" / "docs" / "repeat.md").read_text(encoding="utf-8")
SESSION = r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home that the commands find by themselves, in a folder of its own."""
    home = Home.resolve(tmp_path / "home")
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    monkeypatch.chdir(tmp_path)
    return home


def test_the_export_prints_what_the_page_shows_and_has_the_keys_it_names(home: Home, tmp_path: Path) -> None:
    install_examples(home)
    session = re.findall(SESSION, TRAINING, re.M)
    assert len(session) == 3
    for line, printed in session:
        done = CliRunner().invoke(cli, shlex.split(line))
        shown = done.stdout.replace(f"{tmp_path}/", "")
        assert (done.exit_code, masked(shown)) == (0, masked(printed)), line
    assert "its answer is not the expected one" in done.stderr
    document = CliRunner().invoke(cli, [*shlex.split(line), "--out", "again.jsonl", "--json"])
    (named,) = re.findall(r"^\| `export` \| (.*) \|$", TRAINING, re.M)
    assert list(json.loads(document.stdout)) == re.findall(r"`(\w+)`", named)
    facts = json.loads((tmp_path / "train.jsonl").read_text("utf-8").splitlines()[0])
    assert list(facts) == ["messages", "metadata"]
    rows = TRAINING.partition("| in `metadata` | |")[2].partition("\n\n")[0]
    assert list(facts["metadata"]) == re.findall(
        r"`(\w+)`(?=[,` ])", re.sub(r"\|[^|]*\|$", "|", rows, flags=re.M)
    )


def test_the_kinds_are_said_in_the_words_of_the_program() -> None:
    assert all(f"| `{kind}` | {words} |" in TRAINING for kind, words in KINDS.items())
    assert f"`{REDACTED}`" in TRAINING


def masked(text: str) -> str:
    """Without what differs from run to run or with the prompts: ids, tokens, times, the lock."""
    text = re.sub(r"\b20\d{6}T\d{6}-[0-9a-f]{8}", "(run)", text)
    text = re.sub(r"tokens [\d,]+ in, [\d,]+ out|[\d,]+ tokens", "(tokens)", text)
    return re.sub(r"· [\d.]+ m?s · sandbox .*", "· (time)", text)


@pytest.mark.usefixtures("home")
def test_repeats_print_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("1 refund asked\n2 parcel sent\n3 refund paid\n")
    ((line, printed),) = re.findall(SESSION, REPEAT, re.M)
    done = CliRunner().invoke(cli, shlex.split(line))
    assert (done.exit_code, masked(done.stdout)) == (0, masked(printed))
    document = json.loads(CliRunner().invoke(cli, [*shlex.split(line), "--json"]).stdout)
    for key in ("runs", "agreement", "total_cost_usd"):
        (named,) = re.findall(rf"^\| `{key}` \| (.*) \|$", REPEAT, re.M)
        value = document[key][0] if key == "runs" else document[key]
        inner = [*value, *(value["groups"][0] if key == "agreement" else ())] if value != "0" else []
        assert re.findall(r"`(\w+)`", named) == inner


def test_comparisons_are_said_in_the_words_of_the_program() -> None:
    for how in ("normalised", "exact"):
        assert f"| `{how}` | {explain(how)} |" in REPEAT
