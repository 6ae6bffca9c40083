"""Reading a cell before it runs: advice for the root, findings for the record, never a security boundary."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from rlm_core.names import Names, names_of

SUB_CALLS: Final = frozenset(
    {"llm_query", "llm_call", "llm_batch", "llm_query_batched", "rlm_query", "rlm_query_batched"}
)
ENDINGS: Final = frozenset({"FINAL", "FINAL_VAR", "SUBMIT"})
_CORPUS: Final = frozenset({"context", "context_data", "documents"})
_ERROR_WORDS: Final = frozenset({"error", "exception", "traceback", "failed"})
_MOST_NAMES: Final = 200
_MOST_FINDINGS: Final = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """A machine-checked remark on a line of a cell (line 0 = the whole cell).

    Rules: syntax, undefined_name, drops_documents, swallowed_exception, error_text_as_data.
    """

    rule: str
    line: int
    message: str

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)


@dataclass(slots=True)
class CodeReport:
    """What can be said about a cell without running it. Names are sorted, at most 200 of each."""

    findings: list[Finding] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    makes_sub_calls: bool = False
    ends_run: bool = False


def check(code: str, defined: Iterable[str], documents: int, from_calls: Iterable[str] = ()) -> CodeReport:
    """Check a cell against the names that are defined before it and the number of documents in the corpus.

    `from_calls` are those of the names whose values came from sub-calls. Never raises, whatever the code is.
    """
    report = CodeReport()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
            names = names_of(code, tree)
    except SyntaxError as error:
        report.findings.append(Finding("syntax", error.lineno or 0, f"syntax error: {error.msg}"))
        return report
    except (ValueError, RecursionError, MemoryError) as error:
        report.findings.append(Finding("syntax", 0, f"this cannot be read as Python: {error}"))
        return report
    nodes = list(ast.walk(tree))
    called = {_called(node) for node in nodes}
    report.reads = sorted(names.reads)[:_MOST_NAMES]
    report.writes = sorted(names.writes)[:_MOST_NAMES]
    report.makes_sub_calls = not SUB_CALLS.isdisjoint(called)
    report.ends_run = not ENDINGS.isdisjoint(called) or any(map(_sets_ready, nodes))
    found = [*_undefined(nodes, names, frozenset(defined)), *_dropped_documents(nodes, documents)]
    found += [*_swallowed(nodes), *_error_text(nodes, frozenset(from_calls))]
    report.findings = sorted(dict.fromkeys(found), key=lambda finding: finding.line)[:_MOST_FINDINGS]
    return report


def _undefined(nodes: list[ast.AST], names: Names, defined: frozenset[str]) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name):
            lines[node.id] = min(node.lineno, lines.get(node.id, node.lineno))
    for name in sorted(names.undefined(defined)):
        said = f"the name {name!r} is not defined in this cell or before it"
        yield Finding("undefined_name", lines.get(name, 0), said)


def _dropped_documents(nodes: list[ast.AST], documents: int) -> Iterator[Finding]:
    """A slice of the corpus that feeds sub-calls and leaves most documents out."""
    if documents < 2:
        return
    for node in _feeding(nodes):
        for part in ast.walk(node):
            if not isinstance(part, ast.Subscript) or _name(part.value) not in _CORPUS:
                continue
            kept = _kept(part.slice, documents)
            if kept is not None and kept < documents / 2:
                said = f"this slice keeps {kept} of {documents} documents; the sub-calls never see the others"
                yield Finding("drops_documents", part.lineno, said)


def _feeding(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """Expressions whose values go into sub-calls: their arguments, and what the loops around them go over."""
    for node in nodes:
        if isinstance(node, ast.Call) and _called(node) in SUB_CALLS:
            yield from [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, (ast.For, ast.AsyncFor)) and _makes_calls(node.body):
            yield node.iter
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            if _makes_calls(made):
                yield from (generator.iter for generator in node.generators)


def _kept(cut: ast.expr, documents: int) -> int | None:
    """How many documents a slice with constant bounds keeps; None for anything else."""
    if not isinstance(cut, ast.Slice):
        return None
    parts = (cut.lower, cut.upper, cut.step)
    numbers = [_number(part) for part in parts]
    if any(part is not None and number is None for part, number in zip(parts, numbers, strict=True)):
        return None
    if numbers[2] == 0:
        return None
    return len(range(*slice(*numbers).indices(documents)))


def _swallowed(nodes: list[ast.AST]) -> Iterator[Finding]:
    """A handler for everything around a sub-call."""
    for node in nodes:
        if not isinstance(node, (ast.Try, ast.TryStar)) or not _makes_calls(node.body):
            continue
        for handler in node.handlers:
            raises = any(isinstance(part, ast.Raise) for part in ast.walk(handler))
            if _is_broad(handler.type) and not raises:
                said = (
                    "this except hides every error around a sub-call, a mistake in the code too; a failed "
                    "sub-call raises nothing, it is a falsy value: test that instead"
                )
                yield Finding("swallowed_exception", handler.lineno, said)


def _is_broad(caught: ast.expr | None) -> bool:
    several = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(one is None or _name(one) in ("Exception", "BaseException") for one in several)


def _error_text(nodes: list[ast.AST], from_calls: frozenset[str]) -> Iterator[Finding]:
    """Looking for error words in a reply: a failed sub-call is no text here."""
    replies = _replies(nodes, from_calls)
    for node in nodes:
        for words, where in _searches(node):
            if _has_error_word(words) and _mentions(where, replies):
                said = "this searches a reply for error words; a failed sub-call is no text but a falsy value"
                yield Finding("error_text_as_data", where.lineno, said)


def _searches(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`(what, where)` of `what in where`, `where == what` and `where.startswith(what)`."""
    if isinstance(node, ast.Compare):
        left, right = node.left, node.comparators[0]
        if isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Eq)):
            yield left, right
        if isinstance(node.ops[0], ast.Eq):
            yield right, left
    elif isinstance(node, ast.Call) and node.args and _method(node) in ("startswith", "find", "count"):
        assert isinstance(node.func, ast.Attribute)
        yield node.args[0], node.func.value


def _has_error_word(words: ast.expr) -> bool:
    several = words.elts if isinstance(words, ast.Tuple) else [words]
    texts = [one.value for one in several if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return any(text.strip().casefold().strip("[]:") in _ERROR_WORDS for text in texts)


def _replies(nodes: list[ast.AST], from_calls: frozenset[str]) -> set[str]:
    """Names that hold replies: given, assigned from a sub-call or from such a name, or looped over one."""
    replies = set(from_calls)
    bindings = [binding for node in nodes for binding in _bindings(node)]
    for _ in range(2):  # a second look finds what stands before its source in the tree
        for target, value in bindings:
            if _mentions(value, replies):
                replies |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return replies


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, (ast.NamedExpr, ast.AnnAssign)) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield node.target, node.iter


def _mentions(node: ast.AST, replies: set[str]) -> bool:
    return any(_name(part) in replies or _called(part) in SUB_CALLS for part in ast.walk(node))


def _makes_calls(body: Iterable[ast.AST]) -> bool:
    return any(_called(node) in SUB_CALLS for statement in body for node in ast.walk(statement))


def _sets_ready(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and _name(node.value) == "answer"
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == "ready"
    )


def _method(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def _called(node: ast.AST) -> str | None:
    return _name(node.func) if isinstance(node, ast.Call) else None


def _name(node: ast.AST | None) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _number(node: ast.expr | None) -> int | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    return sign * node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
