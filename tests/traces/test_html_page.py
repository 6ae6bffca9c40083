"""A run as an HTML page: what it says and leaves out, and that no text of a run is more than text in it."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from rlm_core.telemetry import as_json
from tests.support.html_pages import facts, page_of
from tests.support.recorded_runs import WIDE, recording, wide_run
from traces.exporters import export_runs, html_data
from traces.exporters.html import export
from traces.home import Home
from traces.importers.foreign import ForeignRun, ForeignSpan, TokenUse, known_wrong, reported
from traces.importers.writing import write_run
from traces.reading import load_run

KEY = "sk-proj-" + "Ab3dEf6hIj9" * 3
HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> \u2028 \u202egnirts ]]>"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


def small_run(home: Home, *, prompt: str = "p", reply: str = "r", question: str = "q") -> str:
    """A run of one sub-call."""
    with recording(home) as made:
        start = made.recorder.start
        run = start("run", sc.NAME_RUN, None, {})
        run.text(sc.QUESTION, question)
        cell = start("cell", sc.NAME_CELL, run, {sc.CELL: 0})
        call = start("sub_call", "chat m", cell, {sc.REQUEST_MODEL: "m", sc.CALL_INDEX: 0})
        call.text(sc.PROMPT, prompt)
        call.text(sc.RESPONSE, reply)
        call.end("ok", {sc.PREVIEW: reply[:200]})
        cell.end()
        run.text(sc.ANSWER, reply)
        run.end()
        made.close("ok")
    return WIDE


# -- what stands in it


def test_tree_figures_and_texts_are_those_of_the_run(home: Home, tmp_path: Path) -> None:
    page = page_of(home, wide_run(home, 200), tmp_path / "run.html")
    assert [row["label"] for row in page.rows[:4]] == [
        "run",
        "iteration 0 Decompose",
        "root call",
        "cell 0 Decompose",
    ]
    fan_out = page.rows[4]
    assert (fan_out["label"], fan_out["fan"]) == ("97 x llm_query: 95 ok, 1 empty, 1 error", 1)
    assert [(row["label"], row["note"]) for row in page.rows if row["bad"]] == [
        ("llm_query 17", "server: the server answered with status 500"),
        ("llm_query 42", "empty reply"),
    ]
    call = page.span("sub call", 2)
    assert page.shown(call) == {
        "Prompt": "Does document 0 mention a refund? Answer yes or no, then quote the passage.",
        "Reply": "yes: “refund of order 0”",
    }
    figures = facts(call)
    assert [figures[name] for name in ("Model", "Tokens in", "Tokens out", "Cost")] == [
        ["test/sub"],
        ["120"],
        ["9"],
        ["$0.000042"],
    ]
    root = page.span("root call")
    assert [(role, page.texts[number]) for role, number in root["messages"]] == [("user", "Turn 0: go on.")]
    assert facts(page.span("cell"))["Sub-calls below"] == ["97 (95 ok, 1 empty, 1 error)"]


def test_without_its_script_it_says_question_answer_totals_and_iterations(home: Home, tmp_path: Path) -> None:
    bare = page_of(home, wide_run(home, 200), tmp_path / "run.html").bare
    for shown in (
        "<h1 dir=auto>Which documents mention a refund?</h1>",
        "Seventeen documents.</pre>",
        "<dt>Sub-calls</dt><dd>97 (1 failed)</dd>",
        "<dt>Cost</dt><dd>at least $0.016332</dd>",
        "<dt>Started</dt><dd>2027-01-15 08:00:00 UTC</dd>",
        "<td>0</td><td></td><td class=number>1</td><td class=number>97</td><td class=number>1</td>",
    ):
        assert shown in bare, shown


def test_sentences_on_a_record_beyond_those_shown_are_counted(home: Home, tmp_path: Path) -> None:
    lacks = [f"Part {number} is not told." for number in range(40)]
    run = ForeignRun("dspy", "dspy 3", "k", ForeignSpan("run"), missing=lacks, problems=["Lines lost: 2."])
    bare = page_of(home, write_run(home, run, "log.json", 0).run_id, tmp_path / "run.html").bare
    assert bare.count("is not told.</li>") == 29 and "<li>and 11 more</li>" in bare
    assert "<li>Lines lost: 2.</li>" in bare


def test_its_spans_are_as_many_as_the_record_holds(home: Home, tmp_path: Path) -> None:
    run_id = wide_run(home, 200)
    page = page_of(home, run_id, tmp_path / "run.html")
    shown = [row["id"] for row in page.rows if row["id"]] + [
        row["attempt"] for row in page.rows if row["attempt"]
    ]
    assert len(shown) == len(set(shown)) == load_run(home, run_id).summary.spans


def test_the_table_of_iterations_counts_child_runs_apart_and_names_the_forced_turn(
    home: Home, tmp_path: Path
) -> None:
    inner = ForeignSpan(
        "iteration",
        children=[ForeignSpan("root_call"), ForeignSpan("cell", children=[ForeignSpan("sub_call")])],
    )
    cell = ForeignSpan("cell", children=[ForeignSpan("run", children=[inner]), ForeignSpan("sub_call")])
    turns = [ForeignSpan("iteration", children=[ForeignSpan("root_call"), cell])]
    turns += [ForeignSpan("iteration", attributes={sc.FORCED: True}, children=[ForeignSpan("root_call")])]
    run = ForeignRun("rlms", "rlms", "k", ForeignSpan("run", texts={sc.QUESTION: "q"}, children=turns))
    page = page_of(home, write_run(home, run, "log.jsonl", 0).run_id, tmp_path / "run.html")
    for shown in (
        "<dt>Iterations</dt><dd>1</dd>",
        "<dt>Child runs</dt><dd>1</dd>",
        "<dt>Sub-calls</dt><dd>2</dd>",
        "<th class=number>Cells</th>\n<th class=number>Child runs</th>\n<th class=number>Sub-calls</th>",
        "<td class=number>1</td><td class=number>1</td><td class=number>2</td>",
        "<td>1, forced</td><td></td><td class=number>0</td><td class=number>0</td><td class=number>0</td>",
    ):
        assert shown in page.bare, shown
    assert "iteration 1 forced answer" in [row["label"] for row in page.rows]


def test_calls_that_a_limit_refused_are_not_counted_as_made(home: Home, tmp_path: Path) -> None:
    with recording(home) as made:
        start = made.recorder.start
        run = start("run", sc.NAME_RUN, None, {})
        turn = start("iteration", sc.NAME_ITERATION, run, {sc.ITERATION: 0})
        cell = start("cell", sc.NAME_CELL, turn, {sc.CELL: 0})
        for number in range(3):
            call = start("sub_call", "chat m", cell, {sc.REQUEST_MODEL: "m", sc.CALL_INDEX: number})
            if number:
                call.end("error", {sc.ERROR_TYPE: "budget", sc.COST_STATUS: "free"})
            else:
                call.end("ok", {sc.USAGE_INPUT: 1, sc.USAGE_OUTPUT: 1})
        for span in (cell, turn, run):
            span.end()
        made.close("ok")
    page = page_of(home, WIDE, tmp_path / "run.html")
    assert "<dd>1; 2 refused by a limit</dd>" in page.bare
    assert "<td class=number>1; 2 refused by a limit</td><td class=number>0</td>" in page.bare
    assert facts(page.span("cell"))["Sub-calls below"] == ["1 (1 ok); 2 refused by a limit"]
    assert [row["status"] for row in page.rows if row["label"].startswith("llm_query")] == [
        "ok",
        "refused",
        "refused",
    ]
    assert not {"Tokens", "Tokens in", "Cost"} & set(facts(page.span("sub call", 1)))
    assert not any(row["bad"] for row in page.rows)


def test_a_run_whose_process_ended_says_so(home: Home, tmp_path: Path) -> None:
    with recording(home) as made:
        made.recorder.start("run", sc.NAME_RUN, None, {})
        found = home.spool_file(WIDE).read_bytes()
    home.spool_file(WIDE).write_bytes(found)
    page = page_of(home, WIDE, tmp_path / "run.html")
    assert "<dt>Ended by</dt><dd>the end of its process</dd>" in page.bare


def test_numbers_of_another_engine_say_how_far_they_can_be_trusted(home: Home, tmp_path: Path) -> None:
    calls = [
        ForeignSpan("sub_call", model="m", texts={sc.PROMPT: "a"}, tokens=reported(TokenUse(10, 3))),
        ForeignSpan("sub_call", model="m", tokens=known_wrong(TokenUse(9, 9), "one usage for two calls")),
    ]
    cell = ForeignSpan("cell", texts={sc.CODE: "x"}, seconds=reported(2.0), children=calls)
    top = ForeignSpan("run", texts={sc.QUESTION: "q"}, children=[ForeignSpan("iteration", children=[cell])])
    run = ForeignRun("rlms", "rlms 0.1.3", "k", top, "m", "m", ["when the run began"])
    page = page_of(home, write_run(home, run, "log.jsonl", 0).run_id, tmp_path / "run.html")
    assert facts(page.span("sub call"))["Tokens in"] == ["10", "reported"]
    wrong = facts(page.span("sub call", 1))["Tokens"]
    assert wrong == ["unknown", "known to be wrong", "one usage for two calls"]
    assert facts(page.span("cell"))["Time"] == ["2.0 s", "reported"]
    assert facts(page.span("run"))["Time"] == ["unknown", "not in the record"]
    assert "<dd>at least 10 in, 3 out</dd>" in page.bare
    assert "imported: rlms" in page.bare and "Read from log.jsonl, a record of rlms 0.1.3." in page.bare
    assert "<li>when the run began</li>" in page.bare
    assert {row["time"] for row in page.rows if row["label"].startswith("llm_query")} == {"?"}


def test_the_page_of_an_engine_that_records_no_sub_calls_does_not_count_0(home: Home, tmp_path: Path) -> None:
    run = ForeignRun("dspy", "dspy 3", "k", ForeignSpan("run", texts={sc.QUESTION: "q"}))
    bare = page_of(home, write_run(home, run, "log.json", 0).run_id, tmp_path / "run.html").bare
    assert "<dt>Sub-calls</dt><dd>none on record</dd>" in bare
    turn = ForeignSpan("iteration", children=[ForeignSpan("root_call"), ForeignSpan("cell")])
    run = ForeignRun("dspy", "dspy 3", "k", ForeignSpan("run", texts={sc.QUESTION: "r"}, children=[turn]))
    page = page_of(home, write_run(home, run, "log.json", 0).run_id, tmp_path / "turn.html")
    assert "Sub-calls below" not in facts(page.span("run"))


def test_a_text_that_the_record_lost_is_named_as_missing(home: Home, tmp_path: Path) -> None:
    small_run(home, prompt="the prompt that goes")
    spool = home.spool_file(WIDE)
    lines = spool.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"the prompt that goes"' not in line or b'"sha256"' not in line]
    assert len(kept) < len(lines)
    spool.write_bytes(b"".join(kept))
    page = page_of(home, WIDE, tmp_path / "run.html")
    assert page.shown(page.span("sub call"))["Prompt"] is None


# -- texts are only texts


def test_no_text_of_a_run_is_markup(home: Home, tmp_path: Path) -> None:
    page = page_of(
        home, small_run(home, prompt=HOSTILE, reply=HOSTILE, question=HOSTILE), tmp_path / "r.html"
    )
    inner = page.bare.split("<body>")[1]
    tags = set(re.findall(r"<(\w+)", re.sub(r"<script>.*</script>", "<script>", inner, flags=re.DOTALL)))
    assert tags <= {
        *("main", "header", "p", "span", "code", "h1", "section", "pre", "dl", "div", "dt", "dd"),
        *("footer", "script", "details", "summary"),
    }
    assert "alert(1)" in inner and "<img" not in inner and "<!--" not in page.text.split("<body>")[1]
    shown = page.shown(page.span("sub call"))
    assert shown["Prompt"] == HOSTILE.replace("\u2028", "\\u2028").replace("\u202e", "\\u202e")
    assert "\u2028" not in page.text and "\u202e" not in page.text


def test_the_policy_lets_only_the_pages_own_script_and_style_work(home: Home, tmp_path: Path) -> None:
    page = page_of(home, small_run(home), tmp_path / "run.html")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page.text)
    (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    digest = {
        name: "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in {"script": script, "style": style}.items()
    }
    assert policy == (
        f"default-src 'none'; script-src '{digest['script']}'; style-src '{digest['style']}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert re.findall(r"https?://|\bsrc=|\bhref=|url\(|@import|innerHTML", page.text) == []


def test_a_key_is_nowhere_in_the_page_not_even_a_part_of_it(home: Home, tmp_path: Path) -> None:
    reply = "x" * 180 + " " + KEY  # a preview ends within the key
    small_run(home, prompt=f"use {KEY}", reply=reply, question=f"why {KEY}?")
    done = export(home, (WIDE,), tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text("utf-8")
    assert KEY[:14] not in text and text.count("[redacted]") >= 4
    assert done.redacted >= 3 and "What looks like a key was taken out in" in text


# -- bounds


def test_of_a_very_long_text_the_middle_is_left_out_and_said(home: Home, tmp_path: Path) -> None:
    small_run(home, prompt="y" * 1_000_000)
    done = export(home, (WIDE,), tmp_path / "run.html")
    assert done.notes == (
        f"{WIDE}: 1 text of more than 400,000 characters: the middle is left out of the page.",
    )
    assert (tmp_path / "run.html").stat().st_size < 500_000
    assert "… 600,000 characters left out …" in (tmp_path / "run.html").read_text("utf-8")


def test_texts_beyond_what_a_browser_opens_are_counted_not_written(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_data.Texts.scripts, "__defaults__", (100,))
    small_run(home, prompt="z" * 80, reply="w" * 90)
    done = export(home, (WIDE,), tmp_path / "run.html")
    assert done.notes == (f"{WIDE}: 1 text left out: the page would be too large for a browser.",)


def test_spans_below_each_other_a_thousand_times(home: Home, tmp_path: Path) -> None:
    with recording(home) as made:
        span = made.recorder.start("run", sc.NAME_RUN, None, {})
        for _ in range(2_000):
            span = made.recorder.start("cell", sc.NAME_CELL, span, {})
        made.close("ok")
    page = page_of(home, WIDE, tmp_path / "run.html")
    assert [row["level"] for row in page.rows] == list(range(2_001))


# -- files


def test_several_runs_are_a_folder_of_pages(home: Home, tmp_path: Path) -> None:
    runs = [wide_run(home, 20, f"20270115T080000-0000000{number}") for number in (1, 2)]
    done = export_runs("html", home, runs, tmp_path / "pages")
    assert sorted(path.name for path in done.path.iterdir()) == [f"{run_id}.html" for run_id in runs]
    assert all("Seventeen documents." in path.read_text("utf-8") for path in done.path.iterdir())


def test_a_place_that_is_taken_and_a_run_that_is_not_there(home: Home, tmp_path: Path) -> None:
    small_run(home)
    out = tmp_path / "run.html"
    out.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        export(home, (WIDE,), out)
    with pytest.raises(InputError, match="There is no run"):
        export(home, ("20270115T080000-ffffffff",), tmp_path / "other.html")
    assert out.read_text() == "mine" and not (tmp_path / "other.html").exists()


def test_a_run_that_goes_on_is_written_as_far_as_it_came(home: Home, tmp_path: Path) -> None:
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        run.text(sc.QUESTION, "q")
        facts_ = {sc.REQUEST_MODEL: "m", sc.MESSAGES_ADDED: as_json([])}
        made.recorder.start("root_call", "chat m", run, facts_)
        done = export(home, (WIDE,), tmp_path / "run.html")
        run.end()
        made.close("ok")
    assert done.notes == (f"{WIDE} still goes on: what is on record so far was written.",)
    assert "The run went on when this page was written." in (tmp_path / "run.html").read_text("utf-8")
