"""Python values survive the way through JSON exactly, and nothing that is no value can do harm."""

from __future__ import annotations

import json
import math
import reprlib
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.values import MAX_DEPTH, TooLarge, as_text, from_form, to_form


def through(value: Any) -> Any:
    """The value after its way: form, JSON text in UTF-8, form, value."""
    text = json.dumps(to_form(value), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return from_form(json.loads(text.decode("utf-8", "surrogatepass")))


def same(a: Any, b: Any) -> bool:
    """Equality that tells -0.0 from 0.0, True from 1, and takes nan for equal to nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(
            same(k, m) and same(v, w) for (k, v), (m, w) in zip(a.items(), b.items(), strict=True)
        )
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)
    return bool(a == b)


_ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**53 - 2, max_value=2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.binary(max_size=8)
    | st.sampled_from(["$int", "$tuple", "$dict", "$repr", "$", ""])
)
_HASHABLE = st.recursive(
    _ATOMS, lambda inner: st.tuples(inner) | st.frozensets(inner, max_size=3), max_leaves=4
)
_VALUES = st.recursive(
    _HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(_HASHABLE, max_size=4)
        | st.dictionaries(_HASHABLE, inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.just("$set"), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_VALUES)
def test_any_plain_value_comes_back(value: Any) -> None:
    assert same(through(value), value)


@pytest.mark.parametrize(
    "value",
    [
        2**60 + 1,
        -(2**53),
        2**53 + 1,
        float("nan"),
        float("-inf"),
        -0.0,
        5e-324,
        0.1 + 0.2,
        b"\x00\xff",
        "\ud800 alone",
        "\ud83d\ude00",
        {1, 2},
        {frozenset(), frozenset({1})},
        (),
        {(1, "a"): [{}]},
        {"$int": "5"},
        {"$repr": "x", "$type": "y"},
        {None: None, 1.5: 2},
    ],
    ids=repr,
)
def test_values_that_others_lose(value: Any) -> None:
    assert same(through(value), value)


def test_integers_of_more_digits_than_python_writes() -> None:
    for value in (10**5_000, -(7**20_000)):
        assert same(through(value), value)
    assert as_text(16**5_000) == "0x1" + "0" * 5_000


def test_equal_sets_have_equal_forms() -> None:
    assert to_form({"b", "a", 1}) == to_form({1, "a", "b"})


def test_what_has_no_form_is_its_repr() -> None:
    form = to_form([Decimal("1.50"), Fraction(1, 3)])
    assert form[0] == {"$repr": "Decimal('1.50')", "$type": "decimal.Decimal"}
    assert from_form(form) == ["Decimal('1.50')", "Fraction(1, 3)"]


def test_subclasses_of_str_are_texts_and_other_subclasses_are_not() -> None:
    class Text(str):
        def __str__(self) -> str:
            return "something else"

    class Number(int):
        pass

    assert to_form(Text("abc")) == as_text(Text("abc")) == "abc"
    assert to_form(Number(5)) == {"$repr": "5", "$type": f"{__name__}.{Number.__qualname__}"}


def _nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def test_deep_nesting() -> None:
    assert through(_nested(MAX_DEPTH - 1)) == _nested(MAX_DEPTH - 1)
    for levels in (MAX_DEPTH, MAX_DEPTH + 1, 100_000):
        json.dumps(to_form(_nested(levels)))
        assert isinstance(through(_nested(levels)), list)


@pytest.mark.parametrize("fan_out", [1, 2, 50])
def test_containers_that_hold_themselves(fan_out: int) -> None:
    value: list[Any] = []
    value.extend([value] * fan_out)
    loop: dict[str, Any] = {"list": value}
    loop["self"] = loop
    assert json.dumps(to_form(value))
    assert json.dumps(to_form(loop))


def test_a_value_seen_twice_is_no_loop() -> None:
    inner = [1]
    assert through([inner, inner, (inner,)]) == [[1], [1], ([1],)]


def test_values_too_large_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.values.MAX_ITEMS", 50_000)
    doubled: list[Any] = [1]
    for _ in range(60):
        doubled = [doubled, doubled]  # 2**60 parts, a few hundred bytes
    with pytest.raises(TooLarge):
        to_form(doubled)
    with pytest.raises(TooLarge):
        to_form(["x" * 1_000_000] * 100)
    with pytest.raises(TooLarge):
        to_form(b"x" * 20_000_000)


# -- reading what somebody else wrote

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "$int",
                    "$float",
                    "$bytes",
                    "$tuple",
                    "$set",
                    "$frozenset",
                    "$dict",
                    "$repr",
                    "$type",
                    "$x",
                    "a",
                ]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=10,
)


@given(_JSON)
def test_no_form_raises(form: Any) -> None:
    from_form(form)


@pytest.mark.parametrize(
    "form",
    [
        {"$int": "9" * 10_000},
        {"$int": "x"},
        {"$int": 5},
        {"$float": "five"},
        {"$bytes": "not base64!"},
        {"$set": [[]]},
        {"$set": 5},
        {"$dict": [[1]]},
        {"$dict": [[[], 1]]},
        {"$tuple": None},
        {"$unknown": []},
        {"$set": [{"$int": str(n * (2**61 - 1))} for n in range(3_000)]},
    ],
    ids=reprlib.repr,
)
def test_what_is_no_form_comes_back_as_it_is(form: Any) -> None:
    assert from_form(form) == form


def test_a_deep_form_does_not_end_in_a_recursion_error() -> None:
    form: Any = []
    for _ in range(50_000):
        form = {"$tuple": [form]}
    from_form(form)


# -- texts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (5, "5"),
        (True, "True"),
        (None, "None"),
        ([1, "a"], "[1, 'a']"),
        (2**60 + 1, "1152921504606846977"),
    ],
)
def test_texts_of_answers(value: Any, text: str) -> None:
    assert as_text(value) == text
