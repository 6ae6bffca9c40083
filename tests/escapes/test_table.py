"""The table of attempts in the docs: complete, and in agreement with what the levels claim."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.escapes.__main__ import write
from tests.escapes.attempts import ATTEMPTS, BY_ID, LEVELS, WEAKEST
from tests.escapes.players import Result
from tests.escapes.table import failures, markdown, shown, text

PAGE = Path(__file__).resolve().parents[2] / "ui" / "docs" / "escapes.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("|")
]


def test_every_attempt_has_its_row_with_its_title_and_claim() -> None:
    claims = {"none": "every level"}
    found = [(row[0], row[1], row[2]) for row in ROWS[2:-1]]
    assert found == [(a.id, a.title, claims.get(w := WEAKEST[a.aim], w)) for a in ATTEMPTS]


def test_the_results_in_the_page_are_what_the_levels_claim() -> None:
    heads = [tuple(head.split(", ")) for head in ROWS[0][4:]]
    assert set(heads) == {(level, user) for level in LEVELS[1:] for user in ("root", "unprivileged")}
    for row in ROWS[2:-1]:
        attempt = BY_ID[row[0]]
        for (level, _), word in zip(heads, row[4:], strict=True):
            if attempt.expected == "contained":
                assert word in ("contained", "contained (worker lost)"), (row[0], level)
            elif attempt.stopped_at(level):
                assert word == "stopped", (row[0], level)
            else:
                assert word in ("open", "not reached"), (row[0], level)


def test_a_blocked_attempt_was_seen_to_get_through_or_the_page_says_why_not() -> None:
    for row in ROWS[2:-1]:
        attempt = BY_ID[row[0]]
        if attempt.expected == "contained":
            assert row[3] == ""
        elif attempt.shown == "any":
            assert row[3].startswith("level none"), row
        else:
            assert attempt.why in row[3], row


def test_the_page_names_what_the_sandbox_does_not_do() -> None:
    assert "](sandbox.md)" in PAGE.read_text(encoding="utf-8")


# -- how the table is made

KEY, LOOP = BY_ID["E05"], BY_ID["E62"]


def result(name: str, level: str, user: str = "root", **fields: tuple[str, ...]) -> Result:
    return Result(BY_ID[name], level, user, **fields)


@pytest.mark.parametrize(
    ("one", "word", "ok"),
    [
        (result("E05", "none", found=("it said so",)), "open", True),
        (result("E05", "none"), "not reached", False),
        (result("E05", "weak", found=("it said so",)), "open", True),
        (result("E05", "standard", found=("it said so",)), "THROUGH", False),
        (result("E05", "standard", broken=("the worker was lost",)), "THROUGH", False),
        (result("E05", "standard"), "stopped", True),
        (result("E102", "standard", found=("it said so",)), "open", True),
        (result("E102", "strict", found=("it said so",)), "THROUGH", False),
        (result("E52", "none", "unprivileged"), "not shown here", True),
        (result("E62", "strict"), "contained", True),
        (result("E62", "strict", broken=("it never came back",)), "NOT CONTAINED", False),
    ],
)
def test_a_result_is_judged_by_the_claim_of_its_level(one: Result, word: str, ok: bool) -> None:
    assert (one.word, one.ok) == (word, ok)


def test_both_tables_show_every_result_and_failures_are_named(tmp_path: Path) -> None:
    results = {
        ("E05", "none", "root"): result("E05", "none", found=("it said so",)),
        ("E05", "standard", "root"): result("E05", "standard", found=("it said so",)),
        ("E62", "none", "root"): result("E62", "none"),
        ("E62", "standard", "root"): result("E62", "standard"),
    }
    assert [one.attempt.id for one in failures(results)] == ["E05"]
    missed = {("E05", "none", "root"): result("E05", "none")}
    assert [one.attempt.id for one in failures(missed)] == ["E05"]
    assert failures({**missed, ("E05", "naked", "root"): result("E05", "none")}) == []  # this system stops it
    assert failures({("E01", "naked", "root"): result("E01", "none")}) != []
    plain = text(results, [KEY, LOOP], ["none", "standard"], ["root"])
    assert [line.split()[0] for line in plain.splitlines()[1:]] == ["E05", "E62"] and "THROUGH" in plain
    table = markdown(results, [KEY, LOOP], ["none", "standard"], ["root"])
    rows = table.splitlines()
    assert rows[2] == f"| E05 | {KEY.title} | standard | level none | THROUGH |"
    assert rows[3] == f"| E62 | {LOOP.title} | every level |  | contained |"
    assert rows[4].endswith("| 1 THROUGH, 1 contained |")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n<!-- table: python3 bootstrap.py escapes -->\nstale\n<!-- end of the table -->\nend\n"
    )
    for _ in range(2):
        write(page, table)
    assert page.read_text().count("| E05 |") == 1 and page.read_text().endswith("-->\nend\n")
    assert "stale" not in page.read_text()


def test_where_an_attempt_got_through_is_told_for_each_user() -> None:
    device = BY_ID["E52"]
    seen = {("E52", "none", "root"): result("E52", "none", found=("it said so",)),
            ("E52", "none", "unprivileged"): result("E52", "none", "unprivileged")}  # fmt: skip
    assert shown(device, seen, ["root", "unprivileged"]) == f"level none, root only: {device.why}"
    assert shown(device, {}, ["root"]) == f"not shown: {device.why}"
    naked = BY_ID["E01"]
    seen = {("E01", "naked", "root"): result("E01", "none", found=("it said so",))}
    assert shown(naked, seen, ["root"]) == f"plain interpreter ({naked.why})"
    assert re.fullmatch(r"not shown: .+", shown(BY_ID["E30"], {}, ["root"]))
