"""Findings about how the parts of a run hang together: lone calls, summed-up turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_core.options import Options
from rlm_core.prompts import is_summary_request, turns_so_far
from tests.support.scripted import Script, cell, run
from traces.finding import Finding
from traces.findings import findings
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording

RUN = "20260101T000000-0000000a"
CORPUS = {
    f"chapter {n}": f"Chapter {n}. " + f"Somebody goes to harbour number {n} and waits there. " * 8
    for n in range(4)
}
ASK = "replies = llm_batch(['Who goes where?'] * len({0}), {0})"
STORY = "Summarise the story."


def found_in(folder: Path, root: Any, *, question: str = STORY, **options: Any) -> dict[str, Finding]:
    """The findings of a run, by kind."""
    home = Home(folder / "home")
    with open_recording(home, RUN, {}) as recording:
        run(root, CORPUS, question=question, recorder=recording.recorder, run_id=RUN, **options)
    return {finding.kind: finding for finding in findings(load_run(home, RUN))}


def cells(*codes: str) -> Script:
    return Script(
        [cell(code) for code in codes], lambda request: f"reply {len(request.prompt)} on the harbour"
    )


def test_parts_that_stay_alone_are_worse_when_text_was_left_unread(tmp_path: Path) -> None:
    found = found_in(tmp_path, cells(ASK.format("documents[:2]"), "FINAL(replies)"))
    assert found["unshared"].severity == "check"
    assert (
        "was never read by a model." in found["unshared"].words and " 25% " in found["unshared"].words
    )  # the root saw a third text


def test_parts_that_stay_alone_are_a_note_when_all_was_read(tmp_path: Path) -> None:
    found = found_in(tmp_path, cells(ASK.format("documents"), "FINAL(replies)"))
    assert found["unshared"].severity == "note" and "never read" not in found["unshared"].words


@pytest.mark.parametrize("printed", ["print(*replies)", "print(replies)"])
def test_nothing_is_said_where_the_root_has_read_every_reply(tmp_path: Path, printed: str) -> None:
    found = found_in(tmp_path, cells(f"{ASK.format('documents[:2]')}\n{printed}", "FINAL('They wait.')"))
    assert "unshared" not in found


def test_what_the_last_cell_printed_was_read_by_nobody(tmp_path: Path) -> None:
    found = found_in(tmp_path, cells(f"{ASK.format('documents[:2]')}\nprint(replies)\nFINAL(replies)"))
    assert "unshared" in found


def test_carried_notes_are_no_finding(tmp_path: Path) -> None:
    code = "notes = ''\nfor part in documents:\n    notes = llm_query(f'So far: {notes}. And now?', part)"
    assert "unshared" not in found_in(tmp_path, cells(code, "FINAL(notes)"))


def test_turns_that_gave_way_to_a_summary_are_counted(tmp_path: Path) -> None:
    def root(request: Any) -> str:
        if is_summary_request(request.messages):
            return "Nothing found so far."
        turn = turns_so_far(request.messages)
        return cell("print('x' * 2_000)" if turn < 5 else "FINAL(1)")

    found = found_in(tmp_path, root, options=Options(root_window=2_600))
    assert found["compacted"].severity == "note"
    assert found["compacted"].words.startswith("The root's window was full 1 time: ")
