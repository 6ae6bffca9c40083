"""The alignment of two runs finds again what was inserted, deleted, shuffled or changed; any record works."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core import semconv as sc
from tests.traces.diff_runs import Call, Cell, run_of, view_of
from tests.traces.records import end, start
from traces.diff import STATUSES, Diff, diff
from traces.view import RunView

NOISE: tuple[Callable[[str], str], ...] = (
    str.upper,
    lambda text: f"  {text}\n",
    lambda text: text.replace(" ", "   "),
    lambda text: text + ".",
    lambda text: text,
)
_WORDS = [f"w{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]


def prompt_of(number: int) -> str:
    """Prompts that share few words with each other."""
    chosen = random.Random(number).sample(_WORDS, 6)
    return f"{' '.join(chosen)} unique{chr(97 + number % 26)}{chr(97 + number // 26)}"


def told(view: RunView) -> dict[str, str]:
    """Prompts by span id."""
    calls = (span for span in view.spans if span.kind == "sub_call")
    return {call.span_id: view.payload(call.attributes[sc.PROMPT + ".sha256"]) or "" for call in calls}


def by_status(found: Diff, a: RunView, b: RunView) -> dict[str, set[str]]:
    """The prompts of the sub-calls of each status."""
    mine, theirs = told(a), told(b)
    sets: dict[str, set[str]] = {status: set() for status in STATUSES}
    for row in found.rows:
        if row.kind == "sub_call":
            sets[row.status].add(mine[row.a] if row.a is not None else theirs[row.b or ""])
    return sets


def every_span_once(found: Diff, a: RunView, b: RunView) -> None:
    assert Counter(row.a for row in found.rows if row.a) == Counter(span.span_id for span in a.spans)
    assert Counter(row.b for row in found.rows if row.b) == Counter(span.span_id for span in b.spans)
    assert all(row.a or row.b for row in found.rows)
    assert json.loads(json.dumps(found.to_json()))["counts"] == found.counts


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.sets(st.integers(0, n - 1)),
            st.sets(st.integers(0, n - 1)),
            st.integers(0, 5),
            st.permutations(range(n)),
            st.booleans(),
        )
    )
)
def test_insertions_deletions_and_changes_are_found_again_among_shuffled_siblings(
    plan: tuple[int, set[int], set[int], int, list[int], bool],
) -> None:
    n, deleted, changed, inserted, order, batch = plan
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        first = [Call(prompt_of(i), "yes") for i in range(n)]
        second = [Call(prompt_of(i), "no" if i in changed else "yes") for i in order if i not in deleted]
        second += [Call(prompt_of(n + i), "yes") for i in range(inserted)]
        a = run_of(folder, "a", [Cell("ask(all)", first, batch=batch)], answer="1")
        b = run_of(folder, "b", [Cell("ask(some)", second, batch=batch)], answer="2")
        found = diff(a, b)
        every_span_once(found, a, b)
        sets = by_status(found, a, b)
        assert sets["frontier"] == {prompt_of(i) for i in changed - deleted}
        assert sets["removed"] == {prompt_of(i) for i in deleted}
        assert sets["added"] == {prompt_of(n + i) for i in range(inserted)}
        assert sets["downstream"] == set()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(NOISE), st.booleans()), min_size=1, max_size=20),
    st.sampled_from(NOISE),
)
def test_noise_in_responses_prompts_and_outputs_does_not_enlarge_the_frontier(
    noise: list[tuple[Callable[[str], str], bool]], around: Callable[[str], str]
) -> None:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        good = ["the value is seven" if wrong else "the value is two" for _, wrong in noise]
        bad = [disturb("the value is two") for disturb, _ in noise]
        views = []
        for name, replies, disturb in (("a", bad, around), ("b", good, NOISE[-1])):
            calls = [Call(prompt_of(number), reply) for number, reply in enumerate(replies)]
            last = Call(disturb("sum up all that was said"), "done")
            views.append(
                run_of(folder, name, [Cell("ask()", calls, disturb("shown")), Cell("last()", [last])])
            )
        found = diff(*views)
        every_span_once(found, *views)
        wrong = {prompt_of(number) for number, (_, wrong) in enumerate(noise) if wrong}
        assert by_status(found, *views)["frontier"] == wrong
        assert len(found.frontier) == len(wrong)


_ids = st.sampled_from(["1" * 16, "2" * 16, "3" * 16, "4" * 16, "5" * 16, "6" * 16, "7" * 16])
_RANGES = '{"how": "reference", "ranges": [[0, 1, 5], ["a"], [0, 9, 2]]}'
_odd = st.sampled_from(["x", "\ud800", 7, 10**30, None, True, "[]", _RANGES, "{", "[" * 2000, "null"])
_KEYS = (
    sc.PROMPT_HASH, sc.TEMPLATE_HASH, sc.RESPONSE_NORM_HASH, sc.SOURCE_RANGES, sc.CALL_ORDINAL,
    sc.CALL_OCCURRENCE, sc.CALL_LINE, sc.CODE + ".sha256", sc.STDOUT_SHOWN + ".sha256", sc.CORPUS_ID,
    sc.PROMPT + ".sha256", sc.RESPONSE + ".sha256", sc.QUESTION + ".sha256", sc.EXCEPTION_TYPE,
)  # fmt: skip
Spans = list[tuple[str, str | None, str, dict[str, Any], bool]]
_facts = st.dictionaries(st.sampled_from(_KEYS), _odd)
_span = st.tuples(_ids, st.none() | _ids, st.sampled_from(sc.KINDS), _facts, st.booleans())


def hostile(folder: Path, name: str, spans: Spans) -> RunView:
    records = [start(span_id, parent, kind, a=facts) for span_id, parent, kind, facts, _ in spans]
    records += [end(span_id) for span_id, *_, ended in spans if ended]
    return view_of(folder, name, records)


@settings(max_examples=60, deadline=None)
@given(st.lists(_span, max_size=12), st.lists(_span, max_size=12), st.sampled_from(["normalised", "exact"]))
def test_every_span_of_any_two_records_stands_in_exactly_one_row(one: Spans, other: Spans, how: str) -> None:
    """Circles of parents, spans without parents, hashes that are none or missing, calls without an end."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        a, b = hostile(folder, "a", one), hostile(folder, "b", other)
        every_span_once(diff(a, b, how), a, b)
        every_span_once(diff(a, a, how), a, a)


def test_long_runs_whose_turns_are_all_alike_are_aligned_in_a_moment() -> None:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        same = [Cell("x = llm_query(p)", [Call("p", "yes")]) for _ in range(600)]
        a = run_of(folder, "a", [Cell("first()"), *same], answer="1")
        b = run_of(folder, "b", [Cell("other()"), *same, Cell("last()")], answer="2")
        found = diff(a, b)
        assert found.counts["same"] == 4 * 600 + 1 and found.counts["added"] == 3
