"""Tools that come with the engine: two that read the corpus of the run, and arithmetic."""

from __future__ import annotations

import ast
import math
import operator
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from rlm_core.corpus import Corpus
from rlm_core.texts import build_context
from rlm_core.tools import Tool, tool

MOST_PASSAGES: Final = 20
MOST_READ: Final = 20_000  # characters of one reading
_MOST_DIGITS: Final = 1_000
_MOST_NODES: Final = 500
_one_search: Final = threading.Lock()  # the index of the last text is shared


def corpus_search(corpus: Corpus, query: str, k: int = 5) -> list[dict[str, Any]]:
    """Find the passages of the documents that fit the words of a query best (BM25).

    Returns a list of passages, best first, each with document number, name, start and end (characters) and
    text. k is how many, at most 20.
    """
    with _one_search:
        _, documents = build_context(corpus.worker_documents())
        found = documents.top(query, max(1, min(k, MOST_PASSAGES)))
    return [
        {
            "document": one.document,
            "name": one.name,
            "start": one.start,
            "end": one.start + len(one),
            "text": str(one),
        }
        for one in found
    ]


def corpus_read(corpus: Corpus, document: int, start: int, end: int) -> str:
    """Read the characters start to end of a document, by its number as corpus_search gives it.

    At most 20,000 characters at once; an end behind the document is its end.
    """
    if not 0 <= document < len(corpus.documents):
        raise ValueError(
            f"there is no document {document}; they are numbered 0 to {len(corpus.documents) - 1}"
        )
    chars = corpus.documents[document].chars
    end = min(end, chars)
    if not 0 <= start <= end:
        raise ValueError(f"the document has {chars:,} characters; {start} to {end} is no part of it")
    if end - start > MOST_READ:
        raise ValueError(f"at most {MOST_READ:,} characters can be read at once")
    return corpus.text(document, start, end)


def calculate(expression: str) -> str:
    """Work out an arithmetic expression, such as 3 * (14.5 + 2) ** 2.

    It may hold numbers, + - * / // % **, brackets, one comparison, and the functions abs, round, min, max,
    sum, sqrt, log, log10, exp, floor and ceil.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        if sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
            raise ValueError("the expression is too long")
        return _shown(_value(tree.body))
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError("this is no arithmetic expression") from None
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except OverflowError:
        raise ValueError("the result is too large") from None


Value = int | float | bool | list[Any]
_BINARY: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARED: Final[Mapping[type, Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs, "round": round, "min": min, "max": max, "sum": sum, "sqrt": math.sqrt, "log": math.log,
    "log10": math.log10, "exp": math.exp, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
_NAMES: Final = {"pi": math.pi, "e": math.e}


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _bounded(node.value)
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _number(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _power(_number(node.left), _number(node.right))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _bounded(_BINARY[type(node.op)](_number(node.left), _number(node.right)))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        return _COMPARED[type(node.ops[0])](_number(node.left), _number(node.comparators[0]))
    if isinstance(node, ast.List | ast.Tuple):
        return [_number(item) for item in node.elts]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _called(_FUNCTIONS[node.func.id], [_value(argument) for argument in node.args])
    raise ValueError(f"{ast.unparse(node)[:80]!r} is not part of arithmetic here")


def _number(node: ast.expr) -> Any:
    value = _value(node)
    if isinstance(value, list):
        raise ValueError("a list can only be given to min, max and sum")
    return value


def _called(function: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return _bounded(function(*arguments))
    except TypeError:
        raise ValueError(f"{function.__name__} cannot be called with these arguments") from None


def _power(base: Any, exponent: Any) -> Any:
    """Refused before it is worked out when the result would have too many digits."""
    is_whole = isinstance(base, int) and isinstance(exponent, int)
    if is_whole and base and exponent * abs(base).bit_length() > 4 * _MOST_DIGITS:
        raise OverflowError
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError("the result is no real number")
    return _bounded(value)


def _bounded(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        raise OverflowError
    if isinstance(value, int) and value.bit_length() > 4 * _MOST_DIGITS:
        raise OverflowError
    return value


def _shown(value: Any) -> str:
    if isinstance(value, list):
        raise ValueError("the result is a list, not a number")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


BUILTIN: Final[Mapping[str, Tool]] = {
    one.spec.name: one for one in (tool(corpus_search), tool(corpus_read), tool(calculate))
}
