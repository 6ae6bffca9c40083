"""One span in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.telemetry import as_json
from tests.traces.records import RUN, body, end, fin, header, home_in, recording, start, write_spool
from traces.reading import RunView, SpoolRun, load_run, resolve_span, span_detail


def details(view: RunView) -> dict[str, dict[str, Any]]:
    return {span.span_id: span_detail(view, span) for span in view.spans}


def test_every_text_and_structure_of_a_call_and_its_cell(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        recorder = made.recorder
        run = recorder.start("run", sc.NAME_RUN, None, {})
        run.text(sc.QUESTION, "How many?")
        cell = recorder.start("cell", sc.NAME_CELL, run, {})
        cell.text(sc.CODE, "x = llm_query('a')")
        cell.text(sc.STDOUT, "all of it")
        cell.text(sc.STDOUT_SHOWN, "a part")
        cell.text(sc.EXCEPTION, "Traceback ...")
        variables = [{"name": "x", "type": "str", "size": 1, "hash": "h", "preview": "a", "change": "new"}]
        cell.text(sc.VARIABLES, as_json(variables))
        findings = [{"rule": "r", "line": 1, "message": "m"}]
        cell.set({sc.NAMES_READ: '["llm_query"]', sc.NAMES_WRITTEN: '["x"]', sc.FINDINGS: as_json(findings)})
        call = recorder.start("sub_call", "chat s", cell, {})
        ranges = {"how": "slice", "ranges": [[0, 5, 9]]}
        call.set({sc.SOURCE_RANGES: as_json(ranges), sc.PARAMETERS: '{"max_tokens":5}'})
        call.text(sc.PROMPT, "p" * 1000)
        first = recorder.start("attempt", sc.NAME_ATTEMPT, call, {sc.ATTEMPT: 0})
        first.end("error", {sc.ERROR_TYPE: "rate_limit", sc.HTTP_STATUS: 429, sc.RETRY_AFTER: 1.5})
        second = recorder.start("attempt", sc.NAME_ATTEMPT, call, {sc.ATTEMPT: 1, sc.RETRY_WAIT: 1.5})
        second.end("ok", {sc.FINISH_REASONS: '["stop"]', sc.USAGE_INPUT: 3, sc.USAGE_OUTPUT: 1})
        call.text(sc.RESPONSE, "r" * 1000)
        call.text(sc.REASONING, "because")
        call.event("notice", {"n": 1})
        call.end()
        cell.end()
        run.text(sc.ANSWER, "one")
        run.text(sc.ANSWER_VALUE, "1")
        run.end()
    spooled = details(SpoolRun(home, RUN).poll())
    found = details(load_run(home, RUN))
    assert found == spooled
    json.dumps(found)
    top, inner, sub = found[run.span_id], found[cell.span_id], found[call.span_id]
    assert (top["question"], top["answer"], top["value"]) == ("How many?", "one", "1")
    texts = ("code", "stdout", "stdout_shown", "exception")
    assert [inner[key] for key in texts] == ["x = llm_query('a')", "all of it", "a part", "Traceback ..."]
    assert (inner["variables"], inner["findings"]) == (variables, findings)
    assert (inner["names_read"], inner["names_written"]) == (["llm_query"], ["x"])
    assert (sub["prompt"], sub["response"], sub["reasoning"]) == ("p" * 1000, "r" * 1000, "because")
    assert (sub["source_ranges"], sub["parameters"]) == (ranges, {"max_tokens": 5})
    assert sub["events"][0]["name"] == "notice"
    assert sub["missing"] == [] and sub["messages"] is None and sub["code"] is None
    tries = [(a["attempt"], a["status"], a["error_type"], a["http_status"]) for a in sub["attempts"]]
    assert tries == [(0, "error", "rate_limit", 429), (1, "ok", None, None)]
    assert [a["wait_seconds"] for a in sub["attempts"]] == [None, 1.5]
    assert sub["attempts"][0]["retry_after_seconds"] == 1.5
    assert sub["attempts"][1]["finish_reasons"] == ["stop"]
    assert sub["attempts"][1]["tokens"] == {"input": 3, "output": 1, "total": 4}
    assert top["attempts"] == inner["attempts"] == []
    assert sub["attributes"][sc.PROMPT + ".chars"] == 1000


def root_call(span_id: str, path: str, prior: Any, added: Any) -> list[dict[str, Any]]:
    a = {sc.RUN_PATH: path, sc.MESSAGES_PRIOR: prior, sc.MESSAGES_ADDED: added}
    return [start(span_id, kind="root_call", a=a), end(span_id)]


def pairs(*messages: tuple[str, str]) -> str:
    return json.dumps([[role, body(text)["sha256"]] for role, text in messages])


def test_messages_of_root_calls_come_out_of_their_deltas(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    records = [
        header(),
        *(body(text) for text in ("system", "one", "two", "three", "child")),
        *root_call("1", "0", 0, pairs(("system", "system"), ("user", "one"))),
        *root_call("2", "0.3", 0, pairs(("user", "child"))),
        *root_call("3", "0", 2, pairs(("assistant", "two"), ("user", "not stored"))),
        *root_call("4", "0", 1, pairs(("user", "three"))),
        fin(),
    ]
    write_spool(home, records)
    view = load_run(home, RUN)
    sent = {
        span_id: [(message["role"], message["content"]) for message in detail["messages"]]
        for span_id, detail in details(view).items()
    }
    assert sent == {
        "1": [("system", "system"), ("user", "one")],
        "2": [("user", "child")],
        "3": [("system", "system"), ("user", "one"), ("assistant", "two"), ("user", None)],
        "4": [("system", "system"), ("user", "three")],
    }
    assert all(detail["messages_complete"] for detail in details(view).values())


@pytest.mark.parametrize(
    ("prior", "added"),
    [(5, "[]"), (-1, "[]"), ("1", "[]"), (0, "{"), (0, '{"a":1}'), (0, "[[1,2]]"), (0, '[["user"]]'), (0, 7)],
)
def test_deltas_that_make_no_sense_are_said_to_be_incomplete(tmp_path: Path, prior: Any, added: Any) -> None:
    home = home_in(tmp_path)
    write_spool(home, [header(), *root_call("1", "0", prior, added), fin()])
    detail = details(load_run(home, RUN))["1"]
    assert (detail["messages"], detail["messages_complete"]) == ([], False)


def test_texts_that_the_record_does_not_hold_are_named(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    hashes = {sc.PROMPT: "0" * 64, sc.VARIABLES: "1" * 64, sc.RESPONSE: ["odd"]}
    a = {prefix + ".sha256": value for prefix, value in hashes.items()}
    write_spool(home, [header(), start("1", a=a), end("1"), fin()])
    view = load_run(home, RUN)
    detail = span_detail(view, resolve_span(view, "1"))
    assert detail["missing"] == ["prompt", "response", "variables"]
    assert (detail["prompt"], detail["variables"]) == (None, None)


def test_structures_that_are_no_json_are_shown_as_they_are(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    deep = "[" * 500 + "]" * 500
    a = {sc.SOURCE_RANGES: "{oops", sc.FINDINGS: 7, sc.PARAMETERS: deep, sc.NAMES_READ: "[" * 10**6}
    write_spool(home, [header(), start("1", a=a), fin()])
    detail = details(load_run(home, RUN))["1"]
    assert [detail[key] for key in ("source_ranges", "findings", "parameters")] == ["{oops", 7, deep]
    assert detail["names_read"] == "[" * 10**6


def test_decoded_structures_can_be_printed(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    a = {sc.FINDINGS: '["\\ud800 \\u00e9", NaN, 1e999]', sc.NAMES_READ: r'["\\ud800", "\\\\ud800"]'}
    write_spool(home, [header(), start("1", a=a), fin()])
    detail = details(load_run(home, RUN))["1"]
    assert detail["findings"] == ["\\ud800 é", "NaN", "1e999"]
    json.dumps(detail, ensure_ascii=False, allow_nan=False).encode("utf-8")
