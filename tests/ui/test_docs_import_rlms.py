"""What ui/docs/import-rlms.md says is run on the logs that rlms made, and on runs of this engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from tests.support.command import ROOT
from tests.support.rlms_pair import LOG, OURS, asked_here
from tests.support.rlms_pair import pair as both
from traces.home import Home
from traces.importers import rlms
from traces.reading import load_run
from traces.rows import SpanRow
from traces.view import RunView

PAGE = (ROOT / "ui" / "docs" / "import-rlms.md").read_text(encoding="utf-8")
KEY = "sk-proj-0123456789abcdefghijklmn"


@pytest.fixture
def pair(home: Home) -> list[str]:
    """The ids of the runs of the log, and of the same question asked here."""
    return both(home)


def told(view: RunView) -> list[tuple[Any, ...]]:
    """What a log of rlms has a place for, span by span."""
    return [_told(view, span) for span in view.spans if span.kind not in ("attempt", "tool")]


def _told(view: RunView, span: SpanRow) -> tuple[Any, ...]:
    prefixes = (sc.QUESTION, sc.ANSWER, sc.CODE, sc.STDOUT, sc.EXCEPTION, sc.PROMPT, sc.RESPONSE)
    hashes = [span.attributes.get(prefix + ".sha256") for prefix in prefixes]
    place = (span.kind, span.depth, span.iteration, span.cell, span.call_index, span.status)
    timed = span.kind in ("iteration", "cell", "sub_call") and span.seconds is not None
    seconds = round(span.seconds or 0, 4) if timed else None
    facts = (span.attributes.get(key) for key in (sc.MESSAGES_PRIOR, sc.MESSAGES_ADDED, sc.ANSWER_CELL))
    own = (span.model, span.tokens, span.cost_usd) if span.kind.endswith("_call") else ()
    return (*place, seconds, *own, *facts, *(view.payload(str(sha256)) for sha256 in hashes))


def test_a_log_is_imported_by_the_command_and_shown(call: Callable[..., Any]) -> None:
    assert f"$ rlmscope import {LOG.name}" in PAGE
    done = call("import", str(LOG))
    assert done.code == 0 and "rlms: How many days was the pump down?" in done.out
    for run in call("import", str(LOG), "--json").json:
        assert run["format"] == "rlms" and not run["new"]
        shown = call("show", run["run_id"], "--json").json
        assert {span["kind"] for span in shown["spans"]} >= {"run", "iteration", "root_call", "cell", "batch"}
        assert all(span["trust"] is not None for span in shown["spans"])
        assert any(span["trust"].get("tokens") == "known_wrong" for span in shown["spans"])


def test_the_same_question_of_both_engines_aligns(call: Callable[..., Any], pair: list[str]) -> None:
    """All that both did is matched; what differs is one reply, and the call that rlms did not log."""
    theirs, _, ours = pair
    diff = call("diff", theirs, ours, "--json").json
    rows = [row for row in diff["rows"] if row["kind"] != "attempt"]
    calls = [row for row in rows if row["kind"] == "sub_call"]
    assert [row["matched"] for row in calls] == ["prompt", "prompt", None, "prompt", "prompt", "prompt"]
    assert {row["matched"] for row in rows if row["kind"] in ("iteration", "cell")} == {"code"}
    assert [row["kind"] for row in rows if row["a"] is None] == ["sub_call"]
    assert [row["b"] for row in rows if row["b"] is None] == []
    (began,) = diff["frontier"]
    assert (began["kind"], began["changed"]) == ("sub_call", ["response"])
    asked = call("span", theirs, began["a"], "--json").json
    assert (asked["prompt"], asked["model"]) == ("Late?", "small")
    assert call("span", ours, began["b"], "--json").json["model"] == "openai/small"
    assert any("corpus is unknown" in note for note in diff["notes"])
    assert not any("different" in note for note in diff["notes"])
    assert diff["plan"] is None and diff["answers"]["same"] is True


def test_a_run_leaves_as_a_log_of_rlms_and_comes_back_the_same(
    call: Callable[..., Any], pair: list[str], home: Home, tmp_path: Path
) -> None:
    assert "$ rlmscope export RUN --format rlms --out run.rlms.jsonl" in PAGE
    for run_id in pair:
        out = tmp_path / f"{run_id}.jsonl"
        done = call("export", run_id, "--format", "rlms", "--out", str(out), "--json").json
        assert done["runs"] == [run_id] and "no place for attempts" in done["notes"][0]
        (back,) = call("import", str(out), "--json").json
        before, after = load_run(home, run_id), load_run(home, back["run_id"])
        assert told(after) == told(before)
        assert after.summary.question == before.summary.question and back["problems"] == []
    assert back["engine"] == "rlmscope" and rlms.NO_ROOT_USAGE not in back["missing"]


def test_a_log_of_rlms_has_the_keys_that_rlms_writes(
    call: Callable[..., Any], pair: list[str], tmp_path: Path
) -> None:
    """Beside those that it passes over, which the page names."""
    added = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("Eight keys are added") :]))
    out = tmp_path / "ours.jsonl"
    call("export", pair[-1], "--format", "rlms", "--out", str(out))
    theirs, ours = (
        _keys([json.loads(line) for line in path.read_text().splitlines()]) for path in (LOG, out)
    )
    assert {name: keys - theirs[name] for name, keys in ours.items() if keys - theirs[name]} == {
        "metadata": {"root_prompt"},
        "iteration": {"usage_summary"},
        "call": {"batch", "prompt_tokens", "completion_tokens"},
    }
    assert added - {"tokens", "cost"} == {  # what `derived` holds
        "root_prompt",
        "lacks_calls",
        "usage_summary",
        "forced",
        "batch",
        "derived",
        "prompt_tokens",
        "completion_tokens",
    }
    assert all(not theirs[name] - keys for name, keys in ours.items())


def _keys(entries: list[Any]) -> dict[str, set[str]]:
    iterations = [entry for entry in entries if entry["type"] == "iteration"]
    blocks = [block for entry in iterations for block in entry["code_blocks"]]
    calls = [one for block in blocks for one in block["result"]["rlm_calls"]]
    groups = {"metadata": entries[:1], "iteration": iterations, "call": calls}
    groups["result"] = [block["result"] for block in blocks]
    return {name: {key for one in found for key in one} for name, found in groups.items()}


def test_keys_stay_behind_and_several_runs_are_said_to_be_shown_as_one(
    call: Callable[..., Any], home: Home, tmp_path: Path
) -> None:
    asked_here(home, late=f"use {KEY}")
    (other, _) = call("import", str(LOG), "--json").json
    out = tmp_path / "both.jsonl"
    done = call("export", OURS, other["run_id"], "--format", "rlms", "--out", str(out), "--json").json
    assert done["redacted"] >= 1 and KEY not in out.read_text()
    assert any("all runs of a file as one" in note for note in done["notes"])
    back = call("import", str(out), "--json").json
    assert [run["engine"] for run in back] == ["rlmscope", "rlms"]
