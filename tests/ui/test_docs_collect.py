"""What ui/docs/collect.md says is run: its program against a collector, its commands, limits and kinds."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm_core import semconv as sc
from tests.support.command import ROOT, finish, start
from tests.support.loopback import Loopback, Script
from traces import collecting
from traces.home import Home
from traces.otlp import receiver, translating
from ui.cli import cli

PAGE = (ROOT / "ui" / "docs" / "collect.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())
TRACES = ROOT / "tests" / "fixtures" / "logs" / "otlp" / "openinference.json"


def session(command: str) -> str:
    """What the page shows under a command."""
    (shown,) = re.findall(rf"^\$ rlmscope {re.escape(command)}\n((?:(?!```).*\n)*)", PAGE, re.M)
    return str(shown)


def masked(text: str) -> str:
    """Without what differs from run to run: ids, times, the version of the instrumentation."""
    text = re.sub(r"(made by [a-z.]+) [\d.]+,", r"\1 (version),", text)
    text = re.sub(r"20\d{6}T\d{6}-[0-9a-f]{8}", "(run)", text)
    text = re.sub(r"\[[0-9a-f]{8}\]", "[id]", text)
    return re.sub(r"· [\d.]+ m?s\b", "· (time)", text)


def test_a_file_is_imported_as_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(TRACES, tmp_path / "traces.json")
    monkeypatch.chdir(tmp_path)
    home = Home.resolve(tmp_path / "home")
    done = CliRunner().invoke(cli, ["import", "traces.json", "--home", str(home.root)])
    assert (done.exit_code, masked(done.stdout)) == (0, masked(session("import traces.json")))


def test_limits_and_names_are_those_of_the_program() -> None:
    assert f"{collecting.QUIET:g} seconds after its own span ended" in FLAT
    assert f"{collecting.PATIENCE / 60:g} minutes" in FLAT
    assert f"{receiver.LARGEST_BODY >> 20} MB" in FLAT
    assert receiver._LONGEST == 120 and "two minutes to come" in FLAT
    most = f"{collecting.MOST_SPANS:,} spans and {collecting.MOST_CHARS // 10**6} million characters"
    assert f"A run takes {most}" in FLAT
    assert f"http://{receiver.HOST}:{receiver.PORT}" in session("collect")
    assert f"most {translating._MOST} of a span and {translating._LONGEST:,} characters" in FLAT
    for key in (translating.SAID_KIND, translating.SCOPE, sc.USAGE_RAW, sc.OI_COST):
        assert f"`{key}`" in PAGE
    table = PAGE.partition("| kind in the tree |")[2].partition("\n\n")[0]
    kinds = re.findall(r"^\|[^|]*\|[^|]*?`(\w+)`", table, re.M)
    assert set(kinds) == set(sc.KINDS) - {"batch"} and "`batch`" in table


@pytest.mark.full
def test_the_program_of_the_page_is_seen_while_it_runs_and_shown_as_the_page_says(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (tmp_path / "agent.py").write_text(program, encoding="utf-8")
    home = Home.resolve(tmp_path / "home")
    collector = start("collect", "--port", "0", "--home", home.root, "--json")
    assert collector.stderr is not None
    port = re.findall(r"http://127\.0\.0\.1:(\d+) ", collector.stderr.readline())[0]
    replies = iter(["replies = [ask(t) for t in tickets]", "The first one."])
    with Loopback(Script(root=lambda _: next(replies), sub=lambda _: "yes")) as server:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OPENAI_BASE_URL": server.base_url,
               "OPENAI_API_KEY": "x", "PATH": "", "HOME": str(tmp_path)}  # fmt: skip
        ran = subprocess.run(
            [sys.executable, "agent.py"], cwd=tmp_path, env=env, capture_output=True, text=True
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    collector.send_signal(signal.SIGINT)
    document = finish(collector)
    assert list(document) == re.findall(
        r"^\| `(\w+)` \|", PAGE.partition("| key |")[2].partition("\n\n")[0], re.M
    )
    (run,) = document["runs"]
    assert (run["spans"], run["closed"], document["spans"], document["rejected"]) == (6, True, 6, 0)
    assert all(f"`{key}`" in PAGE for key in run)
    shown = CliRunner().invoke(cli, ["show", "last", "--home", str(home.root)])
    assert masked(shown.stdout) == masked(session("show last"))
