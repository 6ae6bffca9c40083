"""A text is found wherever a run has it, in a stored run and in a running one."""

from __future__ import annotations

from pathlib import Path

from rlm_core import semconv as sc
from tests.traces.records import RUN, fin, header, home_in, recording, start, write_spool
from traces.find import find_text
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
