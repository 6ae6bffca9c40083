"""A report as one HTML file that stands by itself: no script, nothing from elsewhere, every text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from html import escape
from typing import Final, assert_never

from traces.report_parts import (
    EMPTY,
    SHOWN_CHARS,
    WHOLE_CHARS,
    Heading,
    Items,
    Part,
    Sides,
    Table,
    Text,
    Words,
    left_out,
    middle_out,
)
from traces.visible import block, line

_LIKE: Final = 0.3  # texts less alike than that have no differences to be marked: all of it is one
_TOKENS: Final = re.compile(r"\w+|\s+|[^\w\s]")
# the policy holds even if something above were to fail: a browser fetches and runs nothing for this file
_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
"""
_STYLE: Final = """
:root {
  color-scheme: light dark;
  --ground: light-dark(#ffffff, #15181d); --ink: light-dark(#1c2128, #e4e7eb);
  --soft: light-dark(#57606a, #a3adb8); --line: light-dark(#d5dae0, #363d47);
  --box: light-dark(#f5f7f9, #1e232a); --bad: light-dark(#fde3e1, #55262a);
  --good: light-dark(#d8f3df, #1d4630); --key: light-dark(#0b5cad, #7cb8ff);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2rem 1.5rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-top: .8rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p, ul { margin: .5rem 0; } ul { padding-left: 1.3rem; }
.strong { font-size: 1.1rem; font-weight: 600; border-left: 4px solid var(--key); padding-left: .8rem; }
.label { color: var(--soft); font-size: .85rem; font-weight: 600; margin: .8rem 0 .25rem; }
pre { margin: 0; padding: .7rem .9rem; background: var(--box); border: 1px solid var(--line);
  border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate;
  font: 13px/1.5 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
.cut { color: var(--soft); font-style: italic; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1rem; }
.was mark { background: var(--bad); color: inherit; }
.should mark { background: var(--good); color: inherit; }
.was pre { border-left: 4px solid #d1605e; } .should pre { border-left: 4px solid #3f9c60; }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--key); font-size: .9rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; overflow-wrap: anywhere;
  border-bottom: 1px solid var(--line); }
td:not(.figure) { min-width: 5.5rem; }
th { color: var(--soft); font-weight: 600; overflow-wrap: normal; }
.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
@media print {
  :root { color-scheme: light; } body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  pre { font-size: 8.5pt; } h2, h3, .label { break-after: avoid; } tr { break-inside: avoid; }
  .scroll { overflow: visible; } details:not([open]) { display: none; }
}
"""


def to_html(title: str, parts: Iterable[Part]) -> str:
    """The whole report as one HTML document."""
    shown = "\n".join(text for part in parts for text in _part(part))
    return f"{_HEAD.format(title=_inline(title), style=_STYLE)}{shown}\n</main>\n</body>\n</html>\n"


def _inline(text: str) -> str:
    return escape(line(text))


def _part(part: Part) -> Iterator[str]:
    match part:
        case Heading():
            yield f"<h{part.level}>{_inline(part.text)}</h{part.level}>"
        case Words():
            yield f"<p{' class=strong' if part.strong else ''}>{_inline(part.text)}</p>"
        case Items():
            yield "<ul>" + "".join(f"<li>{_inline(text)}</li>" for text in part.texts) + "</ul>"
        case Text():
            yield _text(part)
        case Sides():
            was, should_be = _marked(part.was.text, part.should_be.text)
            yield f'<div class="sides"><div class="was">{_text(part.was, was)}</div>'
            yield f'<div class="should">{_text(part.should_be, should_be)}</div></div>'
        case Table():
            yield _table(part)
        case _:
            assert_never(part)


def _text(part: Text, marked: str | None = None) -> str:
    """A text under its label. `marked`: its HTML where parts of it are marked already."""
    label = f'<p class="label">{_inline(part.label)}'
    if not part.text:
        return f'{label}</p>\n<p class="cut">{EMPTY if part.text == "" else _inline(part.absent)}</p>'
    begin, end, cut = middle_out(part.text, SHOWN_CHARS)
    if not cut:
        return f"{label}</p>\n{_pre(marked or _block(begin))}"
    shown = _pre(_joined(begin, end, cut))
    whole = _pre(_joined(*middle_out(part.text, WHOLE_CHARS)))
    size = f"{len(part.text):,} characters"
    return f"{label} ({size}; cut in the middle)</p>\n{shown}\n{_folded(f'The whole text ({size})', whole)}"


def _joined(begin: str, end: str, cut: int) -> str:
    if not cut:
        return _block(begin)
    return f'{_block(begin)}\n<span class="cut">{left_out(cut)}</span>\n{_block(end)}'


def _pre(inner: str) -> str:
    return f"<pre dir=auto>\n{inner}</pre>"  # a parser drops the first line feed: texts keep their own


def _block(text: str) -> str:
    return escape(block(text))


def _marked(was: str | None, should_be: str | None) -> tuple[str | None, str | None]:
    """Both texts as HTML with the words marked in which they differ; None where that would say nothing."""
    if not was or not should_be or max(len(was), len(should_be)) > SHOWN_CHARS:
        return None, None  # comparing takes the square of their length
    one, other = _TOKENS.findall(was), _TOKENS.findall(should_be)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < _LIKE:
        return None, None
    sides: tuple[list[str], list[str]] = ([], [])
    for kind, *ends in matcher.get_opcodes():
        for side, tokens, begin, end in zip(sides, (one, other), ends[::2], ends[1::2], strict=True):
            shown = _block("".join(tokens[begin:end]))
            side.append(shown if kind == "equal" or not shown else f"<mark>{shown}</mark>")
    return "".join(sides[0]), "".join(sides[1])


def _table(part: Table) -> str:
    def row(tag: str, cells: Iterable[str]) -> str:
        made = (
            f"<{tag}{' class=figure' if number in part.right else ''}>{_inline(cell)}</{tag}>"
            for number, cell in enumerate(cells)
        )
        return "<tr>" + "".join(made) + "</tr>"

    rows = "\n".join(row("td", cells) for cells in part.rows)
    head = f"<thead>{row('th', part.head)}</thead>"
    table = f'<div class="scroll"><table>{head}\n<tbody>\n{rows}\n</tbody></table></div>'
    return table if part.folded is None else _folded(part.folded, table)


def _folded(words: str, inner: str) -> str:
    return f"<details><summary>{_inline(words)}</summary>\n{inner}\n</details>"
