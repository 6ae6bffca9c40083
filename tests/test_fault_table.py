"""The table of faults names real tests, and every required fault has one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.fault_table import REQUIRED, TESTS

ROOT = Path(__file__).resolve().parent.parent


def test_every_required_fault_has_a_test() -> None:
    assert [number for number in REQUIRED if not TESTS.get(number)] == []


@pytest.mark.parametrize("node", [node for nodes in TESTS.values() for node in nodes])
def test_the_named_test_exists_and_checks_something(node: str) -> None:
    file, _, name = node.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = [part for part in tree.body if isinstance(part, ast.FunctionDef) and part.name == name]
    assert len(found) == 1, f"{node} does not exist"
    assert any(isinstance(part, ast.Assert) for part in ast.walk(found[0])), f"{node} asserts nothing"
