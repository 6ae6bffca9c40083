"""Images of a call on the Run page, and image files on the Corpora page: decoded, never as they are."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.images import data_url
from rlm_core.lm_handler import Image as Sent
from rlm_core.telemetry import as_json
from tests.support.pages import HOSTILE, badly_shown, corpora_page, elements, texts, use
from tests.support.recorded_runs import recording
from tests.support.run_pages import open_tab, run_page, tabs
from traces.home import Home
from ui.web.places import document_link
from ui.web.span_images import _BROKEN, _written_anew

RUN = "20261130T100000-00000001"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def png(size: tuple[int, int] = (30, 20)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, "PNG", pnginfo=None)
    return file.getvalue()


def shown(page: AppTest) -> list[str]:
    """The captions of the images on a page, and that they are files of the app's own."""
    found = [one for e in elements(page) if e.type == "image" for one in e.proto.imgs]
    assert all("/media/" in image.url and ":" not in image.url for image in found)
    return [image.caption for image in found]


def call_with_images(home: Home) -> str:
    """A run whose call was shown an image, a file that is none, an address, and two that are not there."""
    with recording(home, RUN) as made:
        recorder = made.recorder
        run = recorder.start("run", sc.NAME_RUN, None, {sc.ROOT_MODEL: "r", sc.SUB_MODEL: "s"})
        cell = recorder.start("cell", sc.NAME_CELL, run, {sc.CELL: 0})
        call = recorder.start("sub_call", "chat s", cell, {sc.REQUEST_MODEL: "s"})
        call.text(sc.PROMPT, "What is it?")
        payloads = [
            data_url(Sent("image/png", png())),
            data_url(Sent("image/png", b"\x89PNG\r\n\x1a\n" + HOSTILE.encode())),
            "https://example.invalid/tracker.png",
        ]
        hashes = [recorder.payload(text) for text in payloads]
        facts = {"mime": "image/png", "width": 30, "height": 20, "bytes": 99, "source": [0, 1]}
        images = [{**facts, "name": f"{HOSTILE} {n}", "sha256": sha} for n, sha in enumerate(hashes)]
        images += [
            {**facts, "name": "lost", "sha256": "0" * 64},
            {"name": "unsent", "key": "k", "source": None},
        ]
        call.set(
            {sc.IMAGES: as_json([*images, "no image", {"name": 7, "sha256": "../x", "source": ["a", {}]}])}
        )
        call.text(sc.RESPONSE, "red")
        for span in (call, cell, run):
            span.end("ok")
        made.close("ok")
    return call.span_id


def test_images_of_a_call_are_drawn_anew_and_the_rest_is_said(home: Home) -> None:
    page = run_page(RUN, call_with_images(home))
    assert not page.exception and "Images" in tabs(page)
    page = open_tab(page, "Images")
    assert not page.exception
    assert shown(page) == ["Image 1 of 6"]
    said = " ".join(texts(page))
    assert " 0: 30 x 20 pixels, 99 bytes, image/png" in said and badly_shown(page, "HOSTILE") == []
    assert said.count("This image is not in the record.") == 2 and said.count(_BROKEN) == 1
    assert "unsent: not sent, the reply came from the record" in said


def test_a_record_that_names_a_thousand_images_shows_as_many_as_a_call_takes(home: Home) -> None:
    with recording(home, RUN) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.ROOT_MODEL: "r", sc.SUB_MODEL: "s"})
        call = made.recorder.start("sub_call", "chat s", run, {sc.REQUEST_MODEL: "s"})
        sent = {"name": "a.png", "sha256": made.recorder.payload(data_url(Sent("image/png", png())))}
        call.set({sc.IMAGES: as_json([sent] * 1_000)})
        for span in (call, run):
            span.end("ok")
        made.close("ok")
    page = open_tab(run_page(RUN, call.span_id), "Images")
    assert not page.exception and len(shown(page)) == 20
    assert "names 1,000 images for this call; the first 20 are shown" in " ".join(texts(page))


def test_what_is_drawn_is_a_picture_of_our_own_making() -> None:
    made = _written_anew(png() + b"<script>")
    assert made is not None and Image.open(io.BytesIO(made)).size == (30, 20) and b"<script>" not in made
    large = _written_anew(png((2_000, 1_000)))
    assert large is not None and Image.open(io.BytesIO(large)).size == (1_400, 700)
    for wrong in (b"", b"GIF89a", png()[:40], png((4_001, 1))):
        assert _written_anew(wrong) is None


def test_an_image_file_is_shown_on_the_corpora_page(home: Home, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.txt").write_text("text\n")
    corpus = Corpus.add([tmp_path / "a.png", tmp_path / "b.txt"], home.corpora)
    _, query = document_link(corpus.corpus_id, 0)
    page = corpora_page(**query)
    assert not page.exception and shown(page) == ["The image as it is shown to a sub-model"]
    assert any("an image has no text" in caption.value for caption in page.caption)
    _, query = document_link(corpus.corpus_id, 1)
    assert shown(corpora_page(**query)) == []
