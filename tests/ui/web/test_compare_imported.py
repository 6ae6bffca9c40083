"""The Compare page with a run that rlms made beside the same question asked here."""

from __future__ import annotations

import pytest

from tests.support.pages import problems, rows_of, shown, texts, use
from tests.support.rlms_pair import pair
from tests.ui.web.test_compare_page import compare_page
from traces.home import Home


@pytest.fixture
def ids(home: Home, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found = pair(home)
    use(home, monkeypatch)
    return found


def test_a_run_of_rlms_and_one_of_this_engine_align(ids: list[str]) -> None:
    """The page opens at the one call whose reply differs; what the log does not say is unknown, not other."""
    theirs, _, ours = ids
    page = compare_page(a=theirs, b=ours)
    said = texts(page)
    assert problems(page) == []
    assert any(text.startswith("The answers are the same") for text in said)
    assert ":gray-badge[Unknown corpus]" in shown(page) and "Other question" not in shown(page)
    assert any("corpus is unknown" in text and "no attempts of calls" in text for text in said)
    assert (
        "The prompt is the same and the reply is not: here the runs part. Paired: found by its prompt."
        in said
    )
    figures = {row["What"]: (row["A"], row["B"]) for row in rows_of(page, "compare-figures")}
    assert figures["Sub-calls"] == ("5", "6") and figures["Child runs"] == ("1", "1")
    assert figures["Tokens in"][0] == "≥ 55" and figures["Cost of the root model"] == ("unknown", "unknown")
