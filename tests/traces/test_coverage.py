"""Which parts of a corpus a run read, from real runs and from any record whatever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core import Limits
from rlm_core import semconv as sc
from tests.support.scripted import Script, cell, run
from traces.byte_ranges import merged, size, without
from traces.child_places import Translation
from traces.coverage import HOWS, Coverage, coverage
from traces.home import Home
from traces.reading import RunView, SpanRow, load_run
from traces.recording import open_recording

RUN = "20260101T000000-0000000c"
PAGE = "The northern quay handled many containers in March, line {} of the report.\n"
REPORT = "".join(PAGE.format(number) for number in range(10))
LETTER = "Überraschend viele Gäste fragten nach dem großen Leuchtturm an der Nordküste.\n" * 3
DOCUMENTS = {
    "report.txt": REPORT,
    "letter.txt": LETTER,
    "far.txt": "Nobody looks here. " * 9,
}
LINE = len(PAGE.format(0))


def play(
    folder: Path, *replies: Any, corpus: Any = DOCUMENTS, sub: Any = lambda _: "ok", **limits: Any
) -> Any:
    """The recorded run of some cells (or callables that give a reply)."""
    home = Home(folder / "home")
    home.create()
    script = Script([reply if callable(reply) else cell(reply) for reply in replies], lambda _: "ok")
    with open_recording(home, RUN, {}) as recording:
        run(script, corpus, limits=Limits(**limits), recorder=recording.recorder, run_id=RUN, sandbox="none")
    return load_run(home, RUN)


# -- real runs


def test_what_was_sent_shown_given_and_never_touched_is_told_apart(tmp_path: Path) -> None:
    view = play(
        tmp_path,
        "report = documents[0]\nllm_query('Sum up.', report[:100])",
        "print(documents['letter.txt'][:80])",
        "FINAL(1)",
    )
    found = coverage(view)
    report, letter, far = found.documents
    assert report.sent == ((0, 100),) and report.given == ((0, len(REPORT)),)
    assert letter.sent == () and letter.shown[0][0] == 0 and letter.share(letter.given) == 1.0
    assert [part.how for part in report.parts()][0] == "sent"
    assert far.sent == far.given == () and found.never_sent == (letter, far)
    assert far.shown  # the root saw its beginning and its end in the description of the corpus
    assert found.given_known and not found.lower_bound and found.words == ()
    assert sum(found.sizes.values()) == found.bytes == sum(len(text.encode()) for text in DOCUMENTS.values())


def test_the_readings_of_a_part_name_the_spans(tmp_path: Path) -> None:
    view = play(
        tmp_path,
        "r = llm_batch([('Sum up.', documents[0][n * 100 : n * 100 + 150]) for n in range(3)])",
        "FINAL(1)",
    )
    found = coverage(view)
    calls = [span.span_id for span in view.spans if span.kind == "sub_call"]
    cells = [span.span_id for span in view.spans if span.kind == "cell"]
    read = found.readings(0, 110, 140)
    assert [one.span_id for one in read if one.how == "sent"] == calls[:2]
    assert [one.span_id for one in read if one.how == "given"] == [cells[0]]
    assert [one.span_id for one in found.readings(0, 390, 400) if one.how == "sent"] == []
    assert found.readings(99) == []


def test_what_was_printed_last_was_shown_to_nobody(tmp_path: Path) -> None:
    view = play(tmp_path, "print(documents[0][420:480])\nFINAL(1)")
    assert all(end <= 420 or start >= 480 for start, end in coverage(view).documents[0].shown)


def test_a_call_that_was_refused_sent_nothing(tmp_path: Path) -> None:
    code = "llm_query('Sum up.', documents[0][{0}:{0} + 50])"
    asked = "\n".join(["try:", *(f"    {code.format(at)}" for at in (0, 100, 200)), "except Exception: pass"])
    found = coverage(play(tmp_path, asked, "FINAL(1)", max_calls=1))
    assert found.documents[0].sent == ((0, 50),)


def child_root(code: str) -> Any:
    """A reply that runs some code in a child run and ends any other run."""

    def reply(request: Any) -> str:
        return cell(code if "child question" in request.messages[1].content else "FINAL(1)")

    return reply


@pytest.mark.parametrize(
    ("context", "sent"),
    [
        ("documents[1]", (1, LETTER.index("nach"), LETTER.index("nach") + 60)),
        ("documents[1][50:200]", (1, 50 + LETTER[50:].index("nach"), 50 + LETTER[50:].index("nach") + 60)),
        ("['A heading of its own', documents[0][LINE:4*LINE]]", (0, None, None)),
        ("'\\n'.join(documents[0].splitlines()[2:5])", (0, None, None)),
    ],
)
def test_what_a_child_run_sent_of_its_own_texts_counts_in_the_corpus(
    tmp_path: Path, context: str, sent: tuple[int, int | None, int | None]
) -> None:
    number, start, end = sent
    text = list(DOCUMENTS.values())[number]
    word = "nach" if number == 1 else "quay"
    child = (
        f"t = context if isinstance(context, str) else context[len(context) - 1]\nat = t.index('{word}')\n"
    )
    child += "llm_query('Sum up.', t[at:at + 60])\nFINAL(1)"
    ask = f"LINE = {LINE}\nrlm_query('child question', {context})"
    view = play(tmp_path, ask, child_root(child), child_root(child))
    found = coverage(view)
    passages = [text.encode()[first:last].decode() for first, last in found.documents[number].sent]
    if start is not None:
        assert passages == [text[start:end]]
    else:
        assert len(passages) == 1 and passages[0].startswith("quay") and len(passages[0]) == 60
    assert found.words == () and found.documents[number].given


def test_texts_that_a_child_run_was_given_and_that_stand_nowhere_are_said(tmp_path: Path) -> None:
    ask = "rlm_query('child question', documents[1].upper())"
    found = coverage(play(tmp_path, ask, child_root("FINAL(1)"), child_root("FINAL(1)")))
    assert any("child run worked on texts of its own" in sentence for sentence in found.words)
    assert found.lower_bound


def test_the_json_form_lists_the_least_covered_and_counts_the_rest(tmp_path: Path) -> None:
    corpus = {f"{number:03}.txt": f"Letter number {number}, with a text of its own." for number in range(50)}
    view = play(tmp_path, "r = llm_batch([('?', d) for d in documents[:40]])", "FINAL(1)", corpus=corpus)
    found = coverage(view).to_json(5)
    assert [row["document"] for row in found["by_document"]] == [
        f"{number:03}.txt" for number in range(40, 45)
    ]
    assert (found["left_out"], found["never_sent"], found["documents"]) == (45, 10, 50)
    assert json.loads(json.dumps(found)) == found


# -- records made by hand


def view_of(*spans: tuple[str, dict[str, Any]], table: Any = None) -> RunView:
    """A run of spans (kind, attributes), each below the first, with a document table as recorded."""
    rows = []
    for seq, (kind, attributes) in enumerate(spans):
        facts: dict[str, Any] = dict.fromkeys(SpanRow._fields)
        facts |= {"run_id": RUN, "span_id": f"s{seq}", "seq": seq, "kind": kind, "name": kind, "status": "ok"}
        facts |= {"parent_id": "s0" if seq else None, "attributes": attributes, "depth": 0, "start_ns": 0}
        rows.append(SpanRow(**facts))

    class Texts:
        def payloads(self, sha256s: Any) -> dict[str, str]:
            return {"table": table} if table is not None and "table" in sha256s else {}

        def events(self) -> dict[str, list[dict[str, Any]]]:
            return {}

    return RunView(None, tuple(rows), False, Texts())  # type: ignore[arg-type]


def table(*sizes: Any) -> str:
    return json.dumps({"documents": [{"name": f"{n}.txt", "bytes": size} for n, size in enumerate(sizes)]})


TOP = ("run", {sc.CORPUS + ".sha256": "table", sc.CORPUS_ID: "c0ffee"})
ROOT = ("root_call", {})


def cells(touched: Any, shown: Any = None) -> tuple[str, dict[str, Any]]:
    shown = {"how": "none", "ranges": []} if shown is None else shown
    return "cell", {sc.TOUCHED: json.dumps(touched), sc.SHOWN_RANGES: json.dumps(shown)}


def call(*ranges: Any, how: str = "reference", **more: Any) -> tuple[str, dict[str, Any]]:
    return "sub_call", {sc.SOURCE_RANGES: json.dumps({"how": how, "ranges": list(ranges), **more})}


def test_an_older_record_says_what_is_not_known() -> None:
    found = coverage(view_of(TOP, ("cell", {}), call([0, 0, 5]), ROOT, table=table(10)))
    assert found.documents[0].sent == ((0, 5),) and found.read_share == 0.5
    assert not found.given_known and found.lower_bound
    assert found.words == (
        "Of 2 texts shown to the root it is not known what of the corpus stood in them.",
        "1 cell does not say which parts of the corpus its code was given.",
    )


def test_calls_that_were_not_searched_make_it_a_lower_bound() -> None:
    top = ("run", {**TOP[1]})
    partly = call([0, 0, 5], how="located", why="the search failed")
    found = coverage(view_of(top, call(how="not_searched"), partly, call(how="none"), table=table(10)))
    assert found.lower_bound
    assert found.words == (
        "The texts of 2 sub-calls were not searched for, or only in part: they may have read more.",
    )


def test_what_went_only_to_calls_that_failed_is_not_read() -> None:
    spans = [call([0, 0, 6]), call([0, 4, 8]), call([1, 0, 10]), call([2, 0, 5], how="located")]
    view = view_of(TOP, *spans, *[("attempt", {})] * 4, table=table(10, 10, 10))
    ends = ["ok", "error", "cancelled", "lost"]  # of the calls, and each of its only attempt
    rows = [
        row._replace(
            status=ends[(row.seq - 1) % 4], parent_id=f"s{row.seq - 4}" if row.seq > 4 else row.parent_id
        )
        for row in view.spans[1:]
    ]
    view.spans = (view.spans[0], *rows)
    found = coverage(view)
    first, second, third = found.documents
    assert [part.how for part in first.parts()] == ["sent", "unanswered", "never"]
    assert (first.sent, second.unanswered, third.unanswered) == (((0, 6),), ((0, 10),), ((0, 5),))
    assert found.read_share == 6 / 30 and found.sizes["unanswered"] == 17
    assert found.never_answered == (second, third) and found.never_sent == ()
    assert [one.how for one in found.readings(1)] == ["unanswered"]
    told = found.to_json()
    assert (told["unanswered_bytes"], told["never_answered"], told["read_share"]) == (17, 2, 0.2)


def test_an_empty_document_has_no_share_and_was_not_missed() -> None:
    found = coverage(view_of(TOP, call([1, 0, 0]), table=table(10, 0)))
    assert found.documents[1].parts() == () and found.documents[1].share(()) is None
    assert [one.number for one in found.never_sent] == [one.number for one in found.never_touched] == [0]


def test_a_record_without_its_documents_says_so() -> None:
    for made in (view_of(("run", {})), view_of(TOP), view_of(TOP, table="{"), view_of()):
        found = coverage(made)
        assert found.documents == () and found.read_share is None
        assert found.words[0] == "The record does not say which documents this run was asked over."


def test_places_that_do_not_exist_are_counted_and_left_out() -> None:
    hostile = [[0, 0, 99], [7, 0, 1], [0, -1, 5], [0, 2], "x", [0, 1.5, 2], [True, 0, 1], None]
    touched = {"whole": [[0, 10**15], [0], "x"], "parts": [[0, 0, 10**30]], "left_out": 3}
    found = coverage(view_of(TOP, call(*hostile), cells(touched), table=table(10)))
    assert found.documents[0].sent == () and found.documents[0].given == ((0, 10),)
    assert "11 entries of the record cannot be used." in found.words
    assert "1 cell looked at more parts of the corpus than its record lists." in found.words


def test_fifty_thousand_documents_that_every_cell_was_given_stay_few_facts() -> None:
    touched = {"whole": [[0, 49_999]], "parts": []}
    view = view_of(TOP, *[cells(touched)] * 300, call([3, 0, 5]), table=table(*[10] * 50_000))
    found = coverage(view)
    assert found.sizes == {"sent": 5, "shown": 0, "unanswered": 0, "given": 499_995, "never": 0}
    assert len(found.readings(3)) == 301 and len(found.to_json()["by_document"]) == 100
    assert found.least_first[0].number == 0 and found.least_first[-1].number == 3


def test_a_document_that_a_cell_names_again_and_again_is_one_reading() -> None:
    touched = {"whole": [[0, 1], [0, 0], [1, 1]] * 100, "parts": []}
    found = coverage(view_of(TOP, cells(touched), table=table(10, 10)))
    assert [one.span_id for one in found.readings(1)] == ["s1"]


def test_texts_of_texts_are_placed_unless_they_are_too_many_pieces() -> None:
    above = Translation((tuple((n * 10, n * 10 + 10, n, 5) for n in range(1_000)),))
    few, many = (Translation((((0, 9_995, 0, 5),),) * documents) for documents in (2, 300))
    found = few.through(above)
    assert found is not None and list(found.places(1, 0, 7)) == [(0, 10, 15), (1, 5, 7)]
    assert many.through(above) is None


# -- any record

SPOTS = st.integers(0, 40)
RANGES = st.lists(st.tuples(SPOTS, SPOTS), max_size=12)


def spots(ranges: Any) -> set[int]:
    return {spot for start, end in ranges for spot in range(start, end)}


@given(RANGES, RANGES)
def test_sets_of_bytes_are_sets(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    one, other = merged(first), merged(second)
    assert spots(one) == spots(first) and size(one) == len(spots(first))
    assert all(a[1] < b[0] for a, b in zip(one, one[1:], strict=False))
    rest = without(one, other)
    assert spots(rest) == spots(one) - spots(other) and rest == merged(rest)


@given(RANGES, RANGES, RANGES, RANGES)
def test_the_parts_of_a_document_are_all_of_it_and_say_what_tells_most(
    sent: list[tuple[int, int]],
    shown: list[tuple[int, int]],
    failed: list[tuple[int, int]],
    given_: list[tuple[int, int]],
) -> None:
    def ranges(spans: list[tuple[int, int]]) -> list[list[int]]:
        return [[0, start, end] for start, end in spans if start <= end]

    view = view_of(
        TOP,
        call(*ranges(sent)),
        cells({"whole": [], "parts": ranges(given_)}, {"how": "located", "ranges": ranges(shown)}),
        ROOT,
        call(*ranges(failed)),
        ("attempt", {}),
        table=table(40),
    )
    *above, refused, attempt = view.spans
    attempt = attempt._replace(status="error", parent_id=refused.span_id)
    view.spans = (*above, refused._replace(status="error"), attempt)
    found = coverage(view)
    (document,) = found.documents
    told = {spot: part.how for part in document.parts() for spot in range(part.start, part.end)}
    sets = (spots(sent), spots(shown), spots(failed), spots(given_))
    for spot in range(40):
        assert told[spot] == next(
            (how for how, held in zip(HOWS, sets, strict=True) if spot in held), "never"
        )
    assert found.read_share == len(sets[0] | sets[1]) / 40
    for how, held in zip(HOWS, sets, strict=True):
        assert spots((one.start, one.end) for one in found.readings(0) if one.how == how) == held


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 60) | st.floats() | st.sampled_from(["located", "x", "[1]"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["how", "ranges", "why", "left_out", "whole", "parts", "documents", "name", "bytes"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
KEYS = (sc.SOURCE_RANGES, sc.SHOWN_RANGES, sc.TOUCHED, sc.CORPUS + ".sha256", sc.CHILD_CONTEXT + ".sha256")


@st.composite
def any_span(draw: Any) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from(["run", "cell", "sub_call", "root_call", "attempt", "batch"]))
    values = ANYTHING | ANYTHING.map(json.dumps) | st.just("table")
    return kind, draw(st.dictionaries(st.sampled_from(KEYS), values, max_size=5))


@settings(max_examples=60, deadline=None)
@given(st.lists(any_span(), max_size=8), ANYTHING.map(json.dumps) | st.just(table(20, 0, None)))
def test_no_record_breaks_it(spans: list[tuple[str, dict[str, Any]]], text: str) -> None:
    found: Coverage = coverage(view_of(TOP, *spans, table=text))
    for document in found.documents:
        if document.bytes is not None:
            assert sum(part.end - part.start for part in document.parts()) == document.bytes
        assert found.readings(document.number) is not None
    assert found.read_share is None or 0 <= found.read_share <= 1
    json.dumps(found.to_json(), allow_nan=False)
