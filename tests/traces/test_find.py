"""A text is found wherever a run has it, in a stored run and in a running one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from tests.traces.records import RUN, fin, header, home_in, recording, start, write_spool
from traces.find import Passage, Search, find_text
from traces.reading import RunView, SpoolRun, load_run


def places(view: RunView, text: str) -> list[tuple[str, list[str]]]:
    return [(span.kind, found) for span, found in find_text(view, text)]


def test_texts_names_and_facts(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    long = "x" * 100_000
    with recording(home) as made:
        recorder = made.recorder
        run = recorder.start("run", sc.NAME_RUN, None, {sc.ROOT_MODEL: "openai/needle"})
        run.text(sc.QUESTION, "What of the thread?")
        message = recorder.payload("A message about the Needle.")
        added = f'[["user","{message}"]]'
        root = recorder.start("root_call", "chat m", run, {sc.MESSAGES_ADDED: added})
        root.end()
        cell = recorder.start("cell", sc.NAME_CELL, run, {})
        cell.text(sc.CODE, "needle = 1")
        cell.text(sc.STDOUT, long + "NEEDLE")
        call = recorder.start("sub_call", "chat m", cell, {})
        call.text(sc.PROMPT, f"{long}Groß und needle")
        call.fail("server", "no needle here")
        cell.end()
        run.end()
        spooled = SpoolRun(home, RUN).poll()
    expected = [
        ("run", ["root_model"]),
        ("root_call", ["messages"]),
        ("cell", ["code", "stdout"]),
        ("sub_call", ["prompt", "error.message"]),
    ]
    assert places(spooled, "needle") == places(load_run(home, RUN), "needle") == expected
    assert places(spooled, "GROSS UND") == [("sub_call", ["prompt"])]
    assert places(spooled, "What of the thread") == [("run", ["question"])]
    assert places(spooled, "execute_tool") == [("cell", ["name"])]
    assert places(spooled, "nowhere") == []


def test_texts_that_are_not_in_the_record_and_lists_that_are_none_are_passed_over(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    a = {sc.PROMPT + ".sha256": "0" * 64, sc.RESPONSE + ".sha256": 7, sc.MESSAGES_ADDED: "{", sc.STDOUT: 5}
    write_spool(home, [header(), start("1", kind="root_call", a=a), fin()])
    assert places(load_run(home, RUN), "0000") == []
    assert places(load_run(home, RUN), "root_call") == [("root_call", ["name"])]


def asked(tmp_path: Path, prompts: list[str]) -> RunView:
    """A run of sub-calls with these prompts."""
    home = home_in(tmp_path)
    with recording(home) as made:
        for prompt in prompts:
            call = made.recorder.start("sub_call", "chat m", None, {})
            call.text(sc.PROMPT, prompt)
            call.end()
    return load_run(home, RUN)


def passages(view: RunView, text: str, *, regex: bool = False) -> list[Passage | None]:
    search = Search(text, regex=regex)
    return search.passages(view, search.spans(view))


def test_a_passage_shows_what_was_found_with_what_stands_around_it(tmp_path: Path) -> None:
    view = asked(tmp_path, ["a" * 100 + "NEEDLE" + "b" * 500, "a needle", "Große ẞtraße, STRASSE"])
    assert passages(view, "needle") == [
        Passage("…" + "a" * 60, "NEEDLE", "b" * 160),
        Passage("a ", "needle", ""),
    ]
    assert passages(view, "strasse") == [Passage("Große ẞtraße, ", "STRASSE", "")]
    (folded,) = passages(view, "große s")
    assert folded is not None and folded.text.startswith("Große")


def test_a_regular_expression_finds_names_facts_and_texts(tmp_path: Path) -> None:
    view = asked(tmp_path, ["order 17 of\n2027", "no order", "Grün \ud83d order 5"])
    assert [span.seq for span, _ in Search(r"ORDER \d+", regex=True).spans(view)] == [
        view.spans[0].seq,
        view.spans[2].seq,
    ]
    assert passages(view, r"of.2027|\bno\b", regex=True) == [Passage("", "no", " order")]
    assert passages(view, r"(?s)of.2\d*", regex=True) == [Passage("order 17 ", "of\n2027", "")]
    assert [places for _, places in Search("^chat m$", regex=True).spans(view)] == [["name"]] * 3


def test_no_expression_takes_for_ever(tmp_path: Path) -> None:
    view = asked(tmp_path, ["a" * 50_000 + "!"])
    assert Search("^(a+)+$", regex=True).spans(view) == []


def test_an_expression_that_is_none_is_a_sentence() -> None:
    for wrong, reason in (("(a", "missing )"), ("a(?=b)", "(?="), (r"\Qabc", "missing )")):
        with pytest.raises(InputError) as error:
            Search(wrong, regex=True)
        assert str(error.value).startswith(f"“{wrong}” is no regular expression: ")
        assert reason in str(error.value)


def test_a_growing_run_is_searched_on_and_no_text_is_read_twice(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    search, read = Search("needle"), []
    with recording(home) as made:
        for number in range(3):
            call = made.recorder.start("sub_call", "chat m", None, {})
            call.text(sc.PROMPT, f"needle {number}")
            call.end()
            view = SpoolRun(home, RUN).poll()
            payloads = view.payloads
            view.payloads = lambda hashes, payloads=payloads: read.extend(hashes) or payloads(hashes)  # type: ignore
            assert len(search.spans(view)) == number + 1
    assert len(read) == len(set(read)) == 3
