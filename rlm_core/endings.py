"""Whether what a cell set as the answer may be the answer. It is read at the end of the cell, never from
prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlm_core.answer import StopReason
from rlm_core.schema_check import NotJson, Shape, parse_json, plain_value, shape_of
from rlm_core.values import foreign_type, from_form, to_form
from rlm_core.wire import CellReport

_TRACEBACK: Final = re.compile(r"^\s*Traceback \(most recent call last\)")
_ERROR_TEXT: Final = re.compile(
    r"\s*(?:SubCallError\(|\[error\]|error(?: \w{1,20})?:|[A-Za-z_.]{0,100}(?:Error|Exception):)", re.I
)
MOST_MISFITS: Final = 2  # answers that do not fit the schema before one is accepted, marked
_CONTAINERS: Final = ("list", "tuple", "set", "frozenset", "dict")
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
    fits: bool = False  # the schema it had to fit
    schema_problem: str | None = None  # why it does not

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


@dataclass(slots=True)
class Fit:
    """Holds the answers of one (child) run against the JSON schema they have to fit, if there is one.

    An answer that does not is refused `MOST_MISFITS` times, then accepted and marked. The text of one that
    fits is its JSON, but a text stays as it is; `nested`: not for a child run, whose caller reads JSON.
    """

    schema: Mapping[str, Any] | None
    nested: bool = False
    refused: int = 0

    async def judge(self, outcome: Outcome) -> str | None:
        """Why an answer is not taken, in words for the root; None: it is, `schema_problem` says how well."""
        if self.schema is None:
            return None
        shape = shape_of(self.schema)
        return await shape.off_loop(len(outcome.text or ""), lambda: self._refusal(shape, outcome))

    async def read(self, outcome: Outcome) -> None:
        """Take the JSON value out of an answer that a model gave as text; one that does not fit is marked."""
        if self.schema is None or outcome.text is None:
            return
        shape, text = shape_of(self.schema), outcome.text
        await shape.off_loop(len(text), lambda: self._read(shape, outcome, text))

    def _refusal(self, shape: Shape, outcome: Outcome) -> str | None:
        value = plain_value(outcome.value)
        outcome.schema_problem = self._foreign(outcome) or self._take(shape, outcome, value)
        if outcome.schema_problem is None or self.refused == MOST_MISFITS:
            return None
        self.refused += 1
        hint = "; give the value itself, not its text" if isinstance(outcome.form, str) else ""
        problem = f"{outcome.schema_problem}{hint}"
        return f"The answer was not taken: it does not fit the schema: {problem}. Set one that fits."

    def _read(self, shape: Shape, outcome: Outcome, text: str) -> None:
        try:
            value = parse_json(text)
        except NotJson as error:
            outcome.schema_problem, outcome.mark = str(error), outcome.mark or "schema"
            return
        if (problem := self._take(shape, outcome, value)) is None:
            outcome.form = to_form(value)
        outcome.schema_problem = problem

    def _foreign(self, outcome: Outcome) -> str | None:
        """Why an answer is no JSON at all: the repr of an object must not pass for a text."""
        if (kind := foreign_type(outcome.form)) is None:
            return None
        outcome.mark = outcome.mark or "schema"
        if kind.startswith("builtins.") and kind.removeprefix("builtins.") in _CONTAINERS:
            return "it is nested too deeply, or holds itself"
        return (
            f"it holds a value of type {kind[:200]}, which JSON cannot hold: use dicts, lists, numbers and "
            "texts (.model_dump(mode='json') of a pydantic model)"
        )

    def _take(self, shape: Shape, outcome: Outcome, value: Any) -> str | None:
        """Give a value that fits its text; mark one that does not, and say why."""
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            problem = shape.problem(value)
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"it is nothing that JSON can hold ({error})"
        if problem is not None:
            outcome.mark = outcome.mark or "schema"
            return problem
        outcome.fits = True
        if self.nested or not isinstance(value, str):
            outcome.text = text
        return None


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
