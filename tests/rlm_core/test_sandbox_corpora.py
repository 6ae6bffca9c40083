"""A corpus as a locked worker sees it: its files, wherever they lie, and nothing beside them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, bubblewrap
from rlm_core.corpus import Corpus
from rlm_core.environment import Environment
from rlm_core.errors import SandboxError
from rlm_core.limits import Limits
from rlm_core.sandbox import Level, probe
from tests.support.scripted import cell, play
from tests.support.workers import Worker

locked = pytest.mark.needs("linux", "lock", "bwrap")


@locked
@pytest.mark.parametrize("level", ["standard", "strict"])
def test_a_corpus_of_five_thousand_files_can_be_read(level: Level, tmp_path: Path) -> None:
    folders = [tmp_path / "texts" / f"{n:02}" for n in range(50)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        for part in range(100):
            (folder / f"{part:02}.txt").write_text(f"text {number} {part}")
    (tmp_path / "texts" / "00" / "private").write_text("not of the corpus")
    corpus = Corpus.add(
        [*(str(folder / f"{n:02}.txt") for folder in folders for n in range(100))], tmp_path / "c"
    )
    other = str(tmp_path / "texts" / "00" / "private")

    async def use() -> tuple[str, str]:
        environment = Environment(corpus.worker_documents(), Limits(), 0, level=level)
        try:
            await environment.start()
            host: Any = None
            read = await environment.run_cell(0, "print(len(documents), documents[4999])", host)
            beside = await environment.run_cell(1, f"open({other!r})", host)
            return read.stdout.strip(), str(beside.exception_type)
        finally:
            await environment.close()

    assert asyncio.run(use()) == ("5000 text 49 99", "PermissionError")


def test_many_files_are_shown_to_bubblewrap_as_their_folders() -> None:
    few = [f"/data/a/{n}" for n in range(200)]
    assert bubblewrap.gathered(few) == sorted(few)
    assert bubblewrap.gathered([*few, "/data/b/1"]) == ["/data/a", "/data/b"]
    spread = [f"/data/{n}/{m}/text" for n in range(30) for m in range(30)]
    assert bubblewrap.gathered(spread) == sorted(f"/data/{n}" for n in range(30))
    with pytest.raises(SandboxError, match="too many folders"):
        bubblewrap.gathered([f"/{n}/text" for n in range(300)])


@locked
def test_folders_are_not_laid_open_where_only_bubblewrap_keeps_files_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bubblewrap, "MOST_BINDS", 1)
    monkeypatch.setattr("rlm_core.worker.landlock.version", lambda: 0)
    with pytest.raises(SandboxError, match="more than 1 files need Landlock"), Worker(level="strict"):
        pass


@locked
def test_a_folder_behind_a_link_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("behind a link")
    (tmp_path / "link").symlink_to("real")
    corpus = Corpus.add([str(tmp_path / "link")], tmp_path / "c")
    handler = FunctionLMHandler(lambda _: cell("FINAL(context)"))
    with RLM("t/r", "t/s", handler=handler) as rlm:
        answer = rlm.ask("?", corpus)
    assert (answer.text, answer.sandbox) == ("behind a link", probe().level)


@locked
def test_where_documents_are_too_far_apart_for_bubblewrap_the_level_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bubblewrap, "MOST_BINDS", 0)
    answer, _ = play("FINAL(1)")
    assert (answer.text, answer.sandbox) == ("1", "standard")
    with pytest.raises(SandboxError, match="too many folders"), Worker(level="strict"):
        pass
