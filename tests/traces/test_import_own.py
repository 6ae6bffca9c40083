"""Runs that leave a home and come into another one: the same record, byte for byte, and nothing trusted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core import semconv as sc
from rlm_core.corpora import corpus_folder
from rlm_core.errors import InputError, RecordError
from rlm_core.limits import Limits
from rlm_core.telemetry import as_json, sha256_text
from tests.support.replays import filled, recorded
from tests.traces.records import OTHER, RUN, record_run, recording
from traces.exporters.own import export
from traces.exporters.redaction import Redactor
from traces.exporters.secrets import REDACTED
from traces.home import Home
from traces.importers.importing import Imported, Refused, import_paths
from traces.instrumenting import instrument
from traces.opinions import judge, opinions, tag
from traces.program import read_program
from traces.reading import list_runs, load_run
from traces.replay import Replayer
from traces.resume import continuation
from traces.spool import encode
from traces.upkeep import delete_run

KEY = "sk-abcdefghijklmnop1234567890"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """The home that runs leave."""
    return Home.resolve(tmp_path / "home")


@pytest.fixture
def other(tmp_path: Path) -> Home:
    """The home that they come into."""
    return Home.resolve(tmp_path / "other")


@pytest.fixture
def out(tmp_path: Path) -> Callable[..., Path]:
    """Export runs of a home into a new file."""
    files = (tmp_path / f"{number}.jsonl" for number in range(100))
    return lambda home, *run_ids: export(home, run_ids, next(files)).path


def taken(home: Home, *paths: Path) -> list[Imported]:
    """What came of an import that must succeed."""
    done = import_paths(home, paths)
    assert not [one for one in done if isinstance(one, Refused)], done
    return [one for one in done if isinstance(one, Imported)]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The file with every record as `change` leaves it."""
    listed = lines(path)
    for record in listed:
        change(record)
    made = path.with_name(f"changed-{path.name}")
    made.write_bytes(b"".join(map(encode, listed)))
    return made


Out = Callable[..., Path]


def test_a_record_comes_back_byte_for_byte(home: Home, other: Home, out: Out) -> None:
    record_run(home)
    with recording(home, OTHER) as killed:  # without an end, with texts that JSON holds badly
        span = killed.recorder.start("run", sc.NAME_RUN, None, {"x": 0.1, "y": float("inf")})
        span.text(sc.QUESTION, "\udc80 \ud83d \u2028 \x00 é")
        span.text(sc.ANSWER, "\ud83d\ude00"[:1] + "\ude00")
    first = out(home, RUN, OTHER)
    assert [one.run_id for one in taken(other, first)] == [RUN, OTHER]
    assert out(other, RUN, OTHER).read_bytes() == first.read_bytes()
    for run_id in (RUN, OTHER):
        mine, theirs = load_run(home, run_id), load_run(other, run_id)
        assert [row._asdict() for row in mine.spans] == [row._asdict() for row in theirs.spans]
        assert (mine.summary.status, mine.summary.problems) == (
            theirs.summary.status,
            theirs.summary.problems,
        )
        assert (mine.summary.imported_from, theirs.summary.imported_from) == (None, sc.IMPORT_OWN)
    assert b'"host":null' in first.read_bytes()


def test_what_people_said_comes_along(home: Home, other: Home, out: Out) -> None:
    record_run(home)
    judge(home, RUN, verdict="wrong", expected="43", how="number±0.5", note=f"my key is {KEY}")
    judge(home, RUN, span_id="0000000000000003", verdict="right")
    tag(home, RUN, ["gold", "a b"])
    first = out(home, RUN)
    taken(other, first)
    said = opinions(other)
    assert (said.of(RUN).verdict, said.of(RUN).expected, said.of(RUN).how) == ("wrong", "43", "number±0.5")  # type: ignore[union-attr]
    assert said.of(RUN).note == f"my key is {REDACTED}"  # type: ignore[union-attr]
    assert (list(said.spans(RUN)), said.tags(RUN)) == (["0000000000000003"], ("a b", "gold"))
    assert out(other, RUN).read_bytes() == first.read_bytes()
    judge(other, RUN, verdict="right")
    taken(other, first)  # it is here already: what was said meanwhile stands
    assert opinions(other).of(RUN).verdict == "right"  # type: ignore[union-attr]


def test_keys_do_not_leave_and_what_cites_a_cleaned_text_still_does(
    home: Home, other: Home, out: Out
) -> None:
    with recording(home) as made:
        span = made.recorder.start("run", sc.NAME_RUN, None, {"note": f"token={KEY}"})
        span.text(sc.QUESTION, f"why does {KEY} fail?")
        cited = sha256_text(f"why does {KEY} fail?")
        span.set({sc.MESSAGES_ADDED: as_json([["user", cited]])})
        span.end()
    first = out(home, RUN)
    assert KEY not in first.read_text("utf-8")
    taken(other, first)
    view = load_run(other, RUN)
    facts = view.spans[0].attributes
    clean = f"why does {REDACTED} fail?"
    assert view.payloads({facts[sc.QUESTION + ".sha256"]}) == {sha256_text(clean): clean}
    assert json.loads(facts[sc.MESSAGES_ADDED]) == [["user", sha256_text(clean)]]
    assert view.summary.problems == 0
    assert out(other, RUN).read_bytes() == first.read_bytes()


PARTS = (
    "api_key=",
    KEY,
    "secret: ",
    " ",
    "a1",
    "bearer ",
    "=",
    "\n",
    "x" * 20,
    "-----BEGIN PRIVATE KEY-----",
    *("sk-learn", "hf_", "...", '"preview":"', '","size":', "[redacted]", "x " * 60),
)


@given(st.lists(st.sampled_from(PARTS), max_size=9))
def test_a_clean_text_stays_as_it_is(parts: list[str]) -> None:
    once = Redactor().text("".join(parts))
    assert Redactor().text(once) == once


def test_a_copied_spool_is_taken_in_and_known_again_as_an_export(home: Home, other: Home, out: Out) -> None:
    record_run(home)
    spool, first = home.spool_file(RUN), out(home, RUN)
    assert [one.new for one in taken(other, spool, first)] == [True, False]
    assert out(other, RUN).read_bytes() == first.read_bytes()
    assert [one.new for one in taken(home, spool, first)] == [False, False]
    assert len(list_runs(home)) == 1


def test_another_run_of_the_same_name_gets_a_new_one(home: Home, other: Home, out: Out) -> None:
    record_run(home)
    record_run(other, answer="43")
    (one,) = taken(other, out(home, RUN))
    assert one.new
    assert one.run_id != RUN
    assert load_run(other, one.run_id).summary.answer == "42"
    assert load_run(other, RUN).summary.answer == "43"
    (again,) = taken(other, out(home, RUN))
    assert (again.run_id, again.new) == (one.run_id, False)
    delete_run(other, one.run_id)
    (third,) = taken(other, out(home, RUN))
    assert third.new
    assert third.run_id not in (RUN, one.run_id)


def test_a_deleted_run_comes_back_under_a_new_name(home: Home, out: Out) -> None:
    record_run(home)
    first = out(home, RUN)
    delete_run(home, RUN)
    (one,) = taken(home, first)
    assert one.new
    assert one.run_id != RUN
    assert [run.run_id for run in list_runs(home)] == [one.run_id]


def test_payloads_are_held_against_their_hashes(home: Home, other: Home, out: Out) -> None:
    record_run(home)
    forged = changed(out(home, RUN), lambda record: "text" in record and record.update(text=f"{KEY} forged"))
    (one,) = taken(other, forged)
    assert one.problems == ("6 records are missing, unreadable or do not fit.",)
    assert load_run(other, RUN).summary.problems == 6
    assert KEY not in out(other, RUN).read_text("utf-8")


def test_lines_that_nobody_can_read_still_count(home: Home, other: Home, out: Out) -> None:
    record_run(home)
    data = home.spool_file(RUN).read_bytes().splitlines(keepends=True)
    torn = home.root / "torn.jsonl"
    torn.write_bytes(b"".join([*data[:5], b"{]\n", *data[7:-1], data[-1][:20]]))
    (one,) = taken(other, torn)
    assert one.problems == ("4 records are missing, unreadable or do not fit.",)
    summary = load_run(other, RUN).summary
    assert (summary.status, summary.problems) == ("interrupted", 4)
    home.spool_file(RUN).write_bytes(torn.read_bytes())
    assert load_run(home, RUN).summary.problems == 4  # as where it stood before
    first = out(other, RUN)
    third = Home.resolve(home.root / "third")
    taken(third, first)
    assert load_run(third, RUN).summary.problems == 4
    assert out(third, RUN).read_bytes() == first.read_bytes()


def test_a_spool_without_its_beginning_is_brought_along_too(home: Home, other: Home) -> None:
    record_run(home)
    rest = home.root / "rest.jsonl"
    rest.write_bytes(b"".join(home.spool_file(RUN).read_bytes().splitlines(keepends=True)[1:]))
    (one,) = taken(other, rest)
    assert one.problems[0] == "The first record of the run is missing."
    view = load_run(other, one.run_id)
    assert (view.summary.imported_from, view.summary.answer) == (sc.IMPORT_OWN, "42")
    assert view.summary.problems == 1


@pytest.mark.parametrize("kept", [slice(None, None, -1), slice(-2, None)])
def test_lines_in_another_order_and_the_last_ones_alone_make_no_run(
    home: Home, other: Home, out: Out, tmp_path: Path, kept: slice
) -> None:
    record_run(home)
    envelope, *records = out(home, RUN).read_text("utf-8").splitlines()
    file = tmp_path / "turned.jsonl"
    file.write_text("\n".join([envelope, *records[kept]]), "utf-8")
    (refused,) = import_paths(other, [file])
    assert isinstance(refused, Refused) and "stand in another order than they were written in" in refused.why
    assert not list_runs(other)


def test_lines_in_another_order_behind_the_first_are_put_in_order(
    home: Home, other: Home, out: Out, tmp_path: Path
) -> None:
    record_run(home)
    usual = out(home, RUN)
    envelope, first, *records = usual.read_bytes().splitlines(keepends=True)
    file = tmp_path / "turned.jsonl"
    file.write_bytes(b"".join([envelope, first, *records[::-1]]))
    (one,) = taken(other, file)
    assert one.problems == (
        "Its lines do not stand in the order of their numbers (seq): they were put in order.",
    )
    assert load_run(other, one.run_id).summary.problems == 0
    assert out(other, RUN).read_bytes() == usual.read_bytes()
    assert [again.new for again in taken(other, usual, file)] == [False, False]


def test_a_newer_format_is_left_alone(home: Home, other: Home, out: Out) -> None:
    record_run(home)
    first = out(home, RUN)
    for newer in ({"v": 99}, {"v": "1"}):
        for index in (0, 1):
            listed = lines(first)
            listed[index] |= newer
            path = home.root / "newer.jsonl"
            path.write_bytes(b"".join(map(encode, listed)))
            done = import_paths(other, [path])
            if newer["v"] == "1" and index == 1:  # a header that says nothing usable
                continue
            (refused,) = done
            assert isinstance(refused, Refused)
            assert "newer version" in refused.why
    assert all(run.run_id == RUN for run in list_runs(other))


def test_a_run_of_another_engine_stays_one_when_it_is_brought_along(
    home: Home, other: Home, out: Out, tmp_path: Path
) -> None:
    samples = Path(__file__).parent.parent / "fixtures" / "logs" / "samples"
    (run,) = taken(home, samples / "official_rlms_0.1.3.jsonl")
    first = out(home, run.run_id)
    (one,) = taken(other, first)
    assert (one.run_id, one.engine) == (run.run_id, run.engine)
    assert load_run(other, one.run_id).summary.imported_from == "rlms"
    assert out(other, one.run_id).read_bytes() == first.read_bytes()
    (again,) = taken(other, samples / "official_rlms_0.1.3.jsonl")
    assert (again.run_id, again.new) == (one.run_id, False)


def test_no_record_can_hide_that_it_was_brought_along(home: Home, other: Home, out: Out) -> None:
    record_run(home)

    def hide(record: dict[str, Any]) -> None:
        if record.get("kind") == "run":
            record |= {"trace_id": 5, "started_ns": -1, "lost": {"records": "x"}}
            record["facts"] |= {sc.IMPORT_FORMAT: None, "deep": {"a": [1]}}
        if record.get("kind") in ("s", "e"):
            record["a"] |= {sc.IMPORT_FORMAT: 5}

    (one,) = taken(other, changed(out(home, RUN), hide))
    assert load_run(other, one.run_id).summary.imported_from == sc.IMPORT_OWN


@pytest.mark.parametrize("name", ["../../evil", "/tmp/x", "", 5, None, "a/b", "x" * 101])
def test_a_name_in_a_record_never_becomes_a_path(home: Home, other: Home, out: Out, name: object) -> None:
    record_run(home)

    def rename(record: dict[str, Any]) -> None:
        if "run_id" in record:
            record["run_id"] = name

    before = set(other.root.parent.rglob("*"))
    (one,) = taken(other, changed(out(home, RUN), rename))
    assert one.run_id.startswith("20231114T221320-")
    made = set(other.root.parent.rglob("*")) - before
    assert {path.parent for path in made if path.suffix == ".jsonl"} == {other.spool, home.root.parent}
    assert len(list_runs(other)) == 1


def test_a_run_plays_again_where_its_corpus_is(home: Home, other: Home, out: Out) -> None:
    view = recorded(home, "FINAL(llm_query(context[:5]))", sub=lambda request: "six")
    (one,) = taken(other, out(home, view.run_id))
    corpus = view.summary.corpus_id
    assert one.missing == (
        f"Its corpus {corpus} is not in this home: it can be looked at, but not played again.",
    )
    with pytest.raises(RecordError, match="its corpus is not there as it was: there is no corpus"):
        Replayer(other, load_run(other, one.run_id)).play("strict")
    corpus_folder(home.corpora, str(corpus)).rename(other.corpora / str(corpus))
    with Replayer(other, load_run(other, one.run_id)) as replayer:
        assert replayer.check().status == "replayable"
    assert taken(other, out(other, view.run_id))[0].missing == ()


EVIL = {"name": "EVIL.py:run", "description": "d", "parameters": {"type": "object"}}
UNKNOWN = {**EVIL, "name": "run"}


@pytest.mark.parametrize(
    ("facts", "options", "words"),
    [
        ({}, {"tools": [EVIL]}, "a tool cannot be called 'EVIL.py:run'"),
        ({}, {"tools": [UNKNOWN]}, "does not hold its function: give it with --tool"),
        ({}, {"models": {"1": {"sub": "huggingface/https://evil.example"}}}, "not of the form PROVIDER/NAME"),
        ({sc.CORPUS_ID: "../../other"}, {}, "there is no corpus ../../other"),
        ({sc.LIMITS: as_json({"max_cost_usd": "-5"})}, {}, "max_cost_usd"),
    ],
)
def test_a_hostile_record_loads_no_file_and_names_no_server(
    home: Home, out: Out, tmp_path: Path, facts: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    filled(home, "import", lambda home: recorded(home, "x = 1\nFINAL('done')", sub=lambda request: "six"))
    (tmp_path / "EVIL.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef run(): 'x'\n")
    told = {sc.OPTIONS: as_json(options), sc.STOP_REASON: "cancelled", **facts}
    path = changed(out(home, list_runs(home)[0].run_id), lambda record: record.get("a", {}).update(told))
    delete_run(home, list_runs(home)[0].run_id)
    (one,) = taken(home, path)
    with pytest.raises((InputError, RecordError), match=words):
        continuation(home, load_run(home, one.run_id), {})
    assert not (tmp_path / "ran").exists()


def test_limits_of_a_record_that_was_brought_along_hold_up_to_the_usual_ones(home: Home, out: Out) -> None:
    """It must not take the machine or the purse of whoever resumes or replays it."""
    filled(home, "import", lambda home: recorded(home, "x = 1\nFINAL('done')", sub=lambda request: "six"))
    greedy = {"max_calls": None, "max_iterations": 10**6, "memory_bytes": 1 << 50, "max_cost_usd": "1.5"}
    greedy |= {"cell_seconds": 1e9, "max_seconds": 7.0, "max_workers": 3}
    told = {sc.STOP_REASON: "cancelled", sc.LIMITS: as_json(greedy)}
    path = changed(out(home, list_runs(home)[0].run_id), lambda record: record.get("a", {}).update(told))
    delete_run(home, list_runs(home)[0].run_id)
    (one,) = taken(home, path)
    view, usual = load_run(home, one.run_id), Limits()
    more = continuation(home, view, {"max_iterations": 50})
    assert (more.limits.max_calls, more.limits.max_iterations) == (usual.max_calls, 50), "50 was asked for"
    assert (more.limits.memory_bytes, more.limits.cell_seconds) == (usual.memory_bytes, 600)
    assert (more.limits.max_cost_usd, more.limits.max_seconds, more.limits.max_workers) == (
        Decimal("1.5"), 7.0, 3,
    ), "stricter ones stay"  # fmt: skip
    assert any("max_calls 5,000 for no limit" in words for words in more.warnings)
    assert read_program(view).limits.memory_bytes == usual.memory_bytes


def test_two_imports_at_once_take_a_run_in_once(home: Home, other: Home, out: Out) -> None:
    record_run(home)
    record_run(home, OTHER)
    first, ready, done = out(home, RUN, OTHER), threading.Barrier(4), []

    def work() -> None:
        ready.wait()
        done.extend(taken(other, first))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.run_id for one in done if one.new) == [RUN, OTHER]
    assert len(done) == 8
    assert sorted(path.name for path in other.spool.iterdir()) == [f"{RUN}.jsonl", f"{OTHER}.jsonl"]


def test_a_told_run_without_a_key_of_its_own_comes_in_once(home: Home, other: Home, out: Out) -> None:
    with instrument("Which?", engine="tiny 1", home=home.root, run_id=RUN) as run:
        run.answer("this")
    brought = out(home, RUN)
    record_run(other)  # its name is taken there
    first, again = taken(other, brought), taken(other, brought)
    assert [one.new for one in first + again] == [True, False] and first[0].run_id == again[0].run_id != RUN
    delete_run(other, first[0].run_id)
    third, fourth = taken(other, brought), taken(other, brought)
    assert [one.new for one in third + fourth] == [True, False] and third[0].run_id == fourth[0].run_id


def test_a_told_run_comes_back_byte_for_byte(home: Home, other: Home, out: Out) -> None:
    with instrument("Which?", engine="tiny 1", home=home.root, run_id=RUN) as run:
        run.answer("this")
    brought = out(home, RUN)
    taken(other, brought)
    assert out(other, RUN).read_bytes() == brought.read_bytes()
    assert load_run(other, RUN).summary.imported_from == "instrument"
