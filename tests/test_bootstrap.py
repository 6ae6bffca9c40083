"""bootstrap.py and the Makefile: what they do where something is missing, without any network."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMES = (
    "app", "test", "demo", "check", "bench", "bench-diagnosis", "escapes", "chaos", "pictures", "test-full",
)  # fmt: skip


@pytest.fixture
def bootstrap(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The script as a module of this test's own."""
    spec = importlib.util.spec_from_file_location("bootstrap_under_test", ROOT / "bootstrap.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv("RLMSCOPE_VENV", raising=False)
    return module


@pytest.fixture
def installs(bootstrap: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Replace the three steps that are slow or need a registry; the list says which of them were taken."""
    taken: list[str] = []

    def create(venv: Path) -> list[str]:
        taken.append("create")
        python = bootstrap.program(venv, "python")
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()
        return ["pip"]

    monkeypatch.setattr(bootstrap, "create_environment", create)
    monkeypatch.setattr(bootstrap, "install_locked", lambda venv, pip, lock: taken.append("lock"))
    monkeypatch.setattr(bootstrap, "install_project", lambda venv: taken.append("project"))
    yield taken


def _start(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bootstrap.py"), *args]
    return subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, check=False)


# -- an older Python -----------------------------------------------------------------------------------------


def test_the_script_parses_on_python_3_6() -> None:
    ast.parse((ROOT / "bootstrap.py").read_text("utf-8"), feature_version=(3, 6))


def test_an_older_python_gets_one_sentence(tmp_path: Path) -> None:
    pretend = (
        "import runpy, sys; sys.version_info = (3, 6, 15); runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    command = [sys.executable, "-c", pretend, str(ROOT / "bootstrap.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(
        r"rlmscope needs Python 3\.11 or newer, and this is Python 3\.6\.15: .+\.\n", done.stderr
    )


def test_real_older_pythons_get_it_too(tmp_path: Path) -> None:
    kept_by_pyenv = Path(os.environ.get("PYENV_ROOT", tmp_path), "versions").glob("3.*/bin/python3")
    on_path = filter(None, (shutil.which(f"python3.{minor}") for minor in range(6, 11)))
    met = 0
    for python in (*map(str, kept_by_pyenv), *on_path):
        asked = [
            python,
            "-c",
            "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.version_info < (3, 11))",
        ]
        version, _, older = subprocess.run(
            asked, capture_output=True, text=True, check=False
        ).stdout.partition(" ")
        if older.strip() == "True":
            met += 1
            command = [python, str(ROOT / "bootstrap.py"), "test"]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 1
            assert done.stderr.count("\n") == 1 and f"this is Python {version}:" in done.stderr
    if not met:
        pytest.skip("another system: no Python older than 3.11 here")


# -- names and make ------------------------------------------------------------------------------------------


def test_without_a_name_it_says_which_there_are() -> None:
    for done, code in ((_start(), 2), (_start("--help"), 0), (_start("no-such-name"), 2)):
        assert done.returncode == code
        assert [name for name in NAMES if f"  {name} " not in done.stdout] == []


def test_every_recipe_of_the_makefile_is_one_line_that_needs_no_make() -> None:
    recipes = dict(re.findall(r"(?m)^([\w-]+):\n\t(.+)\n(?!\t)", (ROOT / "Makefile").read_text("utf-8")))
    assert recipes == {name: f"$(PYTHON) bootstrap.py {name} $(ARGS)" for name in NAMES}


@pytest.mark.needs("make")
@pytest.mark.parametrize("name", NAMES)
def test_make_starts_the_script(name: str) -> None:
    # These tests may themselves have been started by make, which tells its children so.
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", name]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"python3 bootstrap.py {name}", done.stderr


# -- the environment -----------------------------------------------------------------------------------------


def test_a_ready_environment_is_left_alone(
    bootstrap: types.ModuleType, installs: list[str], tmp_path: Path
) -> None:
    bootstrap.ensure_environment(tmp_path / "venv")
    assert installs == ["create", "lock", "project"]
    bootstrap.ensure_environment(tmp_path / "venv")
    assert installs == ["create", "lock", "project"]


@pytest.mark.parametrize("changed", ["lock", "python"])
def test_another_lock_or_python_makes_it_anew(
    bootstrap: types.ModuleType, installs: list[str], tmp_path: Path, changed: str
) -> None:
    venv = tmp_path / "venv"
    bootstrap.ensure_environment(venv)
    leftover = venv / "leftover"
    leftover.touch()
    marker = venv / bootstrap.MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text("utf-8")) | {changed: "other"}), "utf-8")
    bootstrap.ensure_environment(venv)
    assert installs == ["create", "lock", "project"] * 2 and not leftover.exists()


@pytest.mark.parametrize("changed", ["project", "root"])
def test_another_project_file_or_place_reinstalls_the_project_only(
    bootstrap: types.ModuleType, installs: list[str], tmp_path: Path, changed: str
) -> None:
    venv = tmp_path / "venv"
    bootstrap.ensure_environment(venv)
    marker = venv / bootstrap.MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text("utf-8")) | {changed: "other"}), "utf-8")
    bootstrap.ensure_environment(venv)
    assert installs == ["create", "lock", "project", "project"]


@pytest.mark.parametrize("step", ["create_environment", "install_locked", "install_project"])
def test_an_interrupted_set_up_is_begun_again(
    bootstrap: types.ModuleType,
    installs: list[str],
    tmp_path: Path,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    venv = tmp_path / "venv"

    def interrupted(*_: object) -> None:
        (venv / "half a package").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(bootstrap, step, interrupted)
        bootstrap.ensure_environment(venv)
    installs.clear()
    bootstrap.ensure_environment(venv)
    assert installs == ["create", "lock", "project"] and not (venv / "half a package").exists()


def test_an_environment_made_by_others_is_not_touched(
    bootstrap: types.ModuleType, installs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    with pytest.raises(bootstrap.SetupError, match="was not made by bootstrap.py"):
        bootstrap.ensure_environment(tmp_path / "venv")
    assert installs == [] and (tmp_path / "venv" / "pyvenv.cfg").exists()


def test_without_ensurepip_an_outside_pip_installs(
    bootstrap: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    hidden = lambda name: None if name == "ensurepip" else find_spec(name)  # noqa: E731
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", hidden)
    asked: list[list[str]] = []

    def quiet(command: list[str], venv: Path) -> bool:
        asked.append(list(command))
        if "venv" in command:
            subprocess.run(command, check=True)
            return True
        return "--python" in command

    monkeypatch.setattr(bootstrap, "quiet", quiet)
    venv = tmp_path / "venv"
    pip = bootstrap.create_environment(venv)
    python = bootstrap.program(venv, "python")
    assert asked[0][-1] == "--without-pip"
    assert pip[-2:] == ["--python", str(python)]
    has_pip = [str(python), "-c", "import importlib.util as u; print(u.find_spec('pip'))"]
    assert subprocess.run(has_pip, capture_output=True, text=True, check=True).stdout == "None\n"


def test_a_broken_ensurepip_is_taken_as_none(
    bootstrap: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        bootstrap, "quiet", lambda command, venv: "--without-pip" in command or "--python" in command
    )
    assert "--python" in bootstrap.create_environment(tmp_path / "venv")


def test_without_ensurepip_and_pip_one_sentence_says_what_to_install(
    bootstrap: types.ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bootstrap, "quiet", lambda command, venv: "--without-pip" in command)
    monkeypatch.setenv("RLMSCOPE_VENV", str(tmp_path / "venv"))
    assert bootstrap.main(["check"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "apt install python3-venv" in error


def test_nothing_of_the_caller_leaks_in(bootstrap: types.ModuleType, tmp_path: Path) -> None:
    callers = {
        "PYTHONPATH": "x",
        "PYTHONHOME": "x",
        "PYTHONUSERBASE": "x",
        "PIP_TARGET": "x",
        "PIP_PREFIX": "x",
    }
    kept = {"PIP_INDEX_URL": "a mirror", "HTTPS_PROXY": "a proxy", "LANG": "C"}
    environ = bootstrap.clean_environ(tmp_path, {**callers, **kept, "PIP_USER": "1", "PATH": "old"})
    assert not callers.keys() & environ.keys()
    assert kept.items() <= environ.items()
    assert environ["PYTHONNOUSERSITE"] == "1" and environ["PIP_USER"] == "0"
    assert environ["PATH"].split(os.pathsep) == [str(bootstrap.program(tmp_path, "python").parent), "old"]


def test_programs_are_found_where_windows_keeps_them(bootstrap: types.ModuleType) -> None:
    assert bootstrap.program(Path("v"), "rlmscope", windows=True) == Path("v", "Scripts", "rlmscope.exe")
    assert bootstrap.program(Path("v"), "rlmscope", windows=False) == Path("v", "bin", "rlmscope")


# -- what is started -----------------------------------------------------------------------------------------


@pytest.fixture
def started(bootstrap: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that would run, each of which "succeeds"."""
    lines: list[list[str]] = []

    def run(command: list[str | Path], venv: Path, extra: object = None) -> int:
        lines.append([Path(part).name for part in map(str, command)])
        return 0

    monkeypatch.setattr(bootstrap, "run", run)
    monkeypatch.setattr(bootstrap, "ensure_environment", lambda venv: None)
    return lines


def test_the_demo_names_the_demo_models(bootstrap: types.ModuleType, started: list[list[str]]) -> None:
    assert bootstrap.main(["demo"]) == 0
    ask, show = started
    assert ask[:2] == ["rlmscope", "ask"] and "--root" in ask and "--sub" in ask
    assert show == ["rlmscope", "show", "last"]


def test_test_checks_first_and_then_tests(bootstrap: types.ModuleType, started: list[list[str]]) -> None:
    assert bootstrap.main(["test"]) == 0
    assert [next(w for w in line if w in ("ruff", "mypy", "lint-imports", "pytest")) for line in started] == [
        "ruff",
        "ruff",
        "mypy",
        "lint-imports",
        "pytest",
    ]


def test_arguments_choose_tests(bootstrap: types.ModuleType, started: list[list[str]]) -> None:
    assert bootstrap.main(["test", "-k", "corpus"]) == 0
    ((*_, pytest_name, flag, value),) = started
    assert (pytest_name, flag, value) == ("pytest", "-k", "corpus")


def test_a_complaint_of_check_fails_test(
    bootstrap: types.ModuleType, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "check", lambda venv, args: 1)
    assert bootstrap.main(["test"]) == 1
    assert "pytest" in started[-1]


@pytest.mark.full
def test_the_whole_set_up_from_nothing(bootstrap: types.ModuleType, tmp_path: Path) -> None:
    """The one test that asks a registry; it runs in child processes, with the caller's proxies put back."""
    proxies = dict.fromkeys((n for n in os.environ if n.upper().endswith("_PROXY")), "")
    done = _start(
        "test", "--co", "-q", RLMSCOPE_VENV=str(tmp_path / "venv"), PYTHONPATH=str(tmp_path), **proxies
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert bootstrap.read_marker(tmp_path / "venv") == bootstrap.fingerprint()
