"""HTML pages: the text that a browser shows, blocks on lines of their own, cells of tables separated by tabs.

Scripts, styles, templates and what is hidden (by attribute or inline style) are out; `<pre>` keeps its
spaces.
"""

from __future__ import annotations

import re
from typing import Any, Final

from rlm_core.charsets import guess_encoding, utf16_without_mark
from rlm_core.readers.output import Output, Unreadable

_MOST_BYTES: Final = 256 << 20  # its tree takes about ten times that
_HEAD: Final = 4096
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"),
)  # fmt: skip
_DECLARED: Final = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I
)
# What browsers take these labels for (WHATWG Encoding Standard).
_ALIASES: Final = {
    "iso-8859-1": "cp1252", "latin1": "cp1252", "latin-1": "cp1252", "ascii": "cp1252", "us-ascii": "cp1252",
    "windows-1252": "cp1252", "iso-8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "ks_c_5601-1987": "cp949", "euc-kr": "cp949", "utf8": "utf-8",
}  # fmt: skip
_OUT: Final = frozenset({
    "head", "script", "style", "template", "noscript", "iframe", "noframes", "noembed", "datalist", "audio",
    "video", "-comment",
})  # fmt: skip
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hgroup", "hr", "legend", "li", "main", "menu", "nav", "ol", "optgroup", "option",
    "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})  # fmt: skip
_LISTS: Final = frozenset({"ol", "ul", "menu", "dir"})
_CELLS: Final = frozenset({"td", "th"})
_KEPT: Final = frozenset({"pre", "textarea", "listing", "xmp"})
_HIDDEN: Final = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.I)
_SPACE: Final = re.compile(r"[ \t\n\r\f]+")


def read(path: str, out: Output) -> None:
    """Read the page at `path` into `out`; see `rlm_core.readers.output`."""
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise Unreadable(f"a page of more than {_MOST_BYTES >> 20} MB: convert it to text and add that")
    markup, remark = decode(data)
    text = visible_text(markup)
    if not text:
        raise Unreadable("a page without any visible text (made by scripts?): save it as text and add that")
    out.write(text)
    if remark:
        out.remark(remark)


def decode(data: bytes) -> tuple[str, str | None]:
    """The markup of a page, and a remark where its encoding is not the one it declares.

    A byte order mark counts first, then valid UTF-8, then what the page declares, then a guess.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace"), None
    if b"\0" in data[:_HEAD] and (wide := utf16_without_mark(data[:_HEAD])):
        return data.decode(wide, "replace"), f"read as {wide} (guessed: no byte order mark)"
    match = _DECLARED.search(data[:_HEAD])
    declared = match[1].decode("ascii").lower() if match else ""
    codec = _ALIASES.get(declared, declared)
    if (text := _decoded(data, "utf-8")) is not None:
        wrong = codec not in ("", "utf-8") and not data.isascii()
        return text, f"declares {declared}, but is utf-8: read as that" if wrong else None
    if codec and not codec.startswith("utf") and (text := _decoded(data, codec)) is not None:
        return text, None
    guess = guess_encoding(_sample(data))
    said = f"declares {declared}, but is not: " if declared else ""
    return data.decode(guess, "replace"), f"{said}read as {guess} (guessed)"


def _decoded(data: bytes, codec: str) -> str | None:
    try:
        text = data.decode(codec)
    except (UnicodeDecodeError, LookupError):
        return None
    return text if isinstance(text, str) else None


def _sample(data: bytes) -> bytes:
    return b"\n".join(line for line in data.split(b"\n") if not line.isascii())[: 1 << 16]


def visible_text(markup: str) -> str:
    """The text that a browser shows of some markup, the title first; it ends in a line end. "" for none."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(markup)
    page = _Page()
    title = tree.css_first("head > title")
    if title is not None:
        page.block()
        page.add(title.text(deep=True))
        page.block()
    if tree.body is not None:
        _walk(tree.body, page)
    return page.text()


class _Page:
    """Lines of text in the making. In a row of a table every break is a blank: the row stays a line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._mark = ""
        self._row: list[str] | None = None

    def mark(self, text: str) -> None:
        """The mark of a list item, put before its first text wherever that stands."""
        self._mark = text

    def add(self, text: str) -> None:
        """Inline text: runs of white space are one blank, none at the beginning of a line."""
        text = _SPACE.sub(" ", text)
        if not self._line or self._line[-1].endswith(" "):
            text = text.lstrip(" ")
        if text:
            self._put(text)

    def keep(self, text: str) -> None:
        """Preformatted text."""
        if self._row is not None:
            self.add(text)
            return
        *lines, last = text.replace("\r\n", "\n").split("\n")
        for line in lines:
            self._put(line)
            self._end_line(blank=True)
        if last:
            self._put(last)

    def line_break(self) -> None:
        """A `<br>`."""
        if self._row is not None:
            self.add(" ")
        else:
            self._end_line(blank=True)

    def block(self) -> None:
        """A block begins or ends: the line ends, if anything is in it."""
        if self._row is not None:
            self.add(" ")
        elif self._line:
            self._end_line(blank=False)

    def open_row(self) -> None:
        """A row of a table begins."""
        self.block()
        self._row = []

    def close_cell(self) -> None:
        """A cell of the open row ends."""
        if self._row is not None:
            self._row.append("".join(self._line).strip(" "))
            self._line.clear()

    def close_row(self) -> None:
        """The open row ends: its cells are a line, with tabs between them."""
        cells, self._row = self._row or [], None
        if any(cells):
            self._lines.append("\t".join(cells))
        self._line.clear()

    def text(self) -> str:
        """Everything so far."""
        self._end_line(blank=False)
        text = "\n".join(self._lines).strip("\n")
        return f"{text}\n" if text.strip() else ""

    def _put(self, text: str) -> None:
        if self._mark:
            self._line.append(self._mark)
            self._mark = ""
        self._line.append(text)

    def _end_line(self, blank: bool) -> None:
        """`blank`: an empty line counts, but only one at a time."""
        line = "".join(self._line).rstrip(" ")
        self._line.clear()
        if line or (blank and self._lines and self._lines[-1]):
            self._lines.append(line)


def _walk(root: Any, page: _Page) -> None:
    """Go through the tree without recursion: pages may be nested a hundred thousand deep."""
    state = _Open(page)
    node, entering = root, True
    while node is not None:
        tag = node.tag
        if entering and node.is_text_node:
            text = node.text_content or ""
            (page.keep if state.kept else page.add)(text)
        elif entering and not _is_out(node, tag):
            state.enter(node, tag)
            if node.child is not None:
                node = node.child
                continue
            state.leave(tag)
        elif not entering:
            state.leave(tag)
        if node.mem_id == root.mem_id:
            break
        node, entering = (node.next, True) if node.next is not None else (node.parent, False)


def _is_out(node: Any, tag: str) -> bool:
    if tag in _OUT or not node.is_element_node:
        return True
    attributes = node.attributes
    if not attributes:
        return False
    return "hidden" in attributes or bool(_HIDDEN.search(attributes.get("style") or ""))


class _Open:
    """What is open at a place of the tree."""

    def __init__(self, page: _Page) -> None:
        self.kept = 0  # elements that keep their spaces
        self._page = page
        self._lists: list[int | None] = []  # the last number of each list, None when it has bullets
        self._tables: list[bool] = []  # of each table whether it holds data: else it only arranges the page

    def enter(self, node: Any, tag: str) -> None:
        """An element begins."""
        self.kept += tag in _KEPT
        if tag == "br":
            self._page.line_break()
        elif tag == "tr" and self._tables and self._tables[-1]:
            self._page.open_row()
        elif tag in _BLOCKS:
            self._page.block()
        if tag == "table":
            self._tables.append(_holds_data(node))
        elif tag in _LISTS:
            self._lists.append(_start(node) if tag == "ol" else None)
        elif tag == "li":
            self._page.mark(self._next_mark())

    def leave(self, tag: str) -> None:
        """An element ends."""
        self.kept -= tag in _KEPT
        in_data = bool(self._tables and self._tables[-1])
        if tag in _CELLS and in_data:
            self._page.close_cell()
        elif tag == "tr" and in_data:
            self._page.close_row()
        elif tag in _BLOCKS or tag in _CELLS:
            self._page.block()
        if tag == "table":
            self._tables.pop()
        elif tag in _LISTS:
            self._lists.pop()

    def _next_mark(self) -> str:
        last = self._lists[-1] if self._lists else None
        if last is None:
            return "- "
        self._lists[-1] = last + 1
        return f"{last + 1}. "


def _holds_data(table: Any) -> bool:
    """A table with tables in it arranges the page; its cells are blocks like others."""
    return all(inner.mem_id == table.mem_id for inner in table.css("table"))


def _start(numbered: Any) -> int:
    start = (numbered.attributes.get("start") or "1").strip()
    return int(start) - 1 if start.isdecimal() and len(start) < 10 else 0
