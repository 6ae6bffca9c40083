"""Source ranges of sub-calls, through real workers: what code did with the text, and where it came from."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from threading import Event
from typing import Any
from weakref import WeakSet

import pytest

from rlm_core import RLM, FunctionLMHandler, Request, source_ranges
from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.corpus_search import CorpusSearch
from tests.support.scripted import Script, cell, run
from tests.support.source_runs import (
    CONTACT,
    DOCUMENTS,
    DREDGING,
    GUESTS,
    LETTERS,
    QUAY,
    REPORT,
    SETUP,
    SHIPS,
    Recorded,
    passages,
    sources,
)
from traces.home import Home
from traces.reading import SpoolRun, load_run
from traces.recording import open_recording
from traces.upkeep import rebuild


def quotes(number: int = 0) -> str:
    """A cell that asks about a line it has built into a prompt."""
    return f"{SETUP}\nr{number} = llm_query(f'<<{{line}}>> {number}')"


QUOTED = {"how": "located", "ranges": [[0, 39, 122]], "places": [None], "also": [0]}
PENDING = {"how": "not_searched", "ranges": [], "places": [], "why": "the search has not finished"}
ENDED = {**PENDING, "why": "the run ended before"}


# -- off the path of the call


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Searches wait until it is set."""
    opened, find = Event(), CorpusSearch.find

    def waiting(search: CorpusSearch, text: str) -> Any:
        assert opened.wait(60)
        return find(search, text)

    monkeypatch.setattr(CorpusSearch, "find", waiting)
    return opened


def test_what_is_found_after_the_call_has_ended_is_on_its_span_for_every_reader(
    recorded: Recorded, gate: Event
) -> None:
    seen: list[Any] = []

    def after_the_call(_: Any) -> str:
        seen.append(SpoolRun(recorded.home, recorded.run_id).poll())
        gate.set()
        return cell("FINAL(r0)")

    view = recorded.play(quotes(), after_the_call, corpus=DOCUMENTS)
    assert [span.status for span in seen[0].spans if span.kind == "sub_call"] == ["ok"]
    assert sources(seen[0]) == [PENDING]
    assert [record["name"] for record in recorded.records("ev")] == ["rlm.sources"]
    ends = {record["span_id"]: record["seq"] for record in recorded.records("e")}
    assert all(record["seq"] > ends[record["span_id"]] for record in recorded.records("ev"))
    live = SpoolRun(recorded.home, recorded.run_id).poll()
    rebuild(recorded.home)
    again = load_run(recorded.home, recorded.run_id)
    (call,) = [span for span in view.spans if span.kind == "sub_call"]
    for read in (view, live, again):
        assert sources(read) == [QUOTED]
        assert read.events(call.span_id) == []  # it is a fact of the span, no event
        assert dict(read.by_id[call.span_id].attributes) == dict(call.attributes)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A sub-model that answers when the search for its prompt has come to its end."""
    done, settle = Event(), source_ranges.SourceRanges._settle

    def settled(ranges: Any, search: Any, outcome: str) -> None:
        settle(ranges, search, outcome)
        if search.key == sc.SOURCE_RANGES:
            done.set()

    def model(_: Request) -> str:
        assert done.wait(60)
        done.clear()
        return "ok"

    monkeypatch.setattr(source_ranges.SourceRanges, "_settle", settled)
    return model


def test_what_is_found_in_time_stands_in_the_end_of_the_span(recorded: Recorded, searched: Any) -> None:
    view = recorded.play(quotes(), "FINAL(1)", corpus=DOCUMENTS, sub=searched)
    late = [record for record in recorded.records("ev") if sc.SOURCE_RANGES in record["a"]]
    assert sources(view) == [QUOTED] and late == []


def test_a_run_does_not_wait_for_ever(
    recorded: Recorded, gate: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ranges, "FINISH_SECONDS", 0.01)
    finish = source_ranges.SourceRanges.finish

    async def then_open(self: Any, *, wait: bool) -> None:
        await finish(self, wait=wait)
        gate.set()  # the thread itself cannot be stopped

    monkeypatch.setattr(source_ranges.SourceRanges, "finish", then_open)
    view = recorded.play(quotes(0), quotes(1) + "\nllm_query('a', report[:38])", "FINAL(1)", corpus=DOCUMENTS)
    reference = {"how": "reference", "ranges": [[0, 0, 38]], "places": [None]}
    assert sources(view) == [ENDED, ENDED, reference]
    assert view.summary.complete and view.summary.problems == 0


def test_a_cancelled_run_does_not_wait_at_all(
    recorded: Recorded, gate: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ranges, "FINISH_SECONDS", 1_000)

    async def model(request: Request) -> str:
        if request.role == "root" and len(request.messages) > 2:
            rlm.cancel()
            await asyncio.sleep(60)
        return "ok" if request.role == "sub" else cell(quotes())

    with (
        open_recording(recorded.home, recorded.run_id, {}) as recording,
        RLM("t/root", "t/sub", handler=FunctionLMHandler(model), sandbox="none") as rlm,
    ):
        answer = rlm.ask("what?", DOCUMENTS, recorder=recording.recorder, run_id=recording.run_id)
        gate.set()
    assert answer.stop_reason == "cancelled"
    assert sources(load_run(recorded.home, recorded.run_id)) == [ENDED]


def test_without_a_record_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    monkeypatch.setattr(CorpusSearch, "find", lambda _, text: searched.append(text))
    run(Script([cell(quotes()), cell("FINAL(1)")]), DOCUMENTS, sandbox="none")
    assert searched == []


# -- what cannot be searched is said, and no run fails for it


def test_a_file_that_changed_is_said_and_ends_nothing(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ranges, "MOST_FOR_SHOWN", 0)  # no index before the change
    file = tmp_path / "notes.txt"
    file.write_text(REPORT)
    corpus = Corpus.add([file], tmp_path / "corpora")

    def change(_: Any) -> str:
        file.write_text(REPORT.replace("March", "April"))
        return cell("r = llm_batch([f'<<{line}>> {n}' for n in range(3)])\nFINAL(r)")

    view = recorded.play("line = context.splitlines()[1]", change, corpus=corpus)
    for value in sources(view):
        assert value["how"] == "not_searched" and "has changed since it was added" in value["why"]
    assert len(sources(view)) == 3


def test_a_search_that_fails_is_said_and_ends_nothing(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(search: CorpusSearch, text: str) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(CorpusSearch, "find", broken)
    view = recorded.play(quotes(), "llm_query(f'<<{line}>>', report[:38])", "FINAL(1)", corpus=DOCUMENTS)
    why = {"why": "the search failed (ZeroDivisionError)"}
    assert sources(view) == [
        {**PENDING, **why},
        {"how": "reference", "ranges": [[0, 0, 38]], "places": [None], **why},
    ]


def test_more_waiting_text_than_is_kept_is_said(
    recorded: Recorded, searched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ranges, "MOST_WAITING", 100)
    cells = [quotes(0), quotes(1), "llm_query(report + '!')", quotes(2), "FINAL(1)"]
    values = sources(recorded.play(*cells, corpus=DOCUMENTS, sub=searched))
    assert values[:2] == [QUOTED, QUOTED] and values[3] == QUOTED
    assert "too much other text" in values[2]["why"]


def test_of_very_many_ranges_the_longest_are_listed_and_the_others_counted(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ranges, "MOST_RANGES", 2)
    view = recorded.play(SETUP, "llm_query(' / '.join(lines))", "FINAL(1)", corpus=DOCUMENTS)
    assert passages(view, DOCUMENTS.values()) == [[QUAY, SHIPS]]
    assert sources(view)[0]["left_out"] == 4


# -- many calls, long prompts, other runs


def test_every_call_of_a_large_batch_has_its_own_ranges(recorded: Recorded) -> None:
    documents = [f"Letter {n}: a line of text that only this letter has, {n * n}.\n" for n in range(200)]
    code = "r = llm_batch([f'Sum up <<{d.strip()}>>' for d in context])\nFINAL(len(r))"
    view = recorded.play(code, corpus=documents)
    assert passages(view, documents) == [[document.strip()] for document in documents]


def test_a_long_prompt_of_many_pieces_is_found_whole(recorded: Recorded) -> None:
    lines = [f"{n:05}: entry number {n * 7919 % 10_000} of the long list" for n in range(4_000)]
    code = "l = context.splitlines()\nFINAL(llm_query('# '.join([*l[::8], context[:80_000]])))"
    text = "\n".join(lines) + "\n"
    (found,) = passages(recorded.play(code, corpus=text), [text])
    assert found[-1] == text[:80_000] and found[:-1] == lines[::8]


def test_calls_of_a_child_run_name_the_corpus_of_the_child(recorded: Recorded) -> None:
    def root(request: Any) -> str:
        if request.messages[-1].content.count("child question"):
            return cell("FINAL(llm_query(f'<<{context.splitlines()[1]}>>'))")
        return cell("FINAL(1)")

    ask = f"{SETUP}\nrlm_query('child question', '\\n'.join(lines[4:]))\nllm_query(f'<<{{lines[5]}}>>')"
    view = recorded.play(ask, root, root, corpus=DOCUMENTS)
    child = "\n".join((SHIPS, DREDGING, CONTACT))
    assert [value["how"] for value in sources(view)] == ["located", "located"]
    (start, end), (own_start, own_end) = (value["ranges"][0][1:] for value in sources(view))
    assert child.encode()[start:end].decode() == DREDGING == REPORT.encode()[own_start:own_end].decode()
    (below,) = [span for span in view.spans if span.kind == "run" and span.depth == 1]
    value = json.loads(below.attributes[sc.SOURCE_RANGES])
    assert value["how"] == "located"
    assert [REPORT.encode()[start:end].decode() for _, start, end in value["ranges"]] == [child]


def test_of_the_same_text_in_several_documents_the_one_that_code_used_is_named(recorded: Recorded) -> None:
    line = "the same line of text in every letter"
    documents = {f"{number}.txt": f"Letter {number}\n{line}\n" for number in range(4)}
    ask = "r = llm_query(f'<<{context[%d].splitlines()[1]}>>')"
    values = sources(recorded.play(ask % 2, ask % 1, ask % 3, "FINAL(1)", corpus=documents))
    assert [value["ranges"] for value in values] == [[[number, 9, 9 + len(line)]] for number in (2, 1, 3)]
    assert [value["also"] for value in values] == [[3]] * 3


def test_indexes_of_child_runs_are_given_up_when_they_hold_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: WeakSet[CorpusSearch] = WeakSet()

    class Counted(CorpusSearch):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            alive.add(self)

    monkeypatch.setattr(source_ranges, "CorpusSearch", Counted)
    monkeypatch.setattr(source_ranges, "MOST_BYTES", 3 * len(REPORT))
    most = 0

    async def search_all() -> None:
        nonlocal most
        home = Home.resolve(tmp_path / "home")
        with open_recording(home, Recorded.run_id, {}) as recording:
            searches = source_ranges.SourceRanges(recording.recorder)
            for number in range(9):
                corpus = Corpus.from_texts([f"{number} {REPORT}"], tmp_path / "corpora")
                span = recording.recorder.start("sub_call", "chat s", None, {})
                searches.search(source_ranges.Prompt.of(corpus, [[QUAY]]), span)
                while len(asyncio.all_tasks()) > 1:  # the search is a task of its own
                    await asyncio.sleep(0)
                most = max(most, len(alive))
            await searches.finish(wait=True)

    asyncio.run(search_all())
    assert most == 2


QUESTION = "How many containers were handled in all of March?"


def test_words_of_the_question_are_not_passages_although_a_document_has_them(recorded: Recorded) -> None:
    documents = {"faq.txt": f"Somebody asked: {QUESTION} Nobody knew.\n", "report.txt": f"{QUAY}\n"}
    asks = f"r = llm_query({QUESTION!r} + ' ' + context['report.txt'].splitlines()[0])"
    again = f"s = llm_query({QUESTION!r})"
    view = recorded.play(asks, again, "FINAL(1)", corpus=documents, question=QUESTION)
    assert passages(view, documents.values()) == [[QUAY], []]
    assert [value["how"] for value in sources(view)] == ["located", "none"]


# -- what the root was shown, and what code was given


def shown(view: Any, kind: str) -> list[dict[str, Any]]:
    """What stands on the spans of a kind about what the root was shown."""
    return [json.loads(span.attributes[sc.SHOWN_RANGES]) for span in view.spans if span.kind == kind]


def touched(view: Any) -> list[dict[str, Any]]:
    """What the cells say their code was given."""
    return [json.loads(span.attributes[sc.TOUCHED]) for span in view.spans if span.kind == "cell"]


def test_passages_in_what_the_root_was_shown_are_on_the_cell_and_those_of_the_description_on_the_run(
    recorded: Recorded,
) -> None:
    code = f"{SETUP}\nprint('found:', lines[4][:60].strip(), 'and', letters[:17])"
    view = recorded.play(code, "print(1)", "FINAL(1)", corpus=DOCUMENTS)
    printed, nothing, _ = shown(view, "cell")
    raw = [text.encode() for text in DOCUMENTS.values()]
    texts = [raw[number][start:end].decode() for number, start, end in printed["ranges"]]
    assert printed["how"] == "located" and texts == [SHIPS[:61], LETTERS[:17]]
    assert nothing == {"how": "none", "ranges": [], "places": []}
    (described,) = shown(view, "run")
    assert described["how"] == "located" and {number for number, _, _ in described["ranges"]} == {0, 1, 3}


def test_no_index_of_a_large_corpus_is_made_only_for_what_the_root_was_shown(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ranges, "MOST_FOR_SHOWN", len(REPORT) - 1)
    code = "line = context.splitlines()[1]\nprint(line)"
    view = recorded.play(code, "r = llm_query(f'<<{line}>>')", code, "FINAL(1)", corpus=REPORT)
    before, _, after, _ = shown(view, "cell")
    assert before["how"] == "not_searched" and "the corpus is large" in before["why"]
    assert after["how"] == "located" and after["ranges"] == [[0, 39, 122]]


def test_a_cell_says_which_documents_and_parts_its_code_was_given(recorded: Recorded) -> None:
    view = recorded.play(
        "a, b = context[0], context['table.csv']\nhits = context.search('Leuchtturm')",
        "x = len(a)",
        "for text in context: pass",
        "FINAL(1)",
        corpus=DOCUMENTS,
    )
    line_end = len(GUESTS.encode())
    assert touched(view) == [
        {
            "whole": [[0, 0], [2, 2]],
            "parts": [[1, 0, line_end]],
        },  # in bytes
        {"whole": [], "parts": []},
        {"whole": [[0, 3]], "parts": []},
        {"whole": [], "parts": []},
    ]
