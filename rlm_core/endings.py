"""Whether what a cell set as the answer may be the answer. It is read at the end of the cell, never from
prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from rlm_core.answer import StopReason
from rlm_core.values import from_form
from rlm_core.wire import CellReport

_TRACEBACK: Final = re.compile(r"^\s*Traceback \(most recent call last\)")
_ERROR_TEXT: Final = re.compile(
    r"\s*(?:SubCallError\(|\[error\]|error(?: \w{1,20})?:|[A-Za-z_.]{0,100}(?:Error|Exception):)", re.I
)
_NOTHING: Final[tuple[Any, ...]] = (None, [], {}, {"$tuple": []}, {"$set": []}, {"$frozenset": []})


@dataclass(slots=True)
class Outcome:
    """How a (child) run ended."""

    stop_reason: StopReason
    text: str | None = None
    form: Any = None
    via: str | None = None
    expression: str | None = None
    confidence: str | None = None
    note: str | None = None
    mark: str | None = None
    forced: bool = False
    best_partial: str | None = None
    error: str | None = None
    iterations: int = 0

    @property
    def value(self) -> Any:
        """The answer as a Python value."""
        return from_form(self.form)


@dataclass(frozen=True, slots=True)
class Verdict:
    """An accepted outcome, or the sentence that tells the model why not."""

    outcome: Outcome | None
    refusal: str | None = None
    once: bool = False  # refused only the first time


def judge(report: CellReport, refused_before: bool) -> Verdict | None:
    """The verdict on the answer of a cell; None when the cell set none."""
    given = report.answer
    if given is None or given.get("ready") is not True:
        return None
    if given.get("missing") is True:
        return Verdict(
            None, f"The answer was not taken: there is no variable {str(given.get('expression'))[:80]!r}."
        )
    if failed := given.get("failed"):
        return Verdict(None, f"The answer was not taken: {str(failed)[:300]}.")
    if report.exception_type not in (None, "SystemExit"):  # sys.exit() right after FINAL is no failure
        return Verdict(
            None, "The answer was not taken: its cell ended with an exception. Set it again when it is right."
        )
    text = _text(given.get("text")) or ""
    mark = _mark(given, text)
    if mark == "traceback":
        return Verdict(None, "The answer was not taken: it is a traceback.")
    if mark is not None and not refused_before:
        what = "empty" if mark == "empty" else "the text of an error"
        return Verdict(
            None,
            f"The answer was not taken: it is {what}. Give a real answer, or the same again if it is right.",
            True,
        )
    return Verdict(_outcome(given, text, mark))


def partial(report: CellReport) -> str | None:
    """What a cell had put into the answer without ending the run."""
    given = report.answer
    if given is None or (given.get("ready") is True and report.exception_type is None):
        return None
    text = given.get("text")
    return text if isinstance(text, str) and _mark(given, text) is None else None


def _mark(given: dict[str, Any], text: str) -> str | None:
    kind, form = given.get("type"), given.get("form")
    if _TRACEBACK.match(text):
        return "traceback"
    if kind == "SubCallError" or (isinstance(form, str) and _ERROR_TEXT.match(text)):
        return "error_text"
    if not text.strip() or form in _NOTHING:
        return "empty"
    return None


def _outcome(given: dict[str, Any], text: str, mark: str | None) -> Outcome:
    expression = given.get("expression")
    return Outcome(
        "final",
        text="" if given.get("form") is None else text,
        form=given.get("form"),
        via=given["via"],
        expression=expression if isinstance(expression, str) else None,
        confidence=_text(given.get("confidence")),
        note=_text(given.get("note")),
        mark=mark,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
