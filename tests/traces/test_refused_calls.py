"""Sub-calls that a limit of the run refused: they are no calls, and how many there were is said."""

from __future__ import annotations

from decimal import Decimal
from itertools import islice
from pathlib import Path

import duckdb
import pytest

from rlm_core import Limits, Request
from rlm_core.errors import ModelError
from rlm_core.lm_handler import Completion, Usage
from rlm_core.model_calls import NOTHING_BILLED
from tests.support.replays import SUB, filled, recorded
from traces import spend
from traces.calls import spans_of
from traces.home import Home
from traces.ingest import ingest
from traces.migrations import MIGRATIONS
from traces.narrow import Narrow, fitting
from traces.prices import price_table, set_price
from traces.reading import Group, Node, build_tree, cost_report, list_runs, load_run, span_detail
from traces.recording import open_recording
from traces.refused import refused, unsent
from traces.strategies import strategy_rows
from traces.subtotals import below
from traces.summing import spend_of
from traces.suspects import suspects
from traces.tables import run_row
from traces.tree import walk
from traces.tree_cells import cost_cell, status_cell, tokens_cell
from ui.cost_text import unsent_words
from ui.span_text import span_text
from ui.tree import tree_lines

RUN = "20260101T000000-0000aaaa"
BATCH = "replies = llm_batch([f'item {n}' for n in range(30)])\nFINAL(sum(bool(r) for r in replies))"


def _record(home: Home) -> None:
    set_price(home, SUB, {"input": Decimal(1000), "output": Decimal(2000)})

    def sub(request: Request) -> Completion:
        if request.prompt.endswith("item 4"):
            raise ModelError("bad_request", "no")
        return Completion("4", "stop", usage=Usage(100, 5))

    recorded(home, BATCH, sub=sub, run_id=RUN, limits=Limits(max_calls=10), prices=price_table(home))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.resolve(tmp_path / "home")
    filled(made, "refused calls", _record)
    return made


def test_a_run_counts_the_sub_calls_that_were_made_and_says_how_many_were_refused(home: Home) -> None:
    run = load_run(home, RUN).summary
    assert (run.sub_calls, run.failed_sub_calls, run.refused_sub_calls) == (10, 1, 20)
    assert run.to_json()["refused_sub_calls"] == run_row(run)["refused_sub_calls"] == 20
    (row,) = strategy_rows(home, [RUN])
    assert (row.root_calls, row.sub_calls, row.failed_sub_calls, row.refused_sub_calls) == (2, 10, 1, 20)


def test_refused_calls_are_in_no_number_of_calls_and_in_no_percentile(home: Home) -> None:
    report = cost_report(home, [RUN], ["role"])
    calls = {row["role"]: (row["calls"], row["p50_usd"]) for row in report["rows"]}
    assert calls["sub"] == (10, "0.11") and report["calls"] == 12
    assert (report["served_calls"], report["refused_calls"]) == (20, 20)
    with spans_of(home, [RUN], None) as spans:
        totals, tails = spend.totals(spans), spend.tails(spans)
    assert (totals.served, totals.refused) == (20, 20)
    assert {tail.role: (tail.calls, tail.p50) for tail in tails}["sub"] == (10, Decimal("0.11"))


def test_a_run_at_work_says_the_same_as_afterwards(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    with open_recording(home, RUN, {}) as made:
        for _ in range(3):
            made.recorder.start("sub_call", "chat s", None, NOTHING_BILLED).fail("budget", "none is left")
        at_work = load_run(home, RUN).summary.refused_sub_calls, cost_report(home, [RUN], ["role"])
        made.close("ok")
    assert at_work == (load_run(home, RUN).summary.refused_sub_calls, cost_report(home, [RUN], ["role"]))
    assert at_work[0] == at_work[1]["refused_calls"] == 3 and at_work[1]["calls"] == 0


def test_calls_that_were_sent_and_cost_nothing_are_none_of_them_beside_a_run_at_work(tmp_path: Path) -> None:
    home, later = Home.resolve(tmp_path / "home"), RUN[:-1] + "b"

    def down(_: Request) -> Completion:
        raise ModelError("bad_request", "no")

    recorded(home, "llm_query('a')\nFINAL(1)", sub=down, run_id=RUN)
    ingest(home)
    alone = cost_report(home, [RUN], [])
    assert (alone["calls"], alone["served_calls"], alone["refused_calls"]) == (2, 0, 0)
    with open_recording(home, later, {}) as made:
        made.recorder.start("sub_call", "chat s", None, NOTHING_BILLED).fail("budget", "none is left")
        both = cost_report(home, [RUN, later], [])
        made.close("ok")
    assert (both["calls"], both["served_calls"], both["refused_calls"]) == (2, 1, 1)


def test_below_a_span_refused_calls_are_counted_by_themselves(home: Home) -> None:
    view = load_run(home, RUN)
    for kind in ("run", "cell", "batch"):
        found = below(view, next(span for span in view.spans if span.kind == kind))
        assert found is not None
        assert (found["sub_calls"], found["outcomes"]) == (10, {"ok": 9, "error": 1}), kind
        assert found["refused_sub_calls"] == 20, kind
    batch = next(span for span in view.spans if span.kind == "batch")
    told = "\n".join(islice(span_text(span_detail(view, batch), everything=False), 5))
    assert "\nbelow: 10 calls (sub-calls: 9 ok, 1 error); 20 refused by a limit · tokens 900 in" in told


def test_a_store_from_before_says_the_same(home: Home) -> None:
    ingest(home)
    today = list_runs(home)
    with duckdb.connect(str(home.store)) as con:
        con.execute("UPDATE run SET sub_calls = 30, failed_sub_calls = 21").fetchall()
        con.execute("ALTER TABLE run DROP COLUMN refused_sub_calls").fetchall()
        (number,) = [n for n, (name, _) in MIGRATIONS.items() if name == "sub-calls that a limit refused"]
        con.execute("DELETE FROM migration WHERE number >= ?", [number]).fetchall()
    ingest(home)
    assert list_runs(home) == today


def test_calls_that_were_turned_away_or_never_sent_are_no_calls_of_a_model(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    code = "llm_query('a', model='someone/else')\nllm_query('a')\nllm_query('b')\nFINAL(1)"
    view = recorded(home, code, sub=lambda _: "4", run_id=RUN)
    assert (view.summary.sub_calls, view.summary.failed_sub_calls) == (3, 1)
    assert view.summary.refused_sub_calls == 0, "no limit did that"
    report = cost_report(home, [RUN], [])
    assert (report["calls"], report["served_calls"], report["refused_calls"]) == (3, 1, 0)


def test_refused_calls_are_some_of_those_that_were_never_sent_for_rows_and_for_the_store(
    tmp_path: Path,
) -> None:
    home = Home.resolve(tmp_path / "home")
    code = "llm_query('a', model='someone/else')\nllm_query('a')\nllm_query('b')\nFINAL(1)"
    view = recorded(home, code, sub=lambda _: "4", run_id=RUN, limits=Limits(max_calls=1))
    calls = {span.span_id: span.error_type for span in view.spans if span.kind == "sub_call"}
    never, turned_away = unsent(view.spans), refused(view.spans)
    assert turned_away < never < set(calls)
    assert sorted(str(calls[span_id]) for span_id in never - turned_away) == ["bad_request"]
    ingest(home)
    report = cost_report(home, [RUN], [])
    assert (report["served_calls"], report["refused_calls"]) == (len(never), len(turned_away)) == (2, 1)


def test_what_is_not_counted_is_told_apart() -> None:
    assert unsent_words(20, 20) == "20 calls that no model was asked for: refused by a limit"
    assert unsent_words(21, 20).startswith(
        "21 calls that no model was asked for: 20 refused by a limit, 1 answered from a record, "
    )


def test_the_tree_counts_refused_calls_apart_from_those_that_failed(home: Home) -> None:
    view = load_run(home, RUN)
    items = [item for _, item in walk(build_tree(view.spans))]
    (group,) = (item for item in items if isinstance(item, Group))
    assert group.headline == "30 x llm_query: 9 ok, 1 error, 20 refused"
    assert status_cell(group) == ("1 failed", "bad") and group.totals.failures == 1
    calls = [node for node in group.members if node.outcome == "refused"]
    assert status_cell(calls[0]) == ("refused", "warn")
    assert status_cell(Group.of("llm_query", calls)) == ("20 refused", "warn")
    assert any("9 ok, 1 error, 20 refused" in drawn.text for drawn in tree_lines(view))


def test_a_filter_takes_refused_calls_by_their_own_word(home: Home) -> None:
    view = load_run(home, RUN)
    kinds = {span: {signal.kind for signal in each.signals} for span, each in suspects(view).items()}
    turned_away = refused(view.spans)
    failed = fitting(view.spans, Narrow(status=("error",), role=("sub",)), kinds, turned_away).spans
    assert not turned_away.intersection(failed) and failed
    assert set(fitting(view.spans, Narrow(status=("refused",)), kinds, turned_away).spans) == turned_away


def test_a_refused_call_is_under_suspicion_for_that_and_has_no_unknown_tokens(home: Home) -> None:
    view = load_run(home, RUN)
    turned_away = refused(view.spans)
    said = {span: each.signals[0].words for span, each in suspects(view).items()}
    told = {span: words.startswith("A limit refused the call:") for span, words in said.items()}
    assert {span for span, refusal in told.items() if refusal} == turned_away
    for _, item in walk(build_tree(view.spans)):
        if isinstance(item, Node) and item.span.span_id in turned_away:
            assert tokens_cell(item.totals.spend, item.span) == ""


def test_what_was_never_sent_took_nothing_and_what_failed_unbilled_took_0_in_every_place(home: Home) -> None:
    view = load_run(home, RUN)
    nodes = [item for _, item in walk(build_tree(view.spans)) if isinstance(item, Node)]
    (failed,) = (node for node in nodes if node.span.error_type == "bad_request" and node.below)
    refusal = next(node for node in nodes if node.outcome == "refused")
    told = {}
    for node in (failed, refusal):
        spend, id_ = node.totals.spend, node.span.span_id
        (drawn,) = (row.text for row in tree_lines(view, everything=True) if id_[:8] in row.text)
        head = next(islice(span_text(span_detail(view, node.span), everything=False), 3, None))
        told[node] = (tokens_cell(spend, node.span), cost_cell(spend, node.span)), drawn, head
    cells, drawn, head = told[failed]
    assert cells == ("0", "$0") and head == "tokens 0 in, 0 out · cost $0 (free)" and head in drawn
    cells, drawn, head = told[refusal]
    assert cells == ("", "") and head == "refused by a limit"
    assert "· refused by a limit · budget: " in drawn and not {"tokens", "cost"} & set(drawn.split())


def test_tokens_that_nobody_reported_are_unknown_in_the_tree_and_not_nothing(tmp_path: Path) -> None:
    view = recorded(
        Home.resolve(tmp_path / "home"),
        "llm_query('a')\nFINAL(1)",
        sub=lambda _: Completion("4", "stop", usage=Usage()),
    )
    call = next(span for span in view.spans if span.kind == "sub_call")
    assert tokens_cell(spend_of([call]), call) == "?" and call.cost_status == "unknown"
