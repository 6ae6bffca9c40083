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
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

from traces.each_run import each_run
from traces.exporters.files import STILL_RUNNING, ExportDone, new_file, new_folder
from traces.exporters.html_data import Texts, as_script
from traces.exporters.html_details import Details
from traces.exporters.html_rows import top_nodes, tree_rows
from traces.exporters.html_summary import closing, notes, summary
from traces.exporters.redaction import Redactor
from traces.home import Home
from traces.imported import asked_words
from traces.reading import Node, Warn, load_run
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
    """Write the page of a run to a new file, those of several to a new folder. Raises InputError for a run
    that is not there and a place that is taken; RecordError for a record that cannot be read.
    """
    if len(run_ids) == 1:
        with new_file(out) as file:
            written = [_written(file, load_run(home, run_ids[0], warn=warn))]
    else:
        with new_folder(out) as folder:
            written = []
            for view in each_run(home, run_ids, warn):
                with (folder / f"{home.spool_file(view.run_id).stem}.html").open("xb") as file:
                    written.append(_written(file, view))
    said = [sentence for _, sentences in written for sentence in sentences]
    return ExportDone(
        out.expanduser().absolute(), tuple(run_ids), sum(places for places, _ in written), tuple(said)
    )


def _written(file: BinaryIO, view: RunView) -> tuple[int, list[str]]:
    """Write a page; the sentences about it name its run."""
    redacted, left = write_page(file, view)
    said = [STILL_RUNNING.format(view.run_id)] if view.live else []
    return redacted, [*said, *(f"{view.run_id}: {sentence}" for sentence in left)]


def write_page(file: BinaryIO, view: RunView) -> tuple[int, list[str]]:
    """Write the page of a run; returns in how many places a key was taken out, and what was left out."""
    redactor = Redactor()
    texts = Texts(view, redactor)
    script = "\n".join((_PARTS / name).read_text("utf-8") for name in _SCRIPTS)
    tops = top_nodes(view)
    file.write(_encoded(_head(view, script, redactor)))
    file.write(_encoded("\n".join(summary(view, tops, redactor)) + '\n<div id="run"></div>\n'))
    for part in chain(texts.scripts(), _tree(view, tops, texts, redactor)):
        file.write(part)
    file.write(_encoded(closing(view, redactor, texts.cut, texts.dropped)))
    file.write(f"\n</main>\n<script>{script}</script>\n</body>\n</html>\n".encode())
    return redactor.replaced, notes(texts.cut, texts.dropped)


def _head(view: RunView, script: str, redactor: Redactor) -> str:
    style = (_PARTS / "page.css").read_text("utf-8")
    run = view.summary
    asked = asked_words(run) if run.question or run.imported_file else f"Run {run.run_id}"
    return _HEAD.format(
        script_hash=_digest(script),
        style_hash=_digest(style),
        style=style,
        title=escape(line(redactor.text(asked)[:_TITLE_CHARS])),
    )


def _tree(view: RunView, tops: Sequence[Node], texts: Texts, redactor: Redactor) -> Iterator[bytes]:
    rows = tree_rows(tops, texts, redactor.text)
    details = Details(view, rows, texts, redactor)
    row_of = {number: row for row, number in enumerate(rows.columns["span"]) if number >= 0}
    for first in range(0, len(rows.spans), _PER_CHUNK):
        made: list[dict[str, Any]] = []
        for number, placed in enumerate(rows.spans[first : first + _PER_CHUNK], first):
            made.append(detail := details.of(placed))
            listed = [text[1] for text in (*detail["texts"], *detail.get("messages", ()))]
            rows.columns["texts"][row_of[number]] = listed
        yield as_script(made, "details", first)
    yield as_script(rows.columns, "rows")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
