"""The functions of `re` made to accept mapped texts. Nothing changes for any other argument.

Compiled patterns cannot be taught this, they are C: `refused` has the sentence for what they raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from rlm_core.texts import files
from rlm_core.texts.mapped import MappedText

_REFUSED: Final = re.compile(r"^(?:TypeError|AttributeError): .*\b(MappedText|Documents)\b", re.M)
_SAID: Final = {
    "MappedText": "A text this large is no str: use the functions of `re` (re.findall(pattern, text)), "
    "text.search(regex), .lines(), .chunks(n) or a slice.",
    "Documents": "This is a sequence of documents: use .search(regex), or loop over it.",
}


class FoundMatch:
    """What `re.Match` is, for a mapped text; holds the text of its groups and nothing else."""

    def __init__(self, text: MappedText, match: re.Match[str], offset: int) -> None:
        self.re = match.re
        self.string = text
        self.pos, self.endpos = 0, len(text)
        self.lastindex, self.lastgroup = match.lastindex, match.lastgroup
        self.regs = tuple((a + offset, b + offset) if a >= 0 else (a, b) for a, b in match.regs)
        self._groups = (match.group(), *match.groups())

    def _number(self, group: Any) -> int:
        number = self.re.groupindex.get(group, -1) if isinstance(group, str) else group
        if not 0 <= number < len(self._groups):
            raise IndexError("no such group")
        return int(number)

    def group(self, *groups: Any) -> Any:
        """As `re.Match.group`."""
        found = tuple(self._groups[self._number(group)] for group in groups or (0,))
        return found if len(found) > 1 else found[0]

    __getitem__ = group

    def groups(self, default: Any = None) -> tuple[Any, ...]:
        """As `re.Match.groups`."""
        return tuple(default if group is None else group for group in self._groups[1:])

    def groupdict(self, default: Any = None) -> dict[str, Any]:
        """As `re.Match.groupdict`."""
        return {name: self.groups(default)[number - 1] for name, number in self.re.groupindex.items()}

    def span(self, group: Any = 0) -> tuple[int, int]:
        """As `re.Match.span`."""
        return self.regs[self._number(group)]

    def start(self, group: Any = 0) -> int:
        """As `re.Match.start`."""
        return self.span(group)[0]

    def end(self, group: Any = 0) -> int:
        """As `re.Match.end`."""
        return self.span(group)[1]

    def __repr__(self) -> str:
        return f"<match; span={self.span()}, match={self.group()[:50]!r}>"


def install() -> None:
    """Make the functions of `re` in this process accept mapped texts."""
    for name, ours in _OURS.items():
        setattr(re, name, _either(getattr(re, name), ours, 2 if name.startswith("sub") else 1))


def refused(traceback: str) -> str:
    """A sentence for an error that shows that C code was given what is no str here; "" for any other."""
    found = _REFUSED.findall(traceback)
    return _SAID[found[-1]] if found else ""


def _either(theirs: Callable[..., Any], ours: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function that calls ours when its argument `string`, at this place, is a mapped text."""

    def function(*args: Any, **named: Any) -> Any:
        text = args[place] if len(args) > place else named.get("string")
        return (ours if type(text) is MappedText else theirs)(*args, **named)

    function.__name__, function.__qualname__ = theirs.__name__, theirs.__qualname__
    function.__doc__, function.__module__ = theirs.__doc__, theirs.__module__
    return function


def _finditer(pattern: Any, string: MappedText, flags: int = 0) -> Iterator[FoundMatch]:
    return _found(re.compile(pattern, flags), string)


def _found(pattern: re.Pattern[str], text: MappedText) -> Iterator[FoundMatch]:
    from rlm_core.texts.scan import hits

    return (FoundMatch(text, match, offset) for match, offset in hits(text, pattern))


def _search(pattern: Any, string: MappedText, flags: int = 0) -> FoundMatch | None:
    return next(_finditer(pattern, string, flags), None)


def _match(pattern: Any, string: MappedText, flags: int = 0) -> FoundMatch | None:
    from rlm_core.texts.scan import first_match

    match = first_match(string, re.compile(pattern, flags))
    return match and FoundMatch(string, match, 0)


def _fullmatch(pattern: Any, string: MappedText, flags: int = 0) -> FoundMatch | None:
    match = re.compile(pattern, flags).fullmatch(_whole(string, "fullmatch"))
    return match and FoundMatch(string, match, 0)


def _findall(pattern: Any, string: MappedText, flags: int = 0) -> list[Any]:
    return [
        match.group() if not groups else groups[0] if len(groups) == 1 else groups
        for match in _finditer(pattern, string, flags)
        for groups in (match.groups(""),)
    ]


def _split(pattern: Any, string: MappedText, maxsplit: int = 0, flags: int = 0) -> list[Any]:
    pieces: list[Any] = []
    start = held = 0
    for match in _finditer(pattern, string, flags):
        first, behind = match.span()
        held += first - start if first - start <= files.MOST_CHARS else 0
        if held > files.KEPT_BYTES:
            _refuse(string, "split")
        pieces += [string.part(start, first), *match.groups()]
        start = behind
        if maxsplit > 0 and (maxsplit := maxsplit - 1) == 0:
            break
    return [*pieces, string.part(start, len(string))]


def _sub(pattern: Any, repl: Any, string: MappedText, count: int = 0, flags: int = 0) -> str:
    return _subn(pattern, repl, string, count, flags)[0]


def _subn(pattern: Any, repl: Any, string: MappedText, count: int = 0, flags: int = 0) -> tuple[str, int]:
    return re.compile(pattern, flags).subn(repl, _whole(string, "subn"), count)


def _whole(text: MappedText, name: str) -> str:
    return text.read(0, len(text)) if len(text) <= files.KEPT_BYTES else _refuse(text, name)


def _refuse(text: MappedText, name: str) -> Any:
    raise ValueError(
        f"re.{name} would need {len(text):,} characters in memory: use it on .lines(), .chunks(n) or slices"
    )


_OURS: Final[dict[str, Callable[..., Any]]] = {
    "search": _search,
    "match": _match,
    "fullmatch": _fullmatch,
    "findall": _findall,
    "finditer": _finditer,
    "split": _split,
    "sub": _sub,
    "subn": _subn,
}
