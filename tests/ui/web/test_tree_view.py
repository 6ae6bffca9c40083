"""The rows of the recursion tree, the pieces they travel in, and the view and the table that show them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from tests.support.pages import HOSTILE
from tests.support.recorded_runs import recording, sub_call, wide_run
from tests.traces.records import RUN, end, fin, header, start, write_spool
from traces.home import Home
from traces.reading import RunView, SpoolRun
from traces.reply_facts import Signal
from traces.suspects import Suspect
from ui.web import tree_view
from ui.web.tree_rows import CHUNK, Row, Shape, TreeRows, tree_rows


def seen(home: Home, run_id: str) -> TreeRows:
    return tree_rows(SpoolRun(home, run_id).poll())


def by_hand(home: Home, records: Iterable[dict[str, Any]]) -> TreeRows:
    """The rows of a spool written by hand."""
    write_spool(home, [header(), *records])
    return seen(home, RUN)


def outline(rows: TreeRows) -> list[str]:
    return ["  " * row.level + f"{row.label} [{row.status}]" for row in rows.rows]


def find(rows: TreeRows, label: str) -> Row:
    return next(row for row in rows.rows if row.label == label)


def fan_out(home: Home, calls: int, **options: Any) -> TreeRows:
    return seen(home, wide_run(home, 6 + 2 * calls, batch=calls, **options))


# -- what stands where


def test_a_fan_out_is_one_row_with_what_failed_first(home: Home) -> None:
    rows = fan_out(home, 100)
    assert outline(rows)[:10] == [
        "run [1 failed]",
        "  iteration 0 Decompose [1 failed]",
        "    root call [ok]",
        "    cell 0 Decompose [1 failed]",
        "      100 x llm_query: 98 ok, 1 empty, 1 error [1 failed]",
        "        llm_query 17 [error]",
        "        llm_query 42 [empty]",
        "        98 x llm_query: 98 ok [ok]",
        "          llm_query 0 [ok]",
        "          llm_query 1 [ok]",
    ]
    assert find(rows, "llm_query 17").note == "server: the server answered with status 500"
    assert find(rows, "llm_query 42").note == "empty reply"
    assert find(rows, "llm_query 0").note == "yes: “refund of order 0”"


def test_only_what_needs_a_look_is_open_at_first(home: Home) -> None:
    rows = fan_out(home, 100)
    opened = [row.label for row in rows.rows if row.opened]
    assert opened == [
        "run",
        "iteration 0 Decompose",
        "cell 0 Decompose",
        "100 x llm_query: 98 ok, 1 empty, 1 error",
    ]
    assert not find(fan_out(home, 15, run_id=RUN), "15 x llm_query: 15 ok").opened


def test_a_batch_and_its_calls_are_one_row_that_stands_for_the_batch(home: Home) -> None:
    view = SpoolRun(home, wide_run(home, 26, batch=10)).poll()
    (batch,) = (span for span in view.spans if span.kind == "batch")
    rows = tree_rows(view)
    group = find(rows, "10 x llm_query: 10 ok")
    assert (group.key, group.span) == (batch.span_id, batch.span_id)


def test_a_group_without_a_span_of_its_own_stands_for_none(home: Home) -> None:
    calls = [start(f"c{index}", "cell") for index in range(8)]
    rows = by_hand(home, [start("cell", kind="cell"), *calls])
    group = rows.rows[1]
    assert (group.label, group.span) == ("8 x llm_query: 8 lost", None)
    assert group.key not in {row.span for row in rows.rows}


def test_few_calls_are_not_grouped(home: Home) -> None:
    rows = fan_out(home, 5)
    assert [row.label for row in rows.rows[4:]] == ["llm_batch", *(f"llm_query {n}" for n in range(5))]


def test_the_one_attempt_of_a_call_is_in_the_row_of_the_call(home: Home) -> None:
    view = SpoolRun(home, wide_run(home, 186, batch=90)).poll()
    rows = tree_rows(view)
    attempts = [span for span in view.spans if span.kind == "attempt"]
    calls = {span.span_id: span for span in view.spans if span.kind == "sub_call"}
    assert rows.folded == len(attempts) - 2  # call 73 needed two
    twice = {
        calls[attempt.parent_id or ""].call_index for attempt in attempts if attempt.span_id in keys(rows)
    }
    assert twice == {73}
    for attempt in attempts:
        place = rows.rows[rows.place[attempt.span_id]]
        assert place.span in (attempt.span_id, attempt.parent_id)


def keys(rows: TreeRows) -> set[str]:
    return {row.key for row in rows.rows}


def test_every_span_has_a_row_and_every_row_a_key_of_its_own(home: Home) -> None:
    view = SpoolRun(home, wide_run(home, 700, batch=60)).poll()
    rows = tree_rows(view)
    assert set(rows.place) == {span.span_id for span in view.spans}
    assert len(keys(rows)) == len(rows.rows)
    assert all(rows.key_of(span.span_id) in keys(rows) for span in view.spans)
    assert rows.key_of("nothing") is None and rows.key_of(None) is None


def test_child_runs_open_only_where_something_failed(home: Home) -> None:
    records = [start("top", kind="run")]
    for name in ("good", "bad"):
        facts = {sc.DEPTH: 1}
        records += [start(name, "top", kind="run", a=facts), start(f"{name}-call", name)]
        records += [end(f"{name}-call", status="ok" if name == "good" else "error"), end(name)]
    rows = by_hand(home, [*records, end("top")])
    assert [(row.label, row.opened) for row in rows.rows if row.label.startswith("rlm")] == [
        ("rlm_query, depth 1", False),
        ("rlm_query, depth 1", True),
    ]


def test_a_run_that_goes_on_says_so(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.SUB_MODEL: "test/sub"})
        for slot in range(9):
            sub_call(made.recorder, run, slot, {sc.CALL_INDEX: slot})
        made.recorder.start(
            "sub_call", "chat test/sub", run, {sc.CALL_INDEX: 9, sc.REQUEST_MODEL: "test/sub"}
        )
        rows = seen(home, made.run_id)
    assert outline(rows)[:2] == ["run [running]", "  10 x llm_query: 9 ok, 1 running [running]"]
    last = find(rows, "llm_query 9")
    assert (last.status, last.tone, last.tokens, last.cost, last.time) == ("running", "live", "", "", "")
    assert last.start + last.width == 1_000_000


def test_rows_keep_their_keys_while_a_run_grows(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        before: set[str] = set()
        for slot in range(30):
            sub_call(made.recorder, run, slot, {sc.CALL_INDEX: slot})
            now = keys(seen(home, made.run_id))
            if slot not in (8, 17):  # groups begin, and the first failure sets the good ones apart
                assert before <= now
            before = now


# -- what fits, and in what order


def test_what_fits_stands_below_its_parents_and_fan_outs_say_of_how_many(home: Home) -> None:
    view = SpoolRun(home, wide_run(home, 206, batch=100)).poll()
    failed = [span.span_id for span in view.spans if span.kind == "sub_call" and span.status == "error"]
    rows = tree_rows(view, Shape(fits=failed))
    assert outline(rows) == [
        "run [1 failed]",
        "  iteration 0 Decompose [1 failed]",
        "    cell 0 Decompose [1 failed]",
        "      1 of 100 x llm_query: 1 error [1 failed]",
        "        llm_query 17 [error]",
    ]
    assert [row.look for row in rows.rows] == ["parent", "parent", "parent", "fan", ""]
    assert all(row.opened for row in rows.rows[:-1])
    assert find(rows, "run").tokens == find(tree_rows(view), "run").tokens  # of all that is below it


def test_an_attempt_that_fits_is_seen_in_its_call(home: Home) -> None:
    view = SpoolRun(home, wide_run(home, 206, batch=100)).poll()
    attempts = [span for span in view.spans if span.kind == "attempt" and span.status == "error"]
    rows = tree_rows(view, Shape(fits=[span.span_id for span in attempts]))
    assert all(span.span_id in rows.place for span in attempts)
    assert [row.label for row in rows.rows[4:]] == ["llm_query 17", "llm_query 73", "attempt"]


def test_nothing_that_fits_is_no_row(home: Home) -> None:
    view = SpoolRun(home, wide_run(home, 60)).poll()
    assert tree_rows(view, Shape(fits=[])).rows == []


@pytest.mark.parametrize(
    ("order", "expected"),
    [("cost", [3, 1, 0, 2]), ("time", [2, 3, 0, 1]), ("suspicion", [1, 0, 2, 3]), ("order", [0, 1, 2, 3])],
)
def test_the_calls_of_a_fan_out_stand_in_the_order_that_is_asked_for(
    home: Home, order: str, expected: list[int]
) -> None:
    costs, ends = ["0.1", "0.2", None, "0.3"], [20, 15, 70, 60]
    records = [start("cell", kind="cell"), start("batch", "cell", "batch")]
    for slot in range(8):
        records.append(start(f"c{slot}", "batch", t=10, a={sc.CALL_INDEX: slot}))
    for slot in range(8):
        cost = costs[slot] if slot < 4 else "0.000001"
        facts = {sc.COST_USD: cost, sc.COST_STATUS: "priced"} if cost else {sc.COST_STATUS: "unknown"}
        records.append(end(f"c{slot}", t=ends[slot] if slot < 4 else 11, a=facts))
    write_spool(home, [header(), *records, end("batch"), end("cell"), fin()])
    suspects = {"c1": Suspect(0.9, (Signal("value", "A number."),))}
    rows = tree_rows(SpoolRun(home, RUN).poll(), Shape(order=order, suspects=suspects))
    slots = [int(row.label.split()[1]) for row in rows.rows if row.label.startswith("llm_query")]
    assert [slot for slot in slots if slot < 4] == expected
    assert find(rows, "llm_query 1").note == "suspect: A number."


def test_a_lost_span_says_so_once(home: Home) -> None:
    rows = by_hand(home, [start("cell", kind="cell"), start("call", "cell")])
    assert [(row.status, row.note) for row in rows.rows] == [("lost", ""), ("lost", "")]


# -- figures


def test_figures_of_calls_and_of_what_holds_them(home: Home) -> None:
    rows = fan_out(home, 20)
    good, bad = find(rows, "llm_query 0"), find(rows, "llm_query 17")
    assert (good.tokens, good.cost, good.time) == ("129", "$0.000042", "3 ms")
    assert (bad.tokens, bad.cost) == ("?", "unknown")
    whole = find(rows, "run")
    assert (whole.tokens, whole.cost) == (f"{960 + 19 * 129:,}", "≥ $0.013098")
    assert find(rows, "root call").cost == "$0.0123"
    assert (whole.start, whole.width) == (0, 1_000_000)
    assert all(0 <= row.start <= row.start + row.width <= 1_000_000 for row in rows.rows)


def test_what_calls_nothing_has_no_figures(home: Home) -> None:
    rows = by_hand(home, [start("cell", kind="cell"), end("cell"), fin()])
    assert (rows.rows[0].tokens, rows.rows[0].cost) == ("", "")


# -- records that cannot be trusted


def test_texts_are_one_line_bounded_and_visible(home: Home) -> None:
    facts = {sc.PHASE: HOSTILE, sc.REQUEST_MODEL: HOSTILE * 50, sc.PREVIEW: "a\nb\x1b" + "x" * 5_000}
    records = [
        start("cell", kind="cell", a=facts),
        start("call", "cell", a=facts),
        start("odd", "cell", "tool"),
    ]
    for row in by_hand(home, [*records, end("odd")]).rows:
        for text in (row.label, row.note):
            assert len(text) <= 120
            assert text.isprintable()


def test_missing_parents_and_circles_lose_nothing(home: Home) -> None:
    records = [start("a", "b", "cell"), start("b", "a", "cell"), start("c", "gone", "cell"), start("d", "a")]
    rows = by_hand(home, records)
    assert sorted(row.span or "" for row in rows.rows) == ["a", "b", "c", "d"]
    assert rows.rows[rows.place["c"]].note.startswith("its parent is not in the record")


def test_a_tree_may_be_deeper_than_python_recurses(home: Home) -> None:
    records = [start(f"n{n}", f"n{n - 1}" if n else None, "cell") for n in range(3_000)]
    assert by_hand(home, records).rows[-1].level == 2_999


SPANS = st.lists(
    st.tuples(st.sampled_from(sc.KINDS), st.integers(-1, 12), st.sampled_from(["ok", "error", "open"])),
    max_size=40,
)


@given(SPANS)
def test_any_tree_shows_every_span_once(tmp_path_factory: pytest.TempPathFactory, spans: list[Any]) -> None:
    records = []
    for number, (kind, parent, status) in enumerate(spans):
        records.append(start(f"s{number}", None if parent < 0 else f"s{parent}", kind))
        if status != "open":
            records.append(end(f"s{number}", status=status))
    rows = by_hand(Home.resolve(tmp_path_factory.mktemp("any")), records)
    assert set(rows.place) == {f"s{number}" for number in range(len(spans))}
    assert len(keys(rows)) == len(rows.rows)
    own = [row.span for row in rows.rows if row.span is not None]
    assert len(own) == len(set(own)) == len(spans) - rows.folded
    levels = [row.level for row in rows.rows]
    assert all(later <= level + 1 for level, later in zip([-1, *levels], levels, strict=False))


# -- pieces


def pieces(rows: TreeRows) -> dict[str, list[Any]]:
    """The columns put together again."""
    whole: dict[str, list[Any]] = {}
    for name, piece in rows.chunks:
        content = json.loads(piece)
        assert content["name"] == name
        assert {len(column) for column in content["rows"].values()} <= set(range(1, CHUNK + 1))
        for key, column in content["rows"].items():
            whole.setdefault(key, []).extend(column)
    return whole


def test_the_pieces_hold_all_rows_in_order(home: Home) -> None:
    rows = fan_out(home, CHUNK + 10)
    assert len(rows.chunks) == 2
    for name, column in pieces(rows).items():
        assert column == [getattr(row, name) for row in rows.rows]


def test_a_piece_keeps_its_name_unless_its_rows_change(home: Home) -> None:
    rows = fan_out(home, CHUNK + 10)
    first, last = (name for name, _ in rows.chunks)
    rows.rows[-1].status = "other"
    changed = TreeRows(rows.rows, rows.place)
    assert changed.chunks[0][0] == first
    assert changed.chunks[1][0] != last


# -- the view and the table


def drawn(show: Callable[..., None], rows: TreeRows, selected: str, chosen: list[str]) -> AppTest:
    """A page with one view; `selected` can be changed in its session state."""
    page = AppTest.from_string("import streamlit as st\nst.session_state.draw(st.session_state.span)")
    page.session_state["span"] = selected
    page.session_state["draw"] = lambda span: show(rows, run_id="r", selected=span, on_select=chosen.append)
    return looked_at(page)


def looked_at(page: AppTest) -> AppTest:
    page.run(timeout=60)
    assert not page.exception, page.exception
    return page


def sent(page: AppTest) -> tuple[dict[str, Any], list[bytes]]:
    """What the tree is told, and the pieces of rows beside it."""
    view, *rest = (element.proto for element in page.get("bidi_component"))
    return json.loads(view.json), [proto.bytes for proto in rest]


def test_the_view_names_its_pieces_and_what_is_chosen(home: Home) -> None:
    view = SpoolRun(home, wide_run(home, 100)).poll()
    rows = tree_rows(view)
    attempt = next(span for span in view.spans if span.kind == "attempt")
    told, rest = sent(drawn(tree_view.tree, rows, attempt.span_id, []))
    assert rest == [piece for _, piece in rows.chunks]
    assert told["pieces"] == [name for name, _ in rows.chunks]
    assert told["key"] == attempt.parent_id
    assert told["title"] == f"{len(view.spans)} spans; {rows.folded} single attempts in the rows of the calls"


def test_the_tree_is_told_of_choices_made_elsewhere_and_of_no_others(home: Home) -> None:
    view = SpoolRun(home, wide_run(home, 100)).poll()
    rows = tree_rows(view)
    first, second = view.spans[1].span_id, view.spans[2].span_id
    page = drawn(tree_view.tree, rows, first, [])
    told, _ = sent(page)
    assert sent(looked_at(page))[0] == told
    page.session_state["span"] = second
    moved, _ = sent(looked_at(page))
    assert (moved["key"], moved["token"] != told["token"]) == (second, True)
    page.session_state["tree-r-known"].chosen = first  # as after a click in the tree
    page.session_state["span"] = first
    assert sent(looked_at(page))[0] == moved


def test_the_table_lists_every_row_with_the_chosen_one_marked(home: Home) -> None:
    view: RunView = SpoolRun(home, wide_run(home, 60)).poll()
    rows = tree_rows(view)
    page = drawn(tree_view.table, rows, view.spans[3].span_id, [])
    frame = page.dataframe[0].value
    assert frame["span"].str.strip().tolist() == [row.label for row in rows.rows]
    assert frame["status"].tolist() == [row.status for row in rows.rows]
    assert frame["id"].fillna("").tolist() == [row.span or "" for row in rows.rows]
    assert page.caption[0].value.startswith(f"{len(view.spans)} spans")


def test_the_scripts_of_the_view_parse_no_markup() -> None:
    folder = Path(tree_view.__file__).parent
    for script in folder.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        for way in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("):
            assert way not in text, (script.name, way)
