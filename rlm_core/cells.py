"""Finding the code in a root reply.

Guided by the parser, not by the fence alone: a block ends at the first closing fence where what stands before it is
Python, so that fence lines inside a string do not cut it. Blocks with a Python tag count; bare fences only when there
is no tagged one; tool-call markup (`<invoke name="...">`, `<tool_call>{...}`) is read too. Prose is never executed.
"""

from __future__ import annotations

import ast
import html
import json
import re
import textwrap
import warnings
from dataclasses import dataclass
from typing import Final, Literal

How = Literal["fence", "bare_fence", "unclosed_fence", "tool_call"]
_TAGS: Final = frozenset({"repl", "python", "py", "python3", "ipython", "pycon", "tool_code"})
_OPEN: Final = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<marks>`{3,}|~{3,})[ \t]*\{?[ \t]*(?P<tag>[\w.+-]*)"
)
_INVOKE: Final = re.compile(
    r"<(?P<t>(?:\w+:)?(?:parameter|code))\b[^>]*?(?:name\s*=\s*[\"']?(?:code|cell|source|python)[\"']?)?[^>]*>(?P<code>.*?)</(?P=t)>",
    re.S,
)
_TOOL_CALL: Final = re.compile(r"<tool_call>\s*(?P<json>\{.*?\})\s*</tool_call>", re.S)
_MOST_CLOSINGS: Final = (
    200  # fence lines tried as the end of one block: a hostile reply must not cost a parse for each
)
_CLAIM: Final = re.compile(
    r"^\W*(?:(?:the |cell |execution |repl |expected )?(?:output|stdout|results?)\b[^\n]{0,40}:|"
    r"out\s*\[\d*\]|(?:this |it )?(?:prints|outputs|returns)\b[^\n]{0,40}:|>>> )",
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

    `kept` is the reply up to the end of the last cell: what a model writes after it (often invented output) does not
    belong into its history.
    """

    cells: tuple[Cell, ...]
    remark: str | None = None
    kept: str | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    tag: str
    code: str
    closed: bool
    parses: bool
    start: int  # line of the opening fence
    end: int  # line after the closing fence


def extract(reply: str, finish_reason: str | None = "stop") -> Extraction:
    """All cells of a reply in order. A reply that was cut off by its length has none."""
    if finish_reason == "length":
        return Extraction(
            (), "Your reply was cut off by its length limit, so nothing was executed. Write less per turn."
        )
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks = _blocks(lines)
    tagged = [block for block in blocks if block.tag in _TAGS]
    if tagged:
        return _believed(tagged, blocks, lines)
    bare = [block for block in blocks if not block.tag and block.parses and _is_code(block.code)]
    if bare:
        return Extraction(
            tuple(Cell(block.code, "bare_fence", True) for block in bare), None, _up_to(lines, bare[-1])
        )
    if called := _tool_calls(reply):
        return Extraction((Cell(called, "tool_call", parses(called)),))
    return Extraction((), "Nothing was executed: no ```repl block was found in your reply.")


def parses(code: str) -> bool:
    """Whether code is Python, without running it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _believed(tagged: list[_Block], blocks: list[_Block], lines: list[str]) -> Extraction:
    """Tagged blocks up to the point where the text between two of them claims to be output."""
    taken: list[Cell] = []
    for number, block in enumerate(tagged):
        if number and _claims_output(tagged[number - 1], block, blocks, lines):
            remark = "Only the blocks before your own made-up output were executed; wait for the real output."
            return Extraction(tuple(taken), remark, _up_to(lines, tagged[number - 1]))
        how: How = "fence" if block.closed else "unclosed_fence"
        taken.append(Cell(block.code, how, block.parses))
    return Extraction(tuple(taken), None, _up_to(lines, tagged[-1]))


def _up_to(lines: list[str], block: _Block) -> str:
    return "\n".join(lines[: block.end])


def _claims_output(before: _Block, after: _Block, blocks: list[_Block], lines: list[str]) -> bool:
    between = [block for block in blocks if before.end <= block.start < after.start]
    if any(block.tag in ("", "output", "text", "console", "stdout") for block in between):
        return True
    return bool(_CLAIM.search("\n".join(lines[before.end : after.start])))


def _blocks(lines: list[str]) -> list[_Block]:
    blocks = []
    at = 0
    while at < len(lines):
        opening = _OPEN.match(lines[at])
        if opening is None or "`" in lines[at][opening.end() :]:
            at += 1
            continue
        block = _block(lines, at, opening.group("marks"), opening.group("tag").lower())
        blocks.append(block)
        at = block.end
    return blocks


def _block(lines: list[str], start: int, marks: str, tag: str) -> _Block:
    """The block opened at a line: the shortest body that parses, else the one up to the first plain closing fence."""
    closing = re.compile(rf"^[ \t]*{re.escape(marks[0])}{{{len(marks)},}}(?P<rest>.*)$")
    first_plain = first_any = None
    tries = 0
    for at in range(start + 1, len(lines)):
        found = closing.match(lines[at])
        if found is None:
            continue
        if first_any is None:
            first_any = at
        if first_plain is None and not found["rest"].strip():
            first_plain = at
        if (tag in _TAGS or not tag) and (tries := tries + 1) <= _MOST_CLOSINGS:
            body = _body(lines, start, at)
            if parses(body):
                return _Block(tag, body, True, True, start, at + 1)
    end = first_plain if first_plain is not None else first_any
    if end is not None:
        return _Block(tag, _body(lines, start, end), True, False, start, end + 1)
    rest = _body(lines, start, len(lines))
    if not parses(rest) and rest.rstrip().endswith(
        marks
    ):  # the fence stands at the end of the last code line
        rest = rest.rstrip()[: -len(marks)]
    return _Block(tag, rest, False, parses(rest), start, len(lines))


def _body(lines: list[str], start: int, end: int) -> str:
    return textwrap.dedent("\n".join(lines[start + 1 : end]))


def _is_code(text: str) -> bool:
    """Bare fences hold anything: take one as code only when it does something."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    return any(
        isinstance(node, (ast.Call, ast.Assign, ast.AugAssign, ast.Import, ast.ImportFrom))
        for node in ast.walk(tree)
    )


def _tool_calls(reply: str) -> str:
    """Code inside tool-call markup, several calls joined; "" where there is none."""
    found = []
    for match in _INVOKE.finditer(reply):
        code = textwrap.dedent(match["code"].strip("\n"))
        found.append(code if parses(code) else html.unescape(code))
    for match in _TOOL_CALL.finditer(reply):
        try:
            arguments = json.loads(match["json"]).get("arguments", {})
            code = arguments.get("code") or arguments.get("source")
        except (ValueError, AttributeError):
            continue
        if isinstance(code, str):
            found.append(code)
    return "\n".join(code for code in found if code.strip())
