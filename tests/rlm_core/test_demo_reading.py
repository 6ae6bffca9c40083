"""The demo root where it is shown texts: looks up, sums up, and says where it has no rule."""

from __future__ import annotations

import pytest

from rlm_core import demo_root, prompts
from rlm_core.demo_reading import NO_RULE, NOT_FOUND, reply
from rlm_core.lm_handler import Message
from rlm_core.strategies import words

QUESTION = "What is the annual fee of contract K-013?"
TEXTS = (
    "=== [0] a.md ===\nContract K-012: the annual fee is EUR 5.\n\n"
    "=== [1] b.md ===\nContract K-013. The annual fee of contract K-013 is EUR 32,000.\n"
)
COUNT = "How many tickets are about billing?"


def test_a_lookup_is_answered_from_the_texts() -> None:
    assert reply(words.reading(QUESTION, TEXTS)) == "EUR 32,000"
    assert reply(words.reading("What is the notice period of contract K-013?", "")) == NOT_FOUND


def test_what_it_has_no_rule_for_it_says() -> None:
    assert reply(words.reading(COUNT, TEXTS)) == NO_RULE
    system = Message("system", words.SUMMARISE.format(chars=100))
    assert reply(words.summarising(system, COUNT, "", 0, TEXTS)) == NO_RULE
    assert reply(words.answering(COUNT, NO_RULE)) == NO_RULE


def test_a_summary_carries_on_what_was_found() -> None:
    system = Message("system", words.SUMMARISE.format(chars=100))
    first = reply(words.summarising(system, QUESTION, "", 9, TEXTS)) or ""
    assert "EUR 32,000" in first
    after = reply(words.summarising(system, QUESTION, first, 0, "=== [2] c.md ===\nNothing.\n")) or ""
    assert after == first
    asked = words.answering(QUESTION, after)
    assert reply(asked) == reply([*asked, prompts.final_request("The limit is reached.")]) == "EUR 32,000"


@pytest.mark.parametrize("system", [words.CODEACT, words.NO_SUBCALLS])
def test_without_sub_calls_it_searches_reads_and_types(system: str) -> None:
    opening = [Message("system", system), prompts.opening(QUESTION, "2 documents", "turn 1 of 30")[1]]
    assert reply(opening) is None and demo_root.reply(opening)  # the first look is that of every run
    looked = [*opening, Message("assistant", "..."), prompts.cell_output(["2 documents"], "turn 2 of 30")]
    assert "documents.top(" in (reply(looked) or "") and "llm_" not in (reply(looked) or "")
    told = [*looked, Message("assistant", "..."), prompts.cell_output([TEXTS], "turn 3 of 30")]
    assert "FINAL('EUR 32,000')" in (reply(told) or "")


@pytest.mark.parametrize("system", [words.CODEACT, words.NO_SUBCALLS])
def test_where_reading_is_needed_that_search_cannot_give_it_says_so_with_low_confidence(system: str) -> None:
    opening = [Message("system", system), prompts.opening(COUNT, "2 documents", "turn 1 of 30")[1]]
    looked = [*opening, Message("assistant", "..."), prompts.cell_output(["2 documents"], "turn 2 of 30")]
    said = reply(looked) or ""
    assert NO_RULE in said and 'answer["confidence"] = "low"' in said


def test_an_rlm_is_not_its_business() -> None:
    assert reply(prompts.opening(QUESTION, "2 documents", "turn 1 of 30")) is None
