"""What a reviewer asks of a set of runs: which ones, the tail, the dearest calls, limits."""

from __future__ import annotations

import itertools
import json
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core import semconv as sc
from tests.traces.records import (
    OTHER,
    RUN,
    end,
    fin,
    header,
    home_in,
    record_run,
    recording,
    start,
    write_spool,
)
from traces.calls import spans_of
from traces.home import Home
from traces.reading import list_runs, load_run
from traces.spend import Scope, budgets, choose, dearest, per_run, started_on, state_of, tails, totals


def calls(home: Home, costs: list[str | None], kind: str = "sub_call", **facts: Any) -> None:
    records = [
        [
            start(f"{n:016x}", kind=kind, a={sc.REQUEST_MODEL: "m", **facts}),
            end(f"{n:016x}", a={} if usd is None else {sc.COST_USD: usd, sc.COST_STATUS: "priced"}),
        ]
        for n, usd in enumerate(costs, 1)
    ]
    write_spool(home, [header(), *itertools.chain(*records), fin()])


def test_the_tail_says_what_part_the_dearest_calls_cost(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    calls(home, ["0.01"] * 99 + ["1.01", None])
    with spans_of(home, [], None) as spans:
        every, sub = tails(spans)
    assert (every.role, every.calls, every.usd, every.most) == (None, 100, Decimal(2), Decimal("1.01"))
    assert (every.p50, every.p95) == (Decimal("0.01"), Decimal("0.01"))
    assert every.shares is not None and every.shares[1] == pytest.approx(0.505)
    assert every.shares[5] == pytest.approx(1.05 / 2) and every.shares[100] == 1
    assert (sub.role, sub.shares) == ("sub", every.shares)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40))
@settings(max_examples=8)
def test_shares_grow_and_end_with_all_of_it(costs: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = home_in(Path(folder))
        calls(home, [f"0.{cost:04}" for cost in costs])
        with spans_of(home, [], None) as spans:
            (every, _) = tails(spans)
    if not sum(costs):
        assert every.shares is None
        return
    assert every.shares is not None
    ordered = sorted(costs, reverse=True)
    for part, share in every.shares.items():
        assert share == pytest.approx(sum(ordered[: -(-part * len(costs) // 100)]) / sum(costs))


def test_calls_that_cost_nothing_have_no_tail(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    calls(home, ["0", "0"])
    with spans_of(home, [], None) as spans:
        assert all(tail.shares is None for tail in tails(spans))
        assert dearest(spans) == []
    with spans_of(home_in(tmp_path / "none"), [], None) as spans:
        assert tails(spans) == [] and dearest(spans) == [] and budgets(spans) == ([], 0)


def test_the_dearest_sub_calls_are_ten_and_of_equals_the_earliest(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    calls(home, ["0.5"] * 8 + [None] + ["0.25"] * 8 + ["2"], **{sc.ITERATION: 3, sc.CALL_INDEX: 5})
    with spans_of(home, [], None) as spans:
        found = dearest(spans)
    assert [str(one.usd.normalize()) for one in found] == ["2"] + ["0.5"] * 8 + ["0.25"]
    assert found[-1].span_id == f"{10:016x}" and found[0].place == (3, None, 5)


def test_totals_by_role_and_the_models_of_unknown_cost(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    calls(home, ["1", None, None])
    with spans_of(home, [], None) as spans:
        found = totals(spans)
    assert (found.whole.usd, found.whole.known_usd, found.unknown) == (None, Decimal(1), (("m", 2),))
    assert found.by_role["sub"].calls == 3 and found.gaps == 0


def ledger(**told: Any) -> dict[str, Any]:
    return {sc.LEDGER: json.dumps(told)}


def test_limits_by_how_much_of_them_was_taken(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    told = ledger(
        usd={"spent": "1.5", "limit": "1", "known": False},
        tokens={"spent": 50, "limit": 100},
        calls={"spent": 3, "limit": None},
        seconds={"spent": 9.5, "limit": 10},
        depth={"spent": 1, "limit": 1},
    )
    write_spool(home, [header(), start("1", kind="run", a=told), end("1"), fin()])
    write_spool(home, [header(OTHER), start("1", kind="run"), end("1"), fin()], OTHER)
    with spans_of(home, [], None) as spans:
        found, silent = budgets(spans)
    assert [(one.dimension, one.used, str(one.over), one.exact) for one in found] == [
        ("usd", 1.5, "0.5", False),
        ("seconds", 0.95, "0", True),
        ("tokens", 0.5, "0", True),
    ]
    assert silent == 1


@pytest.mark.parametrize(
    "raw",
    ["{", "[]", "1", '"x"', '{"usd": 1}', '{"usd": {"spent": "NaN", "limit": "1"}}',
     '{"usd": {"spent": "1"}}',
     '{"usd": {"spent": true, "limit": "1"}}', '{"usd": {"spent": "1e9999999", "limit": "1"}}',
     '{"tokens": {"spent": -1, "limit": 5}}', "[" * 5000],
)  # fmt: skip
def test_a_ledger_that_says_nothing_usable_is_passed_over(tmp_path: Path, raw: str) -> None:
    home = home_in(tmp_path)
    write_spool(home, [header(), start("1", kind="run", a={sc.LEDGER: raw}), end("1"), fin()])
    with spans_of(home, [], None) as spans:
        assert budgets(spans)[0] == []


def test_a_limit_of_nothing_is_passed_by_anything(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    told = ledger(calls={"spent": 2, "limit": 0}, usd={"spent": "0", "limit": "0"})
    write_spool(home, [header(), start("1", kind="run", a=told), end("1"), fin()])
    with spans_of(home, [], None) as spans:
        assert [(one.used, int(one.over)) for one in budgets(spans)[0]] == [(2.0, 2), (1.0, 0)]


def test_a_scope_takes_runs_by_id_corpus_and_day_and_says_which_demo_runs_it_left_out(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    with recording(home, OTHER) as made:
        made.recorder.start("run", sc.NAME_RUN, None, {sc.DEMO: True, sc.CORPUS_ID: "notes"}).end()
        made.close("ok")
    runs = list_runs(home)
    day = date(2023, 11, 14)
    assert {started_on(run) for run in runs} == {day}
    for scope, ids, demos in (
        (Scope(), {RUN}, 1),
        (Scope(demo=True), {RUN, OTHER}, 0),
        (Scope(runs=(OTHER,), demo=True), {OTHER}, 0),
        (Scope(corpus="notes"), set(), 1),
        (Scope(first=day, last=day), {RUN}, 1),
        (Scope(first=date(2023, 11, 15)), set(), 0),
        (Scope(last=date(2023, 11, 13), demo=True), set(), 0),
    ):
        chosen = choose(runs, scope)
        assert (set(chosen.run_ids), chosen.demo_left_out) == (ids, demos), scope
    assert choose(runs, Scope()).finished[0].cost_usd == load_run(home, RUN).summary.cost_usd


def test_what_a_finished_run_costs_is_spread_by_nearest_rank(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for n in range(1, 21):
        record_run(home, f"{RUN[:-2]}{n:02x}", calls=1, cost=str(n))
    found = per_run(list_runs(home))
    assert (found.known, found.unknown, found.spread) == (20, 0, (11, 20, 21))  # each with a root call of 1
    assert per_run([]).spread is None


def test_a_run_without_a_start_began_on_no_day(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_spool(home, [header(started_ns=None), fin()])
    (run,) = list_runs(home)
    assert started_on(run) is None
    today = datetime.now(UTC).date()
    assert choose([run], Scope(last=today)).runs == () and choose([run], Scope()).runs == (run,)


def test_the_state_of_a_record_changes_with_it(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    states = [state_of(home)]
    record_run(home)
    states.append(state_of(home))
    list_runs(home)  # takes it in
    states.append(state_of(home))
    with recording(home, OTHER) as made:
        made.recorder.start("run", sc.NAME_RUN, None, {})
        states.append(state_of(home))
        made.recorder.start("cell", sc.NAME_CELL, None, {})
        states.append(state_of(home))
    assert len(set(states)) == 5
    assert state_of(home) == state_of(home)


def test_a_record_that_is_deleted_while_its_state_is_read_is_passed_over(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home)
    before = state_of(home)
    home.spool_file(OTHER).symlink_to(tmp_path / "gone")  # listed, and not there
    assert state_of(home) == before
