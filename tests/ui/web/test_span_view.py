"""A span in full on the Run page: its facts, its tabs, and the ways to other spans."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.model_calls import NOTHING_BILLED
from rlm_core.telemetry import as_json
from tests.support.pages import problems, rows_with, texts, use
from tests.support.recorded_runs import WIDE, recording, wide_run
from tests.support.run_pages import chosen, facts, looked_at, named, open_tab, press, run_page, tabs
from tests.support.step_runs import NEEDLE, long_run
from traces.home import Home
from traces.reading import load_run
from ui.web.find_in_text import places_of


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def test_the_address_names_the_span(home: Home) -> None:
    view = load_run(home, wide_run(home, 200))
    call = named(view, "sub_call", 3)
    for ref in (call.span_id, call.span_id[:10]):
        page = run_page(WIDE, ref)
        assert {"llm_query 3", "yes: “refund of order 3”"} <= {*texts(page), *(c.value for c in page.code)}
        assert call.span_id in [code.value for code in page.code]
        path = [button.label for button in page.button if button.label.endswith("›")]
        assert path == ["run ›", "iteration 0 ›", "cell 0 ›", "llm_batch ›"]


def test_from_span_to_span(home: Home) -> None:
    view = load_run(home, wide_run(home, 250, batch=90))
    calls = [span.span_id for span in view.spans if span.kind == "sub_call"]
    page = run_page(WIDE)
    assert "span" not in page.query_params
    page = press(page, "Next failed or empty sub-call (3)")
    assert chosen(page) == calls[17]
    assert chosen(press(page, "Next sub-call")) == calls[18]
    assert chosen(press(page, "Previous sub-call")) == calls[17]
    assert chosen(press(page, "Next failed")) == calls[42]
    assert chosen(press(page, "Next failed")) == calls[90 + 17]
    assert chosen(press(page, "Next failed")) == calls[17]  # round the end
    assert chosen(press(page, "cell 0 ›")) == named(view, "cell").span_id
    assert chosen(press(page, "Next cell")) == named(view, "cell", 1).span_id


def test_the_first_and_the_last_sub_call_have_one_neighbour(home: Home) -> None:
    view = load_run(home, wide_run(home, 30))
    calls = [span.span_id for span in view.spans if span.kind == "sub_call"]
    for span, label in ((calls[0], "Previous sub-call"), (calls[-1], "Next sub-call")):
        page = run_page(WIDE, span)
        assert [b.label for b in page.button if b.disabled and b.label.endswith("sub-call")] == [label]


def test_what_a_failed_call_says(home: Home) -> None:
    view = load_run(home, wide_run(home, 60))
    page = run_page(WIDE, named(view, "sub_call", 17).span_id)
    assert problems(page) == ["server: the server answered with status 500."]
    assert (facts(page)["Tokens"], facts(page)["Model"]) == ("unknown", "test/sub")
    assert tabs(page) == ["Prompt", "Attempts", "Cost", "Facts", "Raw"]


def test_a_refused_call_took_nothing_and_one_that_failed_unbilled_0(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        batch = made.recorder.start("batch", sc.NAME_BATCH, run, {})
        for kind in ("budget", "server"):
            call = made.recorder.start("sub_call", "chat m", batch, NOTHING_BILLED)
            if kind == "server":
                made.recorder.start("attempt", sc.NAME_ATTEMPT, call, NOTHING_BILLED).fail(kind, "no")
            call.fail(kind, "no")
        batch.end()
        made.close("error")
    view = load_run(home, WIDE)
    refusal, failed = (run_page(WIDE, named(view, "sub_call", at).span_id) for at in (0, 1))
    assert [facts(failed)[name] for name in ("Tokens in", "Tokens out", "Cost")] == ["0", "0", "$0 (free)"]
    assert not {"Tokens in", "Tokens out"} & set(facts(refusal))
    words = [[element.value for element in page.caption] for page in (refusal, failed)]
    assert [said.count("Cost") for said in words] == [1, 2], "that of the run stands above"
    rows = run_page(WIDE, named(view, "batch").span_id).dataframe[0].value.to_dict("records")
    assert [row["outcome"] for row in rows] == ["refused", "error"]
    assert rows[0]["cost"] != rows[1]["cost"] == "$0 (free)" and rows[1]["tokens"] == 0


def test_attempts_with_outcome_and_waits(home: Home) -> None:
    view = load_run(home, wide_run(home, 200))
    page = open_tab(run_page(WIDE, named(view, "sub_call", 73).span_id), "Attempts")
    rows = page.dataframe[0].value.to_dict("records")
    assert [row["outcome"] for row in rows] == ["error", "ok"]
    assert (rows[0]["error"], rows[0]["Retry-After"]) == ("rate_limit", "2.0 s")
    assert rows[0]["message"] == "the server asked to wait"


def test_a_root_call_with_its_messages(home: Home) -> None:
    view = load_run(home, wide_run(home, 120, batch=20))
    page = open_tab(run_page(WIDE, named(view, "root_call", 1).span_id), "Messages")
    labels = [box.label for box in page.expander]
    assert labels == ["1. user, 14 characters", "2. user, 14 characters"]
    assert page.code[-1].value == "Turn 1: go on."


def test_a_cell_with_code_output_and_variables(home: Home) -> None:
    with recording(home) as made:
        cell = made.recorder.start("cell", sc.NAME_CELL, None, {sc.CELL: 0})
        cell.text(sc.CODE, "print(x)")
        cell.text(sc.STDOUT, "all of it")
        cell.text(sc.STDOUT_SHOWN, "a part")
        cell.text(sc.EXCEPTION, "Traceback: no")
        cell.text(
            sc.VARIABLES, as_json([{"name": "x", "type": "int", "size": 1, "change": "new", "preview": "3"}])
        )
        cell.end("error", {sc.STDOUT_TRUE_CHARS: 5_000, sc.ERROR_TYPE: "ValueError", sc.ERROR_MESSAGE: "no"})
    page = run_page(WIDE)
    assert tabs(page) == ["Exception", "Code", "Output", "Variables", "Facts", "Raw"]
    assert [code.value for code in page.code][-1] == "Traceback: no"
    open_tab(page, "Output")
    assert [code.value for code in page.code][-2:] == ["all of it", "a part"]
    assert "The cell printed 5,000 characters; 9 of them were kept." in texts(page)
    open_tab(page, "Variables")
    assert page.dataframe[0].value.to_dict("records") == [
        {"name": "x", "type": "int", "size": 1, "change": "new", "preview": "3"}
    ]


def test_output_that_was_shown_whole_is_not_shown_twice(home: Home) -> None:
    view = load_run(home, wide_run(home, 60))
    page = open_tab(run_page(WIDE, named(view, "cell").span_id), "Output")
    assert "The root was shown all of it." in [caption.value for caption in page.caption]
    assert [code.value for code in page.code][2:] == ["27\n"]


LETTER = "Dear Sir,\nthe crane <b>fell</b> over."


def asked_about_a_letter(home: Home, value: object, *, corpus_id: str | None = None) -> str:
    """A recorded sub-call with these source ranges in a corpus of one letter; returns the span id."""
    corpus = Corpus.from_texts({"letters/a.txt": LETTER}, home.corpora)
    with recording(home) as made:
        facts = {sc.CORPUS_ID: corpus_id or corpus.corpus_id}
        run = made.recorder.start("run", sc.NAME_RUN, None, facts)
        run.text(sc.CORPUS, corpus.record_json())
        call = made.recorder.start("sub_call", "chat s", run, {})
        call.end("ok", {sc.SOURCE_RANGES: as_json(value)})
        run.end()
    return call.span_id


def test_sources_with_their_passages(home: Home) -> None:
    ranges, places = [[0, 10, 37], [7, 0, 5]], ["page 3", None]
    value = {"how": "located", "ranges": ranges, "places": places, "also": [2, 0], "left_out": 4}
    page = open_tab(run_page(WIDE, asked_about_a_letter(home, value)), "Sources")
    assert {
        "The prompt holds these passages of the corpus, word for word; a search found them.",
        "4 shorter passages are not listed.",
    } <= set(texts(page))
    first, second = rows_with(page, "Passage")
    assert (first["Passage"], first["Document"], first["Place"]) == ("Open 1", "letters/a.txt", "page 3")
    assert (first["Bytes"], first["Also in"], first["Text"]) == ("10 to 37", "2", LETTER[10:])
    assert (second["Passage"], second["Document"]) == ("2", "document 7")
    assert "there are no bytes 0 to 5" in second["Text"]
    assert [code.value for code in page.code][-1] == LETTER[10:]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"how": "none", "ranges": [], "places": []},
            "Not verbatim: no passage of the corpus stands in this",
        ),
        ({"how": "not_searched", "ranges": []}, "Why: the code built this prompt from texts of its own."),
        ({"how": "not_searched", "why": "the run ended before"}, "Why: the run ended before."),
        (
            {"how": "reference", "ranges": [[0, 0, 4]], "why": "the run ended before"},
            "Some text of the prompt was not searched for: the run ended before.",
        ),
        ({"how": "located", "ranges": [[0, 4, 0], [0], "x"]}, "3 entries of the record cannot be used."),
    ],
)
def test_what_is_known_about_sources(home: Home, value: object, words: str) -> None:
    page = open_tab(run_page(WIDE, asked_about_a_letter(home, value)), "Sources")
    assert any(text.startswith(words) for text in texts(page))


@pytest.mark.parametrize(("corpus_id", "change"), [("0" * 16, False), (None, True)])
def test_a_passage_that_cannot_be_read_any_more(home: Home, corpus_id: str | None, change: bool) -> None:
    value = {"how": "reference", "ranges": [[0, 0, 4]], "places": [None]}
    span_id = asked_about_a_letter(home, value, corpus_id=corpus_id)
    if change:
        (file,) = home.corpora.glob("*/texts/*.txt")
        file.write_text("shorter")
    (row,) = rows_with(open_tab(run_page(WIDE, span_id), "Sources"), "Passage")
    assert row["Passage"] == "1"  # and no link
    text = row["Text"]
    assert ("has changed since it was added" if change else "the corpus of this run is not here") in text


def test_the_documents_of_a_run(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        documents = [{"name": "a.txt", "chars": 7, "problems": ["cut", "odd"]}, {"name": "b.txt"}]
        run.text(sc.CORPUS, json.dumps({"documents": documents}))
        run.end()
    frame = open_tab(run_page(WIDE), "Documents").dataframe[0].value
    assert frame["document"].tolist() == ["a.txt", "b.txt"]
    assert (frame["characters"][0], frame["problems"][0]) == (7, "cut; odd")


@pytest.mark.parametrize("table", ["[]", "{}", "nonsense", '{"documents": 3}', '{"documents": [3]}', "null"])
def test_a_document_table_that_is_none(home: Home, table: str) -> None:
    with recording(home) as made:
        made.recorder.start("run", sc.NAME_RUN, None, {}).text(sc.CORPUS, table)
    assert tabs(run_page(WIDE)) == ["Raw"]


def test_raw_attributes_are_exact(home: Home) -> None:
    with recording(home) as made:
        made.recorder.start("cell", sc.NAME_CELL, None, {"odd.number": 2**60}).end()
    page = open_tab(run_page(WIDE), "Raw")
    assert json.loads(page.code[-1].value)["odd.number"] == 2**60


def test_a_batch_and_an_iteration_list_what_is_inside(home: Home) -> None:
    view = load_run(home, wide_run(home, 60))
    frame = run_page(WIDE, named(view, "batch").span_id).dataframe[0].value
    assert frame["outcome"].value_counts().to_dict() == {"ok": 26, "error": 1}
    inside = run_page(WIDE, named(view, "iteration").span_id).dataframe[0].value
    assert inside["span"].tolist() == ["root call", "cell 0"]


def test_a_payload_that_is_missing_is_named(home: Home) -> None:
    with recording(home) as made:
        named_only = {sc.RESPONSE + ".sha256": "0" * 64}
        made.recorder.start("sub_call", "chat s", None, named_only).end()
    assert "Not in the record, though the span names it: response." in texts(run_page(WIDE))


def test_odd_structures_are_shown_and_break_nothing(home: Home) -> None:
    forms: list[Callable[[str], str]] = [as_json, str]
    for number, form in enumerate(forms):
        with recording(home, f"20270115T080000-0000000{number}") as made:
            cell = made.recorder.start("cell", sc.NAME_CELL, None, {})
            cell.text(sc.VARIABLES, form("not a list"))
            cell.end(
                "ok", {sc.FINDINGS: form("odd"), sc.SOURCE_RANGES: form("odd"), sc.STDOUT_TRUE_CHARS: "many"}
            )
        page = run_page(made.run_id)
        for tab in tabs(page):
            open_tab(page, tab)


def test_what_a_call_cost_is_worked_out_before_the_reader(home: Home) -> None:
    price = {"model": "test/sub", "source": "user", "input_per_mtok": "3", "output_per_mtok": "15"}
    paid = {sc.USAGE_INPUT: 100, sc.USAGE_OUTPUT: 10, sc.COST_USD: "0.00045", sc.COST_STATUS: "priced"}
    with recording(home) as made:
        call = made.recorder.start("sub_call", "chat test/sub", None, {sc.REQUEST_MODEL: "test/sub"})
        call.end("ok", {**paid, sc.COST_PRICE: as_json(price)})
    lines = open_tab(run_page(WIDE), "Cost").code[-1].value.splitlines()
    assert lines[1:4] == [
        "  input       100 tokens x $3 per million = $0.0003",
        "  output      10 tokens x $15 per million = $0.00015",
        "cost: $0.00045 (priced)",
    ]


def test_everything_recorded_of_a_cell_has_a_place(home: Home) -> None:
    with recording(home) as made:
        cell = made.recorder.start("cell", sc.NAME_CELL, None, {sc.CODE_HOW: "fence"})
        cell.text(sc.NATIVE_OUTPUT, "segfault")
        names = {sc.NAMES_READ: ["a"], sc.NAMES_WRITTEN: ["b", "c"], sc.LOST_NAMES: ["d"]}
        cell.end("ok", {key: as_json(value) for key, value in names.items()})
    page = run_page(WIDE)
    assert tabs(page) == ["Output", "Variables", "Facts", "Raw"]
    assert page.code[-1].value == "segfault"
    open_tab(page, "Variables")
    assert {"a", "b, c", "d", "Names lost with its process"} <= {
        *texts(page),
        *(c.value for c in page.caption),
    }
    facts_shown = open_tab(page, "Facts").dataframe[0].value.set_index("fact")["value"]
    assert facts_shown["code.how"] == "fence" and len(facts_shown["sha256 of native_output"]) == 64


def test_what_a_parent_took_stands_above_its_calls(home: Home) -> None:
    view = load_run(home, wide_run(home, 60))
    page = facts(run_page(WIDE, named(view, "batch").span_id))
    assert page["Sub-calls below"] == "27 (26 ok, 1 error)"
    assert page["Tokens below"] == "3,120 in, 234 out"
    assert page["Cost below"] == "at least $0.001092"


def test_the_next_suspect(home: Home) -> None:
    view = load_run(home, wide_run(home, 200))
    page = press(run_page(WIDE), "Next suspect")
    assert chosen(page) == named(view, "sub_call", 17).span_id
    assert chosen(press(page, "Next suspect")) == named(view, "sub_call", 42).span_id


def test_what_speaks_against_a_call_is_said_once(home: Home) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        for slot, reply in enumerate(("It is 77.", "")):
            call = made.recorder.start("sub_call", "chat s", run, {sc.CALL_INDEX: slot})
            call.text(sc.PROMPT, "How many?")
            call.text(sc.RESPONSE, reply)
            call.end("ok", {sc.FINISH_REASONS: '["length"]' if reply else '["stop"]'})
    view = load_run(home, WIDE)
    signs = [
        [text for text in texts(run_page(WIDE, named(view, "sub_call", n).span_id)) if "cut off" in text]
        for n in (0, 1)
    ]
    assert [len(each) for each in signs] == [1, 0]


def test_a_long_text_is_searched_whole(home: Home) -> None:
    run_id = long_run(home, orders=4_000)
    page = open_tab(run_page(run_id, named(load_run(home, run_id), "sub_call").span_id), "Prompt")
    look_for(page, NEEDLE.upper())
    assert place(page).startswith("Place 1 of 4 places, at character")
    assert place(press(page, "Next place")).startswith("Place 2 of 4")
    assert place(press(press(page, "Previous place"), "Previous place")).startswith("Place 4 of 4")
    look_for(page, "nowhere at all")
    assert "These words do not stand in this text." in texts(page)


def look_for(page: AppTest, words: str) -> None:
    """Type words into the field of a long text."""
    next(each for each in page.text_input if each.label == "Find in this text").set_value(words)
    looked_at(page)


def place(page: AppTest) -> str:
    """Which of the places is shown."""
    return next(each.value for each in page.caption if each.value.startswith("Place "))


def test_what_a_run_was_searched_for_is_found_in_its_texts(home: Home) -> None:
    run_id = long_run(home, orders=4_000)
    page = run_page(run_id, named(load_run(home, run_id), "sub_call").span_id)
    page.query_params["q"] = "line 3999"
    assert place(open_tab(page, "Prompt")).startswith("Place 1 of 1 place,")


def test_places_are_found_whatever_stands_in_the_words() -> None:
    assert places_of("a.b A.B a+b", "a.b") == [(0, 3), (4, 7)]
    assert places_of("two\n words", "two words") == [(0, 10)]
    assert places_of("text", "  ") == []
    assert len(places_of("x" * 20_000, "x")) == 10_000
