"""The Spend page without a browser: figures, groupings, the dear calls, limits, other models, its address."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from tests.support.pages import (
    HOSTILE,
    ask_page,
    badly_shown,
    choose_rows,
    problems,
    rows_of,
    shown,
    sort_rows,
    texts,
    use,
)
from tests.support.recorded_runs import recording
from tests.support.replays import SUB, recorded
from tests.support.spend_runs import FIRST, LOCAL, SUB_MODEL, one_run, run_id, spend_runs
from tests.traces.records import record_run
from traces.diagnosis_log import open_diagnosis
from traces.home import Home
from traces.prices import set_price
from traces.reading import cost_report, list_runs
from traces.recording import open_recording
from traces.replay import Replayer
from traces.trial import Budget, Trial


@pytest.fixture(scope="module")
def spent_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Runs that cost something; tests only look at them."""
    home = Home.resolve(tmp_path_factory.mktemp("spend") / "home")
    spend_runs(home, text=HOSTILE)
    return home


@pytest.fixture
def home(spent_home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    return use(spent_home, monkeypatch)


def spend_page(**query: str | list[str]) -> AppTest:
    page = ask_page().run().switch_page("pages/spend.py")
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception, page.exception
    return page


def figures(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def dollars(text: str) -> Decimal:
    return Decimal(text.removeprefix("at least ").removeprefix("$").replace("$", ""))


def test_the_four_figures_are_those_of_the_record(home: Home) -> None:
    page = spend_page()
    report = cost_report(home, [], ["role"])
    by_role = {row["role"]: Decimal(row["known_usd"]) for row in report["rows"]}
    share = float(by_role["root"] / Decimal(report["known_usd"]))
    told = figures(page)
    assert dollars(told["Total, at least"]) == Decimal(report["known_usd"]).quantize(Decimal("0.000001"))
    assert told["Root / sub-calls"] == f"{share:.0%} / {1 - share:.0%}"
    priced = sorted(run.cost_usd for run in list_runs(home) if run.cost_usd is not None)
    assert dollars(told["A finished run (median)"]) == priced[2].quantize(Decimal("0.000001"))
    unknown = next(row for row in cost_report(home, [], ["model"])["rows"] if row["model"] == LOCAL)
    assert told["Calls of unknown cost"] == str(unknown["calls"])
    assert any(f"{LOCAL}: {unknown['calls']} calls, no price is known" in said for said in texts(page))
    assert "part=prices" in [link.proto.query_string for link in page.get("page_link")]


def test_rows_by_any_keys_add_up_and_can_be_sorted(home: Home) -> None:
    page = spend_page(by="day,class")
    rows = rows_of(page, "spend-groups")
    report = cost_report(home, [], ["day", "class"])
    assert len(rows) == len(report["rows"]) and sum(int(row["Calls"]) for row in rows) == sum(
        row["calls"] for row in report["rows"]
    )
    page = sort_rows(page, "spend-groups", "day")
    assert [row["day"] for row in rows_of(page, "spend-groups")] == sorted(row["day"] for row in rows)
    assert page.query_params["sort"] in ("day", ["day"])


@pytest.mark.parametrize("by", ["role", "model", "depth", "iteration", "cell", "class", "corpus", "day"])
def test_every_grouping_has_rows_a_chart_in_words_and_a_file(home: Home, by: str) -> None:
    page = spend_page(by=by)
    assert rows_of(page, "spend-groups") and "Dollars by " + by in shown(page)
    assert [button.label for button in page.get("download_button")] == ["CSV"]
    assert not badly_shown(page, "HOSTILE")


def test_the_dearest_sub_calls_lead_to_their_spans(home: Home) -> None:
    page = spend_page(view="calls")
    rows = rows_of(page, "spend-dearest")
    costs = [dollars(row["Cost"]) for row in rows]
    assert len(rows) == 10 and costs == sorted(costs, reverse=True)
    assert {row["Model"] for row in rows} == {SUB_MODEL}
    assert "run?run=" in shown(page) and "&span=" in shown(page)
    by_calls = {row["Calls"]: row for row in rows_of(page, "spend-tails")}
    assert by_calls["sub-calls"]["Most"] == rows[0]["Cost"]
    assert not badly_shown(page, "HOSTILE")


def test_limits_that_were_passed_come_first(home: Home) -> None:
    page = spend_page(view="limits")
    first = rows_of(page, "spend-limits")[0]
    assert (first["Limit of"], first["Limit"]) == ("dollars", "$0.75")
    assert first["State"].startswith("passed by $")
    assert not badly_shown(page, "HOSTILE")


def test_chosen_runs_alone(home: Home) -> None:
    page = spend_page(view="limits")
    page = choose_rows(page, "spend-runs", 0, 1)
    page.button(key="spend-only").click()
    page.run()
    assert sorted(page.query_params["run"]) == [run_id(3), run_id(4)]
    total = sum(run.cost_usd or 0 for run in list_runs(home) if run.run_id in (run_id(3), run_id(4)))
    assert dollars(figures(page)["Total"]) == Decimal(total).quantize(Decimal("0.000001"))
    page.button(key="spend-clear").click()
    page.run()
    assert "run" not in page.query_params


def test_a_corpus_and_days(home: Home) -> None:
    runs = list_runs(home)
    corpus = str(runs[0].corpus_id)
    page = spend_page(**{"corpus": corpus, "from": "2026-11-03", "to": "2026-11-05"})
    inside = [
        run for run in runs if run.corpus_id == corpus and "2026-11-03" <= run.started[:10] <= "2026-11-05"
    ]
    assert dollars(figures(page)["Total"]) == sum(run.known_usd for run in inside).quantize(
        Decimal("0.000001")
    )
    page.selectbox(key="spend-corpus").set_value("")
    page.run()
    assert "corpus" not in page.query_params and page.query_params["to"] in ("2026-11-05", ["2026-11-05"])


def test_what_other_models_would_have_cost(home: Home) -> None:
    page = spend_page(view="models")
    page.selectbox(key="spend-as-sub").set_value("openai/gpt-5")
    next(button for button in page.button if button.label == "Price again").click()
    page.run()
    assert page.query_params["sub"] in ("openai/gpt-5", ["openai/gpt-5"])
    told = figures(page)
    assert any(text.endswith(" in 2 rows where both are known") for text in texts(page))
    assert told["Difference"] == "unknown" and told["As recorded"].startswith("at least $")
    small = next(row for row in rows_of(page, "spend-as") if row["model"] == SUB_MODEL)
    assert dollars(small["Would be"]) == 5 * dollars(small["Recorded"])
    page = spend_page(view="models", sub="openai/nobody", by="role")
    assert "The price of openai/nobody is unknown: 105 calls." in texts(page)
    assert [link.proto.query_string for link in page.get("page_link")].count("part=prices") == 2
    assert not badly_shown(page, "HOSTILE")


def test_a_price_set_later_prices_what_was_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = use(Home.resolve(tmp_path / "home"), monkeypatch)
    one_run(home, run_id(0), "c", LOCAL, "What?", 1_796_000_000_000_000_000, calls=2)
    page = spend_page(view="models", sub=LOCAL, root=LOCAL)
    assert figures(page)["With these models"] == "unknown"
    set_price(home, LOCAL, {"input": Decimal(1), "output": Decimal(1)})
    page.run()
    assert figures(page)["With these models"].startswith("$")
    assert f"{LOCAL}: 3 calls, no usage was reported, or the price was set after they were made" in texts(
        page
    )


@pytest.mark.parametrize(
    "query",
    [
        {"run": "nobody"}, {"corpus": "nobody"}, {"from": "yesterday"}, {"to": "0001-01-01"}, {"by": "price"},
        {"from": "2026-11-05", "to": "2026-11-03"}, {"view": "x"}, {"demo": "yes"},
        {"by": ","}, {"sort": "day"}, {"sort": HOSTILE},
        {"view": "models", "sub": "no model"}, {"run": HOSTILE}, {"view": HOSTILE}, {"from": HOSTILE},
    ],
)  # fmt: skip
def test_what_an_address_cannot_mean_is_said_in_one_sentence(home: Home, query: dict[str, str]) -> None:
    page = spend_page(**query)
    assert len(problems(page)) == 1
    assert not badly_shown(page, "HOSTILE")


def demo_run(home: Home, number: int) -> None:
    with recording(home, run_id(number)) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEMO: True})
        call = made.recorder.start("sub_call", "chat demo/sub", run, {sc.REQUEST_MODEL: "demo/sub"})
        call.end("ok", {sc.COST_USD: "0", sc.COST_STATUS: "demo", sc.USAGE_INPUT: 9, sc.USAGE_OUTPUT: 1})
        run.end()
        made.close("ok")


def test_demo_runs_are_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = use(Home.resolve(tmp_path / "home"), monkeypatch)
    for number in range(2):
        demo_run(home, number)
    only_demo = "All of these runs are of the demo model. “Count demo runs” shows what they did, at no cost."
    page = spend_page()
    assert only_demo in texts(page) and not page.metric
    record_run(home)
    page.run()
    left_out = "2 runs of the demo model cost nothing and are left out of every figure."
    assert figures(page)["Total"] == "$2" and left_out in texts(page)
    page.toggle(key="spend-demo").set_value(True)
    page.run()
    assert figures(page)["Total"] == "$2" and left_out not in texts(page)
    assert "2 runs of the demo model, at no cost, in these figures." in texts(page)
    assert {row["model"] for row in rows_of(page, "spend-groups")} == {"r", "s", "demo/sub"}
    page = spend_page(run=run_id(1))
    assert figures(page)["Total"] == "$0", "whoever names a run means it"


def test_what_diagnoses_spent_beside_the_runs_is_said_and_is_in_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = use(Home.resolve(tmp_path / "home"), monkeypatch)
    for number in range(2):
        one_run(home, run_id(number), "c" * 8, SUB_MODEL, "What?", FIRST, calls=3)
    before = figures(spend_page())
    asked = Trial((), "recompute", "fixed", "42", "41", live_calls=2, cost_usd=Decimal("0.25"))
    free, kept = replace(asked, live_calls=0, cost_usd=Decimal(0)), replace(asked, run_id=run_id(5))
    with open_diagnosis(home, run_id(0), budget=Budget(9, 9), mode="recompute") as log:
        for trial in (asked, free, asked, kept):
            log.trial(trial)
    sentence = "Beside these runs, diagnoses made {}. That is in no figure here."
    page = spend_page()
    assert figures(page) == before
    assert sentence.format("4 calls to a model: $0.5") in " ".join(texts(page)).replace("$0.50", "$0.5")
    assert "diagnoses" in " ".join(texts(spend_page(run=run_id(0))))
    assert "diagnoses" not in " ".join(texts(spend_page(run=run_id(1)))), "of another run"
    with open_diagnosis(home, run_id(1), budget=Budget(9, 9), mode="recompute") as log:
        log.trial(replace(asked, cost_usd=None))
    assert sentence.format("2 calls to a model: unknown") in " ".join(texts(spend_page(run=run_id(1))))


def test_calls_of_replays_that_were_served_are_in_no_figure_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = use(Home.resolve(tmp_path / "home"), monkeypatch)
    set_price(home, SUB, {"input": Decimal(1000), "output": Decimal(2000)})
    code = "replies = llm_batch([f'item {n}' for n in range(6)])"
    view = recorded(home, code, "FINAL_VAR('replies')", sub=lambda _: "3", run_id=run_id(0))
    with (
        open_recording(home, run_id(1), {sc.REPLAY_OF: run_id(0)}) as made,
        Replayer(home, view) as replayer,
    ):
        replayer.trial(recorder=made.recorder, run_id=run_id(1))
        made.close("ok")
    said = "Not counted: 8 calls that no model was asked for: answered from a record"
    alone, both = spend_page(run=run_id(0)), spend_page()
    assert said in " ".join(texts(both)) and said not in " ".join(texts(alone))
    assert [row["Calls"] for row in rows_of(both, "spend-groups")] == ["2", "6"]
    assert spend_page(run=run_id(1)).metric[0].value == "$0"
    (text,) = (text for text in texts(both) if text.startswith("8 calls; "))


def test_a_home_without_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Home.resolve(tmp_path / "home"), monkeypatch)
    assert "There are no runs yet, so nothing was spent." in texts(spend_page())


def test_a_run_at_work_counts_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = use(Home.resolve(tmp_path / "home"), monkeypatch)
    with recording(home) as made:
        made.recorder.start("run", "run", None, {})
        page = spend_page()
        assert "1 at work, counted so far" in shown(page)
        made.recorder.start("sub_call", "chat s", None, {}).end(
            "ok", {sc.COST_USD: "0.5", sc.COST_STATUS: "priced"}
        )
        page.run()
        assert figures(page)["Total"] == "$0.5"
