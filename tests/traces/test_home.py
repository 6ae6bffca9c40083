"""Where everything is kept, and what may name a run."""

from __future__ import annotations

import os
import random
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rlm_core.errors import InputError
from traces.home import Home, is_run_id, new_run_id


def test_a_given_folder_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLMSCOPE_HOME", str(tmp_path / "from-environment"))
    assert Home.resolve(tmp_path / "given").root == tmp_path / "given"
    assert Home.resolve().root == tmp_path / "from-environment"


def test_without_either_it_is_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLMSCOPE_HOME")
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    assert tmp_path in Home.resolve().root.parents


@pytest.mark.skipif(os.name == "nt", reason="another system: POSIX modes")
def test_the_folders_are_private(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "a" / "b")
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (home.root, home.spool, home.corpora)} == {
        0o700
    }


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="home folder"):
        Home.resolve(tmp_path / "file")


def test_run_ids_carry_their_time_in_utc() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    made = new_run_id(now, random.Random(1))
    assert made.startswith("20260102T030405-")
    assert made == new_run_id(now, random.Random(1)) != new_run_id(now)
    assert is_run_id(made)


@pytest.mark.parametrize("text", ["", "..", "../x", "a/b", "a\\b", "a.b", "-a", "x" * 101, "a\n"])
def test_what_could_leave_the_folder_names_no_run(tmp_path: Path, text: str) -> None:
    assert not is_run_id(text)
    with pytest.raises(InputError, match="not a run id"):
        Home.resolve(tmp_path).spool_file(text)
