"""Single values out of the logs of `rlms`: times, usage, variables, what went wrong in a cell."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from rlm_core.telemetry import as_json, sha256_text
from traces.importers.foreign import T, TokenUse, Told, derived, reported
from traces.importers.source import as_text
from traces.importers.told import lacking
from traces.importers.values import count, dollars, items, parsed, table, uses

LOCAL_TIME: Final = "The log holds local times without their zone: they were read as times of this computer."
_DERIVED: Final = "it was derived already in the run that this log was made of"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PREVIEW: Final = 200  # characters of a variable, as in runs of this engine
_MOST_ROWS: Final = 200
#: Names that rlms defines itself: what it was given to read, how it loaded that, and past conversations.
_OWN_NAMES: Final = re.compile(r"(context|history)(_\d+)?$")
_LOADERS: Final = {
    "json": re.compile(r"<module "),
    "f": re.compile(r"<_io\.TextIOWrapper .*context_\d+\."),
}
_NO_PLAIN_TEXT: Final = re.compile(r"<.*>|\{.*\}|[A-Za-z_][\w.]*\(.*\)", re.DOTALL)
#: How an exception stands at the end of a cell's stderr: local writes one line, others a whole traceback.
_RAISED: Final = re.compile(r"^((?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*))(?:: |$)", re.MULTILINE)
_TRACED: Final = "Traceback (most recent call last)"
_TRACEBACK: Final = re.compile(r"(?:^-+\n)?^.*" + re.escape(_TRACED), re.MULTILINE)
_QUERIES: Final = ("llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched")
_AGAIN: Final = (
    ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


class Clock:
    """The times of one log in nanoseconds since the epoch. Those without a zone keep their distances: a
    change to summer time in the log does not move them.
    """

    def __init__(self) -> None:
        self._first: tuple[datetime, int] | None = None

    @property
    def local(self) -> bool:
        """Whether times without a zone were read."""
        return self._first is not None

    def ns(self, value: Any) -> int | None:
        """An ISO 8601 time; None where it is none, or before 1970."""
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is not None:
                found = _ns(moment - _EPOCH)
            else:
                if self._first is None:
                    self._first = moment, _ns(moment.astimezone() - _EPOCH)
                found = self._first[1] + _ns(moment - self._first[0])
        except (TypeError, ValueError, OverflowError, OSError):
            return None
        return found if found >= 0 else None


def _ns(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000


def told(call: Mapping[str, Any], name: str, value: T | None) -> Told[T]:
    """`tokens` or `cost` of a call with its mark; only logs that this program wrote have `derived`."""
    if value is None:
        return no_usage(call) if name == "tokens" else no_cost(call)
    return derived(value, _DERIVED) if name in items(call.get("derived")) else reported(value)


def usage_of(call: Mapping[str, Any]) -> TokenUse | None:
    """The tokens that the log gives a call, all its models together; None where it gives none."""
    counts = [(count(sent), count(made)) for sent, made in _usages(call)]
    known = [(sent, made) for sent, made in counts if sent is not None and made is not None]
    if len(known) < len(counts):
        return None
    return TokenUse(sum(sent for sent, _ in known), sum(made for _, made in known))


def _usages(call: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Both sides of the usage of each model of a call, whatever they are."""
    models = table(table(call.get("usage_summary")).get("model_usage_summaries"))
    said = [
        (table(one).get("total_input_tokens"), table(one).get("total_output_tokens"))
        for one in models.values()
    ]
    return said or [(call.get("prompt_tokens"), call.get("completion_tokens"))]  # before 0.1.0


def no_usage(call: Mapping[str, Any]) -> Told[Any]:
    """The mark of a call of which `usage_of` gives none."""
    return lacking(*(side for sides in _usages(call) for side in sides if count(side) is None))


def no_cost(call: Mapping[str, Any]) -> Told[Any]:
    """The mark of a call of which `cost_of` gives none."""
    return lacking(table(call.get("usage_summary")).get("total_cost"))


def cost_of(call: Mapping[str, Any]) -> Decimal | None:
    """The dollars that the log gives a call; None where it gives none."""
    return dollars(table(call.get("usage_summary")).get("total_cost"))


def calls_of_model(call: Mapping[str, Any], model: str | None) -> int | None:
    """How many calls to a model are in the usage of a child run; None where other models are in it too."""
    models = table(table(call.get("usage_summary")).get("model_usage_summaries"))
    return count(table(models.get(model or "")).get("total_calls")) if len(models) == 1 else None


def raised(stderr: str) -> tuple[str, str, str] | None:
    """The exception at the end of a cell's stderr, as type, message and what was printed before it."""
    traceback = _TRACEBACK.search(stderr)
    if traceback is not None:  # of a chain the last one counts; its frames are indented
        last = stderr.rfind(_TRACED)
        found = _RAISED.search(stderr, stderr.find("\n", last))
        if found is not None and found.start() > last:
            return found[1], stderr[found.end() :].strip(), stderr[: traceback.start()].removesuffix("\n")
    found = None
    for place in _RAISED.finditer(stderr):
        if _is_exception(place[2]) or stderr[: place.start()] == "\n":
            found = place
    if found is None:
        return None
    return found[1], stderr[found.end() :].strip(), stderr[: found.start()].removesuffix("\n")


def _is_exception(name: str) -> bool:
    known = getattr(builtins, name, None)
    if isinstance(known, type):
        return issubclass(known, BaseException)
    return name.endswith(("Error", "Exception", "Exit", "Interrupt"))


def one_batch(code: str) -> bool:
    """Whether all calls that a cell makes come from one call of `llm_query_batched` or `rlm_query_batched`,
    as far as its code tells.
    """
    tree = parsed(code)
    sites = [] if tree is None else _sites(tree)
    return len(sites) == 1 and sites[0][0].endswith("_batched") and not sites[0][1]


def asks(code: str) -> bool:
    """Whether code uses a function that asks a model."""
    return uses(code, _QUERIES)


def _sites(tree: ast.Module) -> list[tuple[str, bool]]:
    """Where code names a query function, and whether that place may run more than once."""
    found: list[tuple[str, bool]] = []
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, again = waiting.pop()
        if isinstance(node, ast.Name) and node.id in _QUERIES:
            found.append((node.id, again))
        inside = again or isinstance(node, _AGAIN)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


class Locals:
    """The variables of a run's code, told as what each cell changed."""

    def __init__(self) -> None:
        self._before: dict[str, str] = {}

    def changes(self, values: Any) -> str | None:
        """The text of `sc.VARIABLES` after a cell, given all its variables as the log has them; None where it
        has none. What was given to read is told by its length and hash only.
        """
        if not isinstance(values, dict):
            return None
        now: dict[str, str] = {}
        rows: list[dict[str, Any]] = []
        for name, value in values.items():
            if name in _LOADERS and isinstance(value, str) and _LOADERS[name].match(value):
                continue
            now[name] = digest = sha256_text(as_text(value))[:32]
            if self._before.get(name) != digest:
                change = "changed" if name in self._before else "new"
                rows.append(_row(name, value, digest, change))
        rows += [{"name": name, "change": "deleted"} for name in self._before if name not in now]
        self._before = now
        return as_json(rows[:_MOST_ROWS])


def _row(name: str, value: Any, digest: str, change: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "hash": digest, "change": change}
    if not (isinstance(value, str) and _NO_PLAIN_TEXT.fullmatch(value)):  # else it may be what repr gave
        row["type"] = type(value).__name__
    if isinstance(value, str | list | dict):
        row["size"] = len(value)
    if not _OWN_NAMES.match(name):
        row["preview"] = as_text(value)[:_PREVIEW]
    return row
