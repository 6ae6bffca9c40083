"""What no tracked file may hold, and how large code may grow."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = [
    ROOT / "bootstrap.py",
    *(p for name in ("rlm_core", "traces", "ui") for p in (ROOT / name).rglob("*.py")),
]
TESTS = [*(ROOT / "tests").rglob("*.py")]
MAX_MODULE_LINES, MAX_FUNCTION_LINES = 500, 60
NOT_OURS = {
    ".git",
    ".venv",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".import_linter_cache",
}

# Assembled, so that this file does not hold what it looks for.
_MACHINE_PATHS = (
    "/wo" + "rk/",
    "/ro" + "ot/",
    "/opt/" + "pypi",
    "/opt/" + "wheels",
    "/ho" + "me/",
    "/Us" + "ers/",
)
_HOSTS = ("py" + "pi.org", "python" + "hosted", "npm" + "js.org", "deb." + "debian", "crates" + ".io")
_MARKERS = ("TO" + "DO", "FIX" + "ME", "XX" + "X:")
FORBIDDEN = {
    "machine path": re.compile(r"(?<![\w.~/-])(" + "|".join(map(re.escape, _MACHINE_PATHS)) + r")"),
    "registry host": re.compile("|".join(map(re.escape, _HOSTS))),
    "marker": re.compile(r"\b(" + "|".join(_MARKERS) + r")\b"),
}


def _files() -> list[Path]:
    """The files of the project: those git tracks, or all in a copy that is no checkout."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
        return [ROOT / name for name in done.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        found = (path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts))
        return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_holds_it(what: str) -> None:
    found = []
    for path in _files():
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            if FORBIDDEN[what].search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert found == []


def test_no_module_is_long() -> None:
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in (*CODE, *TESTS)
    }
    assert {name: n for name, n in lines.items() if n > MAX_MODULE_LINES} == {}


def test_no_function_is_long() -> None:
    found = {}
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    found[f"{path.relative_to(ROOT)}:{node.name}"] = length
    assert found == {}


def test_every_module_and_public_name_has_a_docstring() -> None:
    missing = []
    for path in CODE:
        tree = ast.parse(path.read_text("utf-8"))
        if not ast.get_docstring(tree) and tree.body:
            missing.append(str(path.relative_to(ROOT)))
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if not node.name.startswith("_") and not ast.get_docstring(node):
                missing.append(f"{path.relative_to(ROOT)}:{node.name}")
    assert missing == []
