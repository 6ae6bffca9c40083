"""Findings about a run as a whole: how it ended, its limits, when it looked at data, what it never read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rlm_core import semconv as sc
from traces.coverage import Coverage, coverage
from traces.facts import Facts
from traces.finding import Finding, ids, names_of, number_of, some_of, spans_of
from traces.imported import is_foreign
from traces.limits import limits
from traces.refused import refused
from traces.rows import SpanRow
from traces.view import RunView

_CORPUS: Final = frozenset({"context", "context_data", "documents"})
_LIMIT_STOPS: Final = {
    "max_iterations": "the limit of iterations was reached",
    "budget": "the limit of sub-calls, tokens or cost was reached",
    "timeout": "the time limit was reached",
}
_MARKS: Final = {"empty": "empty", "error_text": "the text of an error", "schema": "no value of its schema"}


def ending(view: RunView) -> Iterator[Finding]:
    """How the run came to its answer, or why to none."""
    run, top = view.summary, _top(view)
    if view.live:
        return
    why = _LIMIT_STOPS.get(run.stop_reason or "")
    if run.forced and run.answer is not None:
        words = f"The answer was forced: {why or 'a limit was reached'}, and the root had to say what it had."
        yield Finding("forced", "serious", words, spans=ids(_forced(view)))
    elif run.answer is None and why:
        yield Finding("stopped", "serious", f"There is no answer: {why}.", spans=ids(filter(None, [top])))
    facts = Facts(top.attributes if top is not None else {})
    if mark := facts.text(sc.ANSWER_MARK):
        words = f"The program insisted on an answer that is {_MARKS.get(mark, mark[:40])}."
        yield Finding("answer_mark", "serious", words)
    if (stated := facts.text(sc.ANSWER_CONFIDENCE)) is not None and stated.casefold() == "low":
        note = facts.text(sc.ANSWER_NOTE)
        told = f" Its note: {note[:200]}" if note else ""
        yield Finding("low_confidence", "check", f"The program stated low confidence in its answer.{told}")
    if run.status == "interrupted":
        what = "record" if is_foreign(run) else "process"  # of a process of others nothing is known
        yield Finding("interrupted", "serious", f"The {what} of the run ended before the run did.")
    elif run.problems:
        words = f"The record is incomplete: {number_of(run.problems, 'record')} missing or unreadable."
        yield Finding("incomplete", "check", words, run.problems)


def _top(view: RunView) -> SpanRow | None:
    return next(spans_of(view, "run"), None)


def _forced(view: RunView) -> Iterator[SpanRow]:
    return (span for span in spans_of(view, "iteration") if span.attributes.get(sc.FORCED) is True)


def early(view: RunView) -> Iterator[Finding]:
    """An answer from the iteration in which the program first looked at data: nothing was checked."""
    top = _top(view)
    answered = Facts(top.attributes).count(sc.ANSWER_CELL) if top is not None else None
    own = [cell for cell in spans_of(view, "cell") if cell.depth == 0]
    cell = next((cell for cell in own if cell.cell == answered and answered is not None), None)
    calling = {span.iteration for span in view.spans if span.kind == "sub_call" and span.depth == 0}
    looks = [c.iteration for c in own if c.iteration in calling or _CORPUS & names_of(c, sc.NAMES_READ)]
    if cell is None or cell.iteration is None or cell.iteration not in looks[:1]:
        return
    words = f"The answer was set in iteration {cell.iteration}, the one that first looked at data: the root "
    words += "answered before it saw what its code had found."
    yield Finding("early", "check", words, spans=(cell.span_id,))


def budget(view: RunView) -> Iterator[Finding]:
    """Limits that were passed, and calls that limits refused."""
    for limit in limits(view):
        if limit.over:
            words = f"More {limit.name} than allowed: {limit.words}."
            yield Finding("overshoot", "check", words)
    turned_away = refused(view.spans)
    found = [span for span in spans_of(view, "sub_call") if span.span_id in turned_away]
    if found:
        words = f"{number_of(len(found), 'sub-call')} never took place: a limit of the run refused them."
        yield Finding("refused", "serious", words, len(found), ids(found))


def compacted(view: RunView) -> Iterator[Finding]:
    """Turns that the root no longer saw as they were, but in its own summary."""
    summed = [span for span in spans_of(view, "root_call") if span.attributes.get(sc.COMPACTED) is True]
    done = [span for span in summed if span.status == "ok"]
    turns = sum(Facts(span.attributes).count(sc.COMPACTED_TURNS) or 0 for span in done)
    if turns:
        times = number_of(len(done), "time")
        words = (
            f"The root's window was full {times}: {turns:,} of its turns gave way to summaries of its own."
        )
        yield Finding("compacted", "note", words, len(done), ids(done))


def unread(view: RunView) -> Iterator[Finding]:
    """Documents that no sub-call was ever sent or none answered, and how much of the corpus no model saw."""
    if view.live:
        return
    found = coverage(view)
    never, all_of_them = found.never_sent, len(found.documents)
    if found.read_share is None or not all_of_them:
        return
    share = f"Models saw {_percent(found)} of the corpus."
    if not view.summary.sub_calls:
        yield Finding("unread", "note", f"No sub-call was made. {share}")
    elif never:
        known = "known to have been sent" if found.lower_bound else "sent"
        words = f"Documents never {known} to a sub-call: {len(never):,} of {all_of_them:,} "
        words += f"({some_of(document.name for document in never)}). {share}"
        yield Finding("never_sent", "check" if found.never_touched else "note", words, len(never))
    elif found.read_share < 1 and not found.never_answered:
        yield Finding("unread", "note", f"Every document was sent to a sub-call, some only in part. {share}")
    if unanswered := found.never_answered:
        words = f"Documents sent only to sub-calls that failed: {len(unanswered):,} of {all_of_them:,} "
        words += f"({some_of(document.name for document in unanswered)}): no answer rests on them. {share}"
        yield Finding("unanswered", "check", words, len(unanswered))


def _percent(found: Coverage) -> str:
    share = 100 * (found.read_share or 0.0)
    digits = 0 if share in (0, 100) or 1 <= share < 99 else 2
    if digits:
        share = min(share, 99.99)  # not rounded to all of it
    return f"{'at least ' if found.lower_bound and share < 100 else ''}{share:.{digits}f}%"
