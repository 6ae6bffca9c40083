"""A diagnosis as a report that a colleague can read who has never seen the program.

Question, answers, what broke the answer, how that was proven, what it rests on, what it cost, how to repeat
it. Two forms: Markdown, and one HTML file that stands by itself. Everything in a diagnosis may quote models
and documents, and its JSON may come from a file of others: it is read as far as it can be used, and shown as
text only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_core.errors import InputError
from traces.diagnosis import VERDICTS
from traces.imported import asked_words
from traces.report_culprits import Passage, culprit_parts, suspect_parts
from traces.report_facts import Facts
from traces.report_html import to_html
from traces.report_markdown import to_markdown
from traces.report_parts import Heading, Items, Part, Sides, Text, Words
from traces.report_proof import cost_parts, proof_parts, repeat_parts, settings_parts
from traces.same_answer import explain
from traces.view import RunView

_MOST_FINDINGS = 12
#: For a reader who has never seen the program: one sentence each.
_WHAT_A_RUN_IS = (
    "In a run, a language model called the root answers a question about long documents by writing pieces of "
    "code, called cells, which are carried out one after the other and which ask a model about parts of the "
    "documents, each time in a sub-call; what the cells print is all that the root sees."
)
_WHAT_A_REPLAY_IS = (
    "A replay carries out the recorded cells once more with the recorded replies, some of them replaced: if "
    "the answer comes out right then, what was replaced made the difference."
)


@dataclass(frozen=True, slots=True)
class Report:
    """A report, ready to be written in either form."""

    title: str
    parts: tuple[Part, ...]

    def markdown(self) -> str:
        """As Markdown (CommonMark with tables)."""
        return to_markdown(self.title, self.parts)

    def html(self) -> str:
        """As one HTML document: no script, nothing from elsewhere, light and dark, fit to be printed."""
        return to_html(self.title, self.parts)


def report(
    view: RunView,
    diagnosis: Mapping[str, Any],
    *,
    good: RunView | None = None,
    passages: Mapping[str, Sequence[Passage]] | None = None,
    confirmed: bool = False,
) -> Report:
    """The report of a diagnosis of a run.

    `diagnosis` is as `Diagnosis.to_json`; `good` the run it was compared with, if there was one; `passages`
    what the culprits read, by span id (see `ui.reporting`): without them the report only has the prompts.
    `confirmed`: a person has said that the answer of the good run is right.
    """
    facts = Facts(view, diagnosis, good)
    parts = [
        Words(_WHAT_A_RUN_IS),
        Words(_WHAT_A_REPLAY_IS),
        *_verdict(facts),
        *_answers(facts, confirmed),
        *(culprit_parts(facts, passages or {}) if facts.culprits else ()),
        *(() if facts.proven else suspect_parts(facts)),
        *proof_parts(facts),
        *_rests_on(facts),
        *cost_parts(facts),
        *_findings(facts),
        *repeat_parts(facts),
        *settings_parts(facts),
    ]
    return Report(f"Diagnosis of run {view.run_id}", tuple(parts))


def _verdict(facts: Facts) -> Iterator[Part]:
    verdict = facts.text("verdict") or ""
    known = {name: words for name, words in VERDICTS.items()}.get(verdict)  # type: ignore[call-overload]
    words = facts.text("words") or known or f"The verdict is “{verdict}”."
    yield Words(words, strong=True)
    if facts.proven:
        each = ", and taking any one of them away undoes it" if len(facts.culprits) > 1 else ""
        yield Words(f"Proven: replays of the recorded run decided it{each}.")
    else:
        yield Words("Not proven: read what was tried, and what it rests on, before you rely on it.")


def _answers(facts: Facts, confirmed: bool) -> Iterator[Part]:
    summary = facts.view.summary
    yield Heading("Question and answers")
    yield Text("Question", asked_words(summary))
    given = Text("The answer of this run", summary.answer)
    expected = facts.text("expected")
    if expected is None:
        yield given
        why = "" if facts.good_id else " and there is no good run"
        yield Words(f"No answer to compare it with was given: nobody marked one{why}.")
        return
    borrowed = facts.good_id is not None and facts.text("expected_from") != "expected"
    whose = "The answer of the good run" if borrowed else "The answer it should have given"
    yield Sides(given, Text(whose, expected))
    if borrowed and not confirmed:
        yield Words("Nobody has confirmed that the answer of the good run is right: all below assumes it.")
    yield Words(f"Answers are compared so: {_how(facts)}.")


def _how(facts: Facts) -> str:
    how = facts.text("match") or "normalised"
    try:
        return explain(how)
    except InputError:
        return how


def _rests_on(facts: Facts) -> Iterator[Part]:
    said = [*facts.texts("assumed"), *facts.texts("warnings")]
    yield Heading("What this rests on")
    yield Items(said) if said else Words("Nothing was assumed beyond the record itself.")


def _findings(facts: Facts) -> Iterator[Part]:
    found = [words for row in facts.rows("findings") if isinstance(words := row.get("words"), str)]
    if found:
        yield Heading("What else was found in this run")
        yield Items(found[:_MOST_FINDINGS])
        if len(found) > _MOST_FINDINGS:
            yield Words(f"{len(found) - _MOST_FINDINGS:,} more are on the page of the run.")
