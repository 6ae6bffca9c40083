"""`rlmscope app --folder`: path fields read only what lies below the folders that were named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_core.errors import InputError
from tests.support.pages import ask_page, problems, use
from traces.home import Home
from ui.corpora import UPLOADS
from ui.web.folders import allow_only, check_allowed


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment of an app that may read two folders, one of them named by a link."""
    for name in ("one", "two", "one and a half"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text("A note.")
    (tmp_path / "link").symlink_to(tmp_path / "two")
    made: dict[str, str] = {}
    allow_only([tmp_path / "one", tmp_path / "link"], made)
    return made


@pytest.mark.needs("posix")
@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("one", True),
        ("one/note.txt", True),
        ("two/note.txt", True),
        ("link", True),
        ("one/not there", True),
        ("one/../two", True),
        ("one and a half", False),
        ("one/../one and a half/note.txt", False),
        ("one/out", False),
        (".", False),
        ("/etc/passwd", False),
    ],
)
def test_a_path_is_read_by_where_it_really_leads(
    path: str, allowed: bool, environ: dict[str, str], home: Home, tmp_path: Path
) -> None:
    (tmp_path / "one" / "out").symlink_to(tmp_path / "one and a half")
    asked = [home.root / UPLOADS / "x.txt", os.path.join(tmp_path, path)]
    check_allowed(home, asked, {})
    if allowed:
        check_allowed(home, asked, environ)
    else:
        with pytest.raises(InputError, match="may not be read: this app was started to read only") as caught:
            check_allowed(home, asked, environ)
        assert str(tmp_path / "one") in str(caught.value)


def test_a_later_start_without_folders_may_read_anything(environ: dict[str, str], home: Home) -> None:
    allow_only([], environ)
    check_allowed(home, ["/"], environ)
    assert not environ


@pytest.mark.needs("posix")
def test_the_path_field_says_what_may_be_read(
    environ: dict[str, str], home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(home, monkeypatch)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    page = ask_page().run()
    page.get_by_key("ask-source").set_value("path").run()
    page.text_input(key="ask-path").set_value(str(tmp_path / "one and a half"))
    page.button(key="ask-read-now").click().run()
    assert "may not be read" in problems(page)[0] and not list(home.corpora.iterdir())


def test_a_folder_that_is_none_is_refused_by_the_command(call: Callable[..., Any], tmp_path: Path) -> None:
    refused = call("app", "--folder", str(tmp_path / "nothing"))
    assert refused.code == 2 and "does not exist" in refused.error
