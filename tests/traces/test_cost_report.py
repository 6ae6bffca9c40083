"""Spend by role, model, depth, iteration, cell and class."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
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
from traces.calls import spans_of_runs
from traces.cost import KEYS, report_of
from traces.home import Home
from traces.reading import SpoolRun, cost_report, load_run, money_json, span_detail

PRICE = {
    "source": "genai-prices",
    "model": "m",
    "input_per_mtok": "0.25",
    "cached_read_per_mtok": "0.025",
    "cache_write_per_mtok": "0.3125",
    "output_per_mtok": "2",
}


def call(
    span_id: str, facts: Mapping[str, Any], *, usd: str | None = None, kind: str = "sub_call"
) -> list[dict[str, Any]]:
    """A call of 1000 tokens in and 10 out with a price row; a fact that is None takes one away."""
    a: dict[str, Any] = {sc.USAGE_INPUT: 1000, sc.USAGE_OUTPUT: 10, sc.COST_PRICE: json.dumps(PRICE)}
    a |= {} if usd is None else {sc.COST_USD: usd, sc.COST_STATUS: "priced"}
    a |= facts
    return [start(span_id, kind=kind, a={k: v for k, v in a.items() if v is not None}), end(span_id)]


def store_calls(home: Home, *records: list[dict[str, Any]]) -> None:
    write_spool(home, [header(), *itertools.chain(*records), fin()])


def killed_in_a_retry(home: Home) -> None:
    """A run that died while a call was tried a third time; another call had ended."""
    billed, unsent = (
        call("2", {sc.REQUEST_MODEL: "s"}, usd="0.00027", kind="attempt"),
        {sc.COST_STATUS: "free"},
    )
    tries = [
        {**record, "parent_id": "1"} if record["kind"] == "s" else record
        for record in (*billed, start("3", kind="attempt", a=unsent), end("3"), start("4", kind="attempt"))
    ]
    role = {sc.REQUEST_MODEL: "s", sc.ITERATION: 3, sc.CELL: 2}
    ended = call("5", role, usd="0.5")
    write_spool(home, [header(), start("0", kind="run"), start("1", "0", a=role), *tries, *ended])


MIXED = [
    call("1", {sc.REQUEST_MODEL: "r", sc.DEPTH: 0, sc.ITERATION: 0}, usd="0.00027", kind="root_call"),
    call("2", {sc.REQUEST_MODEL: "s", sc.DEPTH: 0, sc.ITERATION: 0, sc.CELL: 0}, usd="0.00027"),
    call("3", {sc.REQUEST_MODEL: "s", sc.DEPTH: 0, sc.ITERATION: 1, sc.CELL: 1}, usd="0.00027"),
    call("4", {sc.REQUEST_MODEL: "s", sc.DEPTH: 1, sc.ITERATION: 0}, usd="0.00027", kind="root_call"),
    call("5", {sc.REQUEST_MODEL: "s"}, usd="99", kind="attempt"),
]


def test_by_role_and_model(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    store_calls(home, *MIXED)
    figures = {"cost_status": "priced", "tokens": {"input": 1000, "output": 10, "total": 1010}, "calls": 1}
    marks = {"untold_calls": 0, "derived_calls": 0}
    single = {"p50_usd": None, "p95_usd": None, "max_usd": None}
    several = dict.fromkeys(single, "0.00027")
    one = {"cost_usd": "0.00027", "known_usd": "0.00027", **figures, **marks, **single}
    two = {
        "cost_usd": "0.00054",
        "known_usd": "0.00054",
        "cost_status": "priced",
        "tokens": {"input": 2000, "output": 20, "total": 2020},
        "calls": 2,
        **marks,
        **several,
    }
    assert cost_report(home, ["last"], ["role", "model"]) == {
        "total_usd": "0.00108",
        "known_usd": "0.00108",
        "cost_status": "priced",
        "tokens": {"input": 4000, "output": 40, "total": 4040},
        "calls": 4,
        **marks,
        "rows": [
            {"role": "sub", "model": "s", **two},
            {"role": "root", "model": "r", **one},
            {"role": "root", "model": "s", **one},
        ],
        "runs_with_gaps": 0,
        "served_calls": 0,
        "refused_calls": 0,
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a run of the mixed calls, to be read only."""
    home = home_in(tmp_path_factory.mktemp("mixed"))
    store_calls(home, *MIXED)
    return home


@pytest.mark.parametrize(
    "by", [keys for length in (0, 1, 2) for keys in itertools.permutations(KEYS, length)] + [KEYS]
)
def test_every_grouping_adds_up_to_the_run(mixed: Home, by: tuple[str, ...]) -> None:
    report = cost_report(mixed, [RUN], by)
    total = load_run(mixed, RUN).summary
    parts = [Decimal(row["cost_usd"]) for row in report["rows"]]
    assert Decimal(report["total_usd"]) == total.cost_usd == sum(parts)
    for side in ("input", "output", "total"):
        assert total.tokens[side] == sum(row["tokens"][side] for row in report["rows"])
    assert all(list(row)[: len(by)] == list(by) for row in report["rows"])


def test_by_corpus_and_day_of_stored_runs_and_of_one_at_work(tmp_path: Path) -> None:
    """A day is that of the call, in UTC; a run without a corpus and a call without a time have none."""
    home = home_in(tmp_path)
    noon = 1_796_040_000_000_000_000  # 2026-11-30T12:00:00Z
    times = (noon, noon + 43_199_999_999_999, noon + 43_200_000_000_000, 0)
    calls = [
        [start(str(n), t=t, a={sc.COST_USD: "1", sc.COST_STATUS: "priced"}), end(str(n), t=t)]
        for n, t in enumerate(times)
    ]
    write_spool(home, [header(), *itertools.chain(*calls), fin()])
    with recording(home, OTHER) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.CORPUS_ID: "notes"})
        call_at_work = made.recorder.start("sub_call", "chat s", run, {sc.REQUEST_MODEL: "s"})
        call_at_work.end("ok", {sc.COST_USD: "0.25", sc.COST_STATUS: "priced"})
        rows = cost_report(home, [], ["corpus", "day"])["rows"]
        assert cost_report(home, [OTHER], ["corpus"])["rows"][0]["corpus"] == "notes"
        run.end()
        made.close("ok")
    assert [(row["corpus"], row["day"], row["cost_usd"]) for row in rows] == [
        (None, "2026-11-30", "2"),
        (None, "2026-12-01", "1"),
        (None, None, "1"),
        ("notes", "2023-11-14", "0.25"),
    ]
    assert cost_report(home, [], ["corpus", "day"])["rows"] == rows, "the same once it has ended"


def by_class(home: Home) -> dict[str | None, tuple[str | None, int, int]]:
    rows = cost_report(home, [], ["class"])["rows"]
    return {row["class"]: (row["cost_usd"], row["tokens"]["total"], row["calls"]) for row in rows}


def test_classes_are_disjoint_and_priced_by_the_row_on_the_span(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    cached = {sc.USAGE_CACHE_READ: 600, sc.USAGE_CACHE_WRITE: 100}
    store_calls(home, call("1", cached, usd="0.00014125"))
    assert by_class(home) == {
        "input": ("0.000075", 300, 1),
        "cached_read": ("0.000015", 600, 1),
        "cache_write": ("0.00003125", 100, 1),
        "output": ("0.00002", 10, 1),
    }


def test_what_no_class_explains_stands_on_its_own_line(tmp_path: Path) -> None:
    """A failed attempt that was billed, say, is in the call's cost but not in its tokens."""
    home = home_in(tmp_path)
    without = {sc.USAGE_INPUT: None, sc.USAGE_OUTPUT: None}
    store_calls(home, call("1", {}, usd="0.001"), call("2", without, usd="0.5"), call("3", without))
    assert by_class(home) == {
        "input": ("0.00025", 1000, 1),
        "output": ("0.00002", 10, 1),
        None: (None, 0, 3),
    }
    rows = cost_report(home, [], ["class"])["rows"]
    assert rows[0]["known_usd"] == "0.50073"
    assert sum(Decimal(row["known_usd"]) for row in rows) == Decimal("0.501")


@pytest.mark.parametrize(
    "price", [None, "{", "[]", '"x"', '{"input_per_mtok": 0.25}', '{"input_per_mtok": "x"}']
)
def test_without_a_usable_price_row_a_class_has_no_cost(tmp_path: Path, price: str | None) -> None:
    home = home_in(tmp_path)
    store_calls(home, call("1", {sc.COST_PRICE: price}, usd="0.00027"))
    assert by_class(home) == {"input": (None, 1000, 1), "output": (None, 10, 1)}
    assert cost_report(home, [], ["role"])["total_usd"] == "0.00027"


@pytest.mark.parametrize("status", ["free", "demo"])
def test_what_cost_nothing_has_zeros_in_every_class(tmp_path: Path, status: str) -> None:
    home = home_in(tmp_path)
    store_calls(home, call("1", {sc.COST_STATUS: status, sc.COST_PRICE: None}))
    report = cost_report(home, [], ["class"])
    assert (report["total_usd"], report["cost_status"]) == ("0", status)
    assert [(row["cost_usd"], row["cost_status"]) for row in report["rows"]] == [("0", status)] * 2


def test_an_unknown_cost_makes_its_group_unknown(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    known, unknown = {sc.REQUEST_MODEL: "known"}, {sc.REQUEST_MODEL: "unknown"}
    store_calls(home, call("1", known, usd="2"), call("2", unknown), call("3", unknown, usd="1"))
    report = cost_report(home, [], ["model"])
    assert (report["total_usd"], report["known_usd"], report["cost_status"]) == (None, "3", "partial")
    assert [(r["model"], r["cost_usd"], r["known_usd"], r["cost_status"]) for r in report["rows"]] == [
        ("known", "2", "2", "priced"),
        ("unknown", None, "1", "partial"),
    ]


def test_several_runs_running_and_stored(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home, calls=1)
    with recording(home, OTHER) as made:
        live = made.recorder.start("sub_call", "chat s", None, {sc.REQUEST_MODEL: "s"})
        report = cost_report(home, [], ["role"])
        assert (report["total_usd"], report["known_usd"], report["calls"]) == (None, "1.5", 3)
        live.end("ok", {sc.COST_USD: "0.25"})
        rows = {row["role"]: row["cost_usd"] for row in cost_report(home, [], ["role"])["rows"]}
        assert rows == {"root": "1", "sub": "0.75"}
        assert cost_report(home, [OTHER], [])["total_usd"] == "0.25"
        assert cost_report(home, [RUN, RUN], [])["total_usd"] == "1.5"
        both = cost_report(home, [RUN, OTHER], ["role"])
        assert both == cost_report(home, [], ["role"])
    assert cost_report(home, [], ["role"]) == both


def test_no_calls_cost_nothing(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    assert cost_report(home, [], ["role"])["rows"] == []
    write_spool(home, [header(), start("1", kind="run"), fin()])
    report = cost_report(home, [RUN], ["class", "model"])
    assert (report["total_usd"], report["cost_status"], report["calls"], report["rows"]) == (
        "0",
        "free",
        0,
        [],
    )


def test_sums_are_exact_where_floats_are_not(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    costs = ["0.1"] * 10 + ["999999999", "0.000000000000000001"]
    store_calls(home, *(call(str(n), {}, usd=usd) for n, usd in enumerate(costs)))
    assert cost_report(home, [], [])["total_usd"] == "1000000000.000000000000000001"


@pytest.mark.parametrize("by", [["price"], ["role", "x; DROP TABLE span"], [""]])
def test_unknown_keys_are_refused(tmp_path: Path, by: list[str]) -> None:
    with pytest.raises(InputError, match="is not one of role, model"):
        cost_report(home_in(tmp_path), [], by)


def test_many_chosen_runs_and_ids_of_none(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    ids = [record_run(home, f"{RUN[:-2]}{n:02x}", calls=1) for n in range(3)]
    nobody = [f"{OTHER}{n}" for n in range(60)]
    for some in ([], nobody):
        with spans_of_runs(home, [*ids[:2], *some], None) as spans:
            assert report_of(spans, [])["total_usd"] == "3"
    with spans_of_runs(home, nobody, None) as spans:
        assert report_of(spans, [])["calls"] == 0


def test_unknown_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run"):
        cost_report(home_in(tmp_path), ["nothing"], ["role"])


def test_the_spread_over_calls_is_by_nearest_rank(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    costs = [f"0.{cent:02}" for cent in range(1, 22)]  # 21 calls, in no order of cost
    store_calls(home, *(call(str(n), {}, usd=usd) for n, usd in enumerate(costs[::2] + costs[1::2])))
    (row,) = cost_report(home, [], ["role"])["rows"]
    assert (row["p50_usd"], row["p95_usd"], row["max_usd"]) == ("0.11", "0.2", "0.21")


def test_no_spread_where_a_cost_is_unknown(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    store_calls(home, call("1", {}, usd="1"), call("2", {}, usd="2"), call("3", {}))
    (report,) = cost_report(home, [], [])["rows"]
    assert (report["p50_usd"], report["p95_usd"], report["max_usd"]) == (None, None, None)


def test_a_store_in_use_leaves_the_spools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from traces import store

    home = home_in(tmp_path)
    record_run(home, calls=1)
    expected = cost_report(home, [], ["role", "class"])
    monkeypatch.setattr(store, "PATIENCE", 0.0)
    said: list[str] = []

    def busy(*_: Any) -> Any:
        raise store.StoreBusy("The store is in use.")

    monkeypatch.setattr(store, "reader", busy)
    assert cost_report(home, [], ["role", "class"], warn=said.append) == expected
    assert said == ["The store is in use. Runs are read from their spools instead."]


@pytest.mark.parametrize("by", [(), ("role", "model"), ("class",), ("cell", "class"), ("corpus", "day")])
def test_what_ended_attempts_of_a_call_in_flight_cost_is_known(tmp_path: Path, by: tuple[str, ...]) -> None:
    home = home_in(tmp_path)
    killed_in_a_retry(home)
    spooled = SpoolRun(home, RUN).poll()
    view = load_run(home, RUN)
    assert (spooled.summary, spooled.spans) == (view.summary, view.spans)
    lost = view.by_id["1"]
    assert (lost.cost_usd, lost.cost_status, lost.so_far_usd) == (None, "unknown", Decimal("0.00027"))
    run, below = view.summary, span_detail(view, view.by_id["0"])["below"]
    told = run.cost_usd, run.cost_status, money_json(run.known_usd), run.tokens
    tokens = {"input": 2000, "output": 20, "total": 2020}
    assert told == (None, "partial", "0.50027", tokens)
    assert (below["cost_usd"], below["known_usd"], below["tokens"]["total"]) == (None, "0.00027", 1010)
    report = cost_report(home, [RUN], by)
    assert (report["total_usd"], report["known_usd"], report["tokens"]) == (None, "0.50027", tokens)
    assert report["cost_status"] == "partial" and report["calls"] == 2
    assert sum(Decimal(row["known_usd"]) for row in report["rows"]) == Decimal("0.50027")
    unknown = [row for row in report["rows"] if row["cost_usd"] is None]
    assert unknown and all(row["p50_usd"] is None for row in unknown)


def test_a_running_call_has_what_its_ended_attempts_cost(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        asked = made.recorder.start("sub_call", "chat s", None, {sc.REQUEST_MODEL: "s"})
        attempt = made.recorder.start("attempt", sc.NAME_ATTEMPT, asked, {sc.REQUEST_MODEL: "s"})
        attempt.end("error", {sc.COST_USD: "0.25", sc.COST_STATUS: "priced"})
        report = cost_report(home, [RUN], ["role"])
        assert (report["total_usd"], report["known_usd"]) == (None, "0.25")
        asked.end("ok", {sc.COST_USD: "0.75", sc.COST_STATUS: "priced"})
        assert cost_report(home, [RUN], ["role"])["total_usd"] == "0.75"
        made.close("ok")
