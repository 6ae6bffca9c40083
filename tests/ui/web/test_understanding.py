"""What the Run page says about a run as a whole: its head, the overview, the findings."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.telemetry import as_json
from tests.support.pages import HOSTILE, badly_shown, open_row, problems, rows_of, shown, texts, use
from tests.support.recorded_runs import WIDE, recording, wide_run
from tests.support.run_pages import chosen, looked_at, run_page
from traces.home import Home
from traces.reading import load_run


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def view_of(run: str, view: str) -> AppTest:
    page = run_page(run)
    page.query_params["view"] = view
    return looked_at(page)


def ways(page: AppTest) -> list[str]:
    """The labels of the buttons that lead somewhere, without colour."""
    return [button.label.partition("[")[2].removesuffix("]") for button in page.button if "[" in button.label]


def go(page: AppTest, label: str) -> dict[str, str]:
    """The address after the first button of that label was pressed."""
    next(button for button in page.button if label in button.label).click()
    asked = looked_at(page).query_params
    return {name: value[0] if isinstance(value, list) else str(value) for name, value in asked.items()}


def hostile_run(home: Home) -> str:
    """A run in which every text tries to be more than text."""
    with recording(home) as made:
        recorder = made.recorder
        limits = as_json({"max_iterations": 3, "max_calls": 2})
        run = recorder.start("run", sc.NAME_RUN, None, {sc.ROOT_MODEL: HOSTILE, sc.LIMITS: limits})
        run.text(sc.QUESTION, HOSTILE)
        cell = recorder.start("cell", sc.NAME_CELL, run, {sc.CELL: 0, sc.PREVIEW: HOSTILE})
        for number in range(12):
            place = {sc.CELL: 0, sc.CALL_LINE: 1, sc.CALL_INDEX: number, sc.REQUEST_MODEL: HOSTILE}
            call = recorder.start("sub_call", HOSTILE, cell, place)
            call.text(sc.PROMPT, f"{HOSTILE} {number}")
            if number == 3:
                call.fail(HOSTILE, HOSTILE)
                continue
            call.text(sc.RESPONSE, "I cannot do it: HOSTILE <b>" if number == 5 else "yes")
            call.end("ok", {sc.USAGE_INPUT: 5, sc.USAGE_OUTPUT: 1})
        cell.fail(HOSTILE, HOSTILE)
        remarks = {sc.ANSWER_CONFIDENCE: "low", sc.ANSWER_NOTE: HOSTILE, sc.ANSWER_MARK: HOSTILE}
        run.text(sc.ANSWER, HOSTILE)
        run.end("ok", {**remarks, sc.STOP_REASON: HOSTILE, sc.LEDGER: as_json({HOSTILE: 1})})
        made.close("ok")
    return WIDE


# -- the head


def test_the_head_leads_to_what_went_wrong_with_counts(home: Home) -> None:
    page = run_page(wide_run(home, 1_000))
    assert {"5 failed", "5 empty", "10 suspects"} <= set(ways(page))
    page.query_params["view"] = "overview"
    page.query_params["role"] = "sub"
    address = go(looked_at(page), "5 failed")
    assert address == {"run": WIDE, "status": "error"}
    assert go(page, "10 suspects")["status"] == "suspect"


def test_a_run_in_which_nothing_went_wrong_has_no_such_counts(home: Home) -> None:
    page = run_page(wide_run(home, 30))
    assert not {word for label in ways(page) for word in label.split()} & {"failed", "empty", "suspects"}


def test_a_failed_run_says_its_reason_once(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        run.end("error", {sc.STOP_REASON: "error", sc.ERROR_MESSAGE: "the key was refused"})
        made.close("error")
    page = run_page(WIDE)
    assert problems(page) == ["The key was refused."]
    said = [caption.value for caption in page.caption]
    assert "There is no answer." in said and not any("The key was refused" in words for words in said)
    assert "broke off" not in shown(page)


def test_a_verdict_is_asked_for_once_a_run_is_over(home: Home) -> None:
    assert "Your verdict" in shown(run_page(wide_run(home, 30)))


# -- the overview


def test_one_screen_says_how_many_children_which_prompts_what_cost_most_and_what_hit_a_limit(
    home: Home,
) -> None:
    page = view_of(wide_run(home, 1_000), "overview")
    titles = [heading.value.lstrip("# ") for heading in page.markdown if heading.value.startswith("#####")]
    assert titles == ["How many children", "What prompts", "What hit a limit", "Which cost most"]
    assert "The run itself made 492 sub-calls and started no child run." in texts(page)
    assert rows_of(page, "fan-outs")[0] == {
        "Started by": "cell 0",
        "Sub-calls": "200",
        "Came out as": "196 ok, 2 empty, 2 error",
        "Cost": "at least $0.008316",
        "Time": "807 ms",
    }
    (prompts,) = rows_of(page, "prompts")
    assert prompts["Pattern, with the first call"] == (
        "Does document … mention a refund? Answer yes or no, then quote the passage."
    )
    dearest = rows_of(page, "dearest")
    assert [row["Call"] for row in dearest[:2]] == ["root call of iteration 0", "root call of iteration 1"]
    assert dearest[0]["Cost"] == "$0.0123"
    assert "No limit ended the run." in texts(page)


def test_a_limit_that_ended_a_run_is_shown_with_what_was_used(home: Home) -> None:
    ledger = {"calls": {"spent": 50, "limit": 50}, "usd": {"spent": "1.5", "limit": "1", "known": True}}
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        run.end("error", {sc.STOP_REASON: "budget", sc.LEDGER: as_json(ledger)})
        made.close("error")
    page = view_of(WIDE, "overview")
    bars = [bar.proto.text for bar in page.get("progress")]
    assert bars == ["sub-calls: 50 of 50 (reached)", r"dollars: \$1.5 of \$1 (over the limit)"]
    assert "The limit of sub-calls, tokens or cost was reached." in texts(page)


def test_a_row_of_the_overview_leads_to_its_span(home: Home) -> None:
    page = view_of(wide_run(home, 200), "overview")
    cell = next(span for span in load_run(home, WIDE).spans if span.kind == "cell")
    looked_at(open_row(page, "fan-outs", 0))
    assert chosen(page) == cell.span_id
    assert "view" not in page.query_params


# -- the findings


def test_findings_lead_to_their_spans_and_to_the_tree_narrowed_to_them(home: Home) -> None:
    page = view_of(wide_run(home, 2_000), "findings")
    assert "Sub-calls that ended in error, were cancelled or lost: 10 of 987." in texts(page)
    assert go(page, "all 10 in the tree")["status"] == "error"
    page = view_of(WIDE, "findings")
    spans = load_run(home, WIDE).spans
    failed = next(span for span in spans if (span.kind, span.status) == ("sub_call", "error"))
    assert go(page, "llm_query 17 in cell 0") == {"run": WIDE, "span": failed.span_id}
    page = view_of(WIDE, "findings")
    assert [badge.value for badge in page.markdown if "serious" in badge.value] == [":red-badge[serious]"]


def test_suspects_stand_below_with_their_evidence_and_lead_to_their_spans(home: Home) -> None:
    page = view_of(wide_run(home, 500), "findings")
    rows = rows_of(page, "suspects")
    assert [row["Suspicion"] for row in rows] == sorted((row["Suspicion"] for row in rows), reverse=True)
    assert rows[0]["Evidence"] == "The call failed: the server answered with status 500"
    looked_at(open_row(page, "suspects", 0))
    assert load_run(home, WIDE).by_id[chosen(page)].status == "error"


def test_where_nothing_was_found_that_is_said_not_to_be_a_proof(home: Home) -> None:
    page = view_of(wide_run(home, 30), "findings")
    assert any(text.startswith("Nothing was found. That is no proof") for text in texts(page))
    assert rows_of(page, "suspects") == []


@pytest.mark.parametrize("view", ["overview", "findings"])
def test_text_that_tries_to_be_more_than_text_is_only_text(home: Home, view: str) -> None:
    page = view_of(hostile_run(home), view)
    assert badly_shown(page, "HOSTILE") == []  # tables of ours make text of it: tests/ui/web/browser
    assert "HOSTILE" in "".join(texts(page))
    assert "\x1b" not in "".join(texts(page))
