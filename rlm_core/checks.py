"""Reading a cell before it runs: advice for the root and findings for the record. Never a security boundary."""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

SUB_CALLS: Final = frozenset(
    {"llm_query", "llm_call", "llm_batch", "llm_query_batched", "rlm_query", "rlm_query_batched"}
)
ENDINGS: Final = frozenset({"FINAL", "FINAL_VAR", "SUBMIT"})
_CORPUS: Final = frozenset({"context", "context_data", "documents"})
_BUILTINS: Final = frozenset(dir(builtins)) | {"__file__", "__name__", "__builtins__"}
_MOST_NAMES: Final = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """A machine-checked remark on a line of a cell (line 0 = the whole cell)."""

    rule: str
    line: int
    message: str

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)


@dataclass(slots=True)
class CodeReport:
    """What can be said about a cell without running it."""

    findings: list[Finding] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    makes_sub_calls: bool = False
    ends_run: bool = False


def check(code: str, defined: Iterable[str], documents: int) -> CodeReport:
    """Check a cell against the names that are defined before it and the number of documents in the corpus."""
    report = CodeReport()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        report.findings.append(Finding("syntax", error.lineno or 0, f"syntax error: {error.msg}"))
        return report
    except (ValueError, RecursionError, MemoryError) as error:
        report.findings.append(Finding("syntax", 0, f"this cannot be read as Python: {error}"))
        return report
    names = _Names()
    names.visit(tree)
    report.reads = sorted(names.loaded - names.local_only)[:_MOST_NAMES]
    report.writes = sorted(names.module_bound)[:_MOST_NAMES]
    calls = [node for node in ast.walk(tree) if _called(node) in SUB_CALLS]
    report.makes_sub_calls = bool(calls)
    report.ends_run = any(_called(node) in ENDINGS for node in ast.walk(tree)) or _sets_ready(tree)
    report.findings += _undefined(names, set(defined))
    report.findings += _dropped_documents(tree, documents)
    report.findings += _bare_excepts(tree)
    report.findings += _error_text(tree)
    return report


class _Names(ast.NodeVisitor):
    """Names loaded and bound anywhere in a cell. Scopes are merged: a name bound in any of them counts as bound."""

    def __init__(self) -> None:
        self.loaded: set[str] = set()
        self.first_load: dict[str, int] = {}
        self.bound: set[str] = set()
        self.module_bound: set[str] = set()
        self.local_only: set[str] = set()
        self.star_import = False
        self._depth = 0

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.loaded.add(node.id)
            self.first_load.setdefault(node.id, node.lineno)
        else:
            self._bind(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._bind(node.name)
        self._inside(node)

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inside(node)

    def visit_ListComp(self, node: ast.AST) -> None:
        self._inside(node)

    visit_SetComp = visit_ListComp
    visit_DictComp = visit_ListComp
    visit_GeneratorExp = visit_ListComp

    def visit_arg(self, node: ast.arg) -> None:
        self._bind(node.arg)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        if node.name == "*":
            self.star_import = True
        self._bind((node.asname or node.name).partition(".")[0])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.module_bound.update(node.names)
        self.bound.update(node.names)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._bind(node.rest)
        self.generic_visit(node)

    def _bind(self, name: str) -> None:
        self.bound.add(name)
        (self.local_only if self._depth else self.module_bound).add(name)
        self.local_only -= self.module_bound

    def _inside(self, node: ast.AST) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1


def _undefined(names: _Names, defined: set[str]) -> Iterator[Finding]:
    if names.star_import:
        return
    for name in sorted(names.loaded - names.bound - defined - _BUILTINS):
        yield Finding(
            "undefined_name",
            names.first_load[name],
            f"the name {name!r} is not defined anywhere before this cell",
        )


def _dropped_documents(tree: ast.AST, documents: int) -> Iterator[Finding]:
    """A slice of the corpus that feeds sub-calls and leaves most documents out."""
    if documents < 2:
        return
    for node in _feeding(tree):
        for part in ast.walk(node):
            if not (
                isinstance(part, ast.Subscript)
                and isinstance(part.slice, ast.Slice)
                and _name(part.value) in _CORPUS
            ):
                continue
            kept = _kept(part.slice, documents)
            if kept is not None and kept < documents / 2:
                yield Finding(
                    "drops_documents",
                    part.lineno,
                    f"this slice keeps {kept} of {documents} documents; the sub-calls never see the others",
                )


def _feeding(tree: ast.AST) -> Iterator[ast.AST]:
    """Expressions whose values go into sub-calls: their arguments, and the iterables of loops that make them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in SUB_CALLS:
            yield from [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, (ast.For, ast.AsyncFor)) and _makes_calls(node.body):
            yield node.iter
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and _makes_calls([node.elt]):
            yield from (generator.iter for generator in node.generators)


def _kept(cut: ast.Slice, documents: int) -> int | None:
    parts = [_number(part) for part in (cut.lower, cut.upper, cut.step)]
    if any(
        part is not None and value is None
        for part, value in zip((cut.lower, cut.upper, cut.step), parts, strict=True)
    ):
        return None
    if parts[2] == 0:
        return None
    return len(range(*slice(*parts).indices(documents)))


def _bare_excepts(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try) or not _makes_calls(node.body):
            continue
        for handler in node.handlers:
            broad = handler.type is None or _name(handler.type) in ("Exception", "BaseException")
            if broad and not any(isinstance(part, ast.Raise) for part in ast.walk(handler)):
                yield Finding(
                    "swallowed_exception",
                    handler.lineno,
                    "this except hides every error around a sub-call; a failed sub-call is a falsy value, test that instead",
                )


def _error_text(tree: ast.AST) -> Iterator[Finding]:
    """Looking for error words in a reply: a failed sub-call is no text here."""
    for node in ast.walk(tree):
        looks = None
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            looks = node.left
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "startswith"
        ):
            looks = node.args[0] if node.args else None
        if isinstance(looks, ast.Constant) and isinstance(looks.value, str):
            word = looks.value.strip().casefold().strip("[]:")
            if word in ("error", "exception", "traceback", "failed"):
                yield Finding(
                    "error_text_as_data",
                    node.lineno,
                    "this searches a text for error words; a failed sub-call is a falsy SubCallError, not a text",
                )


def _makes_calls(body: Iterable[ast.AST]) -> bool:
    return any(_called(node) in SUB_CALLS for statement in body for node in ast.walk(statement))


def _sets_ready(tree: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and _name(node.value) == "answer"
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == "ready"
        for node in ast.walk(tree)
    )


def _called(node: ast.AST) -> str | None:
    return _name(node.func) if isinstance(node, ast.Call) else None


def _name(node: ast.AST | None) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _number(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
