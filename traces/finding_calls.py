"""Findings about sub-calls: what suspects add up to, calls made twice, none that saw another's result."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rlm_core import semconv as sc
from traces.coverage import Coverage, coverage
from traces.facts import Facts
from traces.finding import Finding, Severity, ids, names_of, number_of, spans_of
from traces.refused import refused
from traces.reply_facts import texts_of
from traces.rows import SpanRow, money_json
from traces.summing import spend_of
from traces.suspects import MEANINGS, Suspect
from traces.view import RunView

SEVERITY_OF: Final[Mapping[str, Severity]] = {
    "error": "serious",
    "cut off": "serious",
    "empty": "check",
    "disagreement": "check",
    "refusal": "check",
    "fallback": "check",
    "digit": "check",
    "value": "check",
    "name": "note",
    "format": "check",
    "unfinished": "check",
    "outlier": "note",
    "length": "note",
}
_TELLING_CHARS: Final = 12  # of an error message that is looked for
_MOST_MESSAGES: Final = 50
_MOST_PROMPTS: Final = 2_000
#: Words of questions whose answer is more than the sum of its parts, in the languages of the samples.
_OF_THE_WHOLE: Final = re.compile(
    r"\b(?:summar|overall|compar|trend|timeline|chronolog|sequence|contradict|consisten|deviat|differ|rise|rose"
    r"|before|after|pairs?\b|relat|evol|histor|theme|narrat|overarch|storyline|in what order|turning point"
    r"|resum|resúm|tendencia|tendência|antes|depois|después|cronol|en qué orden|em que ordem)",
    re.IGNORECASE,
)


def suspicious(view: RunView, found: Mapping[str, Suspect]) -> Iterator[Finding]:
    """One finding for each kind of signal. Calls that a limit refused have one of their own."""
    turned_away = refused(view.spans)
    by_kind: dict[str, list[str]] = defaultdict(list)
    for span_id, suspect in found.items():
        if span_id in turned_away:
            continue
        for kind in dict.fromkeys(signal.kind for signal in suspect.signals):
            by_kind[kind].append(span_id)
    made = (span for span in view.spans if span.span_id not in turned_away)
    calls = Counter(span.kind for span in made if span.kind == "sub_call" or span.is_child_run)
    for kind in MEANINGS:
        spans = sorted(by_kind[kind], key=lambda span_id: view.by_id[span_id].seq)
        if spans:
            both = any(view.by_id[span_id].is_child_run for span_id in spans)
            who, total = (
                ("Sub-calls and child runs", calls.total()) if both else ("Sub-calls", calls["sub_call"])
            )
            words = f"{who} {MEANINGS[kind]}: {len(spans):,} of {total:,}."
            yield Finding(kind, SEVERITY_OF[kind], words, len(spans), tuple(spans), signal=kind)


def error_text(view: RunView) -> Iterator[Finding]:
    """Error messages of failed calls that stand in the answer or in prompts, used as if they were replies.
    Looked for in the answer and in up to 2,000 prompts.
    """
    messages = {
        message: span
        for span in view.spans
        if span.kind == "sub_call"
        and span.status == "error"
        and (message := Facts(span.attributes).text(sc.ERROR_MESSAGE)) is not None
        and len(message) >= _TELLING_CHARS
    }
    if not messages:
        return
    pattern = re.compile("|".join(re.escape(message) for message in list(messages)[:_MOST_MESSAGES]))
    answer = view.summary.answer or ""
    asked = list(spans_of(view, "sub_call"))[:_MOST_PROMPTS]
    prompts = [key for key, text in texts_of(view, asked, sc.PROMPT) if pattern.search(text)]
    in_answer = pattern.search(answer) is not None
    if in_answer or prompts:
        where = ["the answer"] * in_answer + [number_of(len(prompts), "prompt")] * bool(prompts)
        words = f"The error message of a failed sub-call stands in {' and in '.join(where)}, as if it were a "
        severity: Severity = "serious" if in_answer else "check"
        yield Finding("error_text", severity, words + "reply.", len(prompts) + in_answer, tuple(prompts))


def duplicates(view: RunView) -> Iterator[Finding]:
    """Calls whose prompt the same model had answered before in this run."""
    asked: dict[tuple[str, str | None], list[SpanRow]] = defaultdict(list)
    for span in spans_of(view, "sub_call"):
        digest = span.attributes.get(sc.PROMPT_HASH)
        hit = span.attributes.get(sc.SERVED_FROM) == "cache"  # asked for nothing, and meant to be
        if isinstance(digest, str) and span.status == "ok" and not hit:
            asked[digest, span.model].append(span)
    again = [span for same in asked.values() for span in same[1:]]
    if again:
        spend = spend_of(again)
        cost = f" They cost ${money_json(spend.known_usd)}." if spend.known_usd else ""
        words = f"{number_of(len(again), 'sub-call')} asked what had been asked before, word for word.{cost}"
        yield Finding("duplicates", "note", words, len(again), ids(sorted(again, key=lambda s: s.seq)))


def unshared(view: RunView) -> Iterator[Finding]:
    """No sub-call saw another's result, though the question is about the whole. Said only where it is sure:
    every cell asked all its calls in one batch, and no later one read what came from an earlier one. Not said
    where the root itself was shown every reply: then somebody had read them all. How much of the text no
    model read is said beside it, and makes it more than a note.
    """
    question = view.summary.question or ""
    calls = list(spans_of(view, "sub_call"))
    if view.live or len(calls) < 2 or any(span.is_child_run for span in view.spans):
        return
    if not _OF_THE_WHOLE.search(question) or not _independent(view, calls) or _all_shown(view, calls):
        return
    found = coverage(view)
    unread = found.read_share is not None and found.read_share < 1
    share = f" Of the text {_never_read(found)} was never read by a model." if unread else ""
    words = f"No sub-call saw another's result: each of the {len(calls):,} looked at its part alone, and the "
    severity: Severity = "check" if unread else "note"
    yield Finding("unshared", severity, f"{words}question reads like one about the whole.{share}", len(calls))


def _all_shown(view: RunView, calls: Sequence[SpanRow]) -> bool:
    """Whether every reply stands, word for word, in the output of cells that the root was shown."""
    last = max((span.seq for span in spans_of(view, "root_call")), default=0)
    cells = [span for span in spans_of(view, "cell") if span.seq < last]
    shown = "\n".join(text for _, text in texts_of(view, cells, sc.STDOUT_SHOWN))
    answered = [call for call in calls if call.status == "ok"]
    replies = Counter(text.strip() for _, text in texts_of(view, answered, sc.RESPONSE))
    return replies.total() > 0 and all(
        max(shown.count(text), shown.count(repr(text)[1:-1])) >= count for text, count in replies.items()
    )


def _never_read(found: Coverage) -> str:
    share = 100 * (1 - (found.read_share or 0.0))
    digits = 0 if 1 <= share <= 99 or share == 100 else 2
    return f"{'up to ' if found.lower_bound else ''}{max(share, 0.01):.{digits}f}%"


def _independent(view: RunView, calls: Sequence[SpanRow]) -> bool:
    batches: dict[int, set[str]] = defaultdict(set)  # by cell
    for span in calls:
        parent = view.by_id.get(span.parent_id or "")
        if parent is None or parent.kind != "batch" or span.cell is None:
            return False
        batches[span.cell].add(parent.span_id)
    if any(len(several) > 1 for several in batches.values()):
        return False
    from_calls: set[str] = set()
    for cell in spans_of(view, "cell"):
        reads = from_calls & names_of(cell, sc.NAMES_READ)
        if cell.cell in batches and reads:
            return False
        if cell.cell in batches or reads:
            from_calls |= names_of(cell, sc.NAMES_WRITTEN)
    return True
