"""Images: how they become documents, what code and the sub-model get of them, what makes calls the same."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from rlm_core import Request
from rlm_core.call_identity import hash_of_prompt, hash_of_request
from rlm_core.corpus import Corpus
from rlm_core.errors import ModelError
from rlm_core.frames import FrameError
from rlm_core.images import blind, named
from rlm_core.litellm_handler import _content
from rlm_core.lm_handler import IMAGE_TOKENS, Message, estimate_input
from rlm_core.lm_handler import Image as Sent
from rlm_core.readers.output import LONGEST_EDGE, MOST_PICTURE_BYTES
from rlm_core.telemetry import as_json, sha256_text
from rlm_core.wire import OpenCall
from tests.support.scripted import play


def picture(size: tuple[int, int] = (60, 40), colour: str = "white", word: str = "") -> Image.Image:
    made = Image.new("RGB", size, colour)
    ImageDraw.Draw(made).text((2, 2), word, fill="black")
    return made


def encoded(made: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    made.save(file, kind, **options)
    return file.getvalue()


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    return tmp_path / "corpora"


@pytest.fixture
def add(tmp_path: Path, corpora: Path) -> Callable[..., Corpus]:
    """A corpus of files with these contents."""

    def made(**files: bytes) -> Corpus:
        folder = tmp_path / "given"
        folder.mkdir(exist_ok=True)
        paths = [folder / name.replace("__", ".") for name in files]
        for path, data in zip(paths, files.values(), strict=True):
            path.write_bytes(data)
        return Corpus.add(paths, corpora)

    return made


def scan(*words: str) -> bytes:
    """A PDF whose pages are pictures."""
    first, *rest = [picture((300, 200), word=word) for word in words]
    return encoded(first, "PDF", save_all=True, append_images=rest)


# -- as documents


def test_an_image_is_a_document_without_text(add: Callable[..., Corpus], corpora: Path) -> None:
    corpus = add(
        a__png=encoded(picture()),
        b__jpg=encoded(picture(), "JPEG"),
        c__webp=encoded(picture(), "WEBP"),
        d__gif=encoded(picture().convert("P"), "GIF"),
    )
    assert corpus.chars == 0 and not corpus.problems
    for document in Corpus.load(corpora, corpus.corpus_id).documents:
        assert document.is_image and document.picture is not None
        assert (document.picture.width, document.picture.height) == (60, 40)
    kept = [document.picture.mime for document in corpus.documents if document.picture]
    assert kept == ["image/png", "image/jpeg", "image/png", "image/png"]
    assert "Images: 4; their text is empty" in corpus.describe()


def test_an_image_is_written_anew_within_what_models_look_at(add: Callable[..., Corpus]) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "taken at home"  # turned by a quarter; a description
    [document] = add(a__jpg=encoded(picture((4200, 2100)), "JPEG", exif=exif)).documents
    assert document.picture is not None
    assert (document.picture.width, document.picture.height) == (LONGEST_EDGE // 2, LONGEST_EDGE)
    [stored] = (Path(document.path).parent.parent / "pictures").iterdir()
    assert b"taken at home" not in stored.read_bytes() and document.picture.bytes <= MOST_PICTURE_BYTES
    assert document.problems == ("4,200 x 2,100 pixels, kept with 2,000 on its longest edge",)


def test_what_is_no_whole_image_is_one_line(add: Callable[..., Corpus]) -> None:
    header = b"IHDR" + struct.pack(">II", 20_000, 20_000) + encoded(picture())[24:29]
    bomb = encoded(picture())[:12] + header + struct.pack(">I", zlib.crc32(header)) + encoded(picture())[33:]
    whole = encoded(Image.effect_noise((60, 40), 50))
    corpus = add(t__txt=b"text\n", cut__png=whole[:400], bomb__png=bomb, none__gif=b"GIF89a" + b"x" * 50)
    said = {Path(problem.path).name: problem.message for problem in corpus.problems}
    assert len(corpus.documents) == 1
    assert (
        said["cut.png"]
        == said["none.gif"]
        == ("an image that is damaged or cut off: open it, save it again and add that")
    )
    assert said["bomb.png"].startswith("an image of 20,000 x 20,000 pixels, at most 100 million are read")


def test_other_images_make_another_corpus_and_texts_keep_their_id(add: Callable[..., Corpus]) -> None:
    text = add(t__txt=b"text\n")
    facts = [["t.txt", sha256_text("text\n")]]
    assert text.corpus_id == sha256_text(f"[1, {as_json(facts).replace(',', ', ')}]")[:16]
    ids = {add(a__png=encoded(picture(word=word))).corpus_id for word in ("one", "two", "one")}
    scans = {add(a__pdf=scan(word)).corpus_id for word in ("one", "two")}
    assert len(ids) == 2 and len(scans) == 2


# -- in code, and as the sub-model gets them


def seen(request: Request) -> str:
    """What arrived: text, and size of each image."""
    [message] = request.messages
    sizes = [Image.open(io.BytesIO(image.data)).size for image in message.images]
    return f"{message.content.strip()} {sizes}"


def test_images_reach_the_sub_model(add: Callable[..., Corpus]) -> None:
    corpus = add(a__png=encoded(picture()), s__pdf=scan("one", "two"), t__txt=b"text\n")
    made = encoded(picture((30, 20)))
    answer, script = play(
        "a, s = documents['a.png'], documents['s.pdf']\n"
        f"one = llm_query('made', images={made!r})\n"
        "two = llm_query('all', images=[a, *s.pages])\n"
        "three = llm_batch(['x', 'y', 'z'], images=[a.images, None, s.page_image(2)])\n"
        "shown = [repr(a.images), repr(s.page_image(2)), s.pages[1].text, len(documents.images)]\n"
        "FINAL([one, two, three, *shown])",
        corpus=corpus,
        sub=seen,
    )
    shown = [Image.open(io.BytesIO(i.data)).size for i in script.sub_requests[1].messages[0].images]
    assert shown == [(60, 40), (1200, 800), (1200, 800)]  # a small page is drawn four times as large
    assert answer.value[0] == "made [(30, 20)]"
    assert answer.value[2][:2] == ["x [(60, 40)]", "y []"]
    assert answer.value[3:] == ["[<image 'a.png'>]", "<page 2 of 's.pdf'>", "", 3]
    hashes = {request.request_hash for request in script.sub_requests}
    assert len(hashes) == 5
    again = {
        request.request_hash
        for request in play("FINAL(llm_query('made', images=" + repr(made) + "))", corpus=corpus)[
            1
        ].sub_requests
    }
    assert again < hashes


def test_images_that_nobody_was_shown_are_said(add: Callable[..., Corpus]) -> None:
    corpus = add(a__png=encoded(picture()), b__png=encoded(picture(word="b")), t__txt=b"text\n")
    look = "for name in {}: llm_query('x', images=documents[name])\nFINAL(1)"
    none, one, all_of_them = (
        play(look.format(names), corpus=corpus)[0].notices for names in ([], ["a.png"], ["a.png", "b.png"])
    )
    words = "shown to no sub-model, so the answer does not rest on what is in"
    assert f"2 images of the corpus were {words} them" in none
    assert f"1 image of the corpus was {words} it" in one
    assert not any("shown to no sub-model" in notice for notice in all_of_them)


def test_what_is_no_image_is_told_in_a_sentence(add: Callable[..., Corpus]) -> None:
    corpus = add(a__png=encoded(picture()), t__txt=b"text\n")
    answer, script = play(
        "said = []\n"
        "for wrong in ('http://x/y.png', documents['t.txt'], 7):\n"
        "    try:\n"
        "        llm_query('x', images=wrong)\n"
        "    except TypeError as error:\n"
        "        said.append(str(error))\n"
        "for call in (lambda: documents['t.txt'].page_image(1), lambda: documents['t.txt'][:2].images):\n"
        "    try:\n"
        "        call()\n"
        "    except ValueError as error:\n"
        "        said.append(str(error))\n"
        "said += [llm_query('x', images=[b'no image'])]\n"
        "said += [llm_query('x', images=documents['a.png'].images * 21)]\n"
        "FINAL([*said[:5], said[5].kind, said[5].message, said[6].kind])",
        corpus=corpus,
    )
    address, text, number, page, piece, kind, words, many = answer.value
    assert "not str: addresses and paths are not followed" in address and "not int" in number
    assert "t.txt is text, there is no image in it" in text
    assert "has no pages that can be shown" in page and "whole documents" in piece
    assert (kind, many) == ("image", "too_large") and "damaged or cut off" in words
    assert script.sub_requests == [] and answer.failed_sub_calls == 2


@pytest.mark.parametrize(
    "asked",
    [
        "llm_query('what?', {})",
        "llm_query(['what?', {}])",
        "llm_query({})",
        "llm_query('what?', [documents['t.txt'], {}])",
        "rlm_query('what?', {})",
        "rlm_query('what?', [documents['t.txt'], {}])",
    ],
)
@pytest.mark.parametrize(
    ("document", "words"),
    [("a.png", "a.png is an image"), ("s.pdf", "s.pdf has no text, only pages that can be shown")],
)
def test_what_can_only_be_shown_is_not_asked_about_as_text(
    asked: str, document: str, words: str, add: Callable[..., Corpus]
) -> None:
    corpus = add(a__png=encoded(picture()), s__pdf=scan("one"), t__txt=b"text\n")
    given = f"documents[{document!r}]"
    answer, script = play(f"r = {asked.format(given)}\nFINAL([r.kind, r.message])", corpus=corpus)
    kind, message = answer.value
    assert kind == "image" and message.startswith(f"{words}: show it with images={given}.images")
    assert script.sub_requests == [] and len(script.root_requests) == 1
    assert (answer.sub_calls, answer.failed_sub_calls) == (1, 1)


def test_a_batch_over_mixed_documents_keeps_its_other_slots(add: Callable[..., Corpus]) -> None:
    corpus = add(a__png=encoded(picture()), b__png=encoded(picture(word="b")), t__txt=b"text\n")
    answer, script = play(
        "images = [d.images or None for d in documents]\n"
        "texts = llm_batch(['what?'] * len(documents), documents)\n"
        "shown = llm_batch(['what?'] * len(documents), documents, images=images)\n"
        "all_of_them = llm_query('what?', documents)\n"
        "FINAL([[getattr(r, 'kind', r) for r in texts], shown, all_of_them.message])",
        corpus=corpus,
        sub=seen,
    )
    texts, shown, all_of_them = answer.value
    assert texts == ["image", "image", "what?\n\ntext []"]
    assert shown == ["what? [(60, 40)]"] * 2 + texts[2:] and len(script.sub_requests) == 4
    assert all_of_them == (
        "a.png and 1 more have no text and can only be shown: show each with images=documents['a.png'].images"
    )


def test_an_image_that_is_gone_fails_its_call_alone(add: Callable[..., Corpus], tmp_path: Path) -> None:
    corpus = add(a__png=encoded(picture()), s__pdf=scan("one"))
    (tmp_path / "given" / "s.pdf").write_bytes(scan("another"))
    answer, _ = play(
        "r = llm_batch(['x', 'y'], images=[documents['a.png'], documents['s.pdf'].pages])\n"
        "FINAL([r[0], r[1].kind, r[1].message])",
        corpus=corpus,
        sub=seen,
    )
    assert answer.value[:2] == ["x [(60, 40)]", "image"]
    assert "has changed since it was added" in answer.value[2]


def test_the_demo_model_never_makes_up_what_an_image_shows() -> None:
    import asyncio

    from rlm_core.demo import SUB, DemoLMHandler

    shown = Request(SUB, (Message("user", "What is it?", images=(Sent("image/png", b"x"),)),), "sub")
    with pytest.raises(ModelError, match="the demo model cannot see images"):
        asyncio.run(DemoLMHandler().complete(shown))


# -- names, hashes, limits


def test_places_that_are_not_there(add: Callable[..., Corpus]) -> None:
    corpus = add(a__png=encoded(picture()), t__txt=b"text\n")
    for wrong, words in (
        ([[2, 0]], "there is no document 2"),
        ([[0, 1]], "a.png has no page 1"),
        ([[1, 0]], "t.txt has no image"),
        (["%"], "image 1 of this call is no file in base64"),
    ):
        with pytest.raises(ModelError, match=words):
            named(corpus, wrong)


def test_hashes_of_calls_without_images_are_those_of_earlier_versions() -> None:
    prompt = sha256_text("What?")
    assert hash_of_prompt("What?") == prompt
    assert hash_of_request(prompt, "m", 5, None) == sha256_text(as_json([prompt, "m", 5, None]))
    shown = [hash_of_prompt("What?", keys) for keys in (["a"], ["b"], ["a", "b"], ["b", "a"])]
    assert len({prompt, *shown}) == 5


def test_frames_that_name_images_otherwise_are_refused() -> None:
    frame = {"t": "open", "id": 1, "op": "llm", "n": 1, "batch": False, "line": 1}
    for wrong in (
        7,
        [7],
        [[1]],
        [[1, -1]],
        [[1, True]],
        [[1, 2, 3]],
        [{"b": "x"}],
        [["a", "b"]],
        [[0, 0]] * 1_001,
    ):
        with pytest.raises(FrameError, match="image"):
            OpenCall.read(frame).add([{"p": ["x"], "i": wrong}])


def test_images_count_where_a_budget_sets_tokens_aside() -> None:
    image = Sent("image/png", b"\x89PNG")
    assert estimate_input([Message("user", "abcd", images=(image, image))]) == 1 + 2 * IMAGE_TOKENS


def test_a_provider_gets_data_urls_behind_the_text() -> None:
    assert _content(Message("user", "What?")) == "What?"
    text, shown = _content(Message("user", "What?", images=(Sent("image/png", b"\x89PNG"),)))
    assert text == {"type": "text", "text": "What?"}
    assert shown == {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


def test_only_of_a_model_that_is_known_to_be_blind_it_is_said() -> None:
    assert blind("openai/gpt-4o") is None and blind("openai/nobody-knows-it") is None
    assert "takes none" in (blind("openai/gpt-3.5-turbo") or "")
