"""Who may import whom: the static contracts of pyproject.toml, and what really gets loaded."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ENGINE_NEVER = "click duckdb opentelemetry.sdk plotly rich streamlit"
ENGINE_LATE = "charset_normalizer genai_prices litellm numpy openai pandas pyarrow requests scipy"
PACKAGES = ("rlm_core", "traces", "ui")


def _modules(package: str) -> list[str]:
    paths = sorted((ROOT / package).rglob("*.py"))
    names = [path.relative_to(ROOT).with_suffix("").parts for path in paths if path.name != "__main__.py"]
    return [".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in names]


def _loaded_by(modules: list[str], unwanted: str) -> list[str]:
    """Which of the unwanted modules a fresh interpreter holds after it imported those."""
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(*[name for name in {unwanted.split()!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def _imports(path: Path) -> set[str]:
    """Every module a file imports, at whatever depth of the code, with relative ones left out."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_engine_loads_nothing_heavy() -> None:
    assert _loaded_by(_modules("rlm_core"), f"{ENGINE_NEVER} {ENGINE_LATE}") == []


def test_importing_the_record_loads_no_interface_and_no_model_client() -> None:
    assert _loaded_by(_modules("traces"), "click litellm plotly rich streamlit") == []


def test_the_command_line_starts_light() -> None:
    assert _loaded_by(["ui.cli"], "duckdb litellm numpy opentelemetry.sdk pandas plotly streamlit") == []


def test_the_worker_starts_with_the_standard_library_only() -> None:
    code = "import sys, rlm_core.worker; print(*{m.partition('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ours_and_python = {"rlm_core", "__main__", "sitecustomize", *sys.stdlib_module_names}
    foreign = {name for name in done.stdout.split() if name not in ours_and_python}
    assert {name for name in foreign if not name.startswith("_")} == set()


@pytest.mark.parametrize("path", sorted((ROOT / "rlm_core").rglob("*.py")), ids=lambda path: path.stem)
def test_the_engine_never_imports_the_sdk(path: Path) -> None:
    # The contracts know distributions as a whole, and the SDK shares its top-level name with the allowed API.
    never = tuple(ENGINE_NEVER.split())
    assert [name for name in _imports(path) if name.startswith(never)] == []
