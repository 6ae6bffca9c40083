"""Finding the code in a root reply.

Guided by Python, not by the fence alone: a fence line inside a string of the code does not end its block.
Blocks with a Python tag and tool calls count; bare fences only when there is neither. Prose is never run. The
work is bounded, whatever the reply holds.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final, Literal

from rlm_core.python_text import as_written, outside_strings, parses
from rlm_core.tool_calls import tool_calls

How = Literal["fence", "bare_fence", "unclosed_fence", "tool_call"]
_TAGS: Final = frozenset({"repl", "python", "py", "python3", "ipython", "tool_code"})
_CALL_TAGS: Final = frozenset({"json", "xml", "tool_call"})
_OUTPUT_TAGS: Final = frozenset({"", "output", "out", "text", "txt", "console", "stdout", "pycon"})
_OPEN: Final = re.compile(
    r"(?P<indent>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(?P<marks>`{3,}|~{3,})[ \t]*\{?(?P<tag>[\w.+-]*)"
)
_FENCE: Final = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})(?P<rest>.*)")
_TAGGED: Final = re.compile(r"\{?\w[\w.+-]*\}?[ \t]*")  # right behind the marks: this fence opens a block
_CLOSINGS_TRIED: Final = 3  # fence lines outside of strings that are tried as the end of one block
_WORK: Final = 4_000_000  # characters scanned for ends in all blocks of a reply
_CLAIM: Final = re.compile(
    r"^[^\w\n<]*(?:(?:the |cell |execution |repl |expected )?(?:output|stdout|results?)\b[^\n]{0,40}:|"
    r"(?<=#)[ \t]*output[ \t]*$|out\s*\[\d*\]|(?:this |it )?(?:prints|outputs|returns)\b[^\n]{0,40}:|"
    r"(?<=>>>) |</?(?:\w+:)?(?:function_|tool_)?(?:results?|outputs?|stdout|response)>)",
    re.I | re.M,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One block of code and how it was found; `parses` is False for code with a syntax error."""

    code: str
    how: How
    parses: bool


@dataclass(frozen=True, slots=True)
class Extraction:
    """The cells of a reply, and a sentence for the model when something was left out or nothing was found.

    `kept` is the reply up to the end of the last cell: what a model writes after it (often invented output)
    does not belong into its history.
    """

    cells: tuple[Cell, ...]
    remark: str | None = None
    kept: str | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    cell: Cell
    tag: str
    start: int  # its first line, the fence included
    end: int  # the line after its last one


@dataclass(frozen=True, slots=True)
class _Fence:
    line: int
    place: int  # of its line's first character
    marks: str
    rest: str

    def closes(self, marks: str) -> bool:
        """Whether it may end a block that these marks opened."""
        return self.marks[0] == marks[0] and len(self.marks) >= len(marks)


def extract(reply: str, finish_reason: str | None = "stop") -> Extraction:
    """All cells of a reply in order. A reply that was cut off by its length has none."""
    if finish_reason == "length":
        remark = "Your reply was cut off by its length limit, so nothing was executed. Write less per turn."
        return Extraction((), remark)
    text = reply.replace("\r\n", "\n").replace("\r", "\n")
    reader = _Reader(text)
    blocks = reader.blocks()
    meant = [block for block in blocks if block.tag in _TAGS]
    if not meant:
        meant = [block for block in blocks if not block.tag and _does_something(block.cell)]
    if not meant:
        return Extraction((), "Nothing was executed: no ```repl block was found in your reply.")
    return _believed(meant, blocks, reader.lines)


def _believed(meant: list[_Block], blocks: list[_Block], lines: list[str]) -> Extraction:
    """The blocks up to the point where the text between two of them claims to be output."""
    remark = None
    for number in range(1, len(meant)):
        if _claims_output(meant[number - 1].end, meant[number].start, blocks, lines):
            remark = "Only the blocks before your own made-up output were executed; wait for the real output."
            meant = meant[:number]
            break
    return Extraction(tuple(block.cell for block in meant), remark, "\n".join(lines[: meant[-1].end]))


def _claims_output(start: int, end: int, blocks: list[_Block], lines: list[str]) -> bool:
    first = bisect_left(blocks, start, key=lambda block: block.start)
    last = bisect_left(blocks, end, key=lambda block: block.start)
    if any(block.tag in _OUTPUT_TAGS for block in blocks[first:last]):
        return True
    return bool(_CLAIM.search("\n".join(lines[start:end])))


def _does_something(cell: Cell) -> bool:
    """Bare fences hold anything: take one as code only when it does something."""
    if not cell.parses:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(cell.code)
    doing = (ast.Call, ast.Assign, ast.AugAssign, ast.Import, ast.ImportFrom)
    return any(isinstance(node, doing) for node in ast.walk(tree))


class _Reader:
    """One pass over the lines of a reply."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self._text = text
        self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]  # of the lines, in the text
        self._fences = [
            _Fence(number, self._starts[number], found["marks"], found["rest"])
            for number, line in enumerate(self.lines)
            if (found := _FENCE.fullmatch(line))
        ]
        self._calls = self._tool_calls()
        self._work = _WORK

    def blocks(self) -> list[_Block]:
        """Fenced blocks and tool calls in order; none begins inside another."""
        blocks: list[_Block] = []
        at = 0
        while at < len(self.lines):
            opening = _OPEN.match(self.lines[at])
            if at in self._calls:
                code, end = self._calls[at]
                blocks.append(_Block(Cell(code, "tool_call", parses(code)), "repl", at, end))
            elif opening and not (opening["marks"][0] == "`" and "`" in self.lines[at][opening.end() :]):
                blocks.append(self._block(at, opening))
            at = max(at + 1, blocks[-1].end if blocks else 0)
        return blocks

    def _tool_calls(self) -> dict[int, tuple[str, int]]:
        """Code and the line behind it, by the first line; calls that share a line are one."""
        found: dict[int, tuple[str, int]] = {}
        start = end = 0
        for call in tool_calls(self._text):
            code = call.code
            if self._line_at(call.start) >= end:
                start = self._line_at(call.start)
            else:
                code = f"{found[start][0]}\n{code}"
            end = self._line_at(call.end - 1) + 1
            found[start] = (code, end)
        return found

    def _line_at(self, place: int) -> int:
        return bisect_right(self._starts, place) - 1

    def _block(self, start: int, opening: re.Match[str]) -> _Block:
        """The block opened at a line: up to the first fence line outside of strings that leaves Python, else
        up to the first plain one, else to the end.
        """
        marks, tag, indent = opening["marks"], opening["tag"].lower(), len(opening["indent"])
        how: How = "fence" if tag else "bare_fence"
        for fence in self._outside_strings(start + 1, marks) if tag in _TAGS or not tag else ():
            code, is_python = as_written(self.lines[start + 1 : fence.line], indent)
            if is_python:
                opens_another = _TAGGED.fullmatch(fence.rest) is not None
                return _Block(Cell(code, how, True), tag, start, fence.line + (not opens_another))
        plain = next((fence for fence in self._closing(start + 1, marks) if not fence.rest.strip()), None)
        if plain is None:
            return self._unclosed(start, marks, tag, indent)
        code, is_python = as_written(self.lines[start + 1 : plain.line], indent)
        if tag in _CALL_TAGS and len(calls := tool_calls(code)) == 1:
            code, is_python = calls[0].code, parses(calls[0].code)
            tag, how = "repl", "tool_call"
        return _Block(Cell(code, how, is_python), tag, start, plain.line + 1)

    def _unclosed(self, start: int, marks: str, tag: str, indent: int) -> _Block:
        code, is_python = as_written(self.lines[start + 1 :], indent)
        if not is_python and code.rstrip().endswith(marks):  # the fence stands behind the last code line
            code, is_python = as_written(code.rstrip()[: -len(marks)].split("\n"), indent)
        return _Block(Cell(code, "unclosed_fence", is_python), tag, start, len(self.lines))

    def _closing(self, line: int, marks: str) -> Iterator[_Fence]:
        """The fences from a line on that may close a block these marks opened."""
        for number in range(bisect_left(self._fences, line, key=_line_of), len(self._fences)):
            if self._fences[number].closes(marks):
                yield self._fences[number]

    def _outside_strings(self, line: int, marks: str) -> list[_Fence]:
        """The first few of them where no string of the code is open, as far as work is left."""
        start = self._starts[line]
        end = min(len(self._text), start + self._work)
        ahead = (fence.place for fence in self._closing(line, marks))
        places = list(islice(outside_strings(self._text, start, end, ahead), _CLOSINGS_TRIED))
        scanned = (places[-1] if len(places) == _CLOSINGS_TRIED else end) - start
        self._work -= max(0, scanned) + sum(place - start for place in places)
        return [self._fences[bisect_left(self._fences, place, key=_place_of)] for place in places]


def _line_of(fence: _Fence) -> int:
    return fence.line


def _place_of(fence: _Fence) -> int:
    return fence.place
