"""Images that are drawn when calls want them: once, only for calls that are sent, and failing alone."""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from rlm_core import Limits, images
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError, ModelError
from rlm_core.image_files import Drawn, read_pictures
from rlm_core.images import Images, named
from rlm_core.options import Options
from tests.support.scripted import play


def pdf(pages: int, missing: Sequence[int] = ()) -> bytes:
    """A PDF document; of pages that are missing there is only the number."""
    objects = {1: "<</Type/Catalog/Pages 2 0 R>>"}
    for page in range(1, pages + 1):
        words = f"BT /F1 12 Tf 10 50 Td (page {page}) Tj ET"
        font = "<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
        place = "/Parent 2 0 R/MediaBox[0 0 100 100]"
        if page not in missing:
            objects[2 * page + 1] = f"<</Type/Page{place}/Contents {2 * page + 2} 0 R/Resources{font}>>"
            objects[2 * page + 2] = f"<</Length {len(words)}>>stream\n{words}\nendstream"
    kids = " ".join(f"{2 * page + 1} 0 R" for page in range(1, pages + 1))
    objects[2] = f"<</Type/Pages/Kids[{kids}]/Count {pages}>>"
    body, places = "%PDF-1.4\n", {}
    for number, text in sorted(objects.items()):
        places[number] = len(body)
        body += f"{number} 0 obj{text}endobj\n"
    size = 2 * pages + 3
    rows = (f"{places[n]:010} 00000 n \n" if n in places else "0000000000 65535 f \n" for n in range(size))
    table = f"xref\n0 {size}\n{''.join(rows)}trailer<</Size {size}/Root 1 0 R>>\n"
    return f"{body}{table}startxref\n{len(body)}\n%%EOF".encode()


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A PDF of ten pages, the second of which is not there, and an image."""
    (tmp_path / "s.pdf").write_bytes(pdf(10, missing=[2]))
    Image.new("RGB", (30, 20)).save(tmp_path / "t.png")
    return Corpus.add([tmp_path / "s.pdf", tmp_path / "t.png"], tmp_path / "corpora")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What readers were asked for, pages from 1."""
    asked: list[list[int]] = []

    def watched(module: str, given: Any, pages: Sequence[int], stopped: Any) -> list[Drawn]:
        asked.append([page + 1 for page in pages])
        return read_pictures(module, given, pages, stopped)

    monkeypatch.setattr(images, "read_pictures", watched)
    return asked


def test_a_page_that_cannot_be_drawn_fails_the_calls_that_want_it_and_no_other(
    corpus: Corpus, read: list[list[int]]
) -> None:
    answer, _ = play(
        "pages = documents['s.pdf'].pages\n"
        "r = llm_batch(['x'] * 8, images=[*pages[:4], *pages[:4]])\n"
        "again = llm_query('y', images=pages[1])\n"
        "FINAL([[x if x else x.message for x in r], again.kind])",
        corpus=corpus,
    )
    replies, again = answer.value
    assert [reply == "seen 1" for reply in replies] == [True, False, True, True] * 2 and again == "image"
    assert "s.pdf, page 2 cannot be shown: has a page that cannot be drawn" in replies[1]
    assert read == [[1, 2, 3, 4], [1], [2], [3], [4]]  # together, then each alone: never again


def test_equal_calls_draw_an_image_once_and_those_that_are_not_sent_draw_none(
    corpus: Corpus, read: list[list[int]]
) -> None:
    file = io.BytesIO()
    Image.new("RGB", (30, 20)).save(file, "PNG")
    same = f"r = llm_batch(['x'] * 6, images=[{file.getvalue()!r}] * 6)\nFINAL([bool(x) for x in r])"
    answer, script = play(same, corpus=corpus, options=Options(cache=True))
    assert answer.value == [True] * 6 and len(script.sub_requests) == 1 and read == [[]]
    read.clear()
    answer, _ = play(
        "r = [llm_query('x', images=documents['s.pdf'].page_image(n)) for n in (1, 3, 4)]\n"
        "FINAL([bool(x) for x in r])",
        corpus=corpus,
        limits=Limits(max_calls=1),
    )
    assert answer.value == [True, False, False] and read == [[1]]


def test_a_cell_that_shows_what_cannot_be_shown_for_ever_is_stopped(
    corpus: Corpus, read: list[list[int]]
) -> None:
    answer, _ = play("while True: llm_query('x', images=b'no image')", "FINAL(1)", corpus=corpus)
    assert answer.value == 1 and answer.failed_sub_calls == 1_000 and read == [[]]


def test_images_that_a_model_refused_to_look_at_count_as_unseen(corpus: Corpus) -> None:
    answer, _ = play(
        "FINAL(llm_query('x', images=documents['t.png']).kind)",
        corpus=corpus,
        sub=lambda _: ModelError("bad_request", "this model takes no images"),
    )
    assert answer.value == "bad_request"
    assert any("1 image of the corpus was shown to no sub-model" in notice for notice in answer.notices)


def test_a_full_disk_fails_the_call_and_the_image_is_tried_again(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def draw() -> int:
        drawing, wanted = Images(), named(corpus, [[0, 1]])
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
        with pytest.raises(ModelError, match=r"cannot be shown: there is no place to draw it in"):
            await drawing.draw(corpus, wanted)
        monkeypatch.undo()
        return (await drawing.draw(corpus, wanted))[0].width

    assert asyncio.run(draw()) == 400


def test_a_call_that_is_stopped_leaves_a_page_to_those_that_wait_for_it(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two calls is cancelled while it draws the page that both want."""
    began = asyncio.Event()

    async def draw() -> int:
        loop = asyncio.get_running_loop()

        def slow(module: str, given: Any, pages: Sequence[int], stopped: Any) -> list[Drawn]:
            if not began.is_set():
                loop.call_soon_threadsafe(began.set)
                assert stopped.wait(60)
                raise CorpusError("nobody waits any more")
            return read_pictures(module, given, pages, stopped)

        monkeypatch.setattr(images, "read_pictures", slow)
        drawing, wanted = Images(), named(corpus, [[0, 1]])
        first, second = (asyncio.ensure_future(drawing.draw(corpus, wanted)) for _ in range(2))
        await began.wait()
        first.cancel()
        return (await second)[0].width

    assert asyncio.run(draw()) == 400


def test_the_root_is_told_of_images_by_a_name_that_it_has(corpus: Corpus, tmp_path: Path) -> None:
    alone = Corpus.add([tmp_path / "s.pdf"], tmp_path / "corpora")
    assert "images=[context.page_image(n)]" in alone.describe()
    assert "images=[document.page_image(n)]" in corpus.describe()
    answer, _ = play("n = 3\nFINAL(llm_query('x', images=[context.page_image(n)]))", corpus=alone)
    assert answer.value == "seen 1"


def test_a_rebuilt_worker_is_told_of_a_call_that_was_turned_away_what_it_was_told_before(
    corpus: Corpus,
) -> None:
    answer, script = play(
        "one = llm_query('x', images=documents['t.png'])\n"
        "kind = llm_query('x', images=documents['t.png'].images * 21).kind",
        "import os\nos._exit(3)",
        "FINAL([one, kind])",
        corpus=corpus,
    )
    assert answer.value == ["seen 1", "too_large"] and len(script.sub_requests) == 1
