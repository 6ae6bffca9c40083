"""The Compare page: aligned trees, what is listed of them, and both sides of the chosen row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2.bidi_component.constants import EVENT_DELIM
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX
from streamlit.testing.v1 import AppTest

from tests.support.pages import (
    HOSTILE,
    act_in_row,
    ask_page,
    badly_shown,
    elements,
    problems,
    rows_of,
    shown,
    texts,
    use,
)
from tests.traces.diff_runs import Call, Cell, Child, run_of
from tests.traces.records import home_in
from traces.view import RunView

A, B = "20260102T030405-0000abca", "20260102T030405-0000abcb"
ASKING = "replies = [llm_query(p) for p in prompts]"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home_in(tmp_path), monkeypatch)


def pair(folder: Path, bad: Sequence[Cell], good: Sequence[Cell]) -> tuple[RunView, RunView]:
    """Two runs with other answers; spans of both may have the same ids."""
    return run_of(folder, "a", bad, answer="41"), run_of(folder, "b", good, answer="42")


def summed(folder: Path, wrong: Sequence[int] = (3, 11), calls: int = 20) -> tuple[RunView, RunView]:
    """Twenty calls, some of them answered wrongly in A, and one that adds up what they said."""
    yes = [Call(f"Text {n}", "yes") for n in range(calls)]
    no = [Call(f"Text {n}", "no" if n in wrong else "yes") for n in range(calls)]
    return pair(
        folder,
        [Cell(ASKING, no), Cell("sum", [Call(f"Sum: {calls - len(wrong)} yes", "18")])],
        [Cell(ASKING, yes), Cell("sum", [Call(f"Sum: {calls} yes", "20")])],
    )


def compare(**query: str) -> AppTest:
    page = ask_page().switch_page("pages/compare.py")
    for name, value in {"a": A, "b": B, **query}.items():
        page.query_params[name] = value
    return looked_at(page)


def looked_at(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception, page.exception
    return page


def listed(page: AppTest) -> list[dict[str, Any]]:
    """The lines of the list."""
    protos = [getattr(element, "proto", None) for element in elements(page)]
    found = [
        json.loads(one.bytes) for one in protos if getattr(one, "component_name", "") == "rlmscope.tree_piece"
    ]
    rows = [piece["rows"] for piece in found]
    return [
        {name: values[at] for name, values in columns.items()}
        for columns in rows
        for at in range(len(columns["key"]))
    ]


def told(page: AppTest) -> Any:
    """The list as its script in the browser is given it: its proto."""
    return next(
        element.proto
        for element in elements(page)
        if getattr(getattr(element, "proto", None), "component_name", "") == "rlmscope.aligned"
    )


def choose(page: AppTest, key: str) -> AppTest:
    """Click a line of the list."""
    states = page._tree.get_widget_states()
    state = states.widgets.add()
    state.id = f"{STREAMLIT_INTERNAL_KEY_PREFIX}_{told(page).id}{EVENT_DELIM}events"
    state.json_trigger_value = json.dumps([{"event": "selected", "value": key}])
    page._run(states)
    assert not page.exception, page.exception
    return page


def words(page: AppTest) -> list[tuple[str, str]]:
    """What the lines are called and how they differ; of gaps what they count."""
    return [(line["label"].strip(), line["word"]) for line in listed(page)]


def press(page: AppTest, label: str) -> AppTest:
    next(button for button in page.button if button.label == label).click()
    return looked_at(page)


def tables(page: AppTest) -> list[str]:
    """The labels of texts that stand side by side."""
    protos = (getattr(element, "proto", None) for element in elements(page))
    return [
        json.loads(one.json)["label"]
        for one in protos
        if getattr(one, "component_name", "") == "rlmscope.diff"
    ]


def heads(page: AppTest) -> list[list[str]]:
    """What stands above the sides of texts."""
    protos = (getattr(element, "proto", None) for element in elements(page))
    return [
        json.loads(one.json)["names"]
        for one in protos
        if getattr(one, "component_name", "") == "rlmscope.diff"
    ]


def row_in_address(page: AppTest) -> str:
    row = page.query_params["row"]
    return row[0] if isinstance(row, list) else str(row)


def test_only_differences_are_listed_with_what_leads_to_them_and_counts_of_the_rest(tmp_path: Path) -> None:
    summed(tmp_path)
    page = compare()
    assert words(page) == [
        ("run", "other answer"),
        ("iteration 0", ""), ("1 row the same", ""), ("cell 0", ""), ("3 rows the same", ""),
        ("llm_query 3", "other reply"), ("7 rows the same", ""), ("llm_query 11", "other reply"),
        ("8 rows the same", ""),
        ("iteration 1", ""), ("1 row the same", ""), ("cell 1", ""), ("llm_query 0", "other prompt"),
    ]  # fmt: skip
    shown_now = shown(page)
    assert ":red-badge[2 sub-calls replied differently]" in shown_now
    assert ":orange-badge[1 prompt changed after that]" in shown_now
    assert ":green-badge[18 sub-calls the same]" in shown_now
    assert "4 rows; 20 more not listed" in [caption.value for caption in page.caption]
    (first, _) = [line for line in listed(page) if line["tone"] == "bad"]
    assert (first["a"], first["b"]) == ("no", "yes")


def test_rows_that_are_the_same_are_listed_when_asked_for(tmp_path: Path) -> None:
    summed(tmp_path)
    page = compare()
    page.toggle(key="compare-all").set_value(False)
    looked_at(page)
    assert len(listed(page)) == 28 and page.query_params["all"] in ("1", ["1"])
    assert ("llm_query 4", "same") in words(page)
    page.toggle(key="compare-all").set_value(True)
    looked_at(page)
    assert "all" not in page.query_params and len(listed(page)) == 13


def test_one_kind_can_be_listed(tmp_path: Path) -> None:
    summed(tmp_path)
    page = compare(kind="sub_call", all="1")
    own = [line for line in listed(page) if line["look"] not in ("gap", "parent")]
    assert len(own) == 21 and {line["label"].split()[0] for line in own} == {"llm_query"}
    assert not problems(page)
    assert "Response of A and B" in tables(page)
    page.segmented_control(key="compare-kind").set_value("cell")
    assert page.query_params["kind"] in ("sub_call", ["sub_call"])
    looked_at(page)
    assert page.query_params["kind"] in ("cell", ["cell"])
    assert "All texts of both sides are the same." in texts(page)


def test_the_first_row_is_where_the_runs_part_and_keys_lead_on(tmp_path: Path) -> None:
    summed(tmp_path)
    page = compare()
    assert "Difference 2 of 4" in [caption.value for caption in page.caption]
    assert (
        "The prompt is the same and the reply is not: here the runs part. Paired: found by its prompt."
        in texts(page)
    )
    assert "Response of A and B" in tables(page) and "Prompt of A and B" not in tables(page)
    assert {button.proto.shortcut for button in page.button} >= {"n", "p"}
    first = json.loads(told(page).json)["key"]
    page = press(page, "Next difference")
    assert "Difference 3 of 4" in [caption.value for caption in page.caption]
    moved = json.loads(told(page).json)
    assert moved["key"] == row_in_address(page) != first
    page = press(press(page, "Next difference"), "Previous difference")
    assert row_in_address(page) == moved["key"]


def test_a_row_of_the_list_opens_both_sides(tmp_path: Path) -> None:
    a, _ = summed(tmp_path)
    page = compare()
    changed = next(line for line in listed(page) if line["word"] == "other prompt")
    page = choose(page, changed["key"])
    assert row_in_address(page) == changed["key"]
    assert tables(page)[1:] == ["Response of A and B", "Prompt of A and B"]
    runs = {
        link.proto.query_string.split("&")[0]
        for link in page.get("page_link")
        if "Open in" in link.proto.label
    }
    assert runs == {f"run={A}", f"run={B}"}
    # the same address opens the same row
    assert tables(compare(row=changed["key"])) == tables(page)


def test_only_one_side_is_shown_of_what_only_one_run_has(tmp_path: Path) -> None:
    pair(tmp_path, [Cell("x", [Call("p", "A")])], [Cell("x", [Call("p", "A"), Call("Another", "only here")])])
    page = compare()
    (added,) = [line for line in listed(page) if line["word"] == "only in B"]
    assert (added["a"], added["b"]) == (None, "only here")
    page = choose(page, added["key"])
    assert "Only run B has this." in texts(page)
    assert "only here" in [code.value for code in page.code]
    assert [link.proto.label for link in page.get("page_link") if "Open in" in link.proto.label] == [
        "Open in B"
    ]


def test_runs_with_the_same_trees_say_so_and_list_everything(tmp_path: Path) -> None:
    cells = [Cell("x", [Call("p", "A"), Child("q", "A", [Cell("y", [Call("r", "B")])])])]
    for name in "ab":
        run_of(tmp_path, name, cells)
    page = compare()
    assert ":green-badge[No difference]" in shown(page)
    assert [word for _, word in words(page)] == ["same"] * len(words(page)) and len(words(page)) > 8
    assert "Find the minimal cause" not in [button.label for button in page.button]


def test_other_code_is_said_and_shown_with_calls_that_read_the_same(tmp_path: Path) -> None:
    pair(
        tmp_path,
        [Cell("whole()", [Call("Read all of this: alpha", "A", ranges=[[0, 0, 100]])])],
        [Cell("halves = slice(2)", [Call("Only one half, beta", "B", ranges=[[0, 0, 60]])])],
    )
    page = compare()
    assert "The root wrote other code in iteration 0, cell 0, though it had been shown the same." in texts(
        page
    )
    labels = [button.label for button in page.button]
    assert "Make a twin of A" in labels
    page = press(page, "Show the code that differs first")
    assert "Code of A and B" in tables(page) or "whole()" in [code.value for code in page.code]
    page.session_state["compare-hints"] = True
    looked_at(page)
    (hint,) = rows_of(page, "compare-hint-rows")
    assert hint["Bytes of both"] == "60"
    page = act_in_row(page, "compare-hint-rows", 0, "Compare")
    assert ":blue-badge[same passages]" in shown(page)
    assert tables(page)[1:] == ["Response of A and B", "Prompt of A and B"]
    page = press(page, "Previous difference")
    assert "with" not in page.query_params and ":blue-badge[same passages]" not in shown(page)


def test_an_address_that_asks_for_what_is_not_there_is_said(tmp_path: Path) -> None:
    summed(tmp_path)
    page = compare(row="nothing", kind="nonsense", all="maybe")
    assert problems(page) == [
        "There are no rows of the kind “nonsense”; all are listed.",
        "“all” is 0 or 1, not “maybe”; the differences are listed.",
        "Neither run has a span “nothing”.",
    ]
    assert len(listed(page)) == 13
    page = compare(kind="batch", row=listed(page)[0]["key"], **{"with": "nobody"})
    assert problems(page) == ["“nobody” read nothing that this row read too."]
    assert "No row fits." in texts(page)
    assert "The row that is shown below is not in the list." in texts(page)


def test_differences_far_into_a_text_are_what_the_list_shows(tmp_path: Path) -> None:
    common = "All of this is the same in both. " * 20
    pair(tmp_path, [Cell("x", [Call("p", common + "seven")])], [Cell("x", [Call("p", common + "eight")])])
    (line,) = [line for line in listed(compare()) if line["tone"] == "bad"]
    assert line["a"].startswith("…") and line["a"].endswith("seven") and line["b"].endswith("eight")


def test_a_failed_side_says_what_went_wrong(tmp_path: Path) -> None:
    pair(tmp_path, [Cell("x", [Call("p", None)])], [Cell("x", [Call("p", "yes")])])
    page = compare()
    assert "server: no message is recorded" in texts(page)
    (line,) = [line for line in listed(page) if line["tone"] == "bad"]
    assert (line["word"], line["b"]) == ("other reply", "yes")
    assert heads(page)[1:] == [["A has none", "B"]]


def test_hostile_texts_are_plain_text_in_list_and_row(tmp_path: Path) -> None:
    cells = [
        [
            Cell(
                f"# {name} {HOSTILE}",
                [Call(f"{HOSTILE} p", f"{name} {HOSTILE}"), Call(f"{name} {HOSTILE}", HOSTILE)],
            )
        ]
        for name in ("one", "two")
    ]
    pair(tmp_path, *cells)
    page = compare()
    for line in [line for line in listed(page) if line["word"]]:
        page = choose(page, line["key"])
        assert badly_shown(page, "HOSTILE") == []
        drawn = json.dumps(listed(page), ensure_ascii=False)
        assert "HOSTILE" in drawn and not any(mark in drawn + shown(page) for mark in "\x1b\u202e")


def test_a_click_in_runs_of_thousands_of_rows_works_nothing_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed(tmp_path, wrong=[5], calls=2_000)
    page = compare(all="1")
    assert len(listed(page)) > 2_000
    import traces.diff

    monkeypatch.setattr(traces.diff, "diff", None)
    monkeypatch.setattr("ui.web.compare_trees.lines_of", None)
    page = press(page, "Next difference")
    assert len(listed(page)) > 2_000
