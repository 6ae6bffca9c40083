"""Corpora that the app adds in processes of their own: what came of it stands in the home."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from rlm_core.corpus import Corpus, Progress
from rlm_core.errors import RecordError
from traces.home import Home, new_run_id
from traces.locks import FileLock
from ui.corpora import UPLOADS
from ui.web import add_process, additions
from ui.web.additions import Addition, Files, State

PATIENCE = 60.0  # seconds; only a hung test waits so long


def ended(home: Home, ticket: str) -> State:
    """An addition after its end."""
    state = additions.wait(home, ticket, PATIENCE)
    assert state is not None and state.state != "working"
    return state


def ordered(home: Home, *paths: Path, **other: Any) -> Files:
    """An addition as its process finds it."""
    files = Files(home, new_run_id())
    files.folder.mkdir(exist_ok=True)
    files.write(files.order, asdict(Addition([str(path) for path in paths], **other)))
    return files


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("some text\n")
    return path


def test_a_corpus_is_added_by_a_process_of_its_own(home: Home, text: Path) -> None:
    ticket = additions.start(home, Addition([str(text)], "Mine"))
    state = ended(home, ticket)
    (info,) = Corpus.list(home.corpora)
    assert (state.state, state.corpus_id, info.name) == ("added", info.corpus_id, "Mine")
    assert stat.S_IMODE(Files(home, ticket).order.stat().st_mode) == 0o600
    assert [one.ticket for one in additions.all_of(home)] == [ticket]
    additions.forget(home, ticket)
    assert additions.all_of(home) == [] and list((home.root / additions.FOLDER).iterdir()) == []


def test_a_failure_leaves_its_sentence(home: Home, tmp_path: Path) -> None:
    state = ended(home, additions.start(home, Addition([str(tmp_path / "none")])))
    assert state.state == "failed" and "does not exist" in str(state.error)


def test_an_error_nobody_foresaw_is_a_sentence_too(
    home: Home, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Corpus, "add", broken)
    files = ordered(home, text)
    assert add_process.run(home, files.order.stem) == 1
    assert "ZeroDivisionError, which was not expected" in str(ended(home, files.order.stem).error)


def test_a_process_that_was_killed_is_told(home: Home, text: Path) -> None:
    state = additions.look(home, ordered(home, text).order.stem)
    assert state is not None and "ended without a word" in str(state.error)


def test_a_process_that_cannot_be_started_is_one_sentence(home: Home, text: Path) -> None:
    (home.root / additions.FOLDER).write_text("in the way")
    with pytest.raises(RecordError, match="cannot be added"):
        additions.start(home, Addition([str(text)]))


def test_how_far_it_is_can_be_asked_while_it_lives(home: Home, text: Path) -> None:
    files, now = ordered(home, text), Progress(1, 3, 10, 30, "a.txt")
    lock = FileLock(files.lock)
    assert lock.try_acquire()
    first = additions.look(home, files.order.stem)
    files.write(files.now, asdict(now))
    later = additions.look(home, files.order.stem)
    lock.release()
    assert first is not None and later is not None
    assert (first.state, first.progress, later.progress) == ("working", None, now)


def test_a_wish_to_cancel_ends_it_and_nothing_stays(
    home: Home, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Corpus, "add", lambda *_, **__: time.sleep(PATIENCE))
    files = ordered(home, text)
    additions.cancel(home, files.order.stem)
    assert add_process.run(home, files.order.stem) == 1
    state = ended(home, files.order.stem)
    assert (state.state, state.corpus_id, state.error) == ("cancelled", None, None)


def test_uploads_whose_text_was_copied_are_not_kept(home: Home) -> None:
    folder = home.root / UPLOADS / "ticket" / "batch"
    folder.mkdir(parents=True)
    (folder / "utf8.txt").write_text("is read in place\n")
    (folder / "old.txt").write_bytes(b"caf\xe9\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7")
    files = ordered(home, *sorted(folder.iterdir()))
    assert add_process.run(home, files.order.stem) == 0
    assert [path.name for path in folder.iterdir()] == ["utf8.txt"]


def test_files_of_the_user_are_never_removed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes(b"caf\xe9\n")
    assert add_process.run(home, ordered(home, tmp_path / "old.txt").order.stem) == 0
    assert (tmp_path / "old.txt").exists()


def test_what_ended_a_day_ago_is_no_longer_told(home: Home, text: Path) -> None:
    old, new = ordered(home, text), ordered(home, text)
    day_ago = time.time() - 25 * 3600
    os.utime(old.order, (day_ago, day_ago))
    assert [state.ticket for state in additions.all_of(home)] == [new.order.stem]
    assert not old.order.exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"nothing": 1}', '"text"'])
def test_an_order_that_cannot_be_read_is_nothing(home: Home, text: Path, content: str) -> None:
    files = ordered(home, text)
    files.order.write_text(content)
    assert additions.look(home, files.order.stem) is None and additions.all_of(home) == []
    assert add_process.run(home, files.order.stem) == 2
