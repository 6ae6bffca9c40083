"""Does the wheel work where the checkout is not? Run by .ci/run with the project's own interpreter.

Builds the wheel, installs it into an empty environment (what it needs to run comes from requirements.lock,
hashes checked, and nothing else), and asks a question of the installed sample data from elsewhere, with a
fresh home.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import requires
from pathlib import Path
from types import ModuleType
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent


def load(name: str, path: Path) -> ModuleType:
    """A module from a file that no package holds."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bootstrap = load("bootstrap", ROOT / "bootstrap.py")


def needed_by(name: str) -> set[str]:
    """The distributions that one needs on this system, itself included, as its installed metadata say."""
    seen: set[tuple[str, str]] = set()
    todo = [(canonicalize_name(name), "")]
    while todo:
        distribution, extra = todo.pop()
        if (distribution, extra) in seen:
            continue
        seen.add((distribution, extra))
        for wanted in map(Requirement, requires(distribution) or ()):
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                todo += [(canonicalize_name(wanted.name), extra) for extra in ("", *wanted.extras)]
    return {distribution for distribution, _ in seen}


def runtime_lock() -> str:
    """The part of the lock that the project needs to run: what a user of the wheel would have."""
    needed = needed_by("rlmscope")
    entries = re.split(r"\n(?=[a-z])", (ROOT / "requirements.lock").read_text("utf-8"))
    return "\n".join(
        entry for entry in entries if canonicalize_name(re.split("[=;]", entry)[0].strip()) in needed
    )


def run(*command: str | Path, **options: Any) -> str:
    """Run a command that must succeed; returns its stdout."""
    line = [str(part) for part in command]
    done = subprocess.run(line, stdout=subprocess.PIPE, encoding="utf-8", check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}\nthe wheel fails: exit code {done.returncode} of {' '.join(line)}")
    return str(done.stdout)


def install(folder: Path) -> Path:
    """Build and install the wheel; returns the environment it is in."""
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("rlmscope-*.whl")
    lock, venv = folder / "runtime.lock", folder / "venv"
    lock.write_text(runtime_lock(), "utf-8")
    pip = bootstrap.create_environment(venv)
    bootstrap.install_locked(venv, pip, lock)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel)
    run(*pip, "check")
    return venv


def gold(samples: Path) -> dict[str, Any]:
    """The question of the demo, with its gold answer, from the installed sample data."""
    questions = json.loads((samples / "questions.json").read_text("utf-8"))
    wanted = ("tickets", bootstrap.QUESTION)
    (found,) = (entry for entry in questions if (entry["corpus"], entry["question"]) == wanted)
    return dict(found)


def main() -> None:
    """Exit with a sentence when the installed program does not give the gold answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv = install(folder)
        home, elsewhere = folder / "home", folder / "elsewhere"
        home.mkdir()
        elsewhere.mkdir()
        kept = {key: os.environ[key] for key in ("LANG", "LC_ALL", "TMPDIR") if key in os.environ}
        environ = {**kept, "HOME": str(home), "PATH": os.defpath}
        samples = venv / "share" / "rlmscope" / "sample_data"
        program, question = bootstrap.program(venv, "rlmscope"), gold(samples)
        command = [
            program,
            "ask",
            question["question"],
            samples / "tickets",
            "--json",
            "--home",
            folder / "runs",
        ]
        told = json.loads(run(*command, cwd=elsewhere, env=environ))
        for key in ("answer", "sub_calls"):
            if str(told[key]) != str(question[key]):
                sys.exit(f"the wheel gives {key} {told[key]!r}, the gold is {question[key]!r}")
        print(f"The installed wheel answers {told['answer']} with {told['sub_calls']} sub-calls: the gold.")


if __name__ == "__main__":
    main()
