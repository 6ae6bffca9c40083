"""The recursion tree as data."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from rlm_core import semconv as sc
from tests.traces.records import RUN, START_NS, end, fin, header, home_in, start, write_spool
from traces.reading import Group, Node, build_tree, load_run
from traces.tree import walk


def tree_of(tmp_path: Path, *records: dict[str, Any], group_from: int = 8) -> list[Node]:
    home = home_in(tmp_path)
    write_spool(home, [header(), *records, fin()])
    return build_tree(load_run(home, RUN).spans, group_from=group_from)


def outline(tops: list[Node]) -> list[tuple[int, str]]:
    return [
        (level, item.headline if isinstance(item, Group) else item.span.span_id) for level, item in walk(tops)
    ]


def calls(parent: str, count: int, **changes: Any) -> list[dict[str, Any]]:
    """Sub-calls below a parent; `changes` are attributes by number, None is an error."""
    found = []
    for number in range(count):
        a = {sc.USAGE_INPUT: 1, sc.USAGE_OUTPUT: 2, sc.COST_USD: "0.1", sc.RESPONSE + ".chars": 5}
        a |= changes.get(f"n{number}") or {}
        status = "error" if f"n{number}" in changes and changes[f"n{number}"] is None else "ok"
        span_id = f"{parent}-{number}"
        found += [
            start(span_id, parent, a=a, t=START_NS + number),
            end(span_id, status=status, t=START_NS + 999),
        ]
    return found


def test_a_fan_out_of_two_hundred_is_one_group(tmp_path: Path) -> None:
    empty = {sc.RESPONSE + ".chars": 0}
    (run,) = tree_of(
        tmp_path,
        start("r", kind="run", t=START_NS),
        start("c", "r", "cell", t=START_NS),
        *calls("c", 200, n3=empty, n4=empty, n5=empty, n7=None),
        end("c", t=START_NS + 10**9),
        end("r", t=START_NS + 10**9),
        start("late", "r", "iteration"),
    )
    assert outline([run])[:4] == [
        (0, "r"),
        (1, "c"),
        (2, "200 x llm_query: 196 ok, 3 empty, 1 error"),
        (3, "c-0"),
    ]
    cell = run.below[0]
    assert isinstance(cell, Node)
    (group,) = cell.below
    assert isinstance(group, Group)
    for totals, spans in ((group.totals, 200), (cell.totals, 201), (run.totals, 203)):
        assert (totals.spans, totals.failures, totals.spend.calls) == (spans, 1, 200)
        assert totals.spend.tokens == {"input": 200, "output": 400, "total": 600}
        assert totals.cost_usd == Decimal("20.0")
    assert (group.totals.seconds, cell.totals.seconds) == (999 / 1e9, 1.0)
    assert (run.totals.open, cell.totals.open) == (1, 0)


def test_a_span_took_what_it_says_whatever_the_clocks_inside_it_say(tmp_path: Path) -> None:
    hour = 3600 * 10**9
    (run,) = tree_of(
        tmp_path,
        start("r", kind="run", t=START_NS),
        start("c", "r", "cell", t=START_NS),
        start("before", "c", t=START_NS - hour),
        end("before", t=START_NS - hour + 10**9),
        start("after", "c", t=START_NS + hour),
        end("after", t=START_NS + hour + 10**9),
        end("c", t=START_NS + 2 * 10**9),
        start("open", "r", "cell", t=START_NS + 3 * 10**9),
    )
    cell, still_open = run.below
    assert cell.totals.seconds == 2.0
    assert still_open.totals.seconds is None
    assert run.totals.seconds == 7201.0  # it has not ended: from the first start to the last end in it


def test_a_batch_shows_its_group_likewise(tmp_path: Path) -> None:
    (batch,) = tree_of(tmp_path, start("b", kind="batch"), *calls("b", 9, n0=None))
    assert outline([batch])[1] == (1, "9 x llm_query: 8 ok, 1 error")


def test_only_neighbours_of_one_kind_make_a_group(tmp_path: Path) -> None:
    records = [start("c", kind="cell"), *calls("c", 3), start("b", "c", "batch"), end("b")]
    records += [record for n in range(3) for record in (start(f"k{n}", "c", "run"), end(f"k{n}"))]
    tops = tree_of(tmp_path, *records, group_from=3)
    below = [text for level, text in outline(tops) if level == 1]
    assert below == ["3 x llm_query: 3 ok", "b", "3 x rlm_query: 3 ok"]
    flat = tree_of(tmp_path, *records, group_from=0)
    assert len([text for level, text in outline(flat) if level == 1]) == 7


def test_members_of_a_group_keep_what_is_below_them(tmp_path: Path) -> None:
    attempt = [start("a", "c-2", "attempt"), end("a", status="error")]
    tops = tree_of(tmp_path, start("c", kind="cell"), *calls("c", 8), *attempt, end("c"))
    assert (3, "a") in outline(tops)
    assert tops[0].totals.failures == 0  # a failed try of a call that went well is no failure


def test_orphans_stand_at_the_top(tmp_path: Path) -> None:
    tops = tree_of(tmp_path, start("r", kind="run"), start("x", "nobody"), start("y", "x", "attempt"))
    assert outline(tops) == [(0, "r"), (0, "x"), (1, "y")]
    assert [node.span.orphan for node in tops] == [False, True]


def test_circles_of_parents_neither_hang_nor_hide_anything(tmp_path: Path) -> None:
    records = [start("self", "self"), start("a", "c"), start("b", "a"), start("c", "b"), start("d", "c")]
    tops = tree_of(tmp_path, *records)
    assert outline(tops) == [(0, "self"), (0, "a"), (1, "b"), (2, "c"), (3, "d")]
    assert tops[1].totals.spans == 4


def test_parents_may_come_after_their_children(tmp_path: Path) -> None:
    tops = tree_of(tmp_path, start("a", "r", "iteration"), start("b", "a", "cell"), start("r", kind="run"))
    assert outline(tops) == [(0, "r"), (1, "a"), (2, "b")]


def test_a_chain_deeper_than_python_recurses(tmp_path: Path) -> None:
    depth = 5000
    chain = [start(str(n), str(n - 1) if n else None, "run", a={sc.DEPTH: n}) for n in range(depth)]
    tops = tree_of(tmp_path, *chain)
    levels = [level for level, _ in walk(tops)]
    assert levels == list(range(depth))
    assert tops[0].totals.spans == depth
    assert len(repr(tops[0])) < 200


def test_nothing_gives_an_empty_tree() -> None:
    assert build_tree([]) == []
    assert list(walk([])) == []
