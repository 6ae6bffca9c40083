"""Whether two answers are the same, by each comparison, and the words for it."""

from __future__ import annotations

import pytest

from rlm_core.errors import InputError
from traces.opinions import HOW, check_how
from traces.same_answer import explain, numbers_of, same_answer

CASES = [
    ("normalised", "Forty  one.", "forty one", True),
    ("normalised", "41", "42", False),
    ("normalised", "", " ", True),
    ("exact", "41.", "41", False),
    ("exact", "41", "41", True),
    ("number", "The total is EUR 1,234.50, of 7 contracts.", "1234.5", True),
    ("number", "1 234", "1234", False),
    ("number", "between -3 and 5", "-3", True),
    ("number", "3", "-3", False),
    ("number", "417", "41", False),
    ("number", "7 of 7", "7 and 7", True),
    ("number", "7 of 8", "7 and 7", False),
    ("number", "2023-01-05", "2023-02-05", False),
    ("number", "1e3", "1000", True),
    ("number", "forty", "forty", None),
    ("number±0.5", "about 41.6", "42", True),
    ("number±0.5", "41.4", "42", False),
    ("set", "Lyon, Paris and Rome.", "rome; paris; lyon", True),
    ("set", "- Research and Development\n- Sales", "sales, Research and Development", True),
    ("set", '["a", "b"]', "b, a", True),
    ("set", "1. Paris\n2. Rome", "{'Rome', 'Paris'}", True),
    ("set", "1,000, 2,000", "2,000; 1,000", True),
    ("set", "Paris, Rome", "Paris", False),
    ("contains", "It is the Liberec plant.", "liberec plant", True),
    ("contains", "It is 17.", "7", False),
    ("contains", "It is 7.5", "7", False),
    ("contains", "Romeo", "Rome", False),
    ("contains", "It is 7, no more", "7", True),
    ("contains", "私は東京に住む", "東京", True),
    ("contains", "Rome", "It is Rome", False),
    ("regex", "invoice 4711 was late", r"\b4\d+1\b", True),
    ("regex", "invoice 4712", r"4711", False),
    ("judge", "Yes.", "yes", True),
    ("judge", "Yes, it is so", "yes", None),
]


@pytest.mark.parametrize(("how", "given", "expected", "same"), CASES)
def test_answers_are_compared_as_asked(how: str, given: str, expected: str, same: bool | None) -> None:
    assert same_answer(given, expected, how) is same


@pytest.mark.parametrize("how", [*HOW, "number±2"])
def test_a_missing_answer_equals_nothing_in_any_way_and_every_way_has_words(how: str) -> None:
    assert [same_answer(a, b, how) for a, b in [(None, None), ("1", None), (None, "1")]] == [False] * 3
    assert same_answer("1", "1", how) is True
    assert explain(how)[0].islower() and not explain(how).endswith(".")


def test_a_tolerance_is_said_in_words() -> None:
    assert explain("number±0.25").endswith("each may be off by 0.25")


@pytest.mark.parametrize(("how", "expected"), [("roughly", "1"), ("number±", "1"), ("regex", "(")])
def test_comparisons_that_do_not_exist_are_refused(how: str, expected: str) -> None:
    with pytest.raises(InputError):
        same_answer("1", expected, how)


@pytest.mark.parametrize(("how", "expected"), [("contains", " . "), ("regex", ""), ("regex", "  ")])
def test_an_empty_text_is_found_in_no_answer_and_refused(how: str, expected: str) -> None:
    assert same_answer("anything", expected, how) is None
    with pytest.raises(InputError, match="needs a text to look for"):
        check_how(how, expected)
    check_how(how, None)


def test_a_pattern_that_would_search_for_years_is_given_up() -> None:
    assert same_answer("a" * 60 + "!", r"(a|a)+$", "regex") is None
    assert same_answer("a" * 60, r"^(a+)+$", "regex") is True


def test_numbers_are_read_with_their_marks_and_signs() -> None:
    assert [str(n) for n in numbers_of("−1,250.50 on 3 May, K-026, 1,2,3, 1'000, 12,3456")] == [
        "-1250.50", "3", "26", "1", "2", "3", "1000", "12", "3456",
    ]  # fmt: skip


def test_long_hostile_texts_are_compared_in_bounds() -> None:
    many = " ".join(str(n) for n in range(200_000))
    assert same_answer(many, "999", "number") is True
    assert same_answer("[" * 90_000, "a", "set") is False
    assert same_answer("9" * 90_000, "9" * 90_000, "number") is True
