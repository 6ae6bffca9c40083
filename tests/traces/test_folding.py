"""From records to spans: the typed facts, and what is done with records that make no sense."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from rlm_core import semconv as sc
from tests.traces.records import RUN, START_NS, body, end, fin, header, home_in, start, write_spool
from traces.reading import RunView, SpanRow, load_run, span_detail
from traces.view import SpoolRun


def view_of(tmp_path: Path, *records: dict[str, Any]) -> RunView:
    """The run out of its spool and out of the store, which must agree."""
    home = home_in(Path(mkdtemp(dir=tmp_path)))
    write_spool(home, records)
    spooled = SpoolRun(home, RUN).poll()
    stored = load_run(home, RUN)
    assert stored.spans == spooled.spans
    assert stored.summary == spooled.summary
    return stored


def only_span(tmp_path: Path, kind: str = "sub_call", **attributes: Any) -> SpanRow:
    a = {name.replace("__", "."): value for name, value in attributes.items()}
    (span,) = view_of(tmp_path, header(), start("1", kind=kind, a=a), end("1"), fin()).spans
    return span


def test_every_fact_of_a_span(tmp_path: Path) -> None:
    attributes = {
        sc.DEPTH: 1,
        sc.ROLE: "sub",
        sc.REQUEST_MODEL: "m",
        sc.RESPONSE_MODEL: "m-1",
        sc.USAGE_INPUT: 10,
        sc.USAGE_OUTPUT: 5,
        sc.USAGE_CACHE_READ: 4,
        sc.USAGE_CACHE_WRITE: 2,
        sc.COST_USD: "0.000000000001",
        sc.COST_STATUS: "priced",
        sc.ITERATION: 3,
        sc.CELL: 4,
        sc.CALL_INDEX: 5,
        sc.PHASE: "Explore",
        sc.PREVIEW: "p",
        sc.RESPONSE + ".chars": 0,
        "made.up": [1, "two", None, 2.5, True],
    }
    records = [
        header(),
        start("1", a=attributes),
        end("1", status="error", a={sc.ERROR_TYPE: "server"}),
        fin(),
    ]
    (span,) = view_of(tmp_path, *records).spans
    assert span == SpanRow(
        run_id=RUN,
        span_id="1",
        parent_id=None,
        seq=1,
        kind="sub_call",
        name="sub_call",
        role="sub",
        depth=1,
        status="error",
        start_ns=START_NS + 1,
        end_ns=START_NS + 2,
        model="m",
        model_returned="m-1",
        tokens={"input": 10, "output": 5, "total": 15},
        cost_usd=Decimal("0.000000000001"),
        cost_status="priced",
        iteration=3,
        cell=4,
        call_index=5,
        phase="Explore",
        preview="p",
        orphan=False,
        error_type="server",
        response_chars=0,
        cached_read=4,
        cache_write=2,
        trust=None,
        attributes={**attributes, sc.ERROR_TYPE: "server"},
    )
    assert span.to_json()["cost_usd"] == "0.000000000001"


def test_spans_inherit_place_within_a_run_but_not_into_a_child_run(tmp_path: Path) -> None:
    spans = view_of(
        tmp_path,
        header(),
        start("r", kind="run", a={sc.DEPTH: 0}),
        start("i", "r", "iteration", a={sc.ITERATION: 2}),
        start("c", "i", "cell", a={sc.CELL: 7}),
        start("q", "c", "sub_call"),
        start("a", "q", "attempt"),
        start("child", "c", "run", a={sc.DEPTH: 1}),
        start("own", "child", "root_call"),
        start("lost", "nobody", "sub_call"),
    ).spans
    assert [(s.span_id, s.depth, s.iteration, s.cell, s.role, s.orphan) for s in spans] == [
        ("r", 0, None, None, None, False),
        ("i", 0, 2, None, None, False),
        ("c", 0, 2, 7, None, False),
        ("q", 0, 2, 7, "sub", False),
        ("a", 0, 2, 7, None, False),
        ("child", 1, 2, 7, None, False),
        ("own", 1, None, None, "root", False),
        ("lost", 0, None, None, "sub", True),
    ]


@pytest.mark.parametrize(
    ("attributes", "usd", "status"),
    [
        ({}, None, "unknown"),
        ({sc.COST_STATUS: "unknown", sc.COST_USD: "1"}, None, "unknown"),
        ({sc.COST_STATUS: "priced"}, None, "unknown"),
        ({sc.COST_USD: "0.25"}, Decimal("0.25"), "priced"),
        ({sc.COST_STATUS: "free"}, Decimal(0), "free"),
        ({sc.COST_STATUS: "demo"}, Decimal(0), "demo"),
        ({sc.COST_STATUS: "priced", sc.COST_USD: "1E-18"}, Decimal("1E-18"), "priced"),
        ({sc.COST_STATUS: "priced", sc.COST_USD: "1E-19"}, None, "unknown"),
        ({sc.COST_STATUS: "priced", sc.COST_USD: "-1"}, None, "unknown"),
        ({sc.COST_STATUS: "priced", sc.COST_USD: "1E+99999999"}, None, "unknown"),
        ({sc.COST_STATUS: "priced", sc.COST_USD: "NaN"}, None, "unknown"),
        ({sc.COST_STATUS: "priced", sc.COST_USD: "a lot"}, None, "unknown"),
        ({sc.COST_STATUS: "priced", sc.COST_USD: 0.5}, None, "unknown"),
        ({sc.COST_STATUS: ["priced"], sc.COST_USD: "1"}, Decimal(1), "priced"),
    ],
)
def test_cost_is_an_exact_amount_or_unknown(
    tmp_path: Path, attributes: dict[str, Any], usd: Decimal | None, status: str
) -> None:
    (span,) = view_of(tmp_path, header(), start("1", a=attributes), end("1"), fin()).spans
    assert (span.cost_usd, span.cost_status) == (usd, status)


def test_a_demo_model_costs_nothing_whatever_became_of_the_call(tmp_path: Path) -> None:
    calls = [
        (model, start(model, kind="root_call", a={sc.REQUEST_MODEL: model}))
        for model in ("demo/root", "openai/root")
    ]
    attempts = [start(f"try {model}", model, "attempt", a={sc.REQUEST_MODEL: model}) for model, _ in calls]
    view = view_of(tmp_path, header(), *(record for _, record in calls), *attempts)
    assert [(span.cost_usd, span.cost_status) for span in view.spans] == [
        (0, "demo"),
        (None, "unknown"),
        (0, "demo"),
        (None, None),
    ]
    demo = view_of(tmp_path, header(), calls[0][1], attempts[0])
    assert (demo.summary.cost_usd, demo.summary.cost_status) == (0, "demo")


def test_a_number_that_is_none_is_unknown_and_counted(tmp_path: Path) -> None:
    keys = (
        sc.DEPTH,
        sc.USAGE_INPUT,
        sc.USAGE_OUTPUT,
        sc.USAGE_CACHE_READ,
        sc.ITERATION,
        sc.CELL,
        sc.CALL_INDEX,
    )
    values = ("1", -1, 1.5, True, 2**63, 10**300, [1])
    attributes: list[dict[str, Any]] = [{key: value} for key in keys for value in values]
    records = [start(str(number), a=a) for number, a in enumerate(attributes)]
    view = view_of(tmp_path, header(), *records, fin())
    assert [span.attributes for span in view.spans] == attributes
    assert view.summary.problems == len(attributes)
    numbers = {(s.depth, s.tokens, s.cached_read, s.iteration, s.cell, s.call_index) for s in view.spans}
    assert numbers == {(0, None, None, None, None, None)}


@pytest.mark.parametrize(
    "bad",
    [
        start("2", span_kind="robot"),
        start("2", span_kind=None),
        start("2", span_kind=["run"]),
        start("2", name=7),
        start("2", t="now"),
        start("2", t=-1),
        start("2", t=2**70),
        start("2", t=True),
        start("2", a=[1]),
        start("2", a={"deep": {"er": 1}}),
        start("2", a={"deep": [[1]]}),
        start("2") | {"parent_id": 3},
        start("2") | {"span_id": ["2"]},
        start("1"),
        {"kind": "s"},
        {"kind": "e"},
        {"kind": "ev"},
        {"kind": "b"},
        {"kind": "run"},
        {"kind": "made up"},
        header(),
        end("nobody"),
        end("1"),
        end("2", status="fine"),
        end("2", status=None),
        end("2", a=None),
        body("text", sha256="0" * 64),
        body("text") | {"text": 7},
        {"kind": "b", "sha256": "0", "b64": "not base64!"},
        {"kind": "ev", "span_id": "1", "name": "n", "t": None, "a": {}},
        {"kind": "ev", "span_id": "2", "name": sc.EV_SOURCES, "t": START_NS, "a": {sc.SOURCE_RANGES: "{}"}},
        {"kind": "ev", "span_id": "1", "name": sc.EV_SOURCES, "t": START_NS, "a": {sc.SOURCE_RANGES: 7}},
        {"kind": "ev", "span_id": "1", "name": sc.EV_SOURCES, "t": START_NS, "a": {}},
        fin(status="splendid"),
        fin(problems=-1),
        fin(problems="many"),
        fin(t=None),
    ],
)
def test_an_unusable_record_is_left_out_and_counted(tmp_path: Path, bad: dict[str, Any]) -> None:
    home = home_in(tmp_path)
    write_spool(home, [header(), start("1"), end("1"), bad, fin()])
    view = SpoolRun(home, RUN).poll()
    assert [(span.span_id, span.status) for span in view.spans] == [("1", "ok")]
    assert (view.summary.problems, view.summary.complete, view.summary.status) == (1, False, "ok")


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"run_id": "20260102T030405-ffffffff"}, 1),
        ({"started_ns": "then"}, 1),
        ({"trace_id": 7}, 1),
        ({"facts": None}, 1),
        ({"trace_id": None, "host": None, "pid": None, "engine_version": None}, 0),
    ],
)
def test_a_header_that_makes_no_sense_does_not_hide_the_run(
    tmp_path: Path, changes: dict[str, Any], problems: int
) -> None:
    view = view_of(tmp_path, header(**changes), start("1"), end("1"), fin())
    assert view.summary.run_id == RUN
    assert view.summary.problems == problems
    assert len(view.spans) == 1


def test_source_ranges_that_came_after_the_end_are_a_fact_of_the_span(tmp_path: Path) -> None:
    late = {"kind": "ev", "span_id": "1", "name": sc.EV_SOURCES, "t": START_NS + 5}
    late["a"] = {sc.SOURCE_RANGES: '{"how":"none"}', "made.up": 1}
    other = {"kind": "ev", "span_id": "1", "name": sc.EV_NOTICE, "t": START_NS + 6, "a": {}}
    before = {sc.SOURCE_RANGES: '{"how":"not_searched"}', sc.DEPTH: 1}
    view = view_of(tmp_path, header(), start("1", a=before), end("1"), late, other, fin())
    (span,) = view.spans
    assert dict(span.attributes) == {**before, sc.SOURCE_RANGES: '{"how":"none"}'}
    assert span_detail(view, span)["source_ranges"] == {"how": "none"}
    assert [event["name"] for event in view.events("1")] == [sc.EV_NOTICE]
    assert (view.summary.problems, span.end_ns) == (0, START_NS + 2)


def test_time_that_runs_backwards_gives_no_negative_duration(tmp_path: Path) -> None:
    view = view_of(tmp_path, header(), start("1", t=START_NS + 5), end("1", t=START_NS + 2), fin())
    assert view.spans[0].seconds == 0.0
    assert view.summary.problems == 1


def test_missing_numbers_are_missing_records(tmp_path: Path) -> None:
    view = view_of(tmp_path, header(), start("1", seq=1), end("1", seq=5), fin(seq=6))
    assert view.summary.problems == 3
    view = view_of(tmp_path, header(), start("1", seq=1), end("1", seq=1), fin(seq=2))
    assert view.summary.problems == 1 and view.spans[0].status == "lost"


def test_what_the_writer_could_not_write_is_not_counted_twice(tmp_path: Path) -> None:
    assert view_of(tmp_path, header(), start("1", seq=3), fin(seq=4, problems=2)).summary.problems == 2
    assert view_of(tmp_path, header(), start("1"), fin(problems=2)).summary.problems == 2


def test_unreadable_lines_in_the_middle_cost_only_themselves(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_spool(home, [header(), start("1"), start("2"), end("1"), end("2"), fin()])
    records = path.read_bytes().splitlines(keepends=True)
    records[2] = records[2][:20] + b"\n"
    records[3] = b"\x00\xff\n"
    path.write_bytes(b"".join(records))
    view = load_run(home, RUN)
    assert [(span.span_id, span.status) for span in view.spans] == [("1", "lost")]
    assert view.summary.problems == 3  # two lines, and the end of a span whose start was one of them


@pytest.mark.parametrize("content", [b"", b"\n", b"garbage", b"\x00" * 5000, b"{}\n[]\n7\n"])
def test_a_file_without_any_record_is_an_interrupted_run(tmp_path: Path, content: bytes) -> None:
    home = home_in(tmp_path)
    home.spool_file(RUN).write_bytes(content)
    summary = load_run(home, RUN).summary
    assert (summary.status, summary.spans, summary.started, summary.complete) == ("interrupted", 0, "", False)
    # an empty one lacks its first record
    assert summary.problems == max(1, content.count(b"\n") + (content[-1:] not in (b"", b"\n")))


def test_odd_characters_are_shown_as_escapes(tmp_path: Path) -> None:
    odd = "a\x00b \ud800 c"
    attributes = {sc.PREVIEW: odd, odd: [odd]}
    view = view_of(tmp_path, header(host=odd), start(odd, name=odd, a=attributes), end(odd), body(odd), fin())
    (span,) = view.spans
    shown = "a\x00b \\ud800 c"
    assert (span.span_id, span.name, span.preview) == (shown, shown, shown)
    assert dict(span.attributes) == {sc.PREVIEW: shown, shown: [shown]}
    assert view.payload(body(odd)["sha256"]) == shown
    assert view.summary.problems == 0


def test_numbers_out_of_the_range_of_floats_stay_readable(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = write_spool(home, [header(), start("1", a={"x": "@"}), end("1"), fin()])
    path.write_bytes(path.read_bytes().replace(b'"@"', b"[NaN,-Infinity,1e999,1e5]"))
    assert load_run(home, RUN).spans[0].attributes["x"] == ["NaN", "-Infinity", "1e999", 1e5]


def test_previews_come_from_the_payload_that_says_most(tmp_path: Path) -> None:
    assert only_span(tmp_path, "cell", **{sc.CODE + ".preview": "x = 1"}).preview == "x = 1"
    both = {sc.PROMPT + ".preview": "question", sc.RESPONSE + ".preview": "reply"}
    assert only_span(tmp_path, "sub_call", **both).preview == "reply"
    assert only_span(tmp_path, "sub_call", **{sc.PROMPT + ".preview": "question"}).preview == "question"
    assert only_span(tmp_path, "run", **{sc.QUESTION + ".preview": "why?"}).preview == "why?"
    assert only_span(tmp_path, "tool", **{sc.ERROR_MESSAGE: "boom"}).preview == "boom"


def test_spans_that_came_in_any_order_stand_behind_their_parents_by_their_start(tmp_path: Path) -> None:
    first = {**header(), "facts": {sc.IMPORT_ORDER: "arrival"}}
    came = [("call", "cell", "sub_call", 40), ("cell", "turn", "cell", 30), ("b", "turn", "cell", 20)]
    spans = [start(name, parent, kind, t=START_NS + at) for name, parent, kind, at in came]
    last = [start("turn", "run", "iteration", t=START_NS + 10), start("run", kind="run", t=START_NS + 5)]
    view = view_of(tmp_path, first, *spans, *last, start("lone", "gone", "cell", t=START_NS + 15))
    assert [span.span_id for span in view.spans] == ["run", "turn", "b", "cell", "call", "lone"]
    assert [span.seq for span in view.spans] == list(range(6))


def test_parents_in_a_circle_hide_no_span_that_came_in_any_order(tmp_path: Path) -> None:
    first = {**header(), "facts": {sc.IMPORT_ORDER: "arrival"}}
    view = view_of(tmp_path, first, start("a", "b", "cell"), start("b", "a", "cell"), start("c", "c", "cell"))
    assert sorted(span.span_id for span in view.spans) == ["a", "b", "c"]


def test_what_a_span_is_may_be_told_after_its_end(tmp_path: Path) -> None:
    placed = {sc.KIND: "root_call", sc.ROLE: "root", sc.ITERATION: 2}
    event = {"kind": "ev", "span_id": "1", "name": sc.EV_PLACED, "t": START_NS, "a": placed}
    wrong = {**event, "a": {sc.KIND: "nothing"}}
    view = view_of(tmp_path, header(), start("1"), end("1"), event, wrong)
    assert [(span.kind, span.role, span.iteration) for span in view.spans] == [("root_call", "root", 2)]
    assert view.summary.problems > 0
