"""The names of a cell: what it reads from the REPL, what it defines there, and what nobody defined."""

from __future__ import annotations

import ast
import builtins
import symtable
from dataclasses import dataclass
from typing import Final

_GIVEN: Final = frozenset(dir(builtins)) | {
    "__annotations__",
    "__builtins__",
    "__doc__",
    "__loader__",
    "__module__",  # in a class body
    "__name__",
    "__package__",
    "__qualname__",
    "__spec__",
}


@dataclass(frozen=True, slots=True)
class Names:
    """Names a cell reads from and writes to the namespace of the REPL.

    `reads` also holds what the cell itself defined before; a name that exists only inside a function, class
    or comprehension is in neither. `passing` are names that are gone again when the cell ends.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    passing: frozenset[str]
    star_import: bool

    def undefined(self, defined: frozenset[str]) -> frozenset[str]:
        """Names that are read, but defined neither before nor anywhere in the cell."""
        if self.star_import:
            return frozenset()
        return self.reads - self.writes - self.passing - defined - _GIVEN


def names_of(code: str, tree: ast.AST) -> Names:
    """The names of code that parses as `tree`; raises `SyntaxError` for scopes that Python refuses, and
    `RecursionError`.
    """
    top = symtable.symtable(code, "<cell>", "exec")
    reads: set[str] = set()
    writes: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table is not top and not symbol.is_global():
                continue
            if symbol.is_referenced():
                reads.add(symbol.get_name())
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                writes.add(symbol.get_name())
    nodes = list(ast.walk(tree))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    caught = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    deleted = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)}
    changed = {
        node.target.id
        for node in nodes
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    passing = writes & (deleted | (caught - stored))
    return Names(
        reads=frozenset(reads | (writes & (deleted | changed))),
        writes=frozenset(writes - passing),
        passing=frozenset(passing),
        star_import=any(isinstance(node, ast.alias) and node.name == "*" for node in nodes),
    )
