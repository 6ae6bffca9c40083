"""The Run page: what it says about a run, runs that are not there or go on, text that nobody vouches for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.model_calls import NOTHING_BILLED
from rlm_core.telemetry import as_json
from tests.support.pages import HOSTILE, badly_shown, problems, shown, texts, use
from tests.support.recorded_runs import WIDE, recording, sub_call, wide_run
from tests.support.run_pages import facts, looked_at, named, open_tab, press, run_page, tabs
from traces import store
from traces.home import Home
from traces.reading import RunView, load_run
from traces.upkeep import delete_run
from ui.control import cancel_file
from ui.web import launch
from ui.web.run_words import where

RUN = "20270115T080000-00000001"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


# -- the head of the page


def test_the_head_says_what_came_out_and_what_it_took(home: Home) -> None:
    page = run_page(wide_run(home, 200))
    assert page.markdown[0].value == ":green-badge[ok]"
    assert {"Which documents mention a refund?", "Seventeen documents."} <= set(texts(page))
    assert "Answer · The root model gave its answer." in [caption.value for caption in page.caption]
    head = facts(page)
    assert (head["Root model"], head["Sub-model"], head["Sandbox"]) == (
        "test/root",
        "test/sub",
        "none (code is not locked in)",
    )
    assert (head["Iterations"], head["Sub-calls"]) == ("1", "97 (1 failed)")
    assert head["Tokens"] == "12,420 in, 924 out"
    assert head["Cost"] == "at least $0.016332 (root $0.0123, sub at least $0.004032)"
    assert head["Started"] == "2027-01-15 08:00:00 UTC"


def test_a_forced_answer_with_its_remarks(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEMO: True})
        run.text(sc.ANSWER, "perhaps")
        run.end(
            "ok",
            {
                sc.FORCED: True,
                sc.STOP_REASON: "timeout",
                sc.ANSWER_CONFIDENCE: "low",
                sc.ANSWER_NOTE: "hurried",
            },
        )
    page = run_page(WIDE)
    badges = [element.value for element in page.markdown]
    assert badges[:3] == [":green-badge[ok]", ":orange-badge[forced answer]", ":gray-badge[demo model]"]
    (caption,) = (c.value for c in page.caption if "time limit" in c.value)
    assert caption.startswith("Answer · The time limit was reached. No language model was involved")
    assert "confidence low: hurried" in texts(page)


def test_a_run_without_an_answer_says_why_and_what_it_had(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        run.text(sc.BEST_PARTIAL, "three so far")
        run.end("error", {sc.STOP_REASON: "error", sc.ERROR_MESSAGE: "the key was refused"})
        made.close("error")
    page = run_page(WIDE)
    assert "three so far" in texts(page)
    assert problems(page)[0] == "The key was refused."
    assert facts(page)["Cost"] == "$0 (free)"


def test_a_long_answer_leaves_the_tree_in_sight(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        run.text(sc.ANSWER, "word " * 200_000)
        run.end()
    page = run_page(WIDE)
    assert max(len(text) for text in texts(page)) < 700
    assert [box.label for box in page.expander] == ["All 1,000,000 characters"]


# -- the tree and the table


def of_the_tree(page: AppTest) -> list[bytes]:
    """What is sent for the tree: itself, and the pieces of its rows."""
    sent = page.get("bidi_component")
    return [element.proto.SerializeToString() for element in sent if element.key.startswith("tree-")]


def test_the_table_shows_the_rows_of_the_tree(home: Home) -> None:
    page = run_page(wide_run(home, 60))
    assert len(of_the_tree(page)) == 2
    page.query_params["pane"] = "table"
    looked_at(page)
    assert len(of_the_tree(page)) == 0
    assert page.dataframe[0].value["span"].str.strip().tolist()[:3] == [
        "run",
        "iteration 0 Decompose",
        "root call",
    ]


def test_a_choice_sends_no_rows_again(home: Home) -> None:
    view = load_run(home, wide_run(home, 200))
    page = run_page(WIDE)
    before = of_the_tree(page)
    cell = named(view, "cell").span_id
    page.session_state[f"tree-{WIDE}-known"].chosen = cell  # as after a click in the tree
    page.query_params["span"] = cell
    after = of_the_tree(looked_at(page))
    assert "cell 0" in texts(page)
    assert before and after == before


def test_last_is_the_newest_run_and_becomes_its_id(home: Home) -> None:
    wide_run(home, 30)
    page = run_page("last")
    assert page.query_params["run"] in (WIDE, [WIDE])
    assert "Which documents mention a refund?" in texts(page)


# -- runs and spans that are not there, or not well


def test_no_run_an_unknown_one_and_an_ambiguous_one(home: Home) -> None:
    assert problems(run_page("")) == ["No run was chosen."]
    assert problems(run_page("nosuch")) == ["There is no run whose id begins with 'nosuch'."]
    wide_run(home, 20)
    wide_run(home, 20, RUN)
    (sentence,) = problems(run_page("2027"))
    assert sentence.startswith("'2027' fits several runs: ")
    page = run_page("nosuch")
    assert page.get("page_link")[0].proto.label == "All runs"


def test_an_unknown_span_is_said_and_the_run_is_shown(home: Home) -> None:
    page = run_page(wide_run(home, 60), "0123456789abcdef" * 2)
    assert problems(page) == [f"There is no span whose id begins with '{'0123456789abcdef' * 2}'."]
    assert len(of_the_tree(page)) == 2


def test_a_run_without_spans(home: Home) -> None:
    with recording(home):
        pass
    assert "This run recorded no spans." in texts(run_page(WIDE))


def test_a_run_that_is_deleted_meanwhile(home: Home) -> None:
    page = run_page(wide_run(home, 60))
    delete_run(home, WIDE)
    looked_at(page)
    assert problems(page) == [f"The run {WIDE} has been deleted."]
    assert problems(looked_at(page)) == [f"There is no run whose id begins with '{WIDE}'."]


def test_a_store_in_use_is_said_and_the_run_is_read_from_its_spool(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide_run(home, 60)

    def busy(*_: Any, **__: Any) -> Any:
        raise store.StoreBusy("The store is in use by another program.")

    monkeypatch.setattr(store, "reader", busy)
    page = run_page(WIDE)
    assert "Seventeen documents." in texts(page)
    assert [text for text in texts(page) if "in use" in text]


def test_a_store_that_becomes_busy_is_a_sentence_and_can_be_tried_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = run_page(wide_run(home, 60))

    def busy(*_: Any, **__: Any) -> Any:
        raise store.StoreBusy("The store is in use by another program.")

    monkeypatch.setattr("ui.web.run_record.open_record", busy)
    assert problems(looked_at(page)) == ["The store is in use by another program."]
    monkeypatch.undo()
    use(home, monkeypatch)
    assert "Seventeen documents." in texts(press(page, "Try again"))


def test_a_record_with_problems_says_how_many(home: Home) -> None:
    path = home.spool_file(wide_run(home, 60))
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:4], b"{broken", *lines[5:9], *lines[10:]]))
    missing = load_run(home, WIDE).summary.problems
    assert missing >= 2
    assert f"The record is incomplete: {missing} records missing or unreadable." in texts(run_page(WIDE))


# -- a run that goes on


def test_a_live_run_is_polled_and_ends_as_a_stored_one(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        run.text(sc.QUESTION, "How long?")
        first = sub_call(made.recorder, run, 0, {sc.CALL_INDEX: 0})
        page = run_page(WIDE, first.span_id)
        assert page.markdown[0].value == ":blue-badge[running]"
        assert facts(page)["Sub-calls"] == "1"
        sub_call(made.recorder, run, 1, {sc.CALL_INDEX: 1})
        assert facts(looked_at(page))["Sub-calls"] == "2"
        assert "llm_query 0" in texts(page)
        run.text(sc.ANSWER, "not long")
        run.end("ok", {sc.STOP_REASON: "final"})
    looked_at(page)
    assert page.markdown[0].value == ":green-badge[ok]"
    assert {"not long", "llm_query 0"} <= set(texts(page))


def test_a_run_at_work_can_be_stopped_from_its_page(home: Home) -> None:
    with recording(home) as made:
        made.recorder.start("run", sc.NAME_RUN, None, {})
        page = run_page(WIDE)
        page.get_by_key("live-cancel").click().run()
        assert cancel_file(home, WIDE).exists()
        assert "Cancelling: calls that are on their way are given up." in texts(page)
    assert "live-cancel" not in [button.key for button in run_page(WIDE).button]


def test_a_live_run_that_has_recorded_nothing_yet(home: Home) -> None:
    with recording(home):
        assert "Nothing has been recorded yet." in texts(run_page(WIDE))


def test_a_run_that_is_being_started_and_one_that_never_began(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = launch.Launch("starting")
    monkeypatch.setattr(launch, "launch_state", lambda *_: state)
    page = run_page(RUN)
    assert "The process of this run is starting; nothing has been recorded yet." in texts(page)
    state = launch.Launch("failed", f"the model id is wrong: {HOSTILE}")
    (sentence,) = problems(looked_at(page))
    assert sentence.startswith("The model id is wrong: ![HOSTILE]")
    assert badly_shown(page, "HOSTILE") == []


# -- text that nobody vouches for


def hostile_run(home: Home) -> RunView:
    """A run in which every text is hostile."""
    bad: dict[str, Any] = {sc.REQUEST_MODEL: HOSTILE, sc.PHASE: HOSTILE, sc.PREVIEW: HOSTILE}
    with recording(home) as made:
        recorder = made.recorder
        top = {sc.ROOT_MODEL: HOSTILE, sc.SUB_MODEL: HOSTILE, sc.SANDBOX: HOSTILE, sc.STOP_REASON: HOSTILE}
        run = recorder.start("run", HOSTILE, None, {**top, sc.LIMITS: as_json({HOSTILE: HOSTILE})})
        for prefix in (sc.QUESTION, sc.ANSWER):
            run.text(prefix, HOSTILE)
        run.text(sc.CORPUS, json.dumps({"documents": [{"name": HOSTILE}]}))
        iteration = recorder.start("iteration", HOSTILE, run, {**bad, sc.ITERATION: 0})
        root = recorder.start("root_call", HOSTILE, iteration, bad)
        root.set({sc.MESSAGES_PRIOR: 0, sc.MESSAGES_ADDED: as_json([[HOSTILE, recorder.payload(HOSTILE)]])})
        root.text(sc.RESPONSE, HOSTILE)
        root.text(sc.REASONING, HOSTILE * 500)
        root.end("ok", {sc.RESPONSE_MODEL: HOSTILE + "2", sc.USAGE_INPUT: 1})
        cell = recorder.start("cell", HOSTILE, iteration, {**bad, sc.CELL: 0})
        for prefix in (sc.CODE, sc.STDOUT, sc.EXCEPTION):
            cell.text(prefix, HOSTILE)
        cell.text(sc.STDOUT_SHOWN, HOSTILE + "…")
        cell.text(sc.VARIABLES, as_json([{"name": HOSTILE, "type": HOSTILE, "preview": HOSTILE}]))
        cell.event(sc.EV_NOTICE, {"text": HOSTILE})
        call = recorder.start("sub_call", HOSTILE, cell, bad)
        call.text(sc.PROMPT, HOSTILE)
        attempt = recorder.start("attempt", HOSTILE, call, {sc.DEMO_FAULT: HOSTILE})
        attempt.fail(HOSTILE, HOSTILE)
        call.set({sc.SOURCE_RANGES: as_json({"how": HOSTILE, "ranges": [[0, 0, 1], HOSTILE]})})
        call.fail(HOSTILE, HOSTILE)
        recorder.start("tool", HOSTILE, call, {}).end()
        cell.end(
            "error", {sc.ERROR_TYPE: HOSTILE, sc.FINDINGS: as_json([{"rule": HOSTILE, "message": HOSTILE}])}
        )
        remarks = {sc.ANSWER_NOTE: HOSTILE, sc.ANSWER_CONFIDENCE: HOSTILE, sc.ANSWER_MARK: HOSTILE}
        run.end("error", {**remarks, sc.ERROR_MESSAGE: HOSTILE})
    return load_run(home, WIDE)


def test_hostile_text_stands_only_in_elements_that_show_it_as_it_is(home: Home) -> None:
    for span in hostile_run(home).spans:
        page = run_page(WIDE, span.span_id)
        for tab in tabs(page):
            open_tab(page, tab)
            # the tree's own view makes text nodes of all it is given
            assert set(badly_shown(page, "HOSTILE")) <= {"bidi_component"}, (span.kind, tab)
            assert "\x1b" not in shown(page) and "\u202e" not in shown(page)


def test_hostile_addresses_are_sentences(home: Home) -> None:
    wide_run(home, 20)
    for page in (run_page(HOSTILE), run_page(WIDE, HOSTILE)):
        assert len(problems(page)) == 1
        assert badly_shown(page, "HOSTILE") == []


def test_a_text_of_five_million_characters_is_shown_in_part(home: Home) -> None:
    with recording(home) as made:
        call = made.recorder.start("sub_call", "chat s", None, {})
        call.text(sc.RESPONSE, "word " * 1_000_000)
        call.end()
    page = run_page(WIDE)
    assert len(page.code[-1].value) == 20_000
    assert "Show all 5,000,000 characters" in [toggle.label for toggle in page.toggle]


def test_while_a_run_works_refused_calls_are_not_among_the_failed(home: Home) -> None:
    with recording(home) as made:
        top = made.recorder.start("run", "run", None, {})
        made.recorder.start("sub_call", "chat s", top, NOTHING_BILLED).fail("budget", "none is left")
        made.recorder.start("sub_call", "chat s", top, {}).fail("server", "500")
        now = where(load_run(home, WIDE))
    assert (now.done, now.running, now.failed) == (0, 0, 1)


def test_the_overview_says_the_time_of_the_head(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        run.end("ok", {sc.LEDGER: as_json({"seconds": {"spent": 0.5, "limit": None, "known": True}})})
        made.close("ok")
    page = run_page(WIDE)
    time = facts(page)["Time"]
    page.query_params["view"] = "overview"
    said = [one.value for one in looked_at(page).caption if one.value.startswith("Without a limit")]
    assert time != "500 ms" and said and time in said[0]


def test_refused_calls_have_a_chip_and_a_way_of_their_own(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        made.recorder.start("sub_call", "chat s", run, NOTHING_BILLED).fail("budget", "none is left")
        run.end("ok", {})
        made.close("ok")
    labels = [button.label for button in run_page(WIDE).button]
    assert ":orange-badge[1 refused]" in labels and "Next refused sub-call (1)" in labels
    assert not any("failed" in label for label in labels)
