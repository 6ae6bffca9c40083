"""The wheel, the lock file and the environment: what is in them and what must not be."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DECLARED = [
    Requirement(text) for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"])
]
SYSTEMS = {
    "Linux x86-64": ("linux", "x86_64"),
    "Linux arm64": ("linux", "aarch64"),
    "macOS arm64": ("darwin", "arm64"),
    "Windows": ("win32", "AMD64"),
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def _locked() -> Iterator[tuple[Requirement, int]]:
    """Every entry of the lock with its number of hashes."""
    for entry in re.split(r"\n(?=\w)", re.sub(r"(?m)^#.*\n|^ +#.*\n?", "", LOCK)):
        requirement, *hashes = entry.replace("\\\n", "").split("--hash=")
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", text) for text in hashes), entry
        yield Requirement(requirement.strip()), len(hashes)


# -- the wheel -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel, built offline with the installed backend, as a user's installer would see it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("rlmscope-*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    top = {name.partition("/")[0] for name in wheel.namelist()}
    assert {name for name in top if not name.startswith("rlmscope-")} == {"rlm_core", "traces", "ui"}
    code = {
        str(p.relative_to(ROOT)) for name in ("rlm_core", "traces", "ui") for p in (ROOT / name).rglob("*.py")
    }
    assert code <= {name for name in wheel.namelist() if name.endswith(".py")}


def test_the_wheel_holds_what_pages_of_runs_are_made_of(wheel: zipfile.ZipFile) -> None:
    parts = {str(path.relative_to(ROOT)) for path in (ROOT / "traces" / "exporters" / "page").iterdir()}
    assert parts and parts <= set(wheel.namelist())


def test_the_wheel_installs_one_command(wheel: zipfile.ZipFile) -> None:
    (entry,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert wheel.read(entry).decode().split("\n", 1) == ["[console_scripts]", "rlmscope = ui.__main__:main\n"]


def test_the_wheel_ships_the_sample_data(wheel: zipfile.ZipFile) -> None:
    within = re.compile(r"rlmscope-[^/]+\.data/data/share/rlmscope/sample_data/(.+)")
    shipped = {match[1] for name in wheel.namelist() if (match := within.fullmatch(name))}
    ours = (path for path in (ROOT / "sample_data").rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert shipped and {path.relative_to(ROOT / "sample_data").as_posix() for path in ours} <= shipped


def test_no_registry_would_take_the_wheel(wheel: zipfile.ZipFile) -> None:
    (entry,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    metadata = wheel.read(entry).decode()
    assert "Classifier: Private :: Do Not Upload" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


# -- the lock ------------------------------------------------------------------------------------------------


def test_the_lock_names_no_place() -> None:
    assert re.findall(r"(?m)^-.*|\S*://\S*|\bfile:\S*|\S+ @ \S+", LOCK) == []


def test_every_entry_is_pinned_and_hashed() -> None:
    entries = list(_locked())
    assert len(entries) > 50
    for requirement, hashes in entries:
        (pin,) = requirement.specifier
        assert pin.operator == "==" and hashes, requirement


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_declared_requirement_is_locked_for_every_system(system: str, python: str) -> None:
    platform, machine = SYSTEMS[system]
    values = {"sys_platform": platform, "platform_machine": machine, "python_version": python}
    values |= {"python_full_version": f"{python}.0", "os_name": "nt" if platform == "win32" else "posix"}
    chosen: dict[str, Version] = {}
    for requirement, _ in _locked():
        if requirement.marker is None or requirement.marker.evaluate(values):
            name = canonicalize_name(requirement.name)
            assert name not in chosen, f"{name} is locked twice for {system}"
            chosen[name] = Version(next(iter(requirement.specifier)).version)
    for needed in DECLARED:
        assert chosen[canonicalize_name(needed.name)] in needed.specifier, needed


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8", "1.107.0"])
def test_compromised_releases_are_out_of_reach(version: str) -> None:
    (litellm,) = (needed for needed in DECLARED if needed.name == "litellm")
    assert version not in litellm.specifier
    assert [str(r.specifier) for r, _ in _locked() if r.name == "litellm" and version in r.specifier] == []


# -- the environment -----------------------------------------------------------------------------------------

# Code in a .pth file runs at every start of Python: one of the compromised releases did its work through one.
KNOWN_PTH = {"_editable_impl_rlmscope.pth", "distutils-precedence.pth"}


def test_nothing_runs_at_the_start_of_python_but_what_we_know() -> None:
    site = Path(sysconfig.get_path("purelib"))
    found = {path.name for path in site.glob("*.pth")}
    found |= {name for name in ("sitecustomize.py", "usercustomize.py") if (site / name).exists()}
    assert found <= KNOWN_PTH
    ours = site / "_editable_impl_rlmscope.pth"
    assert not ours.exists() or {Path(line) for line in ours.read_text("utf-8").split("\n")} == {ROOT}
