"""runs, show, span, cost, ingest over runs that were written through the recorder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RUN = "20270115T080000-00000001"
OTHER = "20270115T080001-00000002"
TEXT = str
MAYBE_TEXT = (str, type(None))
MAYBE_INT = (int, type(None))

SPAN_KEYS: dict[str, Any] = {
    "span_id": TEXT,
    "parent_id": MAYBE_TEXT,
    "kind": TEXT,
    "name": TEXT,
    "role": MAYBE_TEXT,
    "depth": int,
    "status": TEXT,
    "start_ns": int,
    "end_ns": MAYBE_INT,
    "model": MAYBE_TEXT,
    "tokens": (dict, type(None)),
    "cost_usd": MAYBE_TEXT,
    "iteration": MAYBE_INT,
    "cell": MAYBE_INT,
    "call_index": MAYBE_INT,
    "phase": MAYBE_TEXT,
    "phases": list,
    "preview": MAYBE_TEXT,
}
RUN_KEYS: dict[str, Any] = {
    "run_id": TEXT,
    "question": TEXT,
    "status": TEXT,
    "answer": MAYBE_TEXT,
    "root_model": TEXT,
    "sub_model": TEXT,
    "sub_calls": int,
    "cost_usd": MAYBE_TEXT,
    "started": TEXT,
}


def has(document: dict[str, Any], keys: dict[str, Any]) -> None:
    """Every key of the contract is there, with the right type."""
    for key, kind in keys.items():
        assert isinstance(document[key], kind), (key, document[key])


def test_runs_as_json(call: Callable[..., Any], written: Callable[..., Any]) -> None:
    written(RUN)
    written(OTHER)
    result = call("runs", "--json")
    assert (result.code, result.err) == (0, "")
    assert {run["run_id"] for run in result.json} == {RUN, OTHER}
    for run in result.json:
        has(run, RUN_KEYS)
    run = result.json[0]
    assert (run["answer"], run["status"], run["cost_usd"], run["sub_calls"]) == ("42", "ok", "0.0101", 1)
    assert run["started"].startswith("2027-01-15T08:00:00")


def test_runs_without_any(call: Callable[..., Any]) -> None:
    assert call("runs", "--json").json == []
    assert "no runs yet" in call("runs").out


def test_runs_for_people_says_what_it_leaves_out(
    call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    for number in range(3):
        written(f"20270115T08000{number}-0000000{number}")
    out = call("runs", "--limit", "2").out
    assert "2 of 3 runs" in out and out.count("How many?") == 2
    assert call("runs", "--limit", "0").out.count("How many?") == 3
    assert len(call("runs", "--limit", "2", "--json").json) == 2


def test_show_as_json(call: Callable[..., Any], written: Callable[..., Any]) -> None:
    written(RUN)
    document = call("show", RUN, "--json").json
    has(document["run"], RUN_KEYS)
    assert document["live"] is False
    for span in document["spans"]:
        has(span, SPAN_KEYS)
        if span["tokens"] is not None:  # unknown
            assert set(span["tokens"]) == {"input", "output", "total"}
    kinds = [span["kind"] for span in document["spans"]]
    assert kinds == ["run", "iteration", "root_call", "cell", "batch", "sub_call", "attempt"]
    assert document["spans"][3]["tokens"] == {"input": 0, "output": 0, "total": 0}
    asked = document["spans"][5]
    assert (asked["role"], asked["call_index"], asked["tokens"]["total"], asked["cost_usd"]) == (
        "sub",
        0,
        12,
        "0.0001",
    )


@pytest.mark.parametrize("ref", [RUN, RUN[:17], "last"])
def test_a_run_is_named_by_id_prefix_or_last(
    ref: str, call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    written(RUN)
    assert call("show", ref, "--json").json["run"]["run_id"] == RUN


def test_a_run_that_cannot_be_told_is_bad_input(
    call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    assert call("show", "last").code == 2
    written(RUN)
    written(OTHER)
    ambiguous = call("show", "2027")
    assert ambiguous.code == 2 and RUN in ambiguous.error and OTHER in ambiguous.error
    unknown = call("show", "1999")
    assert unknown.code == 2 and "1999" in unknown.error and unknown.out == ""


def test_a_fan_out_of_200_fits_a_screen(
    call: Callable[..., Any], written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    calls = [sub_call() for _ in range(196)] + [sub_call(response="")] * 3 + [sub_call(error="rate_limit")]
    written(RUN, script(calls=calls))
    lines = call("show", RUN).out.splitlines()
    assert len(lines) <= 24
    assert any("200 x llm_query: 196 ok, 3 empty, 1 error" in text for text in lines)
    assert sum("empty reply" in text for text in lines) == 3
    assert any("rate_limit: the server said no" in text for text in lines)
    assert "4 failed" not in "".join(lines) and "(1 failed)" in "".join(lines)


def test_what_a_group_leaves_out_is_counted(
    call: Callable[..., Any], written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    written(RUN, script(calls=[sub_call(error="server")] * 20))
    out = call("show", RUN).out
    assert "20 x llm_query: 20 error" in out and "and 14 more like these" in out
    everything = call("show", RUN, "--all").out
    assert everything.count("server: the server said no") == 40  # calls and attempts
    assert "more like these" not in everything


def test_every_span_id_in_the_tree_can_be_asked_for(
    call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    written(RUN)
    shown = [
        text.split("[", 1)[1].split("]", 1)[0]
        for text in call("show", RUN, "--all").out.splitlines()
        if "[" in text
    ]
    assert len(shown) == 7
    for short in shown:
        assert call("span", RUN, short, "--json").code == 0


def test_a_live_run_is_shown_from_its_spool(call: Callable[..., Any], written: Callable[..., Any]) -> None:
    recording = written(RUN, close=False)
    assert [run["status"] for run in call("runs", "--json").json] == ["running"]
    document = call("show", "last", "--json").json
    assert document["live"] is True and document["run"]["status"] == "running"
    assert {span["kind"]: span["status"] for span in document["spans"]}["batch"] == "running"
    assert "running; this is what is recorded so far" in call("show", "last").out
    assert call("cost", "--json").json["total_usd"] == "0.0101"
    recording.close("ok")
    assert call("show", "last", "--json").json["live"] is False


def test_an_interrupted_run_says_so(call: Callable[..., Any], written: Callable[..., Any]) -> None:
    recording = written(RUN, close=False)
    recording._alive.release()  # what the death of the process does
    document = call("show", "last", "--json").json
    assert document["run"]["status"] == "interrupted"
    assert {span["kind"]: span["status"] for span in document["spans"]}["cell"] == "lost"
    assert "interrupted" in call("show", "last").out and "interrupted" in call("runs").out


def span_id(call: Callable[..., Any], kind: str) -> str:
    return next(s["span_id"] for s in call("show", RUN, "--json").json["spans"] if s["kind"] == kind)


def test_span_as_json(
    call: Callable[..., Any], written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    prompt = "Which label?\n" + "long " * 2000
    written(RUN, script(calls=[sub_call(prompt=prompt, response="billing\n")]))
    asked = call("span", RUN, span_id(call, "sub_call"), "--json").json
    has(asked, SPAN_KEYS)
    assert (asked["prompt"], asked["response"]) == (prompt, "billing\n")
    assert asked["source_ranges"] == {"how": "reference", "ranges": [[0, 0, 9]]}
    assert [attempt["status"] for attempt in asked["attempts"]] == ["ok"]
    cell = call("span", RUN, span_id(call, "cell"), "--json").json
    assert (cell["code"], cell["stdout"]) == ("replies = llm_batch(prompts)", "done\n")
    assert cell["variables"][0]["name"] == "replies"


def test_span_for_people(call: Callable[..., Any], written: Callable[..., Any]) -> None:
    written(RUN)
    out = call("span", RUN, span_id(call, "sub_call")).out
    for expected in (
        "Which label?",
        "billing",
        "The prompt holds these passages of the corpus, word for word.",
        "document 0, bytes 0 to 9",
        "attempt=0",
        "tokens 10 in, 2 out",
        "$0.0001",
    ):
        assert expected in out
    assert "rlm.kind" not in out and "--all shows them" in out
    assert "rlm.kind: sub_call" in call("span", RUN, span_id(call, "sub_call"), "--all").out
    root = call("span", RUN, span_id(call, "root_call")).out
    assert "<user>" in root and "How many?" in root


def test_a_parent_says_what_the_calls_below_it_took(
    call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    written(RUN)
    iteration = span_id(call, "iteration")
    found = call("span", RUN, iteration, "--json").json
    assert (found["below"]["calls"], found["below"]["sub_calls"]) == (2, 1)
    assert (
        found["below"]["tokens"]["total"]
        == found["below"]["tokens"]["input"] + found["below"]["tokens"]["output"]
    )
    assert call("span", RUN, span_id(call, "sub_call"), "--json").json["below"] is None
    assert "below: 2 calls (sub-calls: 1 ok) · tokens" in call("span", RUN, iteration).out


def test_span_that_is_not_there(call: Callable[..., Any], written: Callable[..., Any]) -> None:
    written(RUN)
    result = call("span", RUN, "ffff")
    assert result.code == 2 and "ffff" in result.error


def test_cost_as_json(
    call: Callable[..., Any], written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    written(RUN, script(calls=[sub_call()] * 3))
    report = call("cost", RUN, "--json").json
    has(report, {"total_usd": MAYBE_TEXT, "cost_status": TEXT, "rows": list})
    assert report["total_usd"] == "0.0103"
    for row in report["rows"]:
        has(row, {"role": TEXT, "model": TEXT, "cost_usd": MAYBE_TEXT, "tokens": dict, "calls": int})
    assert {row["role"]: row["calls"] for row in report["rows"]} == {"root": 1, "sub": 3}


def test_cost_by_other_keys(call: Callable[..., Any], written: Callable[..., Any]) -> None:
    written(RUN)
    row = call("cost", "--by", "iteration, cell,depth", "--json").json["rows"][0]
    assert {"iteration", "cell", "depth"} <= row.keys()
    assert "class" in call("cost", "--by", "class", "--json").json["rows"][0]
    wrong = call("cost", "--by", "colour")
    assert wrong.code == 2 and "colour" in wrong.error


def test_an_unknown_price_is_unknown_and_never_0(
    call: Callable[..., Any], written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    written(RUN, script(calls=[sub_call(cost=None)]))
    report = call("cost", "--json").json
    assert report["total_usd"] is None and report["cost_status"] in ("unknown", "partial")
    assert {row["role"]: row["cost_usd"] for row in report["rows"]} == {"root": "0.01", "sub": None}
    out = call("cost").out
    assert "total: unknown (at least $0.01)" in out and "$0 " not in out
    assert call("runs", "--json").json[0]["cost_usd"] is None
    assert "at least $0.01" in call("runs").out
    assert "cost unknown (at least $0.01)" in call("show", RUN).out
    call_id = next(s["span_id"] for s in call("show", RUN, "--json").json["spans"] if s["role"] == "sub")
    assert "cost unknown\n" in call("span", RUN, call_id).out


def test_cost_without_any_call(call: Callable[..., Any]) -> None:
    assert call("cost", "--json").json["rows"] == []
    assert call("cost").code == 0


def test_ingest(call: Callable[..., Any], written: Callable[..., Any]) -> None:
    written(RUN)
    assert call("ingest", "--json").json == {"runs": 1, "run_ids": [RUN], "notices": []}
    assert call("ingest", "--json").json["runs"] == 0
    assert call("ingest", "--rebuild", "--json").json["runs"] == 1
    assert "0 runs taken into the store" in call("ingest").out


def test_a_damaged_record_is_called_incomplete(
    call: Callable[..., Any], written: Callable[..., Any], home: Any
) -> None:
    written(RUN)
    lines = home.spool_file(RUN).read_bytes().splitlines(keepends=True)
    home.spool_file(RUN).write_bytes(b"".join(lines[:5] + lines[6:]))
    assert call("runs", "--json").json[0]["complete"] is False
    shown = call("show", RUN).out
    assert "trace incomplete: 1 record missing or unreadable\n" in shown
    assert "incomplete" in call("runs").out
    # what was lost may have been a call
    assert shown.count("cost unknown (at least $") >= 2 and "at least $" in call("runs").out
    assert "the record of 1 run has gaps" in call("cost", RUN).out


def test_a_record_that_only_lacks_its_end_misses_no_records(
    call: Callable[..., Any], written: Callable[..., Any], home: Any
) -> None:
    written(RUN)
    lines = home.spool_file(RUN).read_bytes().splitlines(keepends=True)
    home.spool_file(RUN).write_bytes(b"".join(lines[:-1]))
    run, out = call("runs", "--json").json[0], call("show", RUN).out
    assert (run["problems"], run["complete"]) == (0, False)
    assert "trace incomplete: it ends where the process died\n" in out and "0 records" not in out


def test_show_finds_a_text(
    call: Callable[..., Any], written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    calls = [
        sub_call(prompt="a haystack"),
        sub_call(prompt="x " * 500 + "a NEEDLE"),
        sub_call(response="needle\x1b[2J"),
    ]
    written(RUN, script(calls=calls))
    found = call("show", RUN, "--find", "needle", "--json").json
    assert [(s["kind"], s["call_index"], s["found_in"]) for s in found["spans"]] == [
        ("sub_call", 1, ["prompt"]),
        ("sub_call", 2, ["response"]),
    ]
    assert found["run"]["run_id"] == RUN
    out = call("show", RUN, "--find", "Needle").out
    assert "found in 2 spans of" in out and "    in prompt\n" in out and "\x1b" not in out
    assert "a haystack" not in out.split("\n\n")[1]
    assert "found in 0 spans of" in call("show", RUN, "--find", "nowhere").out
    assert call("show", RUN, "--find", "").code == 2
