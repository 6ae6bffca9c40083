"""A package of another project in our place is said plainly, before anything of it runs."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ui.startup import PACKAGES, check_identity, identity_problem

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with a package `traces` of somebody else, which would say so if it ran."""
    (tmp_path / "site" / "traces").mkdir(parents=True)
    (tmp_path / "site" / "traces" / "__init__.py").write_text("print('foreign code ran')\n")
    return tmp_path / "site"


def start(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    """The entry point, with a folder before ours on the path."""
    code = f"import sys; sys.path[:0] = [{str(path)!r}, {str(ROOT)!r}]; from ui.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=path, text=True, capture_output=True, check=False)


def test_ours_are_ours() -> None:
    check_identity()
    assert [identity_problem(name) for name in PACKAGES] == [None, None, None]


@pytest.mark.parametrize("arguments", [("runs",), ("--help",), ("ask", "q", "p")])
def test_a_foreign_package_is_exit_2_and_one_sentence(arguments: tuple[str, ...], foreign: Path) -> None:
    done = start(*arguments, path=foreign)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rlmscope: the package 'traces' at ") and done.stderr.count("\n") == 1
    assert str(foreign / "traces") in done.stderr and "environment of its own" in done.stderr


def test_a_foreign_engine_is_found_before_it_is_imported(foreign: Path) -> None:
    (foreign / "traces").rename(foreign / "rlm_core")
    done = start("runs", path=foreign)
    assert done.returncode == 2 and "'rlm_core'" in done.stderr and "ran" not in done.stdout


@pytest.mark.parametrize("name", ["traces", "rlm_core"])
def test_doctor_reports_it_among_its_checks(name: str, foreign: Path) -> None:
    (foreign / "traces").rename(foreign / name)
    done = start("doctor", path=foreign)
    assert done.returncode == 1 and "belongs to another project" in done.stdout
    assert "foreign code ran" not in done.stdout


def test_a_folder_without_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no_code_here").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    problem = identity_problem("no_code_here")
    assert problem is not None and "folder without code" in problem


def test_a_missing_package() -> None:
    problem = identity_problem("no_such_package_at_all")
    assert problem is not None and "missing" in problem


def test_an_installed_package_that_was_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "overwritten_one" / "__init__.py"
    package.parent.mkdir()
    package.write_text("ours = True\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(package.read_bytes()).digest()).rstrip(b"=").decode()
    (tmp_path / "rlmscope-1.0.dist-info").mkdir()
    record = tmp_path / "rlmscope-1.0.dist-info" / "RECORD"
    record.write_text(f"overwritten_one/__init__.py,sha256={digest},12\nother/__init__.py,sha256=x,1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    ours = Path(os.path.realpath(tmp_path))
    assert identity_problem("overwritten_one", ours) is None
    package.write_text("ours = False\n")
    problem = identity_problem("overwritten_one", ours)
    assert problem is not None and "overwritten" in problem
