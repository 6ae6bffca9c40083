"""Source ranges in words, and the passages behind them, as `rlmscope span` prints them."""

from __future__ import annotations

import shutil
from typing import Any

from rlm_core import RLM, FunctionLMHandler
from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.telemetry import as_json
from traces.home import Home
from traces.reading import RunView, load_run, span_detail
from traces.recording import open_recording
from ui.passages import SHOWN_BYTES, Sources, sources_of
from ui.span_text import span_text

RUN = "20270115T080000-00000001"
TEXT = "The first line of the letter.\nÜber the second line there is more to say.\n"


def printed(view: RunView, kind: str, home: Home) -> str:
    """What `rlmscope span` prints of the last span of a kind."""
    span = [span for span in view.spans if span.kind == kind][-1]
    detail = span_detail(view, span)
    sources = sources_of(view, span, detail["source_ranges"], home.corpora)
    return "\n".join(span_text(detail, everything=False, sources=sources))


def understood(home: Home, value: Any, text: str = TEXT) -> Sources | None:
    """Source ranges of a sub-call over one document, as readers understand them."""
    corpus = Corpus.from_texts({"a.txt": text}, home.corpora)
    with open_recording(home, RUN, {}) as recording:
        run = recording.recorder.start("run", sc.NAME_RUN, None, {sc.CORPUS_ID: corpus.corpus_id})
        run.text(sc.CORPUS, corpus.record_json())
        call = recording.recorder.start("sub_call", "chat s", run, {})
        call.end("ok", {sc.SOURCE_RANGES: as_json(value)})
        run.end()
    view = load_run(home, RUN)
    span = view.by_id[call.span_id]
    return sources_of(view, span, span_detail(view, span)["source_ranges"], home.corpora)


def test_the_passages_of_a_run_and_of_its_child(home: Home) -> None:
    replies = iter(
        [
            "second = context.splitlines()[1]\nrlm_query('Child?', f'<< {second} >>')",
            "llm_query(f'({context[3:40]})')",
            "FINAL(1)",
            "FINAL(llm_query(f'({second})', context[:14]))",
        ]
    )
    handler = FunctionLMHandler(lambda r: "ok" if r.role == "sub" else f"```repl\n{next(replies)}\n```")
    corpus = Corpus.from_texts({"letters/a.txt": TEXT}, home.corpora)
    with (
        open_recording(home, RUN, {}) as recording,
        RLM("t/r", "t/s", handler=handler, sandbox="none", corpora=home.corpora) as rlm,
    ):
        rlm.ask("What?", corpus, recorder=recording.recorder, run_id=RUN)
    view = load_run(home, RUN)
    out = printed(view, "sub_call", home)
    assert "a search found them" in out
    assert "letters/a.txt, bytes 30 to 73\n  | Über the second line there is more to say." in out
    assert "letters/a.txt, bytes 0 to 14\n  | The first line" in out
    below = printed(view, "run", home)  # what the caller gave it, in the caller's corpus
    assert "letters/a.txt, bytes 30 to 73\n  | Über the second line there is more to say." in below
    within = next(span for span in view.spans if span.kind == "sub_call" and span.depth == 1)
    sources = sources_of(view, within, span_detail(view, within)["source_ranges"], home.corpora)
    assert sources is not None
    (passage,) = sources.passages
    assert (passage.document, passage.problem) == ("text-1", "the corpus of this run is not here (any more)")


def test_a_long_passage_is_cut_and_its_place_is_said(home: Home) -> None:
    ranges = [[0, 1, 2 * SHOWN_BYTES]]
    found = understood(
        home, {"how": "located", "ranges": ranges, "places": ["page 2"], "also": [3]}, "é" * 9_000
    )
    assert found is not None
    (passage,) = found.passages
    assert (passage.place, passage.also, passage.cut) == ("page 2", 3, True)
    assert set(passage.text) == {"é"} and len(passage.text) == SHOWN_BYTES // 2 - 1


def test_pieces_of_one_document_that_belong_together_are_one_passage(home: Home) -> None:
    text = "One two. \n\n Three four. Five six. Seven eight. Nine ten."
    at = {word: text.index(word) for word in ("Three", "Five", "Seven", "Nine")}
    ranges = [
        [0, at["Nine"], len(text)],
        [0, at["Three"], at["Five"]],  # only white space before it
        [0, 0, 8],
        [0, at["Five"] - 6, at["Seven"] - 1],  # overlaps
        [0, at["Seven"] + 1, at["Seven"] + 4],  # a letter is missing
        [0, at["Nine"] + 1, 10**9],  # behind the end: it must not spoil its neighbour
    ]
    places = ["page 4", "page 2", "page 1", "page 2", "page 3", None]
    value = {"how": "located", "ranges": ranges, "places": places, "also": [1, 2, 3, 4, 5, 6]}
    found = understood(home, value, text)
    assert found is not None
    told = [(one.start, one.end, one.place, one.also) for one in found.passages]
    assert told == [
        (0, at["Seven"] - 1, "page 1 to page 2", None),
        (at["Seven"] + 1, at["Seven"] + 4, "page 3", 5),
        (at["Nine"], len(text), "page 4", 1),
        (at["Nine"] + 1, 10**9, None, 6),
    ]
    assert found.passages[0].text == text[: at["Seven"] - 1]
    view = load_run(home, RUN)
    call = next(span for span in view.spans if span.kind == "sub_call")
    assert span_detail(view, call)["source_ranges"]["ranges"] == ranges  # the record stays as it is


def test_the_same_piece_twice_is_one_passage_and_without_the_corpus_only_what_touches_is_joined(
    home: Home,
) -> None:
    value = {"how": "located", "ranges": [[0, 4, 9], [0, 4, 9], [0, 9, 12], [0, 13, 15]]}
    found = understood(home, value, "One two s    three")
    assert found is not None
    assert [(one.start, one.end) for one in found.passages] == [(4, 15)]
    shutil.rmtree(home.corpora)
    view = load_run(home, RUN)
    call = next(span for span in view.spans if span.kind == "sub_call")
    gone = sources_of(view, call, value, home.corpora)
    assert gone is not None and [(one.start, one.end) for one in gone.passages] == [(4, 12), (13, 15)]


def test_values_that_make_no_sense(home: Home) -> None:
    odd = {
        "how": "odd",
        "ranges": [[0, 0, 3], [0, -1, 2], [0, 0, 2**70], [True, 0, 1]],
        "places": 7,
        "also": [[]],
    }
    found = understood(home, odd)
    assert found is not None
    assert found.words == ["odd", "3 entries of the record cannot be used."]
    assert [(passage.text, passage.place, passage.also) for passage in found.passages] == [
        ("The", None, None)
    ]


def test_what_is_nothing_of_the_kind(home: Home) -> None:
    for number, value in enumerate(("text", ["how"], {"how": 7}, 3)):
        assert understood(Home.resolve(home.root / str(number)), value) is None


def test_nothing_in_a_passage_reaches_the_terminal_as_a_command(home: Home) -> None:
    value = {"how": "reference", "ranges": [[0, 0, 20]], "places": ["page \x1b[31m"]}
    found = understood(home, value, "\x1b[31mred\u202e text of a letter")
    assert found is not None
    view = load_run(home, RUN)
    assert "\x1b" not in printed(view, "sub_call", home) and "\u202e" not in printed(view, "sub_call", home)
