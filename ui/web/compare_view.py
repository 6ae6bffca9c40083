"""Two runs side by side: whether the answers are the same, what each run took, how it was set up."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import streamlit as st

from traces.home import Home
from traces.imported import (
    asked_words,
    failed_sub_calls_told,
    iterations_told,
    on_record,
    sub_calls_told,
    unanswered_words,
)
from traces.opinions import opinions
from traces.questions import asked
from traces.reading import RunSummary
from traces.same_answer import same_answer
from traces.side_by_side import Side, differing
from traces.summing import Spend
from ui.figures import counted, duration, least, money, total_tokens
from ui.web import plain
from ui.web.compare_pair import Pair
from ui.web.compare_trees import compare_trees
from ui.web.diff_view import diff_view
from ui.web.import_note import import_badge
from ui.web.notices import Colour, said
from ui.web.places import run_link
from ui.web.rows_view import Cell, Column, Item, rows_view
from ui.web.run_words import COLOURS, cost_words, status_word, stopped
from ui.web.verdict_view import verdict

_FIGURES: Final = (
    Column("What", None), Column("A", 125, right=True), Column("B", 125, right=True),
    Column("B against A", 155, right=True),
)  # fmt: skip
_SETTINGS: Final = (Column("Setting", 170), Column("A", None), Column("B", None))
_RULE: Final = "by the default rule: letter case, white space and a final full stop do not count"


def comparison(pair: Pair) -> None:
    """Draw the comparison of two runs: answers, where they part, totals and settings."""
    home, (a, b) = pair.home, pair.sides
    for column, name, one in zip(st.columns(2, gap="medium"), "AB", (a, b), strict=True):
        with column, st.container(border=True, key=f"compare-{name}"):
            _head(home, name, one)
    _answers(home, a, b)
    compare_trees(pair)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("##### What each took")
        rows_view(list(_figures(a, b)), _FIGURES, key="compare-figures", label="What each run took")
    with right:
        st.markdown("##### How they were set up")
        _settings(a, b)


def _head(home: Home, name: str, one: Side) -> None:
    run, word = one.summary, status_word(one.summary)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(f"**{name}**", width="content")
        st.badge(word, color=COLOURS[word])
        import_badge(run)
        with st.container(width="stretch"):
            plain.text(run.run_id)
        page, query = run_link(run.run_id)
        st.page_link(page, label=f"Open {name}", query_params=query)
    plain.bounded(asked_words(run), key=f"compare-question-{name}", file_name="question.txt")
    with st.container(gap=None):
        st.caption(f"Answer. {'The run is still going on.' if one.live else stopped(run)}")
        if run.answer is None:
            st.text("There is none (yet)." if one.live else unanswered_words(run))
        else:
            plain.payload(run.answer, key=f"compare-answer-{name}", file_name="answer.txt", height=None)
    verdict(home, run.run_id, key=f"compare-{name}")


def _answers(home: Home, a: Side, b: Side) -> None:
    """Whether question and answers are the same, and where the answers differ."""
    one, other = a.summary, b.summary
    if asked(one) != asked(other):
        said(*_other_question(a, b))
    if one.answer is None or other.answer is None:
        said("Not to compare", "gray", "An answer is missing.")
        return
    if same_answer(one.answer, other.answer):
        said("Same answer", "green", f"The answers are the same {_RULE}.")
    else:
        said("Different answers", "orange", f"The answers are not the same {_RULE}.")
    _expected(home, a, b)
    if one.answer != other.answer:
        diff_view(
            one.answer, other.answer, key="compare-diff", names=("Answer of A", "Answer of B"),
            label="The answers side by side",
        )  # fmt: skip


def _expected(home: Home, a: Side, b: Side) -> None:
    """Which run gives the answer that a person expected of one of them, where the rule can tell."""
    answers = {"A": a.summary.answer, "B": b.summary.answer}
    for name, run_id in (("A", a.summary.run_id), ("B", b.summary.run_id)):
        opinion = opinions(home).of(run_id)
        if opinion is None or opinion.expected is None:
            continue
        found = {one: same_answer(answer, opinion.expected, opinion.how) for one, answer in answers.items()}
        if None in found.values():
            continue
        met = [one for one, same in found.items() if same]
        words = ("neither run gives", f"only {''.join(met)} gives", "both runs give")[len(met)]
        said("Expected", "blue", f"What a person expected of {name}, {words}: {opinion.expected[:200]}")


def _other_question(a: Side, b: Side) -> tuple[str, Colour, str]:
    """Badge, color and words for runs that do not ask the same, or of which that cannot be told."""
    one, other = a.summary, b.summary
    if one.question is None or other.question is None:
        return "Unknown question", "gray", "A question is not recorded."
    if asked(one)[0] != asked(other)[0]:
        return "Other question", "orange", "The runs do not ask the same."
    if one.corpus_id is None or other.corpus_id is None:
        return (
            "Unknown corpus",
            "gray",
            "The runs ask the same; whether over the same corpus is not recorded.",
        )
    return "Other corpus", "orange", "The runs ask the same, but over different corpora."


def _figures(a: Side, b: Side) -> Iterator[Item]:
    """Every figure of both runs, and how far B is from A where that can be told."""
    x, y = a.summary, b.summary
    yield _line("Cost", (cost_words(x), cost_words(y)), _more_usd(x.cost_usd, y.cost_usd))
    for role, words in (("root", "Cost of the root model"), ("sub", "Cost of sub-calls")):
        one, other = a.spend[role], b.spend[role]
        yield _line(words, (_usd(one), _usd(other)), _more_usd(one.usd, other.usd))
    counts = {
        "Iterations": (iterations_told(x), iterations_told(y)),
        "Sub-calls": (sub_calls_told(x), sub_calls_told(y)),
        "Failed sub-calls": (failed_sub_calls_told(x), failed_sub_calls_told(y)),
        "Child runs": (a.children, b.children),
    }
    if x.refused_sub_calls or y.refused_sub_calls:
        counts["Sub-calls refused by a limit"] = (x.refused_sub_calls, y.refused_sub_calls)
    for words, (first, second) in counts.items():
        yield _line(words, (on_record(first), on_record(second)), _more_of(first, second))
    for words, side in (("Tokens in", "input"), ("Tokens out", "output")):
        yield _line(words, (_side(x, side), _side(y, side)), _more_tokens(x, y, side))
    times = duration(x.seconds), duration(y.seconds)
    yield _line("Time", times, _more_seconds(x.seconds, y.seconds))
    yield _line("Stop reason", (x.stop_reason or "unknown", y.stop_reason or "unknown"), "")


def _line(words: str, values: tuple[str, str], more: str) -> Item:
    return Item(words, [words, *values, more])


def _usd(spend: Spend) -> str:
    return least(spend.usd, spend.status, spend.known_usd)


def _side(run: RunSummary, side: str) -> str:
    """Tokens of one side, as far as the record says them."""
    return total_tokens({"total": run.tokens[side]}, run.untold_calls)


def _more_of(a: int | None, b: int | None) -> str:
    return "unknown" if a is None or b is None else _more(a, b, f"{abs(b - a):,}")


def _more_tokens(a: RunSummary, b: RunSummary, side: str) -> str:
    first, second = a.tokens[side], b.tokens[side]
    return "unknown" if a.untold_calls or b.untold_calls else _more_of(first, second)


def _more_seconds(a: float | None, b: float | None) -> str:
    return "unknown" if a is None or b is None else _more(a, b, duration(abs(b - a)))


def _more_usd(a: Decimal | None, b: Decimal | None) -> str:
    if a is None or b is None:
        return "unknown"
    return _more(a, b, money(abs(b - a), None))


def _more(a: Decimal | float, b: Decimal | float, gap: str) -> str:
    """The difference with its sign, and the ratio where there is one."""
    if a == b:
        return "same"
    ratio = f" (× {float(b) / float(a):.2f})" if a > 0 and b > 0 else ""
    return f"{'+' if b > a else '−'}{gap}{ratio}"


def _settings(a: Side, b: Side) -> None:
    pairs, same = differing(a, b)
    if not pairs:
        st.text(f"All {counted(same, 'setting')} on record are the same.")
        return

    def cell(value: str | None) -> Cell:
        return "(not recorded)" if value is None else value

    rows = [Item(name, [name, cell(one), cell(other)]) for name, one, other in pairs]
    rows_view(rows, _SETTINGS, key="compare-settings", label="Settings that differ")
    st.caption(f"{counted(same, 'more setting')} on record {'is' if same == 1 else 'are'} the same.")
