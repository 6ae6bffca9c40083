"""The outcome on the Ask page: what the answer may rest on, with passages to open; taken along as a file."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.telemetry import as_json
from tests.support.pages import HOSTILE, ask_page, badly_shown, elements, shown, texts, use
from tests.support.recorded_runs import WIDE, recording
from traces.home import Home
from ui.answer_text import fenced, quoted
from ui.web import outcome
from ui.web.run_record import open_record

LETTERS = {f"letter {n}.txt": f"Letter {n}. The fee is EUR {n}000. Goodbye.\n" for n in range(12)}
FEE = "The fee is EUR 7000"


FEE_AT_END = "The fee is EUR 9000."


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def letters(home: Home) -> Corpus:
    return Corpus.from_texts(LETTERS, home.corpora)


def ask(
    home: Home,
    corpus_id: str,
    *,
    answer: str = "EUR 7000",
    calls: int = 12,
    stop: str = "final",
    sources: Any = None,
    reply: str = "it is EUR {}000",
    code: bool = False,
) -> None:
    """A run whose sub-calls read the letters one by one, and whose second cell answers out of the first."""
    with recording(home) as made:
        recorder = made.recorder
        models = {sc.ROOT_MODEL: "test/root", sc.SUB_MODEL: "test/sub"}
        run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, sc.CORPUS_ID: corpus_id, **models})
        run.text(sc.QUESTION, "What is the highest fee?")
        run.text(sc.CORPUS, as_json({"documents": [{"name": name} for name in LETTERS]}))
        names = {0: ("documents", "replies"), 1: ("replies", "")}
        for number, (reads, writes) in names.items():
            one = recorder.start("iteration", sc.NAME_ITERATION, run, {sc.ITERATION: number, sc.DEPTH: 0})
            facts = {sc.NAMES_READ: as_json([reads]), sc.NAMES_WRITTEN: as_json([writes])}
            cell = recorder.start("cell", sc.NAME_CELL, one, {sc.CELL: number, sc.DEPTH: 0, **facts})
            for slot in range(0 if code or number else calls):
                call = recorder.start("sub_call", "chat", cell, {sc.CALL_INDEX: slot, sc.DEPTH: 0})
                call.text(sc.RESPONSE, reply.format(slot))
                start = LETTERS[f"letter {slot}.txt"].index("The fee")
                found = {"how": "located", "ranges": [[slot, start, start + 19]], "places": [None]}
                call.end("ok", {sc.SOURCE_RANGES: as_json(sources if sources is not None else found)})
            cell.end()
            one.end()
        run.text(sc.ANSWER, answer)
        run.end("ok", {sc.ANSWER_CELL: 1, sc.STOP_REASON: stop})
        made.close("ok")


def opened(**query: str) -> AppTest:
    page = ask_page(run=WIDE, **query).run()
    assert not page.exception, page.exception
    return page


def links(page: AppTest) -> dict[str, str]:
    """Addresses of the links by their labels."""
    return {
        link.proto.label: f"{link.proto.page}?{link.proto.query_string}" for link in page.get("page_link")
    }


def test_the_likeliest_call_comes_first_and_its_passage_opens_in_its_document(
    home: Home, letters: Corpus
) -> None:
    ask(home, letters.corpus_id)
    page = opened()
    found = texts(page)
    assert any(
        text.startswith("The cell that set the answer read what came from 12 sub-calls of cell 0.")
        and "no proof" in text
        for text in found
    )
    assert "1. llm_query 7: Says “7000”, “EUR”, as the answer does." in found
    start = LETTERS["letter 7.txt"].index("The fee")
    assert f"letter 7.txt, bytes {start} to {start + 19}" in found
    assert FEE in [code.value for code in page.code]
    (passage,) = [address for label, address in links(page).items() if label == "Open passage 1.1"]
    assert f"corpus={letters.corpus_id}&document=7&from={start}&to={start + 19}" in passage
    assert f"run={WIDE}&span=" in links(page)["Open call 1"]


def test_the_passage_that_names_what_was_asked_is_among_those_shown_in_the_order_of_the_text(
    home: Home, letters: Corpus
) -> None:
    start = LETTERS["letter 0.txt"].index("The fee")
    ranges = [[0, start, start + 19], [1, 0, 2], [0, 0, 2], [1, 3, 5], [0, 3, 5]]
    sources = {"how": "located", "ranges": ranges[::-1], "places": [None] * 5}
    ask(home, letters.corpus_id, answer="not found", calls=1, sources=sources, reply="the fee: {}000")
    opened_at = [address for label, address in links(opened()).items() if label.startswith("Open passage")]
    for address, (first, last) in zip(opened_at, [(0, 2), (3, 5), (start, start + 19)], strict=True):
        assert address.endswith(f"document=0&from={first}&to={last}")


def test_pieces_that_lie_side_by_side_are_one_passage_that_shows_what_is_shared(
    home: Home, letters: Corpus
) -> None:
    text = "A line of the letter.\n" * 40 + FEE_AT_END
    corpus = Corpus.from_texts({"long.txt": text}, home.corpora)
    ends = [0, 200, 400, 600, 800, len(text)]
    ranges = [[0, start, end] for start, end in pairwise(ends)]
    ask(home, corpus.corpus_id, calls=1, answer="EUR 9000", reply="EUR 9000",
        sources={"how": "located", "ranges": ranges[::-1]})  # fmt: skip
    page = opened()
    (address,) = [address for label, address in links(page).items() if label.startswith("Open passage")]
    assert address.endswith(f"document=0&from=0&to={len(text)}")
    assert any(code.value.startswith("…") and code.value.endswith(FEE_AT_END) for code in page.code)


def test_more_calls_are_counted_and_shown_on_request_and_the_address_keeps_them(
    home: Home, letters: Corpus
) -> None:
    ask(home, letters.corpus_id)
    page = opened()
    assert "Open call 5" in links(page) and "Open call 6" not in links(page)
    assert "7 more; all of them are in the run's tree." in [c.value for c in page.caption]
    page.button(key="evidence-more").click().run()
    assert page.query_params["passages"] == "12" and "Open call 12" in links(page)
    assert "Open call 12" in links(opened(passages="12"))
    for given in ("x", "-3", "0"):
        assert "Open call 6" not in links(opened(passages=given))


@pytest.mark.parametrize(
    ("sources", "word"),
    [
        ({"how": "none"}, "not verbatim"),
        ({"how": "not_searched", "why": "too long"}, "not searched"),
    ],
)
def test_what_is_not_known_of_the_sources_is_said(
    home: Home, letters: Corpus, sources: Any, word: str
) -> None:
    ask(home, letters.corpus_id, sources=sources)
    page = opened()
    assert f":gray-badge[{word}]" in shown(page) and "Open passage 1.1" not in links(page)


@pytest.mark.parametrize("raw", [7, [], {"ranges": 3}, {"how": 3}])
def test_sources_that_make_no_sense_are_not_recorded_ones(home: Home, letters: Corpus, raw: Any) -> None:
    ask(home, letters.corpus_id, sources=raw)
    assert "It is not recorded where its text came from." in texts(opened())


def test_an_answer_of_code_alone_says_so_and_leads_to_the_code(home: Home, letters: Corpus) -> None:
    ask(home, letters.corpus_id, code=True)
    page = opened()
    assert any(text.startswith("No sub-call leads to this answer") for text in texts(page))
    assert f"run={WIDE}&span=" in links(page)["See the code"]


def test_passages_of_a_corpus_that_is_gone_say_so(home: Home, letters: Corpus) -> None:
    ask(home, letters.corpus_id)
    Corpus.remove(home.corpora, letters.corpus_id)
    page = opened()
    assert "(the corpus of this run is not here (any more))" in [code.value for code in page.code]
    assert "Open passage 1.1" not in links(page)


def test_a_run_that_a_limit_stopped_is_compared_with_finished_ones(home: Home, letters: Corpus) -> None:
    ask(home, letters.corpus_id, stop="budget")
    page = opened()
    assert ":blue-badge[To compare]" in shown(page)
    assert any(text.startswith("No finished run of these models") for text in texts(page))


def test_the_answer_is_copied_as_it_is(home: Home, letters: Corpus) -> None:
    ask(home, letters.corpus_id)
    (button,) = [e for e in elements(opened()) if "Copy the answer" in str(getattr(e, "proto", ""))]
    assert json.loads(button.proto.json)["text"] == "EUR 7000"


def test_hostile_answers_and_responses_are_only_text(home: Home, letters: Corpus) -> None:
    ask(home, letters.corpus_id, answer=HOSTILE, reply=HOSTILE.replace("{", "(") + "{}")
    page = opened()
    assert any("HOSTILE" in text for text in texts(page))
    assert badly_shown(page, "HOSTILE") == []


# -- the file


def test_the_file_holds_question_answer_models_and_passages(home: Home, letters: Corpus) -> None:
    ask(home, letters.corpus_id, answer="EUR 7000 ``` ![x](http://127.0.0.1:9)")
    record = open_record(home, WIDE)
    text = outcome.document(home, record)
    for words in ("What is the highest fee?", "`test/root`", "`test/sub`", "The root model gave its answer."):
        assert words in text
    assert "````text\nEUR 7000 ``` ![x](http://127.0.0.1:9)\n````" in text
    assert "## 1. llm_query 7" in text and f"`letter 7.txt`, bytes 10 to 29:\n\n```text\n{FEE}\n```" in text


def test_no_text_gets_out_of_its_fence() -> None:
    for text in ("```", "a\n````\nb", "`" * 9, "\x1b[31m"):
        block = fenced(text)
        fence = block.split("text\n")[0]
        assert fence not in block[len(fence) : -len(fence)] and "\x1b" not in block
    assert quoted("x`\n# y") == "`` x` # y ``"
