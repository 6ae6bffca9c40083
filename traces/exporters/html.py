"""A run as one HTML page that stands by itself: it opens from disk, and asks nothing of any other place.

The texts of a run may be anything. In the part that needs no script they are escaped; all others are data,
in elements that a browser does not run, and the page's own script puts them up as text. A policy in the page
lets only that script and the page's own style work, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, BinaryIO, Final

from rlm_core.errors import InputError
from traces.exporters.files import ExportDone, new_file
from traces.exporters.html_data import Texts, as_script
from traces.exporters.html_details import Details
from traces.exporters.html_rows import Rows, tree_rows
from traces.exporters.html_summary import closing, notes, summary
from traces.exporters.redaction import Redactor
from traces.home import Home
from traces.reading import Warn, load_run
from traces.view import RunView
from traces.visible import line

_PARTS: Final = Path(__file__).parent / "page"
_SCRIPTS: Final = ("rows.js", "span.js", "page.js")
_TITLE_CHARS: Final = 100
_PER_CHUNK: Final = 200  # spans whose details are read together when one of them is asked for
_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{script_hash}'; \
style-src '{style_hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
"""


def export(home: Home, run_ids: Sequence[str], out: Path, *, warn: Warn | None = None) -> ExportDone:
    """Write the page of a run to a new file. Raises InputError for several runs, one that is not there, and a
    place that is taken; RecordError for a record that cannot be read.
    """
    if len(run_ids) != 1:
        raise InputError("An HTML page shows one run: export each run by itself.")
    view = load_run(home, run_ids[0], warn=warn)
    with new_file(out) as file:
        redacted, said = write_page(file, view)
    return ExportDone(out, (view.run_id,), redacted, tuple(said))


def write_page(file: BinaryIO, view: RunView) -> tuple[int, list[str]]:
    """Write the page of a run; returns in how many places a key was taken out, and what was left out."""
    redactor = Redactor()
    texts = Texts(view, redactor)
    for part in _parts(view, texts, redactor):
        file.write(part)
    return redactor.replaced, notes(texts.cut, texts.dropped)


def _parts(view: RunView, texts: Texts, redactor: Redactor) -> Iterator[bytes]:
    script = "\n".join((_PARTS / name).read_text("utf-8") for name in _SCRIPTS)
    style = (_PARTS / "page.css").read_text("utf-8")
    question = redactor.text(view.summary.question or "")
    title = line(question[:_TITLE_CHARS]) or f"Run {view.run_id}"
    head = _HEAD.format(
        script_hash=_digest(script), style_hash=_digest(style), style=style, title=escape(title)
    )
    rows = tree_rows(view)
    yield _encoded(head + "\n".join(summary(view, rows, redactor)) + '\n<div id="run"></div>\n')
    yield from _data(view, rows, texts, redactor)
    yield _encoded(closing(view, redactor, texts.cut, texts.dropped))
    yield f"\n</main>\n<script>{script}</script>\n</body>\n</html>\n".encode()


def _data(view: RunView, rows: Rows, texts: Texts, redactor: Redactor) -> Iterator[bytes]:
    details = Details(view, rows, texts, redactor)
    row_of = {number: row for row, number in enumerate(rows.columns["span"]) if number >= 0}
    for first in range(0, len(rows.spans), _PER_CHUNK):
        made: list[dict[str, Any]] = []
        for number, placed in enumerate(rows.spans[first : first + _PER_CHUNK], first):
            made.append(detail := details.of(placed))
            listed = [text[1] for text in (*detail["texts"], *detail.get("messages", ()))]
            rows.columns["texts"][row_of[number]] = listed
        yield as_script(made, "details", first)
    for name in ("label", "note"):
        rows.columns[name] = list(map(redactor.text, rows.columns[name]))
    yield as_script(rows.columns, "rows")
    yield from texts.scripts()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
