"""Values of a foreign record, which is untrusted: each is read as what it should be, or is not there.

Texts, counts, money and moments by type and range, and documents of which only the beginning was written.
"""

from __future__ import annotations

import ast
import codecs
import json
import math
import re
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

from rlm_core.telemetry import sha256_text
from traces.facts import LARGEST
from traces.importers.source import Source, as_text
from traces.spool import DECODER

_LARGEST_SALVAGED: Final = 64 * 1024 * 1024  # bytes of a cut document that are searched for its whole part
_DEAREST: Final = Decimal(10**9)  # US dollars
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]+|"', re.DOTALL)
_CLOSES: Final = {"{": "}", "[": "]"}
#: Said of an agent with its name and what became of it.
CIRCLE: Final = "The agent {} names one below it, or itself, as its caller, which cannot be: {}."
#: A line that names an exception, as Python prints the last line of a traceback.
_RAISED: Final = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Iteration|Warning)):? ?(.*)")


def text(value: Any) -> str | None:
    """A text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A whole number from 0 that can be added up, else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < LARGEST else None


def amount(value: Any) -> float | None:
    """A finite number from 0, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and 0 <= number < LARGEST else None


def dollars(value: Any) -> Decimal | None:
    """An amount of money from 0, given as number or text, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        usd = Decimal(str(value))
    except (InvalidOperation, ValueError):
        return None
    return usd if usd.is_finite() and 0 <= usd < _DEAREST else None


def moment(value: Any) -> int | None:
    """An ISO 8601 time with its zone as nanoseconds since the epoch, else None."""
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        return None
    try:
        since = when - _EPOCH
    except OverflowError:
        return None
    nanoseconds = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    return nanoseconds if 0 <= nanoseconds < LARGEST else None


def table(value: Any) -> Mapping[str, Any]:
    """A JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """A JSON list, else an empty one."""
    return value if isinstance(value, list) else []


def some_text(value: Any) -> str | None:
    """A value as text, others than strings as JSON; None for null and for the empty text."""
    return None if value is None else text(as_text(value))


def digest(value: Any) -> str:
    """What tells one content from others: the sha256 of its JSON."""
    return sha256_text(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))


class Once:
    """Parts of a record that must stand in it once: what of it is repeated would be counted twice."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, Any] = {}
        self._again = self._changed = 0

    def is_first(self, name: Hashable, value: Any) -> bool:
        """Whether no part of this name came before; of None, what has no name, always."""
        if name is None:
            return True
        if name not in self._seen:
            self._seen[name] = value
            return True
        self._again += 1
        self._changed += self._seen[name] != value
        return False

    def problems(self, named: str) -> list[str]:
        """A sentence on parts that were repeated, if there were any."""
        if not self._again:
            return []
        others = f"; {self._changed:,} of them said something else" if self._changed else ""
        return [
            f"{named} that are in the record more than once, and taken in once: {self._again:,}{others}; "
            "the first one counts."
        ]


def in_order(parts: list[Mapping[str, Any]], named: str, problems: list[str]) -> list[Mapping[str, Any]]:
    """Parts of a record by their number `seq`, where all have one; that they stood otherwise is a problem."""
    numbers = [count(part.get("seq")) for part in parts]
    told = [number for number in numbers if number is not None]
    if len(told) < len(numbers) or told == sorted(told):
        return parts
    problems.append(f"{named} do not stand in the order of their numbers (seq): they were put in order.")
    return [part for _, part in sorted(zip(told, parts, strict=True), key=itemgetter(0))]


def heads_of_circles(callers: Mapping[str, str | None]) -> list[str]:
    """Of those that lead back to themselves from caller to caller the first of each circle."""
    found, seen = [], set[str]()
    order = {name: number for number, name in enumerate(callers)}
    for name in callers:
        path: dict[str, int] = {}
        above: str | None = name
        while above is not None and above in callers and above not in seen and above not in path:
            path[above] = len(path)
            above = callers[above]
        if above is not None and above in path:
            found.append(min(list(path)[path[above] :], key=order.__getitem__))
        seen.update(path)
    return found


def uses(code: str, names: Collection[str]) -> bool:
    """Whether code uses one of some names; of code that is no Python, whether one stands in it.

    >>> uses("map(ask, parts)", {"ask"}), uses("print('ask')  # ask", {"ask"}), uses("%%go ask", {"ask"})
    (True, False, True)
    """
    if not any(name in code for name in names):
        return False
    tree = parsed(code)
    return tree is None or any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(tree))


def parsed(code: str) -> ast.Module | None:
    """Code as a tree, None where it is no Python. What Python only warns of is nobody's business here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def exception_in(output: str) -> tuple[str, str, str] | None:
    """Output that ends with an exception as (what was printed before it, its type, its message).

    None where no line names one. The last such line counts: what a program printed before may name others.
    """
    lines = output.split("\n")
    for number in range(len(lines) - 1, -1, -1):
        if found := _RAISED.match(lines[number]):
            message = "\n".join([found[2], *lines[number + 1 :]]).strip()
            return "\n".join(lines[:number]).rstrip("\n"), found[1], message
    return None


def whole_or_part(source: Source) -> tuple[Any, bool]:
    """A file as one JSON value, and whether it is whole.

    Of one that ends too early the complete values are given, None where there are none. Raises InputError
    when the file cannot be read.
    """
    value = source.document()
    if value is not None:
        return value, True
    with source.opened() as file:
        data = file.read(_LARGEST_SALVAGED)
    try:
        return _part(codecs.getincrementaldecoder("utf-8")().decode(data)), False  # it may end in a character
    except UnicodeDecodeError:
        return None, False


class Document(NamedTuple):
    """A JSON value of a file, whether all of it is there, and what cannot be read beside it."""

    value: Any
    whole: bool = True
    problem: str | None = None


def documents(source: Source, wanted: Callable[[Any], bool]) -> Iterator[Document]:
    """What a file of JSON may hold: one value, a list of them, lines of them, or the beginning of one.

    `wanted` tells a value that is looked for; of lists and lines only such are given, those of lines one at a
    time, and what stands beside them is counted with the last. Raises InputError when the file is unreadable.
    """
    if _begins_as_lines(source):
        yield from _of_lines(source, wanted)
        return
    value, whole = whole_or_part(source)
    if whole and isinstance(value, list) and not wanted(value):
        yield from _wanted(value, wanted, "Entries of the list")
    elif whole:
        yield Document(value)
    elif any(wanted(line.value) for line in source.lines()):
        yield from _of_lines(source, wanted)
    else:
        yield Document(value, False, "The file ends in the middle: what stands after that is lost.")


def _begins_as_lines(source: Source) -> bool:
    """Whether the first line is a value of its own and another line follows."""
    first = list(islice(source.lines(), 2))
    return len(first) == 2 and first[0].value is not None


def _of_lines(source: Source, wanted: Callable[[Any], bool]) -> Iterator[Document]:
    return _wanted((line.value for line in source.lines()), wanted, "Lines of the file")


def _wanted(values: Iterable[Any], wanted: Callable[[Any], bool], named: str) -> Iterator[Document]:
    last: Document | None = None
    lost = other = 0
    for value in values:
        if wanted(value):
            if last is not None:
                yield last
            last = Document(value)
        else:
            lost += value is None
            other += value is not None
    if last is not None:
        counts = {f"{named} that cannot be read": lost, f"{named} that hold no such record": other}
        said = [f"{words}: {number:,}." for words, number in counts.items() if number]
        yield last._replace(problem=" ".join(said) or None)


def _part(cut: str) -> Any:
    """The value that begins a text, closed after the last of its parts that is complete."""
    open_now: list[str] = []
    safe, key_next = 0, False
    for found in _TOKEN.finditer(cut):
        token, last = found[0], found.end()
        if token in "{[":
            open_now.append(_CLOSES[token])
            safe, key_next = last, token == "{"
        elif token in "}]":
            if not open_now or open_now.pop() != token:
                return None
            safe, key_next = last, False
            if not open_now:
                break
        elif token in ",:":
            key_next = token == "," and open_now[-1:] == ["}"]
        elif token == '"':  # a text that was cut
            break
        elif not key_next and (token[0] == '"' or last < len(cut)) and open_now:
            safe = last
    try:
        return DECODER.decode(cut[:safe].strip() + "".join(reversed(open_now)))
    except (ValueError, RecursionError):
        return None
