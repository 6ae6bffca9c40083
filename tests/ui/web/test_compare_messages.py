"""Two root calls on the Compare page: their conversations, message by message."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pages import ask_page, shown, texts, use
from tests.support.replays import recorded, span_of
from traces.home import Home
from traces.reading import load_run, span_detail
from ui.web.compare_messages import Message, messages_of, paired

A, B = "20260101T000000-0000aaaa", "20260101T000000-0000bbbb"
CODES = ("print(llm_query('which?'))", "print('later')", "FINAL('done')")


@pytest.fixture
def _two_runs(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of the same code whose first cell printed something else."""
    use(home, monkeypatch)
    for run_id, reply in ((A, "red"), (B, "blue")):
        recorded(home, *CODES, sub=lambda _, reply=reply: reply, run_id=run_id)  # type: ignore[misc]


@pytest.mark.usefixtures("_two_runs")
def test_only_the_messages_that_differ_are_shown_and_the_new_ones_of_the_turn_open(home: Home) -> None:
    views = load_run(home, A), load_run(home, B)
    spans = [view.by_id[span_of(view, "root_call", 2)] for view in views]
    found = [messages_of(span_detail(view, span), span) for view, span in zip(views, spans, strict=True)]
    pairs = list(paired(found[0], found[1]))
    differing = [(one.number, one.new) for one, other in pairs if one and other and one.text != other.text]
    assert differing == [(4, False)], "what the first cell printed was new in the turn before"
    page = compare(spans[0].span_id)
    assert "Message 4 (user), not new in this turn" in shown(page)
    assert f"{len(pairs) - 1} messages, the same in both" in shown(page)
    turn = views[0].by_id[span_of(views[0], "root_call", 1)]
    page = compare(turn.span_id)
    assert "Message 4 (user)" in [one.value for one in page.caption] and "red" in shown(page)
    assert not any("All texts of both sides are the same" in text for text in texts(page))


def compare(row: str) -> AppTest:
    page = ask_page().switch_page("pages/compare.py")
    for name, value in {"a": A, "b": B, "row": row}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception, page.exception
    return page


def test_messages_that_one_side_lacks_stand_alone() -> None:
    first, second, other = (Message(n, "user", text, True) for n, text in ((1, "a"), (2, "b"), (2, "c")))
    assert list(paired([first, second], [first])) == [(first, first), (second, None)]
    assert list(paired([first, second], [first, other])) == [(first, first), (second, other)]
