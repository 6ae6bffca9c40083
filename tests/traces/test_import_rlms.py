"""Logs of rlms: what was read off them by eye is what their import holds.

The logs were made by running each version (tests/fixtures/logs/rlms/make.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from tests.support.command import ROOT
from traces.home import Home
from traces.importers.importing import Imported, import_paths
from traces.reading import load_run
from traces.rows import SpanRow
from traces.view import RunView

LOGS = ROOT / "tests" / "fixtures" / "logs" / "rlms"

#: level kind[!] model | tokens in/out (~ derived, ? missing, x known wrong) | what was asked -> what came
FIRST_0_1_3 = """
0 run | How many days was the pump down? -> 6
1 iteration
2 root_call root-large | ? | -> Look first, then ask.
2 cell | print(len(context), "documents") -> 3 documents
3 sub_call small | 43/3 | When did it fail? The pump failed on 3 May. -> of 43 characters
2 cell | found = llm_query_batched(["Replaced when? " + context[1], "BROKEN " + context[2], "Cost?"]) -> ['of 59 characters', 'Error: llm() call failed - Error code: 400 - messages must not be empty', 'of 5 characters']
3 batch
4 sub_call small | x5/3 | Replaced when? It was replaced on 9 May by the night shift. -> of 59 characters
4 sub_call small | x5/3 | Cost? -> of 5 characters
1 iteration
2 root_call root-large | ? | -> ```repl
2 cell! | import sys -> careful
3 sub_call small | 5/3 | Late? -> of 5 characters
1 iteration
2 root_call root-large | ? | -> ```repl
2 cell | days = rlm_query("days from 3 May to 9 May") -> 6
3 run root-large | days from 3 May to 9 May -> 6
4 iteration
5 root_call root-large | ? | -> ```repl
5 cell | length = len(context) -> 6
6 sub_call root-large | 7/1 | What is 9 - 3? -> 6
4 iteration
5 root_call root-large | ? | -> ```repl
5 cell | answer["content"] = hint ->
1 iteration
2 root_call root-large | ? | -> ```repl
2 cell | answer["content"] = days ->
"""  # noqa: E501
SECOND_0_1_3 = """
0 run | -> Two parts, as far as I can tell.
1 iteration
2 root_call root-large | ? | -> ```repl
2 cell | both = rlm_query_batched(["part one", "part two"]) -> ['done', 'done']
3 batch
4 run root-large | part one -> done
5 iteration
6 root_call root-large | ~894/16 | -> ```repl
6 cell | answer["content"] = "done" ->
4 run root-large | part two -> done
5 iteration
6 root_call root-large | ~894/16 | -> ```repl
6 cell | answer["content"] = "done" ->
1 iteration
2 root_call root-large | ? | -> ```repl
2 cell | print(rlm_query("FAILS at once")) -> Two parts, as far as I can tell.
3 run root-large | FAILS at once -> Two parts, as far as I can tell.
4 iteration
5 root_call root-large | ? | -> ```repl
5 cell | both = rlm_query_batched(["part one", "part two"]) -> ['of 8 characters', 'of 8 characters']
6 batch
7 sub_call small | 8/3 | part one -> of 8 characters
7 sub_call small | 8/3 | part two -> of 8 characters
4 iteration
5 root_call root-large | ? | -> ```repl
5 cell | print(rlm_query("FAILS at once")) -> Error: LM query failed at max depth - Error code: 400 - messages must not be empty
6 sub_call! small | ? | FAILS at once -> Error: LM query failed at max depth - Error code: 400 - messages must not be empty
4 iteration
5 root_call root-large | ? | -> I still need to look.
4 iteration
5 root_call root-large | ? | -> ```repl
5 cell | del both ->
6 batch
7 sub_call root-large | x7/1 | Short? -> 6
7 sub_call root-large | x7/1 | A longer one? -> 6
4 iteration
5 root_call root-large | ? | -> Two parts, as far as I can tell.
1 iteration
2 root_call root-large | ? | -> I still need to look.
1 iteration
2 root_call root-large | ? | -> ```repl
2 cell | del both ->
3 batch
4 sub_call small | x6/3 | Short? -> of 6 characters
4 sub_call small | x6/3 | A longer one? -> of 13 characters
1 iteration
2 root_call root-large | ? | -> Two parts, as far as I can tell.
"""  # noqa: E501
SHOWN = {
    "run": (sc.QUESTION, sc.ANSWER),
    "cell": (sc.CODE, sc.STDOUT),
    "sub_call": (sc.PROMPT, sc.RESPONSE),
    "root_call": ("", sc.RESPONSE),
}
OWN = ("content", "response", "code", "stdout", "prompt", "final_answer")
INSIDE = ("code_blocks", "result", "rlm_calls", "metadata", "iterations", "prompt")
#: version -> of both runs: question, answer, how it ended, its own turns (a forced answer is none), cells,
#: child runs, sub-calls, failed ones, tokens that count, dollars that count
TABLE: dict[str, list[tuple[Any, ...]]] = {
    "0.1.0": [
        ("How many days was the pump down?", "6", "final", 4, 4, 0, 2, 0, (48, 6), "0"),
        (None, "Two parts, as far as I can tell.", "max_iterations", 4, 3, 0, 2, 0, (0, 0), "0"),
    ],
    "0.1.1": [
        ("How many days was the pump down?", "6", "final", 4, 5, 1, 3, 0, (55, 7), "0.000048"),
        (None, "Two parts, as far as I can tell.", "max_iterations", 4, 6, 3, 7, 1, (16, 6), "0.000016"),
    ],
    "0.1.2": [
        ("How many days was the pump down?", "6", "final", 4, 7, 1, 3, 0, (55, 7), "0.000048"),
        (None, "Two parts, as far as I can tell.", "max_iterations", 4, 8, 3, 7, 1, (1804, 38), "0.000016"),
    ],
    "0.1.3": [
        ("How many days was the pump down?", "6", "final", 4, 7, 1, 5, 0, (55, 7), "0.000048"),
        (None, "Two parts, as far as I can tell.", "max_iterations", 4, 8, 3, 7, 1, (1804, 38), "0.000016"),
    ],
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


def imported(home: Home, path: Path) -> list[Imported]:
    found = import_paths(home, [path])
    assert all(isinstance(one, Imported) for one in found), found
    return [one for one in found if isinstance(one, Imported)]


def views(home: Home, version: str) -> list[RunView]:
    return [load_run(home, one.run_id) for one in imported(home, LOGS / f"rlms_{version}.jsonl")]


def text(view: RunView, span: SpanRow, prefix: str) -> str | None:
    return view.payload(str(span.attributes.get(prefix + ".sha256")))


def tree(view: RunView) -> str:
    """The run as the tables above have it."""
    levels: dict[str, int] = {}
    lines = []
    for span in view.spans:
        level = levels[span.span_id] = levels[span.parent_id] + 1 if span.parent_id else 0
        failed, model = "" if span.status == "ok" else "!", f" {span.model}" if span.model else ""
        head = f"{level} {span.kind}{failed}{model}"
        asked, came = SHOWN.get(span.kind, ("", ""))
        if not came:
            lines.append(head)
            continue
        first = [(text(view, span, prefix) or "").split("\n")[0] for prefix in (asked, came)]
        parts = [head, f"{first[0]} -> {first[1]}".strip()]
        if span.kind.endswith("_call"):
            parts.insert(1, _tokens(span))
        lines.append(" | ".join(parts))
    return "\n" + "\n".join(lines) + "\n"


def _tokens(span: SpanRow) -> str:
    mark, told = span.trusted["tokens"], span.tokens
    if mark == "known_wrong":
        assert span.tokens is None, "known to be wrong and counted"
        raw = json.loads(span.attributes[sc.USAGE_RAW])
        return f"x{raw['input']}/{raw['output']}"
    return "?" if told is None else f"{'~' if mark == 'derived' else ''}{told['input']}/{told['output']}"


def test_the_runs_of_the_newest_version_are_those_of_the_table(home: Home) -> None:
    first, second = views(home, "0.1.3")
    assert tree(first) == FIRST_0_1_3
    assert tree(second) == SECOND_0_1_3


@pytest.mark.parametrize("version", TABLE)
def test_the_runs_of_every_version_add_up_to_the_table(home: Home, version: str) -> None:
    found = []
    for view in views(home, version):
        run, spans = view.summary, view.spans
        kinds = [span.kind for span in spans]
        counts = (run.iterations, kinds.count("cell"), kinds.count("run") - 1)
        calls = (run.sub_calls, run.failed_sub_calls, (run.tokens["input"], run.tokens["output"]))
        usd = format(run.known_usd.normalize(), "f")
        found.append((run.question, run.answer, run.stop_reason, *counts, *calls, usd))
        assert (run.imported_from, run.root_model, run.sub_model) == ("rlms", "root-large", "small")
        assert run.status == "ok" and run.complete and run.forced == (run.stop_reason == "max_iterations")
        assert run.cost_usd is None, "what the root cost is in no log"
    assert found == TABLE[version]


def _said(value: Any) -> list[str]:
    """All texts of a log that are no settings and no variables."""
    if isinstance(value, list):
        return [text for one in value for text in _said(one)]
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in OWN if key in value]
    inside = [value[key] for key in INSIDE if key in value]
    return [one for one in own if isinstance(one, str)] + [text for one in inside for text in _said(one)]


@pytest.mark.parametrize("version", TABLE)
def test_every_text_of_a_log_is_in_the_record(home: Home, version: str) -> None:
    entries = [json.loads(line) for line in (LOGS / f"rlms_{version}.jsonl").read_text().splitlines()]
    wanted = {one for entry in entries for one in _said(entry) if one}
    assert len(wanted) > 30
    texts: set[str] = set()
    for view in views(home, version):
        facts = [item for span in view.spans for item in span.attributes.items()]
        cited = {str(value) for key, value in facts if key.endswith(".sha256")}
        sent = [json.loads(value) for key, value in facts if key == sc.MESSAGES_ADDED]
        cited |= {sha256 for added in sent for _, sha256 in added}
        texts |= set(view.payloads(cited).values())
    printed = {one for one in wanted - texts if not any(kept.startswith(one) for kept in texts)}
    assert printed == set()


def test_an_imported_run_is_not_taken_in_twice_and_says_what_its_log_lacks(home: Home) -> None:
    log = LOGS / "rlms_0.1.3.jsonl"
    first, again = imported(home, log), imported(home, log)
    assert [one.new for one in first] == [True, True] and [one.new for one in again] == [False, False]
    assert [one.run_id for one in first] == [one.run_id for one in again]
    assert first[0].engine == "rlms" and first[0].problems == ()
    lacking = " ".join(first[0].missing)
    for word in ("root calls", "failed", "zone", "batch", "Variables"):
        assert word in lacking, word
    assert "no question" not in lacking and "no question" in " ".join(first[1].missing)


def test_a_log_that_has_grown_names_the_state_that_is_here(home: Home, tmp_path: Path) -> None:
    lines = (LOGS / "rlms_0.1.3.jsonl").read_text("utf-8").splitlines(keepends=True)
    log, done = tmp_path / "log.jsonl", []
    for count in (3, 4, 5, 5):
        log.write_text("".join(lines[:count]), "utf-8")
        done += import_paths(home, [log])
    runs = [one for one in done if isinstance(one, Imported)]
    named = [[state.run_id for state in runs[:3] if state.run_id in " ".join(run.problems)] for run in runs]
    ids = [run.run_id for run in runs]
    assert named == [[], ids[:1], ids[:2], []] and [run.new for run in runs] == [True, True, True, False]
    assert len(runs[2].problems) == 2


def test_each_turn_of_a_child_run_was_sent_what_came_before_it(home: Home) -> None:
    """All turns of a child run cite the messages of its last one in the log."""
    (first, _) = views(home, "0.1.3")
    child = next(span for span in first.spans if span.is_child_run)
    path = child.attributes[sc.RUN_PATH]
    calls = [s for s in first.spans if s.kind == "root_call" and s.attributes[sc.RUN_PATH] == path]
    counts = [
        (call.attributes[sc.MESSAGES_PRIOR], len(json.loads(call.attributes[sc.MESSAGES_ADDED])))
        for call in calls
    ]
    assert counts == [(0, 3), (3, 3)]


def test_times_keep_their_distances_and_say_where_they_come_from(home: Home) -> None:
    (view, _) = views(home, "0.1.3")
    top, *_ = view.spans
    second = [span for span in view.spans if span.kind == "iteration" and span.depth == 0][1]
    cell = next(span for span in view.spans if span.kind == "cell")
    call = next(span for span in view.spans if span.kind == "sub_call")
    # 14:33:45.041100 less 0.08594..., from 14:33:44.954802 less 0.26996...
    assert second.start_ns - top.start_ns == pytest.approx(270_319_306, abs=2_000)
    assert second.seconds == pytest.approx(0.085942581, abs=1e-8)
    assert top.seconds == pytest.approx(1.180729444, abs=1e-8)
    assert cell.start_ns - top.start_ns == pytest.approx(116_992_000, abs=1_000_000)
    assert top.trusted == {"start": "derived", "seconds": "derived"}
    assert "without their zone" in json.loads(top.attributes[sc.TRUST_WHY])["start"]
    assert second.trusted == {"start": "derived", "seconds": "reported"}
    assert call.trusted["start"] == "missing" and call.trusted["seconds"] == "reported"


def test_variables_are_told_as_changes_and_what_was_read_by_length_alone(home: Home) -> None:
    (view, second) = views(home, "0.1.3")
    cells = [span for span in view.spans if span.kind == "cell" and span.depth == 0]
    told = [{row["name"]: row for row in json.loads(text(view, cell, sc.VARIABLES) or "")} for cell in cells]
    assert [sorted(rows) for rows in told[:3]] == [["answer", "context", "context_0", "when"], ["found"], []]
    assert told[0]["context"].keys() == {"name", "hash", "change", "type", "size"}
    assert told[0]["context"]["size"] == 3 and told[0]["when"]["preview"] == "of 43 characters"
    last = [span for span in second.spans if span.kind == "cell" and span.depth == 0][-1]
    changed = {row["name"]: row["change"] for row in json.loads(text(second, last, sc.VARIABLES) or "")}
    assert changed == {"kept": "new", "pair": "new"}, "rlms keeps what code deletes"


def test_a_cell_that_raised_failed_as_its_stderr_says(home: Home) -> None:
    (view, _) = views(home, "0.1.3")
    (cell,) = [span for span in view.spans if span.kind == "cell" and span.status == "error"]
    assert cell.error_type == cell.attributes[sc.EXCEPTION_TYPE] == "ZeroDivisionError"
    assert cell.attributes[sc.ERROR_MESSAGE] == "division by zero"
    assert text(view, cell, sc.EXCEPTION) == "ZeroDivisionError: division by zero"
    assert text(view, cell, sc.STDOUT) == "careful\n"
