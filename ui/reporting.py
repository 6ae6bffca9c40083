"""Reports of diagnoses as people get them: with the passages that the culprits read, in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import InputError, RecordError, RLMScopeError
from traces.report import Report, report
from traces.report_culprits import Passage
from ui.passages import passage_line, sources_of

if TYPE_CHECKING:
    from traces.home import Home
    from traces.view import RunView

FORMS: Final = (".html", ".md")
_HTML: Final = (".html", ".htm")
_MARKDOWN: Final = (".md", ".markdown")


def report_of(home: Home, diagnosis: Mapping[str, Any]) -> Report:
    """The report of a diagnosis (as `Diagnosis.to_json`), with what can be read of its runs and documents.

    Raises InputError when its run is not in the record (any more), RecordError when it cannot be read. A good
    run that is gone is only named.
    """
    from traces.reading import load_run

    view = load_run(home, str(diagnosis.get("run_id")))
    return report(
        view,
        diagnosis,
        good=_good(home, diagnosis),
        passages=_passages(home, view, diagnosis),
        confirmed=_confirmed(home, diagnosis),
    )


def check_report_file(path: Path) -> None:
    """Raises InputError for a name that says no form of a report, or where no file can be: asked before
    anything is spent."""
    if path.suffix.lower() not in (*_HTML, *_MARKDOWN):
        raise InputError(f"a report is written as {' or '.join(FORMS)}; {path.name!r} has neither ending")
    if not path.absolute().parent.is_dir():
        raise InputError(f"there is no folder {path.absolute().parent} to write the report into")
    try:
        writable = not path.is_dir() and os.access(path if path.exists() else path.absolute().parent, os.W_OK)
    except OSError as error:
        raise InputError(f"a report cannot be written to {path}: {error.strerror or error}") from None
    if not writable:
        raise InputError(f"a report cannot be written to {path}: it is a folder, or not yours to write")


def write_report(made: Report, path: Path) -> None:
    """Write a report in the form that the name of the file asks for; a file that is there is replaced.

    Raises InputError for a name without a form, RecordError when it cannot be written.
    """
    check_report_file(path)
    text = made.html() if path.suffix.lower() in _HTML else made.markdown()
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise RecordError(f"The report cannot be written to {path}: {error.strerror or error}.") from error


def _good(home: Home, diagnosis: Mapping[str, Any]) -> RunView | None:
    from traces.reading import load_run

    good = diagnosis.get("good_run_id")
    try:
        return load_run(home, good) if isinstance(good, str) else None
    except RLMScopeError:
        return None


def _confirmed(home: Home, diagnosis: Mapping[str, Any]) -> bool:
    """Whether a person said that the answer of the good run is right."""
    from traces.opinions import opinions

    said = opinions(home).of(str(diagnosis.get("good_run_id")))
    return said is not None and said.verdict == "right"


def _passages(home: Home, view: RunView, diagnosis: Mapping[str, Any]) -> dict[str, list[Passage]]:
    culprits = diagnosis.get("culprits")
    ids = [one for one in culprits if isinstance(one, str)] if isinstance(culprits, list) else []
    return {span_id: list(_of_span(home, view, span_id)) for span_id in ids if span_id in view.by_id}


def _of_span(home: Home, view: RunView, span_id: str) -> Iterator[Passage]:
    from traces.detail import span_detail

    span = view.by_id[span_id]
    found = sources_of(view, span, span_detail(view, span)["source_ranges"], home.corpora)
    for one in () if found is None else found.passages:
        where = passage_line(one).removeprefix(f"{one.document}, ")
        text = f"{one.text}\n…" if one.cut else one.text
        yield Passage(one.document, where, text, one.problem)
