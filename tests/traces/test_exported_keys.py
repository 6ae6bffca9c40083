"""No key leaves: another one stands in every place of a run that can hold a text, whole or cut off."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pandas as pd
import pytest

from rlm_core import semconv as sc
from rlm_core.telemetry import as_json, preview
from tests.traces.records import RUN, home_in, recording
from traces import opinions
from traces.exporters import FORMATS, export_runs
from traces.home import Home

TEXTS = (
    *(sc.QUESTION, sc.ANSWER, sc.BEST_PARTIAL, sc.PROMPT, sc.RESPONSE, sc.REASONING, sc.CODE, sc.STDOUT),
    *(sc.STDOUT_SHOWN, sc.NATIVE_OUTPUT, sc.EXCEPTION, sc.TOOL_ARGUMENTS, sc.TOOL_RESULT, sc.CORPUS),
    *(sc.ANSWER_VALUE, sc.CHILD_CONTEXT, "rlm.unheard.of"),
)


class Keys:
    """Keys that differ in the characters 9 to 12."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self._numbers = count(1)

    def key(self) -> str:
        self.made.append(f"sk-proj-{next(self._numbers):04d}9f8e7d6c5b4aabcdefghijklmnopqrs")
        return self.made[-1]

    def late(self, place: int = 184) -> str:
        """A text that a preview cuts off inside its key."""
        return f"{'x ' * (place // 2)}{self.key()} and more"


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def home(tmp_path: Path, keys: Keys) -> Home:
    home, key, late = home_in(tmp_path), keys.key, keys.late
    with recording(home, facts={"x.fact": key(), sc.CORPUS_ID: "c"}) as made:
        start = made.recorder.start
        path: dict[str, str | int | float | bool | None] = {sc.RUN_PATH: "0"}
        run = start("run", sc.NAME_RUN, None, path | {sc.DEPTH: 0, sc.ROOT_MODEL: f"m/{key()}"})
        turn = start(
            "iteration", sc.NAME_ITERATION, run, path | {sc.ITERATION: 0, sc.PREVIEW: preview(late())}
        )
        added = as_json([[f"user {key()}", made.recorder.payload(f"said\n{key()}")]])
        root = start(
            "root_call", f"chat {key()}", turn, path | {sc.MESSAGES_PRIOR: 0, sc.MESSAGES_ADDED: added}
        )
        facts: dict[str, str | int | float | bool | None] = {
            sc.PREVIEW: preview(late()),
            sc.OI_INPUT: preview(late()),
            f"x {key()}": key(),
            f"{key()}.n": 1,
        }
        cell = start("cell", sc.NAME_CELL, turn, facts | {sc.CELL: 0})
        call = start("sub_call", f"chat {key()}", cell, path | {sc.REQUEST_MODEL: f"s {key()}"})
        tool = start("tool", f"tool {key()}", cell, path | {sc.PREVIEW: preview(f'f("{late()}")')})
        for span in (run, root, cell, call, tool):
            for prefix in TEXTS:
                span.text(prefix, late())
        row = {"change": "new", "hash": None, "size": 300}
        rows = [
            {**row, "name": "cut", "type": "str", "preview": late()[:200]},
            {**row, "name": f"n {key()}", "type": "list", "preview": f"['{late(80)[:98]}...{'y' * 90}']"},
        ]
        cell.text(sc.VARIABLES, as_json(rows))
        call.event(f"heard {key()}", {f"of {key()}": f"password: {key()}"})
        call.set({sc.OI_OUTPUT: preview(late()), sc.RESPONSE_MODEL: f"m {key()}"})
        call.fail(f"Auth {key()}", f"{'y' * 1980} {key()}")
        for span in (tool, root, cell, turn):
            span.end()
        run.end("ok", {sc.STOP_REASON: f"final {key()}"})
    opinions.judge(home, RUN, verdict="right", expected=late(), note=late())
    opinions.judge(home, RUN, span_id=call.span_id, verdict="wrong", note=key())
    opinions.tag(home, RUN, [key()[:36]])
    return home


@pytest.mark.parametrize("form", FORMATS)
def test_no_part_of_a_key_leaves_from_any_place(home: Home, keys: Keys, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"out{FORMATS[form].ending}"
    done = export_runs(form, home, [RUN], out)
    if out.is_dir():
        written = "".join(str(pd.read_parquet(file).to_dict("list")) for file in out.iterdir())
    else:
        written = out.read_text("utf-8")
    assert "[redacted]" in written and done.redacted > 5
    assert not [key for key in keys.made if key[:11] in written or key[8:24] in written]
