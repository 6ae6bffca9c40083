"""Replays in the app: the page of one, the list that leaves them out until asked, what Spend says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.telemetry import as_json
from tests.support.pages import (
    HOSTILE,
    ask_page,
    badly_shown,
    rows_of,
    runs_page,
    shown,
    texts,
    use,
)
from tests.support.recorded_runs import recording
from tests.support.run_pages import facts, press, run_page
from traces.home import Home

RUN, REPLAY = "20270115T080000-00000001", "20270115T080000-0000aaaa"
PATCHES = ({"span_id": "1000000000000000", "text": "billing"},)


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def replay(
    home: Home, *, patches: Any = PATCHES, outcome: str | None = "fixed", text: str = "22", of: str = RUN
) -> None:
    """A replay as it is recorded; the texts may be anything."""
    facts = {sc.REPLAY_OF: of, sc.REPLAY_MODE: "strict", sc.ROOT_MODEL: "openai/big"}
    with recording(home, REPLAY) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, facts)
        run.text(sc.QUESTION, "How many?")
        run.text(sc.ANSWER, text)
        run.text(sc.REPLAY_TARGET, text)
        run.set({sc.REPLAY_MATCH: "number"})
        if patches is not None:
            run.text(sc.REPLAY_PATCHES, as_json(patches))
        call = made.recorder.start("sub_call", "chat x", run, {sc.REQUEST_MODEL: "openai/x"})
        call.end("ok", {sc.COST_USD: "0.25", sc.COST_STATUS: "priced"})
        call = made.recorder.start("sub_call", "chat x", run, {sc.REQUEST_MODEL: "openai/x"})
        call.end("ok", {sc.COST_USD: "0", sc.COST_STATUS: "free", sc.SERVED_FROM: "record"})
        run.end("ok", {sc.STOP_REASON: "final"})
        late: dict[str, str | int] = {sc.REPLAY_HITS: 7, sc.REPLAY_MISSES: 0, sc.REPLAY_LIVE_CALLS: 1}
        late |= {} if outcome is None else {sc.REPLAY_OUTCOME: outcome}
        late |= {sc.REPLAY_ASSUMED: as_json([f"It is assumed that {text}."])}
        made.recorder.event(run, sc.EV_REPLAY, late)


def sentence(page: AppTest) -> str:
    return next(text for text in texts(page) if text.startswith("This run plays"))


def test_the_page_of_a_replay_says_what_it_plays_and_what_came_of_it(
    home: Home, written: Callable[..., Any]
) -> None:
    written(RUN)
    replay(home)
    page = run_page(REPLAY)
    assert ":blue-badge[replay]" in [element.value for element in page.markdown]
    assert facts(page)["Sub-calls"] == "2 (1 served)"
    told = sentence(page)
    assert told.startswith(f"This run plays the run {RUN} again. Mode strict: it stops at the first prompt")
    assert "The answer is now the one that it should be. It should be “22”." in told
    assert "7 sub-calls answered without a model, 1 call to a model. It is assumed that 22." in told
    pairs = [link.proto.query_string for link in page.get("page_link") if "Compare the two" in link.label]
    assert pairs == [f"a={RUN}&b={REPLAY}"]
    there = press(page, "The run that it plays again")
    assert there.query_params["run"] in (RUN, [RUN]) and "42" in texts(there)
    assert not any(text.startswith("This run plays") for text in texts(there))


def test_what_was_replaced_is_shown_with_the_way_to_its_span(home: Home, written: Callable[..., Any]) -> None:
    written(RUN)
    replay(home)
    page = run_page(REPLAY)
    page.session_state["run-replay-patches"] = True
    page.run()
    assert "billing" in [element.value for element in page.code]
    there = press(page, "Replaced 1")
    assert there.query_params["span"] in ("1000000000000000", ["1000000000000000"])


def test_a_replay_that_says_little_is_shown_with_what_it_says(home: Home) -> None:
    replay(home, patches=None, outcome="splendid", of="gone")
    page = run_page(REPLAY)
    told = sentence(page)
    assert told.startswith("This run plays the run gone again. Mode strict") and "splendid" not in told
    assert "What was replaced" not in shown(page)


def test_hostile_texts_of_a_replay_are_text(home: Home) -> None:
    replay(home, patches=({"span_id": HOSTILE, "text": HOSTILE},), text=HOSTILE, of=HOSTILE, outcome=HOSTILE)
    page = run_page(REPLAY)
    page.session_state["run-replay-patches"] = True
    page.run()
    assert "HOSTILE" in sentence(page)
    assert set(badly_shown(page, "HOSTILE")) <= {"page_link"}  # in the address that it leads to
    assert not badly_shown(runs_page(replays="1"), "HOSTILE")


def test_the_list_shows_replays_when_it_is_asked_to(home: Home, written: Callable[..., Any]) -> None:
    written(RUN)
    page = runs_page()
    assert not [toggle for toggle in page.toggle if "Replays" in toggle.label]
    replay(home)
    page = runs_page()
    (switch,) = (toggle for toggle in page.toggle if "Replays" in toggle.label)
    assert switch.label == "Replays (1)" and not switch.value and len(rows_of(page, "runs-table")) == 1
    switch.set_value(True)
    page.run()
    assert [row["Tags"] for row in rows_of(page, "runs-table")] == ["replay", ""]
    assert page.query_params["replays"] in ("1", ["1"])
    assert len(rows_of(runs_page(replays="1"), "runs-table")) == 2
    page = runs_page(replays="perhaps")
    assert len(rows_of(page, "runs-table")) == 1
    assert any("'perhaps' of replays, which means nothing here" in text for text in texts(page))


def test_a_home_of_replays_alone_is_no_empty_one(home: Home) -> None:
    replay(home)
    page = runs_page()
    (switch,) = (toggle for toggle in page.toggle if "Replays" in toggle.label)
    switch.set_value(True)
    page.run()
    assert [row["Tags"] for row in rows_of(page, "runs-table")] == ["replay"]


def test_spend_counts_replays_and_says_so(home: Home, written: Callable[..., Any]) -> None:
    written(RUN)
    replay(home)
    page = ask_page().run().switch_page("pages/spend.py").run()
    assert not page.exception
    figures = {metric.label: metric.value for metric in page.metric}
    assert figures["Total"] == "$0.2601" and figures["A finished run (median)"] == "$0.0101"
    assert any("2 of 2 runs; 1 of them is a replay" in caption.value for caption in page.caption)
