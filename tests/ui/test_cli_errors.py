"""How the command line starts and how it ends: help, usage errors, unexpected errors, closed pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm_core.errors import CorpusError, RecordError
from ui.cli import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]


def program(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The program as a process of its own."""
    command = [sys.executable, "-m", "ui", *arguments]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False, **options)


def test_help_lists_every_command() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"  {name} " in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_home_and_json(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0 and "--home" in result.stdout and "--json" in result.stdout


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from ui.cli import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'streamlit', 'litellm', 'duckdb', 'plotly', 'rich', 'numpy', 'pandas', 'opentelemetry', "
        "'traces', 'ui.ask', 'ui.doctor', 'ui.read_commands'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_ask_help_and_reading_do_not_import_litellm_or_streamlit() -> None:
    code = (
        "import sys, contextlib; from ui.cli import cli\n"
        "for arguments in (['ask', '--help'], ['runs', '--json'], ['cost'], ['show', 'last']):\n"
        "    with contextlib.suppress(SystemExit): cli.main(arguments)\n"
        "print(sorted({'streamlit', 'litellm', 'plotly'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_python_m_ui_is_the_command() -> None:
    done = program("--version")
    assert done.returncode == 0 and done.stdout.startswith("rlmscope ")
    done = program("runs", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])


def test_no_command_prints_the_help_and_is_wrong_usage() -> None:
    done = program()
    assert done.returncode == 2 and "Commands:" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nonsense"], "nonsense"),
        (["show"], "RUN"),
        (["runs", "--nonsense"], "--nonsense"),
        (["runs", "--limit", "-1"], "--limit"),
        (["cost", "--by", ""], "nothing is not among"),
        (["ask", "question without a path"], "PATH"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(
    arguments: list[str], expected: str, call: Callable[..., Any]
) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.startswith("rlmscope: ") and result.stderr.count("\n") == 1
    assert expected in result.stderr


def test_a_home_without_a_name_is_not_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["runs", "--home", ""])
    assert result.exit_code == 2 and "the name of the folder is empty" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = CliRunner().invoke(cli, ["runs", "--home", str(tmp_path / "file")])
    assert result.exit_code == 2 and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"), [(CorpusError("no corpus here"), 2), (RecordError("no record"), 1)]
)
def test_our_errors_are_one_line_with_their_exit_code(
    error: Exception, code: int, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.reading.list_runs", _raiser(error))
    result = call("runs")
    assert (result.code, result.error) == (code, f"rlmscope: {error}\n")


def _raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def test_an_unexpected_error_is_one_line_and_a_log(
    call: Callable[..., Any], home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.reading.list_runs", _raiser(ZeroDivisionError("secret \x1b[31m text \ud800")))
    result = call("runs", "--json")
    assert result.code == 1 and result.out == ""
    (log,) = (home.root / "logs").iterdir()
    assert "ZeroDivisionError" in result.error and str(log) in result.error
    assert "Traceback" not in result.err and "secret" not in result.err
    assert "ZeroDivisionError: secret" in log.read_text()
    if os.name == "posix":
        assert log.stat().st_mode & 0o777 == 0o600


def test_an_unexpected_error_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("traces.home.Home.resolve", _raiser(ZeroDivisionError()))
    result = CliRunner().invoke(cli, ["runs"])
    assert result.exit_code == 1 and "Traceback" not in result.stderr
    (log,) = (tmp_path / "temporary").iterdir()
    assert str(log) in result.stderr


def test_an_interrupt_is_exit_130_without_a_traceback(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.reading.list_runs", _raiser(KeyboardInterrupt()))
    result = call("runs")
    assert result.code == 130 and result.err.strip() == "rlmscope: cancelled"


@pytest.mark.needs("posix")
def test_a_reader_that_goes_away_is_no_noise(home: Any, written: Callable[..., Any], script: Any) -> None:
    written("20270115T080000-00000001", script(answer="word " * 200_000))
    command = [sys.executable, "-m", "ui", "runs", "--json", "--home", str(home.root)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (0, 1)  # whether the last write noticed is up to the system


def test_a_terminal_that_cannot_print_everything(home: Any, written: Callable[..., Any], script: Any) -> None:
    written("20270115T080000-00000001", script(answer="日本 €", question="ünï"))
    done = program(
        "show",
        "last",
        "--home",
        str(home.root),
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        encoding="latin-1",
    )
    assert done.returncode == 0 and "\\u65e5" in done.stdout
